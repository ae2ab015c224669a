// What is written about the rules is what they do, and the example scripts migrate in one go.
#include <gtest/gtest.h>

#include <algorithm>

#include "migrate/reports.h"
#include "migrate/tree.h"
#include "support/files.h"

namespace cairn::migrate {
namespace {

TEST(docs, the_page_of_rules_is_what_the_command_prints) {
  EXPECT_EQ(read_file(CAIRN_SOURCE_DIR "/docs/reference/migrate-rules.md"), rules_markdown())
      << "run: cairn migrate --rules > docs/reference/migrate-rules.md";
}

TEST(examples, each_script_is_migrated_without_an_error_and_a_second_run_changes_nothing) {
  Tree tree = read_tree(CAIRN_SOURCE_DIR "/examples/migrate", {});
  Result result = migrate(tree.inputs, {});
  EXPECT_EQ(result.tf, 1);
  EXPECT_EQ(result.distributed, Distribution::horovod);
  std::vector<Input> outputs;
  for (const FileResult& file : result.files) {
    EXPECT_EQ(file.state, FileState::changed) << file.path;
    for (const Finding& finding : file.findings)
      EXPECT_NE(finding.severity, Severity::error) << file.path << ": " << finding.message;
    outputs.push_back({file.path, file.after, ""});
  }
  EXPECT_GE(outputs.size(), 6u);
  EXPECT_EQ(migrate(outputs, {}).changed(), 0u);
}

}  // namespace
}  // namespace cairn::migrate
