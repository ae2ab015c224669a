// How a process learns that it is a rank of a job: options of the caller, then the environment.
#pragma once

#include <string>
#include <vector>

namespace cairn::comm {

struct JobOptions {
  int rank = 0, size = 1;
  std::string address;  // where rank 0 waits; empty: under mpirun the ranks tell each other
  std::string token;
  std::string transport = "auto";  // auto, gloo, mpi
  bool shared_memory = true;
  double timeout = 60, connect_timeout = 120;
  std::string source;  // what said so: "options", "RANK_TABLE_FILE", ...
};

/// `given`: JSON as for cairn_job_join(), or empty. Throws Error invalid_argument, io (a rank table that cannot be read).
JobOptions read_job(const std::string& given);

/// Of a rank table, version 1.0 or 0.x: where rank 0 waits, and how many ranks there are.
struct RankTable {
  int size = 0;
  std::string first_host;  // of rank 0
  bool one_host = true;
};
RankTable read_rank_table(const std::string& path);

}  // namespace cairn::comm
