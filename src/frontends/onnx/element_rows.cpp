// ONNX operators that gather and scatter elements along an axis.
#include <numeric>

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
  std::vector<int64_t> gone(rank - kept);
  std::iota(gone.begin(), gone.end(), static_cast<int64_t>(kept));
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
  std::vector<int64_t> least_end(rank, 0), order(rank);
  least_end[axis] = kToTheEnd;
  bool smaller = false;  // the indices may be, along the other axes
  std::iota(order.begin(), order.end(), int64_t{0});
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
  std::swap(order[axis], order[rank - 1]);
  const auto swapped = [&](Value* value) { return transposed(value, order, c.b); };
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

constexpr Row kElementRows[] = {
    {"GatherElements", gather_elements},
    {"Scatter", scatter_elements},
    {"ScatterElements", scatter_elements},
};

}  // namespace

std::span<const Row> element_rows() { return kElementRows; }

}  // namespace cairn::onnx
