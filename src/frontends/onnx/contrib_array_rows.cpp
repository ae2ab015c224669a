// Operators of com.microsoft that move, compare or resample elements, and products with numbers of unusual types.
#include <array>
#include <limits>

#include "frontends/fold.h"
#include "frontends/onnx/attention.h"
#include "frontends/reshape.h"
#include "ir/expression.h"

namespace cairn::onnx {
namespace {

/// The operator of ONNX with the target's name, as its version `kOpset` means it.
template <int64_t kOpset>
void like_onnx(OpContext& c) {
  c.out = as_operator(c, {}, c.target, c.in.any(), kOpset);
}

/// The different numbers in the order of their first places; ONNX's operator gives those places as well.
void unique_numbers(OpContext& c) {
  c.expect_inputs(1, 1);
  Value* flat = c.b.add("reshape", {c.in[0], c.b.ints({-1})});
  auto* made = c.b.add_node(op_named("unique"), {flat});
  Value *places = cast_to(made->result(1), kI64, c.b),
        *ones = c.b.add("broadcast_to", {c.b.constant(Tensor::scalar_i64(1)), c.b.add("shape_of", {flat})});
  Value* counts = c.b.add("scatter_nd", {expand_dims(places, {1}, c.b), ones, c.b.add("shape_of", {made->result(0)})});
  c.out = {made->result(0), places, counts};
}

/// All parts of a length along a dim, their elements in a new last dim.
void unfold_tensor(OpContext& c) {
  c.expect_inputs(1, 1);
  Builder& b = c.b;
  const int64_t axis = normal_axis(c.integer("dim", -1), c.rank(0)), size = c.integer("size"),
                step = c.integer("step", 1);
  if (size < 1 || step < 1) fail(ErrorKind::invalid_model, "", "size is {}, step {}", size, step);
  const auto number = [&](int64_t x) { return b.constant(Tensor::scalar_i64(x)); };
  Value* room = b.add("add", {scalar_dim(c.in[0], static_cast<size_t>(axis), b), number(step - size)});
  const Var first(b, counted(folded(b.add("floor_div", {room, number(step)}), b), b)),
      within(b, counted(number(size), b));
  const Var places = Var(b, expand_dims((first * first.number(static_cast<double>(step))).value, {1}, b)) + within;
  Value* y = b.add("gather", {c.in[0], places.value}, {{"axis", axis}});
  std::vector<int64_t> order;
  for (size_t i = 0; i <= c.rank(0); ++i)
    if (static_cast<int64_t>(i) != axis + 1) order.push_back(static_cast<int64_t>(i));
  order.push_back(axis + 1);
  c.out = {transposed(y, order, b)};
}

/// The scores of tokens that would repeat an n-gram of the row become -infinity.
void ngram_repeat_block(OpContext& c) {
  c.expect_inputs(2, 2);
  Builder& b = c.b;
  constexpr int64_t kMost = 64;
  const int64_t n = c.integer("ngram_size");
  if (n < 1 || n > kMost) c.refuse("n-grams of {} are not supported", n);
  Value* ids = cast_to(c.in[0], kI64, b);
  const auto columns = [&](Value* x, Value* begin, Value* end) {
    return b.add("slice", {x, joined({b.ints({0}), begin}, b), joined({b.ints({kToTheEnd}), end}, b)});
  };
  Value* count = b.add("maximum", {b.add("sub", {dim_of(ids, 1, b), b.ints({n - 1})}), b.ints({0})});
  Value* repeats = nullptr;
  for (int64_t k = 0; k + 1 < n; ++k) {
    Value* last = columns(ids, b.ints({k + 1 - n}), b.ints({k + 2 == n ? kToTheEnd : k + 2 - n}));
    Value* same = b.add("equal", {columns(ids, b.ints({k}), b.add("add", {count, b.ints({k})})), last});
    repeats = repeats == nullptr ? same : b.add("and", {repeats, same});
  }
  Value* next = columns(ids, b.ints({n - 1}), b.ints({kToTheEnd}));
  const Var scores(b, c.in[1]);
  Value* least =
      b.add("broadcast_to", {scores.number(-std::numeric_limits<double>::infinity()).value, b.add("shape_of", {next})});
  if (repeats != nullptr)
    least = b.add("select", {repeats, least, scores.number(std::numeric_limits<double>::infinity()).value});
  c.out = {b.add("scatter_elements", {c.in[1], next, least}, {{"axis", int64_t{1}}, {"mode", std::string("min")}})};
}

/// Boxes of images with the channels first.
void crop_and_resize(OpContext& c) {
  c.expect_inputs(4, 4);
  if (c.rank(0) != 4) fail(ErrorKind::invalid_model, "", "images have {} dims, expected 4", c.rank(0));
  Value* image = transposed(c.in[0], {0, 2, 3, 1}, c.b);
  Value* y = c.b.add("crop_and_resize", {image, c.in[1], c.in[2], c.in[3]},
                     {{"mode", c.text("mode", "bilinear")}, {"outside", c.real("extrapolation_value", 0)}});
  c.out = {transposed(y, {0, 3, 1, 2}, c.b)};
}

/// Sums of 32 bits, which wrap.
void matmul_of_words(OpContext& c) {
  c.expect_inputs(2, 2);
  Value* y = as_operator(c, {}, "MatMul", {cast_to(c.in[0], kF64, c.b), cast_to(c.in[1], kF64, c.b)}, 13).at(0);
  c.out = {cast_to(cast_to(y, kI64, c.b), c.in[0]->type.dtype.kind == DType::Kind::signed_int ? kI32 : kU32, c.b)};
}

/// Weights [N, K] as numbers of a table of 16, two in a byte with the first one high, times the size of their block.
void matmul_of_tables(OpContext& c) {
  static const std::vector<float> kFp4{
      0,    0.0052083333f,  0.66666667f,  1,  0.33333333f,  0.5f,  0.16666667f,  0.25f,
      -0.f, -0.0052083333f, -0.66666667f, -1, -0.33333333f, -0.5f, -0.16666667f, -0.25f};
  static const std::vector<float> kNf4{
      -1,          -0.69619280f, -0.52507305f, -0.39491749f, -0.28444138f, -0.18477343f, -0.09105004f, 0,
      0.07958030f, 0.16093020f,  0.24611230f,  0.33791524f,  0.44070983f,  0.56261700f,  0.72295684f,  1};
  c.expect_inputs(3, 3);
  Builder& b = c.b;
  const int64_t rows = c.integer("N"), columns = c.integer("K"), block = c.integer("block_size"),
                kind = c.integer("quant_type");
  int64_t count = 0;
  if (rows < 1 || columns < 1 || block < 16 || __builtin_mul_overflow(rows, columns, &count) ||
      count > int64_t{1} << 40)
    fail(ErrorKind::invalid_model, "", "N {}, K {} and block_size {} do not fit", rows, columns, block);
  if (c.integer("transB", 1) == 0 || (kind != 0 && kind != 1))
    c.refuse("quant_type {} or transB 0 is not supported", kind);
  Value* bytes = b.add("reshape", {c.in[1], b.ints({-1, 1})});
  Value* both = b.add(
      "concat",
      {b.add("shift_right", {bytes, b.scalar_like(bytes, 4)}), b.add("bit_and", {bytes, b.scalar_like(bytes, 15)})},
      {{"axis", int64_t{1}}});
  Value* table = b.constant(Tensor::of(kF32, {16}, kind == 0 ? kFp4 : kNf4));
  Value* numbers = b.add("gather", {table, cast_to(b.add("reshape", {both, b.ints({-1})}), kI64, b)});
  numbers = b.add("slice", {numbers, b.ints({0}), b.ints({count})});
  const int64_t blocks = (count + block - 1) / block;
  numbers = b.add("pad", {numbers, b.constant(Tensor::of<int64_t>(kI64, {1, 2}, {0, blocks * block - count}))});
  Value* sizes = b.add("reshape", {cast_to(c.in[2], kF32, b), b.ints({blocks, 1})});
  Value* weights = b.add("mul", {b.add("reshape", {numbers, b.ints({blocks, block})}), sizes});
  weights = b.add("slice", {b.add("reshape", {weights, b.ints({-1})}), b.ints({0}), b.ints({count})});
  weights = cast_to(b.add("reshape", {weights, b.ints({rows, columns})}), c.in[0]->type.dtype, b);
  c.out = {b.add("matmul", {c.in[0], weights}, {{"transpose_b", true}})};
}

/// MurmurHash3 of 32 bits of each element of 4 or 8 bytes, step by step on u32.
Value* murmur3_of_words(OpContext& c, double seed) {
  Builder& b = c.b;
  const auto number = [&](double x) { return b.number(x, kU32); };
  const auto times = [&](Value* x, double by) { return b.add("mul", {x, number(by)}); };
  const auto exclusive = [&](Value* x, Value* y) { return b.add("bit_xor", {x, y}); };
  const auto turned = [&](Value* x, int by) {
    return b.add("bit_or", {b.add("shift_left", {x, number(by)}), b.add("shift_right", {x, number(32 - by)})});
  };
  const int64_t words = c.in[0]->type.dtype.bits / 32;
  Value* all = b.add("reshape", {c.in[0], b.ints({-1})});
  all = reshape_to(b.add("bitcast", {all}, {{"dtype", kU32}}), {{-1}, {words}}, b);
  Value* h = number(seed);
  for (int64_t i = 0; i < words; ++i) {
    Value* word = b.add("slice", {all, b.ints({0, i}), b.ints({kToTheEnd, i + 1})});
    h = exclusive(h, times(turned(times(word, 0xcc9e2d51), 15), 0x1b873593));
    h = b.add("add", {times(turned(h, 13), 5), number(0xe6546b64)});
  }
  h = exclusive(h, number(static_cast<double>(4 * words)));
  const auto mixed = [&](int by) { return exclusive(h, b.add("shift_right", {h, number(by)})); };
  h = times(mixed(16), 0x85ebca6b);
  h = times(mixed(13), 0xc2b2ae35);
  return b.add("reshape", {mixed(16), b.add("shape_of", {c.in[0]})});
}

/// As u32, or as i32 unless `positive`.
void murmur3(OpContext& c) {
  c.expect_inputs(1, 1);
  Builder& b = c.b;
  const DType dtype = c.in[0]->type.dtype;
  const auto seed = static_cast<uint32_t>(c.integer("seed", 0));
  constexpr int64_t kAll = int64_t{1} << 32;
  if (dtype != kString && dtype.bits != 32 && dtype.bits != 64)
    c.refuse("elements of {} are not supported", to_string(dtype));
  Value* h =
      dtype == kString
          ? cast_to(
                b.add("text_bucket", {c.in[0]},
                      {{"method", std::string("murmur3")}, {"buckets", kAll}, {"key", std::vector<int64_t>{seed, 0}}}),
                kU32, b)
          : murmur3_of_words(c, seed);
  c.out = {c.integer("positive", 1) != 0 ? h : b.add("bitcast", {h}, {{"dtype", kI32}})};
}

constexpr Row kContribArrayRows[] = {
    {"CropAndResize", crop_and_resize, nullptr, kMicrosoft},
    {"GatherND", like_onnx<13>, "GatherND", kMicrosoft},
    {"MatMulBnb4", matmul_of_tables, nullptr, kMicrosoft},
    {"MatMulInteger16", matmul_of_words, nullptr, kMicrosoft},
    {"MurmurHash3", murmur3, nullptr, kMicrosoft},
    {"NGramRepeatBlock", ngram_repeat_block, nullptr, kMicrosoft},
    {"Pad", like_onnx<13>, "Pad", kMicrosoft},
    {"Range", like_onnx<11>, "Range", kMicrosoft},
    {"UnfoldTensor", unfold_tensor, nullptr, kMicrosoft},
    {"Unique", unique_numbers, nullptr, kMicrosoft},
};

}  // namespace

std::span<const Row> contrib_array_rows() { return kContribArrayRows; }

}  // namespace cairn::onnx
