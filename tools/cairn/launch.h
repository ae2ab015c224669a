// The verb `cairn launch`: starts the ranks of a job, shows their output, and ends all when one fails.
#pragma once

#include <string>
#include <vector>

#include "console.h"

namespace cairn::cli {

/// Arguments behind the verb.
int launch_main(const std::vector<std::string>& arguments);

/// A process of the job, as it is to be started.
struct RankPlan {
  int rank = 0, local_rank = 0, local_size = 1;
  int device = 0;
  std::string host;  // "": this one
};

struct LaunchPlan {
  std::vector<RankPlan> ranks;
  std::vector<std::string> command;
  std::string ssh = "ssh", address, table, log_folder, transport;
  bool binds = true;           // cores are divided among the ranks of this host
  bool all_to_errors = false;  // standard output of the ranks goes to standard error as well
  double timeout = 0, grace = 10;
  int attempt = 0;
};

/// How a rank ended.
struct RankEnd {
  int status = -1;  // exit status; -1 when a signal ended it
  int signal = 0;
  bool told_to_end = false;  // by us, because of another rank or of a signal to us
  bool stopped = false;      // and nobody else was left to say so
  double seconds = 0;        // since the start of the job
};

struct JobEnd {
  std::vector<RankEnd> ranks;
  int first_failed = -1;  // rank
  int stopped_by = 0;     // signal to us
  int log_fault = 0;      // errno of a log that cannot be written
};

/// Starts the ranks and returns when all have ended. Throws Error when one cannot be started.
JobEnd run_job(const LaunchPlan& plan);

/// "this host" or the host's name.
std::string host_text(const RankPlan& rank);
/// "was ended by SIGKILL", "ended with status 1".
std::string end_text(const RankEnd& end);
int exit_status(const RankEnd& end);

}  // namespace cairn::cli
