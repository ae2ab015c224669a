// Runs the *.test files beside it (case_file.h): scripts in, scripts and findings out.
#include <gtest/gtest.h>

#include "case_file.h"
#include "migrate/options.h"
#include "migrate/rule.h"

namespace cairn::migrate {
namespace {

std::string all_findings(const FileResult& file) {
  std::string text;
  for (const Finding& finding : file.findings)
    text += finding.rule + ": " + finding.message + " | " + finding.advice + "\n";
  return text;
}

bool found(const FileResult& file, const std::string& wanted) {
  size_t colon = wanted.find(": ");
  std::string rule = wanted.substr(0, colon), words = colon == std::string::npos ? "" : wanted.substr(colon + 2);
  for (const Finding& finding : file.findings)
    if (finding.rule == rule && (finding.message + " | " + finding.advice).find(words) != std::string::npos)
      return true;
  return false;
}

bool used(const FileResult& file, const std::string& wanted) {
  return std::any_of(file.references.begin(), file.references.end(), [&](const Reference& reference) {
    return std::string(reference.use) + " " + reference.name == wanted;
  });
}

FileResult run(const Case& one, const std::string& text) {
  Options options;
  set_options(options, one.options);
  options.jobs = 1;
  std::vector<Input> inputs = one.others;
  inputs.push_back({"script.py", text, ""});
  Result result = migrate(std::move(inputs), options);
  for (FileResult& file : result.files)
    if (file.path == "script.py") return file;
  return {};
}

TEST(cases, scripts_give_the_wanted_text_and_findings_and_a_second_run_changes_nothing) {
  size_t count = 0;
  for (const std::filesystem::path& path : case_files()) {
    for (const Case& one : read_cases(path)) {
      SCOPED_TRACE(one.file + ": " + one.title);
      ++count;
      FileResult result = run(one, one.in);
      std::string got = result.state == FileState::changed ? result.after : result.before;
      EXPECT_EQ(got, one.unchanged ? one.in : one.out);
      for (const std::string& wanted : one.finds)
        EXPECT_TRUE(found(result, wanted)) << wanted << "\namong\n" << all_findings(result);
      for (const std::string& unwanted : one.forbidden) EXPECT_FALSE(found(result, unwanted)) << unwanted;
      for (const std::string& wanted : one.uses) EXPECT_TRUE(used(result, wanted)) << wanted;
      FileResult again = run(one, got);
      EXPECT_NE(again.state, FileState::changed) << again.after;
    }
  }
  EXPECT_GE(count, 60u);
}

}  // namespace
}  // namespace cairn::migrate
