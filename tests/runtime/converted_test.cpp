// What a converted model carries: the sizes it takes, what stays switched off, and lower precision, which must give the
// bits that 16-bit operators have on the reference engine.
#include <gtest/gtest.h>

#include "ir/text.h"
#include "model/om_file.h"
#include "passes/precision.h"
#include "runtime/input_limits.h"
#include "runtime/model.h"

namespace cairn {
namespace {

std::string model_text(const std::string& metadata, const std::string& dims = "?n, 3") {
  return "module @m {\n" + metadata + "  func @main(%x: f32[" + dims + "]) -> (%y: f32[" + dims +
         "]) {\n    %a = relu %x : f32[" + dims + "]\n    %y = relu %a : f32[" + dims + "]\n    return %y\n  }\n}\n";
}

Tensor zeros(std::vector<int64_t> dims) { return Tensor::zeros(kF32, std::move(dims)); }

TEST(InputLimits, AreWrittenReadAndChecked) {
  Module module = parse(model_text(""));
  InputLimits({{{{1, 1}, {3, 3}}}, {{{4, 8}, {3, SizeRange::kNoLimit}}}}).write(module);
  EXPECT_EQ(module.metadata.at("input_sizes"), "1,3|4~8,3~-1");
  EXPECT_EQ(InputLimits::of(module).alternatives().size(), 2u);
  auto model = Model::make(parse(print(module).text));
  for (int64_t n : {1, 4, 8}) EXPECT_EQ(model->run({zeros({n, 3})})[0].dims()[0], n);
  for (int64_t n : {0, 2, 9}) {
    EXPECT_THROW(model->run({zeros({n, 3})}), Error) << n;
    EXPECT_THROW(model->plan(std::vector<Dims>{{n, 3}}), Error) << n;
  }
}

TEST(InputLimits, UnreadableOnesAreRefused) {
  for (const char* text : {"", "a", "1,", "1,3;1", "1~", "-2,3", "99999999999999999999,3", "1,3|1,3;1"}) {
    Module module = parse(model_text(""));
    module.metadata["input_sizes"] = text;
    EXPECT_THROW(
        {
          auto model = Model::make(std::move(module));
          model->run({zeros({1, 3})});
        },
        Error)
        << text;
  }
}

TEST(Converted, WhatWasSwitchedOffStaysOff) {
  auto steps = [](const std::string& metadata) {
    return Model::make(parse(model_text(metadata, "2, 3")))->module().main().body.nodes.size();
  };
  EXPECT_EQ(steps(""), 1u);  // relu of relu
  EXPECT_EQ(steps("  disabled_pass \"ALL\"\n"), 2u);
  EXPECT_EQ(steps(std::string("  optimised_by \"") + kProducer + "\"\n"), 2u);  // taken as it is
  EXPECT_EQ(steps("  optimised_by \"cairn 0.0.1\"\n"), 1u);                     // of another version: again
}

constexpr const char* kF32Text = R"(module @m {
  func @main(%x: f32[5, 4]) -> (%y: f32[5, 3]) {
    %w = constant {value = f32[4, 3] (1.1, -0.2, 0.3, 0.4, 0.55, -0.6, 0.7, 0.81, 0.9, -1.3, 1.7, 0.01)} : f32[4, 3]
    %m = matmul %x, %w : f32[5, 3]
    %s = mul %m, %m : f32[5, 3]
    %y = sqrt %s : f32[5, 3]
    return %y
  }
}
)";

/// The same with 16-bit operators: what is meant by lower precision.
std::string typed(const std::string& low) {
  std::string text = R"(module @m {
  func @main(%x: f32[5, 4]) -> (%y: f32[5, 3]) {
    %v = constant {value = f32[4, 3] (1.1, -0.2, 0.3, 0.4, 0.55, -0.6, 0.7, 0.81, 0.9, -1.3, 1.7, 0.01)} : f32[4, 3]
    %w = cast %v {dtype = LOW} : LOW[4, 3]
    %i = cast %x {dtype = LOW} : LOW[5, 4]
    %m = matmul %i, %w : LOW[5, 3]
    %s = mul %m, %m : LOW[5, 3]
    %q = sqrt %s : LOW[5, 3]
    %y = cast %q {dtype = f32} : f32[5, 3]
    return %y
  }
}
)";
  for (size_t at; (at = text.find("LOW")) != std::string::npos;) text.replace(at, 3, low);
  return text;
}

TEST(Precision, RoundingAroundOperatorsGivesTheBitsOfLowerOperators) {
  Tensor x = zeros({5, 4});
  for (size_t i = 0; i < 20; ++i) x.mutable_values<float>()[i] = static_cast<float>(i * 37 % 19) / 7 - 1;
  for (DType low : {kF16, kBF16}) {
    Module lowered = parse(kF32Text);
    PrecisionReport report = set_precision(lowered, {.mode = PrecisionMode::force_low, .low = low});
    verify(lowered);
    EXPECT_EQ(report.lowered, 3u);
    auto expected =
        Model::make(parse(typed(to_string(low))), {.engines = {"reference"}, .optimise = false})->run({x})[0];
    for (const char* engine : {"reference", "cpu"}) {
      auto found = Model::make(clone(lowered), {.engines = {engine}})->run({x})[0];
      EXPECT_TRUE(found.same_bits(expected)) << to_string(low) << " " << engine;
    }
  }
}

TEST(Precision, WideningLeavesNoRoundingInside) {
  Module module = parse(typed("f16"));
  PrecisionReport report = set_precision(module, {.mode = PrecisionMode::force_wide});
  verify(module);
  EXPECT_EQ(report.widened, 3u);
  for (const auto& node : module.main().body.nodes)
    EXPECT_TRUE(node->is("cast") || node->is("constant") || node->result()->type.dtype == kF32) << node->op->name;
}

TEST(Precision, WhatOnlyAnUpdateReadsStaysWide) {
  Module module = parse(R"(module @m {
  func @main(%x: f32[5, 4]) -> (%y: f32[5, 3]) {
    %v = variable {name = v, type = f32[5, 3]} : resource<f32[5, 3]>
    %w = constant {value = f32[4, 3] (1.1, -0.2, 0.3, 0.4, 0.55, -0.6, 0.7, 0.81, 0.9, -1.3, 1.7, 0.01)} : f32[4, 3]
    %g = matmul %x, %w : f32[5, 3]
    %s = mul %g, %g : f32[5, 3]
    assign_variable %v, %s
    %y = relu %g : f32[5, 3]
    return %y
  }
}
)");
  EXPECT_EQ(set_precision(module, {.mode = PrecisionMode::mixed}).lowered, 2u);  // the product and the relu
  verify(module);
}

/// A layer of a training step: a convolution, normalisation over the batch, relu, and their gradients.
constexpr const char* kLayerText = R"(module @m {
  func @main(%x: f32[2, 6, 6, 4], %w: f32[3, 3, 4, 8], %g: f32[8], %o: f32[8]) -> (%r: f32[2, 6, 6, 8], %mean: f32[8], %dg: f32[8], %dw: f32[3, 3, 4, 8]) {
    %d = constant {value = i64[4] (3, 3, 4, 8)} : i64[4]
    %zero = constant {value = f32[] (0.0)} : f32[]
    %c = conv2d %x, %w {padding = same} : f32[2, 6, 6, 8]
    %n, %mean, %variance = batch_norm_training %c, %g, %o {epsilon = 0.001} : f32[2, 6, 6, 8], f32[8], f32[8]
    %r = relu %n : f32[2, 6, 6, 8]
    %p = greater %r, %zero : bool[2, 6, 6, 8]
    %s = select %p, %r, %zero : f32[2, 6, 6, 8]
    %dx, %dg, %do = batch_norm_gradient %s, %c, %g, %mean, %variance {epsilon = 0.001} : f32[2, 6, 6, 8], f32[8], f32[8]
    %dw = conv2d_kernel_gradient %x, %dx, %d {padding = same} : f32[3, 3, 4, 8]
    return %r, %mean, %dg, %dw
  }
}
)";

TEST(Precision, ALayerInTrainingHasActivationsOf16BitsAndParametersOf32) {
  std::vector<Tensor> inputs;
  for (const Dims& dims : {Dims{2, 6, 6, 4}, {3, 3, 4, 8}, {8}, {8}}) {
    Tensor& input = inputs.emplace_back(zeros(dims));
    for (int64_t i = 0; i < input.count(); ++i)
      input.mutable_values<float>()[static_cast<size_t>(i)] = static_cast<float>(i * 37 % 101) / 71 - 0.7f;
  }
  const auto exact = Model::make(parse(kLayerText), {.engines = {"reference"}})->run(inputs);
  for (DType low : {kF16, kBF16}) {
    Module lowered = parse(kLayerText);
    set_precision(lowered, {.mode = PrecisionMode::mixed, .low = low});
    verify(lowered);
    const auto expected = Model::make(clone(lowered), {.engines = {"reference"}})->run(inputs);
    auto model = Model::make(std::move(lowered), {.engines = {"cpu"}});
    const auto found = model->run(inputs);
    const float unit = low == kF16 ? 0x1p-11f : 0x1p-8f;
    for (size_t i = 0; i < exact.size(); ++i) {
      float most = 0;
      for (float value : exact[i].values<float>()) most = std::max(most, std::abs(value));
      float rounding = 0;
      for (size_t j = 0; j < exact[i].values<float>().size(); ++j) {
        const float value = expected[i].values<float>()[j];
        EXPECT_NEAR(found[i].values<float>()[j], value, 2 * unit * most) << i << " " << j;
        EXPECT_NEAR(value, exact[i].values<float>()[j], 8 * unit * most) << i << " " << j;
        rounding = std::max(rounding, std::abs(value - exact[i].values<float>()[j]));
      }
      EXPECT_GT(rounding, 0) << i;
    }
    const auto plan = model->plan(std::vector<Dims>{{2, 6, 6, 4}, {3, 3, 4, 8}, {8}, {8}});
    for (const PlannedStep& step : plan->steps) {
      EXPECT_FALSE(step.kernel.starts_with("reference")) << step.kernel;
      for (const Value* made : step.group.outputs) {
        const bool result = std::ranges::count(plan->function->body.results, made) != 0;
        const bool activation = made->type.shape == plan->function->body.results[0]->type.shape;
        EXPECT_TRUE(!activation || result || made->type.dtype == low) << step.kernel;
      }
    }
  }
}

TEST(Precision, ATransposedConvolutionIsNoTraining) {
  Module module = parse(R"(module @m {
  func @main(%x: f32[1, 8, 8, 5], %k: f32[2, 2, 3, 5]) -> (%y: f32[1, 16, 16, 3]) {
    %d = constant {value = i64[4] (1, 16, 16, 3)} : i64[4]
    %t = conv2d_input_gradient %x, %k, %d {strides = [2, 2]} : f32[1, 16, 16, 3]
    %g = sigmoid %t : f32[1, 16, 16, 3]
    %y = mul %t, %g : f32[1, 16, 16, 3]
    return %y
  }
}
)");
  set_precision(module, {.mode = PrecisionMode::mixed, .low = kBF16});
  for (const auto& node : module.main().body.nodes)
    for (const Value* input : node->inputs)
      EXPECT_FALSE(node->is("cast") && input->producer && input->producer->is("sigmoid")) << "is read once";
}

TEST(Precision, ABiasThatIsAParamFollowsTheProduct) {
  for (const char* bias : {"%b: f32[3]", "%b: f32[5, 3]"}) {
    const std::string type = std::string(bias).substr(4);
    Module module =
        parse("module @m {\n  func @main(%x: f32[5, 4], %w: f32[4, 3], " + std::string(bias) +
              ") -> (%y: f32[5, 3]) {\n    %m = matmul %x, %w : f32[5, 3]\n    %s = mul %b, %b : " + type +
              "\n    %a = add %m, %b : f32[5, 3]\n    %y = add %a, %s : f32[5, 3]\n    return %y\n  }\n}\n");
    EXPECT_EQ(set_precision(module, {.mode = PrecisionMode::mixed}).lowered, 2u);  // the product and the first sum
    verify(module);
  }
}

TEST(Precision, WhatOneOperatorOfTheStepReadsIsNotRounded) {
  for (const auto& [after, roundings] : {std::pair("relu", 1), std::pair("sigmoid", 2)}) {
    Module module = parse(
        "module @m {\n  func @main(%x: f32[5, 4], %w: f32[4, 3], %b: f32[3]) -> (%y: f32[5, 3]) {\n"
        "    %m = matmul %x, %w : f32[5, 3]\n    %a = add %m, %b : f32[5, 3]\n    %y = " +
        std::string(after) + " %a : f32[5, 3]\n    return %y\n  }\n}\n");
    set_precision(module, {.mode = PrecisionMode::mixed});
    verify(module);
    const auto rounds = [](const auto& node) {
      return node->is("cast") && node->result()->type.dtype == kF16 && node->result()->type.shape.sizes() == Dims{5, 3};
    };
    EXPECT_EQ(std::ranges::count_if(module.main().body.nodes, rounds), roundings) << after;
  }
}

TEST(Precision, TheSumOfASinglePixelsConvolutionIsNotRoundedInsideOfItsActivation) {
  // kernel dims, what reads the sum %s, roundings of values of that shape
  struct Case {
    const char *kernel, *rest;
    int64_t roundings;
  };
  for (const Case& each :
       {Case{"1, 1, 4, 4", "%g = sigmoid %s %y = mul %s, %g", 1},
        {"1, 1, 4, 4", "%t = mul %s, %half %g = clip %t {low = 0.0, high = 1.0} %y = mul %s, %g", 1},
        {"3, 3, 4, 4", "%g = sigmoid %s %y = mul %s, %g", 2},
        {"1, 1, 4, 4", "%g = sigmoid %s %z = mul %s, %g %y = add %z, %s", 1},
        {"1, 1, 4, 4", "%g = sigmoid %s %z = transpose %s {permutation = [0, 2, 1, 3]} %y = mul %z, %g", 2}}) {
    Module module = parse(
        fmt::format("module @m {{ func @main(%x: f32[2, 6, 6, 4], %k: f32[{}], %b: f32[4]) -> (%y: f32[2, 6, 6, 4]) {{ "
                    "%half = constant {{value = f32[] (0.5)}} %c = conv2d %x, %k {{padding = same}} %s = add %c, %b {} "
                    "return %y }} }}",
                    each.kernel, each.rest));
    set_precision(module, {.mode = PrecisionMode::mixed, .low = kBF16});
    verify(module);
    const auto rounds = [](const auto& node) {
      return node->is("cast") && node->result()->type.dtype == kBF16 && node->inputs[0] != nullptr &&
             node->inputs[0]->producer && node->result()->type.shape.sizes() == Dims{2, 6, 6, 4};
    };
    EXPECT_EQ(std::ranges::count_if(module.main().body.nodes, rounds), each.roundings)
        << each.kernel << " " << each.rest;
  }
}

TEST(Precision, EntriesThatFitNothingAreReported) {
  Module module = parse(kF32Text);
  auto report = set_precision(module, {.mode = PrecisionMode::mixed, .black = {"SqrtV9"}, .keep = {"s", "q"}});
  EXPECT_EQ(report.unused, (std::vector<std::string>{"SqrtV9", "q"}));
}

}  // namespace
}  // namespace cairn
