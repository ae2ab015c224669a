#include "worker.h"

#include <fcntl.h>
#include <spawn.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cmath>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <sstream>
#include <thread>

#include "support/fault.h"
#include "support/stop.h"

extern char** environ;

namespace cairn::cli {

namespace fs = std::filesystem;

namespace {

constexpr std::string_view kFolderHead = "cairn-work.";
constexpr std::time_t kYoung = 60;  // seconds: its maker may not have locked it yet

/// Locks a folder; -1: somebody has it.
int lock_folder(const fs::path& path) {
  const int folder = ::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  if (folder >= 0 && ::flock(folder, LOCK_EX | LOCK_NB) == 0) return folder;
  if (folder >= 0) ::close(folder);
  return -1;
}

/// Removes those of programs that were killed.
void remove_left_folders(const fs::path& place) {
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(place, error)) {
    struct stat info {};
    if (!entry.path().filename().string().starts_with(kFolderHead)) continue;
    if (::lstat(entry.path().c_str(), &info) != 0 || info.st_uid != ::geteuid()) continue;
    if (info.st_mtime + kYoung > std::time(nullptr)) continue;
    const int lock = lock_folder(entry.path());
    if (lock < 0) continue;
    fs::remove_all(entry.path(), error);
    ::close(lock);
  }
}

}  // namespace

TemporaryFolder::TemporaryFolder() {
  const fs::path place = fs::temp_directory_path();
  remove_left_folders(place);
  std::string name = (place / (std::string(kFolderHead) + "XXXXXX")).string();
  if (!::mkdtemp(name.data())) fail(ErrorKind::io, name, "cannot be made: {}", reason(errno));
  path_ = name;
  lock_ = lock_folder(path_);
}

TemporaryFolder::~TemporaryFolder() {
  std::error_code none;
  fs::remove_all(path_, none);
  if (lock_ >= 0) ::close(lock_);
}

std::string find_python(const std::string& asked) {
  if (!asked.empty()) return asked;
  if (const char* given = std::getenv("CAIRN_PYTHON")) return given;
  std::error_code none;
  fs::path beside = fs::read_symlink("/proc/self/exe", none).parent_path() / "python";
  return !none && fs::exists(beside) ? beside.string() : "python3";
}

namespace {

/// A program that is still at work when the command's time is over is ended.
void wait_within_limit(pid_t child, int& status) {
  StopScope* limit = StopScope::current();
  const bool limited = limit != nullptr && std::isfinite(limit->seconds_left());
  for (pid_t done = 0; done != child;) {
    done = ::waitpid(child, &status, limited ? WNOHANG : 0);
    if (done < 0 && errno != EINTR) return;
    if (done != 0) continue;
    if (!limit->poll()) {
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
      continue;
    }
    ::kill(child, SIGKILL);
    ::waitpid(child, &status, 0);
    limit->check();
  }
}

}  // namespace

int run_program(const std::vector<std::string>& words, const std::string& log) {
  std::vector<char*> pointers;
  for (const std::string& word : words) pointers.push_back(const_cast<char*>(word.c_str()));
  pointers.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, log.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
  posix_spawn_file_actions_adddup2(&actions, STDOUT_FILENO, STDERR_FILENO);
  pid_t child = 0;
  int failed = ::posix_spawnp(&child, pointers[0], &actions, nullptr, pointers.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  if (failed) return 127;
  int status = 0;
  wait_within_limit(child, status);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128;
}

namespace {

volatile pid_t command_to_end = 0;
void hand_on(int signal) {
  if (command_to_end > 0) ::kill(command_to_end, signal);
}

}  // namespace

Command::Command(const std::vector<std::string>& words) {
  std::vector<char*> pointers;
  for (const std::string& word : words) pointers.push_back(const_cast<char*>(word.c_str()));
  pointers.push_back(nullptr);
  struct sigaction ignored {
  }, handed{};
  ignored.sa_handler = SIG_IGN, handed.sa_handler = hand_on;
  ::sigaction(SIGINT, &ignored, &interrupt_), ::sigaction(SIGQUIT, &ignored, &quit_);
  sigset_t defaults;
  sigemptyset(&defaults);
  if (interrupt_.sa_handler != SIG_IGN) sigaddset(&defaults, SIGINT);
  if (quit_.sa_handler != SIG_IGN) sigaddset(&defaults, SIGQUIT);
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  posix_spawnattr_setsigdefault(&attributes, &defaults);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGDEF);
  int error = ::posix_spawnp(&pid_, pointers[0], nullptr, &attributes, pointers.data(), environ);
  posix_spawnattr_destroy(&attributes);
  command_to_end = error ? 0 : pid_;
  ::sigaction(SIGTERM, &handed, &end_), ::sigaction(SIGHUP, nullptr, &hang_up_);
  if (hang_up_.sa_handler != SIG_IGN) ::sigaction(SIGHUP, &handed, nullptr);
  ended_ = error != 0;
  if (error) {
    restore();
    fail(ErrorKind::not_found, words[0], "cannot be run: {}", reason(error));
  }
}

Command::~Command() { wait(); }

void Command::restore() {
  command_to_end = 0;
  ::sigaction(SIGINT, &interrupt_, nullptr), ::sigaction(SIGQUIT, &quit_, nullptr);
  ::sigaction(SIGTERM, &end_, nullptr), ::sigaction(SIGHUP, &hang_up_, nullptr);
}

bool Command::has_ended() {
  if (!ended_ && ::waitpid(pid_, &status_, WNOHANG) == pid_) {
    ended_ = true;
    restore();
  }
  return ended_;
}

int Command::wait() {
  while (!ended_) {
    const pid_t found = ::waitpid(pid_, &status_, 0);
    ended_ = found == pid_ || (found < 0 && errno != EINTR);
    if (ended_) restore();  // signals are for this program again
  }
  return WIFEXITED(status_) ? WEXITSTATUS(status_) : 128 + WTERMSIG(status_);
}

void fail_with_log(const std::string& model, const std::string& log) {
  std::string last;  // of a Python that died: the line that says why, not its frames
  std::istringstream lines(log);
  for (std::string line; std::getline(lines, line);)
    if (line.find_first_not_of(" \t\r^~") != std::string::npos && line[0] != ' ') last = line;
  fail(ErrorKind::invalid_model, model, "the framework could not run it: {}",
       last.empty() ? "its process ended without a word" : printable(last));
}

}  // namespace cairn::cli
