// How the core reports faults: a user's fault throws Error, which each public interface catches once; a bug of ours
// aborts in CHECK.
#pragma once

#include <fmt/format.h>

#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>

namespace cairn {

enum class ErrorKind {
  invalid_argument,  // an option or a call's argument
  invalid_model,     // the bytes or the graph of a model
  unsupported,       // a valid model that we cannot take
  not_found,
  io,
  out_of_memory,
  cancelled,
};

/// The text with control bytes and invalid UTF-8 escaped, as in "a\x0a".
std::string clean(std::string_view text);
/// clean(text), cut at 120 bytes for use in a message.
std::string printable(std::string_view text);

/// A fault that the user can correct. `where` names the node and script line or the file and may be empty; `message` is
/// lower case without a period and says what was expected and what was found. Both are escaped to one line, since a
/// file may supply parts of them. what() is "where: message".
class Error : public std::runtime_error {
 public:
  struct AsItIs {};  // selects the constructor that does not escape: for messages of several lines

  Error(ErrorKind kind, const std::string& where, const std::string& message)
      : Error(kind, where, clean(message), AsItIs{}) {}
  Error(ErrorKind kind, const std::string& where, const std::string& message, AsItIs)
      : std::runtime_error(where.empty() ? message : clean(where) + ": " + message), kind_(kind), where_(clean(where)),
        message_(message) {}

  ErrorKind kind() const { return kind_; }
  const std::string& where() const { return where_; }
  const std::string& message() const { return message_; }

 private:
  ErrorKind kind_;
  std::string where_;
  std::string message_;
};

/// throw Error with a formatted message: fail(ErrorKind::io, path, "cannot be read: {}", why).
template <class... Args>
[[noreturn]] void fail(ErrorKind kind, std::string where, fmt::format_string<Args...> format, Args&&... args) {
  throw Error(kind, std::move(where), fmt::format(format, std::forward<Args>(args)...));
}

/// Prints the failed condition and aborts. No file or argument may lead here.
[[noreturn]] void check_failed(const char* file, int line, const char* condition, const std::string& facts);

}  // namespace cairn

/// CHECK(rows == columns, "rows {} columns {}", rows, columns): a bug of ours when the condition is false.
#define CHECK(condition, ...)                                                                                     \
  do {                                                                                                            \
    if (!(condition)) [[unlikely]]                                                                                \
      ::cairn::check_failed(__FILE__, __LINE__, #condition, std::string(__VA_OPT__(::fmt::format(__VA_ARGS__)))); \
  } while (false)
