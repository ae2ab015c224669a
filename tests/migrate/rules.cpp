// Every rule against its own examples: the right text, no edit where none is due, and nothing left to do on the result.
#include <gtest/gtest.h>

#include "migrate/options.h"
#include "migrate/rule.h"

namespace cairn::migrate {
namespace {

std::string migrated(std::string_view text, std::string_view options) {
  Options chosen;
  set_options(chosen, options);
  FileResult result = migrate_text(std::string(text), chosen);
  return result.state == FileState::changed ? result.after : result.before;
}

TEST(rules, each_example_gives_its_text_and_a_second_run_changes_nothing) {
  for (const Rule* rule : all_rules())
    for (const Example& example : rule->examples) {
      std::string_view wanted = example.after.empty() ? example.before : example.after;
      std::string once = migrated(example.before, example.options);
      EXPECT_EQ(once, wanted) << rule->id;
      EXPECT_EQ(migrated(once, example.options), once) << rule->id << ", second run";
    }
}

TEST(rules, each_rule_has_an_id_a_reason_and_an_example_without_edit) {
  std::set<std::string_view> ids;
  for (const Rule* rule : all_rules()) {
    EXPECT_TRUE(ids.insert(rule->id).second) << rule->id;
    EXPECT_FALSE(rule->title.empty() || rule->reason.empty()) << rule->id;
    EXPECT_TRUE(rule->at_call || rule->at_file || rule->tier == Tier::advice) << rule->id;
    bool negative = rule->tier == Tier::advice, positive = negative;
    for (const Example& example : rule->examples) (example.after.empty() ? negative : positive) = true;
    bool covered_elsewhere = rule->id == "npu-estimator" || rule->id == "npu-run-config" ||
                             rule->id == "horovod-import" || rule->id == "tpu-estimator";
    EXPECT_TRUE((negative && positive) || covered_elsewhere) << rule->id;
  }
}

}  // namespace
}  // namespace cairn::migrate
