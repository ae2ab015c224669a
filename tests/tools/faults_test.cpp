// Every command where its streams, its disk, its memory or its threads fail, and where it is told to end.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <filesystem>
#include <functional>
#include <set>

#include "support/files.h"

namespace cairn {
namespace {

namespace fs = std::filesystem;

constexpr const char* kModel = R"(module @m {
  source 0 = "tf" "dense/MatMul" "MatMul" "train.py:41"
  func @main(%x: f32[2, 3]) -> (%y: f32[2, 2]) {
    %w = constant {value = f32[3, 2] (1, 2, 3, 4, 5, 6)} : f32[3, 2]
    %m = matmul %x, %w : f32[2, 2] #0
    %y = relu %m : f32[2, 2]
    return %y
  }
}
)";
constexpr const char* kScript =
    "import tensorflow as tf\nx = tf.placeholder(tf.float32)\nwith tf.Session() as s:\n  s.run(x)\n";

struct Row {
  const char* line;  // @ is the folder of the programs
  int status = 0;
};

/// One line or more for each command; `cairn --help` names the verbs that must be among them.
constexpr Row kCommands[] = {
    {"cairn --help"},
    {"cairn --version"},
    {"cairn", 1},
    {"cairn run --help"},
    {"cairn nothing", 1},
    {"cairn show m.cairn"},
    {"cairn show --text m.cairn"},
    {"cairn show missing.om", 1},
    {"cairn freeze m.cairn -o f.pb", 1},
    {"cairn convert m.cairn -o new.om"},
    {"cairn run m.om"},
    {"cairn run m.om -o results"},
    {"cairn bench m.om --seconds 0 --runs 3"},
    {"cairn verify m.om --against m.cairn", 3},
    {"cairn diff m.om m.cairn"},
    {"cairn why m.om dense/MatMul"},
    {"cairn check m.om"},
    {"cairn profile -o prof -- @/cairn run m.om"},
    {"cairn migrate scripts", 1},
    {"cairn migrate scripts --diff", 1},
    {"cairn migrate scripts -o moved"},
    {"cairn compare results/y.npy results/y.npy"},
    {"atc --help"},
    {"atc --singleop=missing.json --output=ops --soc_version=Ascend310", 255},
    {"atc --mode=6 --om=m.om"},
    {"omg --help"},
    {"omg --model=missing.pb --framework=3 --output=o", 255},
    {"msame --model m.om --output out"},
    {"msprof --output=prof @/cairn run m.om"},
    {"msaccucmp --help"},
    {"msaccucmp compare -m missing -g results", 1},
};
/// They run with Python (tests/python/test_faults.py).
const std::set<std::string> kElsewhere = {"tf1", "port"};

struct Ending {
  int status = -1;
  int signal = 0;
};

class Faults : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    std::string name = fs::temp_directory_path() / "cairn.XXXXXX";
    base_ = ::mkdtemp(name.data());
  }
  static void TearDownTestSuite() { fs::remove_all(base_); }

  void SetUp() override {
    folder_ = base_ / testing::UnitTest::GetInstance()->current_test_info()->name();
    fs::create_directories(folder_ / "scripts");
    write_file(folder_ / "m.cairn", kModel);
    write_file(folder_ / "scripts" / "train.py", kScript);
    ASSERT_EQ(run("cairn convert m.cairn -o m.om").status, 0) << said("errors");
    ASSERT_EQ(run("cairn run m.om -o results").status, 0) << said("errors");
  }

  /// A command in the test's folder, its output in .out and .errors; `change` is called in its process before it starts.
  Ending run(std::string line, const std::function<void()>& change = {}) const {
    while (line.find('@') != std::string::npos) line.replace(line.find('@'), 1, CAIRN_BIN);
    const std::string words = fmt::format("exec {}/{}", CAIRN_BIN, line);
    const pid_t child = ::fork();
    if (child == 0) {
      if (::chdir(folder_.c_str()) != 0) ::_exit(99);
      open_as(STDOUT_FILENO, ".out");
      open_as(STDERR_FILENO, ".errors");
      if (change) change();
      ::execl("/bin/sh", "sh", "-c", words.c_str(), nullptr);
      ::_exit(99);
    }
    int status = 0;
    ::waitpid(child, &status, 0);
    return {WIFEXITED(status) ? WEXITSTATUS(status) : -1, WIFSIGNALED(status) ? WTERMSIG(status) : 0};
  }

  static void open_as(int number, const char* path) {
    const int file = ::open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    ::dup2(file, number);
    if (file != number) ::close(file);
  }
  static void break_pipe(int number) {
    int ends[2];
    if (::pipe(ends) != 0) ::_exit(98);
    ::dup2(ends[1], number);
    ::close(ends[0]);
    ::close(ends[1]);
  }

  std::string said(const char* name) const { return read_file(folder_ / (std::string(".") + name)); }
  /// Part files below the folder.
  std::vector<std::string> parts() const {
    std::vector<std::string> found;
    for (const auto& entry : fs::recursive_directory_iterator(folder_))
      if (entry.path().extension() == ".part") found.push_back(entry.path().string());
    return found;
  }

  static inline fs::path base_;
  fs::path folder_;
};

TEST_F(Faults, EveryCommandIsHere) {
  ASSERT_EQ(run("cairn --help").status, 0);
  const std::string help = said("out");
  std::set<std::string> verbs = kElsewhere;
  for (const Row& row : kCommands)
    if (const std::string line = row.line; line.starts_with("cairn "))
      verbs.insert(line.substr(6, line.find(' ', 6) - 6));
  size_t at = help.find("SUBCOMMANDS:");
  if (at == std::string::npos) at = help.find("Subcommands:");
  ASSERT_NE(at, std::string::npos) << help;
  size_t count = 0;
  for (at = help.find("\n  ", at); at != std::string::npos && help.compare(at, 3, "\n  ") == 0; ++count) {
    const std::string verb = help.substr(at + 3, help.find(' ', at + 3) - at - 3);
    EXPECT_TRUE(verb.empty() || verbs.contains(verb)) << verb;
    at = help.find('\n', at + 1);
  }
  EXPECT_GT(count, 10u);
}

TEST_F(Faults, CommandsEndAsTheyShouldWhereNothingFails) {
  for (const Row& row : kCommands) EXPECT_EQ(run(row.line).status, row.status) << row.line << "\n" << said("errors");
}

TEST_F(Faults, OutputThatIsLostIsAnError) {
  for (const Row& row : kCommands) {
    const bool wrote = (run(row.line), !said("out").empty());
    const auto full = [] { open_as(STDOUT_FILENO, "/dev/full"); };
    const auto closed = [] { ::close(STDOUT_FILENO); };
    const auto broken = [] { break_pipe(STDOUT_FILENO); };
    const auto ignored = [] { break_pipe(STDOUT_FILENO), ::signal(SIGPIPE, SIG_IGN); };
    const bool itself = std::string(row.line).find('@') == std::string::npos;
    if (!wrote || !itself) continue;
    EXPECT_GT(run(row.line, full).status, 0) << row.line;
    EXPECT_NE(said("errors").find("standard output cannot be written"), std::string::npos)
        << row.line << said("errors");
    EXPECT_GT(run(row.line, closed).status, 0) << row.line;
    EXPECT_NE(said("errors").find("standard output is closed"), std::string::npos) << row.line << said("errors");
    EXPECT_EQ(run(row.line, broken).signal, SIGPIPE) << row.line;
    EXPECT_GT(run(row.line, ignored).status, 0) << row.line;
    EXPECT_EQ(said("errors").find("standard output"), std::string::npos) << row.line << said("errors");
  }
}

TEST_F(Faults, NotesThatAreLostAreNoError) {
  const std::function<void()> lost[] = {
      [] { open_as(STDERR_FILENO, "/dev/full"); },
      [] { ::close(STDERR_FILENO); },
      [] { break_pipe(STDERR_FILENO), ::signal(SIGPIPE, SIG_IGN); },
  };
  for (size_t i = 0; i < std::size(kCommands); ++i)
    EXPECT_EQ(run(kCommands[i].line, lost[i % 3]).status, kCommands[i].status) << kCommands[i].line;
  for (const char* line : {"cairn show missing.om", "cairn run m.om", "cairn migrate scripts --diff"}) {
    const int expected = run(line).status;
    for (const auto& change : lost) EXPECT_EQ(run(line, change).status, expected) << line;
  }
}

TEST_F(Faults, NoFileOfOursGetsTheNumberOfAClosedStream) {
  const auto all = [] { ::close(STDIN_FILENO), ::close(STDOUT_FILENO), ::close(STDERR_FILENO); };
  run("cairn convert m.cairn -o closed.om", all);
  EXPECT_EQ(read_file(folder_ / "closed.om"), read_file(folder_ / "m.om"));
}

}  // namespace
}  // namespace cairn
