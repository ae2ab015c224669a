// Runs the *.test files beside it: scripts in, scripts and findings out. A case is
//   == title
//   options: as on the command line            (optional)
//   file: other/path.py                        (optional further files, each followed by its text)
//   in:                                        the script (script.py)
//   out: | unchanged                           the script wanted
//   find: rule-id: words of its message or advice   (any number; "no find: rule-id" forbids)
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "migrate/options.h"
#include "migrate/rule.h"

namespace cairn::migrate {
namespace {

struct Case {
  std::string file, title, options, in, out;
  bool unchanged = false;
  std::vector<Input> others;
  std::vector<std::string> finds, forbidden;
};

std::vector<Case> read_cases(const std::filesystem::path& path) {
  std::vector<Case> cases;
  std::ifstream stream(path);
  std::string line;
  std::string* into = nullptr;
  while (std::getline(stream, line)) {
    auto rest = [&](std::string_view key) {
      return line.size() > key.size() ? line.substr(key.size() + 1) : std::string();
    };
    if (line.starts_with("== ")) {
      cases.push_back({});
      cases.back().file = path.filename();
      cases.back().title = line.substr(3);
      into = nullptr;
    } else if (cases.empty()) {
      continue;
    } else if (line.starts_with("options:")) {
      cases.back().options = rest("options:");
    } else if (line.starts_with("file:")) {
      cases.back().others.push_back({rest("file:"), "", ""});
      into = &cases.back().others.back().text;
    } else if (line == "in:") {
      into = &cases.back().in;
    } else if (line == "out:") {
      into = &cases.back().out;
    } else if (line == "unchanged") {
      cases.back().unchanged = true;
      into = nullptr;
    } else if (line.starts_with("find:")) {
      cases.back().finds.push_back(rest("find:"));
      into = nullptr;
    } else if (line.starts_with("no find:")) {
      cases.back().forbidden.push_back(rest("no find:"));
      into = nullptr;
    } else if (into) {
      *into += line + "\n";
    }
  }
  // The blank line before the next case is no part of a script.
  auto trim = [](std::string& text) {
    while (text.ends_with("\n\n")) text.pop_back();
  };
  for (Case& one : cases) {
    trim(one.in), trim(one.out);
    for (Input& other : one.others) trim(other.text);
  }
  return cases;
}

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
  for (const auto& entry : std::filesystem::directory_iterator(CAIRN_SOURCE_DIR "/tests/migrate")) {
    if (entry.path().extension() != ".test") continue;
    for (const Case& one : read_cases(entry.path())) {
      SCOPED_TRACE(one.file + ": " + one.title);
      ++count;
      FileResult result = run(one, one.in);
      std::string got = result.state == FileState::changed ? result.after : result.before;
      EXPECT_EQ(got, one.unchanged ? one.in : one.out);
      for (const std::string& wanted : one.finds)
        EXPECT_TRUE(found(result, wanted)) << wanted << "\namong\n" << all_findings(result);
      for (const std::string& unwanted : one.forbidden) EXPECT_FALSE(found(result, unwanted)) << unwanted;
      FileResult again = run(one, got);
      EXPECT_NE(again.state, FileState::changed) << again.after;
    }
  }
  EXPECT_GE(count, 60u);
}

}  // namespace
}  // namespace cairn::migrate
