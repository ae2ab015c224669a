#include "data/tokenizers.h"

#include <algorithm>

namespace cairn::data {

namespace {

void add(Tokens& tokens, std::string_view text, size_t begin, size_t end) {
  if (end > begin) tokens.push_back({std::string(text.substr(begin, end - begin)), begin, end});
}

/// Splits where `kind` of neighbours differs, or stands alone (negative); kind 0 is left out.
template <class Kind>
Tokens runs(std::string_view text, Kind&& kind) {
  Tokens tokens;
  size_t begin = 0;
  int last = 0;
  for (size_t at = 0; at < text.size();) {
    const auto [character, size] = first_character(text.substr(at));
    const int now = kind(character);
    if (now != last || now < 0) {
      if (last != 0) add(tokens, text, begin, at);
      begin = at;
    }
    last = now;
    at += size;
  }
  if (last != 0) add(tokens, text, begin, text.size());
  return tokens;
}

constexpr int32_t kChinese[][2] = {{0x4e00, 0x9fff},   {0x3400, 0x4dbf},   {0x20000, 0x2a6df}, {0x2a700, 0x2b73f},
                                   {0x2b740, 0x2b81f}, {0x2b820, 0x2ceaf}, {0xf900, 0xfaff},   {0x2f800, 0x2fa1f}};

bool stands_alone(int32_t c) {
  if ((c >= 33 && c <= 47) || (c >= 58 && c <= 64) || (c >= 91 && c <= 96) || (c >= 123 && c <= 126)) return true;
  if (c < 0x80) return false;
  return is_punctuation(c) || std::any_of(std::begin(kChinese), std::end(kChinese),
                                          [c](const int32_t(&range)[2]) { return c >= range[0] && c <= range[1]; });
}

/// The size of a word such as [CLS] that `text` begins with, or 0.
size_t special_size(std::string_view text) {
  if (!text.starts_with('[')) return 0;
  for (std::string_view word : {"[CLS]", "[SEP]", "[UNK]", "[PAD]", "[MASK]"})
    if (text.starts_with(word)) return word.size();
  constexpr std::string_view kUnused = "[unused";
  if (!text.starts_with(kUnused)) return 0;
  const size_t end = text.find_first_not_of("0123456789", kUnused.size());
  return end != std::string_view::npos && end > kUnused.size() && text[end] == ']' ? end + 1 : 0;
}

/// Calls plain(text) and special(text) for the parts of a text.
template <class Plain, class Special>
void parts(std::string_view text, bool preserve, Plain&& plain, Special&& special) {
  size_t begin = 0;
  for (size_t at = preserve ? text.find('[') : std::string_view::npos; at != std::string_view::npos;) {
    const size_t size = special_size(text.substr(at));
    if (size > 0) {
      plain(text.substr(begin, at - begin));
      special(text.substr(at, size));
      begin = at + size;
    }
    at = text.find('[', at + std::max<size_t>(size, 1));
  }
  plain(text.substr(begin));
}

std::string with_blanks_for_controls(std::string_view text) {
  std::string made;
  while (!text.empty()) {
    const auto [character, size] = first_character(text);
    if (is_control(character))
      made += ' ';
    else
      made += text.substr(0, size);
    text.remove_prefix(size);
  }
  return made;
}

std::string prepared(std::string_view text, const BasicOptions& options) {
  if (!options.lower_case) return with_blanks_for_controls(normalized(text, options.form));
  std::string made;
  parts(
      text, options.preserve_unused,
      [&](std::string_view plain) { made += without_marks(normalized(normalized(plain, Form::folded), Form::nfd)); },
      [&](std::string_view special) { made += special; });
  return with_blanks_for_controls(made);
}

}  // namespace

Tokens by_whitespace(std::string_view text) {
  return runs(text, [](int32_t c) { return is_space(c) ? 0 : 1; });
}

Tokens by_character(std::string_view text) {
  return runs(text, [](int32_t) { return -1; });
}

Tokens by_script(std::string_view text, bool keep_whitespace) {
  return runs(text, [=](int32_t c) { return !is_space(c) ? 2 + script_of(c) : keep_whitespace ? 1 : 0; });
}

Tokens by_pattern(std::string_view text, const Pattern& delimiter, const Pattern* kept) {
  Tokens tokens;
  size_t at = 0;
  for (auto [begin, end] : delimiter.matches(text)) {
    add(tokens, text, at, begin);
    if (kept && end > begin && kept->matches_whole(text.substr(begin, end - begin))) add(tokens, text, begin, end);
    at = end;
  }
  add(tokens, text, at, text.size());
  return tokens;
}

Tokens basic_tokens(std::string_view text, const BasicOptions& options) {
  const std::string ready = prepared(text, options);
  Tokens tokens;
  size_t begin = 0;
  parts(
      ready, options.preserve_unused,
      [&](std::string_view plain) {
        for (Token& token : runs(plain, [&](int32_t c) {
               return is_space(c) ? (options.keep_whitespace ? 1 : 0) : stands_alone(c) ? -1 : 2;
             }))
          tokens.push_back({std::move(token.text), begin + token.begin, begin + token.end});
        begin += plain.size();
      },
      [&](std::string_view special) {
        tokens.push_back({std::string(special), begin, begin + special.size()});
        begin += special.size();
      });
  return tokens;
}

void add_pieces(const Token& word, const PieceOptions& options, Tokens& pieces) {
  const std::string& text = word.text;
  const size_t first = pieces.size();
  bool known = text.size() <= options.most_bytes;
  for (size_t begin = 0; known && begin < text.size();) {
    size_t end = text.size();
    std::string piece;
    for (; end > begin; --end) {
      if (end < text.size() && (static_cast<unsigned char>(text[end]) & 0xc0) == 0x80) continue;  // inside a character
      piece = (begin ? options.suffix : "") + text.substr(begin, end - begin);
      if (options.vocabulary->contains(piece)) break;
    }
    known = end > begin;
    pieces.push_back({std::move(piece), word.begin + begin, word.begin + end});
    begin = end;
  }
  if (known) return;
  pieces.resize(first);
  pieces.push_back({options.unknown.empty() ? text : options.unknown, word.begin, word.end});
}

}  // namespace cairn::data
