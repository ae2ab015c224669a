// Functions at given dims: which ops are left, and that results stay what they were.
#include <gtest/gtest.h>

#include "ir/evaluate.h"
#include "ir/text.h"
#include "plan/plan.h"

namespace cairn {
namespace {

/// "exp add": the ops but constants of the function of an x of 6 rows and 8 columns. Its result must stay.
std::string ops_of(const std::string& nodes) {
  const Module module = parse(fmt::format(
      "module @m {{ func @main(%x: f32[?n, 8], %m: bool[?n, 1], %r: f32[8], %e: f32[?n, 1]) -> (%y: f32[?n, 8]) {{\n"
      "%zero = constant {{value = f32[] (0.5)}}\n%yes = constant {{value = bool[] (true)}}\n"
      "%s = shape_of %x : i64[2]\n{}\nreturn %y }} }}",
      nodes));
  std::vector<HostValue> inputs;
  for (const auto& param : module.main().body.params) {
    std::vector<int64_t> dims;
    for (const Dim& dim : param->type.shape.dims) dims.push_back(dim.known() ? dim.size : 6);
    Tensor tensor = Tensor::zeros(param->type.dtype, dims);
    for (int64_t i = 0; i < tensor.count(); ++i)
      if (tensor.dtype() == kF32)
        tensor.mutable_values<float>()[static_cast<size_t>(i)] = static_cast<float>(i % 7) - 2;
      else
        tensor.mutable_values<uint8_t>()[static_cast<size_t>(i)] = i % 2 == 0;
    inputs.push_back({tensor, nullptr});
  }
  std::vector<Dims> dims;
  for (const HostValue& input : inputs) dims.push_back(input.tensor.dims());
  const auto special = specialise(module.main(), dims);
  EXPECT_TRUE(evaluate(module.main().body, inputs)[0].tensor.same_bits(evaluate(special->body, inputs)[0].tensor));
  std::string ops;
  for (const auto& node : special->body.nodes)
    if (!node->is("constant")) ops += (ops.empty() ? "" : " ") + std::string(node->op->name);
  return ops;
}

TEST(Specialise, WhatElementwiseOpsBroadcastIsNotBroadcastBefore) {
  EXPECT_EQ(ops_of("%b = broadcast_to %r, %s : f32[?n, 8] %y = add %x, %b"), "add");
  EXPECT_EQ(ops_of("%b = broadcast_to %r, %s : f32[?n, 8] %c = broadcast_to %e, %s : f32[?n, 8] %y = add %b, %c"),
            "add");
}

TEST(Specialise, ArithmeticComesBeforeBroadcasts) {
  EXPECT_EQ(ops_of("%b = broadcast_to %e, %s : f32[?n, 8] %a = exp %b %y = add %x, %a"), "exp add");
  EXPECT_EQ(ops_of("%z = broadcast_to %zero, %s : f32[?n, 8] %b = broadcast_to %yes, %s : bool[?n, 8]\n"
                   "%a = and %m, %b %y = select %a, %x, %z"),
            "and select");
}

TEST(Specialise, OtherOpsReadWhatIsBroadcast) {
  EXPECT_EQ(ops_of("%b = broadcast_to %e, %s : f32[?n, 8] %a = exp %b %y = softmax %a {axis = 1}"),
            "exp broadcast_to softmax");
}

}  // namespace
}  // namespace cairn
