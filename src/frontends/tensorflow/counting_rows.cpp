// TensorFlow's ops that count elements, search among them, and partition them.
#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>

#include "frontends/fold.h"
#include "frontends/reshape.h"
#include "frontends/tensorflow/training.h"

namespace cairn::tensorflow {
namespace {

constexpr int64_t kLongestProduct = 65536;

Value* whole(OpContext& c, int64_t number) { return c.b.constant(Tensor::scalar_i64(number)); }
Value* scalar_of(OpContext& c, Value* vector) { return folded(c.b.add("reshape", {vector, c.b.ints({})}), c.b); }
Value* flat(OpContext& c, Value* x) { return folded(c.b.add("reshape", {x, c.b.ints({-1})}), c.b); }
Value* in_shape_of(OpContext& c, Value* one, Value* x) {
  return c.b.add("broadcast_to", {one, folded(c.b.add("shape_of", {x}), c.b)});
}

/// How often each number from 0 on is in a vector, or the sum of its weights; others do not count. `size` is a scalar.
Value* counted(OpContext& c, Value* numbers, Value* size, Value* weights) {
  return c.b.add("segment_reduce", {weights, numbers, size}, {{"mode", std::string("sum")}});
}

/// numbers, size, weights (none: 1 each), as a vector; of a matrix DenseBincount counts in every row.
void bincount(OpContext& c) {
  c.expect_inputs(3);
  const bool rows = c.rank(0) == 2 && c.node().op == "DenseBincount";
  if (!rows && c.rank(0) > 1 && c.node().op == "DenseBincount") c.refuse("{} dims are not supported", c.rank(0));
  Value *numbers = cast_to(c.in[0], kI64, c.b), *size = scalar_of(c, cast_to(c.in[1], kI64, c.b));
  const bool counts = c.in[2]->type.shape.known() && element_count(c.in[2]->type.shape.sizes()) == 0;
  Value* weights = counts ? in_shape_of(c, c.b.scalar_like(c.in[2], 1), numbers) : c.in[2];
  Value *places = numbers, *total = size, *count = nullptr;
  if (rows) {
    count = scalar_dim(numbers, 0, c.b);
    Value* row = expand_dims(counted(count, c.b), {1}, c.b);
    places = c.b.add("add", {numbers, c.b.add("mul", {row, size})});
    total = folded(c.b.add("mul", {count, size}), c.b);
  }
  places = c.b.add("select", {c.b.add("less", {numbers, size}), places, whole(c, -1)});
  Value* y = counted(c, flat(c, places), total, flat(c, weights));
  if (c.boolean("binary_output", false)) y = c.b.add("minimum", {y, c.b.scalar_like(y, 1)});
  if (rows) y = reshape_by(y, joined({count, size}, c.b), c.b);
  c.out = {y};
}

void unique_with_counts(OpContext& c) {
  c.expect_inputs(1);
  const DType dtype = c.dtype("out_idx", kDtInt32);
  auto* made = c.b.add_node(op_named("unique"), {c.in[0]});
  Value *index = made->result(1), *size = scalar_dim(made->result(0), 0, c.b);
  Value* counts = counted(c, index, size, in_shape_of(c, whole(c, 1), index));
  c.out = {made->result(0), cast_to(index, dtype, c.b), cast_to(counts, dtype, c.b)};
}

/// Whether fewer than k classes are above the target; never where a number is not finite or the target is no class.
void in_top_k(OpContext& c) {
  const bool attribute = c.node().op == "InTopK";
  c.expect_inputs(attribute ? 2 : 3);
  if (c.rank(0) != 2 || c.rank(1) != 1)
    fail(ErrorKind::invalid_model, "", "predictions and targets have {} and {} dims", c.rank(0), c.rank(1));
  Value* k = attribute ? whole(c, c.integer("k")) : cast_to(c.in[2], kI64, c.b);
  Value *scores = c.in[0], *target = cast_to(c.in[1], kI64, c.b), *classes = scalar_dim(scores, 1, c.b);
  Value* valid = c.b.add("and", {c.b.add("greater_equal", {target, whole(c, 0)}), c.b.add("less", {target, classes})});
  Value* place = expand_dims(c.b.add("select", {valid, target, whole(c, 0)}), {1}, c.b);
  Value* own = c.b.add("gather", {scores, place}, {{"axis", int64_t{1}}, {"batch_dims", int64_t{1}}});
  const Attributes last{{"axes", std::vector<int64_t>{1}}};
  Value* above = c.b.add("reduce_sum", {cast_to(c.b.add("greater", {scores, own}), kI64, c.b)}, last);
  Value* finite = c.b.add("reduce_all", {c.b.add("is_finite", {scores})}, last);
  c.out = {c.b.add("and", {c.b.add("and", {valid, finite}), c.b.add("less", {above, k})})};
}

/// How many elements of a sorted row are below (LowerBound), or not above (UpperBound), each value of that row.
void bound(OpContext& c) {
  c.expect_inputs(2);
  if (c.rank(0) != 2 || c.rank(1) != 2) fail(ErrorKind::invalid_model, "", "takes rows of two dims");
  Value *sorted = expand_dims(c.in[0], {1}, c.b), *values = expand_dims(c.in[1], {2}, c.b);
  Value* before = cast_to(c.b.add(c.target, {sorted, values}), c.dtype("out_type", kDtInt32), c.b);
  c.out = {c.b.add("reduce_sum", {before}, {{"axes", std::vector<int64_t>{2}}})};
}

void bucketize(OpContext& c) {
  c.expect_inputs(1);
  const AttrValue list = attr_of(c.node(), "boundaries", AttrValue::Kind::list, *c.importer().model());
  const std::vector<float> bounds(list.reals.begin(), list.reals.end());
  if (!std::is_sorted(bounds.begin(), bounds.end()))
    fail(ErrorKind::invalid_model, "", "the boundaries are not sorted");
  Value* edges = c.b.constant(Tensor::of<float>(kF32, {static_cast<int64_t>(bounds.size())}, bounds));
  Value* x = expand_dims(cast_to(c.in[0], kF32, c.b), {static_cast<int64_t>(c.rank(0))}, c.b);
  Value* passed = cast_to(c.b.add("less_equal", {edges, x}), kI32, c.b);
  c.out = {c.b.add("reduce_sum", {passed}, {{"axes", std::vector<int64_t>{-1}}})};
}

/// The rows of x of each part, in their order.
void dynamic_partition(OpContext& c) {
  c.expect_inputs(2);
  const int64_t count = c.integer("num_partitions");
  if (count < 1 || count > 65536) fail(ErrorKind::invalid_model, "", "has {} partitions", count);
  const size_t rank = c.rank(1);
  if (rank > c.rank(0)) fail(ErrorKind::invalid_model, "", "the partitions have more dims than the data");
  for (int64_t i = 0; i < count; ++i) {
    Value* mine = c.b.add("equal", {c.in[1], c.b.scalar_like(c.in[1], static_cast<double>(i))});
    c.out.push_back(c.b.add("gather_nd", {c.in[0], c.b.add("non_zero", {mine})}));
  }
}

void scatter_extreme(OpContext& c) {
  c.expect_inputs(3);
  const size_t rank = c.rank(1);
  if (rank == 0 || c.in[1]->type.shape.dims.back() != Dim(1))
    c.refuse("only index vectors of one number are supported");
  Value* rows = squeeze(c.in[1], {static_cast<int64_t>(rank) - 1}, c.b);
  c.out = {c.b.add("scatter_reduce", {c.in[0], rows, c.in[2]}, {{"mode", std::string(c.target)}})};
}

/// Elements by places along the last axis.
Value* placed(OpContext& c, Value* x, std::vector<int64_t> places) {
  return c.b.add("gather", {x, c.b.ints(places)}, {{"axis", int64_t{-1}}});
}

void cross(OpContext& c) {
  c.expect_inputs(2);
  for (size_t i : {0, 1})
    if (c.rank(i) < 1 || c.in[i]->type.shape.dims.back() != Dim(3)) c.refuse("the last dim must be 3");
  Value* first = c.b.add("mul", {placed(c, c.in[0], {1, 2, 0}), placed(c, c.in[1], {2, 0, 1})});
  Value* second = c.b.add("mul", {placed(c, c.in[0], {2, 0, 1}), placed(c, c.in[1], {1, 2, 0})});
  c.out = {c.b.add("sub", {first, second})};
}

/// The element `step` before each, `fill` before the first.
Value* before(OpContext& c, Value* x, size_t axis, int64_t step, double fill) {
  const size_t rank = x->type.shape.rank();
  std::vector<int64_t> pads(2 * rank, 0), begins(rank, 0), ends(rank, kToTheEnd);
  pads[2 * axis] = step;
  ends[axis] = -step;
  Value* part = c.b.add("slice", {x, c.b.ints(begins), c.b.ints(ends)});
  Tensor table = Tensor::of<int64_t>(kI64, {static_cast<int64_t>(rank), 2}, pads);
  return c.b.add("pad", {part, c.b.constant(table)}, {{"value", fill}});
}

Value* product_of(OpContext& c, Value* x, Value* y) { return c.b.add("mul", {x, y}); }

/// log(exp(x) + exp(y)) without overflow.
Value* log_sum(OpContext& c, Value* x, Value* y) {
  const Var a(c.b, x), b(c.b, y), larger = maximum(a, b), smaller = minimum(a, b);
  const Var sum = larger + exp(smaller - larger).apply("log1p");
  return select(larger.apply("is_inf"), larger, sum).value;
}

/// Prefix scan with an associative operation, in log2(length) steps.
template <Value* (*kCombine)(OpContext&, Value*, Value*)>
Value* scan(OpContext& c, Value* x, size_t axis, double neutral) {
  const int64_t length = x->type.shape.dims[axis].size;
  for (int64_t step = 1; step < length; step *= 2) x = kCombine(c, x, before(c, x, axis, step, neutral));
  return x;
}

Value* products(OpContext& c, Value* x, size_t axis) { return scan<product_of>(c, x, axis, 1); }

/// As TensorFlow's kernel sums: to a NaN it adds the sum so far, which doubles; behind an infinity a further one, or a NaN,
/// makes NaN.
Value* log_sums(OpContext& c, Value* input, size_t axis) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  const Var x(c.b, input), unknown = x.apply("is_nan"), infinite = x.apply("equal", {x.number(kInfinity)});
  const auto count = [&](Var of, bool exclusive) {
    return cast(of, kI64).apply("cumsum", {}, {{"axis", static_cast<int64_t>(axis)}, {"exclusive", exclusive}});
  };
  const Var doubled = cast(count(unknown, false), x.dtype()) * std::numbers::ln2;
  const Var known = select(unknown, x.number(-kInfinity), x) - doubled;
  const Var sum = Var(c.b, scan<log_sum>(c, known.value, axis, -kInfinity)) + doubled;
  const Var again = unknown.apply("or", {infinite}).apply("and", {count(infinite, true) > 0.0});
  return select(count(again, false) > 0.0, x.number(std::nan("")), sum).value;
}

template <Value* (*kScan)(OpContext&, Value*, size_t)>
void cumulative(OpContext& c) {
  const double neutral = kScan == products ? 1 : -std::numeric_limits<double>::infinity();
  c.expect_inputs(2);
  const int64_t axis = normal_axis(c.constant_integer(1, "the axis"), c.rank(0));
  const auto at = static_cast<size_t>(axis);
  const Dim length = c.in[0]->type.shape.dims[at];
  if (!length.known()) c.refuse("dim {} is not known; declare the shapes of the model's inputs", axis);
  if (length.size > kLongestProduct) c.refuse("{} elements are not supported", length.size);
  const bool reversed = c.boolean("reverse", false);
  const Attributes turn{{"axes", std::vector<int64_t>{axis}}};
  Value* x = reversed ? c.b.add("reverse", {c.in[0]}, turn) : c.in[0];
  if (c.boolean("exclusive", false) && length.size > 0) x = before(c, x, at, 1, neutral);
  x = kScan(c, x, at);
  c.out = {reversed ? c.b.add("reverse", {x}, turn) : x};
}

/// values, range, number of bins: how many values are in each of the bins, of which the outer ones take what is beyond.
void histogram(OpContext& c) {
  c.expect_inputs(3);
  Value *x = c.in[0], *bins = scalar_of(c, cast_to(c.in[2], kI64, c.b));
  auto bound = [&](int64_t i) { return Var(c.b, scalar_of(c, part_of(c.in[1], i, i + 1, c.b))); };
  const Var low = bound(0), count(c.b, cast_to(bins, x->type.dtype, c.b));
  const Var step = (bound(1) - low) / count;
  const Var place = (maximum({c.b, x}, low) - low) / step;
  Value* bin = c.b.add("minimum", {cast_to(place.value, kI64, c.b), c.b.add("sub", {bins, whole(c, 1)})});
  const DType dtype = c.dtype("dtype", kDtInt32);
  Value* ones = in_shape_of(c, cast_to(whole(c, 1), dtype, c.b), bin);
  c.out = {counted(c, flat(c, bin), bins, flat(c, ones))};
}

/// The element that comes n-th when the last dim is sorted.
void nth_element(OpContext& c) {
  c.expect_inputs(2);
  const bool falling = c.boolean("reverse", false);
  Value* n = cast_to(c.in[1], kI64, c.b);
  Value* x = falling ? c.in[0] : c.b.add("neg", {c.in[0]});
  Value* sorted = c.b.add_node(op_named("top_k"), {x, folded(c.b.add("add", {n, whole(c, 1)}), c.b)})->result();
  Value* y = c.b.add("gather", {sorted, n}, {{"axis", int64_t{-1}}, {"from_start", true}});
  c.out = {falling ? y : c.b.add("neg", {y})};
}

/// The coordinates of places in row-major order.
void unravel_index(OpContext& c) {
  c.expect_inputs(2);
  auto sizes = sizes_in(c.in[1]);
  if (!sizes || sizes->size() > 64) c.refuse("the number of dims is not known, or above 64");
  if (sizes->empty()) fail(ErrorKind::invalid_model, "", "there are no dims");
  const DType dtype = c.in[0]->type.dtype;
  Value* rest = cast_to(c.in[0], kI64, c.b);
  std::vector<Value*> coordinates(sizes->size());
  for (size_t i = coordinates.size(); i-- > 0;) {
    const auto at = static_cast<int64_t>(i);
    Value* size = scalar_of(c, part_of(cast_to(c.in[1], kI64, c.b), at, at + 1, c.b));
    coordinates[i] = expand_dims(cast_to(c.b.add("mod", {rest, size}), dtype, c.b), {0}, c.b);
    rest = c.b.add("floor_div", {rest, size});
  }
  std::vector<int64_t> axes(c.rank(0));
  for (size_t i = 0; i < axes.size(); ++i) axes[i] = static_cast<int64_t>(i);
  Value* inside = c.b.add("reduce_all", {c.b.add("equal", {rest, whole(c, 0)})}, {{"axes", axes}});
  c.b.add_node(op_named("assert"), {inside}, {{"message", std::string("an index is out of range")}});
  c.out = {coordinates.size() == 1 ? coordinates[0] : c.b.add("concat", coordinates, {{"axis", int64_t{0}}})};
}

constexpr Row kCountingRows[] = {
    {"Bincount", bincount},
    {"Bucketize", bucketize},
    {"Cross", cross},
    {"Cumprod", cumulative<products>, known(1) | Trait::host},
    {"CumulativeLogsumexp", cumulative<log_sums>},
    {"DenseBincount", bincount},
    {"DynamicPartition", dynamic_partition, Trait::host},
    {"HistogramFixedWidth", histogram},
    {"InTopK", in_top_k},
    {"InTopKV2", in_top_k},
    {"LowerBound", bound, "less"},
    {"NthElement", nth_element},
    {"TensorScatterMax", scatter_extreme, "max", Trait::host},
    {"TensorScatterMin", scatter_extreme, "min", Trait::host},
    {"UniqueWithCounts", unique_with_counts, Trait::host | Trait::distinct},
    {"UnravelIndex", unravel_index},
    {"UpperBound", bound, "less_equal"},
};

}  // namespace

std::span<const Row> counting_rows() { return kCountingRows; }

}  // namespace cairn::tensorflow
