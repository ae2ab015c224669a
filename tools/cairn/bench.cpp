// cairn bench: latency and throughput of a model, the time of each step, and a worker that others drive for comparison.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <fstream>
#include <iostream>

#include "arrays.h"
#include "observe/watch.h"
#include "profile.h"
#include "support/files.h"
#include "verbs.h"

namespace cairn::cli {
namespace {

using Clock = std::chrono::steady_clock;

struct Bench {
  ModelArguments model;
  std::vector<std::string> inputs;
  double seconds = 3;
  int least_runs = 10;
  std::string profile;  // folder
  bool per_op = false, worker = false, json = false;
};

double seconds_since(Clock::time_point begin) { return std::chrono::duration<double>(Clock::now() - begin).count(); }
double wall_time() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

/// Largest resident memory of this process in MB.
double peak_memory() {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);)
    if (line.starts_with("VmHWM:")) return std::stod(line.substr(6)) / 1024;
  return 0;
}

/// What is timed is one item, unless --batch says more.
ModelArguments of_one(ModelArguments arguments) {
  arguments.batch = std::max(arguments.batch, 1);
  return arguments;
}

/// A model with inputs, and output buffers that are used again, as a server would have them.
class Runner {
 public:
  explicit Runner(const Bench& bench)
      : model_(prepare(bench.model)), inputs_(read_inputs(*model_, of_one(bench.model), bench.inputs)) {
    start_watch_from_environment();
    for (const Tensor& input : inputs_) refs_.push_back({input.dtype(), input.dims(), input.data()});
    outputs_.resize(model_->outputs().size());
  }

  void run(RunOptions options = {}) {
    RunWatch watch(model_->module(), 0, options.observer);
    options.observer = watch.observer();
    model_->run(
        refs_,
        [this](size_t i, DType dtype, std::span<const int64_t> dims) {
          Tensor& output = outputs_[i];
          if (!output.defined() || output.dtype() != dtype ||
              !std::equal(dims.begin(), dims.end(), output.dims().begin(), output.dims().end()))
            output = Tensor::zeros(dtype, {dims.begin(), dims.end()});
          return output.mutable_data();
        },
        options);
  }

  const Model& model() const { return *model_; }
  const std::vector<Tensor>& inputs() const { return inputs_; }
  const std::vector<Tensor>& outputs() const { return outputs_; }
  std::shared_ptr<const Plan> plan() const {
    std::vector<Dims> dims;
    for (const Tensor& input : inputs_) dims.push_back(input.dims());
    return model_->plan(dims);
  }

 private:
  std::shared_ptr<const Model> model_;
  std::vector<Tensor> inputs_, outputs_;
  std::vector<TensorRef> refs_;
};

std::vector<double> measure(Runner& runner, double seconds, int least, Progress* progress) {
  std::vector<double> times;
  auto begin = Clock::now();
  while (static_cast<int>(times.size()) < least || seconds_since(begin) < seconds) {
    auto start = Clock::now();
    runner.run();
    times.push_back(seconds_since(start));
    if (progress) progress->at(seconds_since(begin));
  }
  return times;
}

/// The same runs again, recorded.
void record(const Bench& bench, Runner& runner) {
  start_profile({.output = expand_home(bench.profile)});
  auto begin = Clock::now();
  for (int runs = 0; runs < bench.least_runs || seconds_since(begin) < bench.seconds / 2; ++runs) runner.run();
  export_and_print(stop_profile());
}

/// Answers READY, then `run SECONDS RUNS` with TIMES, until `quit` or the end of its input.
int work(const Bench& bench) {
  const char* given = std::getenv("PEER_T0");
  double started = given ? std::atof(given) : wall_time();
  Runner runner(bench);
  auto begin = Clock::now();
  runner.run();
  double first = seconds_since(begin);
  Json info = {{"first_s", wall_time() - started}, {"first_iter_s", first}, {"note", kProducer}};
  std::vector<double> values = runner.outputs().at(0).as_f64();
  double squares = 0;
  for (double value : values) squares += value * value;
  values.resize(std::min<size_t>(values.size(), 4));
  info["out"] = values;
  info["norm"] = std::sqrt(squares);
  for (int i = 0; i < 2; ++i) runner.run();
  info["rss_mb"] = peak_memory();
  std::cout << "READY " << info.dump() << std::endl;
  for (std::string word; std::cin >> word && word != "quit";) {
    double seconds = 0;
    int runs = 0;
    if (word != "run" || !(std::cin >> seconds >> runs)) break;
    std::vector<double> times = measure(runner, seconds, runs, nullptr);
    if (times.size() > 2000) times.erase(times.begin(), times.end() - 2000);
    std::cout << "TIMES " << Json{{"t", times}, {"rss_mb", peak_memory()}}.dump() << std::endl;
  }
  return 0;
}

struct Statistics {
  double least, median, p90, p99, mean;
};

Statistics statistics_of(std::vector<double> times) {
  std::sort(times.begin(), times.end());
  auto at = [&](double part) {
    return times[std::min(times.size() - 1, static_cast<size_t>(part * static_cast<double>(times.size())))];
  };
  double sum = 0;
  for (double time : times) sum += time;
  return {times.front(), at(0.5), at(0.9), at(0.99), sum / static_cast<double>(times.size())};
}

/// Steps by time, with their share and rate.
void per_op(Runner& runner, double seconds, Json* json) {
  StepTimes times;
  RunOptions options;
  options.observer = &times;
  auto begin = Clock::now();
  int runs = 0;
  for (; runs < 3 || seconds_since(begin) < seconds; ++runs) runner.run(options);
  std::vector<StepTimes::Entry> entries = times.entries();
  double total = 0;
  for (const auto& entry : entries) total += entry.seconds;
  std::stable_sort(entries.begin(), entries.end(), [](auto& a, auto& b) { return a.seconds > b.seconds; });
  std::vector<std::string> names;
  for (const auto& entry : entries) names.push_back(step_sources(runner.model().module(), *entry.step));
  std::string folder = common_folder(names);
  Table table({"step", "kernel", ">GFLOP/s", ">GB/s", ">share", ">time"});
  for (size_t i = 0; i < entries.size(); ++i) {
    const PlannedStep& step = *entries[i].step;
    double each = entries[i].seconds / runs, calls = static_cast<double>(entries[i].runs) / runs;
    double rate = each > 0 ? calls / each / 1e9 : 0, share = total > 0 ? entries[i].seconds / total : 0;
    if (json)
      json->push_back({{"step", names[i]},
                       {"kernel", step.kernel},
                       {"seconds", each},
                       {"calls", calls},
                       {"share", share},
                       {"gflops", step.cost.flops * rate},
                       {"gbytes", step.cost.bytes * rate}});
    table.add({names[i].substr(folder.size()), step.kernel, fmt::format("{:.1f}", step.cost.flops * rate),
               fmt::format("{:.1f}", step.cost.bytes * rate), fmt::format("{:.1f} %", 100 * share),
               seconds_text(each)});
  }
  if (json) return;
  fmt::print("\n{}", folder.empty() ? "" : fmt::format("steps below {}\n", folder));
  table.print();
}

int bench_model(const Bench& bench) {
  if (bench.worker) return work(bench);
  auto begin = Clock::now();
  Runner runner(bench);
  double loading = seconds_since(begin);
  begin = Clock::now();
  runner.run();
  double first = seconds_since(begin);
  for (int i = 0; i < 2; ++i) runner.run();
  std::vector<double> times;
  {
    Progress progress("measuring", bench.seconds);
    times = measure(runner, bench.seconds, bench.least_runs, &progress);
  }
  Statistics statistics = statistics_of(times);
  auto plan = runner.plan();
  PlanTotals totals = totals_of(*plan);
  const auto& inputs = runner.inputs();
  double batch = inputs.empty() || inputs[0].rank() == 0 ? 1 : static_cast<double>(inputs[0].dims()[0]);
  if (bench.json) {
    Json json = {{"threads", runner.model().threads()},
                 {"runs", times.size()},
                 {"load_s", loading},
                 {"first_s", first},
                 {"least_s", statistics.least},
                 {"median_s", statistics.median},
                 {"p90_s", statistics.p90},
                 {"p99_s", statistics.p99},
                 {"mean_s", statistics.mean},
                 {"items_per_s", batch / statistics.median},
                 {"flops", totals.flops},
                 {"arena_bytes", totals.arena},
                 {"peak_mb", peak_memory()},
                 {"plan", plan->id()},
                 {"reference", reference_json(runner.model().reference_share(*plan))}};
    if (bench.per_op) per_op(runner, bench.seconds / 2, &(json["steps"] = Json::array()));
    print_json(json);
    return 0;
  }
  std::string shapes;
  for (size_t i = 0; i < inputs.size(); ++i)
    shapes += fmt::format("{}{}: {}", i ? ", " : "", runner.model().inputs()[i].name, to_string(inputs[i].type()));
  fmt::print("{}\n{} thread{}, {} runs, {} steps, plan {}\n\n", shapes, runner.model().threads(),
             runner.model().threads() == 1 ? "" : "s", times.size(), totals.steps, plan->id());
  Table table({">load", ">first run", ">p99", ">p90", ">mean", ">least", ">median"});
  table.add({seconds_text(loading), seconds_text(first), seconds_text(statistics.p99), seconds_text(statistics.p90),
             seconds_text(statistics.mean), seconds_text(statistics.least), seconds_text(statistics.median)});
  table.print();
  fmt::print("\n{}, arena {}, process {}\nthroughput {} items/s\n",
             count_text(totals.flops / statistics.median, "FLOP/s"), bytes_text(double(totals.arena)),
             bytes_text(peak_memory() * 1048576), count_text(batch / statistics.median));
  for (const std::string& line : describe(runner.model().reference_share(*plan))) fmt::print("{}\n", line);
  if (bench.per_op) per_op(runner, bench.seconds / 2, nullptr);
  if (!bench.profile.empty()) record(bench, runner);
  return 0;
}

}  // namespace

void add_bench(Verb& app, Run& run) {
  auto bench = std::make_shared<Bench>();
  Verb verb = app.add_verb("bench", "latency, throughput, and the time of each step");
  add_model_options(verb, bench->model, bench->json);
  verb.add_option("-i,--input", bench->inputs, "NAME=FILE or FILE in order; others are random");
  verb.add_option("--seconds", bench->seconds, "how long to measure").within(0.0, 3600.0);
  verb.add_option("--runs", bench->least_runs, "runs at least").positive();
  verb.add_option("--profile", bench->profile, "folder for a recording of further runs, with tables and a page");
  verb.add_flag("--per-op", bench->per_op, "the time of each step");
  verb.add_flag("--worker", bench->worker, "answer `run SECONDS RUNS` on standard input with the times, as JSON");
  verb.footer(
      "\nExamples:\n  cairn bench model.om --threads 2\n  cairn bench resnet50.onnx --batch 8 --per-op\n"
      "  cairn bench model.om --seconds 10 --json");
  verb.callback([bench, &run] { run = [bench] { return bench_model(*bench); }; });
}

}  // namespace cairn::cli
