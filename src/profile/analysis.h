// What a recording says: iterations with their marks, the time of every step, and advice with its evidence.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "profile/recording.h"

namespace cairn::profile {

/// All runs of one step of the host. Times are CLOCK_MONOTONIC in ns.
struct Iteration {
  uint32_t number = 0;  // from 1, among those of the model
  uint32_t model = 0;   // the one with a backward part, else the first that ran
  int64_t host_step = 0;
  int64_t fp_start = 0, bp_end = 0, end = 0;
  bool has_ops = false, trains = false;
  std::optional<int64_t> data_aug;  // from the end of the model's iteration before
  int64_t period = 0;               // end to end; of the first: fp_start to end
  int64_t ops = 0, gaps = 0;        // time in steps, and in none, between fp_start and end
  uint32_t runs = 0, op_count = 0;

  int64_t busy() const { return end - fp_start; }
  int64_t fp_to_bp() const { return bp_end - fp_start; }
  int64_t refresh() const { return end - bp_end; }
};

/// The iteration of steps whose run did not end.
inline constexpr uint32_t kNoIteration = UINT32_MAX;

/// One execution of a step; in the order of recording.ops.
struct OpTime {
  int64_t self = 0;  // without steps inside
  int64_t wait = 0;  // since the thread's step before in the iteration
  uint32_t iteration = 0;
};

/// All executions of one step of one plan.
struct StepTotal {
  uint32_t plan = 0, step = 0;
  uint64_t count = 0;
  int64_t total = 0, least = 0, most = 0;  // of self
  uint64_t cycles = 0, instructions = 0, references = 0, misses = 0;
};

/// What this machine can do at most, measured; zeros when not known.
struct Machine {
  double flops = 0, bandwidth = 0;  // per second, on all threads of the recording
  struct Cache {
    double bytes = 0, bandwidth = 0;  // of work on up to so many bytes in all
  };
  std::vector<Cache> caches;  // the smallest first

  double bandwidth_for(double bytes) const;
};

struct Advice {
  std::string text, evidence;
};

/// Of the timeline in Chrome's form.
struct Tracks {
  bool steps = true, runs = true, iterations = true, ranges = true;
};

struct Analysis {
  std::vector<Iteration> iterations;  // in order of begin
  std::vector<OpTime> ops;
  std::vector<uint32_t> runs;    // iteration of each run; in the order of recording.runs
  std::vector<StepTotal> steps;  // most time first
  int64_t op_time = 0;           // of all
  uint32_t model = 0;   // whose iterations take the most time, one that trains if there is one; 0 when nothing ran
  double overhead = 0;  // share of the steps' time that recording took
};

Analysis analyse(const Recording& recording);
/// Leaves iterations `first` to `first` + `count` - 1 of a model, with what belongs to them; false when there are none.
bool keep_iterations(Recording& recording, Analysis& analysis, uint32_t model, uint32_t first, uint32_t count);

/// The iterations of one model: how many, and the numbers of the five that took longest.
struct Longest {
  size_t count = 0;
  std::vector<uint32_t> numbers;
};
std::map<uint32_t, Longest> longest_iterations(const Analysis& analysis);

/// All ranges of the user's with one name.
struct RangeTotal {
  std::string name;
  uint64_t count = 0;
  int64_t total = 0, most = 0;
};
/// Most time first.
std::vector<RangeTotal> total_ranges(const Recording& recording);
/// Bytes of the arena that are in use at each step of the plan.
std::vector<int64_t> live_bytes(const PlanInfo& plan);
/// Least time that the machine could need over the time taken; nothing when the machine or the work is not known.
std::optional<double> roofline_share(const StepInfo& step, const StepTotal& total, const Machine& machine);
void advise_on_data(const Recording& recording, std::vector<Advice>& list);
std::vector<Advice> advise(const Recording& recording, const Analysis& analysis, const Machine& machine);
inline uint32_t main_model(const Analysis& analysis) { return analysis.model; }

/// Measures the processor for about `seconds`.
Machine measure_machine(int threads, double seconds);

}  // namespace cairn::profile
