// What is computed again instead of kept: which nodes are, and that results stay what they were.
#include "plan/repeat_cheap.h"

#include <gtest/gtest.h>

#include <random>

#include "ir/evaluate.h"
#include "ir/text.h"

namespace cairn {
namespace {

/// "add mul": the ops of the function after the pass. Its results must be those from before.
std::string ops_after(const std::string& nodes, int64_t size = 128) {
  const std::string text = fmt::format(
      "module @m {{ func @main(%x: f32[{0}, {0}], %w: f32[{0}, {0}]) -> (%y: f32[{0}, {0}]) {{\n"
      "%one = constant {{value = f32[] (1.0)}}\n{1}\nreturn %y }} }}",
      size, nodes);
  Module module = parse(text);
  std::mt19937 random(3);
  std::vector<HostValue> inputs;
  for (const auto& param : module.main().body.params) {
    Tensor tensor = Tensor::uninitialized(kF32, param->type.shape.sizes());
    for (int64_t i = 0; i < tensor.count(); ++i)
      static_cast<float*>(tensor.mutable_data())[i] = std::uniform_real_distribution<float>(-1, 1)(random);
    inputs.push_back({tensor, nullptr});
  }
  const auto before = evaluate(module.main().body, inputs);
  repeat_cheap(module.main().body);
  verify(module);
  const auto after = evaluate(module.main().body, inputs);
  EXPECT_TRUE(before[0].tensor.same_bits(after[0].tensor));
  std::string ops;
  for (const auto& node : module.main().body.nodes)
    if (!node->is("constant")) ops += (ops.empty() ? "" : " ") + std::string(node->op->name);
  return ops;
}

const char* const kSquare = R"(
  %s = square %x
  %p = mul %s, %x
  %h = tanh %p
  %m = matmul %h, %w
  %g = mul %m, %x
  %t = mul %g, %s
  %y = add %t, %h)";

TEST(RepeatCheap, ASquareIsComputedAgainWhereItsInputIsUsedAgain) {
  EXPECT_EQ(ops_after(kSquare), "square mul tanh matmul mul square mul add");
}

TEST(RepeatCheap, SmallResultsAreKept) { EXPECT_EQ(ops_after(kSquare, 64), "square mul tanh matmul mul mul add"); }

TEST(RepeatCheap, ANodeOfWhichTheInputIsGoneIsKept) {
  EXPECT_EQ(ops_after(R"(
  %e = exp %x
  %s = square %e
  %p = mul %s, %x
  %m = matmul %p, %w
  %y = mul %m, %s)"),
            "exp square mul matmul mul");
}

TEST(RepeatCheap, ChainsAreRepeatedFromWhatIsKept) {
  EXPECT_EQ(ops_after(R"(
  %h = tanh %x
  %o = add %h, %one
  %c = mul %o, %x
  %m = matmul %c, %w
  %g = mul %m, %h
  %y = mul %g, %o)"),
            "tanh add mul matmul mul add mul");
  EXPECT_EQ(ops_after(R"(
  %h = tanh %x
  %n = neg %h
  %o = add %n, %one
  %c = mul %o, %x
  %m = matmul %c, %w
  %g = mul %m, %h
  %y = mul %g, %o)"),
            "tanh neg add mul matmul mul neg add mul");
}

TEST(RepeatCheap, RoundingsAreRepeatedWithWhatTheyRound) {
  EXPECT_EQ(ops_after(R"(
  %h = tanh %x
  %h16 = cast %h {dtype = bf16}
  %h32 = cast %h16 {dtype = f32}
  %o = add %h32, %one
  %o16 = cast %o {dtype = bf16}
  %o32 = cast %o16 {dtype = f32}
  %c = mul %o32, %x
  %m = matmul %c, %w
  %g = mul %m, %h32
  %y = mul %g, %o32)"),
            "tanh cast cast add cast cast mul matmul mul add cast cast mul");
}

TEST(RepeatCheap, WhatCostsMoreIsKept) {
  EXPECT_EQ(ops_after(R"(
  %h = tanh %x
  %c = mul %h, %x
  %m = matmul %c, %w
  %g = mul %m, %x
  %y = mul %g, %h)"),
            "tanh mul matmul mul mul");
}

TEST(RepeatCheap, UsersWithoutAnythingBetweenShareTheNode) {
  EXPECT_EQ(ops_after(R"(
  %s = square %x
  %p = mul %s, %x
  %h = tanh %p
  %g = mul %h, %x
  %y = mul %g, %s)"),
            "square mul tanh mul mul");
  EXPECT_EQ(ops_after(R"(
  %m = matmul %x, %w
  %s = square %x
  %p = mul %s, %m
  %y = add %p, %s)"),
            "matmul square mul add");
}

TEST(RepeatCheap, WhatAnotherStepReadsIsThereAnyway) {
  EXPECT_EQ(ops_after(R"(
  %s = square %x
  %p = mul %s, %x
  %q = matmul %s, %w
  %m = matmul %p, %q
  %g = mul %m, %x
  %y = mul %g, %s)"),
            "square mul matmul matmul mul mul");
}

TEST(RepeatCheap, ANodeThatOnlyLateOnesNeedIsLate) {
  EXPECT_EQ(ops_after(R"(
  %s = square %x
  %v = mul %s, %one
  %p = mul %s, %x
  %m = matmul %p, %w
  %g = mul %m, %x
  %y = mul %g, %v)"),
            "square square mul mul matmul mul mul");
}

TEST(RepeatCheap, WhatAProductAddsIsKept) {
  EXPECT_EQ(ops_after(R"(
  %s = square %x
  %p = mul %s, %x
  %h = tanh %p
  %m = matmul %h, %w
  %t = add %m, %s
  %y = mul %t, %x)"),
            "square mul tanh matmul add mul");
}

TEST(RepeatCheap, FloatsOfBytesAreMadeAgainForEachStep) {
  const std::string bytes = R"(
  %by = constant {value = f32[] (0.02)} %zero = constant {value = u8[] (3)}
  %q = quantize_linear %x, %by, %zero
  %d = dequantize_linear %q, %by, %zero)";
  EXPECT_EQ(ops_after(bytes + R"(
  %m = reduce_mean %d {axes = [0], keep_dims = true}
  %y = mul %d, %m)"),
            "quantize_linear dequantize_linear dequantize_linear reduce_mean mul");
  EXPECT_EQ(ops_after(bytes + R"(
  %g = sigmoid %d
  %y = mul %d, %g)"),
            "quantize_linear dequantize_linear sigmoid mul");
}

}  // namespace
}  // namespace cairn
