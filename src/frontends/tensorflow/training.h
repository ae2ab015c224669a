// What the rows of training share.
#pragma once

#include <optional>
#include <vector>

#include "frontends/fold.h"
#include "frontends/tensorflow/importer.h"

namespace cairn::tensorflow {

std::span<const Row> volume_gradient_rows();

/// A scalar of the element type of `like`.
Value* number_like(OpContext& c, const Value* like, double value);

/// The sizes in a vector as far as they are known while importing: those of a constant, or of the tensor whose shape it
/// is. Nothing where not even their number is known.
std::optional<std::vector<Dim>> dims_told(const Value* vector);

/// Writes formulas: operators make nodes, numbers become scalars of the element type of the other side.
class Formula {
 public:
  Formula(OpContext& c, Value* value) : c_(&c), value_(value) {}
  Value* value() const { return value_; }
  Formula of(const char* op) const { return {*c_, c_->b.add(op, {value_})}; }
  Formula with(const char* op, const Formula& other) const { return {*c_, c_->b.add(op, {value_, other.value_})}; }
  Formula with(const char* op, double other) const { return with(op, number(other)); }
  Formula number(double value) const { return {*c_, number_like(*c_, value_, value)}; }

  friend Formula operator+(const Formula& a, const Formula& b) { return a.with("add", b); }
  friend Formula operator-(const Formula& a, const Formula& b) { return a.with("sub", b); }
  friend Formula operator*(const Formula& a, const Formula& b) { return a.with("mul", b); }
  friend Formula operator/(const Formula& a, const Formula& b) { return a.with("div", b); }
  friend Formula operator+(const Formula& a, double b) { return a.with("add", b); }
  friend Formula operator*(const Formula& a, double b) { return a.with("mul", b); }
  friend Formula operator-(double a, const Formula& b) { return b.number(a) - b; }
  /// Numbers of constants are computed at once.
  Formula folded() const { return {*c_, cairn::folded(value_, c_->b)}; }
  Formula choose(const Formula& yes, const Formula& no) const {
    return {*c_, c_->b.add("select", {value_, yes.value_, no.value_})};
  }

 private:
  OpContext* c_;
  Value* value_;
};

}  // namespace cairn::tensorflow
