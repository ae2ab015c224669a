// The platform's CSV tables with their columns; what cannot be known here is N/A.
#include <algorithm>
#include <cmath>
#include <map>

#include "profile/files.h"
#include "profile/writer.h"

namespace cairn::profile {
namespace {

std::string joined(const std::vector<SourceNode>& sources) {
  std::string text;
  for (const SourceNode& source : sources) text += (text.empty() ? "" : ";") + source.name;
  return text;
}

std::string kilobytes(uint64_t bytes) { return fmt::format("{:.3f}", static_cast<double>(bytes) / 1024); }

/// The total of a step, for the columns of counters.
std::map<std::pair<uint32_t, uint32_t>, const StepTotal*> totals_by_step(const Analysis& analysis) {
  std::map<std::pair<uint32_t, uint32_t>, const StepTotal*> totals;
  for (const StepTotal& total : analysis.steps) totals[{total.plan, total.step}] = &total;
  return totals;
}

/// What stays the same over the executions of a step: the cells before and behind the times.
struct Cells {
  std::string before, middle, behind;
};

Cells summary_cells(const PlanInfo& plan, uint32_t number, const StepTotal* total) {
  const StepInfo& step = plan.steps[number];
  Cells cells;
  cells.before = fmt::format("0,{},{},{},", csv_cell(plan.name), plan.model, number);
  cells.middle = fmt::format("{},{},{},{},", csv_cell(step.name), csv_cell(step.type),
                             step.dynamic ? "dynamic" : "static", task_type(step));
  std::string cycles = "N/A,N/A,N/A,N/A";
  if (total && total->cycles) {
    auto count = static_cast<double>(total->count);
    cycles = fmt::format(
        "{:.0f},{:.3f},{:.0f},{:.3f}", static_cast<double>(total->cycles) / count,
        static_cast<double>(total->instructions) / static_cast<double>(total->cycles),
        static_cast<double>(total->misses) / count,
        total->references ? static_cast<double>(total->misses) / static_cast<double>(total->references) : 0);
  }
  const std::string& location = step.sources.empty() ? std::string() : step.sources[0].location;
  cells.behind =
      fmt::format(",N/A,N/A,N/A,{},{},{},{},{},{},N/A,{},{},{},{:.0f},{:.0f}\n", csv_cell(step.inputs.shapes),
                  csv_cell(step.inputs.types), csv_cell(step.inputs.formats), csv_cell(step.outputs.shapes),
                  csv_cell(step.outputs.types), csv_cell(step.outputs.formats), cycles, csv_cell(step.kernel),
                  csv_cell(location), step.flops, step.bytes);
  return cells;
}

std::vector<std::vector<Cells>> all_cells(const Recording& recording, const Analysis& analysis) {
  auto totals = totals_by_step(analysis);
  std::vector<std::vector<Cells>> cells;
  for (uint32_t plan = 0; plan < recording.plans.size(); ++plan) {
    auto& list = cells.emplace_back();
    for (uint32_t step = 0; step < recording.plans[plan].steps.size(); ++step) {
      auto total = totals.find({plan, step});
      list.push_back(summary_cells(recording.plans[plan], step, total == totals.end() ? nullptr : total->second));
    }
  }
  return cells;
}

int64_t number_of(const Analysis& analysis, uint32_t iteration) {
  return iteration == kNoIteration ? 0 : analysis.iterations[iteration].number;
}

void write_step_trace(const Recording& recording, const Analysis& analysis, const std::string& path) {
  Writer file(path);
  file.text(
      "Device_id,Iteration ID,FP Start(us),BP End(us),Iteration End(us),Iteration Time(us),FP to BP Time(us),"
      "Iteration Refresh(us),Data Aug Bound(us),Model ID,Busy Time(us),Op Time(us),Gap Time(us),Host Step,Runs\n");
  for (const Iteration& each : analysis.iterations) {
    file.text("0,").number(each.number).text(",").us(real_time(recording, each.fp_start)).text(",");
    file.us(real_time(recording, each.bp_end)).text(",").us(real_time(recording, each.end)).text(",");
    file.us(each.period).text(",").us(each.fp_to_bp()).text(",").us(each.refresh()).text(",");
    if (each.data_aug)
      file.us(*each.data_aug);
    else
      file.text("N/A");
    file.text(",").number(each.model).text(",").us(each.busy()).text(",");
    if (each.has_ops)
      file.us(each.ops).text(",").us(each.gaps);
    else
      file.text("N/A,N/A");
    file.text(",").number(each.host_step).text(",").number(each.runs).text("\n");
  }
  file.close();
}

void write_op_statistic(const Recording& recording, const Analysis& analysis, const std::string& path) {
  struct Sum {
    uint64_t count = 0;
    int64_t total = 0, least = INT64_MAX, most = 0;
  };
  std::map<std::tuple<uint32_t, std::string, std::string>, Sum> sums;
  std::map<uint32_t, std::string> names;
  for (const StepTotal& total : analysis.steps) {
    const PlanInfo& plan = recording.plans[total.plan];
    const StepInfo& step = plan.steps[total.step];
    names[plan.model] = plan.name;
    Sum& sum = sums[{plan.model, step.type, task_type(step)}];
    sum.count += total.count;
    sum.total += total.total;
    sum.least = std::min(sum.least, total.least);
    sum.most = std::max(sum.most, total.most);
  }
  std::vector<std::pair<std::tuple<uint32_t, std::string, std::string>, Sum>> rows(sums.begin(), sums.end());
  std::stable_sort(rows.begin(), rows.end(), [](auto& a, auto& b) { return a.second.total > b.second.total; });
  Writer file(path);
  file.text(
      "Device_id,Model Name,OP Type,Core Type,Count,Total Time(us),Min Time(us),Avg Time(us),Max Time(us),Ratio(%)\n");
  for (const auto& [key, sum] : rows) {
    const auto& [model, type, core] = key;
    file.text(fmt::format("0,{},{},{},{},", csv_cell(names[model]), csv_cell(type), core, sum.count));
    file.us(sum.total).text(",").us(sum.least).text(",").us(sum.total / static_cast<int64_t>(sum.count)).text(",");
    file.us(sum.most).text(fmt::format(",{:.3f}\n", 100 * static_cast<double>(sum.total) /
                                                        static_cast<double>(std::max<int64_t>(1, analysis.op_time))));
  }
  file.close();
}

void write_fusion_op(const Recording& recording, const std::string& path) {
  Writer file(path);
  file.text(
      "Device_id,Model Name,Model ID,Fusion Op,Original Ops,Memory Input(KB),Memory Output(KB),Memory Weight(KB),"
      "Memory Workspace(KB),Memory Total(KB)\n");
  for (const PlanInfo& plan : recording.plans)
    for (const StepInfo& step : plan.steps) {
      if (step.sources.size() < 2) continue;
      uint64_t total = step.input_bytes + step.output_bytes + step.weight_bytes + step.workspace_bytes;
      file.text(fmt::format("0,{},{},{},{},{},{},{},{},{}\n", csv_cell(plan.name), plan.model, csv_cell(step.name),
                            csv_cell(joined(step.sources)), kilobytes(step.input_bytes), kilobytes(step.output_bytes),
                            kilobytes(step.weight_bytes), kilobytes(step.workspace_bytes), kilobytes(total)));
    }
  file.close();
}

/// Ranges of the user's; here nothing of them runs on a device of its own.
void write_ranges(const Recording& recording, const std::string& path) {
  if (recording.ranges.empty()) return;
  Writer file(path);
  file.text(
      "pid,tid,category,event_type,payload_type,payload_value,Start_time(us),End_time(us),message_type,message,domain,"
      "Device Start_time(us),Device End_time(us)\n");
  for (const Record& range : recording.ranges) {
    file.number(recording.session.pid).text(",").number(range.thread).text(",N/A,push/pop,N/A,N/A,");
    file.us(real_time(recording, range.begin_ns)).text(",").us(real_time(recording, range.end_ns)).text(",text,");
    file.text(csv_cell(recording.range_names[range.step])).text(",default,N/A,N/A\n");
  }
  file.close();
}

/// One interface is called: the run of a model.
void write_api_statistic(const Recording& recording, const std::string& path) {
  double sum = 0, squares = 0, least = 0, most = 0;
  for (const Record& run : recording.runs) {
    double us = static_cast<double>(run.end_ns - run.begin_ns) / 1e3;
    least = sum == 0 ? us : std::min(least, us);
    most = std::max(most, us);
    sum += us;
    squares += us * us;
  }
  auto count = static_cast<double>(recording.runs.size());
  Writer file(path);
  file.text("Device_id,Level,API Name,Time(us),Count,Avg(us),Min(us),Max(us),Variance\n");
  if (count > 0)
    file.text(fmt::format("host,model,cairn_model_run,{:.3f},{},{:.3f},{:.3f},{:.3f},{:.3f}\n", sum,
                          recording.runs.size(), sum / count, least, most,
                          std::max(0.0, squares / count - sum / count * (sum / count))));
  file.close();
}

void write_static_memory(const Recording& recording, const std::string& path) {
  Writer file(path);
  file.text("Device_id,Op Name,Model Name,Graph ID,Node Index Start,Node Index End,Size(KB)\n");
  for (const PlanInfo& plan : recording.plans) {
    for (const BufferInfo& buffer : plan.buffers)
      file.text(fmt::format("0,{},{},{},{},{},{}\n",
                            csv_cell(buffer.first < plan.steps.size() ? plan.steps[buffer.first].name : buffer.name),
                            csv_cell(plan.name), plan.serial, buffer.first, buffer.last, kilobytes(buffer.bytes)));
    file.text(
        fmt::format("0,TOTAL,{},{},0,4294967295,{}\n", csv_cell(plan.name), plan.serial, kilobytes(plan.arena_bytes)));
  }
  file.close();
}

void write_memory_record(const Recording& recording, const std::string& path) {
  std::map<uint32_t, uint64_t> reserved;  // arenas of the plans that have run
  uint64_t total = 0;
  Writer file(path);
  file.text("Device_id,Component,Timestamp(us),Total Allocated(KB),Total Reserved(KB)\n");
  for (const Record& run : recording.runs) {
    const PlanInfo& plan = recording.plans[run.plan];
    if (!reserved.try_emplace(run.plan, plan.arena_bytes).second) continue;
    total += plan.arena_bytes;
    file.text("0,APP,").us(real_time(recording, run.begin_ns));
    file.text(fmt::format(",{},{}\n", kilobytes(plan.arena_bytes), kilobytes(total)));
  }
  file.close();
}

/// When the results of steps came and went; of the first executions, as each repeats the one before.
void write_operator_memory(const Recording& recording, const std::string& path) {
  constexpr size_t kMost = 100000;
  using Times = std::map<uint32_t, std::pair<int64_t, int64_t>>;  // begin and end, by step
  std::map<std::pair<uint32_t, uint32_t>, Times> runs;            // by run and plan
  for (size_t i = 0; i < std::min(recording.ops.size(), kMost); ++i) {
    const Record& op = recording.ops[i];
    runs[{op.run, op.plan}][op.step] = {op.begin_ns, op.end_ns};
  }
  Writer file(path);
  file.text(
      "Device_id,Name,Size(KB),Allocation Time(us),Duration(us),Allocation Total Allocated(KB),"
      "Allocation Total Reserved(KB),Release Total Allocated(KB),Release Total Reserved(KB)\n");
  std::map<uint32_t, std::vector<int64_t>> of_plan;
  size_t looked = 0;  // bounded whatever the file says of its plans
  for (const auto& [key, times] : runs) {
    const PlanInfo& plan = recording.plans[key.second];
    std::vector<int64_t>& live = of_plan[key.second];
    if (live.empty()) live = live_bytes(plan);
    for (const BufferInfo& buffer : plan.buffers) {
      if (++looked > kMostRows) break;
      const auto first = times.find(buffer.first), last = times.find(buffer.last);
      if (first == times.end() || last == times.end() || last->second.second < first->second.first) continue;
      const int64_t begin = first->second.first, end = last->second.second;
      file.text(fmt::format("0,{},{},", csv_cell(plan.steps[buffer.first].name), kilobytes(buffer.bytes)));
      file.us(real_time(recording, begin)).text(",").us(end - begin);
      file.text(fmt::format(
          ",{},{},{},{}\n", kilobytes(static_cast<uint64_t>(live[buffer.first])), kilobytes(plan.arena_bytes),
          kilobytes(static_cast<uint64_t>(live[buffer.last]) - buffer.bytes), kilobytes(plan.arena_bytes)));
    }
  }
  file.close();
}

}  // namespace

const char* task_type(const StepInfo& step) {
  if (step.kind == "contraction") return "AI_CORE";
  return step.kind == "vector" ? "AI_VECTOR_CORE" : "AI_CPU";
}

void write_op_summary(const Recording& recording, const Analysis& analysis, const std::string& path) {
  auto cells = all_cells(recording, analysis);
  Writer file(path);
  file.text(
      "Device_id,Model Name,Model ID,Task ID,Stream ID,Infer ID,Op Name,OP Type,OP State,Task Type,"
      "Task Start Time(us),Task Duration(us),Task Wait Time(us),Block Num,Mix Block Num,HF32 Eligible,Input Shapes,"
      "Input Data Types,Input Formats,Output Shapes,Output Data Types,Output Formats,Context ID,total_cycles,"
      "instructions_per_cycle,cache_misses,cache_miss_rate,Kernel,Script Line,FLOPs,Bytes\n");
  for (size_t i = 0; i < std::min(recording.ops.size(), kMostRows); ++i) {
    const Record& op = recording.ops[i];
    const OpTime& time = analysis.ops[i];
    const Cells& cell = cells[op.plan][op.step];
    file.text(cell.before).number(op.thread).text(",").number(number_of(analysis, time.iteration)).text(",");
    file.text(cell.middle).us(real_time(recording, op.begin_ns)).text(",").us(time.self).text(",").us(time.wait);
    file.text(cell.behind);
  }
  file.close();
}

void write_task_time(const Recording& recording, const Analysis& analysis, const std::string& path) {
  std::vector<std::vector<std::string>> names;
  for (const PlanInfo& plan : recording.plans) {
    auto& list = names.emplace_back();
    for (const StepInfo& step : plan.steps)
      list.push_back(fmt::format("0,{},{},", csv_cell(step.kernel), task_type(step)));
  }
  Writer file(path);
  file.text("Device_id,kernel_name,kernel_type,stream_id,task_id,task_time(us),task_start(us),task_stop(us)\n");
  for (size_t i = 0; i < std::min(recording.ops.size(), kMostRows); ++i) {
    const Record& op = recording.ops[i];
    file.text(names[op.plan][op.step]).number(op.thread).text(",").number(op.step).text(",").us(analysis.ops[i].self);
    file.text(",").us(real_time(recording, op.begin_ns)).text(",").us(real_time(recording, op.end_ns)).text("\n");
  }
  file.close();
}

void write_tables(const Recording& recording, const Analysis& analysis, const std::string& folder,
                  const std::string& suffix) {
  auto path = [&](const char* name) { return folder + "/" + name + suffix + ".csv"; };
  write_step_trace(recording, analysis, path("step_trace"));
  write_op_statistic(recording, analysis, path("op_statistic"));
  write_fusion_op(recording, path("fusion_op"));
  write_api_statistic(recording, path("api_statistic"));
  write_ranges(recording, path("msprof_tx"));
  write_data_pipelines(recording, path("data_pipeline"));
  write_static_memory(recording, path("static_op_mem"));
  write_memory_record(recording, path("memory_record"));
  write_operator_memory(recording, path("operator_memory"));
}

}  // namespace cairn::profile
