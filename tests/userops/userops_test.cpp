// Operators from a shared library: what they compute, how they are found, and what is told when they are at fault.
#include <gtest/gtest.h>

#include <cmath>

#include "autodiff/differentiate.h"
#include "cairn/cairn.h"
#include "capi/user_op.h"
#include "ir/text.h"
#include "ir/user_ops.h"
#include "passes/pipeline.h"
#include "runtime/model.h"

namespace cairn {
namespace {

std::string message_of(const std::function<void()>& body) {
  try {
    body();
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

class UserOps : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    capi::load_op_library(CAIRN_EXAMPLE_OPS);
    capi::load_op_library(CAIRN_EXAMPLE_OPS);  // the second time nothing happens
    capi::load_op_library(CAIRN_FAULTY_OPS);
  }
};

Module module_of(const std::string& body) { return parse("module @m {\n func @main" + body + "\n}\n"); }

std::vector<Tensor> run(const std::string& body, const std::vector<Tensor>& inputs) {
  return Model::make(module_of(body))->run(inputs);
}

std::vector<double> values(const Tensor& tensor) { return tensor.as_f64(); }

TEST_F(UserOps, AKernelRunsBetweenOtherOperators) {
  const auto made = run(R"((%x: f32[?n]) -> (%z: f32[?n]) {
    %y = example.swish %x {beta = 2.0}
    %z = neg %y
    return %z
  })",
                        {Tensor::of<float>(kF32, {2}, {0, 1})});
  EXPECT_EQ(values(made[0])[0], 0);
  EXPECT_NEAR(values(made[0])[1], -1 / (1 + std::exp(-2.0)), 1e-6);
}

TEST_F(UserOps, AStateIsKeptFromRunToRun) {
  const auto model =
      Model::make(module_of(R"((%x: f32[2, 1], %mean: f32[1]) -> (%y: f32[2, 1], %next: f32[1]) updates [1 = 1] {
    %y, %next = example.running_mean %x, %mean {momentum = 0.5}
    return %y, %next
  })"));
  ASSERT_EQ(model->state().size(), 1u);
  model->set_state(0, Tensor::of<float>(kF32, {1}, {0}));
  const Tensor x = Tensor::of<float>(kF32, {2, 1}, {1, 3});
  EXPECT_EQ(values(model->run({x})[0]), (std::vector<double>{1, 3}));
  EXPECT_EQ(values(model->run({x})[0]), (std::vector<double>{0, 2}));  // the mean is 0.5 * 0 + 0.5 * 2
}

TEST_F(UserOps, ItsGradientIsUsed) {
  Module module = module_of(R"((%x: f64[2]) -> (%s: f64[]) {
    %n = example.l2_norm %x {epsilon = 0.0}
    %s = mul %n, %n
    return %s
  })");
  append_grad(module, module.main(), {}, "grad");
  module.functions.front()->name = "forward";
  module.find("grad")->name = "main";
  EXPECT_EQ(values(Model::make(std::move(module))->run({Tensor::of<double>(kF64, {2}, {3, 4})})[0]),
            (std::vector<double>{6, 8}));
}

TEST_F(UserOps, ForeignTypesAreFound) {
  EXPECT_STREQ(find_foreign_op("onnx", "example::L2Norm")->name, "example.l2_norm");
  EXPECT_STREQ(find_foreign_op("tensorflow", "Example>L2Norm")->name, "example.l2_norm");
  EXPECT_STREQ(find_foreign_op("tensorflow", "RunningMean")->name, "example.running_mean");
  EXPECT_STREQ(find_foreign_op("tensorflow", "ExampleRectify")->name, "relu");
  EXPECT_EQ(find_foreign_op("onnx", "other::L2Norm"), nullptr);
}

TEST_F(UserOps, TheTextFormIsReadAgain) {
  const std::string text =
      print(module_of("(%x: f32[2]) -> (%y: f32[2]) {\n %y = example.swish %x\n return %y\n }")).text;
  EXPECT_NE(text.find("example.swish %x"), std::string::npos) << text;
  EXPECT_EQ(print(parse(text)).text, text);
}

TEST_F(UserOps, AnOperatorThatNobodyGivesIsTold) {
  const std::string fault =
      message_of([] { module_of("(%x: f32[2]) -> (%y: f32[2]) {\n %y = acme.gone %x\n return %y\n }"); });
  EXPECT_NE(fault.find("operator acme.gone comes from no library that is loaded; name the library with --op-library"),
            std::string::npos)
      << fault;
}

TEST_F(UserOps, FaultsInsideNameTheOperator) {
  auto fault = [](const std::string& op, DType dtype) {
    const std::string type = to_string(dtype) + "[2]";
    return message_of([&] {
      run("(%x: " + type + ") -> (%y: " + type + ") {\n %y = " + op + " %x\n return %y\n }",
          {Tensor::zeros(dtype, {2})});
    });
  };
  EXPECT_NE(fault("faulty.throws", kF32).find("faulty.throws: kernel of "), std::string::npos);
  EXPECT_NE(fault("faulty.throws", kF32).find("x is not to its taste"), std::string::npos);
  EXPECT_NE(fault("faulty.type", kF32).find("input 0 has elements of another type"), std::string::npos);
  EXPECT_NE(fault("faulty.no_result", kF32).find("gives 0 results, expected 1"), std::string::npos);
  EXPECT_NE(fault("example.l2_norm", kI32).find("input x must be floats"), std::string::npos);
}

TEST_F(UserOps, ACrashInsideNamesTheOperator) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_DEATH(
      run("(%x: f32[2]) -> (%y: f32[2]) {\n %y = faulty.crashes %x\n return %y\n }", {Tensor::zeros(kF32, {2})}),
      "faulty.crashes: its kernel crashed \\(a wrong address\\); it is from .*faulty_ops");
}

TEST_F(UserOps, WhatIsNoLibraryIsRefused) {
  EXPECT_NE(message_of([] { capi::load_op_library("/no/such.so"); }).find("there is no such library of operators"),
            std::string::npos);
  EXPECT_NE(message_of([] { capi::load_op_library(CAIRN_SOURCE_DIR "/README.md"); }).find("cannot be loaded"),
            std::string::npos);
}

CairnOpRow row_named(const char* name) {
  CairnOpRow row{};
  row.struct_size = sizeof row;
  row.name = name;
  row.summary = "a test";
  return row;
}

// x * x + x, by other operators alone.
int32_t decompose(const CairnDecomposeCall* call) {
  CairnValue* inputs[] = {call->inputs[0], call->inputs[0]};
  CairnValue* square = nullptr;
  if (call->call.registry->node(call->builder, "mul", inputs, 2, nullptr, 0, nullptr, &square, 1) != CAIRN_OK) return 1;
  inputs[0] = square;
  return call->call.registry->node(call->builder, "add", inputs, 2, nullptr, 0, nullptr, &call->results[0], 1) !=
         CAIRN_OK;
}

TEST_F(UserOps, ADecompositionIsAllThatARowNeeds) {
  CairnOpRow row = row_named("test.square_plus");
  const CairnOpInput input{"x", CAIRN_ACCEPTS_NUMBERS, CAIRN_ROLE_DATA, CAIRN_ARITY_ONE};
  const char* result = "y";
  row.inputs = &input, row.input_count = 1;
  row.results = &result, row.result_count = 1;
  row.decompose = decompose;
  ASSERT_EQ(cairn_op_register(&row, "this test"), CAIRN_OK);
  const std::string body = "(%x: f64[?n]) -> (%y: f64[?n]) {\n %y = test.square_plus %x\n return %y\n }";
  EXPECT_EQ(values(run(body, {Tensor::of<double>(kF64, {2}, {2, 3})})[0]), (std::vector<double>{6, 12}));
  Module module = module_of(body);
  optimise(module, {});
  EXPECT_EQ(print(module).text.find("square_plus"), std::string::npos);  // the model needs it no more
  Module vjp = module_of(body);
  append_vjp(vjp, vjp.main(), {"x"}, "vjp");
  vjp.functions.front()->name = "forward";
  vjp.find("vjp")->name = "main";
  const auto made =
      Model::make(std::move(vjp))->run({Tensor::of<double>(kF64, {2}, {2, 3}), Tensor::of<double>(kF64, {2}, {1, 10})});
  EXPECT_EQ(values(made[1]), (std::vector<double>{5, 70}));
  EXPECT_EQ(cairn_op_register(&row, "this test"), CAIRN_INVALID_ARGUMENT);  // the name is taken
}

TEST_F(UserOps, RowsThatAreIncompleteAreRefused) {
  auto refusal = [](const CairnOpRow& row) {
    EXPECT_EQ(cairn_op_register(&row, "this test"), CAIRN_INVALID_ARGUMENT);
    CairnError error{};
    error.struct_size = sizeof error;
    cairn_last_error(&error);
    return std::string(error.where) + ": " + error.message;
  };
  EXPECT_EQ(refusal(row_named("nodomain")), "nodomain: is no name of an operator, expected domain.name");
  EXPECT_EQ(refusal(row_named("a.b")), "a.b: has no results");
  CairnOpRow row = row_named("a.b");
  const char* result = "y";
  row.results = &result, row.result_count = 1;
  EXPECT_EQ(refusal(row), "a.b: has neither shape rule nor decomposition");
}

}  // namespace
}  // namespace cairn
