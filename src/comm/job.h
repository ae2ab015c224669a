// The job of this process: joins and leaves it, its groups, and the one entry for collectives.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "comm/request.h"

namespace cairn::comm {

/// All names of the group of all ranks mean "world".
std::string_view known_name(std::string_view name);

/// Joins the job that the options (JSON, may be empty) and the environment describe; nests. Throws Error.
void join(const std::string& options);
/// Undoes one join. The last one waits until the others have left as well, at most for the job's timeout.
void leave();
bool joined();

struct GroupView {
  int rank = 0;  // of this process among the members; -1: no member
  int local_rank = 0, local_size = 1;
  std::vector<int> ranks = {0};
};
/// Without a job "world" has one rank. Throws Error not_found.
GroupView group(std::string_view name);
/// Throws Error invalid_argument.
void create_group(const std::string& name, const std::vector<int>& ranks);
void destroy_group(const std::string& name);

/// Throws Error invalid_argument when the group has not `request.ranks` members; run() does the same.
void check_size(const Request& request);

/// Carries out a collective of this rank, of a group of one rank without a job as well. Throws Error.
void run(const Request& request);

/// How long collectives wait for another rank from now on. Throws Error invalid_argument.
void set_timeout(double seconds);

/// How many bytes of gradients are reduced together unless something else is said: docs/dev/performance.md.
inline constexpr int64_t kBucketBytes = 8 << 20;

/// How all_reduce nodes are put together (cairn_job_set_fusion).
struct Fusion {
  int64_t bytes = kBucketBytes;
  std::vector<int64_t> indices, percents;
  bool none = false;
};
void set_fusion(const std::string& group, const std::string& strategy);
Fusion fusion_of(std::string_view group);
void forget_fusion();

/// JSON, as for cairn_job_describe().
std::string describe();

}  // namespace cairn::comm
