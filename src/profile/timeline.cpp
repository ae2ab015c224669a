// Timelines as Chrome's JSON: steps by thread, runs above them, iterations with their marks.
#include <algorithm>
#include <nlohmann/json.hpp>

#include "profile/files.h"
#include "profile/writer.h"

namespace cairn::profile {
namespace {

using Json = nlohmann::ordered_json;

/// More than browsers can show; Perfetto's own format has no such limit.
constexpr size_t kMostOps = 500000;
constexpr int kHost = 1, kEngine = 2, kSteps = 3, kApplication = 4;  // process rows of the view

std::string quoted(const std::string& text) { return Json(text).dump(-1, ' ', false, Json::error_handler_t::replace); }

void name_row(Writer& file, int row, const char* name, int order) {
  file.text(fmt::format(R"({{"ph":"M","pid":{},"tid":0,"name":"process_name","args":{{"name":"{}"}}}},)", row, name));
  file.text(fmt::format(R"({{"ph":"M","pid":{},"tid":0,"name":"process_sort_index","args":{{"sort_index":{}}}}},)", row,
                        order));
  file.text("\n");
}

void write_iterations(Writer& file, const Recording& recording, const Analysis& analysis) {
  auto slice = [&](const char* name, uint32_t model, int64_t begin, int64_t end, uint32_t number) {
    file.text(fmt::format(R"(,{{"ph":"X","pid":{},"tid":{},"name":"{}","ts":)", kSteps, model, name));
    file.us(real_time(recording, begin)).text(",\"dur\":").us(end - begin);
    file.text(fmt::format(R"(,"args":{{"iteration":{}}}}})", number)).text("\n");
  };
  for (const Iteration& each : analysis.iterations) {
    std::string name = fmt::format("Iteration {}", each.number);
    slice(name.c_str(), each.model, each.fp_start, each.end, each.number);
    if (each.trains) {
      slice("FP_BP Time", each.model, each.fp_start, each.bp_end, each.number);
      slice("Iteration Refresh", each.model, each.bp_end, each.end, each.number);
    }
    if (each.data_aug && *each.data_aug > 0)
      slice("Data_aug Bound", each.model, each.fp_start - *each.data_aug, each.fp_start, each.number);
  }
}

/// What stays the same over the executions of a step.
std::vector<std::vector<std::string>> step_texts(const Recording& recording) {
  std::vector<std::vector<std::string>> texts;
  for (const PlanInfo& plan : recording.plans) {
    auto& list = texts.emplace_back();
    for (const StepInfo& step : plan.steps)
      list.push_back(fmt::format(
          R"(,"name":{},"args":{{"op_type":{},"kernel":{},"script":{},"input_shapes":{},"output_shapes":{},"flops":{:.0f}}}}})",
          quoted(step.name), quoted(step.type), quoted(step.kernel),
          quoted(step.sources.empty() ? "" : step.sources[0].location), quoted(step.inputs.shapes),
          quoted(step.outputs.shapes), step.flops));
  }
  return texts;
}

}  // namespace

void write_chrome(const Recording& recording, const Analysis& analysis, const Tracks& tracks, const std::string& path) {
  Writer file(path);
  size_t shown = tracks.steps ? std::min(recording.ops.size(), kMostOps) : 0;
  file.text("{\"displayTimeUnit\":\"ms\",\"otherData\":")
      .text(Json{{"steps", recording.ops.size()}, {"steps_shown", shown}}.dump());
  file.text(",\"traceEvents\":[\n");
  name_row(file, kSteps, "Step Trace", 0);
  name_row(file, kHost, "CANN", 1);
  if (!recording.ranges.empty()) name_row(file, kApplication, "Application", -1);
  file.text(fmt::format(R"({{"ph":"M","pid":{},"tid":0,"name":"process_name","args":{{"name":"Ascend Hardware"}}}})",
                        kEngine));
  auto texts = step_texts(recording);
  int64_t last = shown ? recording.ops[shown - 1].end_ns : INT64_MAX;
  for (const Record& run : recording.runs) {
    if (!tracks.runs || run.begin_ns > last) break;
    file.text(fmt::format(R"(,{{"ph":"X","pid":{},"tid":{},"ts":)", kHost, run.thread))
        .us(real_time(recording, run.begin_ns));
    file.text(",\"dur\":").us(run.end_ns - run.begin_ns);
    file.text(fmt::format(R"(,"name":{},"args":{{"run":{}}}}})", quoted("run " + recording.plans[run.plan].name),
                          run.run))
        .text("\n");
  }
  for (const Record& range : recording.ranges) {
    if (!tracks.ranges) break;
    file.text(fmt::format(R"(,{{"ph":"X","pid":{},"tid":{},"ts":)", kApplication, range.thread));
    file.us(real_time(recording, range.begin_ns)).text(",\"dur\":").us(range.end_ns - range.begin_ns);
    file.text(fmt::format(R"(,"name":{}}})", quoted(recording.range_names[range.step]))).text("\n");
  }
  for (size_t i = 0; i < shown; ++i) {
    const Record& op = recording.ops[i];
    file.text(",{\"ph\":\"X\",\"pid\":2,\"tid\":")
        .number(op.thread)
        .text(",\"ts\":")
        .us(real_time(recording, op.begin_ns));
    file.text(",\"dur\":").us(op.end_ns - op.begin_ns).text(texts[op.plan][op.step]).text("\n");
  }
  if (tracks.iterations) write_iterations(file, recording, analysis);
  file.text("]}\n");
  file.close();
}

void write_step_trace_timeline(const Recording& recording, const Analysis& analysis, const std::string& path) {
  Writer file(path);
  file.text("{\"traceEvents\":[\n");
  file.text(
      fmt::format(R"({{"ph":"M","pid":{},"tid":0,"name":"process_name","args":{{"name":"Step Trace"}}}})", kSteps));
  write_iterations(file, recording, analysis);
  file.text("]}\n");
  file.close();
}

}  // namespace cairn::profile
