// Both sides judged by the graph in float64: whose error is larger is told, and where it begins.
#include <gtest/gtest.h>

#include "diff/nets.h"
#include "diff/truth.h"
#include "passes/pipeline.h"
#include "passes/widen.h"

namespace cairn::diff {
namespace {

Subject plain_subject(const char* text) {
  Subject subject;
  subject.load = [text] { return network(text); };
  subject.threads = 1;
  return subject;
}

/// A run as it comes, or with a fault, against one without passes.
TruthResult judged(const char* text, const Subject& mine, uint64_t seed = 7) {
  std::vector<Tensor> inputs = {made(network(text).main().body.params[0]->type, seed, 1)};
  Subject theirs = plain_subject(text);
  theirs.disabled = {"ALL"};
  return judge_by_truth(mine, inputs, golden_of(trace_run(*theirs.model(), inputs), "cpu, passes off"),
                        in_float64(plain_subject(text)), inputs);
}

TEST(Truth, BothErrorsAreRoundingErrors) {
  for (const char* text : {kConvolutions, kPerceptron, kAttention}) {
    TruthResult result = judged(text, plain_subject(text));
    EXPECT_GE(result.rows.size(), 5u);
    for (const auto* rows : {&result.rows, &result.outputs})
      for (const TruthRow& row : *rows)
        for (const auto& error : {row.mine, row.theirs})
          if (error) {
            EXPECT_GT(error->rms, 0) << row.row.key.node << ": the truth is no better than f32";
            EXPECT_LT(error->rms, 1e-5 * row.row.spread) << row.row.key.node;
          }
    EXPECT_FALSE(result.worse());
  }
}

void move_a_little(Tensor& t) {
  for (float& value : t.mutable_values<float>()) value *= 1.00001f;
}

TEST(Truth, TheOperatorThatRoundsWorseIsNamed) {
  const std::pair<const char*, const char*> cases[] = {
      {kConvolutions, "relu1"}, {kPerceptron, "act"}, {kAttention, "norm"}};
  for (auto [text, name] : cases) {
    Subject mine = plain_subject(text);
    mine.fault = std::make_shared<KernelFault>(network(text).sources, name, move_a_little);
    TruthResult result = judged(text, mine);
    EXPECT_TRUE(result.worse());
    auto first = std::find_if(result.rows.begin(), result.rows.end(), [](auto& row) { return row.first; });
    ASSERT_NE(first, result.rows.end());
    EXPECT_EQ(first->row.key.node, name);
    EXPECT_EQ(first->larger, Larger::mine);
    EXPECT_GT(first->ratio, judge::kLarger);
    EXPECT_NE(to_text(result).find(fmt::format("  {} (net.py", name)), std::string::npos) << to_text(result);
    EXPECT_EQ(to_html(result).find("/*DATA*/"), std::string::npos);
  }
}

TEST(Truth, RunsAreJudgedTogether) {
  Subject faulty = plain_subject(kPerceptron);
  faulty.fault = std::make_shared<KernelFault>(network(kPerceptron).sources, "act", move_a_little);
  for (const Subject& mine : {plain_subject(kPerceptron), faulty}) {
    std::vector<TruthResult> runs;
    for (uint64_t seed = 1; seed <= 3; ++seed) runs.push_back(judged(kPerceptron, mine, seed));
    const TruthResult result = together(runs);
    EXPECT_EQ(result.runs, 3u);
    EXPECT_EQ(result.worse(), mine.fault != nullptr);
    for (size_t i = 0; i < result.rows.size(); ++i) {
      const TruthRow& row = result.rows[i];
      EXPECT_EQ(row.first, mine.fault && row.row.key.node == "act") << row.row.key.node;
      if (!row.mine) continue;
      EXPECT_EQ(row.mine->finite, 3 * runs[0].rows[i].mine->finite);
      EXPECT_GE(row.mine->most, runs[2].rows[i].mine->most);
    }
  }
}

constexpr const char* kLoop = R"(module @m {
  func @main(%x: f32[2], %state: rng) -> (%y: f32[2], %drawn: f32[2], %low: f16[2], %next: rng) updates [3 = 1] {
    %shape = constant {value = i64[1] (2)} : i64[1]
    %next, %drawn = random_uniform %state, %shape {dtype = f32} : rng, f32[2]
    %zero = constant {value = i64[] (0)} : i64[]
    %third = constant {value = f32[] (0.333333343)} : f32[]
    %i, %y = while %zero, %x, %third {carried = 2} : i64[], f32[2]
      region(%i1: i64[], %y1: f32[2], %t1: f32[]) {
        %three = constant {value = i64[] (3)} : i64[]
        %less = less %i1, %three : bool[]
        yield %less
      }
      region(%i2: i64[], %y2: f32[2], %t2: f32[]) {
        %one = constant {value = i64[] (1)} : i64[]
        %next_i = add %i2, %one : i64[]
        %scaled = mul %y2, %t2 : f32[2]
        yield %next_i, %scaled
      }
    %low = cast %y {dtype = f16} : f16[2]
    return %y, %drawn, %low, %next
  }
}
)";

TEST(Truth, LoopsAreWidenedAndRandomNumbersStayThoseOfTheirType) {
  auto run = [](bool wide) {
    Module module = parse(kLoop);
    if (wide) widen_floats(module, true);
    auto model = Model::make(std::move(module), {.threads = 1, .engines = {"reference"}, .disabled_passes = {"ALL"}});
    return model->run({Tensor::of<float>(kF32, {2}, {1, 0.7f})});
  };
  std::vector<Tensor> narrow = run(false), wide = run(true);
  const double third = static_cast<double>(0.333333343f);
  EXPECT_EQ(wide[0].dtype(), kF64);
  EXPECT_DOUBLE_EQ(wide[0].as_f64()[0], third * third * third);
  EXPECT_DOUBLE_EQ(wide[0].as_f64()[1], static_cast<double>(0.7f) * third * third * third);
  EXPECT_EQ(wide[1].as_f64(), narrow[1].as_f64());
  EXPECT_EQ(wide[2].as_f64(), wide[0].as_f64());  // a cast to a narrower type rounds nothing
}

TEST(Truth, ParamsAndResultsKeepTheirTypesForACaller) {
  Module module = parse(kLoop);
  widen_floats(module, false);
  EXPECT_EQ(module.main().body.params[0]->type.dtype, kF32);
  EXPECT_EQ(module.main().body.results[0]->type.dtype, kF32);
  EXPECT_EQ(module.main().body.results[2]->type.dtype, kF16);
}

}  // namespace
}  // namespace cairn::diff
