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

Result run(const Case& one, std::vector<Input> inputs) {
  Options options;
  set_options(options, one.options);
  options.jobs = 1;
  return migrate(std::move(inputs), options);
}

std::vector<Input> outputs(const Result& result) {
  std::vector<Input> files;
  for (const FileResult& file : result.files)
    files.push_back({file.path, file.state == FileState::changed ? file.after : file.before, ""});
  return files;
}

TEST(cases, scripts_give_the_wanted_text_and_findings_and_a_second_run_changes_nothing) {
  size_t count = 0;
  for (const std::filesystem::path& path : case_files()) {
    for (const Case& one : read_cases(path)) {
      SCOPED_TRACE(one.file + ": " + one.title);
      ++count;
      std::vector<Input> inputs = one.others;
      inputs.push_back({"script.py", one.in, ""});
      Result all = run(one, std::move(inputs));
      const FileResult& result = *std::find_if(all.files.begin(), all.files.end(),
                                               [](const FileResult& file) { return file.path == "script.py"; });
      std::string got = result.state == FileState::changed ? result.after : result.before;
      EXPECT_EQ(got, one.unchanged ? one.in : one.out);
      for (const std::string& wanted : one.finds)
        EXPECT_TRUE(found(result, wanted)) << wanted << "\namong\n" << all_findings(result);
      for (const std::string& unwanted : one.forbidden) EXPECT_FALSE(found(result, unwanted)) << unwanted;
      for (const std::string& wanted : one.uses) EXPECT_TRUE(used(result, wanted)) << wanted;
      for (const std::string& unwanted : one.no_uses) EXPECT_FALSE(used(result, unwanted)) << unwanted;
      // The whole project again.
      Result again = run(one, outputs(all));
      for (const FileResult& file : again.files) {
        EXPECT_NE(file.state, FileState::changed) << file.after;
        EXPECT_TRUE(file.changes.empty()) << file.path;
      }
    }
  }
  EXPECT_GE(count, 90u);
}

}  // namespace
}  // namespace cairn::migrate
