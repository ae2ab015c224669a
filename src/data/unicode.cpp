#include "data/unicode.h"

#include <unicode/uchar.h>
#include <unicode/unorm2.h>
#include <unicode/uregex.h>
#include <unicode/uscript.h>
#include <unicode/ustring.h>

#include <algorithm>

#include "support/utf8.h"

namespace cairn::data {

namespace {

void check_icu(UErrorCode code, const char* what) {
  if (U_FAILURE(code)) fail(ErrorKind::invalid_argument, "", "{}: {}", what, u_errorName(code));
}

std::u16string utf16_of(std::string_view text) {
  std::u16string made(text.size() + 1, u'\0');
  int32_t size = 0;
  UErrorCode code = U_ZERO_ERROR;
  u_strFromUTF8WithSub(made.data(), static_cast<int32_t>(made.size()), &size, text.data(),
                       static_cast<int32_t>(text.size()), 0xfffd, nullptr, &code);
  check_icu(code, "a text cannot be read");
  made.resize(static_cast<size_t>(size));
  return made;
}

std::string utf8_of(std::u16string_view text) {
  std::string made(3 * text.size() + 1, '\0');
  int32_t size = 0;
  UErrorCode code = U_ZERO_ERROR;
  u_strToUTF8WithSub(made.data(), static_cast<int32_t>(made.size()), &size, text.data(),
                     static_cast<int32_t>(text.size()), 0xfffd, nullptr, &code);
  check_icu(code, "a text cannot be written");
  made.resize(static_cast<size_t>(size));
  return made;
}

/// What `call(buffer, capacity, code)` writes, however long it is.
template <class Call>
std::u16string grown(size_t guess, Call&& call) {
  std::u16string made(guess + 16, u'\0');
  while (true) {
    UErrorCode code = U_ZERO_ERROR;
    const int32_t size = call(made.data(), static_cast<int32_t>(made.size()), &code);
    if (code == U_BUFFER_OVERFLOW_ERROR) {
      made.resize(static_cast<size_t>(size) + 16);
      continue;
    }
    check_icu(code, "a text cannot be changed");
    made.resize(static_cast<size_t>(size));
    return made;
  }
}

const UNormalizer2* normalizer(Form form) {
  UErrorCode code = U_ZERO_ERROR;
  const UNormalizer2* made = form == Form::nfc    ? unorm2_getNFCInstance(&code)
                             : form == Form::nfkc ? unorm2_getNFKCInstance(&code)
                             : form == Form::nfd  ? unorm2_getNFDInstance(&code)
                             : form == Form::nfkd ? unorm2_getNFKDInstance(&code)
                                                  : unorm2_getNFKCCasefoldInstance(&code);
  check_icu(code, "Unicode's tables cannot be read");
  return made;
}

bool is_ascii(std::string_view text) {
  return std::all_of(text.begin(), text.end(), [](char c) { return static_cast<unsigned char>(c) < 0x80; });
}

}  // namespace

std::pair<int32_t, size_t> first_character(std::string_view text) {
  const size_t size = utf8_size(text);
  if (size == 0) return {0xfffd, 1};
  if (size == 1) return {static_cast<unsigned char>(text[0]), 1};
  int32_t character = static_cast<unsigned char>(text[0]) & (0xff >> (size + 1));
  for (size_t i = 1; i < size; ++i) character = character << 6 | (static_cast<unsigned char>(text[i]) & 0x3f);
  return {character, size};
}

bool is_space(int32_t character) { return u_isUWhiteSpace(character); }
bool is_control(int32_t character) { return U_GET_GC_MASK(character) & (U_GC_CC_MASK | U_GC_CF_MASK); }
bool is_punctuation(int32_t character) { return U_GET_GC_MASK(character) & U_GC_P_MASK; }

int script_of(int32_t character) {
  UErrorCode code = U_ZERO_ERROR;
  const int script = uscript_getScript(character, &code);
  return U_SUCCESS(code) ? script : -1;
}

std::string normalized(std::string_view text, Form form) {
  if (form == Form::none) return std::string(text);
  if (is_ascii(text)) {
    std::string made(text);
    if (form == Form::folded)
      for (char& c : made) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c;
    return made;
  }
  const std::u16string from = utf16_of(text);
  const UNormalizer2* normalize = normalizer(form);
  return utf8_of(grown(2 * from.size(), [&](char16_t* to, int32_t size, UErrorCode* code) {
    return unorm2_normalize(normalize, from.data(), static_cast<int32_t>(from.size()), to, size, code);
  }));
}

std::string without_marks(std::string_view text) {
  if (is_ascii(text)) return std::string(text);
  std::string made;
  while (!text.empty()) {
    const auto [character, size] = first_character(text);
    if (u_charType(character) != U_NON_SPACING_MARK) made += text.substr(0, size);
    text.remove_prefix(size);
  }
  return made;
}

struct Pattern::Compiled {
  explicit Compiled(URegularExpression* expression) : expression(expression) {}
  ~Compiled() { uregex_close(expression); }
  Compiled(const Compiled&) = delete;
  Compiled& operator=(const Compiled&) = delete;
  URegularExpression* expression;
};

namespace {

/// An expression over a text, for one call.
class Matcher {
 public:
  Matcher(const URegularExpression* expression, const std::u16string& text) {
    UErrorCode code = U_ZERO_ERROR;
    own_ = uregex_clone(expression, &code);
    uregex_setText(own_, text.data(), static_cast<int32_t>(text.size()), &code);
    check_icu(code, "a pattern cannot be used");
  }
  ~Matcher() { uregex_close(own_); }
  Matcher(const Matcher&) = delete;
  Matcher& operator=(const Matcher&) = delete;
  URegularExpression* get() { return own_; }

 private:
  URegularExpression* own_ = nullptr;
};

/// The place in bytes of each place in UTF-16 units.
std::vector<size_t> byte_places(std::u16string_view text) {
  std::vector<size_t> places;
  size_t at = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    places.push_back(at);
    const bool first_half = (text[i] & 0xfc00) == 0xd800, second_half = (text[i] & 0xfc00) == 0xdc00;
    at += second_half ? 0 : first_half ? 4 : text[i] < 0x80 ? 1 : text[i] < 0x800 ? 2 : 3;
  }
  places.push_back(at);
  return places;
}

}  // namespace

Pattern::Pattern(const std::string& pattern) {
  const std::u16string text = utf16_of(pattern);
  UErrorCode code = U_ZERO_ERROR;
  UParseError where{};
  URegularExpression* made = uregex_open(text.data(), static_cast<int32_t>(text.size()), 0, &where, &code);
  if (U_FAILURE(code))
    fail(ErrorKind::invalid_argument, "", "the pattern '{}' is wrong at character {}: {}", printable(pattern),
         where.offset, u_errorName(code));
  compiled_ = std::make_unique<Compiled>(made);
}

Pattern::~Pattern() = default;

std::vector<std::pair<size_t, size_t>> Pattern::matches(std::string_view text) const {
  const std::u16string wide = utf16_of(text);
  const std::vector<size_t> places = byte_places(wide);
  Matcher matcher(compiled_->expression, wide);
  UErrorCode code = U_ZERO_ERROR;
  std::vector<std::pair<size_t, size_t>> found;
  while (uregex_findNext(matcher.get(), &code)) {
    const int32_t begin = uregex_start(matcher.get(), 0, &code), end = uregex_end(matcher.get(), 0, &code);
    found.emplace_back(places[static_cast<size_t>(begin)], places[static_cast<size_t>(end)]);
  }
  check_icu(code, "a pattern cannot be matched");
  return found;
}

bool Pattern::matches_whole(std::string_view text) const {
  const std::u16string wide = utf16_of(text);
  Matcher matcher(compiled_->expression, wide);
  UErrorCode code = U_ZERO_ERROR;
  const bool whole = uregex_matches(matcher.get(), 0, &code);
  check_icu(code, "a pattern cannot be matched");
  return whole;
}

std::string Pattern::replaced(std::string_view text, std::string_view with, bool all) const {
  const std::u16string wide = utf16_of(text), replacement = utf16_of(with);
  Matcher matcher(compiled_->expression, wide);
  auto replace = all ? uregex_replaceAll : uregex_replaceFirst;
  return utf8_of(grown(2 * wide.size(), [&](char16_t* to, int32_t size, UErrorCode* code) {
    return replace(matcher.get(), replacement.data(), static_cast<int32_t>(replacement.size()), to, size, code);
  }));
}

}  // namespace cairn::data
