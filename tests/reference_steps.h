// While one lives, no step of a default run may fall to the reference engine, unless tests/reference_steps.tsv lists its operator.
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>
#include <string>
#include <vector>

namespace cairn::test {

class NoReferenceSteps {
 public:
  NoReferenceSteps() : path_(testing::TempDir() + "cairn_reference_steps_" + std::to_string(getpid())) {
    std::filesystem::remove(path_);
    setenv("CAIRN_REFERENCE_STEPS", path_.c_str(), 1);
  }
  ~NoReferenceSteps() {
    unsetenv("CAIRN_REFERENCE_STEPS");
    std::set<std::string> operators, reasons;
    for (const auto& row : rows(CAIRN_SOURCE_DIR "/tests/reference_steps.tsv"))
      (row.front() == "*" ? reasons : operators).insert(row.front() == "*" ? row.back() : row.front());
    for (const auto& row : rows(path_))
      EXPECT_TRUE(operators.count(row.front()) || reasons.count(row.back()))
          << row.front() << " falls to the reference engine: " << row.back();
    std::filesystem::remove(path_);
  }
  NoReferenceSteps(const NoReferenceSteps&) = delete;

 private:
  /// Lines by their tabs.
  static std::vector<std::vector<std::string>> rows(const std::string& path) {
    std::vector<std::vector<std::string>> list;
    std::ifstream file(path);
    for (std::string line; std::getline(file, line);) {
      std::stringstream columns(line);
      list.emplace_back();
      for (std::string column; std::getline(columns, column, '\t');) list.back().push_back(column);
    }
    return list;
  }

  std::string path_;
};

}  // namespace cairn::test
