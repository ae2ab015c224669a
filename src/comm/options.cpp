#include "comm/options.h"

#include <cstdlib>
#include <functional>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>

#include "support/error.h"
#include "support/files.h"
#include "support/json_fault.h"

namespace cairn::comm {

namespace {

using Json = nlohmann::json;

std::optional<std::string> variable(const char* name) {
  const char* text = std::getenv(name);
  return text && *text ? std::optional<std::string>(text) : std::nullopt;
}

int number_of(const std::string& text, const char* name) {
  char* end = nullptr;
  const long value = std::strtol(text.c_str(), &end, 10);
  if (text.empty() || *end || value < 0 || value > 1'000'000)
    fail(ErrorKind::invalid_argument, name, "is \"{}\", expected a number from 0 on", text);
  return static_cast<int>(value);
}

double seconds_of(const std::string& text, const char* name) {
  char* end = nullptr;
  const double value = std::strtod(text.c_str(), &end);
  if (text.empty() || *end || !(value > 0) || value > 1e9)
    fail(ErrorKind::invalid_argument, name, "is \"{}\", expected seconds above 0", text);
  return value;
}

Json parse(const std::string& text, const char* name) {
  Json json = Json::parse(text, nullptr, false);
  if (json.is_discarded()) fail(ErrorKind::invalid_argument, name, "is not JSON: {}", json_fault(text));
  if (!json.is_object()) fail(ErrorKind::invalid_argument, name, "is no JSON object");
  return json;
}

/// Jobs of one host that name no address meet at a port that follows from the job's name.
std::string local_address() {
  const size_t job = std::hash<std::string>()(variable("JOB_ID").value_or("") + variable("USER").value_or(""));
  return fmt::format("127.0.0.1:{}", 16384 + job % 16000);
}

std::string table_address(const RankTable& table) {
  const int port = number_of(variable("HCCL_IF_BASE_PORT").value_or("60000"), "HCCL_IF_BASE_PORT");
  return fmt::format("{}:{}", table.one_host ? "127.0.0.1" : table.first_host, port);
}

void use_table(JobOptions& job, const std::string& path) {
  const RankTable table = read_rank_table(path);
  job.size = table.size;
  job.address = table_address(table);
}

void read_environment(JobOptions& job) {
  const auto table = variable("RANK_TABLE_FILE") ? variable("RANK_TABLE_FILE") : variable("MINDSPORE_HCCL_CONFIG_PATH");
  const auto rank = variable("RANK_ID"), size = variable("RANK_SIZE");
  if (variable("CM_CHIEF_IP")) {
    if (table)
      fail(ErrorKind::invalid_argument, "CM_CHIEF_IP",
           "CM_CHIEF_IP and RANK_TABLE_FILE cannot be configured at the same time.");
    job.source = "CM_CHIEF_IP";
    job.size = number_of(variable("CM_WORKER_SIZE").value_or("1"), "CM_WORKER_SIZE");
    job.rank = number_of(rank.value_or(variable("CM_RANK").value_or("0")), "RANK_ID");
    job.address = *variable("CM_CHIEF_IP") + ":" + variable("CM_CHIEF_PORT").value_or("60000");
  } else if (table && rank) {
    job.source = "RANK_TABLE_FILE";
    job.rank = number_of(*rank, "RANK_ID");
    use_table(job, *table);
    if (size && number_of(*size, "RANK_SIZE") != job.size)
      fail(ErrorKind::invalid_argument, "RANK_SIZE", "is {}, the rank table {} has {} ranks", *size, *table, job.size);
  } else if (variable("OMPI_COMM_WORLD_SIZE")) {
    job.source = "mpirun";
    job.rank = number_of(variable("OMPI_COMM_WORLD_RANK").value_or("0"), "OMPI_COMM_WORLD_RANK");
    job.size = number_of(*variable("OMPI_COMM_WORLD_SIZE"), "OMPI_COMM_WORLD_SIZE");
  } else if (size) {
    job.source = "RANK_SIZE";
    job.size = number_of(*size, "RANK_SIZE");
    if (job.size > 1 && !rank) fail(ErrorKind::invalid_argument, "RANK_ID", "is not set, but RANK_SIZE is {}", *size);
    job.rank = rank ? number_of(*rank, "RANK_ID") : 0;
    job.address = local_address();
  }
}

void read_timeouts(JobOptions& job) {
  if (auto text = variable("HCCL_CONNECT_TIMEOUT")) job.connect_timeout = seconds_of(*text, "HCCL_CONNECT_TIMEOUT");
  if (auto text = variable("HCCL_EXEC_TIMEOUT")) job.timeout = seconds_of(*text, "HCCL_EXEC_TIMEOUT");
}

template <class T>
void take(const Json& json, const char* key, T& to, bool (Json::*is)() const noexcept, const char* expected) {
  if (!json.contains(key) || json[key].is_null()) return;
  if (!(json[key].*is)()) fail(ErrorKind::invalid_argument, key, "is {}, expected {}", json[key].dump(), expected);
  to = json[key].get<T>();
}

void apply(JobOptions& job, const Json& json, const char* source) {
  static const std::set<std::string> kKnown = {"rank",    "size",          "local_rank", "local_size",
                                               "table",   "address",       "token",      "transport",
                                               "timeout", "shared_memory", "hosts",      "connect_timeout"};
  for (const auto& [key, value] : json.items())
    if (!kKnown.count(key)) fail(ErrorKind::invalid_argument, key, "is no option of a job");
  if (json.contains("rank") || json.contains("size") || json.contains("table")) job.source = source;
  std::string table;
  take(json, "table", table, &Json::is_string, "a file");
  if (!table.empty()) use_table(job, table);
  take(json, "rank", job.rank, &Json::is_number_integer, "a number");
  take(json, "size", job.size, &Json::is_number_integer, "a number");
  take(json, "address", job.address, &Json::is_string, "host:port");
  take(json, "token", job.token, &Json::is_string, "a text");
  take(json, "transport", job.transport, &Json::is_string, "auto, gloo or mpi");
  take(json, "shared_memory", job.shared_memory, &Json::is_boolean, "true or false");
  take(json, "timeout", job.timeout, &Json::is_number, "seconds");
  take(json, "connect_timeout", job.connect_timeout, &Json::is_number, "seconds");
}

void check(const JobOptions& job) {
  if (job.size < 1 || job.size > 65536)
    fail(ErrorKind::invalid_argument, "size", "is {}, expected 1 to 65536", job.size);
  if (job.rank < 0 || job.rank >= job.size)
    fail(ErrorKind::invalid_argument, "rank", "is {}, expected 0 to {}", job.rank, job.size - 1);
  if (job.transport != "auto" && job.transport != "gloo" && job.transport != "mpi")
    fail(ErrorKind::invalid_argument, "transport", "is \"{}\", expected auto, gloo or mpi", job.transport);
  if (!(job.timeout > 0) || !(job.connect_timeout > 0)) fail(ErrorKind::invalid_argument, "timeout", "is not above 0");
}

/// In the order of ranks: the host of each.
std::vector<std::string> hosts_of(const Json& table) {
  std::vector<std::pair<int, std::string>> found;
  const auto number = [](const Json& value) {
    return value.is_string() ? number_of(value.get<std::string>(), "rank_id") : value.get<int>();
  };
  if (table.contains("server_list")) {
    for (const Json& server : table.at("server_list"))
      for (const Json& device : server.at("device"))
        found.emplace_back(number(device.at("rank_id")), server.at("server_id"));
  } else {
    for (const Json& group : table.at("group_list"))
      for (const Json& instance : group.at("instance_list"))
        found.emplace_back(number(instance.at("rank_id")), instance.at("server_id"));
  }
  std::sort(found.begin(), found.end());
  std::vector<std::string> hosts;
  for (const auto& [rank, host] : found) {
    if (rank != static_cast<int>(hosts.size())) fail(ErrorKind::invalid_argument, "", "has no rank {}", hosts.size());
    hosts.push_back(host);
  }
  if (hosts.empty()) fail(ErrorKind::invalid_argument, "", "has no ranks");
  return hosts;
}

}  // namespace

RankTable read_rank_table(const std::string& path) {
  const Json table = parse(read_file(path), path.c_str());
  if (table.contains("status") && table["status"] != "completed")
    fail(ErrorKind::invalid_argument, path, "the status of the rank table is {}, expected \"completed\"",
         table["status"].dump());
  try {
    const std::vector<std::string> hosts = hosts_of(table);
    const bool one = std::all_of(hosts.begin(), hosts.end(), [&](const std::string& host) { return host == hosts[0]; });
    return {static_cast<int>(hosts.size()), hosts[0], one};
  } catch (const Json::exception&) {
    fail(ErrorKind::invalid_argument, path,
         "is no rank table: expected server_list with device lists (version 1.0), or group_list with instance_list "
         "(0.x)");
  } catch (const Error& fault) {
    fail(fault.kind(), path, "the rank table {}", fault.message());
  }
}

JobOptions read_job(const std::string& given) {
  JobOptions job;
  read_timeouts(job);
  if (auto launched = variable("CAIRN_JOB"))
    apply(job, parse(*launched, "CAIRN_JOB"), "CAIRN_JOB");
  else
    read_environment(job);
  if (!given.empty()) apply(job, parse(given, "options"), "options");
  if (job.size > 1 && job.address.empty() && job.source != "mpirun") job.address = local_address();
  if (job.token.empty()) job.token = variable("JOB_ID").value_or("");
  check(job);
  return job;
}

}  // namespace cairn::comm
