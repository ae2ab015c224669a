// Quantised operators of com.microsoft, as ONNX Runtime's quantiser writes them: an operator of floats between integers.
#include "frontends/fold.h"
#include "frontends/onnx/narrow.h"
#include "frontends/onnx/quantisation.h"
#include "frontends/reshape.h"

namespace cairn::onnx {
namespace {

constexpr int64_t kFloatSet = 13;  // the operator set whose meaning the operators of floats have

Value* only_one(Value* x, Builder& b) { return folded(reshape_to(x, {}, b), b); }

/// The operand at `x` as floats; one scale and one zero point, which may be left out, follow it.
Value* floats_of(OpContext& c, size_t x) {
  return dequantized(c, x, only_one(c.in[x + 1], c.b), only_one(zero_or(c, x, x + 2), c.b));
}

/// Images with their channels last, if the attribute says so, as they stand in ONNX, and back.
Value* image_order(OpContext& c, Value* x, bool back) {
  if (c.integer("channels_last", 0) == 0) return x;
  std::vector<int64_t> order{0};
  const auto rank = static_cast<int64_t>(c.rank(0));
  if (!back) order.push_back(rank - 1);
  for (int64_t i = 1; i + 1 < rank; ++i) order.push_back(back ? i + 1 : i);
  if (back) order.push_back(1);
  return transposed(x, order, c.b);
}

/// The target of one operand.
void qlinear_unary(OpContext& c) {
  c.expect_inputs(2, 5);
  Value* x = image_order(c, floats_of(c, 0), false);
  Value* y = as_operator(c, {}, c.target, {x}, c.integer("opset", kFloatSet)).at(0);
  c.out = {quantized(c, image_order(c, y, true), 3)};
}

/// The target of two operands.
void qlinear_binary(OpContext& c) {
  c.expect_inputs(2, 8);
  c.out = {quantized(c, as_operator(c, {}, c.target, {floats_of(c, 0), floats_of(c, 3)}, kFloatSet).at(0), 6)};
}

void qlinear_where(OpContext& c) {
  c.expect_inputs(2, 9);
  Value* y = quantized(c, c.b.add("select", {c.in[0], floats_of(c, 1), floats_of(c, 4)}), 7);
  c.out = {y};
}

/// The scale and zero point of the result come first, then each part with its own.
void qlinear_concat(OpContext& c) {
  c.expect_inputs(5, c.in.size());
  std::vector<Value*> parts;
  for (size_t i = 2; i + 1 < c.in.size(); i += 3) parts.push_back(floats_of(c, i));
  c.out = {quantized(c, as_operator(c, {}, "Concat", parts, kFloatSet).at(0), 0)};
}

/// alpha * A * B + C; C holds integers by the product of both scales. Without a scale of its own the result is of floats.
void quantised_gemm(OpContext& c) {
  c.expect_inputs(6, 9);
  Builder& b = c.b;
  const bool turn_a = c.integer("transA", 0) != 0, turn_b = c.integer("transB", 0) != 0;
  const auto of_b = [&](size_t i, size_t rank) {
    return of_channels(c.in[i], rank, turn_b && rank == 2 ? 0 : rank - 1, b);
  };
  Value *left = floats_of(c, 0), *right = dequantized(c, 3, of_b(4, 2), of_b(5, 2));
  Value* y = b.add("matmul", {left, right}, {{"transpose_a", turn_a}, {"transpose_b", turn_b}});
  if (c.given(6)) {
    Value* scale = b.add("mul", {only_one(c.in[1], b), of_b(4, 1)});
    y = b.add("add", {y, folded(b.add("mul", {cast_to(c.in[6], kF32, b), scale}), b)});
  }
  if (const double alpha = c.real("alpha", 1); alpha != 1) y = b.add("mul", {y, b.scalar_like(y, alpha)});
  c.out = {c.given(7) ? quantized(c, y, 7) : y};
}

Value* with_bias(OpContext& c, Value* y, size_t bias) { return c.given(bias) ? c.b.add("add", {y, c.in[bias]}) : y; }

void matmul_integer_to_float(OpContext& c) {
  c.expect_inputs(4, 7);
  const auto operand = [&](size_t x, bool columns) {
    return dequantized(c, x, of_matrix(c.in[x + 2], columns, c.b), of_matrix(zero_or(c, x, x + 4), columns, c.b));
  };
  c.out = {with_bias(c, c.b.add("matmul", {operand(0, false), operand(1, true)}), 6)};
}

/// The left operand is of floats and quantised by what it holds.
void dynamic_quantize_matmul(OpContext& c) {
  c.expect_inputs(3, 5);
  Builder& b = c.b;
  c.rank(0);
  const std::vector<Value*> left = dynamically_quantized(c.in[0], b);
  Value* sums = b.add("matmul_integer", {left[0], c.in[1], left[2], of_matrix(zero_or(c, 1, 3), true, b)});
  Value* scale = b.add("mul", {left[1], of_matrix(c.in[2], true, b)});
  c.out = {with_bias(c, b.add("mul", {cast_to(sums, kF32, b), scale}), 4)};
}

/// Attention of an input and weights of integers.
void quantised_attention(OpContext& c) {
  c.expect_inputs(5, 9);
  Builder& b = c.b;
  Value* x = dequantized(c, 0, only_one(c.in[3], b), only_one(zero_or(c, 0, 6), b));
  Value* weights = dequantized(c, 1, of_matrix(c.in[4], true, b), of_matrix(zero_or(c, 1, 7), true, b));
  const auto maybe = [&](size_t i) { return c.given(i) ? c.in[i] : nullptr; };
  std::vector<Value*> inputs{x, weights, c.in[2], maybe(5), maybe(8)};
  while (inputs.back() == nullptr) inputs.pop_back();
  c.out = as_operator(c, kMicrosoft, "Attention", inputs, 1);
}

/// EmbedLayerNormalization whose tables, scale and offset are integers; their scales come at 8, their zero points at 13.
void quantised_embed_layer_norm(OpContext& c) {
  c.expect_inputs(18, 18);
  std::vector<Value*> inputs;
  for (size_t i = 0; i < 8; ++i) {
    Value* x = c.given(i) ? c.in[i] : nullptr;
    if (i >= 2 && i < 7 && x != nullptr) x = dequantized(c, i, only_one(c.in[i + 6], c.b), only_one(c.in[i + 11], c.b));
    inputs.push_back(x);
  }
  if (inputs.back() == nullptr) inputs.pop_back();
  c.out = as_operator(c, kMicrosoft, "EmbedLayerNormalization", inputs, 1);
}

/// LSTM whose weights are integers [directions, inputs, 4 * hidden] with a scale for each direction, or also for each column. The
/// sequence is quantised as a whole by what it holds; the state stays in floats.
void dynamic_quantize_lstm(OpContext& c) {
  c.expect_inputs(3, 12);
  Builder& b = c.b;
  const auto weights = [&](size_t x, size_t scale) {
    const auto each = [&](Value* v) {
      v = cast_to(v, kF32, b);
      return v->type.shape.rank() == 1   ? reshape_to(v, {{-1, 0}, {1}, {1}}, b)
             : v->type.shape.rank() == 2 ? expand_dims(v, {1}, b)
                                         : v;
    };
    Value* numbers = b.add("sub", {cast_to(c.in[x], kF32, b), each(zero_or(c, x, scale + 1))});
    return transposed(b.add("mul", {numbers, each(c.in[scale])}), {0, 2, 1}, b);
  };
  c.rank(0);
  const std::vector<Value*> x = dynamically_quantized(c.in[0], b);
  std::vector<Value*> inputs{b.add("dequantize_linear", x), weights(1, 8), weights(2, 10)};
  for (size_t i = 3; i < 8; ++i) inputs.push_back(c.given(i) ? c.in[i] : nullptr);
  while (inputs.back() == nullptr) inputs.pop_back();
  c.out = as_operator(c, {}, "LSTM", inputs, 14);
}

/// Rows of a table of few bits, in blocks along its last axis.
void gather_of_few_bits(OpContext& c) {
  c.expect_inputs(3, 4);
  Builder& b = c.b;
  const int64_t rank = static_cast<int64_t>(c.rank(0)), block = c.integer("block_size", 128),
                bits = c.integer("bits", 4);
  if (normal_axis(c.integer("gather_axis", 0), c.rank(0)) != 0 ||
      normal_axis(c.integer("quantize_axis", 1), c.rank(0)) != rank - 1 || rank != 2)
    c.refuse("only rows of a matrix with blocks along its columns can be gathered");
  if (block < 1 || (bits != 4 && bits != 8)) c.refuse("blocks of {} with {} bits are not supported", block, bits);
  const auto rows = [&](size_t input) { return b.add("gather", {c.in[input], c.in[1]}); };
  const int32_t narrow = c.narrow_type(0);
  const bool packed = narrow == 0 && bits == 4;
  const auto unpacked = [&](Value* x) {  // two numbers from each byte
    if (!packed) return x;
    const auto last = static_cast<int64_t>(x->type.shape.rank());
    Value *low = b.add("bit_and", {x, b.number(15, kU8)}), *high = b.add("shift_right", {x, b.number(4, kU8)});
    Value* pairs = b.add("concat", {expand_dims(low, {last}, b), expand_dims(high, {last}, b)}, {{"axis", last}});
    std::vector<NewDim> dims;
    for (int i = 0; i + 1 < last; ++i) dims.push_back({-1, i});
    dims.push_back({2 * x->type.shape.dims.back().size});
    return reshape_to(pairs, dims, b);
  };
  const auto floats = [&](Value* x, int32_t type) { return type != 0 ? widened(x, type, b) : cast_to(x, kF32, b); };
  if (!c.in[0]->type.is_static()) c.refuse("the sizes of the table must be known");
  const int64_t width = c.in[0]->type.shape.dims[1].size * (packed ? 2 : 1);
  std::vector<int64_t> of_block(static_cast<size_t>(width));
  for (size_t i = 0; i < of_block.size(); ++i) of_block[i] = static_cast<int64_t>(i) / block;
  const auto spread = [&](Value* x) {
    return b.add("gather", {x, b.ints(of_block)}, {{"axis", static_cast<int64_t>(x->type.shape.rank()) - 1}});
  };
  Value* x = floats(unpacked(rows(0)), narrow);
  if (c.given(3))
    x = b.add("sub", {x, spread(floats(unpacked(rows(3)), c.narrow_type(3)))});
  else if (narrow == 0)
    x = b.add("sub", {x, b.scalar_like(x, bits == 4 ? 8 : 128)});
  Value* y = b.add("mul", {x, spread(cast_to(rows(2), kF32, b))});
  c.out = {cast_to(y, c.in[2]->type.dtype, b)};
}

void own_quantisation(OpContext& c) { c.out = as_operator(c, {}, c.target, c.in.any(), 21); }

constexpr Row kContribQuantisedRows[] = {
    {"DequantizeLinear", own_quantisation, "DequantizeLinear", kMicrosoft, 0, false, Row::Narrow::knows},
    {"DynamicQuantizeLSTM", dynamic_quantize_lstm, nullptr, kMicrosoft},
    {"DynamicQuantizeMatMul", dynamic_quantize_matmul, nullptr, kMicrosoft},
    {"GatherBlockQuantized", gather_of_few_bits, nullptr, kMicrosoft, 0, false, Row::Narrow::knows},
    {"MatMulIntegerToFloat", matmul_integer_to_float, nullptr, kMicrosoft},
    {"QAttention", quantised_attention, nullptr, kMicrosoft},
    {"QEmbedLayerNormalization", quantised_embed_layer_norm, nullptr, kMicrosoft},
    {"QGemm", quantised_gemm, nullptr, kMicrosoft},
    {"QLinearAdd", qlinear_binary, "Add", kMicrosoft},
    {"QLinearAveragePool", qlinear_unary, "AveragePool", kMicrosoft},
    {"QLinearConcat", qlinear_concat, nullptr, kMicrosoft},
    {"QLinearGlobalAveragePool", qlinear_unary, "GlobalAveragePool", kMicrosoft},
    {"QLinearLeakyRelu", qlinear_unary, "LeakyRelu", kMicrosoft},
    {"QLinearMul", qlinear_binary, "Mul", kMicrosoft},
    {"QLinearReduceMean", qlinear_unary, "ReduceMean", kMicrosoft},
    {"QLinearSigmoid", qlinear_unary, "Sigmoid", kMicrosoft},
    {"QLinearSoftmax", qlinear_unary, "Softmax", kMicrosoft},
    {"QLinearWhere", qlinear_where, nullptr, kMicrosoft},
    {"QuantizeLinear", own_quantisation, "QuantizeLinear", kMicrosoft, 0, false, Row::Narrow::knows},
};

}  // namespace

std::span<const Row> contrib_quantised_rows() { return kContribQuantisedRows; }

}  // namespace cairn::onnx
