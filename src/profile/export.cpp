#include "profile/export.h"

#include <unistd.h>

#include <exception>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <system_error>
#include <thread>

#include "profile/files.h"
#include "support/executor.h"
#include "support/fault.h"
#include "support/files.h"

namespace cairn::profile {
namespace {

using Json = nlohmann::ordered_json;
namespace fs = std::filesystem;

constexpr double kMeasureSeconds = 0.3;

constexpr std::string_view kReadme = R"(What is what
  step_trace      iterations: period, forward and backward, refresh, data; period = data + FP to BP + refresh
  op_summary      executions of steps, with kernel, shapes and script line
  op_statistic    time by operator type          task_time      the same, short
  fusion_op       which nodes became one step    api_statistic  calls of cairn_model_run
  static_op_mem   memory of each step's results  memory_record  arenas as they were made
  operator_memory when they came and went, in the first 100,000 executions
  msprof_tx       the program's own ranges, where it has some
  data_pipeline   operations of its data pipelines, where it has some
  msprof_*.json, step_trace_*.json   timelines for chrome://tracing (the first 500,000 steps)
  trace_*.perfetto-trace             the whole timeline for ui.perfetto.dev
Above this folder: index.html, the page to start with, and msprof_*.db, for sqlite3.
)";

Machine machine_of(const Recording& recording) {
  fs::path path = fs::path(recording.folder) / "host/data/machine.json";
  std::error_code error;
  if (fs::exists(path, error)) {
    Json known = Json::parse(read_file(path.string(), 65536), nullptr, false);
    auto number = [&](const char* key) {
      return known.is_object() && known.contains(key) && known[key].is_number() ? known[key].get<double>() : 0;
    };
    Machine machine{number("flops_per_second"), number("bytes_per_second"), {}};
    if (known.is_object() && known.contains("caches") && known["caches"].is_array())
      for (const Json& each : known["caches"])
        if (each.is_array() && each.size() == 2 && each[0].is_number() && each[1].is_number())
          machine.caches.push_back({each[0], each[1]});
    return machine;
  }
  char host[256] = {};
  ::gethostname(host, sizeof host - 1);
  if (recording.session.host != host || recording.session.threads != available_threads()) return {};
  Machine machine = measure_machine(available_threads(), kMeasureSeconds);
  Json json = {{"flops_per_second", machine.flops}, {"bytes_per_second", machine.bandwidth}, {"caches", Json::array()}};
  for (const Machine::Cache& cache : machine.caches) json["caches"].push_back({cache.bytes, cache.bandwidth});
  write_file(path.string(), json.dump() + "\n");
  return machine;
}

std::string left_out(const Recording& recording) {
  if (recording.ops.size() <= kMostRows) return "";
  return fmt::format(
      "op_summary and task_time hold the first {} of {} executions; the database and the Perfetto file hold all",
      kMostRows, recording.ops.size());
}

/// Two tasks at a time, where there is a thread for the second; the first fault of either is thrown when both are done.
template <class First, class Second>
void both(First&& first, Second&& second) {
  std::exception_ptr fault;
  std::thread other;
  try {
    other = std::thread([&] {
      try {
        second();
      } catch (...) {
        fault = std::current_exception();
      }
    });
  } catch (const std::system_error&) {
    first();
    return second();
  }
  try {
    first();
  } catch (...) {
    other.join();
    throw;
  }
  other.join();
  if (fault) std::rethrow_exception(fault);
}

}  // namespace

Exported export_recording(const std::string& folder, const ExportOptions& options) {
  Exported made{read_recording(folder), {}, {}, {}, {}};
  made.left_out = left_out(made.recording);
  made.analysis = analyse(made.recording);
  if (options.only) {
    const Selection& only = *options.only;
    uint32_t model = only.model == kMainModel ? main_model(made.analysis) : only.model;
    if (!keep_iterations(made.recording, made.analysis, model, only.first, only.count))
      fail(ErrorKind::not_found, folder, "holds no iteration {} of model {}", only.first, model);
  }
  made.machine = machine_of(made.recording);
  const Recording& recording = made.recording;
  const Analysis& analysis = made.analysis;
  fs::path output = fs::path(folder) / "mindstudio_profiler_output";
  make_folders(output);
  std::string suffix = "_" + recording.time;
  auto path = [&](const std::string& name) { return (output / name).string(); };
  auto tables = [&] {
    if (!options.tables) return;
    std::string readme(kReadme);
    if (!made.left_out.empty()) readme += fmt::format("Of this recording {}.\n", made.left_out);
    write_file(path("README.txt"), readme);
    write_tables(recording, analysis, output.string(), suffix);
    write_op_summary(recording, analysis, path("op_summary" + suffix + ".csv"));
    write_task_time(recording, analysis, path("task_time" + suffix + ".csv"));
  };
  auto rest = [&] {
    if (options.database)
      write_database(recording, analysis, (fs::path(folder) / ("msprof" + suffix + ".db")).string());
    if (!options.timelines) return;
    write_chrome(recording, analysis, options.tracks, path("msprof" + suffix + ".json"));
    if (options.tracks.iterations)
      write_step_trace_timeline(recording, analysis, path("step_trace" + suffix + ".json"));
  };
  both(
      [&] {
        tables();
        if (options.timelines) write_perfetto(recording, analysis, path("trace" + suffix + ".perfetto-trace"));
      },
      rest);
  made.page = (fs::path(folder) / "index.html").string();
  if (options.page) write_page(recording, analysis, made.machine, made.page);
  return made;
}

}  // namespace cairn::profile
