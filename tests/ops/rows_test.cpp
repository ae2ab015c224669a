// What holds for every row: it is complete, its kernel gives what its shape rule says, its decomposition gives what its
// kernel gives, and its traits are true. The kernels' values are checked by tests/python/test_oracles.py.
#include <gtest/gtest.h>

#include <set>

#include "ir/builder.h"
#include "ir/evaluate.h"
#include "ir/text.h"
#include "ops/cases.h"

namespace cairn {
namespace {

TEST(Rows, AreComplete) {
  std::set<std::string_view> names;
  for (const OpDef* op : all_ops()) {
    EXPECT_TRUE(names.insert(op->name).second) << op->name;
    EXPECT_EQ(find_op(op->name), op);
    EXPECT_GT(std::string_view(op->summary).size(), 0u) << op->name;
    EXPECT_TRUE(op->infer) << op->name;
    EXPECT_NE(op->oracle.expression != nullptr, op->oracle.reason != nullptr)
        << op->name << ": an oracle or a reason, not both";
    EXPECT_TRUE(!op->oracle.expression || (op->reference && !op->cases.empty()))
        << op->name << ": an oracle needs a kernel and cases";
    for (const AttrDef& attribute : op->attributes) {
      if (!attribute.fallback) continue;
      EXPECT_EQ(kind_of(*attribute.fallback), attribute.kind) << op->name << " " << attribute.name;
      auto allowed = [&](const std::string& word) {
        return std::count(attribute.words.begin(), attribute.words.end(), word) == 1;
      };
      EXPECT_TRUE(attribute.words.empty() || allowed(std::get<std::string>(*attribute.fallback))) << op->name;
    }
    for (size_t i = 0; i + 1 < op->inputs.size(); ++i)
      EXPECT_NE(op->inputs[i].arity, InputDef::Arity::variadic) << op->name;
  }
  EXPECT_GT(names.size(), 90u);
  EXPECT_EQ(find_op("no_such_op"), nullptr);
}

TEST(Rows, CasesPrintParseAndVerify) {
  for (const OpCase& op_case : all_cases()) {
    Module module = module_of(op_case);
    verify(module);
    ModuleText text = print(module);
    EXPECT_EQ(print(parse(text.text, text.weights)).text, text.text) << op_case.text;
  }
}

TEST(Rows, KernelsGiveWhatTheShapeRuleSays) {
  for (const OpCase& op_case : all_cases()) {
    Module module = module_of(op_case);
    auto results = run_reference(*op_case.op, op_case.attributes, random_inputs(op_case));
    ASSERT_EQ(results.size(), module.main().body.results.size());
    for (size_t i = 0; i < results.size(); ++i) {
      const Type& type = module.main().body.results[i]->type;
      if (!type.is_tensor()) continue;
      EXPECT_TRUE(compatible(type, results[i].tensor.type())) << op_case.text << ": " << to_string(type);
      EXPECT_TRUE(type.is_static() || op_case.op->has(kDynamicResult)) << op_case.text << ": " << to_string(type);
    }
  }
}

// With unknown dims in place of the numbers, a rule may say less but nothing else.
TEST(Rows, ShapeRulesAgreeOnNumbersSymbolsAndUnknownDims) {
  for (const OpCase& op_case : all_cases()) {
    auto results = run_reference(*op_case.op, op_case.attributes, random_inputs(op_case));
    for (int variant = 0; variant < 3; ++variant) {
      Block block;
      std::vector<Value*> inputs;
      for (Type type : op_case.types) {
        for (Dim& dim : type.shape.dims)
          dim = variant == 0 ? Dim(intern_symbol("n" + std::to_string(dim.size))) : Dim();
        if (variant == 2) type.shape = Shape::unranked();
        inputs.push_back(block.add_param(type, "x"));
      }
      auto types = infer_types(*op_case.op, inputs, op_case.attributes);
      for (size_t i = 0; i < types.size(); ++i)
        EXPECT_TRUE(!types[i].is_tensor() || compatible(types[i], results[i].tensor.type()))
            << op_case.text << ": " << to_string(types[i]);
    }
  }
}

TEST(Rows, DecompositionsGiveWhatTheKernelsGive) {
  int decomposed = 0;
  for (const OpCase& op_case : all_cases()) {
    const OpDef& op = *op_case.op;
    if (!op.decompose || op_case.types[0].dtype != kF32) continue;
    Module module = module_of(op_case);
    Block& block = module.main().body;
    Node* node = block.results[0]->producer;
    std::vector<Value*> replacements;
    {
      Block tail;
      Builder builder(tail);
      replacements = op.decompose(builder, *node);
      block.nodes.pop_back();
      for (auto& made : tail.nodes) block.nodes.push_back(std::move(made));
    }
    block.results = replacements;
    auto inputs = random_inputs(op_case);
    auto expected = run_reference(op, op_case.attributes, inputs),
         actual = evaluate(block, parameters_of(op_case, inputs));
    for (size_t i = 0; i < expected.size(); ++i)
      EXPECT_EQ(difference(expected[i].tensor, actual[i].tensor, Precision::accumulate_f32).value_or(""), "")
          << op_case.text;
    ++decomposed;
  }
  EXPECT_GT(decomposed, 40);
}

TEST(Rows, InPlaceKernelsMayOverwriteTheirInput) {
  int tried = 0;
  for (const OpCase& op_case : all_cases()) {
    const OpDef& op = *op_case.op;
    if (!op.has(kInPlace)) continue;
    auto inputs = random_inputs(op_case, 7, Elements::special);
    auto expected = run_reference(op, op_case.attributes, inputs);
    if (expected[0].tensor.bytes() != inputs[0].tensor.bytes()) continue;
    Tensor own = Tensor::uninitialized(inputs[0].tensor.dtype(), inputs[0].tensor.dims());  // nobody else's elements
    std::memcpy(own.mutable_data(), inputs[0].tensor.data(), own.bytes());
    inputs[0].tensor = own;
    std::vector<HostValue> results = {
        {Tensor::view(expected[0].tensor.dtype(), expected[0].tensor.dims(), own.data(), own.owner()), nullptr}};
    KernelContext context(op, op_case.attributes, inputs, results);
    op.reference(context);
    EXPECT_EQ(results[0].tensor.data(), own.data()) << op_case.text;
    EXPECT_TRUE(results[0].tensor.same_bits(expected[0].tensor)) << op_case.text;
    ++tried;
  }
  EXPECT_GT(tried, 200);
}

TEST(Rows, CommutativeKernelsMayBeSwapped) {
  for (const OpCase& op_case : all_cases()) {
    if (!op_case.op->has(kCommutative)) continue;
    auto inputs = random_inputs(op_case, 3, Elements::special);
    auto expected = run_reference(*op_case.op, op_case.attributes, inputs);
    std::swap(inputs[0], inputs[1]);
    EXPECT_EQ(difference(expected[0].tensor, run_reference(*op_case.op, op_case.attributes, inputs)[0].tensor,
                         Precision::exact)
                  .value_or(""),
              "")
        << op_case.text;
  }
}

TEST(Rows, HeavyOpsCountTheirFlops) {
  for (const OpDef* op : all_ops()) EXPECT_TRUE(op->flops || !op->has(kContraction | kReduction)) << op->name;
  auto flops = [](const OpDef& op, const OpCase& op_case) {
    return op.flops(InferContext(op, op_case.attributes, op_case.types, {}, {}));
  };
  const OpDef &matmul = op_named("matmul"), &conv = op_named("conv2d");
  EXPECT_EQ(flops(matmul, parse_case(matmul, "f32[2, 3], f32[3, 4]")), 48);
  EXPECT_EQ(flops(conv, parse_case(conv, "f32[1, 5, 5, 4], f32[3, 3, 2, 6] {groups = 2}")), 2 * 9 * 6 * 18);
}

}  // namespace
}  // namespace cairn
