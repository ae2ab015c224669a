#include "profile.h"

#include <algorithm>
#include <filesystem>
#include <map>
#include <set>

#include "console.h"
#include "observe/profile_options.h"
#include "profile/export.h"
#include "profile/files.h"
#include "profile/job.h"
#include "session.h"
#include "support/fault.h"
#include "support/files.h"
#include "support/options.h"
#include "worker.h"

namespace cairn::cli {
namespace {

namespace fs = std::filesystem;
using namespace cairn::profile;

constexpr const char* kHelp = R"(cairn profile: where the time of a run goes

  cairn profile [-o DIR] [--level marks|ops|counters] -- COMMAND   records models that it runs
  cairn profile export DIR      tables, timelines, database and page of recordings (PROF_* or above)
  cairn profile import DIR      reads the recordings and says whether they are whole
  cairn profile query DIR       a line for each model and iteration that took longest
  cairn profile diff A B        the steps of two recordings, and which became slower
  cairn profile merge DIR...    the ranks of a job: one timeline, waiting, bandwidth (-o FILE)
  cairn bench MODEL --profile DIR   records a benchmark

Examples:
  cairn profile -- python train.py
  cairn profile -o profiles -- cairn launch -n 4 train.py && cairn profile merge profiles
  cairn profile -o profiles --level marks -- python train.py --epochs 1
  cairn profile diff PROF_000001_20240131120000000_ABCDEFGH PROF_000001_20240131130000000_IJKLMNOP
)";

std::string model_name(const Recording& recording, uint32_t model) {
  for (const PlanInfo& plan : recording.plans)
    if (plan.model == model) return plan.name;
  return {};
}

template <class Value>
int64_t median(const Analysis& analysis, Value&& value) {
  std::vector<int64_t> values;
  for (const Iteration& each : analysis.iterations)
    if (each.model == main_model(analysis)) values.push_back(value(each));
  if (values.empty()) return 0;
  std::nth_element(values.begin(), values.begin() + static_cast<ptrdiff_t>(values.size() / 2), values.end());
  return values[values.size() / 2];
}

/// What runs most: by source node, over the plans that have it.
struct Top {
  const StepInfo* step;
  StepTotal total;
};

std::map<std::string, Top> by_name(const Recording& recording, const Analysis& analysis) {
  std::map<std::string, Top> steps;
  for (const StepTotal& total : analysis.steps) {
    const StepInfo& step = recording.plans[total.plan].steps[total.step];
    auto [entry, fresh] = steps.try_emplace(step.name, Top{&step, total});
    if (fresh) continue;
    entry->second.total.total += total.total;
    entry->second.total.count += total.count;
  }
  return steps;
}

void print_steps(const Exported& made) {
  size_t shown = std::min<size_t>(10, made.analysis.steps.size());
  std::vector<std::string> names;
  for (size_t i = 0; i < shown; ++i)
    names.push_back(made.recording.plans[made.analysis.steps[i].plan].steps[made.analysis.steps[i].step].name);
  std::string folder = common_folder(names);
  if (!folder.empty()) fmt::print("steps below {}\n", folder);
  Table table({"step", "type", "kernel", ">runs", ">of roofline", ">mean", ">share"});
  for (size_t i = 0; i < shown; ++i) {
    const StepTotal& total = made.analysis.steps[i];
    const StepInfo& step = made.recording.plans[total.plan].steps[total.step];
    auto share = roofline_share(step, total, made.machine);
    std::string name = step.name.substr(folder.size());
    if (!step.sources.empty() && !step.sources[0].location.empty()) name += " (" + step.sources[0].location + ")";
    table.add(
        {name, step.type, step.kernel, std::to_string(total.count),
         share ? fmt::format("{:.0f} %", 100 * *share) : "N/A",
         seconds_text(static_cast<double>(total.total) / static_cast<double>(total.count) / 1e9),
         fmt::format("{:.1f} %", 100 * static_cast<double>(total.total) / static_cast<double>(made.analysis.op_time))});
  }
  if (!table.empty()) table.print();
}

void print_ranges(const Exported& made) {
  Table table({"range of the program", ">times", ">mean", ">longest", ">in all"});
  std::vector<RangeTotal> totals = total_ranges(made.recording);
  auto text = [](int64_t ns) { return seconds_text(static_cast<double>(ns) / 1e9); };
  for (size_t i = 0; i < std::min<size_t>(10, totals.size()); ++i) {
    const RangeTotal& range = totals[i];
    table.add({range.name, std::to_string(range.count), text(range.total / static_cast<int64_t>(range.count)),
               text(range.most), text(range.total)});
  }
  if (table.empty()) return;
  fmt::print("\n");
  table.print();
}

void print_pipelines(const Exported& made) {
  for (const DataPipeline& pipeline : made.recording.pipelines) {
    Table table({"operation of a data pipeline", ">rows", ">busy", ">waited for", ">ready", ">of"});
    for (const DataOperation& each : pipeline.operations) {
      const bool handed_over = each.ahead > 0;
      table.add({each.where.empty() ? each.operation : each.operation + " (" + each.where + ")",
                 std::to_string(each.rows), seconds_text(each.busy_s), handed_over ? seconds_text(each.waited_s) : "",
                 handed_over ? fmt::format("{:.1f}", each.queue) : "",
                 handed_over ? fmt::format("{:.0f}", each.ahead) : ""});
    }
    fmt::print("\n");
    table.print();
  }
}

void print_iterations(const Exported& made) {
  const Analysis& analysis = made.analysis;
  if (analysis.iterations.empty()) return;
  uint32_t model = main_model(analysis);
  auto mine = std::count_if(analysis.iterations.begin(), analysis.iterations.end(),
                            [&](auto& each) { return each.model == model; });
  fmt::print("{}: {} iterations, {} steps recorded\n\n", model_name(made.recording, model), mine,
             made.recording.ops.size());
  Table table({"median over iterations", ">period", ">data", ">FP to BP", ">refresh", ">no step", ">busy"});
  auto text = [&](auto&& value) { return seconds_text(static_cast<double>(median(analysis, value)) / 1e9); };
  table.add({"time", text([](auto& each) { return each.period; }),
             text([](auto& each) { return each.data_aug.value_or(0); }),
             text([](auto& each) { return each.fp_to_bp(); }), text([](auto& each) { return each.refresh(); }),
             text([](auto& each) { return each.gaps; }), text([](auto& each) { return each.busy(); })});
  table.print();
  fmt::print("\n");
}

int query(const std::string& folder) {
  Table table({"recording", ">pid", "model", ">id", ">iterations", "longest iterations"});
  for (const std::string& each : find_recordings(folder)) {
    Recording recording = read_recording(each);
    for (const auto& [model, longest] : longest_iterations(analyse(recording)))
      table.add({fs::path(each).filename().string(), std::to_string(recording.session.pid),
                 model_name(recording, model), std::to_string(model), std::to_string(longest.count),
                 fmt::format("{}", fmt::join(longest.numbers, ","))});
  }
  table.print();
  return 0;
}

/// By source node; steps of one recording only are told as new and gone. Per iteration of the main model.
int diff(const std::string& before, const std::string& after) {
  auto read = [](const std::string& folder) {
    Recording recording = read_recording(find_recordings(folder).back());
    Analysis analysis = analyse(recording);
    return std::make_pair(std::move(recording), std::move(analysis));
  };
  auto [a, a_times] = read(before);
  auto [b, b_times] = read(after);
  auto count = [](const Analysis& analysis) {
    return static_cast<double>(
        std::max<int64_t>(1, std::count_if(analysis.iterations.begin(), analysis.iterations.end(),
                                           [&](auto& each) { return each.model == main_model(analysis); })));
  };
  double a_count = count(a_times), b_count = count(b_times);
  auto old_steps = by_name(a, a_times), new_steps = by_name(b, b_times);
  struct Row {
    std::string name, kernels;
    double before, after;
  };
  std::vector<Row> rows;
  for (const auto& [name, top] : old_steps) {
    auto found = new_steps.find(name);
    double was = static_cast<double>(top.total.total) / a_count / 1e9;
    if (found == new_steps.end()) {
      rows.push_back({name, top.step->kernel + " -> gone", was, 0});
      continue;
    }
    const std::string& kernel = found->second.step->kernel;
    rows.push_back({name, kernel == top.step->kernel ? kernel : top.step->kernel + " -> " + kernel, was,
                    static_cast<double>(found->second.total.total) / b_count / 1e9});
  }
  for (const auto& [name, top] : new_steps)
    if (!old_steps.contains(name))
      rows.push_back({name, "new: " + top.step->kernel, 0, static_cast<double>(top.total.total) / b_count / 1e9});
  std::stable_sort(rows.begin(), rows.end(),
                   [](auto& x, auto& y) { return std::abs(x.after - x.before) > std::abs(y.after - y.before); });
  auto change = [](double was, double is) { return was > 0 ? fmt::format("{:+.1f} %", 100 * (is / was - 1)) : "new"; };
  Table table({"per iteration", "kernel", ">before", ">after", ">change"});
  auto busy = [](auto& each) { return each.busy(); };
  double was = static_cast<double>(median(a_times, busy)) / 1e9, is = static_cast<double>(median(b_times, busy)) / 1e9;
  table.add({"whole iteration (median)", "", seconds_text(was), seconds_text(is), change(was, is)});
  for (size_t i = 0; i < std::min<size_t>(15, rows.size()); ++i)
    table.add({rows[i].name, rows[i].kernels, seconds_text(rows[i].before), seconds_text(rows[i].after),
               change(rows[i].before, rows[i].after)});
  table.print();
  return 0;
}

void print_ranks(const Job& job) {
  Table table({">rank", "host", ">iterations", ">median iteration", ">bytes", ">exchanging", ">waiting", ">hidden"});
  auto text = [](double ns) { return seconds_text(ns / 1e9); };
  for (const RankShare& rank : job.ranks) {
    const auto mine = std::count_if(rank.analysis.iterations.begin(), rank.analysis.iterations.end(),
                                    [&](auto& each) { return each.model == main_model(rank.analysis); });
    const double hidden = rank.exchanging > 0 ? double(rank.hidden) / double(rank.exchanging) : 0;
    table.add({std::to_string(rank.rank), rank.recording.session.host, std::to_string(mine),
               text(double(median(rank.analysis, [](auto& each) { return each.period; }))),
               bytes_text(double(rank.bytes)), text(double(rank.exchanging)), text(double(rank.waiting)),
               fmt::format("{:.0f} %", 100 * hidden)});
  }
  table.print();
}

int merge(std::vector<std::string> words) {
  std::string output = "job.perfetto-trace";
  std::vector<std::string> folders;
  while (!words.empty()) {
    if (words[0] == "-o" || words[0].starts_with("-o=") || words[0].starts_with("--output")) {
      output = expand_home(take_value(words));
      continue;
    }
    for (std::string& each : find_recordings(expand_home(words[0]))) folders.push_back(std::move(each));
    words.erase(words.begin());
  }
  const Job job = read_job(folders);
  write_job_trace(job, output);
  print_ranks(job);
  Table table({"collective", "operator", ">times", ">bytes", ">mean", ">waiting", ">GB/s", ">last rank"});
  for (size_t i = 0; i < std::min<size_t>(15, job.collectives.size()); ++i) {
    const CollectiveTotal& each = job.collectives[i];
    table.add({each.name, each.op, std::to_string(each.count), bytes_text(double(each.bytes)),
               seconds_text(each.time / 1e9), seconds_text(each.waited / 1e9),
               fmt::format("{:.3g}", each.bandwidth / 1e9), std::to_string(each.last_rank)});
  }
  if (!table.empty()) fmt::print("\n"), table.print();
  if (job.slowest >= 0) fmt::print("\nthe others wait most for rank {}\n", job.slowest);
  for (const std::string& remark : job.remarks) fmt::print("note: {}\n", remark);
  fmt::print("timeline: {}\n", output);
  return 0;
}

int run_profile(std::vector<std::string> words) {
  std::string output = ".";
  Json options = Json::object();
  while (!words.empty() && words[0].starts_with("-") && words[0] != "--") {
    std::string name = words[0].substr(0, words[0].find('='));
    if (name == "-o" || name == "--output")
      output = take_value(words);
    else if (name == "--level")
      options["level"] = take_value(words);
    else
      fail(ErrorKind::invalid_argument, name, "is no option of profile; --help shows them");
  }
  if (words.empty())
    fail(ErrorKind::invalid_argument, "", "needs -- and a command, or export, import, query, diff, merge");
  std::string verb = words[0];
  words.erase(words.begin());
  if (verb == "--") {
    if (words.empty()) fail(ErrorKind::invalid_argument, "--", "needs a command behind it");
    return record_command(words, output, std::move(options));
  }
  if (verb == "merge") {
    if (words.empty()) fail(ErrorKind::invalid_argument, verb, "needs the folders of the ranks");
    return merge(std::move(words));
  }
  size_t wanted = verb == "diff" ? 2 : 1;
  if (verb != "export" && verb != "import" && verb != "query" && verb != "diff")
    fail(ErrorKind::invalid_argument, verb, "is no command of profile; put -- before a program to run it");
  if (words.size() != wanted)
    fail(ErrorKind::invalid_argument, verb, "needs {} folder{}", wanted, wanted == 1 ? "" : "s");
  for (std::string& word : words) word = expand_home(word);
  if (verb == "import") return import_recordings(words[0]);
  if (verb == "query") return query(words[0]);
  if (verb == "diff") return diff(words[0], words[1]);
  return export_recordings(words[0], {});
}

}  // namespace

int export_recordings(const std::string& folder, const ExportOptions& options) {
  int status = 0;
  for (const std::string& each : find_recordings(folder)) try {
      Exported made = export_recording(each, options);
      if (made.recording.ops.size() > kMostRows)
        fmt::print("{}: op_summary and task_time have the first {} steps; the database has all\n", each, kMostRows);
      fmt::print("{}: {} iterations, {} steps{}\n", each, made.analysis.iterations.size(), made.recording.ops.size(),
                 made.recording.remark.empty() ? "" : "; " + made.recording.remark);
    } catch (const Error& error) {  // the others can still be read
      fmt::print(stderr, "{} {}\n", red("error:"), error.what());
      status = 1;
    }
  return status;
}

int import_recordings(const std::string& folder) {
  for (const std::string& each : find_recordings(folder)) {
    Recording recording = read_recording(each);
    fmt::print("{}: {} plans, {} runs, {} steps; {}\n", each, recording.plans.size(), recording.runs.size(),
               recording.ops.size(), recording.remark.empty() ? "whole" : recording.remark);
  }
  return 0;
}

int record_command(const std::vector<std::string>& command, const std::string& output, Json options) {
  fs::path folder = fs::absolute(expand_home(output.empty() ? "." : output));
  options["output"] = folder.string();
  parse_profile_options(options.dump());  // what is wrong is said before the command runs
  std::error_code error;
  std::set<std::string> known;
  for (const auto& entry : fs::directory_iterator(folder, error)) known.insert(entry.path().string());
  ::setenv("PROFILING_MODE", "true", 1);
  ::setenv("PROFILING_OPTIONS", options.dump().c_str(), 1);
  int status = Command(command).wait();
  if (status != 0) fmt::print(stderr, "{} ended with status {}\n", command[0], status);
  bool found = false;
  for (const auto& entry : fs::directory_iterator(folder, error)) {
    std::string path = entry.path().string();
    if (!entry.path().filename().string().starts_with("PROF_") || known.contains(path)) continue;
    found = true;
    export_and_print(path);
  }
  if (!found && status == 0)
    fail(ErrorKind::not_found, command[0],
         "ran no model of Cairn, so there is nothing to show; a TensorFlow script runs "
         "on the engine after `cairn migrate`");
  return status;
}

std::string take_value(std::vector<std::string>& words) {
  std::string word = words.front(), value;
  words.erase(words.begin());
  const size_t equals = word.find('=');
  if (equals != std::string::npos) {
    value = word.substr(equals + 1);
    word.resize(equals);
  } else {
    if (words.empty()) fail(ErrorKind::invalid_argument, word, "needs a value");
    value = words.front();
    words.erase(words.begin());
  }
  if (value.empty()) fail(ErrorKind::invalid_argument, word, "the value is empty");
  return value;
}

int guarded_profile(const char* name, const char* help, const std::vector<std::string>& arguments,
                    const std::function<int(std::vector<std::string>)>& body) {
  if (arguments.empty() || arguments[0] == "--help" || arguments[0] == "-h" || arguments[0] == "help") {
    fmt::print("{}", help);
    return arguments.empty() ? 1 : 0;
  }
  try {
    return body(arguments);
  } catch (...) {
    fmt::print(stderr, "{} {}: {}\n", red("error:"), name, current_fault().what());
  }
  return 1;
}

void export_and_print(const std::string& folder) {
  Exported made = export_recording(folder);
  fmt::print("\n");
  print_iterations(made);
  print_steps(made);
  print_ranges(made);
  print_pipelines(made);
  for (const Advice& advice : advise(made.recording, made.analysis, made.machine))
    fmt::print("\n{} {}\n  {}\n", bold("advice:"), wrapped(advice.text, 8, 2, kColumns),
               wrapped(advice.evidence, 2, 2, kColumns));
  if (!made.recording.session.counters.empty()) fmt::print("\nnote: {}\n", made.recording.session.counters);
  if (!made.recording.remark.empty()) fmt::print("\nnote: {}\n", made.recording.remark);
  if (!made.left_out.empty()) fmt::print("\nnote: {}\n", made.left_out);
  if (!made.recording.ops.empty())
    fmt::print("\nrecording took {:.2f} % of the steps' time", 100 * made.analysis.overhead);
  fmt::print("\npage: {}\n", made.page);
}

int profile_main(const std::vector<std::string>& arguments) {
  return guarded_profile("profile", kHelp, arguments, run_profile);
}

}  // namespace cairn::cli
