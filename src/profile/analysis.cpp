#include "profile/analysis.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <unordered_map>
#include <unordered_set>

namespace cairn::profile {
namespace {

/// Iterations of a recording: runs with one host step are one, others each their own.
class Iterations {
 public:
  explicit Iterations(const Recording& recording) : recording_(recording) {
    std::unordered_map<uint32_t, int64_t> host;
    for (const Record& record : recording.host_steps) host[record.run] = record.begin_ns;
    std::unordered_map<int64_t, uint32_t> of_host;
    for (const Record& run : recording.runs) {
      auto step = host.find(run.run);
      uint32_t index = static_cast<uint32_t>(list.size());
      if (step != host.end()) index = of_host.try_emplace(step->second, index).first->second;
      if (index == list.size()) {
        Iteration made;
        made.model = recording.plans[run.plan].model;
        made.host_step = step != host.end() ? step->second : 0;
        made.fp_start = run.begin_ns;
        list.push_back(made);
      }
      ++list[index].runs;
      list[index].end = std::max(list[index].end, run.end_ns);
      of_run_.emplace_back(run.run, index);
    }
    for (Iteration& each : list) each.bp_end = each.end;
    std::sort(of_run_.begin(), of_run_.end());
  }

  /// The iteration of a run; of a run that did not end, none.
  std::optional<uint32_t> of(uint32_t run) {
    if (last_ < of_run_.size() && of_run_[last_].first == run) return of_run_[last_].second;
    auto found = std::lower_bound(of_run_.begin(), of_run_.end(), std::make_pair(run, 0u));
    if (found == of_run_.end() || found->first != run) return std::nullopt;
    last_ = static_cast<size_t>(found - of_run_.begin());
    return found->second;
  }

  /// Marks from the steps: the first begin, the last end, the last end of the backward part.
  void mark(const Record& op, uint32_t index) {
    Iteration& each = list[index];
    const StepInfo& step = recording_.plans[op.plan].steps[op.step];
    if (!each.has_ops) {
      each.has_ops = true;
      each.fp_start = op.begin_ns;  // ops come in the order of their begin
      each.end = each.bp_end = op.end_ns;
    }
    each.end = std::max(each.end, op.end_ns);
    bool point = !recording_.session.bp_point.empty();
    if (point ? has_source(step, recording_.session.bp_point) : step.backward) {
      each.bp_end = each.trains ? std::max(each.bp_end, op.end_ns) : op.end_ns;
      each.model = recording_.plans[op.plan].model;
      each.trains = true;
    }
    if (!recording_.session.fp_point.empty() && !started_[index] && has_source(step, recording_.session.fp_point)) {
      started_[index] = true;
      each.fp_start = op.begin_ns;
    }
    ++each.op_count;
  }

  void finish() {
    std::map<uint32_t, std::pair<uint32_t, int64_t>> last;  // per model: number and end
    for (Iteration& each : list) {
      if (!each.trains) each.bp_end = each.end;
      auto& [number, end] = last[each.model];
      each.number = ++number;
      if (number > 1) each.data_aug = each.fp_start - end;
      each.period = number > 1 ? each.end - end : each.busy();
      end = each.end;
    }
  }

  std::vector<Iteration> list;

 private:
  static bool has_source(const StepInfo& step, const std::string& name) {
    return std::any_of(step.sources.begin(), step.sources.end(),
                       [&](const SourceNode& node) { return node.name == name; });
  }

  const Recording& recording_;
  std::vector<std::pair<uint32_t, uint32_t>> of_run_;  // run, iteration
  std::unordered_map<uint32_t, bool> started_;
  size_t last_ = 0;
};

/// Self times and waits: ops of a thread nest.
void time_ops(const Recording& recording, Analysis& analysis) {
  struct Thread {
    std::vector<size_t> open;
    int64_t last_end = 0;
    uint32_t iteration = kNoIteration;
  };
  std::vector<Thread> threads(size_t{UINT16_MAX} + 1);
  for (size_t i = 0; i < recording.ops.size(); ++i) {
    const Record& op = recording.ops[i];
    OpTime& time = analysis.ops[i];
    Thread& thread = threads[op.thread];
    while (!thread.open.empty() && recording.ops[thread.open.back()].end_ns <= op.begin_ns) thread.open.pop_back();
    time.self = op.end_ns - op.begin_ns;
    if (!thread.open.empty()) {
      analysis.ops[thread.open.back()].self -= time.self;
    } else {
      if (thread.iteration == time.iteration) time.wait = std::max<int64_t>(0, op.begin_ns - thread.last_end);
      thread.last_end = op.end_ns;
      thread.iteration = time.iteration;
    }
    thread.open.push_back(i);
  }
}

/// Time in no step: iterations may overlap, so each keeps where its steps so far have ended.
void find_gaps(const Recording& recording, Analysis& analysis) {
  std::vector<int64_t> covered(analysis.iterations.size());
  for (size_t i = 0; i < covered.size(); ++i) covered[i] = analysis.iterations[i].fp_start;
  for (size_t i = 0; i < recording.ops.size(); ++i) {
    uint32_t index = analysis.ops[i].iteration;
    if (index == kNoIteration) continue;
    Iteration& each = analysis.iterations[index];
    const Record& op = recording.ops[i];
    if (op.begin_ns > covered[index]) each.gaps += op.begin_ns - covered[index];
    covered[index] = std::max(covered[index], op.end_ns);
    each.ops += analysis.ops[i].self;
  }
}

void total_steps(const Recording& recording, Analysis& analysis) {
  std::vector<std::vector<StepTotal>> totals(recording.plans.size());
  for (uint32_t plan = 0; plan < totals.size(); ++plan) {
    totals[plan].resize(recording.plans[plan].steps.size());
    for (uint32_t step = 0; step < totals[plan].size(); ++step) totals[plan][step] = {plan, step};
  }
  for (size_t i = 0; i < recording.ops.size(); ++i) {
    StepTotal& total = totals[recording.ops[i].plan][recording.ops[i].step];
    int64_t self = analysis.ops[i].self;
    total.least = total.count ? std::min(total.least, self) : self;
    total.most = std::max(total.most, self);
    total.total += self;
    ++total.count;
    analysis.op_time += self;
  }
  for (const Record& record : recording.counts) {
    StepTotal& total = totals[record.plan][record.step];
    bool cycles = record.kind == RecordKind::cycles;
    (cycles ? total.cycles : total.references) += static_cast<uint64_t>(record.begin_ns);
    (cycles ? total.instructions : total.misses) += static_cast<uint64_t>(record.end_ns);
  }
  for (auto& plan : totals)
    for (StepTotal& total : plan)
      if (total.count) analysis.steps.push_back(total);
  std::stable_sort(analysis.steps.begin(), analysis.steps.end(),
                   [](const StepTotal& a, const StepTotal& b) { return a.total > b.total; });
}

uint32_t find_main_model(const Analysis& analysis) {
  std::map<uint32_t, std::pair<bool, int64_t>> models;
  for (const Iteration& each : analysis.iterations) {
    auto& [trains, time] = models[each.model];
    trains |= each.trains;
    time += each.busy();
  }
  uint32_t best = 0;
  for (const auto& [model, rank] : models)
    if (best == 0 || rank > models[best]) best = model;
  return best;
}

std::string percent(double share) { return fmt::format("{:.1f} %", 100 * share); }

}  // namespace

Analysis analyse(const Recording& recording) {
  Analysis analysis;
  Iterations iterations(recording);
  analysis.ops.resize(recording.ops.size());
  for (size_t i = 0; i < recording.ops.size(); ++i) {
    auto index = iterations.of(recording.ops[i].run);
    analysis.ops[i].iteration = index.value_or(kNoIteration);
    if (index) iterations.mark(recording.ops[i], *index);
  }
  for (const Record& run : recording.runs) analysis.runs.push_back(*iterations.of(run.run));
  iterations.finish();
  analysis.iterations = std::move(iterations.list);
  analysis.model = find_main_model(analysis);
  time_ops(recording, analysis);
  find_gaps(recording, analysis);
  total_steps(recording, analysis);
  if (analysis.op_time > 0)
    analysis.overhead = recording.session.step_cost_ns * static_cast<double>(recording.ops.size()) /
                        static_cast<double>(analysis.op_time);
  return analysis;
}

bool keep_iterations(Recording& recording, Analysis& analysis, uint32_t model, uint32_t first, uint32_t count) {
  std::vector<uint32_t> place(analysis.iterations.size(), kNoIteration);
  std::vector<Iteration> kept;
  int64_t begin = INT64_MAX, end = 0;
  for (size_t i = 0; i < place.size(); ++i) {
    const Iteration& each = analysis.iterations[i];
    if (each.model != model || each.number < first || each.number - first >= count) continue;
    place[i] = static_cast<uint32_t>(kept.size());
    kept.push_back(each);
    begin = std::min(begin, each.fp_start), end = std::max(end, each.end);
  }
  if (kept.empty()) return false;
  std::unordered_set<uint32_t> numbers;  // of runs
  size_t left = 0;
  for (size_t i = 0; i < recording.runs.size(); ++i) {
    if (place[analysis.runs[i]] == kNoIteration) continue;
    numbers.insert(recording.runs[i].run);
    recording.runs[left] = recording.runs[i], analysis.runs[left++] = place[analysis.runs[i]];
  }
  recording.runs.resize(left), analysis.runs.resize(left);
  left = 0;
  for (size_t i = 0; i < recording.ops.size(); ++i) {
    const uint32_t iteration = analysis.ops[i].iteration;
    if (iteration == kNoIteration || place[iteration] == kNoIteration) continue;
    recording.ops[left] = recording.ops[i], analysis.ops[left] = analysis.ops[i];
    analysis.ops[left++].iteration = place[iteration];
  }
  recording.ops.resize(left), analysis.ops.resize(left);
  std::erase_if(recording.counts, [&](const Record& record) { return !numbers.contains(record.run); });
  std::erase_if(recording.ranges, [&](const Record& range) { return range.end_ns < begin || range.begin_ns > end; });
  analysis.iterations = std::move(kept);
  analysis.model = model;
  analysis.steps.clear(), analysis.op_time = 0;
  total_steps(recording, analysis);
  return true;
}

std::map<uint32_t, Longest> longest_iterations(const Analysis& analysis) {
  constexpr size_t kMost = 5;
  std::map<uint32_t, std::vector<const Iteration*>> models;
  for (const Iteration& each : analysis.iterations) models[each.model].push_back(&each);
  std::map<uint32_t, Longest> found;
  for (auto& [model, list] : models) {
    std::stable_sort(list.begin(), list.end(), [](auto* a, auto* b) { return a->period > b->period; });
    Longest& longest = found[model];
    longest.count = list.size();
    for (size_t i = 0; i < std::min(kMost, list.size()); ++i) longest.numbers.push_back(list[i]->number);
  }
  return found;
}

std::vector<RangeTotal> total_ranges(const Recording& recording) {
  std::vector<RangeTotal> totals;
  for (const std::string& name : recording.range_names) totals.push_back({name});
  for (const Record& range : recording.ranges) {
    RangeTotal& total = totals[range.step];
    ++total.count;
    total.total += range.end_ns - range.begin_ns;
    total.most = std::max(total.most, range.end_ns - range.begin_ns);
  }
  std::erase_if(totals, [](const RangeTotal& total) { return total.count == 0; });
  std::stable_sort(totals.begin(), totals.end(),
                   [](const RangeTotal& a, const RangeTotal& b) { return a.total > b.total; });
  return totals;
}

std::vector<int64_t> live_bytes(const PlanInfo& plan) {
  std::vector<int64_t> live(plan.steps.size() + 1);
  for (const BufferInfo& buffer : plan.buffers) {
    live[buffer.first] += static_cast<int64_t>(buffer.bytes);
    live[buffer.last + 1] -= static_cast<int64_t>(buffer.bytes);
  }
  for (size_t i = 1; i < live.size(); ++i) live[i] += live[i - 1];
  live.pop_back();
  return live;
}

double Machine::bandwidth_for(double bytes) const {
  for (const Cache& cache : caches)
    if (bytes <= cache.bytes) return std::max(bandwidth, cache.bandwidth);
  return bandwidth;
}

std::optional<double> roofline_share(const StepInfo& step, const StepTotal& total, const Machine& machine) {
  if (machine.flops <= 0 || machine.bandwidth <= 0 || total.total <= 0 || step.flops + step.bytes <= 0)
    return std::nullopt;
  double least = std::max(step.flops / machine.flops, step.bytes / machine.bandwidth_for(step.bytes));
  return least * static_cast<double>(total.count) / (static_cast<double>(total.total) / 1e9);
}

namespace {

struct Sums {
  double period = 0, data = 0, busy = 0, gaps = 0;
  uint64_t count = 0, runs = 0;
};

/// Over the main model's iterations but the first, which plans and warms up.
Sums sums_of(const Analysis& analysis) {
  Sums sums;
  for (const Iteration& each : analysis.iterations) {
    if (each.model != main_model(analysis) || each.number < 2) continue;
    sums.period += static_cast<double>(each.period);
    sums.data += static_cast<double>(std::max<int64_t>(0, each.data_aug.value_or(0)));
    sums.busy += static_cast<double>(each.busy());
    sums.gaps += static_cast<double>(each.gaps);
    sums.runs += each.runs;
    ++sums.count;
  }
  return sums;
}

void advise_on_host(const Sums& sums, std::vector<Advice>& list) {
  if (sums.count == 0 || sums.period <= 0) return;
  double each = sums.period / static_cast<double>(sums.count) / 1e6;
  if (sums.data / sums.period > 0.1)
    list.push_back(
        {"The engine waits for the host between iterations: look at the input pipeline, at prefetching, and at "
         "what the script does after each step.",
         fmt::format("{} of the mean period of {:.3f} ms lie between iterations, over {} iterations",
                     percent(sums.data / sums.period), each, sums.count)});
  if (sums.busy > 0 && sums.gaps / sums.busy > 0.1)
    list.push_back(
        {"Within an iteration no step runs for part of the time: the graph is cut into several parts, or its "
         "operators stay with the framework.",
         fmt::format("{} of the iteration is in no step; {:.1f} runs an iteration", percent(sums.gaps / sums.busy),
                     static_cast<double>(sums.runs) / static_cast<double>(sums.count))});
}

void advise_on_fallback(const Recording& recording, const Analysis& analysis, std::vector<Advice>& list) {
  double all = static_cast<double>(analysis.op_time), fallback = 0;
  const StepTotal* slowest = nullptr;
  for (const StepTotal& total : analysis.steps) {
    if (recording.plans[total.plan].steps[total.step].kind != "fallback") continue;
    fallback += static_cast<double>(total.total);
    if (!slowest) slowest = &total;
  }
  if (slowest && fallback / all > 0.1) {
    const StepInfo& step = recording.plans[slowest->plan].steps[slowest->step];
    list.push_back(
        {"Operators run on the slow engine: `cairn why MODEL NODE` says what keeps a kernel from taking them.",
         fmt::format("{} of the steps' time; most in {} ({})", percent(fallback / all), step.name, step.type)});
  }
}

constexpr double kFarFromRoofline = 0.5, kWorthNaming = 0.02;
constexpr size_t kMostNamed = 6;

/// Steps far below the roofline, by the share of all time that the roofline would save.
void advise_on_roofline(const Recording& recording, const Analysis& analysis, const Machine& machine,
                        std::vector<Advice>& list) {
  struct Slow {
    const StepInfo* step;
    double part, share, saved;
  };
  std::vector<Slow> slow;
  for (const StepTotal& total : analysis.steps) {
    const StepInfo& step = recording.plans[total.plan].steps[total.step];
    auto share = roofline_share(step, total, machine);
    if (!share || *share > kFarFromRoofline) continue;
    double part = static_cast<double>(total.total) / static_cast<double>(analysis.op_time);
    if (part * (1 - *share) >= kWorthNaming) slow.push_back({&step, part, *share, part * (1 - *share)});
  }
  if (slow.empty()) return;
  std::stable_sort(slow.begin(), slow.end(), [](const Slow& a, const Slow& b) { return a.saved > b.saved; });
  double saved = 0;
  std::string evidence;
  for (size_t i = 0; i < slow.size(); ++i) {
    saved += slow[i].saved;
    if (i >= kMostNamed) continue;
    const StepInfo& step = *slow[i].step;
    std::string location = step.sources.empty() ? "" : step.sources[0].location;
    evidence += fmt::format("{}{} ({}{}{}): {} of the steps' time at {} of the roofline, kernel {}", i ? "; " : "",
                            step.name, step.type, location.empty() ? "" : ", ", location, percent(slow[i].part),
                            percent(slow[i].share), step.kernel.substr(0, step.kernel.find(',')));
  }
  if (slow.size() > kMostNamed) evidence += fmt::format("; and {} more", slow.size() - kMostNamed);
  list.push_back(
      {fmt::format("{} far below what the machine can do; at the roofline {} of the steps' time would go.",
                   slow.size() == 1 ? "One step runs" : fmt::format("{} steps run", slow.size()), percent(saved)),
       std::move(evidence)});
}

void advise_on_spread(const Analysis& analysis, std::vector<Advice>& list) {
  std::vector<int64_t> times;
  for (const Iteration& each : analysis.iterations)
    if (each.model == main_model(analysis) && each.number > 1) times.push_back(each.busy());
  if (times.size() < 10) return;
  auto median_of = [](std::vector<int64_t> values) {
    std::nth_element(values.begin(), values.begin() + static_cast<ptrdiff_t>(values.size() / 2), values.end());
    return values[values.size() / 2];
  };
  int64_t median = median_of(times);
  std::vector<int64_t> away;
  for (int64_t time : times) away.push_back(std::abs(time - median));
  int64_t limit = median + std::max(5 * median_of(away), median / 2);
  auto slow = std::count_if(times.begin(), times.end(), [&](int64_t time) { return time > limit; });
  if (slow == 0) return;
  list.push_back(
      {"Some iterations are much slower than the others: other programs on the machine, or new input shapes.",
       fmt::format("{} of {} iterations above {:.3f} ms; median {:.3f} ms, slowest {:.3f} ms", slow, times.size(),
                   static_cast<double>(limit) / 1e6, static_cast<double>(median) / 1e6,
                   static_cast<double>(*std::max_element(times.begin(), times.end())) / 1e6)});
}

}  // namespace

std::vector<Advice> advise(const Recording& recording, const Analysis& analysis, const Machine& machine) {
  std::vector<Advice> list;
  advise_on_host(sums_of(analysis), list);
  advise_on_data(recording, list);
  if (analysis.op_time > 0) {
    advise_on_fallback(recording, analysis, list);
    advise_on_roofline(recording, analysis, machine, list);
  }
  advise_on_spread(analysis, list);
  return list;
}

}  // namespace cairn::profile
