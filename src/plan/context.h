// The memory of one run: arenas, host objects, and the resolved argument pointers of every step. Contexts are pooled
// per plan; a run borrows one, so that concurrent runs never share memory.
#pragma once

#include <memory>
#include <mutex>
#include <vector>

#include "plan/plan.h"

namespace cairn {

class Context {
 public:
  explicit Context(const Plan& plan);
  ~Context();
  Context(const Context&) = delete;

  /// Binds a caller's buffer (or HostValue) to input or output `index` of the plan.
  void bind_input(size_t index, const void* data) { bind(inputs_[index], const_cast<void*>(data)); }
  void bind_output(size_t index, void* data) { bind(outputs_[index], data); }
  void* const* arguments(const PlannedStep& step) const { return arguments_.data() + step.first_argument; }
  /// Where buffer i is: memory of its space, or a HostValue*.
  void* buffer(size_t i) const { return pointers_[i]; }
  void* const* buffers() const { return pointers_.data(); }

 private:
  struct Binding {
    size_t buffer = SIZE_MAX;
    std::vector<size_t> arguments;
  };
  void bind(Binding& binding, void* data);

  const Plan& plan_;
  std::vector<std::pair<MemorySpace*, void*>> arenas_;
  std::vector<HostValue> objects_;
  std::vector<void*> pointers_;   // per buffer
  std::vector<void*> arguments_;  // per step: inputs, then outputs
  std::vector<Binding> inputs_, outputs_;
};

class ContextPool {
 public:
  /// An idle context, or a new one; give it back with release(). That of the first run is not kept: what runs once, like
  /// the initialisation of variables, holds no memory afterwards.
  std::unique_ptr<Context> take(const Plan& plan);
  void release(std::unique_ptr<Context> context);
  /// A number that no other plan of this process has.
  uint32_t serial() const { return serial_; }

 private:
  static uint32_t next_serial();
  const uint32_t serial_ = next_serial();
  std::mutex mutex_;
  bool runs_again_ = false;
  std::vector<std::unique_ptr<Context>> idle_;
};

}  // namespace cairn
