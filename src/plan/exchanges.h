// Which collectives of a plan go on beside later steps, and which of them each step waits for.
#pragma once

#include "plan/plan.h"

namespace cairn {

/// Used while the steps of a plan are made, in their order. Collectives go on one after the other, so that all ranks carry
/// them out in the order of the plan; a step waits until the first `PlannedStep::waits` of them have ended.
class Exchanges {
 public:
  /// `memory`: equal for buffers of the plan that share memory. `keeps`: whether a step that fails must have left the
  /// buffer's content alone, since it is the new content of a param.
  Exchanges(Plan& plan, std::function<const void*(size_t)> memory, std::function<bool(size_t)> keeps)
      : plan_(plan), memory_(std::move(memory)), keeps_(std::move(keeps)) {}

  /// The step, which comes next, waits for those that it must not overtake: it reads what they make, writes what they read or
  /// make, exchanges something itself, or updates a param, which stays as it is when one of them fails.
  void wait(PlannedStep& step);
  /// If the step, which comes next, is a collective, it goes on beside the ones after it.
  void begin(PlannedStep& step);
  /// Whether one that has not been waited for uses the memory of the buffer.
  bool under_way(size_t buffer) const;
  /// No more steps follow.
  void end();

 private:
  struct Exchange {
    size_t step;
    std::vector<size_t> inputs, outputs;
    std::optional<size_t> workspace;
  };
  bool meet(const std::vector<size_t>& some, const std::vector<size_t>& others) const;
  void wait_for(PlannedStep& step, size_t count);

  Plan& plan_;
  std::function<const void*(size_t)> memory_;
  std::function<bool(size_t)> keeps_;
  std::vector<Exchange> begun_;
  size_t ended_ = 0;  // of these, before the next step
};

}  // namespace cairn
