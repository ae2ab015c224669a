#include "frontends/text_proto.h"

#include <charconv>
#include <cmath>
#include <limits>
#include <protozero/pbf_writer.hpp>
#include <utility>
#include <vector>

#include "frontends/wire.h"
#include "support/error.h"
#include "support/nearest.h"

namespace cairn {
namespace {

bool is_blank(char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r' || c == '\v' || c == '\f'; }
bool is_word(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '.' ||
         c == '-' || c == '+';
}
bool is_digit(char c) { return c >= '0' && c <= '9'; }

/// A place is its line and, in so many bits, its column.
constexpr int kColumnBits = 32;

int hex_digit(char c) {
  if (is_digit(c)) return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

/// Tokens of the text form: words (identifiers and numbers), strings, single marks. A fault is at the token that was read
/// last, or where what was expected is not.
constexpr std::string_view kByteOrderMark = "\xef\xbb\xbf";  // editors of Windows begin a text with it

class Tokens {
 public:
  Tokens(std::string_view text, const std::string& file) : text_(text), file_(file) {
    if (text_.starts_with(kByteOrderMark)) text_.remove_prefix(kByteOrderMark.size());
    skip_blanks();
  }

  bool done() const { return at_ == text_.size(); }
  char peek() const { return done() ? '\0' : text_[at_]; }
  bool take(char mark) {
    if (peek() != mark || done()) return false;
    token_ = place();
    ++at_;
    skip_blanks();
    return true;
  }
  void expect(char mark) {
    if (!take(mark)) fail_here("expected '{}', found {}", mark, here());
  }
  std::string_view word() {
    token_ = place();
    size_t start = at_;
    while (!done() && is_word(text_[at_])) ++at_;
    if (at_ == start) fail("expected a name or a number, found {}", here());
    std::string_view result = text_.substr(start, at_ - start);
    skip_blanks();
    return result;
  }
  bool at_string() const { return peek() == '"' || peek() == '\''; }
  /// Adjacent literals are one string.
  std::string string() {
    if (!at_string()) fail_here("expected a string, found {}", here());
    std::string result;
    while (at_string()) literal(result);
    return result;
  }
  /// A word, strings, or everything between balanced brackets.
  void skip_value() {
    size_t open = 0;
    do {
      if (done()) fail_here("the text ends inside a value");
      if (at_string()) {
        string();
      } else if (take('{') || take('<') || take('[')) {
        ++open;
      } else if (take('}') || take('>') || take(']')) {
        if (open-- == 0) fail("a bracket closes that was not opened");
      } else if (!(open > 0 && (take(':') || take(',') || take(';') || take('/')))) {
        word();
      }
    } while (open > 0);
  }
  std::string here() const { return done() ? "the end" : fmt::format("'{}'", printable(text_.substr(at_, 1))); }
  /// Where the token that was read last begins.
  int64_t token() const { return token_; }
  template <class... Args>
  [[noreturn]] void fail(fmt::format_string<Args...> format, Args&&... args) const {
    cairn::fail(ErrorKind::invalid_model, file_, "{}: {}", text_place(token_),
                fmt::format(format, std::forward<Args>(args)...));
  }
  template <class... Args>
  [[noreturn]] void fail_here(fmt::format_string<Args...> format, Args&&... args) {
    token_ = place();
    fail(format, std::forward<Args>(args)...);
  }

 private:
  int64_t place() const { return line_ << kColumnBits | static_cast<int64_t>(at_ - line_start_ + 1); }

  void skip_blanks() {
    for (; !done(); ++at_) {
      char c = text_[at_];
      if (c == '#') {
        while (!done() && text_[at_] != '\n') ++at_;
        if (done()) return;
        c = '\n';
      }
      if (!is_blank(c)) return;
      if (c == '\n') ++line_, line_start_ = at_ + 1;
    }
  }

  void literal(std::string& to) {
    token_ = place();
    char quote = text_[at_++];
    while (true) {
      if (done() || text_[at_] == '\n') fail("string is not closed");
      char c = text_[at_++];
      if (c == quote) break;
      if (c == '\\')
        escape(to);
      else
        to += c;
    }
    skip_blanks();
  }

  void escape(std::string& to) {
    if (done()) fail("string is not closed");
    const int64_t string = std::exchange(token_, place() - 1);
    char c = text_[at_++];
    static constexpr std::string_view kLetters = "abfnrtv\\'\"?";
    static constexpr std::string_view kMeanings = "\a\b\f\n\r\t\v\\'\"?";
    if (size_t i = kLetters.find(c); i != std::string_view::npos) {
      to += kMeanings[i];
    } else if (c >= '0' && c <= '7') {
      int value = c - '0';
      for (int i = 0; i < 2 && peek() >= '0' && peek() <= '7' && !done(); ++i) value = value * 8 + (text_[at_++] - '0');
      if (value > 255) fail("octal escape is beyond one byte");
      to += static_cast<char>(value);
    } else if (c == 'x' || c == 'X') {
      int value = 0, digits = 0;
      for (; digits < 2 && hex_digit(peek()) >= 0; ++digits) value = value * 16 + hex_digit(text_[at_++]);
      if (digits == 0) fail("hex escape has no digit");
      to += static_cast<char>(value);
    } else {
      fail("unknown escape '\\{}'", printable({&c, 1}));
    }
    token_ = string;
  }

  std::string_view text_;
  const std::string& file_;
  size_t at_ = 0, line_start_ = 0;
  int64_t line_ = 1, token_ = 0;
};

int64_t integer_of(std::string_view word, const Tokens& tokens) {
  std::string_view digits = word;
  bool negative = digits.starts_with('-');
  if (negative) digits.remove_prefix(1);
  int base = 10;
  if (digits.starts_with("0x") || digits.starts_with("0X")) {
    base = 16;
    digits.remove_prefix(2);
  } else if (digits.size() > 1 && digits[0] == '0') {
    base = 8;
  }
  uint64_t magnitude = 0;
  auto [stop, error] = std::from_chars(digits.data(), digits.data() + digits.size(), magnitude, base);
  if (digits.empty() || error != std::errc() || stop != digits.data() + digits.size())
    tokens.fail("'{}' is no integer", printable(word));
  return static_cast<int64_t>(negative ? 0 - magnitude : magnitude);
}

double real_of(std::string_view word, const Tokens& tokens) {
  std::string_view digits = word;
  double sign = 1;
  if (digits.starts_with('-')) {
    sign = -1;
    digits.remove_prefix(1);
  }
  if (digits == "inf" || digits == "infinity") return sign * std::numeric_limits<double>::infinity();
  if (digits == "nan") return std::numeric_limits<double>::quiet_NaN();
  if (digits.ends_with('f') || digits.ends_with('F')) digits.remove_suffix(1);
  double value = 0;
  auto [stop, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  bool bad = digits.empty() || stop != digits.data() + digits.size() || error == std::errc::invalid_argument;
  if (bad) tokens.fail("'{}' is no number", printable(word));
  return sign * value;
}

const TextField* find_field(const TextMessage& message, std::string_view name) {
  for (const TextField& field : message.fields)
    if (field.name == name) return &field;
  return nullptr;
}

std::vector<std::string_view> names_of(const TextMessage& message) {
  std::vector<std::string_view> names;
  for (const TextField& field : message.fields) names.push_back(field.name);
  return names;
}

void read_fields(Tokens& tokens, const TextMessage& message, char close, protozero::pbf_writer& to, int depth);

int32_t word_value(std::string_view word, const TextField& field, const Tokens& tokens) {
  for (const TextEnum& candidate : field.words)
    if (candidate.name == word) return candidate.value;
  std::vector<std::string_view> names;
  for (const TextEnum& candidate : field.words) names.push_back(candidate.name);
  const bool number = word.find_first_not_of("-0123456789xX") == std::string_view::npos;
  const std::string meant = word.size() > 4 ? did_you_mean(word, names) : "";  // shorter ones are near to anything
  if (!number) tokens.fail("field {} has no value '{}'{}", field.name, printable(word), meant);
  return static_cast<int32_t>(integer_of(word, tokens));
}

void read_value(Tokens& tokens, const TextField& field, protozero::pbf_writer& to, int depth) {
  switch (field.kind) {
    case TextKind::integer: to.add_int64(field.number, integer_of(tokens.word(), tokens)); break;
    case TextKind::real32: to.add_float(field.number, static_cast<float>(real_of(tokens.word(), tokens))); break;
    case TextKind::real64: to.add_double(field.number, real_of(tokens.word(), tokens)); break;
    case TextKind::text: to.add_bytes(field.number, tokens.string()); break;
    case TextKind::enumeration: to.add_enum(field.number, word_value(tokens.word(), field, tokens)); break;
    case TextKind::ignored: tokens.skip_value(); break;
    case TextKind::boolean: {
      std::string_view word = tokens.word();
      bool yes = word == "true" || word == "True" || word == "t" || word == "1";
      bool no = word == "false" || word == "False" || word == "f" || word == "0";
      if (!yes && !no) tokens.fail("'{}' is neither true nor false", printable(word));
      to.add_bool(field.number, yes);
      break;
    }
    case TextKind::message: {
      char close = tokens.take('<') ? '>' : (tokens.expect('{'), '}');
      std::string body;  // pbf_writer's nested form leaves empty messages out, and they count
      protozero::pbf_writer inner(body);
      read_fields(tokens, *field.message, close, inner, depth + 1);
      to.add_message(field.number, body);
    }
  }
}

void read_fields(Tokens& tokens, const TextMessage& message, char close, protozero::pbf_writer& to, int depth) {
  if (depth > kMaxNesting) tokens.fail("messages are nested deeper than {}", kMaxNesting);
  while (close == '\0' ? !tokens.done() : !tokens.take(close)) {
    if (tokens.done()) tokens.fail_here("the text ends inside {}", message.name);
    std::string_view name = tokens.word();
    const TextField* field = find_field(message, name);
    if (field == nullptr && message.unknown == 0)
      tokens.fail("{} has no field '{}'{}", message.name, printable(name), did_you_mean(name, names_of(message)));
    if (message.place != 0) to.add_int64(message.place, tokens.token());
    if (field == nullptr) {
      static constexpr TextField kUnknown{"", 0, TextKind::ignored};
      to.add_bytes(message.unknown, std::string(name));
      field = &kUnknown;
    }
    bool colon = tokens.take(':');
    if (!colon && field->kind != TextKind::message && field->kind != TextKind::ignored) tokens.expect(':');
    if (field->kind != TextKind::ignored && tokens.take('[')) {
      while (!tokens.take(']')) {
        read_value(tokens, *field, to, depth);
        if (!tokens.take(',') && tokens.peek() != ']') tokens.fail_here("expected ',' or ']', found {}", tokens.here());
      }
    } else {
      read_value(tokens, *field, to, depth);
    }
    if (!tokens.take(',')) tokens.take(';');
  }
}

}  // namespace

int64_t text_line(int64_t place) { return place >> kColumnBits; }

std::string text_place(int64_t place) {
  return fmt::format("line {}, column {}", text_line(place), place & ((int64_t{1} << kColumnBits) - 1));
}

std::string text_to_wire(std::string_view text, const TextMessage& message, const std::string& file) {
  std::string bytes;
  protozero::pbf_writer writer(bytes);
  Tokens tokens(text, file);
  read_fields(tokens, message, '\0', writer, 0);
  return bytes;
}

bool looks_like_text(std::string_view bytes, const TextMessage& message) {
  size_t at = bytes.starts_with(kByteOrderMark) ? kByteOrderMark.size() : 0;
  while (at < bytes.size() && (is_blank(bytes[at]) || bytes[at] == '#')) {
    if (bytes[at] == '#')
      while (at < bytes.size() && bytes[at] != '\n') ++at;
    else
      ++at;
  }
  size_t start = at;
  while (at < bytes.size() && is_word(bytes[at])) ++at;
  if (find_field(message, bytes.substr(start, at - start)) == nullptr) return false;
  while (at < bytes.size() && is_blank(bytes[at])) ++at;
  return at < bytes.size() && (bytes[at] == ':' || bytes[at] == '{' || bytes[at] == '<');
}

}  // namespace cairn
