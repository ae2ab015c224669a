// ONNX operators that choose, gather and scatter elements.

#include "frontends/fold.h"
#include "frontends/onnx/importer.h"
#include "frontends/reshape.h"

namespace cairn::onnx {
namespace {

/// How many axes lead those along which an Expand repeated the indices (all axes when it did not), as torch exports
/// gathers and scatters of rows; they then become what was repeated, without these axes. The other operands have `dims`, and
/// only axes behind `axis` along which `whole` has as many count.
size_t unrepeat(OpContext& c, Value*& indices, size_t axis, const Shape& dims, const Shape& whole) {
  const cairn::Node* expand = indices->producer;
  const size_t rank = dims.rank();
  if (!expand || !(expand->is("broadcast_to") || (expand->is("select") && expand->inputs[1] == expand->inputs[2])))
    return rank;
  Value* source = expand->inputs[expand->is("select") ? 1 : 0];
  if (source->type.shape.rank() != rank) return rank;
  const auto& own = source->type.shape.dims;
  size_t kept = rank;
  while (kept > axis + 1 && own[kept - 1] == Dim(1) && dims.dims[kept - 1].surely_equals(whole.dims[kept - 1])) --kept;
  for (size_t i = 0; i < kept; ++i)
    if (!own[i].surely_equals(dims.dims[i])) return rank;
  const std::vector<int64_t> gone = axes_from(static_cast<int64_t>(kept), rank);
  if (!gone.empty()) indices = squeeze(source, gone, c.b);
  return kept;
}

/// The number of axes, and the axis, which the attribute names.
std::pair<size_t, size_t> rank_and_axis(OpContext& c) {
  const size_t rank = c.rank(0);
  if (c.rank(1) != rank || rank == 0) fail(ErrorKind::invalid_model, "", "indices and data differ in rank");
  return {rank, static_cast<size_t>(normal_axis(c.integer("axis", 0), rank))};
}

/// out[i, j, k] = x[i, index[i, j, k], k] for the axis 1: the axis goes to the end, where rows are gathered.
void gather_elements(OpContext& c) {
  c.expect_inputs(2, 2);
  const auto [rank, axis] = rank_and_axis(c);
  Value *x = c.in[0], *indices = c.in[1];
  std::vector<int64_t> least_end(rank, 0);
  least_end[axis] = kToTheEnd;
  bool smaller = false;  // the indices may be, along the other axes
  for (size_t i = 0; i < rank; ++i)
    smaller |= i != axis && !x->type.shape.dims[i].surely_equals(indices->type.shape.dims[i]);
  if (smaller) {
    Value* end = c.b.add("maximum", {c.b.add("shape_of", {indices}), c.b.ints(least_end)});
    x = c.b.add("slice", {x, c.b.ints(std::vector<int64_t>(rank, 0)), end});
  }
  const auto gathered = [&](size_t at) {
    const auto place = static_cast<int64_t>(at);
    return c.b.add("gather", {x, indices}, {{"axis", place}, {"batch_dims", place}});
  };
  if (!smaller && unrepeat(c, indices, axis, c.in[1]->type.shape, x->type.shape) == axis + 1) {
    c.out = {gathered(axis)};
    return;
  }
  indices = c.in[1];
  if (axis + 1 == rank) {
    c.out = {gathered(axis)};
    return;
  }
  const auto swapped = [&](Value* value) { return transposed(value, swapped_axes(rank, axis, rank - 1), c.b); };
  x = swapped(x), indices = swapped(indices);
  c.out = {swapped(gathered(rank - 1))};
}

void scatter_elements(OpContext& c) {
  c.expect_inputs(3, 3);
  const auto [rank, axis] = rank_and_axis(c);
  if (c.rank(2) != rank) fail(ErrorKind::invalid_model, "", "updates and data differ in rank");
  Value* indices = c.in[1];
  unrepeat(c, indices, axis, c.in[2]->type.shape, c.in[0]->type.shape);
  std::string mode = c.text("reduction", "none");
  if (mode == "none") mode = "update";
  if (mode != "update" && mode != "add" && mode != "mul" && mode != "min" && mode != "max")
    c.refuse("reduction '{}' is not supported", printable(mode));
  c.out = {
      c.b.add("scatter_elements", {c.in[0], indices, c.in[2]}, {{"axis", static_cast<int64_t>(axis)}, {"mode", mode}})};
}

void top_k(OpContext& c) {
  c.expect_inputs(1, 2);
  auto rank = static_cast<int64_t>(c.rank(0));
  int64_t axis = normal_axis(c.integer("axis", -1), c.rank(0));
  bool largest = c.integer("largest", 1) != 0;
  Value* k = c.given(1) ? c.in[1] : c.b.constant(Tensor::scalar_i64(c.integer("k")));
  if (k->type.shape.rank() == 1) k = folded(c.b.add("reshape", {k, c.b.ints({})}), c.b);
  std::vector<int64_t> swap(static_cast<size_t>(rank));
  for (int64_t i = 0; i < rank; ++i) swap[static_cast<size_t>(i)] = i;
  std::swap(swap[static_cast<size_t>(axis)], swap.back());
  auto moved = [&](Value* x) { return axis == rank - 1 ? x : transposed(x, swap, c.b); };
  Value* x = moved(c.in[0]);
  // Its own inverse, and turns the order round; the least integer has no negative.
  const char* turn = x->type.dtype.is_float() ? "neg" : "bit_not";
  auto* made =
      c.b.add_node(op_named("top_k"), {largest ? x : c.b.add(turn, {x}), k}, {{"sorted", c.integer("sorted", 1) != 0}});
  Value* values = largest ? made->result(0) : c.b.add(turn, {made->result(0)});
  c.out = {moved(values), cast_to(moved(made->result(1)), kI64, c.b)};
}

void gather(OpContext& c) {
  c.expect_inputs(2, 2);
  c.out = {folded(c.b.add("gather", c.in, {{"axis", c.integer("axis", 0)}}), c.b)};
}

void gather_nd(OpContext& c) {
  c.expect_inputs(2, 2);
  c.out = {c.b.add("gather_nd", c.in, {{"batch_dims", c.integer("batch_dims", 0)}})};
}

/// `values` are (off, on); negative indices count from depth; an index out of range gives a row of off.
void one_hot(OpContext& c) {
  c.expect_inputs(3, 3);
  Value* depth = folded(c.b.add("reshape", {cast_to(c.in[1], kI64, c.b), c.b.ints({})}), c.b);
  Value* indices = cast_to(c.in[0], kI64, c.b);
  Value* negative = c.b.add("less", {indices, c.b.constant(Tensor::scalar_i64(0))});
  indices = c.b.add("select", {negative, c.b.add("add", {indices, depth}), indices});
  auto value = [&](int64_t i) {
    return folded(c.b.add("reshape", {part_of(c.in[2], i, i + 1, c.b), c.b.ints({})}), c.b);
  };
  c.out = {c.b.add("one_hot", {indices, depth, value(1), value(0)}, {{"axis", c.integer("axis", -1)}})};
}

void scatter_nd(OpContext& c) {
  c.expect_inputs(3, 3);
  const std::string mode = c.text("reduction", "none");
  if (mode == "none") {
    c.out = {c.b.add("scatter_update", c.in)};
    return;
  }
  if (mode != "add" && mode != "mul" && mode != "min" && mode != "max")
    c.refuse("reduction '{}' is not supported", printable(mode));
  // Index vectors as numbers of rows of what they do not tell.
  const size_t rank = c.rank(0);
  if (c.rank(1) == 0 || !c.in[1]->type.shape.dims.back().known())
    c.refuse("reductions need index vectors of a length that is known");
  const auto told = static_cast<size_t>(c.in[1]->type.shape.dims.back().size);
  if (told < 1 || told > rank) c.refuse("index vectors of {} numbers", told);
  std::vector<Value*> sizes, steps(told), rows{c.b.ints({1})};
  for (size_t i = 0; i < rank; ++i) sizes.push_back(dim_of(c.in[0], i, c.b));
  Value* whole = joined(sizes, c.b);
  for (size_t i = told; i-- > 0; rows[0] = folded(c.b.add("mul", {rows[0], sizes[i]}), c.b)) steps[i] = rows[0];
  rows.insert(rows.end(), sizes.begin() + static_cast<int64_t>(told), sizes.end());
  sizes.resize(told);
  Value* indices = cast_to(c.in[1], kI64, c.b);
  indices = c.b.add("select", {c.b.add("less", {indices, c.b.scalar_like(indices, 0)}),
                               c.b.add("add", {indices, joined(sizes, c.b)}), indices});
  indices = c.b.add("reduce_sum", {c.b.add("mul", {indices, joined(steps, c.b)})},
                    {{"axes", std::vector<int64_t>{static_cast<int64_t>(c.rank(1)) - 1}}, {"keep_dims", false}});
  Value* x = reshape_by(c.in[0], joined(rows, c.b), c.b);
  c.out = {reshape_by(c.b.add("scatter_reduce", {x, indices, c.in[2]}, {{"mode", mode}}), whole, c.b)};
}

/// The result has a column for each element found, the op's a row.
void non_zero(OpContext& c) {
  c.expect_inputs(1, 1);
  c.out = {transposed(c.b.add("non_zero", c.in), {1, 0}, c.b)};
}

constexpr Row kElementRows[] = {
    {"Gather", gather},
    {"GatherElements", gather_elements},
    {"GatherND", gather_nd},
    {"NonZero", non_zero},
    {"OneHot", one_hot},
    {"Scatter", scatter_elements},
    {"ScatterElements", scatter_elements},
    {"ScatterND", scatter_nd},
    {"TopK", top_k},
};

}  // namespace

std::span<const Row> element_rows() { return kElementRows; }

}  // namespace cairn::onnx
