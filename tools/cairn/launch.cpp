// cairn launch: starts the ranks of a job, shows what they print, and ends all when one fails.
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <random>

#include "comm/sockets.h"
#include "launch_team.h"
#include "process.h"
#include "support/files.h"
#include "support/options.h"
#include "verbs.h"

namespace cairn::cli {
namespace {

using Clock = std::chrono::steady_clock;

constexpr const char* kModuleMark = "\x01";
constexpr double kUntilKilled = 5;  // seconds from SIGTERM on

struct LaunchOptions {
  SeatOptions seats;
  std::string hosts, devices, address, log_folder, ssh = "ssh -o BatchMode=yes", transport = "auto";
  std::vector<std::string> command;
  bool module = false;
  int restarts = 0;
  double timeout = 60, connect_timeout = 120, grace = 10;
  bool no_bind = false, no_shared_memory = false, json = false;
};

double seconds_since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

std::string signal_text(int number) {
  const char* name = ::sigabbrev_np(number);
  return name ? fmt::format("SIG{}", name) : fmt::format("signal {}", number);
}

/// What became of one rank.
struct RankState {
  std::string host;
  pid_t process = 0;
  bool ended = false, stopped = false, lost = false;
  int status = 0, signal = 0;
  double seconds = 0;

  bool failed() const { return ended && (status != 0 || signal != 0); }
  int exit_status() const { return signal ? 128 + signal : status; }
  std::string text(int rank) const {
    const std::string how = lost     ? fmt::format("was lost: the connection to {} ended with status {}", host, exit_status())
                            : signal ? "was ended by " + signal_text(signal)
                                     : fmt::format("ended with status {}", status);
    return fmt::format("{} {} after {:.1f} s", name(rank), how, seconds);
  }
  std::string name(int rank) const {
    return process ? fmt::format("rank {} (process {} on {})", rank, process, host)
                   : fmt::format("rank {} on {}", rank, host);
  }
};

/// One start of all ranks until the last has ended.
class Attempt {
 public:
  Attempt(const LaunchOptions& options, const LaunchJob& job, const std::vector<Seat>& seats)
      : options_(options), job_(job), seats_(seats), ranks_(seats.size()) {
    for (size_t i = 0; i < seats.size(); ++i) ranks_[i].host = seats[i].host.empty() ? host_name() : seats[i].host;
  }

  void run();
  /// The rank that failed first; -1: none.
  int failed() const { return failed_; }
  int interrupted() const { return interrupted_; }
  int exit_status() const {
    return interrupted_ ? 128 + interrupted_ : failed_ < 0 ? 0 : ranks_[static_cast<size_t>(failed_)].exit_status();
  }
  std::string sentence() const;
  Json json() const;

 private:
  void start(Team& team);
  void note(Team& team, const RankEvent& event);
  void fail_with(int rank);
  void end_all(double grace);
  double escalate(Team& team);

  const LaunchOptions& options_;
  const LaunchJob& job_;
  const std::vector<Seat>& seats_;
  std::vector<RankState> ranks_;
  const Clock::time_point start_ = Clock::now();
  int failed_ = -1, interrupted_ = 0, killed_ = 0;
  std::vector<int> stopped_;  // when the first one failed
  double terminate_at_ = -1, kill_at_ = -1, idle_until_ = -1;  // seconds from the start
};

void Attempt::start(Team& team) {
  std::map<std::string, std::vector<Seat>> hosts;
  for (const Seat& seat : seats_) hosts[seat.host].push_back(seat);
  for (const auto& [host, seats] : hosts)
    if (is_here(host))
      team.start(seats);
    else
      team.connect(split_list(options_.ssh, ' '), seats);
}

void Attempt::run() {
  RankLines lines({.folder = options_.log_folder, .to_error = options_.json}, job_.restart);
  Team team(job_, lines);
  start(team);
  double wait = 0;
  while (team.alive()) {
    std::vector<RankEvent> events = team.wait(wait);
    // Of several that end at once, one that a signal ended is why the others did.
    std::stable_sort(events.begin(), events.end(), [](const auto& a, const auto& b) { return a.signal > b.signal; });
    for (const RankEvent& event : events) note(team, event);
    wait = escalate(team);
  }
}

void Attempt::note(Team& team, const RankEvent& event) {
  if (event.kind == RankEvent::signalled) {
    team.signal(event.signal);
    if (event.signal == SIGUSR1 || event.signal == SIGUSR2) return;
    if (interrupted_) return team.signal(SIGKILL);
    interrupted_ = event.signal;
    return end_all(options_.grace);
  }
  RankState& rank = ranks_[static_cast<size_t>(event.rank)];
  if (event.process) rank.process = event.process;
  rank.stopped = event.kind == RankEvent::stopped;
  if (event.kind != RankEvent::ended) return;
  rank.ended = true, rank.lost = event.lost, rank.status = event.status, rank.signal = event.signal;
  rank.seconds = seconds_since(start_);
  if (rank.failed()) fail_with(event.rank);
}

void Attempt::fail_with(int rank) {
  if (failed_ >= 0) return;
  failed_ = rank;
  for (size_t i = 0; i < ranks_.size(); ++i)
    if (ranks_[i].stopped && !ranks_[i].ended) stopped_.push_back(static_cast<int>(i));
  end_all(options_.grace);
}

/// The ranks have so many seconds to end by themselves.
void Attempt::end_all(double grace) {
  if (terminate_at_ >= 0) return;
  terminate_at_ = seconds_since(start_) + grace;
  kill_at_ = terminate_at_ + kUntilKilled;
}

/// Ends what should have ended; returns the seconds until it has to be looked at again, below 0: when something happens.
double Attempt::escalate(Team& team) {
  const double now = seconds_since(start_);
  const auto stopped = std::find_if(ranks_.begin(), ranks_.end(), [](auto& rank) { return rank.stopped && !rank.ended; });
  const bool idle = std::all_of(ranks_.begin(), ranks_.end(), [](auto& rank) { return rank.ended || rank.stopped; });
  const bool some_ended = std::any_of(ranks_.begin(), ranks_.end(), [](auto& rank) { return rank.ended; });
  if (!idle || !some_ended || stopped == ranks_.end()) idle_until_ = -1;
  else if (idle_until_ < 0) idle_until_ = now + job_.timeout;
  if (idle_until_ >= 0 && now >= idle_until_) fail_with(static_cast<int>(stopped - ranks_.begin()));
  if (idle && terminate_at_ >= 0) kill_at_ = 0;  // nothing else ends one that is stopped
  if (terminate_at_ < 0) return idle_until_ < 0 ? -1 : std::max(0.0, idle_until_ - now);
  if (now < std::min(terminate_at_, kill_at_)) return std::min(terminate_at_, kill_at_) - now;
  if (!killed_) killed_ = static_cast<int>(std::count_if(ranks_.begin(), ranks_.end(), [](auto& r) { return !r.ended; }));
  team.signal(now < kill_at_ ? SIGTERM : SIGKILL);
  terminate_at_ = now + 1e9;
  return now < kill_at_ ? kill_at_ - now : 1;
}

std::string Attempt::sentence() const {
  if (interrupted_) return "ended by " + signal_text(interrupted_);
  if (failed_ < 0) return "";
  std::string text = ranks_[static_cast<size_t>(failed_)].text(failed_);
  for (int rank : stopped_) text += fmt::format("; {} was stopped then", ranks_[static_cast<size_t>(rank)].name(rank));
  if (killed_) text += fmt::format("; {} that did not end by {} ended", killed_, killed_ == 1 ? "itself was" : "themselves were");
  return text;
}

Json Attempt::json() const {
  Json ranks = Json::array();
  for (size_t i = 0; i < ranks_.size(); ++i)
    ranks.push_back({{"rank", i},
                     {"host", ranks_[i].host},
                     {"process", ranks_[i].process},
                     {"status", ranks_[i].exit_status()},
                     {"signal", ranks_[i].signal ? Json(signal_text(ranks_[i].signal)) : Json()},
                     {"seconds", ranks_[i].seconds}});
  return ranks;
}

/// The words of the command as they are started.
std::vector<std::string> resolved(const LaunchOptions& options) {
  std::vector<std::string> words = options.command;
  if (options.module) {
    words.insert(words.begin(), {find_python(""), "-m"});
    if (words.size() == 2) fail(ErrorKind::invalid_argument, "-m", "needs a module behind it");
    return words;
  }
  if (words.empty()) fail(ErrorKind::invalid_argument, "", "needs a script or a program, as in cairn launch -n 4 train.py");
  if (words[0].starts_with('-')) fail(ErrorKind::invalid_argument, words[0], "is no option of launch; --help shows them");
  if (words[0] == "cairn") words[0] = std::filesystem::read_symlink("/proc/self/exe").string();
  if (words[0].ends_with(".py")) {
    if (!std::filesystem::exists(words[0])) fail(ErrorKind::not_found, words[0], "there is no such script");
    words.insert(words.begin(), find_python(""));
  }
  return words;
}

/// Where rank 0 waits for the others; what holds the port until the ranks have ended.
std::unique_ptr<ReservedPort> choose_address(const LaunchOptions& options, const std::vector<Seat>& seats, LaunchJob& job) {
  job.address = options.address;
  if (!job.address.empty()) return comm::Address::parse(job.address), nullptr;
  const bool one_host = std::all_of(seats.begin(), seats.end(), [](const Seat& seat) { return is_here(seat.host); });
  const std::string host = one_host ? "127.0.0.1" : seats[0].host;
  if (!one_host && (host == "localhost" || host.starts_with("127.") || host == "::1"))
    fail(ErrorKind::invalid_argument, "--hosts", "other hosts do not reach rank 0 as {}; name the host otherwise, or give --address HOST:PORT",
         host);
  std::unique_ptr<ReservedPort> port;
  if (is_here(host)) port = std::make_unique<ReservedPort>(host);
  job.address = comm::Address{host, port ? port->port() : 20000 + static_cast<int>(std::random_device()() % 12000)}.text();
  return port;
}

void use_rank_table(const LaunchOptions& options, const std::vector<Seat>& seats, LaunchJob& job) {
  const std::string& path = options.seats.rank_table;
  if (path.empty()) return;
  job.rank_table = std::filesystem::absolute(path).string();
  if (std::filesystem::exists(path)) return;
  write_file(path, rank_table(seats).dump(2) + "\n");
  fmt::print(stderr, "note: launch: wrote the rank table {}\n", path);
}

int launch(LaunchOptions& options) {
  options.seats.hosts = split_list(options.hosts, ',');
  options.seats.devices = split_list(options.devices, ',');
  options.seats.rank_table = expand_home(options.seats.rank_table);
  options.log_folder = expand_home(options.log_folder);
  LaunchJob job{.command = resolved(options), .transport = options.transport};
  const std::vector<Seat> seats = seat_ranks(options.seats);
  job.size = static_cast<int>(seats.size());
  job.shared_memory = !options.no_shared_memory, job.bind = !options.no_bind;
  job.timeout = options.timeout, job.connect_timeout = options.connect_timeout;
  job.id = fmt::format("cairn{}", getpid());
  job.variables = variables_to_pass();
  use_rank_table(options, seats, job);
  if (!options.log_folder.empty()) std::filesystem::create_directories(options.log_folder);
  const auto start = Clock::now();
  while (true) {
    job.token = comm::random_hex(16);
    const auto port = choose_address(options, seats, job);
    Attempt attempt(options, job, seats);
    attempt.run();
    const bool again = attempt.failed() >= 0 && !attempt.interrupted() && job.restart < options.restarts;
    const std::string sentence = attempt.sentence();
    if (again)
      fmt::print(stderr, "note: launch: {}; all ranks start again ({} of {})\n", sentence, ++job.restart, options.restarts);
    else if (!sentence.empty())
      fmt::print(stderr, "{} launch: {}\n", red("error:"), sentence);
    if (again) continue;
    if (options.json)
      print_json({{"size", job.size},
                  {"restarts", job.restart},
                  {"status", attempt.exit_status()},
                  {"failure", attempt.failed() < 0 ? Json() : Json{{"rank", attempt.failed()}, {"text", sentence}}},
                  {"seconds", seconds_since(start)},
                  {"ranks", attempt.json()}});
    return attempt.exit_status();
  }
}

/// The other end of a connection: ranks of this host, for a launch on another one.
int serve_launch() {
  std::string start;
  for (char each; ::read(STDIN_FILENO, &each, 1) == 1 && each != '\n';) start += each;
  const Json json = Json::parse(start, nullptr, false);
  if (!json.is_object()) fail(ErrorKind::invalid_argument, "--agent", "is for connections that cairn launch makes");
  LaunchJob job = job_from_json(json.at("job"));
  std::vector<Seat> seats;
  for (const Json& each : json.at("seats"))
    seats.push_back({.rank = each.at(0), .device = each.at(1), .local_rank = each.at(2), .local_size = each.at(3)});
  if (const auto path = job.variables.find("PATH"); path != job.variables.end()) ::setenv("PATH", path->second.c_str(), 1);
  RankLines lines({.framed = true}, job.restart);
  Team team(job, lines);
  team.take_orders(STDIN_FILENO);
  team.start(seats);
  while (team.alive()) {
    for (const RankEvent& event : team.wait(-1)) {
      if (event.kind == RankEvent::signalled) team.signal(event.signal);
      const Json told = {{"kind", event.kind},
                         {"rank", event.rank},
                         {"process", event.process},
                         {"status", event.status},
                         {"signal", event.signal}};
      if (event.kind != RankEvent::signalled) fmt::print(stderr, "\x1e{}\n", told.dump());
    }
  }
  return 0;
}

void add_launch_options(Verb& verb, LaunchOptions& options) {
  verb.add_option("-n,--ranks", options.seats.count, "ranks of the job").within(1, 65536);
  verb.add_option("--hosts", options.hosts, "a,b or a:4,b:4 with ranks each; others than this are reached by ssh");
  verb.add_option("--rank-table", options.seats.rank_table, "the platform's table: used where it exists, otherwise written");
  verb.add_option("--device-list", options.devices, "0,1,..: DEVICE_ID of the ranks of a host");
  verb.add_option("--restarts", options.restarts, "start all again so often when a rank fails").within(0, 1000000);
  verb.add_option("--timeout", options.timeout, "seconds that a collective waits for a rank (60)").within(0.1, 1e6);
  verb.add_option("--connect-timeout", options.connect_timeout, "seconds for all ranks to come (120)").within(0.1, 1e6);
  verb.add_option("--grace", options.grace, "seconds for the others to end when one has failed (10)").within(0.0, 1e6);
  verb.add_option("--transport", options.transport, "auto, gloo or mpi").one_of({"auto", "gloo", "mpi"});
  verb.add_flag("--no-shared-memory", options.no_shared_memory, "use the transport within a host as well");
  verb.add_flag("--no-bind", options.no_bind, "do not bind ranks to their share of the cores");
  verb.add_option("--address", options.address, "HOST:PORT where rank 0 waits for the others");
  verb.add_option("--log-dir", options.log_folder, "folder for a file of each rank: rank_0.log, ...");
  verb.add_option("--ssh", options.ssh, "command that reaches another host (ssh -o BatchMode=yes)");
  verb.add_flag("--json", options.json, "how it ended as JSON; what ranks print goes to standard error");
}

}  // namespace

std::vector<std::string> mark_launched_module(std::vector<std::string> arguments) {
  const auto at = std::find(arguments.begin(), arguments.end(), "-m");
  if (!arguments.empty() && arguments[0] == "launch" && at != arguments.end()) arguments.insert(at, kModuleMark);
  return arguments;
}

void add_launch(Verb& app, Run& run) {
  auto options = std::make_shared<LaunchOptions>();
  Verb verb = app.add_verb("launch", "several processes of a script as ranks of one job");
  add_launch_options(verb, *options);
  verb.take_command(options->command);
  verb.footer(
      "\nThe script or program follows, with its own options. A script.py and -m MODULE run with the Python of this program.\n"
      "\nExamples:\n  cairn launch -n 4 train.py --epochs 2\n  cairn launch -n 2 cairn ms train.py\n"
      "  cairn launch -n 2 --restarts 3 --log-dir logs python train.py\n  cairn launch --hosts a:4,b:4 -m project.train\n"
      "  cairn launch -n 2 cairn run model.om -i x=batch.npy -o out.npz");
  verb.callback([options, &run] {
    run = [options] {
      std::vector<std::string>& words = options->command;
      if (words == std::vector<std::string>{"--agent"}) return serve_launch();
      const auto mark = std::find(words.begin(), words.end(), kModuleMark);
      if (mark != words.end()) {
        options->module = mark == words.begin();
        words.erase(mark, options->module ? mark + 2 : mark + 1);
      }
      return launch(*options);
    };
  });
}

}  // namespace cairn::cli
