// Every rule against its own examples: the right text, no edit where none is due, and nothing left to do on the result.
#include <gtest/gtest.h>

#include <algorithm>

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

TEST(rules, advice_is_given_where_an_example_says_so_and_nowhere_else) {
  for (const Rule* rule : all_rules()) {
    if (rule->tier != Tier::advice) continue;
    for (const Example& example : rule->examples) {
      Options chosen;
      set_options(chosen, example.options);
      FileResult result = migrate_text(std::string(example.before), chosen);
      bool reported = std::any_of(result.findings.begin(), result.findings.end(),
                                  [&](const Finding& finding) { return finding.rule == rule->id; });
      EXPECT_EQ(reported, example.reported) << rule->id << "\n" << example.before;
    }
  }
}

TEST(rules, each_rule_has_an_id_a_reason_an_example_of_its_work_and_one_where_it_has_none) {
  std::set<std::string_view> ids;
  for (const Rule* rule : all_rules()) {
    EXPECT_TRUE(ids.insert(rule->id).second) << rule->id;
    EXPECT_FALSE(rule->title.empty() || rule->reason.empty()) << rule->id;
    EXPECT_TRUE(rule->at_call || rule->at_file || rule->tier == Tier::advice) << rule->id;
    bool negative = false, positive = false;
    for (const Example& example : rule->examples)
      (rule->tier == Tier::advice ? example.reported : !example.after.empty()) ? positive = true : negative = true;
    EXPECT_TRUE(positive && negative) << rule->id;
  }
}

}  // namespace
}  // namespace cairn::migrate
