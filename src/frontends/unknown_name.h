// The error for a name that a caller gave and the model does not have; a type of its own, so that each interface can
// name the option that it came from.
#pragma once

#include "support/error.h"

namespace cairn {

class UnknownName final : public Error {
 public:
  enum class Of : uint8_t { input, output };
  UnknownName(ErrorKind kind, Of of, std::string name, const std::string& file, const std::string& message)
      : Error(kind, file, message), of_(of), name_(std::move(name)) {}
  Of of() const { return of_; }
  const std::string& name() const { return name_; }

 private:
  Of of_;
  std::string name_;
};

}  // namespace cairn
