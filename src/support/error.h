// How a fault leaves the core: a user's fault throws Error, caught once at each door; our own fault stops in CHECK.
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

/// Text from a file with control bytes, and bytes that are no UTF-8, escaped, as in "a\x0a".
std::string clean(std::string_view text);
/// The same, fit for a message: cut at 120 bytes.
std::string printable(std::string_view text);

/// A fault that the user can mend. `where` names the node and script line or the file, may be empty; `message` is lower
/// case without a period and says expected and found; whatever a file put into either is one clean line.
/// what() is "where: message".
class Error : public std::runtime_error {
 public:
  struct AsItIs {};  // a message of several lines

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

/// Prints the broken promise and aborts; never reachable from a file or an argument.
[[noreturn]] void check_failed(const char* file, int line, const char* condition, const std::string& facts);

}  // namespace cairn

/// CHECK(rows == columns, "rows {} columns {}", rows, columns): our own fault when it does not hold.
#define CHECK(condition, ...)                                                                                     \
  do {                                                                                                            \
    if (!(condition)) [[unlikely]]                                                                                \
      ::cairn::check_failed(__FILE__, __LINE__, #condition, std::string(__VA_OPT__(::fmt::format(__VA_ARGS__)))); \
  } while (false)
