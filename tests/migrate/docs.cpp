// What is written about the rules is what they do, and the example scripts migrate in one go.
#include <gtest/gtest.h>

#include <cstdlib>
#include <set>

#include "case_file.h"
#include "migrate/reports.h"
#include "migrate/tree.h"
#include "support/files.h"

namespace cairn::migrate {
namespace {

void expect_page(const std::string& name, const std::string& wanted) {
  std::string path = CAIRN_SOURCE_DIR "/docs/reference/" + name;
  const char* update = std::getenv("CAIRN_TEST_UPDATE");
  if (update && *update == '1') write_file(path, wanted);
  EXPECT_EQ(read_file(path), wanted) << "CAIRN_TEST_UPDATE=1 rewrites the page";
}

TEST(docs, the_page_of_rules_is_what_the_command_prints) { expect_page("migrate-rules.md", rules_markdown()); }

// What is wrong with a whole run rather than with a line: the test that shows it.
struct RunMistake {
  std::string_view what, others, here, test;
};
constexpr RunMistake kRunMistakes[] = {
    {"a file that does not parse, is not UTF-8, or a dangling link", "TF: the whole run ends without output",
     "reported; the others migrate", "tree.one_bad_file_never_stops_the_run"},
    {"line ends, tabs, encodings", "TF: line ends change throughout", "every byte outside the edits stays",
     "bytes.line_ends_marks_tabs_form_feeds_and_a_missing_last_line_end_stay"},
    {"a second run", "TF, PT: write again", "changes nothing",
     "cases.scripts_give_the_wanted_text_and_findings_and_a_second_run_changes_nothing"},
    {"a notebook", "TF, PT: copied", "migrated cell by cell", "notebook.cells_are_edited_in_place_and_magics_stay"},
};

std::string comparison_page() {
  std::string page =
      "# Compared with other converters\n\nMistakes of the existing converters, and what `cairn migrate` does with the "
      "same input. TF: the platform's converter of TensorFlow scripts; MC: MindConverter's script mode; PT: the "
      "GPU-to-NPU converter for PyTorch. Scripts of PyTorch migrate to MindSpore, not yet to another device. Each row "
      "is a test, and this page "
      "is "
      "written from them.\n\n| input | others | `cairn migrate` | test |\n|---|---|---|---|\n";
  for (const std::filesystem::path& file : case_files())
    for (const Case& one : read_cases(file))
      if (!one.mistake.empty())
        page += "| " + one.title + " | " + one.mistake + " | " + one.here + " | `" + one.file + "` |\n";
  for (const RunMistake& row : kRunMistakes)
    for (std::string_view cell : {row.what, row.others, row.here, row.test})
      page += (cell == row.what   ? "| "
               : cell == row.test ? " `"
                                  : " ") +
              std::string(cell) + (cell == row.test ? "` |\n" : " |");
  return page;
}

TEST(docs, the_comparison_has_a_row_for_each_mistake_and_each_row_a_test) {
  expect_page("migrate-comparison.md", comparison_page());
  for (const std::filesystem::path& file : case_files())
    for (const Case& one : read_cases(file)) {
      bool row = file.filename().string().starts_with("mistakes_");
      EXPECT_EQ(one.mistake.empty(), !row) << one.title;
      EXPECT_EQ(one.here.empty(), !row) << one.title;
      bool report = one.here.find("report") != std::string::npos || one.here.find("advice") != std::string::npos;
      EXPECT_TRUE(!report || one.finds.size() + one.uses.size() > 0) << one.title << ": what is reported?";
    }
  std::set<std::string> tests;
  const testing::UnitTest& unit = *testing::UnitTest::GetInstance();
  for (int i = 0; i < unit.total_test_suite_count(); ++i)
    for (int j = 0; j < unit.GetTestSuite(i)->total_test_count(); ++j)
      tests.insert(std::string(unit.GetTestSuite(i)->name()) + "." + unit.GetTestSuite(i)->GetTestInfo(j)->name());
  for (const RunMistake& row : kRunMistakes) EXPECT_TRUE(tests.contains(std::string(row.test))) << row.test;
}

// Each script or folder is a project of its own.
TEST(examples, each_project_is_migrated_without_an_error_and_a_second_run_changes_nothing) {
  size_t projects = 0, horovod = 0, second_interface = 0;
  for (const auto& entry : std::filesystem::directory_iterator(CAIRN_SOURCE_DIR "/examples/migrate")) {
    if (entry.path().extension() == ".md") continue;
    ++projects;
    Result result = migrate(read_tree(entry.path(), {}).inputs, {});
    horovod += result.distributed == Distribution::horovod;
    second_interface += result.tf == 2;
    EXPECT_GE(result.changed(), 1u) << entry.path();
    std::vector<Input> outputs;
    for (const FileResult& file : result.files) {
      for (const Finding& finding : file.findings)
        EXPECT_NE(finding.severity, Severity::error) << file.path << ": " << finding.message;
      outputs.push_back({file.path, file.state == FileState::changed ? file.after : file.before, ""});
    }
    EXPECT_EQ(migrate(outputs, {}).changed(), 0u) << entry.path();
  }
  EXPECT_GE(projects, 12u);
  EXPECT_EQ(horovod, 4u);
  EXPECT_EQ(second_interface, 4u);
}

}  // namespace
}  // namespace cairn::migrate
