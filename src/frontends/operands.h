// The operands of a foreign node or layer, checked on access, so that rows need no checks.
#pragma once

#include <initializer_list>
#include <utility>
#include <vector>

#include "ir/module.h"

namespace cairn {

/// An operand that the model leaves out is null. Access to a missing or left-out operand throws Error invalid_model; so
/// does converting to a list when one is left out.
class Operands {
 public:
  Operands() = default;
  Operands(std::vector<Value*> values) : values_(std::move(values)) {}  // NOLINT: implicit on purpose
  Operands(std::initializer_list<Value*> values) : values_(values) {}   // NOLINT

  size_t size() const { return values_.size(); }
  bool empty() const { return values_.empty(); }
  bool given(size_t i) const { return i < values_.size() && values_[i] != nullptr; }
  Value* operator[](size_t i) const {
    if (!given(i)) refuse(i);
    return values_[i];
  }
  /// With null for those that are left out.
  const std::vector<Value*>& any() const { return values_; }
  Value* back() const { return (*this)[values_.empty() ? 0 : values_.size() - 1]; }
  const std::vector<Value*>& all() const {
    for (size_t i = 0; i < values_.size(); ++i) (*this)[i];
    return values_;
  }
  operator const std::vector<Value*>&() const { return all(); }  // NOLINT: implicit on purpose
  auto begin() const { return all().begin(); }
  auto end() const { return values_.end(); }

 private:
  [[noreturn]] void refuse(size_t i) const {
    if (i < values_.size()) fail(ErrorKind::invalid_model, "", "input {} is left out", i);
    fail(ErrorKind::invalid_model, "", "has {} inputs, and input {} is needed", values_.size(), i);
  }

  std::vector<Value*> values_;
};

}  // namespace cairn
