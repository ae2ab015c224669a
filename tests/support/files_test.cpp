// Files that are replaced as a whole, and the one list of problems.
#include "support/files.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "support/report.h"

namespace cairn {
namespace {

class Folder : public testing::Test {
 protected:
  void SetUp() override {
    std::string name = std::filesystem::temp_directory_path() / "cairn.XXXXXX";
    folder_ = ::mkdtemp(name.data());
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }
  size_t entries() const {
    return static_cast<size_t>(std::distance(std::filesystem::directory_iterator(folder_), {}));
  }
  std::filesystem::path folder_;
};

using Files = Folder;

TEST_F(Files, WritingReplacesAndLeavesNothingElse) {
  std::string path = folder_ / "a";
  write_file(path, "one");
  ::chmod(path.c_str(), 0640);
  write_file(path, "two");
  EXPECT_EQ(read_file(path), "two");
  struct stat info {};
  ::stat(path.c_str(), &info);
  EXPECT_EQ(info.st_mode & 0777, 0640u);
  EXPECT_EQ(entries(), 1u);
  EXPECT_EQ(MappedFile::open(path)->bytes(), "two");
}

TEST_F(Files, AnErrorWhileWritingLeavesTheOldFile) {
  std::string path = folder_ / "a";
  write_file(path, "old");
  EXPECT_THROW(write_file(path,
                          [](const FileSink& sink) {
                            sink("new");
                            fail(ErrorKind::unsupported, "", "stop");
                          }),
               Error);
  EXPECT_EQ(read_file(path), "old");
  EXPECT_EQ(entries(), 1u);
}

TEST_F(Files, AKilledWriterLeavesTheOldFile) {
  std::string path = folder_ / "a";
  write_file(path, "old");
  pid_t child = ::fork();
  if (child == 0) {
    write_file(path, [](const FileSink& sink) {
      sink("half");
      ::kill(::getpid(), SIGKILL);
    });
    ::_exit(0);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  EXPECT_TRUE(WIFSIGNALED(status));
  EXPECT_EQ(read_file(path), "old");
}

TEST_F(Files, ALinkStaysALink) {
  write_file(folder_ / "real", "old");
  std::filesystem::create_symlink("real", folder_ / "link");
  write_file(folder_ / "link", "new");
  EXPECT_TRUE(std::filesystem::is_symlink(folder_ / "link"));
  EXPECT_EQ(read_file(folder_ / "real"), "new");
}

TEST_F(Files, APipeIsWrittenToAndStaysOne) {
  const std::string pipe = folder_ / "pipe";
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  const int reader = ::open(pipe.c_str(), O_RDONLY | O_NONBLOCK);
  ASSERT_GE(reader, 0);
  write_file(pipe, "content");
  char content[16] = {};
  EXPECT_EQ(::read(reader, content, sizeof content), 7);
  EXPECT_STREQ(content, "content");
  ::close(reader);
  EXPECT_TRUE(std::filesystem::is_fifo(pipe));
  EXPECT_EQ(entries(), 1u);
}

TEST_F(Files, WhatCannotBeReadIsNamed) {
  ::mkfifo((folder_ / "pipe").c_str(), 0600);
  for (const char* name : {"missing", "pipe", "."}) {
    try {
      MappedFile::open(folder_ / name);
      ADD_FAILURE() << name;
    } catch (const Error& error) {
      EXPECT_EQ(error.where(), folder_ / name);
    }
  }
}

TEST(ReportText, EqualProblemsBecomeOneLineWithAllNodes) {
  Report report;
  for (const char* node : {"head/a", "head/b", "head/c"})
    report.add({"unsupported-op", Severity::error, "MyOp", {{node, "train.py:7"}}, "unknown operator", "register it"});
  report.add({"unsupported-op", Severity::warning, "DecodeJpeg", {{"input/decode", ""}}, "host operator"});
  EXPECT_EQ(
      report.text(),
      "  MyOp        3 nodes  head/a (train.py:7), head/b (train.py:7) and 1 more  unknown operator; register it\n"
      "  DecodeJpeg  1 node   input/decode                                      warning: host operator\n");
  EXPECT_EQ(report.count(Severity::error), 1u);
}

TEST(ReportText, JsonAndSarifHoldEveryPlaceAndSurviveBadText) {
  Report report;
  report.add({"unsupported-op", Severity::error, "My\xff", {{"a", "train.py:7"}, {"b", ""}}, "unknown operator"});
  auto json = nlohmann::json::parse(report.json());
  EXPECT_EQ(json["problems"][0]["places"].size(), 2u);
  auto sarif = nlohmann::json::parse(report.sarif("m.pb"));
  const auto& locations = sarif["runs"][0]["results"][0]["locations"];
  EXPECT_EQ(locations[0]["physicalLocation"]["region"]["startLine"], 7);
  EXPECT_EQ(locations[1]["physicalLocation"]["artifactLocation"]["uri"], "m.pb");
}

}  // namespace
}  // namespace cairn
