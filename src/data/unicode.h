// Unicode text by ICU, whose tables and regular expressions define what tokenizers do.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "data/array.h"

namespace cairn::data {

/// The character that `text` begins with, which must not be empty, and its size in bytes; what is no UTF-8: U+FFFD, one byte.
std::pair<int32_t, size_t> first_character(std::string_view text);
bool is_space(int32_t character);
bool is_control(int32_t character);      // of the categories Cc and Cf
bool is_punctuation(int32_t character);  // of the categories P
int script_of(int32_t character);        // a number for each script

enum class Form { none, nfc, nfkc, nfd, nfkd, folded };  // folded: NFKC with cases folded
std::string normalized(std::string_view text, Form form);
/// Without marks that take no space of their own (category Mn).
std::string without_marks(std::string_view text);

/// A regular expression of ICU.
class Pattern {
 public:
  /// Throws Error invalid_argument.
  explicit Pattern(const std::string& pattern);
  ~Pattern();
  Pattern(const Pattern&) = delete;
  Pattern& operator=(const Pattern&) = delete;

  /// Begin and end of each match in bytes. Throws Error.
  std::vector<std::pair<size_t, size_t>> matches(std::string_view text) const;
  bool matches_whole(std::string_view text) const;
  std::string replaced(std::string_view text, std::string_view with, bool all) const;

 private:
  struct Compiled;
  std::unique_ptr<Compiled> compiled_;
};

}  // namespace cairn::data
