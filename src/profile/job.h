// The recordings of all ranks of a job together: one timeline, and what each rank's collectives took, waited and hid.
#pragma once

#include <string>
#include <vector>

#include "profile/analysis.h"

namespace cairn::profile {

/// One execution of a collective on one rank.
struct Exchange {
  const Record* op = nullptr;
  int64_t waited = 0;  // ns, until the last rank had come
};

struct RankShare {
  int64_t rank = 0;
  Recording recording;
  Analysis analysis;
  int64_t shift = 0;  // ns to be added to its times for those of the first rank
  std::vector<Exchange> exchanges;
  uint64_t bytes = 0;
  int64_t exchanging = 0, waiting = 0,
          hidden = 0;  // ns in collectives; of them waiting for ranks; while steps ran elsewhere
};

struct CollectiveTotal {
  std::string name, op;
  size_t count = 0;             // times, each on all ranks
  uint64_t bytes = 0;           // of one time
  double time = 0, waited = 0;  // ns of one time, mean over ranks
  double bandwidth = 0;         // bytes a second, from when the last rank had come
  int64_t last_rank = 0;        // that came last most often
};

struct Job {
  std::vector<RankShare> ranks;              // in their order
  std::vector<CollectiveTotal> collectives;  // most time first
  int64_t slowest = -1;                      // the rank for which the others wait most; -1: there are no collectives
  std::vector<std::string> remarks;
};

/// Times, in order and apart.
using Spans = std::vector<std::pair<int64_t, int64_t>>;
/// When steps other than collectives ran; `ops` come in the order of their begins.
Spans computing_spans(const Recording& recording, const std::vector<const Record*>& ops);
/// For how long the interval and the spans overlap.
int64_t overlap(int64_t begin, int64_t end, const Spans& others);

/// Of the folders PROF_*, one for each rank: of several of one rank the latest. Throws Error.
Job read_job(const std::vector<std::string>& folders);
/// One timeline in Perfetto's format, a process for each rank.
void write_job_trace(const Job& job, const std::string& path);

}  // namespace cairn::profile
