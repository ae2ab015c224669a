#include "launch_team.h"

#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <filesystem>

#include "support/fault.h"

namespace cairn::cli {
namespace {

constexpr char kFrame = '\x1e';
constexpr size_t kLongestLine = 1 << 16;

/// The signals that are passed on, and those of children. What is ignored (nohup) stays so.
sigset_t watched_signals() {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGCHLD);
  for (int number : {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2}) {
    struct sigaction before {};
    if (::sigaction(number, nullptr, &before) == 0 && before.sa_handler != SIG_IGN) sigaddset(&set, number);
  }
  return set;
}

struct Pipe {
  int ends[2] = {-1, -1};  // read, write
  Pipe() {
    if (::pipe2(ends, O_CLOEXEC) != 0) fail(ErrorKind::io, "", "no pipe can be had: {}", reason(errno));
  }
};

std::vector<char*> pointers_to(std::vector<std::string>& words) {
  std::vector<char*> pointers;
  for (std::string& word : words) pointers.push_back(word.data());
  pointers.push_back(nullptr);
  return pointers;
}

void set_cores(const std::vector<int>& cores) {
  if (cores.empty()) return;
  cpu_set_t set;
  CPU_ZERO(&set);
  for (int core : cores) CPU_SET(core, &set);
  ::sched_setaffinity(0, sizeof set, &set);
}

std::string quoted(const std::string& word) {
  std::string text = "'";
  for (char each : word) text += each == '\'' ? std::string("'\\''") : std::string(1, each);
  return text + "'";
}

bool write_all(int file, std::string_view text) {
  while (!text.empty()) {
    const ssize_t count = ::write(file, text.data(), text.size());
    if (count < 0 && errno != EINTR) return false;
    if (count > 0) text.remove_prefix(static_cast<size_t>(count));
  }
  return true;
}

/// What a terminal would show of a line in which a progress bar has drawn itself over and over.
std::string_view shown(std::string_view line) {
  while (line.ends_with('\r')) line.remove_suffix(1);
  const size_t last = line.rfind('\r');
  return last == std::string_view::npos ? line : line.substr(last + 1);
}

}  // namespace

RankLines::~RankLines() {
  for (auto& [rank, file] : files_) std::fclose(file);
}

FILE* RankLines::file_of(int rank) {
  FILE*& file = files_[rank];
  if (file) return file;
  const std::string name = restart_ ? fmt::format("rank_{}.restart_{}.log", rank, restart_) : fmt::format("rank_{}.log", rank);
  const std::string path = (std::filesystem::path(options_.folder) / name).string();
  file = std::fopen(path.c_str(), "we");
  if (!file) fail(ErrorKind::io, path, "cannot be written: {}", reason(errno));
  return file;
}

void RankLines::line(int rank, bool error, const std::string& text) {
  FILE* out = error || options_.to_error ? stderr : stdout;
  if (options_.framed) {
    fmt::print(out, "{}{} {}\n", kFrame, rank, text);
    std::fflush(out);
    return;
  }
  if (!options_.folder.empty()) {
    fmt::print(file_of(rank), "{}\n", text);
    std::fflush(file_of(rank));
  }
  static const bool terminal[] = {::isatty(STDOUT_FILENO) == 1, ::isatty(STDERR_FILENO) == 1};
  static const bool plain = std::getenv("NO_COLOR") != nullptr;
  const std::string name = terminal[out == stderr] && !plain ? fmt::format("\033[3{}m[{}]\033[0m", 1 + rank % 6, rank)
                                                             : fmt::format("[{}]", rank);
  fmt::print(out, "{} {}\n", name, shown(text));
  std::fflush(out);
}

void RankLines::remark(const std::string& host, const std::string& text) {
  fmt::print(stderr, "[{}] {}\n", host, shown(text));
}

Team::Team(const LaunchJob& job, RankLines& lines) : job_(job), lines_(lines) {
  const sigset_t set = watched_signals();
  ::sigprocmask(SIG_BLOCK, &set, nullptr);  // until this program ends: a late signal is no reason to die in between
  signals_ = ::signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
  if (signals_ < 0) fail(ErrorKind::io, "", "signals cannot be watched: {}", reason(errno));
}

Team::~Team() {
  for (auto& child : children_) {
    if (child->running) {
      ::kill(-child->process, SIGKILL);  // the other end of a connection kills its ranks when this end is gone
      ::waitpid(child->process, nullptr, 0);
    }
    for (int file : {child->channels[0].file, child->channels[1].file, child->orders})
      if (file >= 0) ::close(file);
  }
  ::close(signals_);
}

Team::Child& Team::spawn(const std::vector<std::string>& words, const std::vector<std::string>& variables,
                         const std::vector<int>& cores, bool takes_orders) {
  std::vector<std::string> own_words = words, own_variables = variables;
  auto word_pointers = pointers_to(own_words), variable_pointers = pointers_to(own_variables);
  Pipe out, err, started, orders;
  const pid_t parent = ::getpid(), process = ::fork();
  if (process < 0) fail(ErrorKind::io, words[0], "cannot be started: {}", reason(errno));
  if (process == 0) {
    ::setpgid(0, 0);
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (::getppid() != parent) ::_exit(1);
    sigset_t none;
    sigemptyset(&none);
    ::sigprocmask(SIG_SETMASK, &none, nullptr);
    ::signal(SIGXFSZ, SIG_DFL);
    set_cores(cores);
    ::dup2(takes_orders ? orders.ends[0] : ::open("/dev/null", O_RDONLY), STDIN_FILENO);
    ::dup2(out.ends[1], STDOUT_FILENO);
    ::dup2(err.ends[1], STDERR_FILENO);
    ::execvpe(word_pointers[0], word_pointers.data(), variable_pointers.data());
    const int fault = errno;
    (void)!::write(started.ends[1], &fault, sizeof fault);
    ::_exit(127);
  }
  ::setpgid(process, process);
  for (int end : {out.ends[1], err.ends[1], started.ends[1], orders.ends[0]}) ::close(end);
  auto child = std::make_unique<Child>();
  child->process = process;
  child->channels[0].file = out.ends[0];
  child->channels[1] = {err.ends[0], true, {}};
  for (Channel& channel : child->channels) ::fcntl(channel.file, F_SETFL, O_NONBLOCK);
  child->orders = orders.ends[1];
  children_.push_back(std::move(child));
  int fault = 0;
  const bool failed = ::read(started.ends[0], &fault, sizeof fault) == sizeof fault;
  ::close(started.ends[0]);
  if (failed) fail(ErrorKind::not_found, words[0], "cannot be started: {}", reason(fault));
  return *children_.back();
}

void Team::start(const std::vector<Seat>& seats) {
  const auto shares = share_cores(static_cast<int>(seats.size()));
  for (size_t i = 0; i < seats.size(); ++i) {
    const auto cores = job_.bind ? shares[i] : std::vector<int>();
    Child& child = spawn(job_.command, environment_of(job_, seats[i], shares[i].size()), cores, false);
    ++running_;
    child.ranks = {seats[i].rank};
    events_.push_back({.kind = RankEvent::started, .rank = seats[i].rank, .process = child.process});
  }
}

void Team::connect(const std::vector<std::string>& ssh, const std::vector<Seat>& seats) {
  std::vector<std::string> words = ssh;
  const std::string program = std::filesystem::read_symlink("/proc/self/exe").string();
  const std::string folder = std::filesystem::current_path().string();
  words.push_back(seats[0].host);
  words.push_back(fmt::format("cd {} && exec {} launch --agent", quoted(folder), quoted(program)));
  std::vector<std::string> variables;
  for (char** each = environ; *each; ++each) variables.push_back(*each);
  Child& child = spawn(words, variables, {}, true);
  child.host = seats[0].host;
  Json places = Json::array();
  for (const Seat& seat : seats) {
    child.ranks.push_back(seat.rank);
    places.push_back({seat.rank, seat.device, seat.local_rank, seat.local_size});
  }
  running_ += seats.size();
  const Json start = {{"job", to_json(job_)}, {"seats", places}};
  ::signal(SIGPIPE, SIG_IGN);
  write_all(child.orders, start.dump() + "\n");
}

void Team::signal(int number) {
  for (auto& child : children_) {
    if (!child->running) continue;
    if (child->host.empty())
      ::kill(-child->process, number);
    else
      write_all(child->orders, fmt::format("{}\n", number));
  }
}

std::vector<RankEvent> Team::wait(double seconds) {
  std::vector<pollfd> waits = {{signals_, POLLIN, 0}, {orders_, POLLIN, 0}};
  for (const auto& child : children_)
    for (const Channel& channel : child->channels) waits.push_back({channel.file, POLLIN, 0});
  if (events_.empty())
    ::poll(waits.data(), waits.size(), seconds < 0 ? -1 : static_cast<int>(std::min(seconds, 1e6) * 1e3) + 1);
  if (waits[1].revents) take_order();
  for (size_t i = 0; i < children_.size(); ++i)
    for (size_t k = 0; k < 2; ++k)
      if (waits[2 + 2 * i + k].revents) read(*children_[i], children_[i]->channels[k]);
  if (waits[0].revents) take_signals();
  return std::exchange(events_, {});
}

bool Team::read(Child& child, Channel& channel) {
  char bytes[1 << 16];
  const ssize_t count = channel.file < 0 ? 0 : ::read(channel.file, bytes, sizeof bytes);
  if (count < 0) return errno == EINTR;
  if (count == 0) {
    if (channel.file >= 0) ::close(channel.file);
    channel.file = -1;
    if (!channel.text.empty()) line(child, channel, std::exchange(channel.text, {}));
    return false;
  }
  channel.text.append(bytes, static_cast<size_t>(count));
  size_t begin = 0;
  for (size_t end; (end = channel.text.find('\n', begin)) != std::string::npos; begin = end + 1)
    line(child, channel, channel.text.substr(begin, end - begin));
  channel.text.erase(0, begin);
  if (channel.text.size() > kLongestLine) line(child, channel, std::exchange(channel.text, {}));
  return true;
}

void Team::line(Child& child, Channel& channel, const std::string& text) {
  if (child.host.empty()) return lines_.line(child.ranks[0], channel.error, text);
  if (!text.starts_with(kFrame)) return lines_.remark(child.host, text);
  const Json event = Json::parse(text.begin() + 1, text.end(), nullptr, false);
  if (!event.is_object()) {
    const size_t blank = text.find(' ');
    return lines_.line(std::atoi(text.c_str() + 1), channel.error, blank == std::string::npos ? "" : text.substr(blank + 1));
  }
  RankEvent found{static_cast<RankEvent::Kind>(event.value("kind", 0)), event.value("rank", -1), event.value("process", 0),
                  event.value("status", 0), event.value("signal", 0)};
  if (found.kind == RankEvent::ended) running_ -= std::erase(child.ranks, found.rank);
  events_.push_back(found);
}

void Team::take_signals() {
  signalfd_siginfo each;
  while (::read(signals_, &each, sizeof each) == sizeof each)
    if (const int number = static_cast<int>(each.ssi_signo); number != SIGCHLD)
      events_.push_back({.kind = RankEvent::signalled, .signal = number});
  for (auto& child : children_)
    if (child->running) reap(*child);
}

void Team::reap(Child& child) {
  siginfo_t info{};
  // A zombie still holds its number, so that the group which is killed is its own.
  if (::waitid(P_PID, static_cast<id_t>(child.process), &info, WEXITED | WSTOPPED | WCONTINUED | WNOHANG | WNOWAIT) != 0 || info.si_pid == 0)
    return;
  const bool ended = info.si_code == CLD_EXITED || info.si_code == CLD_KILLED || info.si_code == CLD_DUMPED;
  if (!ended) {
    ::waitid(P_PID, static_cast<id_t>(child.process), &info, WSTOPPED | WCONTINUED | WNOHANG);
    if (child.host.empty())
      events_.push_back({.kind = info.si_code == CLD_CONTINUED ? RankEvent::continued : RankEvent::stopped,
                         .rank = child.ranks[0],
                         .process = child.process,
                         .signal = info.si_status});
    return;
  }
  ::kill(-child.process, SIGKILL);
  ::waitpid(child.process, nullptr, 0);
  child.running = false;
  for (Channel& channel : child.channels) {
    for (int i = 0; i < 1000 && read(child, channel); ++i) {}  // a daemon that it left may write on
    if (!channel.text.empty()) line(child, channel, std::exchange(channel.text, {}));
  }
  const bool exited = info.si_code == CLD_EXITED;
  lose(child, exited ? info.si_status : 0, exited ? 0 : info.si_status);
}

/// The ranks of a process that has ended have ended.
void Team::lose(Child& child, int status, int number) {
  for (int rank : std::exchange(child.ranks, {})) {
    const bool lost = !child.host.empty();
    events_.push_back({RankEvent::ended, rank, lost ? 0 : child.process, status, number, lost});
    --running_;
  }
}

void Team::take_order() {
  char bytes[256];
  const ssize_t count = ::read(orders_, bytes, sizeof bytes);
  if (count < 0 && errno == EINTR) return;
  if (count <= 0) {  // whoever has started this is gone
    orders_ = -1;
    return signal(SIGKILL);
  }
  order_.append(bytes, static_cast<size_t>(count));
  for (size_t end; (end = order_.find('\n')) != std::string::npos; order_.erase(0, end + 1))
    if (const int number = std::atoi(order_.c_str()); number > 0) signal(number);
}

}  // namespace cairn::cli
