// Folding of absurd constants: a node either becomes its value or stays, and nothing crashes.
#include <gtest/gtest.h>

#include <limits>
#include <random>

#include "ir/builder.h"
#include "ir/evaluate.h"
#include "passes/pipeline.h"
#include "passes/support.h"

namespace cairn {
namespace {

Value* only_result(Module& module) { return module.main().body.results[0]; }

TEST(Folding, ComputesWhatDependsOnConstants) {
  Module module = test::parse_short(
      "() -> (%y: f32[2]) { %a = constant {value = f32[2] (1.0, 2.0)} %b = exp %a %c = log %b %y = round %c return %y "
      "}");
  EXPECT_EQ(fold_constants(module.main().body, &module), 3u);
  ASSERT_TRUE(constant_of(only_result(module)));
  EXPECT_EQ(constant_of(only_result(module))->as_f64(), (std::vector<double>{1, 2}));
}

TEST(Folding, TakesShapesOfValuesThatAreNotKnown) {
  Module module = test::parse_short("(%x: f32[2, 3]) -> (%y: i64[2]) { %r = relu %x %y = shape_of %r return %y }");
  fold_constants(module.main().body, &module);
  remove_dead(module.main().body, &module);
  ASSERT_TRUE(constant_of(only_result(module)));
  EXPECT_EQ(constant_of(only_result(module))->as_i64(), (std::vector<int64_t>{2, 3}));
  EXPECT_EQ(module.main().body.nodes.size(), 1u);
}

TEST(Folding, HandlesSeveralResults) {
  Module module = test::parse_short(
      "(%x: f32[2]) -> (%v: f32[2], %i: i64[2]) { %a = constant {value = f32[3] (1.0, 3.0, 2.0)} %k = constant {value "
      "= i64[] (2)} "
      "%v, %i = top_k %a, %k return %v, %i }");
  fold_constants(module.main().body, &module);
  verify(module);
  for (const Value* result : module.main().body.results) EXPECT_TRUE(constant_of(result));
}

TEST(Folding, LeavesResultsThatAreTooLarge) {
  Module module = test::parse_short(
      "() -> (%y: f32[50, 50]) { %a = constant {value = f32[] (1.0)} %s = constant {value = i64[2] (50, 50)} "
      "%y = broadcast_to %a, %s return %y }");
  EXPECT_EQ(fold_constants(module.main().body, &module, 9999), 0u);
  EXPECT_EQ(fold_constants(module.main().body, &module, 10000), 1u);
}

TEST(Folding, LeavesWhatFailsToRunTime) {
  Module module = test::parse_short(
      "() -> (%y: f32[]) { %a = constant {value = f32[2] (1.0, 2.0)} %i = constant {value = i64[] (7)} %y = gather %a, "
      "%i {axis = 0} return %y }");
  EXPECT_EQ(fold_constants(module.main().body, &module), 0u);
  EXPECT_EQ(optimise(module).empty(), false);
}

TEST(Folding, SeesNoStateAndNoRandomNumbers) {
  Module module =
      test::parse_short("() -> (%y: f32[]) { %v = variable {name = v, type = f32[]} %y = read_variable %v return %y }");
  EXPECT_EQ(fold_constants(module.main().body, &module), 0u);
}

// Values that readers of models have met in hostile files.
Tensor absurd(std::mt19937& random, DType dtype, bool small) {
  static const double kNumbers[] = {0, 1, -1, 2, 3, -3, 7, 0.5, 1e30, -1e30, 1e300, INFINITY, -INFINITY, NAN};
  static const int64_t kIntegers[] = {0,         1,         -1,       2, 3, -2, 5, 63, 64, 1 << 20, int64_t{1} << 40,
                                      INT64_MAX, INT64_MIN, INT32_MAX};
  static const std::vector<int64_t> kDims[] = {{},     {1}, {2}, {0},    {2, 3}, {1, 2, 2, 1},
                                               {2, 2}, {3}, {4}, {1, 0}, {4, 2}};
  Tensor tensor = Tensor::zeros(dtype, kDims[random() % std::size(kDims)]);
  auto limit = small ? 7 : std::size(kIntegers);
  for (int64_t i = 0; i < tensor.count(); ++i) {
    int64_t integer = kIntegers[random() % limit];
    if (dtype == kF32)
      tensor.mutable_values<float>()[static_cast<size_t>(i)] =
          static_cast<float>(kNumbers[random() % std::size(kNumbers)]);
    else if (dtype == kF64)
      tensor.mutable_values<double>()[static_cast<size_t>(i)] = kNumbers[random() % std::size(kNumbers)];
    else if (dtype == kBool)
      tensor.mutable_values<uint8_t>()[static_cast<size_t>(i)] = random() % 2;
    else if (dtype == kI32)
      tensor.mutable_values<int32_t>()[static_cast<size_t>(i)] = static_cast<int32_t>(integer);
    else if (dtype == kI64)
      tensor.mutable_values<int64_t>()[static_cast<size_t>(i)] = integer;
    else if (dtype == kU8)
      tensor.mutable_values<uint8_t>()[static_cast<size_t>(i)] = static_cast<uint8_t>(integer);
  }
  return tensor;
}

std::optional<Attribute> absurd_attribute(std::mt19937& random, const AttrDef& def) {
  static const int64_t kIntegers[] = {0, 1, -1, 2, 3, -5, 100, INT64_MAX, INT64_MIN};
  if (!def.words.empty()) return std::string(def.words[random() % def.words.size()]);
  switch (def.kind) {
    case AttrKind::boolean: return random() % 2 == 0;
    case AttrKind::integer: return kIntegers[random() % std::size(kIntegers)];
    case AttrKind::number: return std::uniform_real_distribution<double>(-2, 2)(random);
    case AttrKind::dtype: return random() % 2 ? kF32 : kI32;
    case AttrKind::integers: {
      std::vector<int64_t> list(random() % 5);
      for (int64_t& each : list) each = kIntegers[random() % (random() % 4 ? 4 : std::size(kIntegers))];
      return list;
    }
    default: return {};
  }
}

TEST(Folding, SurvivesAbsurdConstants) {
  static const DType kDTypes[] = {kF32, kF32, kF64, kI32, kI64, kI64, kBool, kU8};
  std::mt19937 random(7);
  size_t folded = 0, tried = 0;
  for (const OpDef* op : all_ops()) {
    if (op->has(kNotFoldable | kControl | kHostValue) || !op->reference || !op->pure()) continue;
    for (int trial = 0; trial < 300; ++trial) {
      Module module;
      module.functions.push_back(std::make_unique<Function>());
      Function& main = *module.functions[0];
      main.name = "main";
      Builder builder(main.body);
      std::vector<Value*> inputs;
      DType dtype = kDTypes[random() % std::size(kDTypes)];
      for (const InputDef& input : op->inputs) {
        bool shape = input.accepts == Accepts::i32_or_i64;
        if (!shape && random() % 4 == 0) dtype = kDTypes[random() % std::size(kDTypes)];
        inputs.push_back(builder.constant(absurd(random, shape ? kI64 : dtype, random() % 2)));
      }
      Attributes attributes;
      for (const AttrDef& def : op->attributes)
        if (!def.fallback || random() % 2)
          if (auto value = absurd_attribute(random, def)) attributes.set(def.name, *value);
      try {
        Node* node = builder.add_node(*op, inputs, attributes);
        for (const auto& result : node->results) main.body.results.push_back(result.get());
      } catch (const Error&) {
        continue;
      }
      for (size_t i = 0; i < main.body.results.size(); ++i) main.result_names.push_back(std::to_string(i));
      ++tried;
      folded += fold_constants(main.body, &module, 1 << 20);
      verify(module);
    }
  }
  EXPECT_GT(tried, 2000u);
  EXPECT_GT(folded, tried / 2);
}

}  // namespace
}  // namespace cairn
