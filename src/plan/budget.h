// Bounds the memory of a model's plans and of their contexts: above the bound, the least recently used ones are freed.
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
  /// The next time stamp: larger than all before.
  uint64_t now() { return clock_.fetch_add(1, std::memory_order_relaxed) + 1; }

  void add(const Program* program);
  void remove(const Program* program);
  /// Frees idle contexts and plans, least recently used first, until the bound holds. Plans that are running are kept,
  /// and so is the most recently used plan with one context.
  void make_room();

 private:
  const size_t most_;
  std::atomic<size_t> used_{0};
  std::atomic<uint64_t> clock_{0};
  std::mutex mutex_;
  std::unordered_set<const Program*> programs_;
};

}  // namespace cairn
