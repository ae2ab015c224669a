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

// `a` in the shape of `like` by `op`, which takes the dims as its second operand; they may be known only at run time.
Var shaped_like(std::string_view op, Var a, Var like) {
  if (surely_same(a.shape(), like.shape())) return a;
  const Type type = Type::tensor(a.dtype(), like.shape());
  return {*a.builder, a.builder->add_node(op_named(op), {a.value, dims_of(like).value}, {}, {}, {type})->result()};
}

// The axes that broadcasting `like` to `a` repeats, when the types suffice to tell.
std::optional<std::vector<int64_t>> repeated_axes(const Shape& a, const Shape& like) {
  if (!a.ranked || !like.ranked || like.rank() > a.rank()) return std::nullopt;
  std::vector<int64_t> axes;
  const size_t lead = a.rank() - like.rank();
  for (size_t i = 0; i < a.rank(); ++i) {
    const bool one = i >= lead && like.dims[i - lead].size == 1;
    if (i < lead || (one && a.dims[i].size != 1))
      axes.push_back(static_cast<int64_t>(i));
    else if (!like.dims[i - lead].known() && !a.dims[i].surely_equals(like.dims[i - lead]))
      return std::nullopt;
  }
  return axes;
}

}  // namespace

Var sum_to_like(Var a, Var like) {
  if (surely_same(a.shape(), like.shape())) return a;
  if (const auto axes = repeated_axes(a.shape(), like.shape()))
    return reshape_like(axes->empty() ? a : reduce_sum(a, *axes), like);
  return shaped_like("sum_to", a, like);
}
Var broadcast_to_like(Var a, Var like) { return shaped_like("broadcast_to", a, like); }
Var reshape_like(Var a, Var like) { return shaped_like("reshape", a, like); }

Var reduce_sum(Var a, std::vector<int64_t> axes, bool keep_dims) {
  return a.apply("reduce_sum", {}, {{"axes", std::move(axes)}, {"keep_dims", keep_dims}});
}
Var reduce_mean(Var a, std::vector<int64_t> axes, bool keep_dims) {
  return a.apply("reduce_mean", {}, {{"axes", std::move(axes)}, {"keep_dims", keep_dims}});
}

}  // namespace cairn
