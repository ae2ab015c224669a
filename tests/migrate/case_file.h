// The cases of tests/migrate/*.test. Each begins with a line "== title"; then
//   options: words as on the command line       file: path, and below it the text of another file of the project
//   in: / out: the script before and after      unchanged: the script stays as it is
//   find: rule: words of a finding              no find: rule
//   use: call|value|base|decorator|import name  a use of a framework's name that the report lists; no use: one that it does not
//   others: what other converters do with it    here: what ours does (rows of docs/reference/migrate-comparison.md)
#pragma once

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <functional>
#include <string>
#include <vector>

#include "migrate/migrate.h"

namespace cairn::migrate {

struct Case {
  std::string file, title, options, in, out;
  bool unchanged = false;
  std::vector<Input> others;
  std::vector<std::string> finds, forbidden, uses, no_uses;
  std::string mistake, here;
};

inline std::vector<Case> read_cases(const std::filesystem::path& path) {
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
    } else if (line.starts_with("use:")) {
      cases.back().uses.push_back(rest("use:"));
      into = nullptr;
    } else if (line.starts_with("no use:")) {
      cases.back().no_uses.push_back(rest("no use:"));
      into = nullptr;
    } else if (line.starts_with("others:")) {
      cases.back().mistake = rest("others:");
    } else if (line.starts_with("here:")) {
      cases.back().here = rest("here:");
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

/// The .test files; TensorFlow's mistakes come before PyTorch's.
inline std::vector<std::filesystem::path> case_files() {
  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::directory_iterator(CAIRN_SOURCE_DIR "/tests/migrate"))
    if (entry.path().extension() == ".test") files.push_back(entry.path());
  std::sort(files.begin(), files.end(), std::greater<>());
  return files;
}

}  // namespace cairn::migrate
