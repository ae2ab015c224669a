#include "plan/exchanges.h"

#include <algorithm>

#include "ir/collective.h"
#include "ir/control.h"

namespace cairn {

namespace {

// Called functions may exchange anything.
bool exchanges(const Node& node) {
  if (node.op->has(kCollective) || is_call(node)) return true;
  return std::any_of(node.regions.begin(), node.regions.end(), [](const auto& region) {
    return std::any_of(region->nodes.begin(), region->nodes.end(), [](const auto& inner) { return exchanges(*inner); });
  });
}

}  // namespace

void Exchanges::wait(PlannedStep& step) {
  if (ended_ == begun_.size()) return;
  if ((step.control && exchanges(*step.control)) || std::any_of(step.outputs.begin(), step.outputs.end(), keeps_))
    return wait_for(step, begun_.size());
  for (size_t i = begun_.size(); i > ended_; --i) {
    const Exchange& last = begun_[i - 1];
    if (meet(step.inputs, last.outputs) || meet(step.outputs, last.inputs) || meet(step.outputs, last.outputs))
      return wait_for(step, i);
  }
}

// What a collective uses stays alive until the first step that waits for it.
void Exchanges::wait_for(PlannedStep& step, size_t count) {
  const auto touch = [&](size_t buffer) { plan_.buffers[buffer].last = plan_.steps.size(); };
  for (; ended_ < count; ++ended_) {
    const Exchange& each = begun_[ended_];
    std::for_each(each.inputs.begin(), each.inputs.end(), touch);
    std::for_each(each.outputs.begin(), each.outputs.end(), touch);
    if (each.workspace) touch(*each.workspace);
  }
  step.waits = std::max(step.waits, count);
}

void Exchanges::begin(PlannedStep& step) {
  if (!step.step || !step.group.last().op->has(kCollective)) return;
  const auto host = [&](size_t buffer) { return plan_.buffers[buffer].kind == Buffer::Kind::object; };
  step.beside = std::none_of(step.inputs.begin(), step.inputs.end(), host) &&
                std::none_of(step.outputs.begin(), step.outputs.end(), host);
  if (!step.beside) return wait_for(step, begun_.size());
  begun_.push_back({plan_.steps.size(), step.inputs, step.outputs, step.workspace});
}

bool Exchanges::under_way(size_t buffer) const {
  return std::any_of(begun_.begin() + static_cast<ptrdiff_t>(ended_), begun_.end(),
                     [&](const Exchange& each) { return meet({buffer}, each.inputs) || meet({buffer}, each.outputs); });
}

bool Exchanges::meet(const std::vector<size_t>& some, const std::vector<size_t>& others) const {
  return std::any_of(some.begin(), some.end(), [&](size_t a) {
    return std::any_of(others.begin(), others.end(), [&](size_t b) { return memory_(a) == memory_(b); });
  });
}

// A collective that the next step waits for runs in its own place, once those before it have ended: it would hide nothing.
void Exchanges::end() {
  PlannedStep last;
  wait_for(last, begun_.size());
  std::vector<size_t> beside(begun_.size() + 1, 0);  // of the first n, those that go on beside
  for (size_t i = 0; i < begun_.size(); ++i) {
    const size_t next = begun_[i].step + 1;
    PlannedStep& step = plan_.steps[begun_[i].step];
    step.beside = next < plan_.steps.size() && plan_.steps[next].waits <= i;
    if (!step.beside) step.waits = i;
    beside[i + 1] = beside[i] + step.beside;
  }
  for (PlannedStep& step : plan_.steps) step.waits = beside[step.waits];
}

}  // namespace cairn
