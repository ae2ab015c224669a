// The processes of `cairn launch`: pipes for their output, signals in both directions, and the end of all when one fails.
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <map>
#include <random>
#include <tuple>

#include "launch.h"
#include "support/fault.h"

extern char** environ;

namespace cairn::cli {

namespace {

using Clock = std::chrono::steady_clock;

constexpr size_t kLongestLine = 64 << 10;  // more is shown in pieces
constexpr double kAfterTerm = 5;           // seconds from SIGTERM to SIGKILL
constexpr double kLastOutput = 1;          // seconds for what grandchildren still hold open
constexpr double kTimeout = 60;            // seconds that a rank waits for another unless an option says else

/// What comes from one stream of a rank, in lines: shown with the rank in front, and without in its log.
class Lines {
 public:
  Lines(FILE* to, std::string prefix, int log) : to_(to), prefix_(std::move(prefix)), log_(log) {}

  void add(std::string_view text) {
    rest_ += text;
    size_t start = 0;
    for (size_t end; (end = rest_.find('\n', start)) != rest_.npos; start = end + 1)
      show(std::string_view(rest_).substr(start, end - start));
    rest_.erase(0, start);
    if (rest_.size() >= kLongestLine) finish();
  }
  void finish() {
    if (!rest_.empty()) show(rest_);
    rest_.clear();
  }
  /// errno of the log's first fault, after which the rank is shown alone; 0: none.
  int log_fault() const { return log_fault_; }

 private:
  void show(std::string_view line) {
    const std::string text = prefix_ + std::string(line) + "\n";
    std::fwrite(text.data(), 1, text.size(), to_);
    std::fflush(to_);
    const size_t mark = prefix_.size();
    for (size_t done = mark; log_ >= 0 && !log_fault_ && done < text.size();) {
      const ssize_t count = ::write(log_, text.data() + done, text.size() - done);
      if (count >= 0)
        done += static_cast<size_t>(count);
      else if (errno != EINTR)
        log_fault_ = errno;
    }
  }

  FILE* to_;
  std::string prefix_, rest_;
  int log_, log_fault_ = 0;
};

std::array<int, 2> make_pipe() {
  std::array<int, 2> ends;
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) fail(ErrorKind::io, "", "no pipe for the ranks: {}", reason(errno));
  return ends;
}

// Signals to us and ends of children come through a pipe, so that one poll waits for everything.
int signal_pipe = -1;

struct Signal {
  int number = 0;   // 0: none
  pid_t child = 0;  // of SIGCHLD: the first that has changed since the signal before
  explicit operator bool() const { return number != 0; }
};

void tell_signal(int number, siginfo_t* about, void*) {
  const int before = errno;
  const Signal told{number, number == SIGCHLD ? about->si_pid : 0};
  (void)!::write(signal_pipe, &told, sizeof told);
  errno = before;
}

class Signals {
 public:
  Signals() : ends_(make_pipe()) {
    for (int end : ends_) ::fcntl(end, F_SETFL, O_NONBLOCK);
    signal_pipe = ends_[1];
    for (int number : kNumbers) {
      struct sigaction action {};
      action.sa_sigaction = tell_signal;
      action.sa_flags = SA_RESTART | SA_SIGINFO;
      ::sigaction(number, &action, &before_[number]);
      if (number != SIGCHLD && before_[number].sa_handler == SIG_IGN) ::sigaction(number, &before_[number], nullptr);
    }
  }
  ~Signals() {
    for (const auto& [number, action] : before_) ::sigaction(number, &action, nullptr);
    for (int end : ends_) ::close(end);
  }
  Signals(const Signals&) = delete;
  int fd() const { return ends_[0]; }
  Signal take() const {
    Signal next;
    return ::read(ends_[0], &next, sizeof next) == sizeof next ? next : Signal{};
  }

 private:
  static constexpr int kNumbers[] = {SIGCHLD, SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2};
  std::array<int, 2> ends_;
  std::map<int, struct sigaction> before_;
};

std::string shell_word(const std::string& word) {
  std::string made = "'";
  for (char letter : word) made += letter == '\'' ? std::string("'\\''") : std::string(1, letter);
  return made + "'";
}

/// The cores that this rank may use: an equal part of those of the command.
cpu_set_t cores_of(const RankPlan& rank, int& count) {
  cpu_set_t all, mine;
  CPU_ZERO(&all);
  CPU_ZERO(&mine);
  ::sched_getaffinity(0, sizeof all, &all);
  std::vector<int> cores;
  for (int core = 0; core < CPU_SETSIZE; ++core)
    if (CPU_ISSET(core, &all)) cores.push_back(core);
  const auto total = static_cast<int>(cores.size());
  const int first = rank.local_rank * total / rank.local_size;
  const int last = std::max(first + 1, (rank.local_rank + 1) * total / rank.local_size);
  for (int i = first; i < last; ++i) CPU_SET(cores[static_cast<size_t>(i)], &mine);
  count = last - first;
  return mine;
}

class Job {
 public:
  explicit Job(const LaunchPlan& plan) : plan_(plan), token_(random_token()), start_(Clock::now()) {
    end_.ranks.resize(plan.ranks.size());
    children_.reserve(plan.ranks.size());
    try {
      for (const RankPlan& rank : plan.ranks) start(rank);
    } catch (...) {
      for (Child& child : children_) ::kill(-child.pid, SIGKILL), ::waitpid(child.pid, nullptr, 0);
      throw;
    }
  }
  ~Job() {
    for (Child& child : children_) {
      close(child.output), close(child.errors), close(child.input);
      if (child.log >= 0) ::close(child.log);
    }
  }
  Job(const Job&) = delete;

  JobEnd run() {
    while (!over()) {
      std::vector<pollfd> waits{{signals_.fd(), POLLIN, 0}};
      for (Child& child : children_)
        for (int fd : {child.output, child.errors})
          if (fd >= 0) waits.push_back({fd, POLLIN, 0});
      ::poll(waits.data(), waits.size(), milliseconds_to_next());
      take_signals();
      for (Child& child : children_) {
        read(child.output, child.output_lines);
        read(child.errors, child.error_lines);
      }
      reap();
      give_up_stopped();
      end_others();
    }
    take_signals();
    for (const Child& child : children_)
      for (const Lines* lines : {&child.output_lines, &child.error_lines})
        if (lines->log_fault()) end_.log_fault = lines->log_fault();
    return end_;
  }

 private:
  struct Child {
    pid_t pid = 0;
    int output = -1, errors = -1, input = -1, log = -1;
    Lines output_lines, error_lines;
    bool running = true;
    double stopped_at = -1;  // seconds since the start; -1: it is not stopped
  };

  static std::string random_token() {
    std::random_device source;
    return fmt::format("{:08x}{:08x}{:08x}{:08x}", source(), source(), source(), source());
  }
  static void close(int& fd) {
    if (fd >= 0) ::close(fd);
    fd = -1;
  }
  double now() const { return std::chrono::duration<double>(Clock::now() - start_).count(); }

  std::string job_json(const RankPlan& rank) const {
    Json job = {{"rank", rank.rank},
                {"size", plan_.ranks.size()},
                {"local_rank", rank.local_rank},
                {"local_size", rank.local_size},
                {"address", plan_.address},
                {"token", token_}};
    if (!plan_.transport.empty()) job["transport"] = plan_.transport;
    if (plan_.timeout > 0) job["timeout"] = plan_.timeout;
    return job.dump();
  }

  std::map<std::string, std::string> variables(const RankPlan& rank) const {
    std::map<std::string, std::string> set = {
        {"RANK_ID", std::to_string(rank.rank)},           {"RANK_SIZE", std::to_string(plan_.ranks.size())},
        {"DEVICE_ID", std::to_string(rank.device)},       {"ASCEND_DEVICE_ID", std::to_string(rank.device)},
        {"CAIRN_RESTART", std::to_string(plan_.attempt)}, {"PYTHONUNBUFFERED", "1"}};
    const char* job = std::getenv("JOB_ID");
    set["JOB_ID"] = job && *job ? job : token_.substr(0, 8);
    if (!plan_.table.empty()) set["RANK_TABLE_FILE"] = plan_.table;
    return set;
  }

  /// What runs on this host for the rank: the command, or ssh with a shell that ends it when our end of the pipe closes.
  std::vector<std::string> words_for(const RankPlan& rank) const {
    if (rank.host.empty()) return plan_.command;
    std::string script = "cd " + shell_word(std::filesystem::current_path().string()) + " || exit 1; exec 3<&0; " +
                         "read -r CAIRN_JOB <&3; export CAIRN_JOB; ";
    for (const auto& [name, value] : variables(rank)) script += "export " + name + "=" + shell_word(value) + "; ";
    for (const std::string& word : plan_.command) script += shell_word(word) + " ";
    script += "3<&- </dev/null & it=$!; { cat >/dev/null; kill $it 2>/dev/null; } <&3 & wait $it";
    std::vector<std::string> words;
    std::istringstream parts(plan_.ssh);
    for (std::string part; parts >> part;) words.push_back(part);
    words.push_back(rank.host);
    words.push_back("exec sh -c " + shell_word(script));
    return words;
  }

  void start(const RankPlan& rank) {
    const auto output = make_pipe(), errors = make_pipe(), input = make_pipe(), fault = make_pipe();
    const size_t width = std::to_string(plan_.ranks.size() - 1).size();
    const std::string label = fmt::format("[{:>{}}]", rank.rank, width);
    const int log = plan_.log_folder.empty() ? -1 : open_log(rank.rank);
    const auto lines = [&](bool to_errors) {
      const bool colour = ::isatty(to_errors ? 2 : 1) && !std::getenv("NO_COLOR");
      return Lines(to_errors ? stderr : stdout,
                   colour ? fmt::format("\033[3{}m{}\033[0m ", 1 + rank.rank % 6, label) : label + " ", log);
    };
    Child child{0, output[0], errors[0], input[1], log, lines(plan_.all_to_errors), lines(true)};
    const std::vector<std::string> words = words_for(rank);
    std::vector<char*> pointers;
    for (const std::string& word : words) pointers.push_back(const_cast<char*>(word.c_str()));
    pointers.push_back(nullptr);
    const auto set = variables(rank);
    const std::string job = job_json(rank);
    const pid_t parent = ::getpid();
    child.pid = ::fork();
    if (child.pid < 0) fail(ErrorKind::io, "", "rank {} cannot be started: {}", rank.rank, reason(errno));
    if (child.pid == 0) {
      become(rank, parent, output[1], errors[1], rank.host.empty() ? -1 : input[0], set, job, pointers);
      const int code = errno;
      (void)!::write(fault[1], &code, sizeof code);
      ::_exit(127);
    }
    ::setpgid(child.pid, child.pid);
    for (int end : {output[1], errors[1], input[0], fault[1]}) ::close(end);
    children_.push_back(std::move(child));
    int code = 0;
    const bool failed = ::read(fault[0], &code, sizeof code) == sizeof code;
    ::close(fault[0]);
    if (failed) fail(ErrorKind::not_found, words[0], "cannot be run: {}", reason(code));
    if (!rank.host.empty()) (void)!::write(children_.back().input, (job + "\n").data(), job.size() + 1);
  }

  /// In the child; returns when the program cannot be run.
  void become(const RankPlan& rank, pid_t parent, int output, int errors, int input,
              const std::map<std::string, std::string>& set, const std::string& job, std::vector<char*>& words) const {
    ::setpgid(0, 0);
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);  // a job without its launcher ends
    if (::getppid() != parent) ::_exit(127);
    for (int number = 1; number < NSIG; ++number) ::signal(number, SIG_DFL);
    if (input < 0) input = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
    ::dup2(input, 0), ::dup2(output, 1), ::dup2(errors, 2);
    if (rank.host.empty()) {
      for (const auto& [name, value] : set) ::setenv(name.c_str(), value.c_str(), 1);
      ::setenv("CAIRN_JOB", job.c_str(), 1);
      if (plan_.binds) {
        int count = 1;
        const cpu_set_t cores = cores_of(rank, count);
        ::sched_setaffinity(0, sizeof cores, &cores);
        for (const char* name : {"OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"})
          ::setenv(name, std::to_string(count).c_str(), 0);
      }
    }
    ::execvp(words[0], words.data());
  }

  int open_log(int rank) const {
    const auto path = std::filesystem::path(plan_.log_folder) / fmt::format("rank_{}.log", rank);
    const int flags = O_WRONLY | O_CREAT | O_CLOEXEC | (plan_.attempt ? O_APPEND : O_TRUNC);
    const int file = ::open(path.c_str(), flags, 0644);
    if (file < 0) fail(ErrorKind::io, path.string(), "cannot be written: {}", reason(errno));
    return file;
  }

  static void read(int& fd, Lines& lines) {
    std::array<char, 16384> bytes;
    pollfd ready{fd, POLLIN, 0};
    while (fd >= 0 && ::poll(&ready, 1, 0) > 0) {
      const ssize_t count = ::read(fd, bytes.data(), bytes.size());
      if (count < 0 && errno == EINTR) continue;
      if (count <= 0) {
        lines.finish();
        close(fd);
        return;
      }
      lines.add(std::string_view(bytes.data(), static_cast<size_t>(count)));
    }
  }

  void reap() {
    std::vector<size_t> failed;
    for (size_t i = 0; i < children_.size(); ++i) {
      Child& child = children_[i];
      int status = 0;
      while (child.running && ::waitpid(child.pid, &status, WNOHANG | WUNTRACED | WCONTINUED) == child.pid) {
        child.stopped_at = WIFSTOPPED(status) ? now() : -1;
        if (WIFSTOPPED(status) || WIFCONTINUED(status)) continue;
        child.running = false;
        RankEnd& end = end_.ranks[i];
        end.seconds = last_end_ = now();
        if (WIFEXITED(status)) end.status = WEXITSTATUS(status);
        if (WIFSIGNALED(status)) end.signal = WTERMSIG(status);
        if (end.status != 0) failed.push_back(i);
      }
    }
    take_signals();
    if (!failed.empty() && end_.first_failed < 0 && !end_.stopped_by) {
      end_.first_failed = static_cast<int>(first_of(failed));
      term_at_ = now() + plan_.grace;
    }
    changed_.clear();
  }

  /// Who failed first of ranks whose ends are seen together: the one of which a signal told; else one that a signal ended, since
  /// the others end by themselves in consequence.
  size_t first_of(const std::vector<size_t>& failed) const {
    const auto order = [&](size_t i) {
      const auto told = std::find(changed_.begin(), changed_.end(), children_[i].pid);
      return std::tuple(told - changed_.begin(), end_.ranks[i].signal == 0, i);
    };
    return *std::min_element(failed.begin(), failed.end(), [&](size_t a, size_t b) { return order(a) < order(b); });
  }

  /// When only stopped ranks are left nobody waits for them in a collective and says so, and none of them uses the grace.
  void give_up_stopped() {
    if (const double at = give_up_at(); at < 0 || now() < at) return;
    if (end_.first_failed < 0) {
      const auto found =
          std::find_if(children_.begin(), children_.end(), [](const Child& each) { return each.running; });
      end_.first_failed = static_cast<int>(found - children_.begin());
      end_.ranks[static_cast<size_t>(end_.first_failed)].stopped = true;
    }
    term_at_ = now();
  }
  /// Seconds since the start; -1: a rank goes on, or all have been asked to end.
  double give_up_at() const {
    double last = -1;
    for (const Child& child : children_) {
      if (child.running && child.stopped_at < 0) return -1;
      if (child.running) last = std::max(last, child.stopped_at);
    }
    const bool failed = end_.first_failed >= 0 || end_.stopped_by;
    if (last < 0 || (failed && term_at_ < 0)) return -1;
    return failed ? last : last + (plan_.timeout > 0 ? plan_.timeout : kTimeout);
  }

  void take_signals() {
    while (const Signal next = signals_.take())
      if (next.number == SIGCHLD)
        changed_.push_back(next.child);
      else
        pass_on(next.number);
  }

  /// A signal to us goes to all ranks; the second one that asks for the end ends them at once.
  void pass_on(int number) {
    const bool ends = number != SIGUSR1 && number != SIGUSR2;
    send_all(ends && end_.stopped_by ? SIGKILL : number, ends);
    if (!ends || end_.stopped_by) return;
    end_.stopped_by = number;
    term_at_ = now() + plan_.grace;
  }

  void send_all(int number, bool ends) {
    for (size_t i = 0; i < children_.size(); ++i) {
      if (!children_[i].running) continue;
      ::kill(-children_[i].pid, number);
      if (ends) ::kill(-children_[i].pid, SIGCONT);  // a stopped one does not see it
      end_.ranks[i].told_to_end = end_.ranks[i].told_to_end || ends;
    }
  }

  /// Others get time to say who failed, are asked to end, and are ended.
  void end_others() {
    if (term_at_ >= 0 && now() >= term_at_) {
      send_all(SIGTERM, true);
      term_at_ = -1;
      kill_at_ = now() + kAfterTerm;
    }
    if (kill_at_ >= 0 && now() >= kill_at_) {
      send_all(SIGKILL, true);
      kill_at_ = -1;
    }
  }

  bool running() const {
    return std::any_of(children_.begin(), children_.end(), [](const Child& child) { return child.running; });
  }
  bool over() const {
    if (running()) return false;
    const bool silent = std::all_of(children_.begin(), children_.end(),
                                    [](const Child& child) { return child.output < 0 && child.errors < 0; });
    return silent || now() > last_end_ + kLastOutput;
  }
  int milliseconds_to_next() const {
    if (!running()) return 50;
    double next = 3600;
    for (double at : {term_at_, kill_at_, give_up_at()})
      if (at >= 0) next = std::min(next, at - now());
    return static_cast<int>(std::max(0.0, next) * 1000) + 1;
  }

  const LaunchPlan& plan_;
  const std::string token_;
  const Clock::time_point start_;
  Signals signals_;
  std::vector<Child> children_;
  JobEnd end_;
  std::vector<pid_t> changed_;  // in the order in which signals told of them
  double term_at_ = -1, kill_at_ = -1, last_end_ = 0;
};

}  // namespace

JobEnd run_job(const LaunchPlan& plan) { return Job(plan).run(); }

std::string host_text(const RankPlan& rank) { return rank.host.empty() ? "this host" : rank.host; }

std::string end_text(const RankEnd& end) {
  if (end.stopped) return "was stopped when no other rank was left, and had to be ended";
  const char* name = end.signal ? ::sigabbrev_np(end.signal) : nullptr;
  return end.signal ? fmt::format("was ended by SIG{}", name ? name : std::to_string(end.signal))
                    : fmt::format("ended with status {}", end.status);
}

int exit_status(const RankEnd& end) { return end.signal ? 128 + end.signal : end.status; }

}  // namespace cairn::cli
