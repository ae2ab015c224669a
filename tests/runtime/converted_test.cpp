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

TEST(Precision, EntriesThatFitNothingAreReported) {
  Module module = parse(kF32Text);
  auto report = set_precision(module, {.mode = PrecisionMode::mixed, .black = {"SqrtV9"}, .keep = {"s", "q"}});
  EXPECT_EQ(report.unused, (std::vector<std::string>{"SqrtV9", "q"}));
}

}  // namespace
}  // namespace cairn
