// Every rule: its example turns into what the table says, and both sides compute the same.
#include "passes/rules.h"

#include <gtest/gtest.h>

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
