// ONNX's quantisation by scales and zero points, of a whole tensor or along an axis.
#include <cmath>

#include "frontends/fold.h"
#include "frontends/onnx/convolution.h"
#include "frontends/onnx/importer.h"
#include "frontends/onnx/narrow.h"
#include "frontends/reshape.h"

namespace cairn::onnx {
namespace {

/// A scale or zero point of one dim against x: [1, n, 1, 1]; or one of each block along the axis.
Value* along(OpContext& c, Value* each, int64_t axis, size_t rank) {
  if (!each->type.shape.ranked || (each->type.shape.rank() > 1 && each->type.shape.rank() != rank))
    c.refuse("scales of {} are not supported", to_string(each->type));
  if (each->type.shape.rank() > 1) {
    const int64_t block = c.integer("block_size", 0);
    if (block < 1) fail(ErrorKind::invalid_model, "", "block_size is {}", block);
    Value* size = reshape_to(dim_of(c.in[0], static_cast<size_t>(axis), c.b), {}, c.b);
    const auto number = [&](int64_t x) { return c.b.constant(Tensor::scalar_i64(x)); };
    Value* place = folded(c.b.add("iota", {number(0), size, number(1)}, {{"dtype", kI64}}), c.b);
    return c.b.add("gather", {each, folded(c.b.add("floor_div", {place, number(block)}), c.b)}, {{"axis", axis}});
  }
  if (each->type.shape.rank() == 0) return each;
  std::vector<NewDim> dims(rank, NewDim{1, -1});
  if (rank == 0) return reshape_to(each, {}, c.b);
  dims[static_cast<size_t>(axis)] = {-1, 0};
  return each->type.shape.dims[0] == Dim(1) ? reshape_to(each, {}, c.b) : reshape_to(each, dims, c.b);
}

/// Elements of any type as f32.
Value* as_numbers(OpContext& c, size_t input) {
  const int32_t narrow = c.narrow_type(input);
  return narrow != 0 ? widened(c.in[input], narrow, c.b) : cast_to(c.in[input], kF32, c.b);
}

Value* zero_point(OpContext& c, int64_t axis, size_t rank) {
  return c.given(2) ? along(c, as_numbers(c, 2), axis, rank) : nullptr;
}

int64_t scale_axis(OpContext& c, size_t rank) {
  const int64_t axis = c.integer("axis", 1);
  const Shape& scale = c.in[1]->type.shape;
  return scale.ranked && scale.rank() > 0 && (scale.rank() > 1 || scale.dims[0] != Dim(1)) ? normal_axis(axis, rank)
                                                                                           : 0;
}

/// (x - zero point) * scale
void dequantize(OpContext& c) {
  c.expect_inputs(2, 3);
  const size_t rank = c.rank(0);
  const int64_t axis = scale_axis(c, rank);
  const DType dtype = c.in[1]->type.dtype;
  Value* x = as_numbers(c, 0);
  if (Value* zero = zero_point(c, axis, rank)) x = c.b.add("sub", {x, zero});
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
  const int32_t narrow = c.given(2)                              ? c.narrow_type(2)
                         : is_narrow(static_cast<int32_t>(type)) ? static_cast<int32_t>(type)
                                                                 : 0;
  if (narrow == 0 && (!dtype || !dtype->is_integer() || dtype->bits < 8 || dtype->bits > 16))
    c.refuse("results of other types than integers of 8 and 16 bits are not supported");
  Value* x = cast_to(c.in[0], kF32, c.b);
  x = c.b.add("div", {x, along(c, cast_to(c.in[1], kF32, c.b), axis, rank)});
  const bool floats = narrow != 0 && type_name(narrow).starts_with("FLOAT");
  if (!floats) x = c.b.add("round", {x});
  if (Value* zero = zero_point(c, axis, rank)) x = c.b.add("add", {x, zero});
  if (narrow != 0) {
    c.out = {folded(narrowed(x, narrow, !floats || c.integer("saturate", 1) != 0, "up", c.b), c.b)};
    c.importer().mark_narrow(c.out[0], narrow);
    return;
  }
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

/// x less its zero point, which may be left out, in a wider type.
Value* centred(OpContext& c, size_t x, size_t zero, DType as, bool columns) {
  Value* y = cast_to(c.in[x], as, c.b);
  if (!c.given(zero)) return y;
  Value* point = cast_to(c.in[zero], as, c.b);
  if (point->type.shape.rank() == 1 && point->type.shape.dims[0] == Dim(1)) point = reshape_to(point, {}, c.b);
  if (!columns && point->type.shape.rank() == 1) point = expand_dims(point, {1}, c.b);  // one for each row
  return c.b.add("sub", {y, point});
}

/// acc * (a scale * b scale / y scale) rounded, + zero point, cut to the type of the zero point.
Value* requantised(OpContext& c, Value* sum, Value* scale, size_t y_scale, size_t y_zero) {
  Builder& b = c.b;
  const DType dtype = c.in[y_zero]->type.dtype;
  if (!dtype.is_integer() || dtype.bits != 8) c.refuse("results of {} are not supported", to_string(dtype));
  const auto one = [&](size_t i) { return cast_to(reshape_to(c.in[i], {}, b), kF32, b); };
  Value* y = b.add("mul", {cast_to(sum, kF32, b), b.add("div", {scale, one(y_scale)})});
  return saturated(b.add("add", {b.add("round", {y}), one(y_zero)}), dtype, b);
}

/// Integers of 8 bits multiply to sums of 32 bits.
void matmul_integer(OpContext& c) {
  c.expect_inputs(2, 4);
  if (c.rank(0) < 2 || c.rank(1) < 2) c.refuse("vectors are not supported");
  c.out = {c.b.add("matmul", {centred(c, 0, 2, kI32, false), centred(c, 1, 3, kI32, true)})};
}

/// A scale of each row or column, or one for all.
Value* scale_of(OpContext& c, size_t input, bool columns) {
  Value* scale = cast_to(c.in[input], kF32, c.b);
  if (scale->type.shape.rank() == 1 && scale->type.shape.dims[0] == Dim(1)) return reshape_to(scale, {}, c.b);
  return !columns && scale->type.shape.rank() == 1 ? expand_dims(scale, {1}, c.b) : scale;
}

void qlinear_matmul(OpContext& c) {
  c.expect_inputs(8, 8);
  if (c.rank(0) < 2 || c.rank(3) < 2) c.refuse("vectors are not supported");
  Value* sum = c.b.add("matmul", {centred(c, 0, 2, kI32, false), centred(c, 3, 5, kI32, true)});
  Value* scale = c.b.add("mul", {scale_of(c, 1, false), scale_of(c, 4, true)});
  c.out = {requantised(c, sum, scale, 6, 7)};
}

/// Floats that hold all sums of products of 8 bits with this kernel exactly.
DType exact_floats(const Value* kernel) {
  const auto& dims = kernel->type.shape.dims;
  double products = 1;
  for (size_t i = 1; i < dims.size(); ++i) products *= dims[i].known() ? static_cast<double>(dims[i].size) : 1e9;
  return products * 255 * 255 < 1 << 24 ? kF32 : kF64;
}

/// One number for each output channel as it stands in a kernel (rank, first) or an image (second).
Value* of_channels(OpContext& c, Value* x, size_t rank, size_t axis) {
  if (x->type.shape.rank() == 0 || x->type.shape.dims[0] == Dim(1)) return reshape_to(x, {}, c.b);
  std::vector<NewDim> dims(rank, NewDim{1, -1});
  dims[axis] = {-1, 0};
  return reshape_to(x, dims, c.b);
}

Value* conv_sum(OpContext& c, size_t kernel, size_t zero, size_t kernel_zero) {
  const DType as = exact_floats(c.in[kernel]);
  const auto less = [&](size_t x, size_t point, size_t axis) {
    Value* y = cast_to(c.in[x], as, c.b);
    if (!c.given(point)) return y;
    return c.b.add("sub", {y, of_channels(c, cast_to(c.in[point], as, c.b), c.rank(x), axis)});
  };
  return convolved(c, less(0, zero, 0), less(kernel, kernel_zero, 0), nullptr);
}

void conv_integer(OpContext& c) {
  c.expect_inputs(2, 4);
  c.out = {cast_to(conv_sum(c, 1, 2, 3), kI32, c.b)};
}

void qlinear_conv(OpContext& c) {
  c.expect_inputs(8, 9);
  Value* sum = conv_sum(c, 3, 2, 5);
  if (c.given(8)) sum = c.b.add("add", {sum, of_channels(c, cast_to(c.in[8], sum->type.dtype, c.b), c.rank(0), 1)});
  Value* scale = c.b.add("mul", {cast_to(reshape_to(c.in[1], {}, c.b), kF32, c.b),
                                 of_channels(c, cast_to(c.in[4], kF32, c.b), c.rank(0), 1)});
  c.out = {requantised(c, sum, scale, 6, 7)};
}

constexpr Row kQuantisationRows[] = {
    {"ConvInteger", conv_integer},
    {"DequantizeLinear", dequantize, nullptr, {}, 0, false, Row::Narrow::knows},
    {"DynamicQuantizeLinear", dynamic_quantize},
    {"MatMulInteger", matmul_integer},
    {"QLinearConv", qlinear_conv},
    {"QLinearMatMul", qlinear_matmul},
    {"QuantizeLinear", quantize, nullptr, {}, 0, false, Row::Narrow::knows},
};

}  // namespace

std::span<const Row> quantisation_rows() { return kQuantisationRows; }

}  // namespace cairn::onnx
