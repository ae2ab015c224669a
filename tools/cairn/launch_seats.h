// Where the ranks of a job run, and what each of them is told: hosts, devices, cores, environment.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "console.h"

namespace cairn::cli {

struct Seat {
  int rank = 0, device = 0, local_rank = 0, local_size = 1;
  std::string host;  // as the user calls it; empty: this one, of a job on one host
};

struct SeatOptions {
  int count = 0;                     // 0: not given
  std::vector<std::string> hosts;    // "a" or "a:4", at most so many ranks
  std::vector<std::string> devices;  // of each host, by local rank
  std::string rank_table;            // read where it exists
};
/// In the order of ranks. Throws Error invalid_argument.
std::vector<Seat> seat_ranks(const SeatOptions& options);
/// The platform's table of these ranks, version 1.0.
Json rank_table(const std::vector<Seat>& seats);

/// Whether this machine has that name or address.
bool is_here(const std::string& host);
std::string host_name();

/// What all ranks of one start have in common.
struct LaunchJob {
  std::vector<std::string> command;
  int size = 1;
  std::string address, token, transport = "auto", id;
  bool shared_memory = true, bind = true;
  double timeout = 60, connect_timeout = 120;
  std::string rank_table;  // file
  int restart = 0;         // which start this is, from 0
  std::map<std::string, std::string> variables;  // for ranks on other hosts
};
Json to_json(const LaunchJob& job);
LaunchJob job_from_json(const Json& json);

/// Cores of each rank of this host: equal parts of those that this process may use, neighbours together; one that several
/// ranks share where there are fewer cores than ranks.
std::vector<std::vector<int>> share_cores(int ranks);
/// "NAME=value" for the processes of a rank, from the variables of this process.
std::vector<std::string> environment_of(const LaunchJob& job, const Seat& seat, size_t cores);
/// Variables of this process that ranks on other hosts get.
std::map<std::string, std::string> variables_to_pass();

/// A port at this address that no other program gets while the object lives; a rank may listen on it.
class ReservedPort {
 public:
  /// Throws Error io.
  explicit ReservedPort(const std::string& host);
  ~ReservedPort();
  ReservedPort(const ReservedPort&) = delete;
  int port() const { return port_; }

 private:
  int socket_ = -1, port_ = 0;
};

}  // namespace cairn::cli
