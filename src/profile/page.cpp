// One self-contained page: iterations, a timeline of a typical and of the slowest one, steps by time, memory, advice.
#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>

#include "formats/page.h"
#include "profile/files.h"
#include "profile/page_text.h"
#include "support/files.h"

namespace cairn::profile {
namespace {

using Json = nlohmann::ordered_json;

constexpr size_t kMostIterations = 1000, kMostTimelineOps = 4000, kMostRanges = 300, kMostRangeRows = 12;

double us(int64_t ns) { return static_cast<double>(ns) / 1e3; }

std::vector<const Iteration*> iterations_of(const Analysis& analysis) {
  std::vector<const Iteration*> list;
  for (const Iteration& each : analysis.iterations)
    if (each.model == main_model(analysis)) list.push_back(&each);
  return list;
}

/// At most so many columns; of several iterations in one the slowest is shown, so that peaks stay.
Json iteration_rows(const std::vector<const Iteration*>& list) {
  Json rows = Json::array();
  size_t step = std::max<size_t>(1, (list.size() + kMostIterations - 1) / kMostIterations);
  for (size_t i = 0; i < list.size(); i += step) {
    auto end = list.begin() + static_cast<ptrdiff_t>(std::min(list.size(), i + step));
    const Iteration& each = **std::max_element(list.begin() + static_cast<ptrdiff_t>(i), end,
                                               [](auto* a, auto* b) { return a->period < b->period; });
    double steps = each.has_ops ? us(each.busy() - each.gaps) : us(each.busy());
    rows.push_back({each.number, us(each.data_aug.value_or(0)), steps, us(each.gaps)});
  }
  return rows;
}

class Page {
 public:
  Page(const Recording& recording, const Analysis& analysis, const Machine& machine)
      : recording_(recording), analysis_(analysis), machine_(machine), iterations_(iterations_of(analysis)) {
    size_t count = 0;
    for (const PlanInfo& plan : recording.plans) {
      first_.push_back(count);
      count += plan.steps.size();
    }
    totals_.resize(count);
    for (const StepTotal& total : analysis.steps) totals_[first_[total.plan] + total.step] = &total;
  }

  std::string text() {
    Json data = {{"session", session()},
                 {"model", model_name()},
                 {"machine",
                  {{"gflops", machine_.flops / 1e9},
                   {"gbytes", machine_.bandwidth / 1e9},
                   {"cached", machine_.bandwidth_for(0) / 1e9}}},
                 {"counters", recording_.session.counters},
                 {"remark", recording_.remark},
                 {"overhead", analysis_.overhead},
                 {"op_count", recording_.ops.size()},
                 {"iteration_count", iterations_.size()},
                 {"median_busy", median([](const Iteration& each) { return each.busy(); })},
                 {"median_period", median([](const Iteration& each) { return each.period; })},
                 {"iterations", iteration_rows(iterations_)},
                 {"steps", steps()},
                 {"timelines", timelines()},
                 {"ranges", ranges()},
                 {"memory", memory()},
                 {"advice", advice()}};
    return fill_page(kPage, data.dump(-1, ' ', false, Json::error_handler_t::replace));
  }

 private:
  Json session() const {
    const SessionInfo& session = recording_.session;
    return {{"command", session.command},
            {"processor", session.processor},
            {"threads", session.threads},
            {"level", session.level}};
  }

  std::string model_name() const {
    for (const PlanInfo& plan : recording_.plans)
      if (plan.model == main_model(analysis_)) return plan.name;
    return {};
  }

  template <class Value>
  double median(Value&& value) const {
    std::vector<int64_t> values;
    for (const Iteration* each : iterations_) values.push_back(value(*each));
    if (values.empty()) return 0;
    std::nth_element(values.begin(), values.begin() + static_cast<ptrdiff_t>(values.size() / 2), values.end());
    return us(values[values.size() / 2]);
  }

  Json steps() const {
    Json list = Json::array();
    size_t index = 0;
    for (const PlanInfo& plan : recording_.plans)
      for (const StepInfo& step : plan.steps) {
        const StepTotal* total = totals_[index++];
        double seconds = total ? static_cast<double>(total->total) / 1e9 : 0;
        double rate = seconds > 0 ? static_cast<double>(total->count) / seconds / 1e9 : 0;
        auto share = total ? roofline_share(step, *total, machine_) : std::nullopt;
        Json sources = Json::array();
        for (const SourceNode& source : step.sources)
          sources.push_back(source.location.empty() ? source.name : source.name + " (" + source.location + ")");
        list.push_back({{"name", step.name},
                        {"type", step.type},
                        {"kernel", step.kernel},
                        {"kind", step.kind},
                        {"line", step.sources.empty() ? "" : step.sources[0].location},
                        {"sources", std::move(sources)},
                        {"shapes", step.inputs.shapes + " → " + step.outputs.shapes},
                        {"count", total ? total->count : 0},
                        {"mean", total ? us(total->total) / static_cast<double>(total->count) : 0},
                        {"gflops", step.flops * rate},
                        {"gbytes", step.bytes * rate},
                        {"roofline", share ? Json(*share) : Json()},
                        {"share", total && analysis_.op_time > 0
                                      ? static_cast<double>(total->total) / static_cast<double>(analysis_.op_time)
                                      : 0}});
      }
    return list;
  }

  Json timeline(const char* what, const Iteration& shown) const {
    auto index = static_cast<uint32_t>(&shown - analysis_.iterations.data());
    Json ops = Json::array();
    for (size_t i = 0; i < recording_.ops.size() && ops.size() < kMostTimelineOps; ++i) {
      if (analysis_.ops[i].iteration != index) continue;
      const Record& op = recording_.ops[i];
      ops.push_back(
          {us(op.begin_ns - shown.fp_start), us(op.end_ns - op.begin_ns), op.thread, first_[op.plan] + op.step});
    }
    Json marks = Json::array();
    if (shown.trains) marks.push_back({"BP end", us(shown.fp_to_bp())});
    return {{"title", fmt::format("{} iteration {}, {:.3f} ms", what, shown.number, us(shown.busy()) / 1e3)},
            {"length", us(shown.busy())},
            {"ops", std::move(ops)},
            {"ranges", ranges_in(shown)},
            {"marks", std::move(marks)}};
  }

  /// The user's ranges over an iteration: begin, length, row (each thread's by depth), name. Of too many the outer ones.
  Json ranges_in(const Iteration& shown) const {
    std::map<uint16_t, std::vector<int64_t>> open;  // ends, by thread
    std::map<std::pair<uint16_t, size_t>, Json> rows;
    for (const Record& range : recording_.ranges) {
      auto& ends = open[range.thread];
      while (!ends.empty() && ends.back() <= range.begin_ns) ends.pop_back();
      size_t depth = ends.size();
      ends.push_back(range.end_ns);
      Json& row = rows.try_emplace({range.thread, depth}, Json::array()).first->second;
      if (range.end_ns < shown.fp_start || range.begin_ns > shown.end || row.size() >= kMostRanges) continue;
      row.push_back(
          {us(range.begin_ns - shown.fp_start), us(range.end_ns - range.begin_ns), recording_.range_names[range.step]});
    }
    Json list = Json::array();
    for (auto& [place, row] : rows)
      if (!row.empty() && list.size() < kMostRangeRows) list.push_back(std::move(row));
    return list;
  }

  Json ranges() const {
    Json list = Json::array();
    for (const RangeTotal& total : total_ranges(recording_)) {
      if (list.size() == kMostRanges) break;
      list.push_back({total.name, total.count, us(total.total) / static_cast<double>(total.count), us(total.most),
                      us(total.total)});
    }
    return list;
  }

  Json timelines() const {
    Json list = Json::array();
    if (iterations_.empty()) return list;
    std::vector<const Iteration*> sorted = iterations_;
    std::stable_sort(sorted.begin(), sorted.end(), [](auto* a, auto* b) { return a->busy() < b->busy(); });
    list.push_back(timeline("typical", *sorted[sorted.size() / 2]));
    list.push_back(timeline("slowest", *sorted.back()));
    list.push_back(timeline("first", *iterations_.front()));
    return list;
  }

  Json memory() const {
    const PlanInfo* shown = nullptr;
    for (const PlanInfo& plan : recording_.plans)
      if (plan.model == main_model(analysis_) && (!shown || plan.arena_bytes > shown->arena_bytes)) shown = &plan;
    if (!shown) return {{"plan", ""}, {"arena", 0}, {"live", Json::array()}};
    return {{"plan", shown->id}, {"arena", shown->arena_bytes}, {"live", live_bytes(*shown)}};
  }

  Json advice() const {
    Json list = Json::array();
    for (const Advice& each : advise(recording_, analysis_, machine_))
      list.push_back({{"text", each.text}, {"evidence", each.evidence}});
    return list;
  }

  const Recording& recording_;
  const Analysis& analysis_;
  const Machine& machine_;
  std::vector<const Iteration*> iterations_;
  std::vector<size_t> first_;  // index of each plan's step 0 among all steps
  std::vector<const StepTotal*> totals_;
};

}  // namespace

void write_page(const Recording& recording, const Analysis& analysis, const Machine& machine, const std::string& path) {
  write_file(path, Page(recording, analysis, machine).text());
}

}  // namespace cairn::profile
