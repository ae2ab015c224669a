// ONNX operators that choose, place and compare elements, composed of the core's.
#include <cmath>

#include "frontends/fold.h"
#include "frontends/onnx/learning.h"
#include "frontends/reshape.h"
#include "ir/expression.h"

namespace cairn::onnx {
namespace {

Value* number_i64(OpContext& c, int64_t x) { return c.b.constant(Tensor::scalar_i64(x)); }
Value* flat(OpContext& c, Value* x) { return c.b.add("reshape", {x, c.b.ints({-1})}); }
/// A vector along one of `rank` dims.
Value* along(OpContext& c, Value* vector, size_t axis, size_t rank) {
  std::vector<NewDim> dims(rank, NewDim{1, -1});
  dims[axis] = {-1, 0};
  return reshape_to(vector, dims, c.b);
}
Value* column(OpContext& c, Value* vector) { return expand_dims(vector, {1}, c.b); }

/// The parts of x, along an axis or of all its elements, whose condition holds.
void compress(OpContext& c) {
  c.expect_inputs(2, 2);
  Value* kept = flat(c, c.b.add("non_zero", {c.in[1]}));
  const bool all = !c.has("axis");
  const int64_t axis = all ? 0 : normal_axis(c.integer("axis"), c.rank(0));
  c.out = {c.b.add("gather", {all ? flat(c, c.in[0]) : c.in[0], kept}, {{"axis", axis}})};
}

void eye_like(OpContext& c) {
  c.expect_inputs(1, 1);
  if (c.rank(0) != 2) fail(ErrorKind::invalid_model, "", "the input has {} dims, expected 2", c.rank(0));
  const auto dtype =
      c.has("dtype") ? dtype_of(static_cast<int32_t>(c.integer("dtype"))) : std::optional(c.in[0]->type.dtype);
  if (!dtype || *dtype == kString) c.refuse("dtype is no type of numbers");
  Value* rows = column(c, counted(scalar_dim(c.in[0], 0, c.b), c.b));
  Value* shifted = c.b.add("add", {rows, number_i64(c, c.integer("k", 0))});
  c.out = {cast_to(c.b.add("equal", {shifted, counted(scalar_dim(c.in[0], 1, c.b), c.b)}), *dtype, c.b)};
}

/// x cut, or filled with zeros, on both sides to the given sizes of some axes; an odd one goes behind.
void center_crop_pad(OpContext& c) {
  c.expect_inputs(2, 2);
  Builder& b = c.b;
  const auto rank = static_cast<int64_t>(c.rank(0));
  std::vector<int64_t> axes = c.integers("axes");
  if (!c.has("axes"))
    for (int64_t axis = 0; axis < rank; ++axis) axes.push_back(axis);
  axes = normal_axes(axes, c.rank(0));
  std::vector<Value*> own, wanted;
  for (int64_t axis = 0; axis < rank; ++axis) own.push_back(dim_of(c.in[0], static_cast<size_t>(axis), b));
  wanted = own;
  for (size_t i = 0; i < axes.size(); ++i) {
    const auto at = static_cast<int64_t>(i);
    wanted[static_cast<size_t>(axes[i])] = cast_to(part_of(c.in[1], at, at + 1, b), kI64, b);
  }
  const auto op = [&](const char* name, Value* x, Value* y) { return folded(b.add(name, {x, y}), b); };
  Value *have = joined(own, b), *want = joined(wanted, b), *zero = number_i64(c, 0);
  const auto excess = [&](Value* x, Value* y) { return op("maximum", op("sub", x, y), zero); };
  Value* begin = op("truncate_div", excess(have, want), number_i64(c, 2));
  Value* cut = b.add("slice", {c.in[0], begin, op("add", begin, op("minimum", have, want))});
  Value *missing = excess(want, have), *before = op("truncate_div", missing, number_i64(c, 2));
  Value* after = op("sub", missing, before);
  Value* pads = folded(b.add("concat", {column(c, before), column(c, after)}, {{"axis", int64_t{1}}}), b);
  c.out = {b.add("pad", {cut, pads})};
}

/// Blocks that lie side by side and cover the image only change places; null where they overlap, leave gaps or are not known.
Value* image_of_tiles(OpContext& c, const std::vector<int64_t>& strides, const std::vector<int64_t>& dilations,
                      const std::vector<int64_t>& pads) {
  const Tensor *image_sizes = constant_of(c.in[1]), *block_sizes = constant_of(c.in[2]);
  if (!image_sizes || !block_sizes || block_sizes->count() != image_sizes->count()) return nullptr;
  const std::vector<int64_t> image = image_sizes->as_i64(), block = block_sizes->as_i64();
  const auto count = static_cast<int64_t>(image.size());
  std::vector<int64_t> parts{-1}, order{0, 1}, tiles;
  for (size_t i = 0; i < image.size(); ++i) {
    if (strides[i] != block[i] || dilations[i] != 1 || pads[i] != 0 || pads[image.size() + i] != 0) return nullptr;
    if (block[i] < 1 || image[i] < 1 || image[i] % block[i] != 0) return nullptr;
    parts.push_back(block[i]), tiles.push_back(image[i] / block[i]);
    order.insert(order.end(), {2 + count + static_cast<int64_t>(i), 2 + static_cast<int64_t>(i)});
  }
  parts.insert(parts.end(), tiles.begin(), tiles.end());
  const auto shaped = [&](Value* x, const std::vector<int64_t>& dims) {
    return c.b.add("reshape", {x, joined({dim_of(c.in[0], 0, c.b), c.b.ints(dims)}, c.b)});
  };
  std::vector<int64_t> whole{-1};
  whole.insert(whole.end(), image.begin(), image.end());
  return shaped(transposed(shaped(c.in[0], parts), order, c.b), whole);
}

/// Blocks [n, channels * block, places] added into images at the places where they were taken.
void col_to_image(OpContext& c) {
  c.expect_inputs(3, 3);
  Builder& b = c.b;
  const Shape& length = c.in[1]->type.shape;
  if (c.rank(0) != 3 || !length.known() || length.rank() != 1 || length.dims[0].size < 1 || length.dims[0].size > 8)
    c.refuse("takes blocks of three dims and images of one to eight");
  const auto spatial = static_cast<size_t>(length.dims[0].size);
  const std::vector<int64_t> strides = c.integers("strides", spatial, 1),
                             dilations = c.integers("dilations", spatial, 1), pads = c.integers("pads", 2 * spatial, 0);
  if (const auto tiled = image_of_tiles(c, strides, dilations, pads)) {
    c.out = {tiled};
    return;
  }
  Value *image = cast_to(c.in[1], kI64, b), *block = cast_to(c.in[2], kI64, b), *place = nullptr, *inside = nullptr;
  Value* rest = number_i64(c, 1);  // elements of the image behind this dim
  const auto of = [&](Value* vector, size_t i) {
    const auto at = static_cast<int64_t>(i);
    return Var(b, reshape_to(part_of(vector, at, at + 1, b), {}, b));
  };
  const auto scaled = [](Var x, int64_t by) { return x * static_cast<double>(by); };
  for (size_t i = spatial; i-- > 0;) {
    if (strides[i] < 1 || dilations[i] < 1) fail(ErrorKind::invalid_model, "", "a stride or dilation is below 1");
    const Var size = of(image, i), kernel = of(block, i), before = size.number(static_cast<double>(pads[i]));
    const Var padded = size + before + static_cast<double>(pads[spatial + i]);
    const Var steps = (padded - scaled(kernel - 1.0, dilations[i]) - 1.0)
                          .apply("floor_div", {size.number(static_cast<double>(strides[i]))}) +
                      1.0;
    const Var from(b, along(c, counted(kernel.value, c.b), i, 2 * spatial));
    const Var to(b, along(c, counted(steps.value, c.b), spatial + i, 2 * spatial));
    const Var at = scaled(to, strides[i]) + scaled(from, dilations[i]) - before;
    Value* valid = b.add("and", {at.apply("greater_equal", {at.number(0)}).value, (at < size).value});
    Value* step = (at * Var(b, rest)).value;
    place = place == nullptr ? step : b.add("add", {place, step});
    inside = inside == nullptr ? valid : b.add("and", {inside, valid});
    rest = (Var(b, rest) * size).value;
  }
  place = flat(c, b.add("select", {inside, place, number_i64(c, -1)}));
  Value* moves = dim_of(place, 0, b);
  Value* taken = b.add("reshape", {c.in[0], joined({b.ints({-1}), moves}, b)});
  taken = transposed(taken, {1, 0}, b);
  Value* start =
      b.add("broadcast_to", {b.scalar_like(taken, 0), joined({reshape_to(rest, {{1}}, b), dim_of(taken, 1, b)}, b)});
  Value* y = b.add("scatter_reduce", {start, place, taken}, {{"mode", std::string("add")}, {"padded", true}});
  y = transposed(y, {1, 0}, b);
  c.out = {b.add("reshape", {y, joined({dim_of(c.in[0], 0, b), b.ints({-1}), image}, b)})};
}

/// Where an affine map puts the places of an image; a place is (x, y) or (x, y, z), -1 to 1 from end to end.
void affine_grid(OpContext& c) {
  c.expect_inputs(2, 2);
  Builder& b = c.b;
  const Shape& length = c.in[1]->type.shape;
  if (length != Shape::of({4}) && length != Shape::of({5})) c.refuse("the size must have 4 or 5 elements");
  const auto spatial = static_cast<size_t>(length.dims[0].size) - 2;
  if (c.rank(0) != 3) fail(ErrorKind::invalid_model, "", "theta has {} dims, expected 3", c.rank(0));
  const DType dtype = c.in[0]->type.dtype;
  Value* sizes = part_of(cast_to(c.in[1], kI64, b), 2, static_cast<int64_t>(spatial) + 2, b);
  const int64_t last = static_cast<int64_t>(spatial);
  std::vector<Value*> places;
  for (size_t i = spatial; i-- > 0;) {
    const auto at = static_cast<int64_t>(i);
    Value* size = reshape_to(part_of(sizes, at, at + 1, b), {}, b);
    const Var place = cast(Var(b, counted(size, c.b)), dtype), n = cast(Var(b, size), dtype);
    const Var line = c.integer("align_corners", 0) != 0 ? place * 2.0 / maximum(n - 1.0, n.number(1)) - 1.0
                                                        : (place * 2.0 + 1.0) / n - 1.0;
    places.push_back(b.add("broadcast_to", {along(c, line.value, i, spatial), sizes}));
  }
  places.push_back(b.add("broadcast_to", {b.number(1, dtype), sizes}));
  for (Value*& place : places) place = expand_dims(place, {last}, b);
  Value* grid = b.add("concat", places, {{"axis", last}});
  grid = b.add("reshape", {grid, b.ints({-1, last + 1})});
  Value* y = b.add("matmul", {grid, c.in[0]}, {{"transpose_b", true}});
  c.out = {b.add("reshape", {y, joined({dim_of(c.in[0], 0, b), sizes, b.ints({last})}, b)})};
}

/// The first elements along time in reverse, as many as each sample tells.
void reverse_sequence(OpContext& c) {
  c.expect_inputs(2, 2);
  Builder& b = c.b;
  const size_t rank = c.rank(0);
  const auto batch = static_cast<size_t>(normal_axis(c.integer("batch_axis", 1), rank)),
             time = static_cast<size_t>(normal_axis(c.integer("time_axis", 0), rank));
  if (batch == time) fail(ErrorKind::invalid_model, "", "batch and time are one axis");
  std::vector<int64_t> order{static_cast<int64_t>(batch), static_cast<int64_t>(time)}, back(rank);
  for (size_t i = 0; i < rank; ++i)
    if (i != batch && i != time) order.push_back(static_cast<int64_t>(i));
  for (size_t i = 0; i < rank; ++i) back[static_cast<size_t>(order[i])] = static_cast<int64_t>(i);
  Value* x = transposed(c.in[0], order, b);
  const Var place(b, counted(scalar_dim(x, 1, c.b), c.b)), length(b, column(c, cast_to(c.in[1], kI64, b)));
  const Var from = select(place < length, length - 1.0 - place, place);
  c.out = {transposed(b.add("gather", {x, from.value}, {{"axis", int64_t{1}}, {"batch_dims", int64_t{1}}}), back, b)};
}

/// For each row of a matrix how many other rows come before it in the order of their elements; equal rows have one number.
/// Compares all pairs.
Value* ranks_of_rows(OpContext& c, Value* rows) {
  Builder& b = c.b;
  Value *one = expand_dims(rows, {1}, b), *other = expand_dims(rows, {0}, b);
  Value* differs = b.add("not_equal", {one, other});
  Value* before = b.add("cumsum", {cast_to(differs, kI64, b)}, {{"axis", int64_t{2}}, {"exclusive", true}});
  Value* first = b.add("and", {differs, b.add("equal", {before, number_i64(c, 0)})});
  Value* less = b.add("and", {first, b.add("less", {other, one})});
  less = b.add("reduce_any", {less}, {{"axes", std::vector<int64_t>{2}}});
  return b.add("reduce_sum", {cast_to(less, kI64, b)}, {{"axes", std::vector<int64_t>{1}}});
}

/// The different elements, or parts along an axis; where each stands first, its place among them for each element of x, and how
/// often each is there.
void unique(OpContext& c) {
  c.expect_inputs(1, 1);
  Builder& b = c.b;
  const bool whole = !c.has("axis");
  int64_t axis = 0;
  Value *x = whole ? flat(c, c.in[0]) : c.in[0], *keys = x;
  if (!whole) {
    axis = normal_axis(c.integer("axis"), c.rank(0));
    std::vector<int64_t> order{axis};
    for (int64_t i = 0; i < static_cast<int64_t>(c.rank(0)); ++i)
      if (i != axis) order.push_back(i);
    keys =
        b.add("reshape", {transposed(x, order, b), joined({dim_of(x, static_cast<size_t>(axis), b), b.ints({-1})}, b)});
    keys = ranks_of_rows(c, keys);
  }
  auto* made = b.add_node(op_named("unique"), {keys});
  Value *values = made->result(0), *place = cast_to(made->result(1), kI64, b), *count = scalar_dim(values, 0, c.b);
  if (c.integer("sorted", 1) != 0) {
    auto* sorted = b.add_node(op_named("top_k"), {values, count});
    Value* order = b.add("reverse", {cast_to(sorted->result(1), kI64, b)}, {{"axes", std::vector<int64_t>{0}}});
    Value* back = b.add("scatter_elements", {counted(count, c.b), order, counted(count, c.b)});
    place = b.add("gather", {back, place});
  }
  Value *all = scalar_dim(x, static_cast<size_t>(axis), c.b), *each = counted(all, c.b);
  Value* behind = b.add("broadcast_to", {all, reshape_to(count, {{1}}, b)});
  Value* first = b.add("scatter_reduce", {behind, place, each}, {{"mode", std::string("min")}});
  Value* nothing = b.add("broadcast_to", {number_i64(c, 0), reshape_to(count, {{1}}, b)});
  Value* ones = b.add("broadcast_to", {number_i64(c, 1), reshape_to(all, {{1}}, b)});
  c.out = {b.add("gather", {x, first}, {{"axis", axis}}), first, place,
           b.add("scatter_reduce", {nothing, place, ones}, {{"mode", std::string("add")}})};
}

void bit_cast(OpContext& c) {
  c.expect_inputs(1, 1);
  const auto type = static_cast<int32_t>(c.integer("to"));
  const auto dtype = dtype_of(type);
  const DType own = c.in[0]->type.dtype;
  if (!dtype || *dtype == kString || own == kString || dtype->bits != own.bits)
    c.refuse("bits of {} as {} are not supported", to_string(own), type_name(type));
  // Bools are bytes of 0 and 1.
  if (*dtype == kBool || own == kBool) {
    Value* bytes = own == kBool ? cast_to(c.in[0], kU8, c.b) : c.in[0];
    c.out = {*dtype == kBool ? cast_to(bytes, kBool, c.b) : c.b.add("bitcast", {bytes}, {{"dtype", *dtype}})};
    return;
  }
  c.out = {own == *dtype ? c.in[0] : c.b.add("bitcast", {c.in[0]}, {{"dtype", *dtype}})};
}

void mean_variance_normalization(OpContext& c) {
  c.expect_inputs(1, 1);
  const Attributes over{{"axes", c.integers("axes", {0, 2, 3})}, {"keep_dims", true}};
  const Var x(c.b, c.in[0]), apart = x - x.apply("reduce_mean", {}, over);
  c.out = {(apart / (sqrt(square(apart).apply("reduce_mean", {}, over)) + 1e-9)).value};
}

/// Triangles over the frequencies of a transform, evenly apart on the mel scale; sizes and edges may be known only in a run.
void mel_weights(OpContext& c) {
  c.expect_inputs(5, 5);
  Builder& b = c.b;
  const auto scalar = [&](size_t i, DType dtype) { return Var(b, cast_to(reshape_to(c.in[i], {}, b), dtype, b)); };
  const Var bins = scalar(0, kI64), length = scalar(1, kI64), rate = scalar(2, kF64);
  const auto mel = [&](Var hertz) { return log(1.0 + hertz / 700.0) * (2595 / std::log(10.0)); };
  const Var low = mel(scalar(3, kF64)), high = mel(scalar(4, kF64));
  const Var step = (high - low) / cast(bins + 2.0, kF64);
  const Var edge = cast(Var(b, counted((bins + 2.0).value, c.b)), kF64) * step + low;
  const Var hertz = (exp(edge * (std::log(10.0) / 2595)) - 1.0) * 700.0;
  const Var place = (cast(length + 1.0, kF64) * hertz / rate).apply("floor");
  const auto from = [&](int64_t i) {
    Value* end = b.add("add", {bins.value, number_i64(c, i)});
    return Var(b, b.add("slice", {place.value, b.ints({i}), reshape_to(end, {{1}}, b)}));
  };
  const Var left = from(0), centre = from(1), right = from(2);
  Value* count = (length.apply("floor_div", {length.number(2)}) + 1.0).value;
  const Var j(b, cast_to(column(c, counted(count, c.b)), kF64, b)), zero = j.number(0), one = j.number(1);
  const auto at_least = [](Var x, Var y) { return x.apply("greater_equal", {y}); };
  const Var rise = select(at_least(j, left), (j - left) / maximum(centre - left, one), zero);
  const Var fall = select(at_least(j, right), zero, (right - j) / maximum(right - centre, one));
  const Var peak = select(centre.apply("equal", {left}), select(j.apply("equal", {centre}), one, zero), rise);
  const Var y = select(j > centre, fall, select(at_least(j, centre), one, peak));
  const auto dtype = dtype_of(static_cast<int32_t>(c.integer("output_datatype", 1)));
  if (!dtype || *dtype == kString) c.refuse("this output_datatype is not supported");
  c.out = {cast_to(y.value, *dtype, b)};
}

/// Columns of the last dim; a vector counts as one row.
void array_feature_extractor(OpContext& c) {
  c.expect_inputs(2, 2);
  const size_t rank = c.rank(0);
  if (rank == 0) fail(ErrorKind::invalid_model, "", "the input is a scalar");
  Value* x = rank == 1 ? expand_dims(c.in[0], {0}, c.b) : c.in[0];
  c.out = {c.b.add("gather", {x, flat(c, c.in[1])}, {{"axis", static_cast<int64_t>(std::max<size_t>(rank, 2)) - 1}})};
}

void binarizer(OpContext& c) {
  c.expect_inputs(1, 1);
  const Var x(c.b, c.in[0]);
  c.out = {cast(x > c.real("threshold", 0), x.dtype()).value};
}

constexpr Row kSelectionRows[] = {
    {"AffineGrid", affine_grid},
    {"ArrayFeatureExtractor", array_feature_extractor, nullptr, kLearning},
    {"Binarizer", binarizer, nullptr, kLearning},
    {"BitCast", bit_cast},
    {"CenterCropPad", center_crop_pad},
    {"Col2Im", col_to_image},
    {"Compress", compress},
    {"EyeLike", eye_like},
    {"MeanVarianceNormalization", mean_variance_normalization},
    {"MelWeightMatrix", mel_weights},
    {"ReverseSequence", reverse_sequence},
    {"Unique", unique},
};

}  // namespace

std::span<const Row> selection_rows() { return kSelectionRows; }

}  // namespace cairn::onnx
