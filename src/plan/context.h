// The memory of one run: arenas, host objects, and the argument pointers of every step. Contexts are pooled per plan;
// each run takes one, so that concurrent runs never share memory.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <vector>

#include "plan/plan.h"

namespace cairn {

class Context {
 public:
  /// `arena`: memory in the enclosing plan's arena for the plan of a region; null: the context allocates its own, on the
  /// host takes `spare` if there is one.
  explicit Context(const Plan& plan, void* arena = nullptr, Arena spare = {});
  ~Context();
  Context(const Context&) = delete;

  /// Binds a caller's buffer (or HostValue) to input or output `index` of the plan.
  void bind_input(size_t index, const void* data) { bind(inputs_[index], const_cast<void*>(data)); }
  void bind_output(size_t index, void* data) { bind(outputs_[index], data); }
  void* const* arguments(const PlannedStep& step) const { return arguments_.data() + step.first_argument; }
  /// The address of buffer i: memory of its space, or a HostValue*.
  void* buffer(size_t i) const { return pointers_[i]; }
  void* const* buffers() const { return pointers_.data(); }
  /// The context of body `i` of the step.
  Context& inner(const PlannedStep& step, size_t i) const { return *inner_[step.first_inner + i]; }
  /// Hands over the host arena, after the last run.
  Arena release_arena();
  /// The approximate size of everything that the context holds.
  size_t bytes() const;

 private:
  struct Binding {
    size_t buffer = SIZE_MAX;
    std::vector<size_t> arguments;
  };
  void bind(Binding& binding, void* data);

  const Plan& plan_;
  std::vector<std::pair<MemorySpace*, Arena>> arenas_;  // owned by this context
  std::vector<HostValue> objects_;
  std::vector<void*> pointers_;   // per buffer
  std::vector<void*> arguments_;  // per step: inputs, then outputs
  std::vector<Binding> inputs_, outputs_;
  std::vector<std::unique_ptr<Context>> inner_;
};

class ContextPool {
 public:
  /// `plan_bytes` and the contexts' bytes both count against the budget. `runs_again`: it is known that there will be
  /// more than one run, as of a function that takes data and changes state.
  ContextPool(std::shared_ptr<PlanBudget> budget, size_t plan_bytes, bool runs_again);
  ~ContextPool();
  /// An idle context, or a new one; return it with release(). The context of the first run is not kept unless
  /// it runs again, so that functions which run once, such as the initialisation of variables, hold no memory afterwards.
  std::unique_ptr<Context> take(const Plan& plan);
  void release(std::unique_ptr<Context> context);
  /// Frees idle contexts until at most `left` remain.
  void drop_idle(size_t left);
  /// Records a use of the plan; last_use() is the time stamp of the latest one.
  void touch() { last_use_.store(budget_->now(), std::memory_order_relaxed); }
  uint64_t last_use() const { return last_use_.load(std::memory_order_relaxed); }
  /// A number that no other plan of this process has.
  uint32_t serial() const { return serial_; }

 private:
  static uint32_t next_serial();
  const uint32_t serial_ = next_serial();
  const std::shared_ptr<PlanBudget> budget_;
  const size_t plan_bytes_;
  std::atomic<uint64_t> last_use_{0};
  std::mutex mutex_;
  bool runs_again_;
  std::vector<std::unique_ptr<Context>> idle_;
};

}  // namespace cairn
