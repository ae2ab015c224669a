// ONNX's quantisation, its elements picked along an axis, blocks of pixels, and functions made of several nodes.
#include <cmath>

#include "frontends/einsum.h"
#include "frontends/fold.h"
#include "frontends/onnx/importer.h"
#include "frontends/reshape.h"

namespace cairn::onnx {
namespace {

Value* transposed(Value* x, const std::vector<int64_t>& order, Builder& b) {
  return b.add("transpose", {x}, {{"permutation", order}});
}

void einsum_row(OpContext& c) { c.out = {einsum(c.text("equation", ""), c.in, c.b)}; }

/// A scale or zero point of one dim against x: [1, n, 1, 1].
Value* along(OpContext& c, Value* each, int64_t axis, size_t rank) {
  if (!each->type.shape.ranked || each->type.shape.rank() > 1) c.refuse("scales of blocks are not supported");
  if (each->type.shape.rank() == 0) return each;
  std::vector<NewDim> dims(rank, NewDim{1, -1});
  if (rank == 0) return reshape_to(each, {}, c.b);
  dims[static_cast<size_t>(axis)] = {-1, 0};
  return each->type.shape.dims[0] == Dim(1) ? reshape_to(each, {}, c.b) : reshape_to(each, dims, c.b);
}

Value* zero_point(OpContext& c, int64_t axis, size_t rank, DType as) {
  return c.given(2) ? along(c, cast_to(c.in[2], as, c.b), axis, rank) : nullptr;
}

int64_t scale_axis(OpContext& c, size_t rank) {
  if (c.integer("block_size", 0) != 0) c.refuse("scales of blocks are not supported");
  const int64_t axis = c.integer("axis", 1);
  return c.in[1]->type.shape.ranked && c.in[1]->type.shape.rank() == 1 && c.in[1]->type.shape.dims[0] != Dim(1)
             ? normal_axis(axis, rank)
             : 0;
}

/// (x - zero point) * scale
void dequantize(OpContext& c) {
  c.expect_inputs(2, 3);
  const size_t rank = c.rank(0);
  const int64_t axis = scale_axis(c, rank);
  const DType dtype = c.in[1]->type.dtype;
  Value* x = cast_to(c.in[0], kF32, c.b);
  if (Value* zero = zero_point(c, axis, rank, kF32)) x = c.b.add("sub", {x, zero});
  x = c.b.add("mul", {x, along(c, cast_to(c.in[1], kF32, c.b), axis, rank)});
  c.out = {cast_to(x, dtype, c.b)};
}

Value* saturated(Value* x, DType dtype, Builder& b) {
  const bool no_sign = dtype.kind == DType::Kind::unsigned_int;
  const double low = no_sign ? 0 : -std::exp2(dtype.bits - 1);
  const double high = std::exp2(no_sign ? dtype.bits : dtype.bits - 1) - 1;
  return cast_to(b.add("clip", {x}, {{"low", low}, {"high", high}}), dtype, b);
}

/// x / scale rounded to the nearest, halves to even, + zero point, cut to the type.
void quantize(OpContext& c) {
  c.expect_inputs(2, 3);
  const size_t rank = c.rank(0);
  const int64_t axis = scale_axis(c, rank), type = c.integer("output_dtype", 0);
  std::optional<DType> dtype = c.given(2)  ? std::optional(c.in[2]->type.dtype)
                               : type == 0 ? kU8
                                           : dtype_of(static_cast<int32_t>(type));
  if (!dtype || !dtype->is_integer() || dtype->bits < 8 || dtype->bits > 16)
    c.refuse("results of other types than integers of 8 and 16 bits are not supported");
  Value* x = cast_to(c.in[0], kF32, c.b);
  x = c.b.add("round", {c.b.add("div", {x, along(c, cast_to(c.in[1], kF32, c.b), axis, rank)})});
  if (Value* zero = zero_point(c, axis, rank, kF32)) x = c.b.add("add", {x, zero});
  c.out = {saturated(x, *dtype, c.b)};
}

/// To 8 bits with the scale and zero point that hold all elements and 0.
void dynamic_quantize(OpContext& c) {
  c.expect_inputs(1, 1);
  Builder& b = c.b;
  std::vector<int64_t> axes(c.rank(0));
  for (size_t i = 0; i < axes.size(); ++i) axes[i] = static_cast<int64_t>(i);
  auto number = [&](float value) { return b.constant(Tensor::scalar_f32(value)); };
  Value* low = b.add("minimum", {b.add("reduce_min", {c.in[0]}, {{"axes", axes}}), number(0)});
  Value* high = b.add("maximum", {b.add("reduce_max", {c.in[0]}, {{"axes", axes}}), number(0)});
  Value* scale = b.add("div", {b.add("sub", {high, low}), number(255)});
  Value* zero =
      b.add("round", {b.add("clip", {b.add("div", {b.add("neg", {low}), scale})}, {{"low", 0.0}, {"high", 255.0}})});
  Value* y = b.add("add", {b.add("round", {b.add("div", {c.in[0], scale})}), zero});
  c.out = {saturated(y, kU8, b), scale, cast_to(zero, kU8, b)};
}

/// out[i, j, k] = x[i, index[i, j, k], k] for the axis 1: the axis goes to the end, where rows are gathered.
void gather_elements(OpContext& c) {
  c.expect_inputs(2, 2);
  const size_t rank = c.rank(0);
  if (c.rank(1) != rank || rank == 0) fail(ErrorKind::invalid_model, "", "indices and data differ in rank");
  const int64_t axis = normal_axis(c.integer("axis", 0), rank), last = static_cast<int64_t>(rank) - 1;
  Value *x = c.in[0], *indices = c.in[1];
  std::vector<int64_t> end(rank, kToTheEnd), order(rank);
  bool smaller = false;
  for (size_t i = 0; i < rank; ++i) {
    order[i] = static_cast<int64_t>(i);
    const Dim &have = x->type.shape.dims[i], &want = indices->type.shape.dims[i];
    if (static_cast<int64_t>(i) == axis || have.surely_equals(want)) continue;
    if (!want.known()) c.refuse("dim {} of the indices must be known, or that of the data", i);
    end[i] = want.size;
    smaller = true;
  }
  if (smaller) x = c.b.add("slice", {x, c.b.ints(std::vector<int64_t>(rank, 0)), c.b.ints(end)});
  std::swap(order[static_cast<size_t>(axis)], order[static_cast<size_t>(last)]);
  if (axis != last) x = transposed(x, order, c.b), indices = transposed(indices, order, c.b);
  Value* y = c.b.add("gather", {x, indices}, {{"axis", last}, {"batch_dims", last}});
  c.out = {axis == last ? y : transposed(y, order, c.b)};
}

struct Pixels {
  int64_t channels, height, width, block;
};
Pixels pixels(OpContext& c) {
  c.expect_inputs(1, 1);
  if (c.rank(0) != 4) fail(ErrorKind::invalid_model, "", "images have {} dims, expected 4", c.rank(0));
  const auto& dims = c.in[0]->type.shape.dims;
  if (!dims[1].known() || !dims[2].known() || !dims[3].known()) c.refuse("channels, height and width must be known");
  const int64_t block = c.integer("blocksize");
  if (block < 1 || block > 65536) fail(ErrorKind::invalid_model, "", "blocksize is {}", block);
  return {dims[1].size, dims[2].size, dims[3].size, block};
}

/// Whether a channel's block lies together (CRD), or the channels of a place in the block do (DCR).
bool channels_lead(OpContext& c) {
  const std::string mode = c.text("mode", "DCR");
  if (mode != "DCR" && mode != "CRD") fail(ErrorKind::invalid_model, "", "mode '{}' is unknown", printable(mode));
  return mode == "CRD";
}

void depth_to_space(OpContext& c) {
  const Pixels p = pixels(c);
  const int64_t block = p.block, channels = p.channels / block / block;
  const bool lead = channels_lead(c);
  if (channels * block * block != p.channels)
    fail(ErrorKind::invalid_model, "", "{} channels do not divide into blocks of {}", p.channels, block);
  Value* x = lead ? reshape_to(c.in[0], {{-1, 0}, {channels}, {block}, {block}, {p.height}, {p.width}}, c.b)
                  : reshape_to(c.in[0], {{-1, 0}, {block}, {block}, {channels}, {p.height}, {p.width}}, c.b);
  x = transposed(x, lead ? std::vector<int64_t>{0, 1, 4, 2, 5, 3} : std::vector<int64_t>{0, 3, 4, 1, 5, 2}, c.b);
  c.out = {reshape_to(x, {{-1, 0}, {channels}, {p.height * block}, {p.width * block}}, c.b)};
}

void space_to_depth(OpContext& c) {
  const Pixels p = pixels(c);
  const int64_t block = p.block, rows = p.height / block, columns = p.width / block;
  if (rows * block != p.height || columns * block != p.width)
    fail(ErrorKind::invalid_model, "", "{} x {} pixels do not divide into blocks of {}", p.height, p.width, block);
  Value* x = reshape_to(c.in[0], {{-1, 0}, {p.channels}, {rows}, {block}, {columns}, {block}}, c.b);
  x = transposed(x, channels_lead(c) ? std::vector<int64_t>{0, 1, 3, 5, 2, 4} : std::vector<int64_t>{0, 3, 5, 1, 2, 4},
                 c.b);
  c.out = {reshape_to(x, {{-1, 0}, {block * block * p.channels}, {rows}, {columns}}, c.b)};
}

Value* count_up(Value* x, size_t axis, Builder& b) {
  Value* size = folded(b.add("reshape", {dim_of(x, axis, b), b.ints({})}), b);
  return b.add("iota", {b.constant(Tensor::scalar_i64(0)), size, b.constant(Tensor::scalar_i64(1))}, {{"dtype", kI64}});
}

/// What lies above (or below) a diagonal is kept, the rest is 0.
void trilu(OpContext& c) {
  c.expect_inputs(1, 2);
  const size_t rank = c.rank(0);
  if (rank < 2) fail(ErrorKind::invalid_model, "", "the input has {} dims, expected 2 or more", rank);
  Value* diagonal = c.given(1) ? cast_to(reshape_to(c.in[1], {}, c.b), kI64, c.b) : c.b.constant(Tensor::scalar_i64(0));
  Value* first = c.b.add("add", {expand_dims(count_up(c.in[0], rank - 2, c.b), {1}, c.b), diagonal});
  Value* kept =
      c.b.add(c.integer("upper", 1) != 0 ? "greater_equal" : "less_equal", {count_up(c.in[0], rank - 1, c.b), first});
  c.out = {c.b.add("select", {kept, c.in[0], c.b.scalar_like(c.in[0], 0)})};
}

void celu(OpContext& c) {
  c.expect_inputs(1, 1);
  Value *alpha = c.b.scalar_like(c.in[0], c.real("alpha", 1)), *zero = c.b.scalar_like(c.in[0], 0);
  Value* bent = c.b.add("mul", {alpha, c.b.add("expm1", {c.b.add("div", {c.in[0], alpha})})});
  c.out = {c.b.add("add", {c.b.add("maximum", {c.in[0], zero}), c.b.add("minimum", {zero, bent})})};
}

void shrink(OpContext& c) {
  c.expect_inputs(1, 1);
  Value* x = c.in[0];
  auto like = [&](double value) { return c.b.scalar_like(x, value); };
  const double bias = c.real("bias", 0), edge = c.real("lambd", 0.5);
  Value* above = c.b.add("select", {c.b.add("greater", {x, like(edge)}), c.b.add("sub", {x, like(bias)}), like(0)});
  c.out = {c.b.add("select", {c.b.add("less", {x, like(-edge)}), c.b.add("add", {x, like(bias)}), above})};
}

constexpr Row kMoreRows[] = {
    {"Celu", celu},
    {"DepthToSpace", depth_to_space},
    {"DequantizeLinear", dequantize},
    {"DynamicQuantizeLinear", dynamic_quantize},
    {"Einsum", einsum_row},
    {"GatherElements", gather_elements},
    {"QuantizeLinear", quantize},
    {"Shrink", shrink},
    {"SpaceToDepth", space_to_depth},
    {"Trilu", trilu},
};

}  // namespace

std::span<const Row> more_rows() { return kMoreRows; }

}  // namespace cairn::onnx
