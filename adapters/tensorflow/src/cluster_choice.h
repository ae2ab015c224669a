// Where a cluster in doubt runs: one that holds work for which TensorFlow's kernels may be faster than the engine's. The engine
// takes the first runs. To make TensorFlow's kernels costs about as much as to compile the cluster did, so they are tried only after
// the engine's runs have taken a quarter of that: a script of few steps does not pay for both. Then runs take turns between both
// sides, and the faster side has the cluster.
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>
#include <string>

#include "rule.h"

namespace cairn_tf {

/// Thread-safe. Each run is made by one side alone; a cluster without doubt asks nothing but whether there is one.
class ClusterChoice {
 public:
  explicit ClusterChoice(Rule rule) : rule_(rule) {}

  /// Whether TensorFlow takes the run that begins.
  bool next_is_stock();
  /// `planned`: the engine compiled or planned for sizes that were new to it, which tells nothing of other runs.
  void took(double ns, bool planned) { add(ns, engine_, planned); }
  void stock_took(double ns) { add(ns, stock_, false); }
  /// For good: TensorFlow's kernels would do something else, as where the engine continues its own random numbers.
  void stay_on_engine() { rule_ = Rule::engine; }
  /// What the latest decision was and why, if it is another one than at the last call; else "".
  std::string news();

 private:
  /// Runs of one side in this trial, and the shortest.
  struct Side {
    uint32_t runs = 0;
    double shortest = 1e300;
  };
  void add(double ns, Side& side, bool planned);
  bool is_early() const { return !decided_ && stock_.runs == 0 && spent_ < kPart * compiled_; }
  void decide();

  static constexpr double kPart = 0.25;  // of the time to compile
  std::atomic<Rule> rule_;
  std::mutex mutex_;
  bool decided_ = false, on_stock_ = false;
  uint32_t quiet_ = 0, left_ = 0;  // so many runs go as decided, then both are tried again
  Side engine_, stock_;
  double compiled_ = 0, spent_ = 0;  // ns: the engine's first run, and those behind it
  std::string news_;
};

}  // namespace cairn_tf
