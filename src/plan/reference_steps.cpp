#include "plan/reference_steps.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <set>

#include "ir/collective.h"
#include "plan/decompose.h"
#include "plan/items.h"
#include "support/fault.h"
#include "support/fork.h"

namespace cairn {

namespace {

// Orders of magnitude of what a core does in a second (FLOPs, bytes), in a fast kernel and in a plain loop.
constexpr Cost kFast{2e10, 8e9}, kPlain{3e8, 6e8};
constexpr double kStepSeconds = 1e-6, kShare = 0.05, kWorthALine = 2e-4;

double seconds_of(const Cost& cost, const Cost& rate) {
  return kStepSeconds + cost.flops / rate.flops + cost.bytes / rate.bytes;
}

/// Whether the group falls to the reference engine. Operators from users and collectives do not count: no engine has another
/// kernel.
bool is_reference(const Engine* engine, const Group& group, const PlanOptions& options) {
  return options.engines.size() > 1 && engine == options.engines.back() && !group.nodes.empty() &&
         !group.last().op->user && !group.last().op->has(kCollective);
}

/// The refusals of the engine's kernels for this kind of operator; if it has none, a sentence that says so.
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

std::string shares_of(const ReferenceShare& share) {
  return fmt::format("about {:.0f} % of a run's time and {:.3g} % of its FLOPs", 100 * share.of_seconds,
                     100 * share.of_flops);
}

std::string line_of(const ReferenceStep& step) {
  return fmt::format("{} of {} at {} ({})", step.op, step.types, step.node, step.reason);
}

/// Counts FLOPs and seconds of all steps, and adds those of the last engine with their types and reasons.
class Shares {
 public:
  Shares(const Module& module, const PlanOptions& options) : module_(module), options_(options) {}

  void add(const Plan& plan) {
    for (const PlannedStep& step : plan.steps) {
      for (const auto& body : step.bodies)
        if (!step.scan || &body == &step.bodies[0]) add(*body);
      if (!step.group.nodes.empty()) add(step.engine, step.group, step.cost);
    }
  }

  void add(const Engine* engine, const Group& group, const Cost& cost) {
    const bool fallen = is_reference(engine, group, options_);
    const double seconds = seconds_of(cost, fallen ? kPlain : kFast);
    flops_ += cost.flops, seconds_ += seconds;
    if (!fallen) return;
    share_.of_flops += cost.flops, share_.of_seconds += seconds;
    note_step(group, seconds);
  }

  ReferenceShare result() && {
    if (flops_ > 0) share_.of_flops /= flops_;
    if (seconds_ > 0) share_.of_seconds /= seconds_;
    std::stable_sort(share_.steps.begin(), share_.steps.end(),
                     [](const ReferenceStep& a, const ReferenceStep& b) { return a.seconds > b.seconds; });
    return std::move(share_);
  }

 private:
  void note_step(const Group& group, double seconds) {
    const Node& node = group.last();
    ReferenceStep fallen{node.op->name, {}, printable(where(module_, node)), {}, seconds};
    for (const Value* input : node.inputs) fallen.types += (fallen.types.empty() ? "" : ", ") + to_string(input->type);
    fallen.reason = reason_of(*options_.engines.front(), group);
    for (ReferenceStep& known : share_.steps)
      if (known.op == fallen.op && known.types == fallen.types && known.reason == fallen.reason) {
        known.seconds += seconds;
        ++known.count;
        return;
      }
    share_.steps.push_back(std::move(fallen));
  }

  const Module& module_;
  const PlanOptions& options_;
  ReferenceShare share_;
  double flops_ = 0, seconds_ = 0;
};

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

ReferenceShare reference_share(const Plan& plan, const Module& module, const PlanOptions& options) {
  Shares shares(module, options);
  shares.add(plan);
  return std::move(shares).result();
}

ReferenceShare expected_share(const Module& module, std::span<const Dims> dims, const PlanOptions& options) {
  auto function = specialise(module.main(), dims);
  PlanOptions whole = options;
  whole.every_value = true;
  Decomposed decomposed;
  prepare(module, *function, whole, decomposed);
  const Uses uses(function->body);
  Shares shares(module, options);
  for (const Item& item : make_items(module, *function, uses, options).list) {
    const auto is_open = [](const Value* value) { return value->type.is_tensor() && !value->type.shape.known(); };
    const Group& group = item.group;
    if (item.engine && std::none_of(group.inputs.begin(), group.inputs.end(), is_open) &&
        std::none_of(group.outputs.begin(), group.outputs.end(), is_open))
      shares.add(item.engine, group, cost_of(group));
  }
  return std::move(shares).result();
}

bool is_slow(const ReferenceShare& share) {
  double seconds = 0;
  for (const ReferenceStep& step : share.steps) seconds += step.seconds;
  return share.of_seconds > kShare && seconds > kWorthALine;
}

std::vector<std::string> describe(const ReferenceShare& share) {
  constexpr size_t kMost = 5;
  if (share.steps.empty()) return {};
  std::vector<std::string> lines{fmt::format("the reference engine, which is slow, takes {}:", shares_of(share))};
  for (const ReferenceStep& step : share.steps) {
    if (lines.size() > kMost) {
      lines.push_back(fmt::format("  and {} more", share.steps.size() - kMost));
      break;
    }
    lines.push_back(fmt::format("  {}{}", step.count > 1 ? fmt::format("{} times ", step.count) : "", line_of(step)));
  }
  return lines;
}

void tell_reference_steps(const Plan& plan, const Module& module, const PlanOptions& options) {
  double slow = 0, all = 0;
  for (const PlannedStep& step : plan.steps) {
    const bool fallen = is_reference(step.engine, step.group, options);
    const double seconds = seconds_of(step.cost, fallen ? kPlain : kFast);
    all += seconds;
    if (fallen) slow += seconds;
  }
  if (slow == 0) return;
  const char* file = std::getenv("CAIRN_REFERENCE_STEPS");
  const bool worth = slow > kWorthALine && slow > kShare * all;
  if (!worth && !(file && *file)) return;
  ReferenceShare share = reference_share(plan, module, options);
  static std::mutex mutex;
  static std::set<std::string> told;
  const ShieldedLock lock(mutex);
  if (file && *file) add_to_file(file, share.steps);
  if (!worth) return;
  // The steps worth a line, each operator once.
  std::string text;
  for (const ReferenceStep& step : share.steps)
    if (step.seconds >= 0.1 * slow && told.insert(step.op).second) text += (text.empty() ? " " : ", ") + line_of(step);
  if (!text.empty())
    note(fmt::format("cairn: {} are on the reference engine, which is slow:{}", shares_of(share), text));
}

}  // namespace cairn
