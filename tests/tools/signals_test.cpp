// Every command that writes, told to end while it holds a file of its output open: where that is, a tracer finds.
#include <sys/ptrace.h>
#include <sys/syscall.h>

#include <map>
#include <set>

#include "tools/command_folder.h"

namespace cairn {
namespace {

class Signals : public CommandFolder {
 protected:
  /// Runs a command that gets a signal in its `nth` call that writes to a file in this folder. `sent`: it made so many.
  Ending told_to_end(const std::string& line, int number, size_t nth, bool& sent) const {
    const pid_t command = start(line, [] {
      ::setenv("ASAN_OPTIONS", "detect_leaks=0", 1);  // which cannot work under a tracer
      ::ptrace(PTRACE_TRACEME, 0, nullptr, nullptr);
      ::raise(SIGSTOP);
    });
    Ending ending;
    size_t calls = 0;
    std::set<pid_t> known;
    int status = 0;
    for (pid_t thread; (thread = ::waitpid(-1, &status, __WALL)) > 0;) {
      if (WIFEXITED(status) || WIFSIGNALED(status)) {
        if (thread == command) ending = ending_of(status);
        continue;
      }
      long pass_on = 0;
      const int stop = WSTOPSIG(status);
      if (known.insert(thread).second)  // its first stop is the tracer's own
        ::ptrace(PTRACE_SETOPTIONS, thread, nullptr, kOptions);
      else if (stop == (SIGTRAP | 0x80))
        calls += !sent && writes_here(thread);
      else if (status >> 16 == 0)
        pass_on = stop;
      if (!sent && calls == nth) {
        ::kill(command, number);
        sent = true;
      }
      ::ptrace(PTRACE_SYSCALL, thread, nullptr, pass_on);
    }
    return ending;
  }

  /// The files of the folder but streams and logs, which grow, and what they hold.
  std::map<std::string, std::string> files() const {
    std::map<std::string, std::string> found;
    for (const auto& entry : fs::recursive_directory_iterator(folder_))
      if (entry.is_regular_file() && entry.path().extension() != ".log" && !is_stream(entry.path()))
        found[entry.path().string()] = read_file(entry.path());
    return found;
  }

 private:
  static constexpr long kOptions = PTRACE_O_TRACESYSGOOD | PTRACE_O_TRACECLONE | PTRACE_O_TRACEFORK |
                                   PTRACE_O_TRACEVFORK | PTRACE_O_TRACEEXEC | PTRACE_O_EXITKILL;

  /// Whether the thread begins a call that changes or locks a file in this folder.
  bool writes_here(pid_t thread) const {
    __ptrace_syscall_info call{};
    if (::ptrace(PTRACE_GET_SYSCALL_INFO, thread, sizeof call, &call) <= 0 || call.op != PTRACE_SYSCALL_INFO_ENTRY)
      return false;
    static const std::set<uint64_t> kWriting = {SYS_write,     SYS_pwrite64,  SYS_writev, SYS_flock,
                                                SYS_ftruncate, SYS_fallocate, SYS_fsync,  SYS_fchmod};
    if (!kWriting.contains(call.entry.nr)) return false;
    std::error_code gone;
    const fs::path file = fs::read_symlink(fmt::format("/proc/{}/fd/{}", thread, call.entry.args[0]), gone);
    return !gone && file.string().starts_with(folder_.string()) && !is_stream(file);
  }
  static bool is_stream(const fs::path& file) { return file.filename() == ".out" || file.filename() == ".errors"; }
};

constexpr const char* kWriters[] = {
    "cairn convert m.cairn -o m.om",
    "cairn quantize m.om --weights-only 8 -o m.om --report q.html",
    "cairn run m.om -o results",
    "cairn train m.onnx --data x.npz --loss mse --epochs 1 -o m.onnx --checkpoint c.npz",
    "cairn diff m.om m.cairn -o diffs",
    "cairn migrate scripts --in-place",
    "cairn migrate scripts -o moved",
    "cairn data convert t.csv -o t.tfrecord",
    "cairn data convert t.csv -o t.mindrecord",
    "cairn data inspect t.csv --html t.html",
    "cairn profile merge ranks -o job.trace",
    "cairn profile export ranks",
    "cairn simulate m.om --batch 4 --ranks 2 --network 5us,100Gb/s -o s.html",
    "cairn launch -n 2 --log-dir logs @/cairn convert m.cairn -o m.om",
    "cairn launch -n 2 --rank-table table.json @/cairn check m.om",
    "atc --mode=1 --om=m.om --json=m.json",
    "msame --model m.om --output out",
    "msaccucmp compare -m results -g results -out compared",
};

TEST_F(Signals, InACallThatWritesTheyLeaveNoPartAndAreTold) {
  const int numbers[] = {SIGTERM, SIGHUP, SIGINT};
  size_t turn = 0;
  for (const char* line : kWriters) {
    bool sent = true;
    for (size_t nth = 1; nth <= 4 && sent; ++nth) {
      const int number = numbers[turn++ % 3];
      const auto before = files();
      sent = false;
      const Ending ending = told_to_end(line, number, nth, sent);
      const std::string what = fmt::format("{}, signal {} in call {}: {}", line, number, nth, said("errors"));
      EXPECT_TRUE(sent || nth > 1) << what << " wrote nothing";
      for (const std::string& part : parts()) ADD_FAILURE() << what << part, fs::remove(part);
      if (!sent) continue;
      const bool launched = ending.signal == 0;  // such a command waits for others, and has a status of its own
      EXPECT_EQ(launched ? ending.status - 128 : ending.signal, number) << what << ending.status;
      EXPECT_TRUE(number == SIGINT || said("errors").find("ended by SIG") != std::string::npos) << what;
      for (const auto& [path, content] : before) EXPECT_TRUE(read_file(path) == content) << what << path;
    }
  }
  EXPECT_GT(turn, 2 * std::size(kWriters));
}

}  // namespace
}  // namespace cairn
