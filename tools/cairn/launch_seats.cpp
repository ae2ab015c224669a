#include "launch_seats.h"

#include <netdb.h>
#include <netinet/in.h>
#include <sched.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <fstream>
#include <numeric>

#include "comm/options.h"
#include "support/executor.h"
#include "support/fault.h"

namespace cairn::cli {
namespace {

namespace fs = std::filesystem;

int number_of(const std::string& text, const char* option) {
  const bool digits = !text.empty() && text.size() < 7 && text.find_first_not_of("0123456789") == std::string::npos;
  if (!digits) fail(ErrorKind::invalid_argument, option, "\"{}\" is no number", text);
  return std::stoi(text);
}

/// The host of each rank. "a:4" is a host and its ranks; more than one colon is an IPv6 address.
std::vector<std::string> spread(const SeatOptions& options) {
  std::vector<std::pair<std::string, int>> hosts;
  int places = 0, open = 0;
  for (const std::string& word : options.hosts) {
    const size_t colon = word.find(':');
    const bool counted = colon != std::string::npos && colon == word.rfind(':');
    const int count = counted ? number_of(word.substr(colon + 1), "--hosts") : 0;
    if (word.empty() || colon == 0 || (counted && count == 0) || word[0] == '-')
      fail(ErrorKind::invalid_argument, "--hosts", "\"{}\" is no host and no host:ranks", word);
    hosts.emplace_back(word.substr(0, counted ? colon : std::string::npos), count);
    places += count, open += !counted;
  }
  const int size = options.count ? options.count : places + open;
  if (size < places + open || (size > places && !open))
    fail(ErrorKind::invalid_argument, "--hosts", "has places for {} {}ranks, -n is {}", places + open,
         open ? "or more " : "", size);
  std::vector<std::string> each;
  for (int i = 0, left = size - places; auto& [host, count] : hosts) {
    if (count == 0) count = left * (i + 1) / open - left * i / open, ++i;
    each.insert(each.end(), static_cast<size_t>(count), host);
  }
  return each;
}

std::vector<Seat> seats_of_table(const SeatOptions& options) {
  const comm::RankTable table = comm::read_rank_table(options.rank_table);
  if (options.count && options.count != table.size)
    fail(ErrorKind::invalid_argument, "-n", "is {}, the rank table {} has {} ranks", options.count, options.rank_table,
         table.size);
  if (!options.hosts.empty()) fail(ErrorKind::invalid_argument, "--hosts", "the rank table names the hosts");
  std::vector<Seat> seats;
  for (const auto& [host, device] : table.places)
    seats.push_back({.rank = static_cast<int>(seats.size()), .device = device, .host = table.one_host ? "" : host});
  return seats;
}

std::string text_of(const fs::path& file) {
  std::ifstream in(file);
  std::string text;
  std::getline(in, text);
  return text;
}

/// Cores of this process, threads of one core and cores of one package beside each other.
std::vector<int> own_cores() {
  cpu_set_t set;
  std::vector<std::tuple<std::string, int, int>> found;
  if (sched_getaffinity(0, sizeof set, &set) != 0) return {};
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (!CPU_ISSET(cpu, &set)) continue;
    const fs::path topology = fmt::format("/sys/devices/system/cpu/cpu{}/topology", cpu);
    found.emplace_back(text_of(topology / "physical_package_id"), std::atoi(text_of(topology / "core_id").c_str()), cpu);
  }
  std::sort(found.begin(), found.end());
  std::vector<int> cores;
  for (const auto& each : found) cores.push_back(std::get<2>(each));
  return cores;
}

struct FreeAddresses {
  void operator()(addrinfo* list) const { freeaddrinfo(list); }
};
std::unique_ptr<addrinfo, FreeAddresses> look_up(const std::string& host) {
  addrinfo hints{}, *list = nullptr;
  hints.ai_socktype = SOCK_STREAM;
  if (getaddrinfo(host.c_str(), "0", &hints, &list) != 0) list = nullptr;
  return std::unique_ptr<addrinfo, FreeAddresses>(list);
}

/// A socket bound to the first address of the host, which is one of this machine; otherwise -1.
int bind_at(const std::string& host) {
  const auto found = look_up(host);
  if (!found) return -1;
  const int file = ::socket(found->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0), yes = 1;
  ::setsockopt(file, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
  if (::bind(file, found->ai_addr, found->ai_addrlen) == 0) return file;
  ::close(file);
  return -1;
}

}  // namespace

std::string host_name() {
  char name[256] = "?";
  gethostname(name, sizeof name - 1);
  return name;
}

bool is_here(const std::string& host) {
  if (host.empty() || host == host_name()) return true;
  const int file = bind_at(host);
  if (file >= 0) ::close(file);
  return file >= 0;
}

ReservedPort::ReservedPort(const std::string& host) : socket_(bind_at(host)) {
  if (socket_ < 0) fail(ErrorKind::io, host, "no port can be had at this address: {}", reason(errno));
  sockaddr_storage own{};
  socklen_t size = sizeof own;
  ::getsockname(socket_, reinterpret_cast<sockaddr*>(&own), &size);
  port_ = ntohs(own.ss_family == AF_INET6 ? reinterpret_cast<sockaddr_in6&>(own).sin6_port
                                          : reinterpret_cast<sockaddr_in&>(own).sin_port);
}

ReservedPort::~ReservedPort() { ::close(socket_); }

std::vector<Seat> seat_ranks(const SeatOptions& options) {
  std::vector<Seat> seats;
  if (!options.rank_table.empty() && fs::exists(options.rank_table)) {
    seats = seats_of_table(options);
  } else {
    const int devices = static_cast<int>(options.devices.size());
    std::vector<std::string> hosts(static_cast<size_t>(options.count ? options.count : devices));
    if (!options.hosts.empty()) hosts = spread(options);
    for (const std::string& host : hosts) seats.push_back({.rank = static_cast<int>(seats.size()), .host = host});
  }
  if (seats.empty()) fail(ErrorKind::invalid_argument, "", "needs -n RANKS, --hosts, --device-list or a --rank-table");
  std::map<std::string, int> local;
  for (Seat& seat : seats) seat.local_rank = local[seat.host]++;
  const bool from_table = !options.rank_table.empty() && fs::exists(options.rank_table);
  for (Seat& seat : seats) {
    seat.local_size = local[seat.host];
    if (!options.devices.empty()) {
      if (seat.local_size > static_cast<int>(options.devices.size()))
        fail(ErrorKind::invalid_argument, "--device-list", "has {} devices for {} ranks of a host",
             options.devices.size(), seat.local_size);
      seat.device = number_of(options.devices[static_cast<size_t>(seat.local_rank)], "--device-list");
    } else if (!from_table) {
      seat.device = seat.local_rank;
    }
  }
  return seats;
}

Json rank_table(const std::vector<Seat>& seats) {
  Json servers = Json::array();
  for (const Seat& seat : seats) {
    const std::string host = seat.host.empty() ? "127.0.0.1" : seat.host;
    if (servers.empty() || servers.back()["server_id"] != host)
      servers.push_back({{"server_id", host}, {"device", Json::array()}, {"host_nic_ip", "reserve"}});
    servers.back()["device"].push_back({{"device_id", std::to_string(seat.device)},
                                        {"device_ip", host},
                                        {"rank_id", std::to_string(seat.rank)}});
  }
  return {{"version", "1.0"},
          {"server_count", std::to_string(servers.size())},
          {"server_list", servers},
          {"status", "completed"}};
}

Json to_json(const LaunchJob& job) {
  return {{"command", job.command},     {"size", job.size},
          {"address", job.address},     {"token", job.token},
          {"transport", job.transport}, {"id", job.id},
          {"bind", job.bind},           {"shared_memory", job.shared_memory},
          {"timeout", job.timeout},     {"connect_timeout", job.connect_timeout},
          {"rank_table", job.rank_table}, {"restart", job.restart},
          {"variables", job.variables}};
}

LaunchJob job_from_json(const Json& json) {
  LaunchJob job;
  json.at("command").get_to(job.command);
  json.at("size").get_to(job.size);
  json.at("address").get_to(job.address);
  json.at("token").get_to(job.token);
  json.at("transport").get_to(job.transport);
  json.at("id").get_to(job.id);
  json.at("bind").get_to(job.bind);
  json.at("shared_memory").get_to(job.shared_memory);
  json.at("timeout").get_to(job.timeout);
  json.at("connect_timeout").get_to(job.connect_timeout);
  json.at("rank_table").get_to(job.rank_table);
  json.at("restart").get_to(job.restart);
  json.at("variables").get_to(job.variables);
  return job;
}

std::vector<std::vector<int>> share_cores(int ranks) {
  std::vector<int> cores = own_cores();
  std::vector<std::vector<int>> shares(static_cast<size_t>(ranks));
  if (cores.empty()) return shares;
  // With a quota below the number of cores, programs beside this one would all take the first ones.
  const size_t usable = std::min(cores.size(), static_cast<size_t>(available_threads()));
  if (usable < cores.size()) {
    const auto start = cores.begin() + static_cast<long>(static_cast<size_t>(getpid()) % cores.size());
    std::rotate(cores.begin(), start, cores.end());
  }
  const size_t count = shares.size();
  for (size_t i = 0; i < count; ++i) {
    const size_t begin = i * usable / count, end = (i + 1) * usable / count;
    if (begin == end) shares[i] = {cores[i % usable]};
    for (size_t core = begin; core < end; ++core) shares[i].push_back(cores[core]);
  }
  return shares;
}

std::vector<std::string> environment_of(const LaunchJob& job, const Seat& seat, size_t cores) {
  std::map<std::string, std::string> all;
  for (char** each = environ; *each; ++each) {
    const std::string word = *each;
    const size_t equals = word.find('=', 1);
    if (equals != std::string::npos) all[word.substr(0, equals)] = word.substr(equals + 1);
  }
  for (const auto& [name, value] : job.variables) all[name] = value;
  // What tells of another job.
  std::erase_if(all, [](const auto& each) {
    return each.first.starts_with("OMPI_") || each.first.starts_with("PMIX_") || each.first.starts_with("CM_") ||
           each.first == "RANK_TABLE_FILE" || each.first == "MINDSPORE_HCCL_CONFIG_PATH";
  });
  const Json rank = {{"rank", seat.rank},
                     {"size", job.size},
                     {"local_rank", seat.local_rank},
                     {"local_size", seat.local_size},
                     {"address", job.address},
                     {"token", job.token},
                     {"transport", job.transport},
                     {"shared_memory", job.shared_memory},
                     {"timeout", job.timeout},
                     {"connect_timeout", job.connect_timeout}};
  all["CAIRN_JOB"] = rank.dump();
  all["CAIRN_RESTART"] = std::to_string(job.restart);
  all["RANK_ID"] = std::to_string(seat.rank);
  all["RANK_SIZE"] = std::to_string(job.size);
  all["DEVICE_ID"] = all["ASCEND_DEVICE_ID"] = std::to_string(seat.device);
  all["DEVICE_NUM"] = std::to_string(seat.local_size);
  if (!job.rank_table.empty()) all["RANK_TABLE_FILE"] = job.rank_table;
  all.try_emplace("JOB_ID", job.id);
  all.try_emplace("PYTHONUNBUFFERED", "1");
  if (cores)
    for (const char* name : {"OMP_NUM_THREADS", "TF_NUM_INTRAOP_THREADS", "TF_NUM_INTEROP_THREADS"})
      all.try_emplace(name, std::to_string(cores));
  std::vector<std::string> words;
  for (const auto& [name, value] : all) words.push_back(name + "=" + value);
  return words;
}

std::map<std::string, std::string> variables_to_pass() {
  std::map<std::string, std::string> found;
  constexpr const char* kBeginnings[] = {"PATH=",  "PYTHON", "LD_LIBRARY_PATH=", "VIRTUAL_ENV=", "CAIRN_", "TF_",
                                         "OMP_",   "MS_",    "ASCEND_",          "HCCL_",        "GE_",    "GLOG_",
                                         "JOB_ID=", "PROFILING_", "DUMP_"};
  for (char** each = environ; *each; ++each) {
    const std::string_view word = *each;
    const bool passes = std::any_of(std::begin(kBeginnings), std::end(kBeginnings),
                                    [&](const char* beginning) { return word.starts_with(beginning); });
    const size_t equals = word.find('=', 1);
    if (passes && equals != std::string::npos)
      found[std::string(word.substr(0, equals))] = std::string(word.substr(equals + 1));
  }
  return found;
}

}  // namespace cairn::cli
