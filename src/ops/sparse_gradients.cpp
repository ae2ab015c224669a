// Gradient rules of sparse tensors: applying the op to the elements' numbers tells where each element went.
#include "ops/gradients.h"

namespace cairn {

namespace {

Sizes shape_of_sparse(const GradientContext& g, size_t indices, size_t shape) {
  const Dim rank = g.x(indices).shape().ranked ? g.x(indices).shape().dims[1] : Dim();
  if (!rank.known()) refuse_gradient(g, "the gradient needs the length of the index vectors, which is not known");
  Sizes sizes;
  for (int64_t d = 0; d < rank.size; ++d) sizes.push_back(Size::element(g.x(shape), static_cast<size_t>(d)));
  return sizes;
}

// For each element the number of its position after the dims of these axes were reduced to 1.
RowNumbers places_without(const GradientContext& g, Sizes sizes, const std::vector<int64_t>& axes) {
  std::vector<int64_t> kept(sizes.size(), 1);
  for (int64_t axis : axes) {
    kept[axis_from_start(axis, sizes.size())] = 0;
    sizes[axis_from_start(axis, sizes.size())] = Size(g.b, 1);
  }
  return row_numbers(g, g.x(0) * Var{g.b, g.b.ints(kept)}, sizes, 0, false);
}

// Applies the op with the elements' numbers instead of the values of input `values`.
std::vector<Var> applied_to_numbers(const GradientContext& g, size_t values) {
  std::vector<Var> inputs;
  for (size_t i = 0; i < g.input_count(); ++i) inputs.push_back(i == values ? numbered(g.x(i)) : g.x(i));
  return apply_again(g, inputs);
}

}  // namespace

void sparse_reorder_rule(GradientContext& g) {
  if (g.has_dy(1)) g.set(1, sum_elements(g.dy(1), applied_to_numbers(g, 1)[1], g.x(1)));
}
void sparse_slice_rule(GradientContext& g) { sparse_reorder_rule(g); }

void sparse_fill_empty_rows_rule(GradientContext& g) {
  if (!g.has_dy(1)) return;
  const Var of_values = gather_rows(g.dy(1), g.y(3));
  g.set(1, of_values);
  g.set(3, reshape_like(reduce_sum(g.dy(1), {0}) - reduce_sum(of_values, {0}), g.x(3)));
}

// Each element of a and b looks up the position of its sum in the result; sums below the threshold are not there.
void sparse_add_rule(GradientContext& g) {
  if (!g.has_dy(1)) return;
  const Sizes sizes = shape_of_sparse(g, 0, 2);
  const RowNumbers sums = row_numbers(g, g.y(0), sizes, 0, false);
  for (size_t first : {size_t{0}, size_t{3}}) {
    if (!g.wanted(first + 1)) continue;
    const Var wanted = row_numbers(g, g.x(first), sizes, 0, false).numbers, nowhere = wanted.number(-1);
    const Var at = sums.numbers.apply("find_key", {counting(sums.count), wanted, nowhere});
    g.set(first + 1, gather_rows_or_zeros(g.dy(1), at));
  }
}

void sparse_reduce_rule(GradientContext& g) {
  const RowNumbers at = places_without(g, shape_of_sparse(g, 0, 2), g.attr.integers("axes"));
  const Var dy = gather_rows(flattened(g.dy()), at.numbers);
  if (g.attr.text("mode") == "sum") return g.set(1, dy);
  // The gradient is divided equally among all elements that have the largest value.
  const Var here = cast(g.x(1).apply("equal", {gather_rows(flattened(g.y()), at.numbers)}), dy.dtype());
  g.set(1, dy * here / gather_rows(sum_rows(here, at.numbers, at.rows), at.numbers));
}

void sparse_softmax_rule(GradientContext& g) {
  const RowNumbers at = places_without(g, shape_of_sparse(g, 0, 2), {-1});
  const Var level = gather_rows(sum_rows(g.dy() * g.y(), at.numbers, at.rows), at.numbers);
  g.set(1, g.y() * (g.dy() - level));
}

}  // namespace cairn
