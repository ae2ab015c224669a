// Texts into tokens: words, characters, and pieces of words that are in a vocabulary.
#pragma once

#include <unordered_map>

#include "data/unicode.h"

namespace cairn::data {

struct Token {
  std::string text;
  size_t begin = 0, end = 0;  // in bytes of the text, as it was normalized
};
using Tokens = std::vector<Token>;

Tokens by_whitespace(std::string_view text);
Tokens by_character(std::string_view text);
/// Runs of characters of one script; what belongs to several (punctuation) is one of its own.
Tokens by_script(std::string_view text, bool keep_whitespace);
/// What lies between matches of `delimiter`; of these the ones that `kept` matches, which may be null.
Tokens by_pattern(std::string_view text, const Pattern& delimiter, const Pattern* kept);

struct BasicOptions {
  bool lower_case = false, keep_whitespace = false, preserve_unused = true;
  Form form = Form::none;
};
/// As BERT: cases and accents gone or a normal form, control characters as blanks, then words, punctuation and Chinese characters
/// each by itself. [CLS], [SEP], [UNK], [PAD], [MASK], [unused1] stay as they are with `preserve_unused`.
Tokens basic_tokens(std::string_view text, const BasicOptions& options);

using Vocabulary = std::unordered_map<std::string, int64_t>;
struct PieceOptions {
  std::shared_ptr<const Vocabulary> vocabulary;
  std::string suffix = "##", unknown = "[UNK]";
  size_t most_bytes = 100;
};
/// The longest pieces that the vocabulary has, from the left; a word that has none, or is too long: unknown, or itself where that
/// is empty.
void add_pieces(const Token& word, const PieceOptions& options, Tokens& pieces);

}  // namespace cairn::data
