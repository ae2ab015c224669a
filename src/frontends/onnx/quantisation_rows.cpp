// ONNX's quantisation by scales and zero points, of a whole tensor or along an axis.
#include <cmath>

#include "frontends/fold.h"
#include "frontends/onnx/convolution.h"
#include "frontends/onnx/importer.h"
#include "frontends/onnx/narrow.h"
#include "frontends/onnx/quantisation.h"
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
    Value* size = scalar_dim(c.in[0], static_cast<size_t>(axis), c.b);
    const auto number = [&](int64_t x) { return c.b.constant(Tensor::scalar_i64(x)); };
    Value* place = counted(size, c.b);
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

/// Zeros of the type of x where the node has no zero point.
Value* integer_zero(OpContext& c, DType dtype, int64_t axis, size_t rank) {
  return c.given(2) ? along(c, c.in[2], axis, rank) : c.b.constant(Tensor::zeros(dtype, {}));
}

/// (x - zero point) * scale
void dequantize(OpContext& c) {
  c.expect_inputs(2, 3);
  const size_t rank = c.rank(0);
  const int64_t axis = scale_axis(c, rank);
  const DType dtype = c.in[1]->type.dtype, from = c.in[0]->type.dtype;
  Value* scale = along(c, cast_to(c.in[1], kF32, c.b), axis, rank);
  if (c.narrow_type(0) == 0 && from.is_integer() && (from.bits <= 16 || from == kI32)) {
    Value* y =
        c.b.add("dequantize_linear", {c.in[0], folded(scale, c.b), folded(integer_zero(c, from, axis, rank), c.b)});
    c.out = {cast_to(y, dtype, c.b)};
    return;
  }
  Value* x = as_numbers(c, 0);
  if (Value* zero = zero_point(c, axis, rank)) x = c.b.add("sub", {x, zero});
  c.out = {cast_to(c.b.add("mul", {x, scale}), dtype, c.b)};
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
  Value *x = cast_to(c.in[0], kF32, c.b), *scale = along(c, cast_to(c.in[1], kF32, c.b), axis, rank);
  if (narrow == 0) {
    Value* zero = integer_zero(c, *dtype, axis, rank);
    c.out = {c.b.add("quantize_linear", {x, folded(scale, c.b), folded(zero, c.b)})};
    return;
  }
  x = c.b.add("div", {x, scale});
  const bool floats = narrow != 0 && type_name(narrow).starts_with("FLOAT");
  if (!floats) x = c.b.add("round", {x});
  if (Value* zero = zero_point(c, axis, rank)) x = c.b.add("add", {x, zero});
  c.out = {folded(narrowed(x, narrow, !floats || c.integer("saturate", 1) != 0, "up", c.b), c.b)};
  c.importer().mark_narrow(c.out[0], narrow);
}

void dynamic_quantize(OpContext& c) {
  c.expect_inputs(1, 1);
  c.rank(0);
  c.out = dynamically_quantized(c.in[0], c.b);
}

/// Integers of 8 bits multiply to sums of 32 bits.
void matmul_integer(OpContext& c) {
  c.expect_inputs(2, 4);
  if (c.rank(0) < 2 || c.rank(1) < 2) c.refuse("vectors are not supported");
  c.out = {c.b.add("matmul_integer", {c.in[0], c.in[1], of_matrix(zero_or(c, 0, 2), false, c.b),
                                      of_matrix(zero_or(c, 1, 3), true, c.b)})};
}

void qlinear_matmul(OpContext& c) {
  c.expect_inputs(8, 8);
  if (c.rank(0) < 2 || c.rank(3) < 2) c.refuse("vectors are not supported");
  const auto operand = [&](size_t x, bool columns) {
    return dequantized(c, x, of_matrix(c.in[x + 1], columns, c.b), of_matrix(c.in[x + 2], columns, c.b));
  };
  c.out = {quantized(c, c.b.add("matmul", {operand(0, false), operand(3, true)}), 6)};
}

void conv_integer(OpContext& c) {
  c.expect_inputs(2, 4);
  Value* x_zero = folded(reshape_to(zero_or(c, 0, 2), {}, c.b), c.b);
  c.out = {convolved(c, c.in[0], c.in[1], nullptr, {x_zero, of_channels(zero_or(c, 1, 3), 1, 0, c.b)})};
}

void qlinear_conv(OpContext& c) {
  c.expect_inputs(8, 9);
  const size_t rank = c.rank(0);
  const auto one = [&](size_t i) { return folded(reshape_to(c.in[i], {}, c.b), c.b); };
  const auto each = [&](size_t i) { return of_channels(c.in[i], rank, 0, c.b); };
  Value* bias = nullptr;
  if (c.given(8)) {  // integers by the product of both scales
    Value* scale = c.b.add("mul", {cast_to(one(1), kF32, c.b), cast_to(of_channels(c.in[4], 1, 0, c.b), kF32, c.b)});
    bias = folded(c.b.add("mul", {cast_to(c.in[8], kF32, c.b), scale}), c.b);
  }
  Value* y = convolved(c, dequantized(c, 0, one(1), one(2)), dequantized(c, 3, each(4), each(5)), bias);
  c.out = {quantized(c, y, 6)};
}

/// Zero points of `blocks` blocks in each of so many rows, two of 4 bits in a byte; the rows begin with whole bytes.
Value* unpacked_zeros(OpContext& c, Value* zeros, int64_t rows, int64_t blocks) {
  Builder& b = c.b;
  const auto as = [&](Value* x, std::vector<int64_t> dims) {
    return folded(b.add("reshape", {x, b.constant(Tensor::of_i64(dims))}), b);
  };
  Value* low = folded(b.add("bit_and", {zeros, b.number(15, kU8)}), b);
  Value* high = folded(b.add("shift_right", {zeros, b.number(4, kU8)}), b);
  Value* pairs = folded(b.add("concat", {as(low, {-1, 1}), as(high, {-1, 1})}, {{"axis", int64_t{1}}}), b);
  return folded(b.add("slice", {as(pairs, {rows, -1}), b.ints({0, 0}), b.ints({rows, blocks})}), b);
}

/// The right operand as codes of few bits, by rows of the result's columns.
void matmul_of_few_bits(OpContext& c) {
  c.expect_inputs(3, 6);
  const int64_t k = c.integer("K", 0), n = c.integer("N", 0), bits = c.integer("bits", 4);
  const int64_t block = c.integer("block_size", 0);
  if (k < 1 || n < 1 || block < 1)
    fail(ErrorKind::invalid_model, "", "K, N and block_size must be positive, found {}, {} and {}", k, n, block);
  if (bits != 4 && bits != 8) c.refuse("weights of {} bits are not supported", bits);
  if (c.given(4)) c.refuse("an order of the inputs (g_idx) is not supported");
  const int64_t blocks = (k - 1) / block + 1;
  const auto rows_of = [&](Value* x, int64_t columns) {
    return folded(c.b.add("reshape", {x, c.b.constant(Tensor::of_i64({n, columns}))}), c.b);
  };
  Value* zero = c.b.scalar(bits == 4 ? 8 : 128);
  if (c.given(3)) {
    const bool packed = c.in[3]->type.dtype == kU8;
    zero = packed && bits == 4 ? unpacked_zeros(c, c.in[3], n, blocks) : rows_of(c.in[3], blocks);
    zero = folded(cast_to(zero, kF32, c.b), c.b);
  }
  Value* scale = rows_of(folded(cast_to(c.in[2], kF32, c.b), c.b), blocks);
  Value* weights = c.b.add("dequantize_blocks", {rows_of(c.in[1], -1), scale, zero},
                           {{"bits", bits}, {"block", block}, {"columns", k}});
  const DType dtype = c.in[0]->type.dtype;
  Value* y = c.b.add("matmul", {cast_to(c.in[0], kF32, c.b), weights}, {{"transpose_b", true}});
  if (c.given(5)) y = c.b.add("add", {y, cast_to(c.in[5], kF32, c.b)});
  c.out = {cast_to(y, dtype, c.b)};
}

constexpr Row kQuantisationRows[] = {
    {"ConvInteger", conv_integer},
    {"DequantizeLinear", dequantize, nullptr, {}, 0, false, Row::Narrow::knows},
    {"DynamicQuantizeLinear", dynamic_quantize},
    {"MatMulInteger", matmul_integer},
    {"MatMulNBits", matmul_of_few_bits, nullptr, "com.microsoft"},
    {"QLinearConv", qlinear_conv},
    {"QLinearMatMul", qlinear_matmul},
    {"QuantizeLinear", quantize, nullptr, {}, 0, false, Row::Narrow::knows},
};

}  // namespace

Value* of_matrix(Value* each, bool columns, Builder& b) {
  if (each->type.shape.rank() == 1 && each->type.shape.dims[0] == Dim(1)) return folded(reshape_to(each, {}, b), b);
  return !columns && each->type.shape.rank() == 1 ? folded(expand_dims(each, {1}, b), b) : each;
}

Value* of_channels(Value* x, size_t rank, size_t axis, Builder& b) {
  if (x->type.shape.rank() == 0 || x->type.shape.dims[0] == Dim(1)) return folded(reshape_to(x, {}, b), b);
  std::vector<NewDim> dims(rank, NewDim{1, -1});
  dims[axis] = {-1, 0};
  return folded(reshape_to(x, dims, b), b);
}

Value* zero_or(OpContext& c, size_t x, size_t zero) {
  return c.given(zero) ? c.in[zero] : c.b.constant(Tensor::zeros(c.in[x]->type.dtype, {}));
}

Value* dequantized(OpContext& c, size_t x, Value* scale, Value* zero) {
  return c.b.add("dequantize_linear", {c.in[x], folded(cast_to(scale, kF32, c.b), c.b), zero});
}

Value* quantized(OpContext& c, Value* y, size_t scale) {
  Value* zero = zero_or(c, 0, scale + 1);
  const DType dtype = zero->type.dtype;
  if (!dtype.is_integer() || dtype.bits != 8) c.refuse("results of {} are not supported", to_string(dtype));
  const auto one = [&](Value* x) { return folded(reshape_to(x, {}, c.b), c.b); };
  return c.b.add("quantize_linear", {y, one(cast_to(c.in[scale], kF32, c.b)), one(zero)});
}

std::vector<Value*> dynamically_quantized(Value* x, Builder& b) {
  std::vector<int64_t> axes(x->type.shape.rank());
  for (size_t i = 0; i < axes.size(); ++i) axes[i] = static_cast<int64_t>(i);
  auto number = [&](float value) { return b.constant(Tensor::scalar_f32(value)); };
  Value* low = b.add("minimum", {b.add("reduce_min", {x}, {{"axes", axes}}), number(0)});
  Value* high = b.add("maximum", {b.add("reduce_max", {x}, {{"axes", axes}}), number(0)});
  Value* scale = b.add("div", {b.add("sub", {high, low}), number(255)});
  Value* zero =
      b.add("round", {b.add("clip", {b.add("div", {b.add("neg", {low}), scale})}, {{"low", 0.0}, {"high", 255.0}})});
  zero = cast_to(zero, kU8, b);
  return {b.add("quantize_linear", {x, scale, zero}), scale, zero};
}

std::span<const Row> quantisation_rows() { return kQuantisationRows; }

}  // namespace cairn::onnx
