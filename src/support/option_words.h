// Words of a command line as people really type and paste them: dashes, quotes, blanks and punctuation of word processors
// and of other keyboards, and options that ran into each other.
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

/// The words with blanks and invisible characters of web pages mended: a no-break blank in front of an option separates.
std::vector<std::string> mended_words(const std::vector<std::string>& words, Door door,
                                      std::vector<std::string>& repairs);
/// Full-width commas, colons, semicolons, brackets, digits, minus and equals signs in ASCII.
std::string ascii_punctuation(std::string_view text);
/// Where in a value another option begins, as in "name--output_type=FP32"; npos where none does.
size_t glued_option(std::string_view value, Door door);
/// What was most likely meant by a word that belongs to no option; empty where nothing tells.
std::string hint_for_stray(const std::string& word, const std::string& next, Door door);
/// The same for an option that there is not, `next` being the word behind it.
std::string hint_for_unknown(const std::string& name, const std::string& next, Door door);
/// Why the name of a chip is none, empty where it is one.
std::string chip_fault(const std::string& name);

}  // namespace cairn
