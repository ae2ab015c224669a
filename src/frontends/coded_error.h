// An error with a code of its own in reports, where one kind of error has several causes that interfaces tell apart.
#pragma once

#include "support/error.h"

namespace cairn {

class CodedError final : public Error {
 public:
  CodedError(const char* code, ErrorKind kind, const std::string& where, const std::string& message)
      : Error(kind, where, message), code_(code) {}
  /// Stable, as that of a Problem: "missing-weights".
  const char* code() const { return code_; }

 private:
  const char* code_;
};

}  // namespace cairn
