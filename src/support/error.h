// How a fault leaves the core: a user's fault throws Error, caught once at each door; our own fault stops in CHECK.
#pragma once

#include <fmt/format.h>

#include <stdexcept>
#include <string>
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

/// A fault that the user can mend. `where` names the node and script line or the file, may be empty; `message` is lower
/// case without a period and says expected and found. what() is "where: message".
class Error : public std::runtime_error {
 public:
  Error(ErrorKind kind, std::string where, std::string message)
      : std::runtime_error(where.empty() ? message : where + ": " + message), kind_(kind), where_(std::move(where)),
        message_(std::move(message)) {}

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
