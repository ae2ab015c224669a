// Attention as one step: equal to its nodes one by one, with transposes, scales, masks and broadcast heads around it.
#include "engines/cpu_reference.h"
#include "ir/text.h"
#include "ops/cases.h"
#include "runtime/model.h"

namespace cairn {
namespace {

void expect_attention(const std::string& function) {
  const std::string text = "module @m { func @main" + function + " }";
  std::vector<Tensor> inputs, one;
  std::mt19937_64 random(5);
  const auto expected = Model::make(parse(text), {.threads = 1, .engines = {"reference"}, .optimise = false});
  for (const Port& port : expected->inputs()) inputs.push_back(random_tensor(port.type, random));
  const auto wanted = expected->run(inputs);
  for (int threads : {1, 3}) {
    const auto model = Model::make(parse(text), {.threads = threads, .optimise = false});
    EXPECT_EQ(kernels_of(*model).find("cpu/attention"), 0u) << kernels_of(*model);
    EXPECT_EQ(kernels_of(*model).find("cpu/", 1), std::string::npos) << kernels_of(*model);
    const auto found = model->run(inputs);
    const auto wrong = difference(wanted[0], found[0], Precision::accumulate_f32);
    EXPECT_FALSE(wrong) << *wrong;
    EXPECT_TRUE(threads == 1 || found[0].same_bits(one[0]));
    one = found;
  }
}

class CpuAttention : public testing::Test {
 protected:
  void SetUp() override {
    if (machine_isa() == Isa::none) GTEST_SKIP() << "needs AVX2";
  }
};

TEST_F(CpuAttention, reads_heads_through_transposes) {
  expect_attention(R"((%q: f32[2, 19, 3, 8], %k: f32[2, 23, 3, 8], %v: f32[2, 23, 3, 12]) -> (%y: f32[2, 19, 3, 12]) {
    %s = constant {value = f32[] (2.0)}
    %tq = transpose %q {permutation = [0, 2, 1, 3]}
    %tk = transpose %k {permutation = [0, 2, 3, 1]}
    %tv = transpose %v {permutation = [0, 2, 1, 3]}
    %a = matmul %tq, %tk
    %b = div %a, %s
    %p = softmax %b {axis = -1}
    %c = matmul %p, %tv
    %y = transpose %c {permutation = [0, 2, 1, 3]}
    return %y })");
}

TEST_F(CpuAttention, takes_numbers_that_scale_queries_and_keys_into_its_scale) {
  expect_attention(R"((%q: f32[2, 3, 19, 8], %k: f32[2, 3, 23, 8], %v: f32[2, 3, 23, 12]) -> (%y: f32[2, 3, 19, 12]) {
    %s = constant {value = f32[1] (0.6)}
    %sq = mul %q, %s
    %tk = transpose %k {permutation = [0, 1, 3, 2]}
    %sk = mul %s, %tk
    %a = matmul %sq, %sk
    %p = softmax %a {axis = -1}
    %y = matmul %p, %v
    return %y })");
}

TEST_F(CpuAttention, turns_keys_whose_number_is_odd) {
  for (const auto& [keys, depth] : {std::pair{49, 40}, {17, 16}, {100, 33}})
    expect_attention(fmt::format(
        R"((%q: f32[2, 19, {1}], %k: f32[2, {0}, {1}], %v: f32[2, {0}, 12], %m: f32[{0}]) -> (%y: f32[2, 19, 12]) {{
    %s = constant {{value = f32[] (0.1)}}
    %a = matmul %q, %k {{transpose_b = true}}
    %c = mul %a, %s
    %b = add %c, %m
    %p = softmax %b {{axis = -1}}
    %y = matmul %p, %v
    return %y }})",
        keys, depth));
}

TEST_F(CpuAttention, adds_a_mask_that_broadcasts) {
  expect_attention(
      R"((%q: f32[2, 3, 5, 16], %k: f32[2, 3, 33, 16], %v: f32[2, 3, 33, 16], %m: f32[2, 1, 1, 33]) -> (%y: f32[2, 3, 5, 16]) {
    %s = constant {value = f32[] (0.25)}
    %a = matmul %q, %k {transpose_b = true}
    %b = mul %a, %s
    %d = add %b, %m
    %p = softmax %d {axis = 3}
    %y = matmul %p, %v
    return %y })");
}

TEST_F(CpuAttention, shares_keys_between_heads_and_cuts_long_rows) {
  expect_attention(
      R"((%q: f32[1, 2, 300, 7], %k: f32[1, 1, 7, 1500], %v: f32[1, 1, 1500, 5]) -> (%y: f32[1, 2, 300, 5]) {
    %a = matmul %q, %k
    %p = softmax %a {axis = -1}
    %y = matmul %p, %v
    return %y })");
}

TEST_F(CpuAttention, takes_three_dims) {
  expect_attention(R"((%q: f32[4, 17, 16], %k: f32[4, 17, 16], %v: f32[4, 17, 20]) -> (%y: f32[4, 17, 20]) {
    %a = matmul %q, %k {transpose_b = true}
    %p = softmax %a {axis = -1}
    %y = matmul %p, %v
    return %y })");
}

}  // namespace
}  // namespace cairn
