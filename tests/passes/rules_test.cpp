// Every rule: its example turns into what the table says, and both sides compute the same.
#include "passes/rules.h"

#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <random>

#include "passes/facts.h"
#include "passes/pipeline.h"
#include "passes/provenance.h"
#include "passes/support.h"

namespace cairn {
namespace {

class EveryRule : public testing::TestWithParam<const Rule*> {};

// The rule and folding alone: other rules would hide what it does.
SimplifyOptions only(const Rule* wanted) {
  SimplifyOptions options;
  for (const Rule* rule : all_rules())
    if (rule != wanted) options.disabled.insert(rule->name);
  return options;
}

void attach_sources(Module& module) {
  for (auto& node : module.main().body.nodes)
    node->sources = {module.add_source({"test", node->result()->name, node->op->name, ""})};
}

TEST_P(EveryRule, TurnsItsExampleIntoTheStatedResult) {
  const Rule& rule = *GetParam();
  Module before = test::parse_short(rule.in);
  Module after = clone(before);
  std::map<std::string, size_t> effects;
  simplify(after.main().body, &after, only(&rule), &effects);
  remove_dead(after.main().body, &after);
  verify(after);
  EXPECT_GE(effects[rule.name], 1u) << "does not match its example";
  Module expected = test::parse_short(rule.out);
  EXPECT_EQ(test::structure(clone(after)), test::structure(clone(expected)));
  EXPECT_EQ(test::random_check(before, after), "");
  EXPECT_EQ(test::random_check(before, expected), "");
}

TEST_P(EveryRule, LosesNoSourceNode) {
  Module before = test::parse_short(GetParam()->in);
  attach_sources(before);
  Module after = clone(before);
  optimise(after);
  EXPECT_EQ(test::random_check(before, after), "");
  for (const std::string& fault : check_provenance(before, after)) ADD_FAILURE() << fault;
}

INSTANTIATE_TEST_SUITE_P(Rules, EveryRule, testing::ValuesIn(all_rules().begin(), all_rules().end()),
                         [](const auto& info) { return std::string(info.param->name); });

TEST(Rules, TransposesAroundReshapesBecomeOneOfTheSameElements) {
  std::mt19937 random(4);
  const auto below = [&](size_t count) { return std::uniform_int_distribution<size_t>(0, count - 1)(random); };
  for (int turn = 0; turn < 60; ++turn) {
    std::vector<int64_t> factors(2 + below(5));
    for (int64_t& each : factors) each = std::vector<int64_t>{2, 3, 5, 1}[below(turn % 2 ? 3 : 4)];
    const auto grouped = [&] {  // neighbouring factors as dims
      std::vector<int64_t> dims{1};
      for (const int64_t each : factors) below(2) ? dims.push_back(each) : void(dims.back() *= each);
      return dims;
    };
    const auto shuffled = [&](size_t rank) {
      Permutation axes(rank);
      std::iota(axes.begin(), axes.end(), 0);
      std::shuffle(axes.begin(), axes.end(), random);
      return axes;
    };
    const auto permuted = [](const std::vector<int64_t>& dims, const Permutation& axes) {
      std::vector<int64_t> result;
      for (const int64_t axis : axes) result.push_back(dims[static_cast<size_t>(axis)]);
      return result;
    };
    const std::vector<int64_t> middle = grouped(), to = grouped();
    const Permutation first = shuffled(middle.size()), second = shuffled(to.size());
    const std::string text = fmt::format(
        "(%x: f32[{}]) -> (%y: f32[{}]) {{ %a = transpose %x {{permutation = [{}]}} %s = constant {{value = i64[{}] "
        "({})}} "
        "%b = reshape %a, %s %y = transpose %b {{permutation = [{}]}} return %y }}",
        fmt::join(permuted(middle, inverse(first)), ", "), fmt::join(permuted(to, second), ", "),
        fmt::join(first, ", "), to.size(), fmt::join(to, ", "), fmt::join(second, ", "));
    Module before = test::parse_short(text), after = clone(before);
    simplify(after.main().body, &after, {});
    remove_dead(after.main().body, &after);
    verify(after);
    EXPECT_EQ(test::random_check(before, after), "") << text;
    const auto& nodes = after.main().body.nodes;
    const auto left = std::count_if(nodes.begin(), nodes.end(), [](const auto& node) { return node->is("transpose"); });
    EXPECT_LE(left, turn % 2 ? 1 : 2) << text;  // dims of one may hide where a dim ends
  }
}

TEST(Rules, AreDisabledByTheirNameAndByThePlatformsName) {
  for (const char* name : {"fold_batch_norm", "BatchNormBnInferFusionPass", "BatchNormBnInfer", "ALL"}) {
    const Rule* rule = nullptr;
    for (const Rule* each : all_rules())
      if (std::string_view(each->name) == "fold_batch_norm") rule = each;
    Module module = test::parse_short(rule->in);
    optimise(module, {.disabled = {name}});
    EXPECT_NE(print(module).text.find("batch_norm"), std::string::npos) << name;
  }
}

TEST(Rules, HaveNamesOfTheirOwn) {
  std::set<std::string> names;
  for (const PassInfo& pass : list_passes()) EXPECT_TRUE(names.insert(pass.name).second) << pass.name;
}

}  // namespace
}  // namespace cairn
