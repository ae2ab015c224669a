#include "plan/at_once.h"

#include <algorithm>

namespace cairn {

namespace {

constexpr double kLeast = 20e3,
                 kMost = 50e6;  // ns: more than waking a worker takes; a run can be stopped only between steps

bool is_short_scan(const PlannedStep& step) {
  if (!step.scan || step.bodies.size() != 1 || step.bodies[0]->time >= kLeast || !is_quiet_scan(*step.control))
    return false;
  const double time = static_cast<double>(step.scan->turns) * step.bodies[0]->time;
  return time >= kLeast && time <= kMost;
}

bool meet(const std::vector<size_t>& made, const PlannedStep& other, FunctionRef<const void*(size_t)> memory) {
  const auto among = [&](const std::vector<size_t>& buffers, size_t mine) {
    return std::any_of(buffers.begin(), buffers.end(), [&](size_t each) { return memory(each) == memory(mine); });
  };
  return std::any_of(made.begin(), made.end(),
                     [&](size_t mine) { return among(other.inputs, mine) || among(other.outputs, mine); });
}

}  // namespace

bool is_quiet_scan(const Node& node) {
  return scan_of(node) && std::all_of(node.regions[0]->nodes.begin(), node.regions[0]->nodes.end(),
                                      [](const auto& inner) { return inner->op->pure() && inner->regions.empty(); });
}

void run_scans_at_once(Plan& plan, FunctionRef<const void*(size_t buffer)> memory) {
  std::vector<PlannedStep>& steps = plan.steps;
  const auto apart = [&](const PlannedStep& a, const PlannedStep& b) {
    return !meet(a.outputs, b, memory) && !meet(b.outputs, a, memory) && b.waits <= a.waits;
  };
  for (size_t first = 0; first < steps.size(); first += steps[first].at_once) {
    if (!is_short_scan(steps[first])) continue;
    size_t end = first + 1;
    while (end < steps.size() && is_short_scan(steps[end]) &&
           std::all_of(&steps[first], &steps[end], [&](const PlannedStep& each) { return apart(each, steps[end]); }))
      ++end;
    steps[first].at_once = end - first;
    for (Buffer& buffer : plan.buffers) {
      if (buffer.first > first && buffer.first < end) buffer.first = first;
      if (buffer.last >= first && buffer.last < end) buffer.last = end - 1;
    }
  }
}

}  // namespace cairn
