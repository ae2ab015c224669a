// Which values stay in 16 bits between steps, and that results stay what they were.
#include "plan/keep_narrow.h"

#include <gtest/gtest.h>

#include <random>

#include "ir/evaluate.h"
#include "ir/text.h"

namespace cairn {
namespace {

/// What keep_narrow() makes of the main function, which still makes the same bits of one or two 8x8 inputs.
Module kept_narrow(const std::string& text) {
  Module module = parse("module @m { func @main" + text + " }");
  std::mt19937 random(3);
  std::vector<HostValue> inputs(module.main().body.params.size());
  for (HostValue& input : inputs) {
    input.tensor = Tensor::uninitialized(kF32, {8, 8});
    for (float& value : input.tensor.mutable_values<float>())
      value = std::uniform_real_distribution<float>(-1, 1)(random);
  }
  Block& body = module.main().body;
  const auto before = evaluate(body, inputs);
  keep_narrow(body);
  verify(module);
  EXPECT_TRUE(before[0].tensor.same_bits(evaluate(body, inputs)[0].tensor));
  return module;
}

size_t roundings(const Module& module) {
  return static_cast<size_t>(std::ranges::count_if(module.main().body.nodes, [](const auto& node) {
    return node->is("cast") && node->result()->type.dtype == kBF16;
  }));
}

TEST(KeepNarrow, AParamIsRoundedForEachContractionWhoseWeightsItIs) {
  const Module module = kept_narrow(
      "(%x: f32[8, 8], %w: f32[8, 8]) -> (%y: f32[8, 8]) {\n%n = cast %w {dtype = bf16}\n%v = cast %n {dtype = f32}\n"
      "%a = matmul %x, %v\n%b = matmul %a, %v {transpose_b = true}\n%c = mul %b, %v\n%y = mul %c, %v\nreturn %y }");
  EXPECT_EQ(roundings(module), 3u);  // one for both multiplications by elements
}

TEST(KeepNarrow, AParamIsRoundedAgainForALateUserAndOnceForNearOnes) {
  for (const auto& [between, expected] : {std::pair(0, 1u), {8, 1u}, {60, 2u}}) {
    std::string text =
        "(%x: f32[8, 8], %w: f32[8, 8]) -> (%y: f32[8, 8]) {\n"
        "%n = cast %w {dtype = bf16}\n%v = cast %n {dtype = f32}\n%a0 = mul %x, %v\n";
    for (int i = 0; i < between; ++i) text += fmt::format("%a{} = relu %a{}\n", i + 1, i);
    const Module module = kept_narrow(text + fmt::format("%y = mul %a{}, %v\nreturn %y }}", between));
    EXPECT_EQ(roundings(module), expected) << between;
  }
}

/// Whether what the formula makes of 16-bit numbers is kept in 16 bits.
bool is_stored_narrow(const std::string& formula) {
  const Module module = kept_narrow(
      "(%x: f32[8, 8], %z: f32[8, 8]) -> (%y: f32[8, 8]) {\n%n = cast %x {dtype = bf16}\n%v = cast %n {dtype = f32}\n"
      "%h = constant {value = f32[] (0.5)}\n%t = constant {value = f32[] (0.1)}\n%r = " +
      formula + "\n%y = exp %r\nreturn %y }");
  const Node* widening = module.main().body.results[0]->producer->inputs[0]->producer;
  return widening->is("cast") && widening->inputs[0]->type.dtype == kBF16;
}

TEST(KeepNarrow, AResultWithoutFurtherDigitsIsStoredInTheOperandsType) {
  EXPECT_TRUE(is_stored_narrow("relu %v"));
  EXPECT_TRUE(is_stored_narrow("maximum %v, %h"));
  EXPECT_FALSE(is_stored_narrow("maximum %v, %t"));  // 0.1 has more digits
  EXPECT_FALSE(is_stored_narrow("maximum %v, %z"));
  EXPECT_FALSE(is_stored_narrow("mul %v, %h"));
}

}  // namespace
}  // namespace cairn
