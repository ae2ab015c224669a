// Where a cluster runs whose sizes hardly ever repeat, so that the engine plans anew in most runs: on the engine, or on
// TensorFlow's own kernels if these take less time than planning and running. Learnt from the times of runs.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "rule.h"

namespace cairn_tf {

/// Of a call: each argument's rank and dims, then the values of the fixed arguments.
using Sizes = std::vector<int64_t>;

/// Since it was made.
class Clock {
 public:
  double ns() const {
    return std::chrono::duration<double, std::nano>(std::chrono::steady_clock::now() - begin_).count();
  }

 private:
  std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now();
};

/// Thread-safe. A cluster that stops planning after its first runs stays on the engine and is never tried on TensorFlow.
class SizeChoice {
 public:
  explicit SizeChoice(Rule rule) : rule_(rule) {}

  /// Whether the run that begins goes to TensorFlow. Sizes that the engine has planned do not, nor do those that have come so often
  /// that a plan would have paid.
  bool next_is_stock(const Sizes& sizes);
  /// The engine took so many ns, of them `planning` for plans and compilations.
  void took(const Sizes& sizes, double ns, double planning);
  void stock_took(double ns);
  /// What the latest decision was and why, if it is another one than at the last call; else "".
  std::string news();

 private:
  struct Known {
    uint64_t hash = 0;
    bool planned = false, always = false;  // at these sizes; always: each run plans, as where dims depend on data
    uint32_t waited = 0;                   // runs on TensorFlow
  };
  /// Times of a trial's runs. Of those that plan, the shortest without planning: plans differ, so that their mean counts, but for the
  /// longest, which may be the first of its kind.
  struct Trial {
    double ran, stock, all, planning, longest;
    uint32_t plans;
    double plan() const { return plans > 1 ? (planning - longest) / (plans - 1) : planning; }
    double engine() const { return plans ? ran + plan() : 0; }
  };
  static constexpr Trial kNone{1e300, 1e300, 0, 0, 0, 0};

  Known& known(const Sizes& sizes, bool& fresh);
  bool new_is_stock();
  bool is_hopeless() const;
  void decide();

  const Rule rule_;
  std::atomic<bool> learns_{false};  // that runs plan again and again
  std::mutex mutex_;
  std::unique_ptr<Known[]> table_;  // by hash
  uint32_t planned_ = 0;            // runs before it learns
  uint32_t runs_ = 0;               // at new sizes since the last decision
  uint32_t quiet_ = 4;              // so many of them go as decided, then the other side is tried
  uint32_t patience_ = 1;           // runs on TensorFlow that cost as much more than those of a plan as making it does
  bool stock_ = false;
  Trial trial_ = kNone;
  std::string news_;
};

}  // namespace cairn_tf
