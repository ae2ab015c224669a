// Gradients against central differences in f64: the functions are text, the numbers come from the reference kernels.
#pragma once

#include <gtest/gtest.h>

#include <numeric>

#include "autodiff/differentiate.h"
#include "ir/evaluate.h"
#include "ir/expression.h"
#include "ir/text.h"

namespace cairn {

inline Tensor f64(std::vector<int64_t> dims, const std::vector<double>& values) {
  return Tensor::of<double>(kF64, std::move(dims), values);
}

inline std::vector<Tensor> run(const Module& module, const Function& function, const std::vector<Tensor>& inputs) {
  std::vector<HostValue> params;
  for (const Tensor& input : inputs) params.push_back({input, nullptr});
  std::vector<Tensor> results;
  for (const HostValue& result : evaluate(function.body, params, &module)) results.push_back(result.tensor);
  return results;
}

/// How result 0 of the function, one number, changes with the elements of input i.
inline std::vector<double> differences(const Module& module, const Function& function, std::vector<Tensor> inputs,
                                       size_t i, size_t result = 0) {
  constexpr double kStep = 1e-5;
  std::vector<double> made;
  const Tensor x = inputs[i];
  for (int64_t e = 0; e < x.count(); ++e) {
    double sums[2] = {};
    for (const int side : {0, 1}) {
      std::vector<double> values(x.values<double>().begin(), x.values<double>().end());
      values[static_cast<size_t>(e)] += side ? kStep : -kStep;
      inputs[i] = f64(x.dims(), values);
      for (const double y : run(module, function, inputs)[result].as_f64()) sums[side] += y;
    }
    made.push_back((sums[1] - sums[0]) / (2 * kStep));
  }
  return made;
}

inline void expect_near(const std::vector<double>& found, const std::vector<double>& expected, double tolerance,
                        const std::string& what) {
  ASSERT_EQ(found.size(), expected.size()) << what;
  for (size_t e = 0; e < found.size(); ++e)
    EXPECT_NEAR(found[e], expected[e], tolerance * std::max(1.0, std::abs(expected[e]))) << what << ", element " << e;
}

/// First order against differences of @main, then second order: the gradient's sum against differences of that sum.
inline void check_gradients(const std::string& text, const std::vector<Tensor>& inputs, int orders = 2) {
  Module module = parse(text);
  Function* function = &module.main();
  for (int order = 1; order <= orders; ++order) {
    Function& gradient = append_grad(module, *function, {}, fmt::format("gradient_{}", order));
    verify(module);
    const std::vector<Tensor> found = run(module, gradient, inputs);
    size_t result = 0;
    std::vector<Value*> sums;
    for (size_t i = 0; i < inputs.size(); ++i) {
      if (!inputs[i].dtype().is_float()) continue;
      expect_near(found[result].as_f64(), differences(module, *function, inputs, i), order == 1 ? 1e-7 : 1e-5,
                  fmt::format("order {}, input {}", order, i));
      ++result;
    }
    if (order == orders) break;
    // The next order: of one number made of all gradients.
    Builder builder(gradient.body);
    Value* all = nullptr;
    double weight = 1;
    for (Value* each : gradient.body.results) {
      std::vector<int64_t> axes(each->type.shape.rank());
      std::iota(axes.begin(), axes.end(), 0);
      Var sum = reduce_sum({builder, each}, axes) * (weight += 0.5);
      all = all ? builder.add("add", {all, sum.value}) : sum.value;
    }
    gradient.body.results = {all};
    gradient.result_names = {"sum"};
    function = &gradient;
  }
}

}  // namespace cairn
