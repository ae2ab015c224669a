// Whether the runs of a plan gain from more than one worker, learnt from their times.
#pragma once

#include <atomic>
#include <cstdint>

namespace cairn {

/// Runs of up to some milliseconds are tried on one worker and on all, a few times each and again later: what it costs to wake workers,
/// and whether other programs want their processors, shows in the times alone. The results are the same either way.
/// Several threads may use it at once; a count that gets lost does no harm.
class WorkerChoice {
 public:
  /// Whether the run that begins takes one worker.
  bool next_is_alone();
  /// The run took so many ns, and one worker was expected to take `expected`, which makes runs of other sizes comparable.
  void took(bool alone, double ns, double expected);

 private:
  static constexpr double kNever = 1e300;

  void decide();

  std::atomic<uint32_t> runs_{0};    // since the last decision
  std::atomic<uint32_t> quiet_{16};  // so many of them go as decided; then the trial begins
  std::atomic<bool> alone_{false}, long_{false};
  std::atomic<double> together_{kNever}, single_{kNever};  // the shortest times
};

}  // namespace cairn
