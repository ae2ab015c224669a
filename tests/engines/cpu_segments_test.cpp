// Kernels of the CPU engine over rows that indices name, at sizes that several workers share, against the reference engine.
#include <gtest/gtest.h>

#include <random>

#include "ir/text.h"
#include "ops/cases.h"
#include "runtime/model.h"

namespace cairn {
namespace {

std::vector<Tensor> run(const std::string& function, const std::vector<Tensor>& inputs, const char* engine,
                        int threads) {
  const ModelOptions options{.threads = threads, .engines = {engine}, .optimise = false};
  return Model::make(parse("module @m {\n" + function + "\n}\n"), options)->run(inputs);
}

Tensor indices(DType dtype, int64_t count, int64_t first, int64_t end) {
  std::mt19937 random(3);
  std::vector<int64_t> list;
  for (int64_t i = 0; i < count; ++i)
    list.push_back(first + static_cast<int64_t>(random() % static_cast<uint64_t>(end - first)));
  return dtype == kI64 ? Tensor::of(kI64, {count}, list)
                       : Tensor::of(kI32, {count}, std::vector<int32_t>(list.begin(), list.end()));
}

void expect_equal(const std::string& function, const std::vector<Tensor>& inputs, Precision precision) {
  const auto expected = run(function, inputs, "reference", 1), one = run(function, inputs, "cpu", 1),
             three = run(function, inputs, "cpu", 3);
  for (size_t i = 0; i < expected.size(); ++i) {
    EXPECT_EQ(difference(expected[i], one[i], precision).value_or(""), "") << function;
    EXPECT_TRUE(one[i].same_bits(three[i])) << function;
  }
}

TEST(CpuSegments, updates_rows_in_the_order_of_their_indices) {
  std::mt19937_64 random(1);
  const Tensor x = random_tensor(Type::tensor(kF32, {50, 40}), random),
               u = random_tensor(Type::tensor(kF32, {700, 40}), random);
  for (const char* mode : {"add", "sub"})
    expect_equal(
        fmt::format("func @main(%x: f32[50, 40], %i: i64[700], %u: f32[700, 40]) -> (%y: f32[50, 40]) {{\n%y = "
                    "scatter_reduce %x, %i, %u {{mode = {}, padded = true}} : f32[50, 40]\nreturn %y }}",
                    mode),
        {x, indices(kI64, 700, -5, 50), u}, Precision::accumulate_f32);
  expect_equal(
      "func @main(%x: f32[50, 40], %i: i32[700], %u: f32[700, 40]) -> (%y: f32[50, 40]) {\n%s = constant {value = "
      "i64[2] "
      "(-1, 1)} : i64[2]\n%v = reshape %i, %s : i32[700, 1]\n%y = scatter_update %x, %v, %u : f32[50, 40]\nreturn %y }",
      {x, indices(kI32, 700, -50, 50), u}, Precision::exact);
}

TEST(CpuIndexVectors, name_parts_of_several_dims) {
  std::mt19937_64 random(4);
  const Tensor x = random_tensor(Type::tensor(kF32, {30, 50, 24}), random),
               u = random_tensor(Type::tensor(kF32, {350, 24}), random), i = indices(kI32, 700, -30, 30);
  const char* vectors = "%s = constant {value = i64[2] (-1, 2)} : i64[2]\n%v = reshape %i, %s : i32[350, 2]\n";
  expect_equal(fmt::format("func @main(%x: f32[30, 50, 24], %i: i32[700]) -> (%y: f32[350, 24]) {{\n{}%y = gather_nd "
                           "%x, %v : f32[350, 24]\nreturn %y }}",
                           vectors),
               {x, i}, Precision::exact);
  expect_equal(fmt::format("func @main(%u: f32[350, 24], %i: i32[700]) -> (%y: f32[30, 50, 24]) {{\n{}%d = constant "
                           "{{value = i64[3] (30, 50, 24)}} : i64[3]\n%y = scatter_nd %v, %u, %d : f32[30, 50, 24]\n"
                           "return %y }}",
                           vectors),
               {u, i}, Precision::accumulate_f32);
}

TEST(CpuIndexVectors, count_batches_and_refuse_what_is_out_of_range) {
  std::mt19937_64 random(5);
  const Tensor x = random_tensor(Type::tensor(kF32, {7, 30, 50}), random);
  const std::string text =
      "func @main(%x: f32[7, 30, 50], %i: i64[700]) -> (%y: f32[7, 100, 50]) {\n%s = constant {value = i64[3] (7, 100, "
      "1)} : i64[3]\n%v = reshape %i, %s : i64[7, 100, 1]\n%y = gather_nd %x, %v {batch_dims = 1} : f32[7, 100, "
      "50]\nreturn %y }";
  expect_equal(text, {x, indices(kI64, 700, -30, 30)}, Precision::exact);
  for (const char* engine : {"reference", "cpu"}) try {
      run(text, {x, indices(kI64, 700, 30, 31)}, engine, 2);
      ADD_FAILURE() << engine;
    } catch (const Error& fault) {
      EXPECT_EQ(std::string(fault.what()), "gather_nd: index 30 is out of range for 30 elements") << engine;
    }
}

TEST(CpuSegments, adds_up_rows_of_equal_index) {
  std::mt19937_64 random(2);
  const Tensor x = random_tensor(Type::tensor(kF32, {700, 40}), random);
  for (const char* mode : {"sum", "mean", "sqrt_n"})
    expect_equal(
        fmt::format("func @main(%x: f32[700, 40], %i: i32[700]) -> (%y: f32[33, 40]) {{\n%n = constant {{value = "
                    "i64[] (33)}} : i64[]\n%y = segment_reduce %x, %i, %n {{mode = {}}} : f32[33, 40]\nreturn %y }}",
                    mode),
        {x, indices(kI32, 700, -3, 30)}, Precision::accumulate_f32);
}

TEST(CpuSegments, finds_different_elements) {
  for (DType dtype : {kI32, kI64})
    for (int64_t end : {1, 40, 100000})
      expect_equal(
          fmt::format("func @main(%x: {0}[5000]) -> (%v: {0}[5000], %i: i64[5000]) {{\n%v, %i = unique_padded %x : "
                      "{0}[5000], i64[5000]\nreturn %v, %i }}",
                      to_string(dtype)),
          {indices(dtype, 5000, 0, end)}, Precision::exact);
}

}  // namespace
}  // namespace cairn
