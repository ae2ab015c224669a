// Formulas as they are written on paper: values that add, multiply and compare. For gradients, losses and updates.
#pragma once

#include "ir/builder.h"

namespace cairn {

/// A value and the builder to which its operators append nodes. A number used with it takes its element type.
struct Var {
  Builder* builder;
  Value* value;

  Var(Builder& b, Value* v) : builder(&b), value(v) {}
  const Type& type() const { return value->type; }
  DType dtype() const { return value->type.dtype; }
  const Shape& shape() const { return value->type.shape; }
  Var number(double x) const { return {*builder, builder->scalar_like(value, x)}; }
  /// A node with this as its first input.
  Var apply(std::string_view op, std::initializer_list<Var> more = {}, Attributes attributes = {}) const {
    std::vector<Value*> inputs = {value};
    for (const Var& other : more) inputs.push_back(other.value);
    return {*builder, builder->add(op, std::move(inputs), std::move(attributes))};
  }
};

inline Var operator+(Var a, Var b) { return a.apply("add", {b}); }
inline Var operator-(Var a, Var b) { return a.apply("sub", {b}); }
inline Var operator*(Var a, Var b) { return a.apply("mul", {b}); }
inline Var operator/(Var a, Var b) { return a.apply("div", {b}); }
inline Var operator-(Var a) { return a.apply("neg"); }
inline Var operator+(Var a, double b) { return a + a.number(b); }
inline Var operator-(Var a, double b) { return a - a.number(b); }
inline Var operator*(Var a, double b) { return a * a.number(b); }
inline Var operator/(Var a, double b) { return a / a.number(b); }
inline Var operator+(double a, Var b) { return b.number(a) + b; }
inline Var operator-(double a, Var b) { return b.number(a) - b; }
inline Var operator*(double a, Var b) { return b.number(a) * b; }
inline Var operator/(double a, Var b) { return b.number(a) / b; }
inline Var operator<(Var a, Var b) { return a.apply("less", {b}); }
inline Var operator>(Var a, Var b) { return a.apply("greater", {b}); }
inline Var operator<(Var a, double b) { return a < a.number(b); }
inline Var operator>(Var a, double b) { return a > a.number(b); }
inline Var select(Var condition, Var a, Var b) { return condition.apply("select", {a, b}); }
inline Var maximum(Var a, Var b) { return a.apply("maximum", {b}); }
inline Var minimum(Var a, Var b) { return a.apply("minimum", {b}); }
inline Var exp(Var a) { return a.apply("exp"); }
inline Var log(Var a) { return a.apply("log"); }
inline Var sqrt(Var a) { return a.apply("sqrt"); }
inline Var rsqrt(Var a) { return a.apply("rsqrt"); }
inline Var square(Var a) { return a * a; }
inline Var abs(Var a) { return a.apply("abs"); }
inline Var sign(Var a) { return a.apply("sign"); }
inline Var cast(Var a, DType dtype) { return a.dtype() == dtype ? a : a.apply("cast", {}, {{"dtype", dtype}}); }
/// The dims as i64[rank]; a constant when they are known.
Var dims_of(Var a);
Var zeros_like(Var a);
Var ones_like(Var a);
/// Sums `a` over the axes along which `like` was broadcast to it; the result has the shape of `like`.
Var sum_to_like(Var a, Var like);
/// Broadcasts `a` to the shape of `like`, by NumPy's rules.
Var broadcast_to_like(Var a, Var like);
/// Reshapes `a` to the shape of `like`.
Var reshape_like(Var a, Var like);
/// The sum over these axes.
Var reduce_sum(Var a, std::vector<int64_t> axes, bool keep_dims = false);
Var reduce_mean(Var a, std::vector<int64_t> axes, bool keep_dims = false);

}  // namespace cairn
