#include "plan/reference_steps.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <set>

#include "support/fault.h"
#include "support/fork.h"

namespace cairn {

namespace {

// Orders of magnitude: what a core does in a second by a fast kernel, and by a plain loop.
constexpr Cost kFast{2e10, 8e9}, kPlain{3e8, 6e8};
constexpr double kStepSeconds = 1e-6, kShare = 0.05, kWorthALine = 2e-4;

double seconds_of(const Cost& cost, const Cost& rate) {
  return kStepSeconds + cost.flops / rate.flops + cost.bytes / rate.bytes;
}

bool is_reference_step(const PlannedStep& step, const PlanOptions& options) {
  return options.engines.size() > 1 && step.engine == options.engines.back() && !step.group.nodes.empty();
}

/// What kernels of this kind of operator say; without one, that there is none.
std::string reason_of(const Engine& engine, const Group& group) {
  std::string text;
  std::set<std::string> known;
  for (const Candidate& candidate : engine.candidates(group)) {
    const std::string& refusal = candidate.refusal;
    const bool other = refusal.starts_with("is ") || refusal.starts_with("has no ");
    if (!other && known.insert(refusal).second) text += (text.empty() ? "" : "; ") + refusal;
  }
  return text.empty() ? fmt::format("{} has no kernel of it", engine.name()) : text;
}

std::string line_of(const std::vector<ReferenceStep>& steps, double share) {
  std::string text =
      fmt::format("cairn: about {:.0f} % of a run is on the reference engine, which is slow:", 100 * share);
  for (const ReferenceStep& step : steps)
    text += fmt::format("{} {} of {} at {} ({})", &step == steps.data() ? "" : ",", step.op, step.types, step.node,
                        step.reason);
  return text;
}

void add_to_file(const char* path, const std::vector<ReferenceStep>& steps) {
  std::string text;
  for (const ReferenceStep& step : steps)
    text += fmt::format("{}\t{}\t{}\t{}\n", step.op, step.types, step.node, step.reason);
  std::FILE* file = std::fopen(path, "a");
  if (!file) fail(ErrorKind::io, path, "cannot be written");
  std::fwrite(text.data(), 1, text.size(), file);
  std::fclose(file);
}

}  // namespace

std::vector<ReferenceStep> reference_steps(const Plan& plan, const Module& module, const PlanOptions& options) {
  std::vector<ReferenceStep> list;
  for (const PlannedStep& step : plan.steps) {
    if (!is_reference_step(step, options)) continue;
    const Node& node = step.group.last();
    ReferenceStep fallen{node.op->name, {}, printable(where(module, node)), {}, seconds_of(step.cost, kPlain)};
    for (const Value* input : node.inputs) fallen.types += (fallen.types.empty() ? "" : ", ") + to_string(input->type);
    fallen.reason = reason_of(*options.engines.front(), step.group);
    list.push_back(std::move(fallen));
  }
  return list;
}

void tell_reference_steps(const Plan& plan, const Module& module, const PlanOptions& options) {
  double slow = 0, all = 0;
  for (const PlannedStep& step : plan.steps) {
    const bool fallen = is_reference_step(step, options);
    const double seconds = seconds_of(step.cost, fallen ? kPlain : kFast);
    all += seconds;
    if (fallen) slow += seconds;
  }
  if (slow == 0) return;
  const char* file = std::getenv("CAIRN_REFERENCE_STEPS");
  const bool worth = slow > kWorthALine && slow > kShare * all;
  if (!worth && !(file && *file)) return;
  std::vector<ReferenceStep> steps = reference_steps(plan, module, options);
  static std::mutex mutex;
  static std::set<std::string> told;
  const ShieldedLock lock(mutex);
  if (file && *file) add_to_file(file, steps);
  if (!worth) return;
  // Those that count, each operator once.
  std::erase_if(steps, [&](const ReferenceStep& step) { return step.seconds < 0.1 * slow; });
  std::erase_if(steps, [&](const ReferenceStep& step) { return !told.insert(step.op).second; });
  if (!steps.empty()) note(line_of(steps, slow / all));
}

}  // namespace cairn
