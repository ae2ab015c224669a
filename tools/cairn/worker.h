// Programs that a verb runs beside itself: frameworks in Python, in a folder that goes with them, and commands of the user's.
#pragma once

#include <csignal>
#include <filesystem>
#include <string>
#include <vector>

namespace cairn::cli {

/// It is locked while its program lives; those that killed programs left are removed when the next is made.
class TemporaryFolder {
 public:
  /// Throws Error io.
  TemporaryFolder();
  ~TemporaryFolder();
  TemporaryFolder(const TemporaryFolder&) = delete;
  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
  int lock_ = -1;
};

/// The one asked for, the one beside this program (a virtual environment), or the first python3.
std::string find_python(const std::string& asked);

/// Exit status of the program, its output going to `log`; 127 when it cannot be started.
int run_program(const std::vector<std::string>& words, const std::string& log);
/// Throws Error invalid_model: the framework could not run this model; with the last sentence that it said.
[[noreturn]] void fail_with_log(const std::string& model, const std::string& log);

/// A command of the user's with the standard streams of this program. Until it has ended, interrupts from the terminal are
/// for the command alone, so that what it leaves can still be looked at, and a request to end is handed on to it.
class Command {
 public:
  /// Starts it; throws Error not_found.
  explicit Command(const std::vector<std::string>& words);
  ~Command();
  Command(const Command&) = delete;
  pid_t pid() const { return pid_; }
  bool has_ended();
  /// Its exit status; of one that a signal ended 128 and the signal's number.
  int wait();

 private:
  void restore();

  pid_t pid_ = 0;
  int status_ = 0;
  bool ended_ = false;
  struct sigaction interrupt_, quit_, end_, hang_up_;  // as they were
};

}  // namespace cairn::cli
