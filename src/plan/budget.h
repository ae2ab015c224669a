// Bounds the memory of a model's plans and of their contexts: above the bound, the least recently used ones are freed.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <unordered_set>

namespace cairn {

class Program;

/// Host memory of a context whose pages have been touched.
struct Arena {
  void* data = nullptr;
  size_t bytes = 0;
};

/// Shared by all programs of a model, those inside loops and branches included. Thread-safe.
class PlanBudget {
 public:
  explicit PlanBudget(size_t most) : most_(most) {}
  ~PlanBudget();

  /// CAIRN_PLAN_MEMORY ("256M"), else 1 GiB. Throws Error invalid_argument.
  static size_t default_bytes();

  size_t most() const { return most_; }
  size_t used() const { return used_.load(std::memory_order_relaxed); }
  void take(size_t bytes) { used_.fetch_add(bytes, std::memory_order_relaxed); }
  void give_back(size_t bytes) { used_.fetch_sub(bytes, std::memory_order_relaxed); }
  /// The next time stamp: larger than all before.
  uint64_t now() { return clock_.fetch_add(1, std::memory_order_relaxed) + 1; }

  /// Counts what planning has taken so far.
  void planned(uint64_t ns) { planning_ns_.fetch_add(ns, std::memory_order_relaxed); }
  uint64_t planning_ns() const { return planning_ns_.load(std::memory_order_relaxed); }

  void add(const Program* program);
  void remove(const Program* program);
  /// The spare arena if it has so many bytes, else none.
  Arena take_spare(size_t least, size_t most);
  bool has_smaller_spare(size_t bytes);
  /// The arena of a plan's first run becomes the spare one if others came before it, as it does where dims change, and
  /// it is larger than the spare one so far; else it is freed.
  void give_spare(Arena arena);
  /// Frees the spare arena, then idle contexts and plans, least recently used first, until the bound holds. Plans that
  /// are running are kept, and so is the most recently used plan with one context.
  void make_room();

 private:
  const size_t most_;
  std::atomic<size_t> used_{0};
  std::atomic<uint64_t> clock_{0}, planning_ns_{0};
  std::mutex mutex_;
  std::unordered_set<const Program*> programs_;
  Arena spare_;
  bool had_one_ = false;
};

}  // namespace cairn
