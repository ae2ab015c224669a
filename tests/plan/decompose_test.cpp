// Decompositions of rows are planned where no fast engine has the op.
#include "plan/decompose.h"

#include <gtest/gtest.h>

#include "engines/cpu/engine.h"
#include "engines/reference/engine.h"
#include "ir/builder.h"
#include "ir/text.h"
#include "ops/shapes.h"
#include "runtime/model.h"

namespace cairn {
namespace {

std::string kernels_of(const std::string& function, std::vector<std::string> engines = {}) {
  auto model =
      Model::make(parse("module @m {\n  source 0 = \"tf\" \"block/act\" \"Act\" \"net.py:3\"\n" + function + "\n}\n"),
                  {.threads = 1, .engines = std::move(engines), .optimise = false});
  std::vector<Dims> dims;
  for (const Port& port : model->inputs()) dims.push_back(port.type.shape.sizes());
  auto plan = model->plan(dims);
  std::string text;
  for (const PlannedStep& step : plan->steps) {
    text += (text.empty() ? "" : " ") + step.kernel;
    for (const Node* node : step.group.nodes) EXPECT_EQ(node->sources, std::vector<SourceId>{0}) << node->op->name;
  }
  return text;
}

TEST(Decompose, AnOpWithoutAKernelBecomesOneProgramOfItsParts) {
  const char* text = "  func @main(%x: f32[64]) -> (%y: f32[64]) {\n    %y = mish %x #0\n    return %y\n  }";
  EXPECT_EQ(kernels_of(text), "cpu/elementwise 3");
  EXPECT_EQ(kernels_of(text, {"reference"}), "reference/mish");
  EXPECT_EQ(
      kernels_of(
          "  func @main(%x: f32[64]) -> (%y: f32[64]) {\n    %m = mish %x #0\n    %y = neg %m #0\n    return %y\n  }"),
      "cpu/elementwise 4");
}

TEST(Decompose, PartsOfF64AreOneProgramAsWell) {
  EXPECT_EQ(kernels_of("  func @main(%x: f64[64]) -> (%y: f64[64]) {\n    %y = mish %x #0\n    return %y\n  }"),
            "cpu/doubles 3");
}

// What is summed up is known when the dims are.
TEST(Decompose, SumsOfRepeatedDimsAreSums) {
  const char* shape = "    %s = constant {value = i64[2] (1, 3)} : i64[2]\n";
  EXPECT_EQ(
      kernels_of(fmt::format("  func @main(%x: f32[4, 5, 3]) -> (%y: f32[1, 3]) {{\n{}    %y = sum_to %x, %s #0\n    "
                             "return %y\n  }}",
                             shape)),
      "cpu/fold");
}

/// Of users: a decomposition into one other op, or an addition.
const OpDef& doubled(const char* name, const char* inside, bool kernel = false) {
  static std::map<std::string, std::string> parts;
  parts[name] = inside;
  OpDef row = {.name = name, .summary = "2 x", .inputs = {{"x", Accepts::floats}}, .traits = kElementwise};
  row.infer = [](InferContext& context) { context.result(context.dtype(0), context.shape(0)); };
  row.decompose = [](Builder& b, const Node& node) {
    const std::string& op = parts.at(node.op->name);
    if (!op.empty()) return std::vector<Value*>{b.add(op, {node.inputs[0]})};
    return std::vector<Value*>{b.add("add", {node.inputs[0], node.inputs[0]})};
  };
  if (kernel) row.reference = [](KernelContext&) {};
  return register_op(std::move(row));
}

TEST(Decompose, AnOpStaysWholeWhereAPartHasNoKernel) {
  OpDef part = {.name = "test_special", .summary = "2 x", .inputs = {{"x", Accepts::floats}}, .traits = kElementwise};
  part.infer = [](InferContext& context) { context.result(context.dtype(0), context.shape(0)); };
  part.reference = [](KernelContext&) {};
  register_op(std::move(part));
  doubled("test_doubled_special", "test_special", true);
  EXPECT_EQ(
      kernels_of("  func @main(%x: f32[8]) -> (%y: f32[8]) {\n    %y = test_doubled_special %x #0\n    return %y\n  }"),
      "reference/test_doubled_special");
}

// Rounded once, at the end.
TEST(Decompose, NarrowFloatsAreComputedInF32) {
  EXPECT_EQ(
      kernels_of("  func @main(%x: bf16[4, 9]) -> (%y: bf16[4, 9]) {\n    %y = log_softmax %x #0\n    return %y\n  }"),
      "cpu/elementwise 1 cpu/log_softmax cpu/elementwise 2");
  EXPECT_EQ(kernels_of("  func @main(%x: f16[64]) -> (%y: f16[64]) {\n    %y = mish %x #0\n    return %y\n  }"),
            "cpu/elementwise 7");
}

TEST(Decompose, ARowNeedsNoKernelOfItsOwn) {
  doubled("test_twice", "");
  doubled("test_twice_again", "test_twice");
  const char* text = "  func @main(%x: f32[8]) -> (%y: f32[8]) {\n    %y = test_twice_again %x #0\n    return %y\n  }";
  EXPECT_EQ(kernels_of(text), "cpu/elementwise 1");
  EXPECT_EQ(kernels_of(text, {"reference"}), "reference/add");
}

TEST(Decompose, WrongTypesAreTheRowsFault) {
  OpDef row = {.name = "test_wrong", .summary = "x", .inputs = {{"x", Accepts::floats}}};
  row.infer = [](InferContext& context) { context.result(context.dtype(0), context.shape(0)); };
  row.decompose = [](Builder& b, const Node& node) {
    return std::vector<Value*>{b.add("cast", {node.inputs[0]}, {{"dtype", kF64}})};
  };
  register_op(std::move(row));
  try {
    kernels_of("  func @main(%x: f32[8]) -> (%y: f32[8]) {\n    %y = test_wrong %x #0\n    return %y\n  }");
    FAIL();
  } catch (const Error& fault) {
    EXPECT_EQ(fault.kind(), ErrorKind::invalid_model);
    EXPECT_EQ(std::string(fault.what()),
              "block/act (net.py:3): the decomposition of test_wrong makes other types than the op");
  }
}

// An attribute's name says nothing about the op.
TEST(Decompose, RowsOfUsersAreNotTakenForOthersWithTheirAttributes) {
  OpDef row = {.name = "test_permuted", .summary = "x", .inputs = {{"x", Accepts::floats}}};
  row.attributes = {{"permutation", AttrKind::integers, Attribute(std::vector<int64_t>{1, 0})},
                    {"window", AttrKind::integers, Attribute(std::vector<int64_t>{1, 1})},
                    {"axes", AttrKind::integers, Attribute(std::vector<int64_t>{0})},
                    {"keep_dims", AttrKind::boolean, Attribute(false)},
                    {"groups", AttrKind::integer, Attribute(int64_t{1})}};
  row.infer = [](InferContext& context) { context.result(context.dtype(0), context.shape(0)); };
  row.reference = [](KernelContext& context) {
    std::memcpy(context.output(0).mutable_data(), context.input(0).data(), context.input(0).bytes());
  };
  register_op(std::move(row));
  EXPECT_EQ(
      kernels_of("  func @main(%x: f32[8, 8]) -> (%y: f32[8, 8]) {\n    %y = test_permuted %x #0\n    return %y\n  }"),
      "reference/test_permuted");
}

}  // namespace
}  // namespace cairn
