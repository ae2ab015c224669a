// Normalises command-line words as people type and paste them: typographic dashes, quotes, blanks and punctuation, and
// options with no blank between them.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "support/options.h"

namespace cairn {

/// Bytes of the dashes, ASCII or typographic, that the text starts with; 0 where there is none.
size_t leading_dashes(std::string_view text);
/// Bytes of the quote, ASCII or typographic, that the text starts or ends with; 0 where there is none.
size_t opening_quote(std::string_view text);
size_t closing_quote(std::string_view text);

/// The words with no-break blanks and invisible characters (from web pages) replaced; a no-break blank in front of an
/// option separates words. Adds a sentence to `repairs` for each change.
std::vector<std::string> mended_words(const std::vector<std::string>& words, Door door,
                                      std::vector<std::string>& repairs);
/// Replaces full-width commas, colons, semicolons, brackets, digits, minus and equals signs by their ASCII forms.
std::string ascii_punctuation(std::string_view text);
/// The position in a value where another option begins, as in "name--output_type=FP32"; npos when none does.
size_t glued_option(std::string_view value, Door door);
/// A hint for a word that belongs to no option: what was most likely meant.
std::string hint_for_stray(const std::string& word, const std::string& next, Door door);
/// A hint for an unknown option; `next` is the word behind it.
std::string hint_for_unknown(const std::string& name, const std::string& next, Door door);
/// Why `name` is not the name of a chip; empty when it is one.
std::string chip_fault(const std::string& name);

}  // namespace cairn
