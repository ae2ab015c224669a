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

namespace {

// The result has the shape of `like`, also where its sizes are operands of the run.
Var shaped_like(std::string_view op, Var a, Var like) {
  if (surely_same(a.shape(), like.shape())) return a;
  const Type type = Type::tensor(a.dtype(), like.shape());
  return {*a.builder, a.builder->add_node(op_named(op), {a.value, dims_of(like).value}, {}, {}, {type})->result()};
}

}  // namespace

Var sum_to_like(Var a, Var like) { return shaped_like("sum_to", a, like); }
Var broadcast_to_like(Var a, Var like) { return shaped_like("broadcast_to", a, like); }
Var reshape_like(Var a, Var like) { return shaped_like("reshape", a, like); }

Var reduce_sum(Var a, std::vector<int64_t> axes, bool keep_dims) {
  return a.apply("reduce_sum", {}, {{"axes", std::move(axes)}, {"keep_dims", keep_dims}});
}
Var reduce_mean(Var a, std::vector<int64_t> axes, bool keep_dims) {
  return a.apply("reduce_mean", {}, {{"axes", std::move(axes)}, {"keep_dims", keep_dims}});
}

}  // namespace cairn
