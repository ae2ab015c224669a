// How much memory the plans of a model take, and the contexts of their runs: above the bound, what was used longest ago goes.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <unordered_set>

namespace cairn {

class Program;

/// Shared by all programs of a model, those inside loops and branches included. Thread-safe.
class PlanBudget {
 public:
  explicit PlanBudget(size_t most) : most_(most) {}

  /// CAIRN_PLAN_MEMORY ("256M"), else 1 GiB. Throws Error invalid_argument.
  static size_t default_bytes();

  size_t most() const { return most_; }
  size_t used() const { return used_.load(std::memory_order_relaxed); }
  void take(size_t bytes) { used_.fetch_add(bytes, std::memory_order_relaxed); }
  void give_back(size_t bytes) { used_.fetch_sub(bytes, std::memory_order_relaxed); }
  /// A number above all that were given out before.
  uint64_t now() { return clock_.fetch_add(1, std::memory_order_relaxed) + 1; }

  void add(const Program* program);
  void remove(const Program* program);
  /// Frees idle contexts and plans, those used longest ago first, until the bound holds. What runs, and the plan that
  /// was used last with one context, stay.
  void make_room();

 private:
  const size_t most_;
  std::atomic<size_t> used_{0};
  std::atomic<uint64_t> clock_{0};
  std::mutex mutex_;
  std::unordered_set<const Program*> programs_;
};

}  // namespace cairn
