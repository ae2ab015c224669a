// A folder with a model, scripts and rows, in which a test runs commands as processes.
#pragma once

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "formats/npz.h"
#include "support/files.h"

namespace cairn {

namespace fs = std::filesystem;

inline constexpr const char* kModel = R"(module @m {
  source 0 = "tf" "dense/MatMul" "MatMul" "train.py:41"
  func @main(%x: f32[2, 3]) -> (%y: f32[2, 2]) {
    %w = constant {value = f32[3, 2] (1, 2, 3, 4, 5, 6)} : f32[3, 2]
    %m = matmul %x, %w : f32[2, 2] #0
    %y = relu %m : f32[2, 2]
    return %y
  }
}
)";
inline constexpr const char* kScript =
    "import tensorflow as tf\nx = tf.placeholder(tf.float32)\nwith tf.Session() as s:\n  s.run(x)\n";

struct Ending {
  int status = -1;
  int signal = 0;
};

class CommandFolder : public testing::Test {
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
    write_file(folder_ / "t.csv", "a,b\n1,2.5\n3,4.5\n");
    write_npz(folder_ / "x.npz", {{"x", Tensor::zeros(kF32, {8, 3})}, {"labels", Tensor::zeros(kF32, {8, 2})}});
    for (const char* line :
         {"cairn convert m.cairn -o m.om", "cairn convert m.cairn -o m.onnx", "cairn run m.om -o results",
          "cairn profile -o ranks -- @/cairn launch -n 2 @/cairn bench m.om --seconds 0 --runs 2"})
      ASSERT_EQ(run(line).status, 0) << line << said("errors");
  }

  /// A command in the test's folder, its output in .out and .errors; `change` is called in its process before it starts.
  Ending run(const std::string& line, const std::function<void()>& change = {}) const {
    int status = 0;
    ::waitpid(start(line, change), &status, 0);
    return ending_of(status);
  }
  static Ending ending_of(int status) {
    return {WIFEXITED(status) ? WEXITSTATUS(status) : -1, WIFSIGNALED(status) ? WTERMSIG(status) : 0};
  }
  pid_t start(std::string line, const std::function<void()>& change) const {
    while (line.find('@') != std::string::npos) line.replace(line.find('@'), 1, CAIRN_BIN);
    const std::string words = fmt::format("exec {}/{}", CAIRN_BIN, line);
    const pid_t child = ::fork();
    if (child == 0) {
      if (::chdir(folder_.c_str()) != 0) ::_exit(99);
      open_as(STDOUT_FILENO, ".out");
      open_as(STDERR_FILENO, ".errors");
      for (const int number : {SIGHUP, SIGINT, SIGTERM, SIGPIPE})
        ::signal(number, SIG_DFL);  // whoever started the tests
      if (change) change();
      ::execl("/bin/sh", "sh", "-c", words.c_str(), nullptr);
      ::_exit(99);
    }
    return child;
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

}  // namespace cairn
