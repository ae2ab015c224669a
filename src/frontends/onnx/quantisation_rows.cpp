// ONNX's quantisation by scales and zero points, of a whole tensor or along an axis.
#include <cmath>

#include "frontends/fold.h"
#include "frontends/onnx/importer.h"
#include "frontends/reshape.h"

namespace cairn::onnx {
namespace {

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

constexpr Row kQuantisationRows[] = {
    {"DequantizeLinear", dequantize},
    {"DynamicQuantizeLinear", dynamic_quantize},
    {"QuantizeLinear", quantize},
};

}  // namespace

std::span<const Row> quantisation_rows() { return kQuantisationRows; }

}  // namespace cairn::onnx
