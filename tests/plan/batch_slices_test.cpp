// Batches larger than the cache run slice by slice: same results, and nothing that looks across rows is cut.
#include "plan/batch_slices.h"

#include <gtest/gtest.h>

#include <random>

#include "ir/text.h"
#include "runtime/model.h"

namespace cairn {
namespace {

struct LooksAtValues : Observer {
  bool needs_values() const override { return true; }
  void plan_begins(const Plan& plan) override { steps += plan.steps.size(), scans += has_scan(plan); }
  static bool has_scan(const Plan& plan) {
    return std::any_of(plan.steps.begin(), plan.steps.end(),
                       [](const PlannedStep& step) { return step.scan.has_value(); });
  }
  size_t steps = 0, scans = 0;
};

Tensor numbers(const std::vector<int64_t>& dims, uint32_t seed) {
  Tensor tensor = Tensor::zeros(kF32, dims);
  std::mt19937 random(seed);
  for (float& x : tensor.mutable_values<float>()) x = std::uniform_real_distribution<float>(-1, 1)(random);
  return tensor;
}

/// Checks that results with and without slices agree, and those of one thread with those of several; whether there are slices.
bool runs_by_slices(const std::string& text, const std::vector<Tensor>& inputs, int threads = 2) {
  const auto model = Model::make(parse("module @m {\n" + text + "\n}"), {.threads = threads});
  std::vector<Dims> dims;
  for (const Tensor& input : inputs) dims.push_back(input.dims());
  LooksAtValues looks;
  const auto a = model->run(inputs), b = model->run(inputs, {.observer = &looks});
  const auto alone = Model::make(parse("module @m {\n" + text + "\n}"), {.threads = 1})->run(inputs);
  for (size_t i = 0; i < a.size(); ++i) EXPECT_TRUE(a[i].same_bits(alone[i])) << "result " << i << " of " << text;
  EXPECT_GT(looks.steps, 0u);
  EXPECT_EQ(looks.scans, 0u) << "a run that is looked at";
  for (size_t i = 0; i < a.size(); ++i) {
    EXPECT_EQ(a[i].type(), b[i].type()) << text;
    if (a[i].dtype() != kF32) {
      EXPECT_EQ(a[i].as_i64(), b[i].as_i64()) << text;
      continue;
    }
    float most = 0;
    for (int64_t k = 0; k < a[i].count(); ++k)
      most = std::max(
          most, std::abs(a[i].values<float>()[static_cast<size_t>(k)] - b[i].values<float>()[static_cast<size_t>(k)]));
    EXPECT_LE(most, 1e-5) << "result " << i << " of " << text;
  }
  return LooksAtValues::has_scan(*model->plan(dims));
}

std::string of_one(const std::string& params, const std::string& nodes, const std::string& result) {
  return "func @main(" + params + ") -> (%y: " + result + ") {\n" + nodes + "\n return %y }";
}

TEST(BatchSlices, ANetOfAllKindsOfLayersGivesWhatItGivesAtOnce) {
  const std::string net = R"(
    func @main(%x: f32[6, 192, 192, 16], %k: f32[3, 3, 1, 16], %w: f32[1, 1, 16, 24], %b: f32[24], %d: f32[24, 10]) -> (
      %probability: f32[6, 10], %best: f32[6, 2], %places: i64[6, 2], %wide: f32[6, 192, 192, 24]) {
      %deep = conv2d %x, %k {padding = same, groups = 16} : f32[6, 192, 192, 16]
      %clipped = relu %deep : f32[6, 192, 192, 16]
      %spread = conv2d %clipped, %w : f32[6, 192, 192, 24]
      %shifted = add %spread, %b : f32[6, 192, 192, 24]
      %wide = tanh %shifted : f32[6, 192, 192, 24]
      %pooled = max_pool2d %wide {window = [2, 2], strides = [2, 2]} : f32[6, 96, 96, 24]
      %turned = transpose %pooled {permutation = [0, 3, 1, 2]} : f32[6, 24, 96, 96]
      %dims = constant {value = i64[3] (6, 24, 9216)} : i64[3]
      %flat = reshape %turned, %dims : f32[6, 24, 9216]
      %twice = concat %flat, %flat {axis = 2} : f32[6, 24, 18432]
      %mean = reduce_mean %twice {axes = [2]} : f32[6, 24]
      %score = matmul %mean, %d : f32[6, 10]
      %probability = softmax %score : f32[6, 10]
      %two = constant {value = i64[] (2)} : i64[]
      %best, %places = top_k %probability, %two : f32[6, 2], i64[6, 2]
      return %probability, %best, %places, %wide
    })";
  EXPECT_TRUE(runs_by_slices(net, {numbers({6, 192, 192, 16}, 1), numbers({3, 3, 1, 16}, 2), numbers({1, 1, 16, 24}, 3),
                                   numbers({24}, 4), numbers({24, 10}, 5)}));
}

TEST(BatchSlices, RowsMayBeJoinedWithinASlice) {
  const std::string chain = R"(
    %flat = constant {value = i64[2] (6400, 128)} : i64[2]
    %rows = reshape %x, %flat : f32[6400, 128]
    %wide = matmul %rows, %w : f32[6400, 512]
    %cut = relu %wide : f32[6400, 512]
    %high = constant {value = i64[4] (64, 100, 8, 64)} : i64[4]
    %heads = reshape %cut, %high : f32[64, 100, 8, 64]
    %turned = transpose %heads {permutation = [0, 2, 1, 3]} : f32[64, 8, 100, 64]
    %product = matmul %turned, %turned {transpose_b = true} : f32[64, 8, 100, 100]
    %y = softmax %product : f32[64, 8, 100, 100])";
  EXPECT_TRUE(runs_by_slices(of_one("%x: f32[64, 100, 128], %w: f32[128, 512]", chain, "f32[64, 8, 100, 100]"),
                             {numbers({64, 100, 128}, 1), numbers({128, 512}, 2)}));
}

TEST(BatchSlices, WhatLooksAcrossRowsIsLeftWhole) {
  const std::vector<std::pair<std::string, std::string>> nodes = {
      {"%y = softmax %r {axis = 0} : f32[8, 1000, 1000]", "f32[8, 1000, 1000]"},
      {"%y = cumsum %r {axis = 0} : f32[8, 1000, 1000]", "f32[8, 1000, 1000]"},
      {"%y = reverse %r {axes = [0]} : f32[8, 1000, 1000]", "f32[8, 1000, 1000]"},
      {"%y = reduce_sum %r {axes = [0]} : f32[1000, 1000]", "f32[1000, 1000]"},
      {"%y = reduce_mean %r {axes = [-3], keep_dims = true} : f32[1, 1000, 1000]", "f32[1, 1000, 1000]"},
      {"%y = transpose %r {permutation = [1, 0, 2]} : f32[1000, 8, 1000]", "f32[1000, 8, 1000]"},
      {"%y = concat %r, %r {axis = 0} : f32[16, 1000, 1000]", "f32[16, 1000, 1000]"},
      {"%i = constant {value = i64[8] (7, 6, 5, 4, 3, 2, 1, 0)} : i64[8]\n %y = gather %r, %i : f32[8, 1000, 1000]",
       "f32[8, 1000, 1000]"},
      {"%p = constant {value = i64[3, 2] (1, 0, 0, 0, 0, 0)} : i64[3, 2]\n %y = pad %r, %p : f32[9, 1000, 1000]",
       "f32[9, 1000, 1000]"},
  };
  for (const auto& [node, result] : nodes) {
    const std::string whole = of_one("%x: f32[8, 1000, 1000]", "%r = relu %x : f32[8, 1000, 1000]\n" + node, result);
    EXPECT_FALSE(runs_by_slices(whole, {numbers({8, 1000, 1000}, 1)})) << node;
  }
}

TEST(BatchSlices, OperandsOfAllRowsStayWhole) {
  const std::string text = of_one("%x: f32[8, 1000, 1000], %m: f32[8, 1000, 1000]",
                                  "%e = exp %x : f32[8, 1000, 1000]\n"
                                  "%s = softmax %e : f32[8, 1000, 1000]\n"
                                  "%h = reduce_max %m {axes = [0], keep_dims = true} : f32[1, 1000, 1000]\n"
                                  "%a = mul %s, %h : f32[8, 1000, 1000]\n"
                                  "%c = cumsum %a {axis = 2} : f32[8, 1000, 1000]\n"
                                  "%y = softmax %c {axis = 1} : f32[8, 1000, 1000]",
                                  "f32[8, 1000, 1000]");
  EXPECT_TRUE(runs_by_slices(text, {numbers({8, 1000, 1000}, 1), numbers({8, 1000, 1000}, 2)}));
}

TEST(BatchSlices, ProductsOfBytesRunByImagesThatOneCoresCacheHolds) {
  std::string weights = "3";
  for (int i = 1; i < 32 * 32; ++i) weights += ", " + std::to_string(i % 7 - 3);
  const std::string text = of_one("%x: f32[16, 128, 128, 32]",
                                  "%bits = constant {value = i8[1, 1, 32, 32] (" + weights + R"()} : i8[1, 1, 32, 32]
    %s = constant {value = f32[] (0.01)} : f32[]
    %z = constant {value = u8[] (128)} : u8[]
    %none = constant {value = i8[] (0)} : i8[]
    %whole = constant {value = i32[] (0)} : i32[]
    %a = quantize_linear %x, %s, %z : u8[16, 128, 128, 32]
    %b = conv2d_integer %a, %bits, %z, %none : i32[16, 128, 128, 32]
    %c = dequantize_linear %b, %s, %whole : f32[16, 128, 128, 32]
    %d = quantize_linear %c, %s, %z : u8[16, 128, 128, 32]
    %e = conv2d_integer %d, %bits, %z, %none : i32[16, 128, 128, 32]
    %f = dequantize_linear %e, %s, %whole : f32[16, 128, 128, 32]
    %y = reduce_mean %f {axes = [1, 2]} : f32[16, 32])",
                                  "f32[16, 32]");
  EXPECT_TRUE(runs_by_slices(text, {numbers({16, 128, 128, 32}, 1)}));
}

TEST(BatchSlices, OneOperationGainsNothing) {
  const std::string text =
      of_one("%x: f32[8, 1000, 1000]", "%y = softmax %x : f32[8, 1000, 1000]", "f32[8, 1000, 1000]");
  EXPECT_FALSE(runs_by_slices(text, {numbers({8, 1000, 1000}, 1)}));
}

TEST(BatchSlices, BatchesThatFitIntoTheCacheRunAtOnce) {
  const std::string text = of_one("%x: f32[8, 100, 100]",
                                  "%e = exp %x : f32[8, 100, 100]\n %s = softmax %e : f32[8, 100, 100]\n"
                                  "%y = cumsum %s {axis = 1} : f32[8, 100, 100]",
                                  "f32[8, 100, 100]");
  EXPECT_FALSE(runs_by_slices(text, {numbers({8, 100, 100}, 1)}));
}

}  // namespace
}  // namespace cairn
