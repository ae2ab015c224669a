#include "simulate/workload.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <unordered_map>

#include "profile/job.h"
#include "support/error.h"

namespace cairn::simulate {
namespace {

using namespace profile;

double median(std::vector<double> values) {
  if (values.empty()) return 0;
  auto middle = values.begin() + static_cast<ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

/// The steps of a plan that make gradients: one that updates a state of n bytes and contracts as well makes the gradient itself;
/// otherwise what it takes of n bytes, followed back through steps on values of that size alone, which decay weights, scale or clip:
/// ranks exchange gradients before these.
class Makers {
 public:
  explicit Makers(const PlanInfo& plan) : plan_(plan) {
    for (const StepInfo& step : plan.steps)
      for (uint64_t bytes : std::set<uint64_t>(step.updates.begin(), step.updates.end()))
        if (step.kind == "contraction")
          steps[static_cast<uint32_t>(&step - plan.steps.data())] += static_cast<double>(bytes);
        else if (!follow(step, bytes) && bytes > kCounter)
          given += static_cast<double>(bytes);
  }

  std::map<uint32_t, double> steps;  // bytes of the gradients of each
  double given = 0;                  // bytes of gradients that come into the plan from outside

 private:
  static constexpr uint64_t kCounter = 16;  // of bytes: numbers of steps and the like, not weights

  bool follow(const StepInfo& step, uint64_t bytes) {
    bool found = false;
    for (const auto& [maker, size, buffer] : step.needs) {
      if (size != bytes) continue;
      found = true;
      if (!seen_.insert({maker, buffer}).second) continue;
      const StepInfo& earlier = plan_.steps[maker];
      const bool updates = std::find(earlier.updates.begin(), earlier.updates.end(), bytes) != earlier.updates.end();
      if (of_size(earlier, bytes) && (follow(earlier, bytes) || updates)) continue;
      steps[maker] += static_cast<double>(bytes);
    }
    return found;
  }

  static bool of_size(const StepInfo& step, uint64_t bytes) {
    if (step.kind == "communication") return true;  // of a bucket, too, each result has the size of its operand
    return step.kind != "contraction" && step.kind != "control" &&
           std::all_of(step.needs.begin(), step.needs.end(), [&](auto& need) { return need.bytes <= bytes; });
  }

  const PlanInfo& plan_;
  std::set<std::pair<uint32_t, uint32_t>> seen_;  // step and buffer
};

/// What a training step is: the plan that updates the most bytes in all its runs.
uint32_t training_plan(const Recording& recording, const std::vector<Makers>& makers) {
  std::vector<double> bytes(recording.plans.size());
  for (const Record& run : recording.runs) {
    bytes[run.plan] += makers[run.plan].given;
    for (const auto& [step, size] : makers[run.plan].steps) bytes[run.plan] += size;
  }
  const auto most = std::max_element(bytes.begin(), bytes.end());
  if (most == bytes.end() || *most == 0)
    fail(ErrorKind::invalid_argument, recording.folder,
         "holds no step that updates weights; record a training, at level ops, with this version");
  return static_cast<uint32_t>(most - bytes.begin());
}

/// Executions of the plan's steps, by run.
std::unordered_map<uint32_t, std::vector<const Record*>> ops_by_run(const Recording& recording, uint32_t plan) {
  std::unordered_map<uint32_t, std::vector<const Record*>> found;
  for (const Record& op : recording.ops)
    if (op.plan == plan) found[op.run].push_back(&op);
  return found;
}

/// Seconds until `time` of the run in which collectives went on and nothing was computed.
double exchanging_until(const PlanInfo& plan, const std::vector<const Record*>& ops, const Spans& computing,
                        int64_t time) {
  int64_t sum = 0;
  for (const Record* op : ops) {
    if (plan.steps[op->step].kind != "communication" || op->begin_ns >= time) continue;
    const int64_t end = std::min(op->end_ns, time);
    sum += end - op->begin_ns - overlap(op->begin_ns, end, computing);
  }
  return static_cast<double>(sum) / 1e9;
}

}  // namespace

double Workload::bytes() const {
  double sum = 0;
  for (const Gradient& each : gradients) sum += each.bytes;
  return sum;
}

Workload read_workload(const Recording& recording) {
  std::vector<Makers> makers;
  for (const PlanInfo& plan : recording.plans) makers.emplace_back(plan);
  const uint32_t chosen = training_plan(recording, makers);
  const PlanInfo& plan = recording.plans[chosen];
  const auto ops = ops_by_run(recording, chosen);
  std::vector<double> periods, begins;
  std::map<uint32_t, std::vector<double>> ready;
  int64_t last = -1;
  for (const Record& run : recording.runs) {
    if (run.plan != chosen) continue;
    if (last >= 0) {
      static const std::vector<const Record*> none;
      const auto found = ops.find(run.run);
      const std::vector<const Record*>& mine = found == ops.end() ? none : found->second;
      const Spans computing = computing_spans(recording, mine);
      auto computed = [&](int64_t time) {
        return static_cast<double>(time - last) / 1e9 - exchanging_until(plan, mine, computing, time);
      };
      periods.push_back(computed(run.end_ns));
      begins.push_back(computed(run.begin_ns));
      std::map<uint32_t, int64_t> ends;
      for (const Record* op : mine)
        if (makers[chosen].steps.contains(op->step)) ends[op->step] = std::max(ends[op->step], op->end_ns);
      for (const auto& [step, end] : ends) ready[step].push_back(computed(end));
    }
    last = run.end_ns;
  }
  if (periods.size() < 3)
    fail(ErrorKind::invalid_argument, recording.folder, "holds {} steps of training; record at least 4",
         periods.size() + 1);

  Workload made;
  made.name = plan.name, made.steps = periods.size(),
  made.threads = static_cast<int>(std::max<int64_t>(1, recording.session.threads));
  made.seconds = median(periods);
  std::vector<double> deviations;
  for (double each : periods) deviations.push_back(std::abs(each - made.seconds));
  made.spread = 1.4826 * median(deviations);  // of a normal distribution
  for (const auto& [step, bytes] : makers[chosen].steps)
    made.gradients.push_back({plan.steps[step].name, bytes, std::min(made.seconds, median(ready[step]))});
  if (makers[chosen].given > 0)
    made.gradients.push_back({"gradients from outside", makers[chosen].given, median(begins)});
  std::stable_sort(made.gradients.begin(), made.gradients.end(), [](auto& a, auto& b) { return a.ready < b.ready; });
  return made;
}

}  // namespace cairn::simulate
