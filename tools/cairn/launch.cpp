// The options of `cairn launch`, the hosts and devices of the ranks, restarts and the summary.
#include "launch.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <random>
#include <set>

#include "options.h"
#include "support/fault.h"
#include "support/files.h"
#include "worker.h"

namespace cairn::cli {

namespace {

namespace fs = std::filesystem;

constexpr const char* kLaunchHelp = R"(
The program is a Python script, -m MODULE, or any command. Each rank gets RANK_ID, RANK_SIZE,
DEVICE_ID, JOB_ID and CAIRN_JOB, its part of the cores, and its lines of output are marked [RANK].
When a rank fails, the others get --grace seconds to say so and are ended; the exit status is that
of the first that failed, 128 and the signal's number where a signal ended it.

Examples:
  cairn launch -n 4 train.py --epochs 3        a script with npu_bridge, mindspore or cairn.job
  cairn launch -n 2 cairn tf1 train.py         a TensorFlow 1 script on TensorFlow 2
  cairn launch -n 2 cairn ms train.py          a MindSpore script
  cairn launch -n 4 --restarts 2 -m pkg.train  starts all again after a failure (CAIRN_RESTART)
  cairn launch -n 8 --hosts a,b train.py       four ranks on each, started by ssh in the same folder
  cairn launch --rank-table hccl.json train.py ranks, hosts and devices of the table
  cairn launch -n 2 cairn run m.om --input x=x.npy -o out  each rank runs its part of x)";

struct Arguments {
  int ranks = 0, restarts = 0;
  std::vector<std::string> hosts, devices;
  std::string ssh = "ssh", table, log_folder, transport, bind = "cores", address;
  double timeout = 0, grace = 10;
  bool json = false;
};

void declare(Program& app, Arguments& a) {
  app.footer(kLaunchHelp);
  app.add_option("-n,--ranks", a.ranks, "how many processes; default: those of the table, or one for each host")
      .positive();
  app.add_option("--hosts", a.hosts, "hosts of the ranks, NAME or NAME:RANKS, divided by commas; started by ssh")
      .delimiter(',');
  app.add_option("--ssh", a.ssh, "the command that reaches a host; default: ssh");
  app.add_option("--address", a.address,
                 "HOST:PORT where rank 0 waits for the others; default: a free port of its host");
  app.add_option("--rank-table", a.table, "the platform's table of ranks: read where the file exists, else written");
  app.add_option("--device-list", a.devices, "DEVICE_ID of the ranks of a host, divided by commas; default: 0, 1, ...")
      .delimiter(',');
  app.add_option("--restarts", a.restarts, "how often all ranks are started again after a failure; default: 0")
      .within(0, 1000000);
  app.add_option("--timeout", a.timeout, "seconds that a rank waits for another before it says so; default: 60")
      .positive();
  app.add_option("--grace", a.grace, "seconds between the first failure and the end of all; default: 10")
      .within(0.0, 1e6);
  app.add_option("--transport", a.transport, "how ranks reach each other; default: auto")
      .one_of({"auto", "gloo", "mpi"});
  app.add_option("--bind", a.bind,
                 "cores: each rank of a host has its part of the cores; none: all share them; default: cores")
      .one_of({"cores", "none"});
  app.add_option("--log-dir", a.log_folder, "folder for rank_0.log, rank_1.log, ...");
  app.add_flag("--json", a.json, "a summary on standard output; what the ranks print goes to standard error");
}

/// Where the program begins: behind the options and their values.
size_t program_at(const std::vector<std::string>& words) {
  static const std::set<std::string> kFlags = {"--json", "-h", "--help"};
  size_t i = 0;
  while (i < words.size() && words[i] != "-m" && words[i].starts_with('-') && words[i] != "--") {
    const bool joined = words[i].find('=') != std::string::npos || (words[i].starts_with("-n") && words[i].size() > 2);
    i += kFlags.count(words[i]) || joined ? 1 : 2;
  }
  return std::min(i, words.size());
}

std::vector<std::string> command_of(std::vector<std::string> words) {
  if (!words.empty() && words[0] == "--") words.erase(words.begin());
  if (words.empty())
    fail(ErrorKind::invalid_argument, "",
         "no program to start; expected a script, -m MODULE or a command after the options");
  std::error_code none;
  if (words[0] == "-m" || words[0].ends_with(".py")) {
    if (words[0] != "-m" && !fs::exists(words[0], none))
      fail(ErrorKind::not_found, words[0], "there is no such script");
    words.insert(words.begin(), find_python(""));
  } else if (words[0] == "cairn") {
    words[0] = fs::read_symlink("/proc/self/exe", none).string();
  }
  return words;
}

bool is_this_host(const std::string& name) {
  char own[256] = "";
  ::gethostname(own, sizeof own - 1);
  return name.empty() || name == "localhost" || name == "127.0.0.1" || name == own;
}

/// How many ranks each host has, in order.
std::vector<std::pair<std::string, int>> shares(const Arguments& a) {
  std::vector<std::pair<std::string, int>> hosts;
  int given = 0;
  for (const std::string& host : a.hosts) {
    const size_t colon = host.find(':');
    const int slots = colon == host.npos ? 0 : std::atoi(host.c_str() + colon + 1);
    if (colon != host.npos && slots < 1) fail(ErrorKind::invalid_argument, "--hosts", "{} is not NAME:RANKS", host);
    if (host.empty() || colon == 0) fail(ErrorKind::invalid_argument, "--hosts", "has a host without a name");
    hosts.emplace_back(host.substr(0, colon), slots);
    given += slots;
  }
  const bool named = std::any_of(hosts.begin(), hosts.end(), [](const auto& host) { return host.second > 0; });
  if (named && std::any_of(hosts.begin(), hosts.end(), [](const auto& host) { return host.second == 0; }))
    fail(ErrorKind::invalid_argument, "--hosts", "gives the number of ranks for some hosts only");
  if (named && a.ranks && a.ranks != given)
    fail(ErrorKind::invalid_argument, "--hosts", "has {} ranks, -n asks for {}", given, a.ranks);
  if (named) return hosts;
  if (hosts.empty()) return {{"", std::max(1, a.ranks)}};
  const auto count = static_cast<int>(hosts.size()), ranks = a.ranks ? a.ranks : count;
  if (ranks < count) fail(ErrorKind::invalid_argument, "--hosts", "has {} hosts for {} ranks", count, ranks);
  for (int i = 0; i < count; ++i) hosts[static_cast<size_t>(i)].second = ranks / count + (i < ranks % count);
  return hosts;
}

int device_of(const Arguments& a, int local_rank, int local_size) {
  if (a.devices.empty()) return local_rank;
  if (a.devices.size() < static_cast<size_t>(local_size))
    fail(ErrorKind::invalid_argument, "--device-list", "has {} devices for {} ranks of a host", a.devices.size(),
         local_size);
  const std::string& text = a.devices[static_cast<size_t>(local_rank)];
  if (text.empty() || text.find_first_not_of("0123456789") != text.npos || text.size() > 6)
    fail(ErrorKind::invalid_argument, "--device-list", "\"{}\" is no device, expected a number", text);
  return std::stoi(text);
}

std::vector<RankPlan> ranks_of(const Arguments& a) {
  std::vector<RankPlan> ranks;
  for (const auto& [host, count] : shares(a))
    for (int i = 0; i < count; ++i)
      ranks.push_back(
          {static_cast<int>(ranks.size()), i, count, device_of(a, i, count), is_this_host(host) ? "" : host});
  return ranks;
}

/// A table of version 1.0 or 0.x as (rank, host, device).
std::vector<RankPlan> read_table(const std::string& path) {
  const Json table = Json::parse(read_file(path), nullptr, false);
  std::map<int, RankPlan> found;
  const auto number = [](const Json& value) {
    return value.is_string() ? std::stoi(value.get<std::string>()) : value.get<int>();
  };
  const auto add = [&](const Json& rank, const std::string& host, const Json& device) {
    found[number(rank)] = {number(rank), 0, 0, number(device), is_this_host(host) ? "" : host};
  };
  try {
    if (table.contains("server_list")) {
      for (const Json& server : table.at("server_list"))
        for (const Json& device : server.at("device"))
          add(device.at("rank_id"), server.at("server_id"), device.at("device_id"));
    } else {
      for (const Json& group : table.at("group_list"))
        for (const Json& instance : group.at("instance_list"))
          add(instance.at("rank_id"), instance.at("server_id"), instance.at("devices").at(0).at("device_id"));
    }
  } catch (const std::exception&) {
    fail(ErrorKind::invalid_argument, path, "is no rank table: expected server_list (version 1.0) or group_list (0.x)");
  }
  std::vector<RankPlan> ranks;
  std::map<std::string, int> on_host;
  for (auto& [rank, plan] : found) {
    if (rank != static_cast<int>(ranks.size())) fail(ErrorKind::invalid_argument, path, "has no rank {}", ranks.size());
    plan.local_rank = on_host[plan.host]++;
    ranks.push_back(plan);
  }
  for (RankPlan& plan : ranks) plan.local_size = on_host[plan.host];
  if (ranks.empty()) fail(ErrorKind::invalid_argument, path, "has no ranks");
  return ranks;
}

void write_table(const std::string& path, const std::vector<RankPlan>& ranks) {
  Json servers = Json::array();
  for (const RankPlan& rank : ranks) {
    const std::string host = rank.host.empty() ? "127.0.0.1" : rank.host;
    if (servers.empty() || servers.back()["server_id"] != host)
      servers.push_back({{"server_id", host}, {"device", Json::array()}});
    servers.back()["device"].push_back(
        {{"device_id", std::to_string(rank.device)}, {"device_ip", host}, {"rank_id", std::to_string(rank.rank)}});
  }
  const Json table = {{"status", "completed"},
                      {"version", "1.0"},
                      {"server_count", std::to_string(servers.size())},
                      {"server_list", servers}};
  write_file(path, table.dump(2) + "\n");
}

/// A port of this host's loopback that nobody else is given as long as this lives; rank 0 may listen at it all the same.
class FreePort {
 public:
  FreePort() : socket_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    const int shared = 1;
    place_.sin_family = AF_INET;
    place_.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof place_;
    auto* place = reinterpret_cast<sockaddr*>(&place_);
    if (socket_ < 0 || ::setsockopt(socket_, SOL_SOCKET, SO_REUSEADDR, &shared, sizeof shared) != 0 ||
        ::bind(socket_, place, size) != 0 || ::getsockname(socket_, place, &size) != 0)
      fail(ErrorKind::io, "", "no free port for the ranks to meet at: {}", reason(errno));
  }
  ~FreePort() { ::close(socket_); }
  FreePort(const FreePort&) = delete;
  int number() const { return ntohs(place_.sin_port); }

 private:
  const int socket_;
  sockaddr_in place_{};
};

std::string address_of(const Arguments& a, const LaunchPlan& plan, const FreePort& port) {
  if (!a.address.empty()) return a.address;
  const bool one_host =
      std::all_of(plan.ranks.begin(), plan.ranks.end(), [](const RankPlan& r) { return r.host.empty(); });
  if (one_host) return fmt::format("127.0.0.1:{}", port.number());
  if (!plan.ranks[0].host.empty())
    return fmt::format("{}:{}", plan.ranks[0].host, 20000 + std::random_device()() % 10000);
  const std::string name = a.hosts.empty() ? "" : a.hosts[0].substr(0, a.hosts[0].find(':'));
  char own[256] = "";
  ::gethostname(own, sizeof own - 1);
  const bool known = !name.empty() && name != "localhost" && name != "127.0.0.1";
  return fmt::format("{}:{}", known ? name : own, port.number());
}

void require_ssh(const LaunchPlan& plan) {
  if (std::all_of(plan.ranks.begin(), plan.ranks.end(), [](const RankPlan& rank) { return rank.host.empty(); })) return;
  const std::string program = plan.ssh.substr(0, plan.ssh.find(' '));
  std::istringstream folders(std::getenv("PATH") ? std::getenv("PATH") : "");
  bool found = program.find('/') != program.npos && ::access(program.c_str(), X_OK) == 0;
  for (std::string folder; std::getline(folders, folder, ':');)
    found = found || ::access((folder + "/" + program).c_str(), X_OK) == 0;
  if (!found)
    fail(ErrorKind::not_found, "--hosts", "ranks on other hosts are started by {}, which is not installed", program);
}

LaunchPlan plan_of(const Arguments& a, std::vector<std::string> command) {
  LaunchPlan plan;
  std::error_code none;
  const bool given = !a.table.empty() && fs::exists(a.table, none);
  plan.ranks = given ? read_table(a.table) : ranks_of(a);
  if (given && !a.hosts.empty())
    fail(ErrorKind::invalid_argument, "--hosts", "the rank table {} names the hosts", a.table);
  if (given && a.ranks && a.ranks != static_cast<int>(plan.ranks.size()))
    fail(ErrorKind::invalid_argument, a.table, "has {} ranks, -n asks for {}", plan.ranks.size(), a.ranks);
  plan.command = std::move(command);
  plan.ssh = a.ssh;
  require_ssh(plan);
  if (!a.table.empty() && !given) write_table(a.table, plan.ranks);
  if (!a.table.empty()) plan.table = fs::absolute(a.table).string();
  if (!a.log_folder.empty()) make_folders(a.log_folder);
  plan.log_folder = a.log_folder;
  plan.transport = a.transport;
  plan.binds = a.bind == "cores";
  plan.timeout = a.timeout;
  plan.grace = a.grace;
  plan.all_to_errors = a.json;
  return plan;
}

/// "rank 2 (this host) was ended by SIGKILL after 3.2 s; rank 0 ended with status 1, ranks 1, 3 ended with status 0".
std::string failure_text(const LaunchPlan& plan, const JobEnd& end) {
  const auto failed = static_cast<size_t>(end.first_failed);
  std::string text = fmt::format("rank {} ({}) {} after {:.1f} s", failed, host_text(plan.ranks[failed]),
                                 end_text(end.ranks[failed]), end.ranks[failed].seconds);
  std::map<std::string, std::vector<size_t>> others;
  for (size_t i = 0; i < end.ranks.size(); ++i)
    if (i != failed) others[end.ranks[i].told_to_end ? "had to be ended" : end_text(end.ranks[i])].push_back(i);
  for (const auto& [how, ranks] : others)
    text += fmt::format("; rank{} {} {}", ranks.size() > 1 ? "s" : "", fmt::join(ranks, ", "), how);
  return text;
}

void print_summary(const LaunchPlan& plan, const JobEnd& end, int status) {
  Json ranks = Json::array();
  for (size_t i = 0; i < end.ranks.size(); ++i) {
    const RankEnd& each = end.ranks[i];
    ranks.push_back({{"rank", i},
                     {"host", plan.ranks[i].host.empty() ? "localhost" : plan.ranks[i].host},
                     {"device", plan.ranks[i].device},
                     {"status", each.signal ? Json() : Json(each.status)},
                     {"signal", each.signal ? Json(std::string("SIG") + ::sigabbrev_np(each.signal)) : Json()},
                     {"ended_by_launch", each.told_to_end},
                     {"seconds", each.seconds}});
  }
  print_json({{"status", status},
              {"restarts", plan.attempt},
              {"first_failed", end.first_failed < 0 ? Json() : Json(end.first_failed)},
              {"ranks", ranks}});
}

int launch(const Arguments& a, std::vector<std::string> command) {
  LaunchPlan plan = plan_of(a, std::move(command));
  while (true) {
    const FreePort port;
    plan.address = address_of(a, plan, port);
    const JobEnd end = run_job(plan);
    const bool failed = end.first_failed >= 0;
    const bool again = failed && !end.stopped_by && plan.attempt < a.restarts;
    if (failed)
      note(
          fmt::format("{} launch: {}{}", red("error:"), failure_text(plan, end),
                      again ? fmt::format("; all start again ({} of {} restarts)", plan.attempt + 1, a.restarts) : ""));
    if (end.stopped_by && end.stopped_by != SIGINT)
      note(fmt::format("{} launch: ended by SIG{}", red("error:"), ::sigabbrev_np(end.stopped_by)));
    if (end.log_fault)
      note(fmt::format("{} launch: {}: a log cannot be written: {}", red("error:"), plan.log_folder,
                       reason(end.log_fault)));
    if (again) {
      ++plan.attempt;
      continue;
    }
    const int status = failed           ? exit_status(end.ranks[static_cast<size_t>(end.first_failed)])
                       : end.stopped_by ? 128 + end.stopped_by
                       : end.log_fault  ? 1
                                        : 0;
    if (a.json) print_summary(plan, end, status);
    return status;
  }
}

}  // namespace

int launch_main(const std::vector<std::string>& arguments) {
  Program app("cairn launch", "Starts a program several times as the ranks of one job.");
  Arguments a;
  declare(app, a);
  const auto begin = arguments.begin() + static_cast<ptrdiff_t>(program_at(arguments));
  if (std::optional<int> status = app.parse({arguments.begin(), begin})) return *status;
  try {
    return launch(a, command_of({begin, arguments.end()}));
  } catch (...) {
    note(fmt::format("{} launch: {}", red("error:"), current_fault().what()));
    return 1;
  }
}

}  // namespace cairn::cli
