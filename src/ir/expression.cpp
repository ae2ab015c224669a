#include "ir/expression.h"

namespace cairn {

Var dims_of(Var a) {
  if (a.type().is_static()) return {*a.builder, a.builder->ints(a.shape().sizes())};
  return a.apply("shape_of");
}

namespace {

Var filled_like(Var a, double value) { return broadcast_to_like(a.number(value), a); }

bool surely_same(const Shape& a, const Shape& b) {
  if (!a.ranked || !b.ranked || a.rank() != b.rank()) return false;
  for (size_t i = 0; i < a.rank(); ++i)
    if (!a.dims[i].surely_equals(b.dims[i])) return false;
  return true;
}

}  // namespace

Var zeros_like(Var a) { return filled_like(a, 0); }
Var ones_like(Var a) { return filled_like(a, 1); }

Var sum_to_like(Var a, Var like) {
  return surely_same(a.shape(), like.shape()) ? a : a.apply("sum_to", {dims_of(like)});
}

Var broadcast_to_like(Var a, Var like) {
  return surely_same(a.shape(), like.shape()) ? a : a.apply("broadcast_to", {dims_of(like)});
}

Var reduce_sum(Var a, std::vector<int64_t> axes, bool keep_dims) {
  return a.apply("reduce_sum", {}, {{"axes", std::move(axes)}, {"keep_dims", keep_dims}});
}
Var reduce_mean(Var a, std::vector<int64_t> axes, bool keep_dims) {
  return a.apply("reduce_mean", {}, {{"axes", std::move(axes)}, {"keep_dims", keep_dims}});
}

}  // namespace cairn
