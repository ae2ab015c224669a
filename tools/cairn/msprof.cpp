// The platform's msprof: its options, each with what becomes of it, its script form, and recordings that are started and
// stopped from outside.
#include <charconv>
#include <map>

#include "attach.h"
#include "profile.h"
#include "profile/files.h"
#include "session.h"
#include "support/files.h"
#include "support/json_fault.h"
#include "support/nearest.h"
#include "support/options.h"
#include "worker.h"

namespace cairn::cli {
namespace {

namespace fs = std::filesystem;
using namespace cairn::profile;

constexpr const char* kMsprofHelp = R"(msprof: records programs and reads recordings

  msprof --output=DIR --application="COMMAND"      or: msprof --output=DIR COMMAND ARGUMENTS
  msprof --export=on --output=DIR [--type=text|db] [--model-id=N --iteration-id=N] [--reports=FILE]
  msprof --query=on --output=DIR
  msprof --parse=on --output=DIR
  msprof --dynamic=on --output=DIR --pid=N         or --application="COMMAND"; then start, stop and
                                                   quit at the prompt
Also: import -dir DIR, query -dir DIR,
      export summary|timeline|db -dir DIR [--model-id N --iteration-id N [--iteration-count N]].

Recording: --task-time=on|off|l0|l1, --aic-metrics=GROUP, --storage-limit=200MB,
--environment="NAME=VALUE;...".
Model IDs and iterations are those of --query; model 4294967295 counts the steps of training.
)";

constexpr const char* kNoSampling = "sampling of devices and of the host is not there";
constexpr const char* kWholeRun = "the whole run is recorded; --dynamic=on starts and stops by hand";
constexpr const char* kNoSteps = "counters are read at every step, not sampled";
constexpr const char* kOneCore = "processors have no vector cores of their own";
constexpr const char* kNoCommunication = "one process has no communication to analyse";

/// One option: the values that it takes (none: any), and what it becomes.
struct MsprofOption {
  std::string_view name;
  std::vector<std::string_view> values;
  const char* key = nullptr;     // of PROFILING_OPTIONS
  const char* reason = nullptr;  // why it has no effect; the last of `values` has what it asks for, and is not told
  std::optional<ValueForm> form = {};  // of a value that is not one of `values`
};

// clang-format off
constexpr ValueForm kNumber = {"[0-9]{1,9}", "a number", "5"};
constexpr ValueForm kFrequency = {"[1-9][0-9]{0,5}", "a number of samples a second, from 1 on", "50"};
constexpr ValueForm kHundred = {"[1-9][0-9]?|100", "a number from 1 to 100", "100"};
constexpr ValueForm kDevices = {"all|[0-9]{1,4}(,[0-9]{1,4})*", "all, or numbers of devices: 0,1", "0,1"};
constexpr ValueForm kCaches = {"read|write|capacity|bandwidth", "read, write, capacity or bandwidth", "read"};
constexpr ValueForm kRules = {"(communication|communication_matrix)(,(communication|communication_matrix))?",
                              "communication, communication_matrix or both between a comma", "communication"};
constexpr ValueForm kMetrics = {"[A-Z][A-Za-z0-9]*(:.*)?", "the name of a group, such as PipeUtilization", "PipeUtilization"};
constexpr ValueForm kHost = {"(cpu|mem|disk|network|osrt)(,(cpu|mem|disk|network|osrt))*", "of cpu, mem, disk, network and osrt, between commas", "cpu,mem"};
constexpr ValueForm kUsage = {"(cpu|mem)(,(cpu|mem))?", "cpu, mem or both between a comma", "cpu"};
// clang-format on

const std::vector<MsprofOption>& msprof_options() {
  static const std::vector<std::string_view> kSwitch = {"on", "off"};
  static const std::vector<std::string_view> kLevel = {"on", "off", "l0", "l1"};
  static const std::vector<MsprofOption> kOptions = {
      {"--output", {}},
      {"--application", {}},
      {"--export", kSwitch},
      {"--query", kSwitch},
      {"--parse", kSwitch},
      {"--dynamic", kSwitch},
      {"--pid", {}},
      {"--type", {"text", "db"}},
      {"--model-id", {}},
      {"--iteration-id", {}},
      {"--reports", {}},
      {"--environment", {}},
      {"--task-time", kLevel, "task_time"},
      {"--aic-metrics", {}, "aic_metrics"},
      {"--storage-limit", {}, "storage_limit"},
      {"--ge-api", {"off", "l0", "l1"}, "ge_api"},
      {"--hccl", kSwitch, "hccl"},
      {"--aicpu", kSwitch, "aicpu"},
      {"--l2", kSwitch, "l2"},
      {"--msproftx", kSwitch, "msproftx"},
      {"--runtime-api", kSwitch, "runtime_api"},
      {"--ai-core", kSwitch},          // off: no counters
      {"--ascendcl", kSwitch},         // runs are always recorded
      {"--model-execution", kSwitch},  // as well
      {"--task-memory", kSwitch},      // memory is part of every plan
      {"--clear", kSwitch},            // nothing lies between a recording and its export
      {"--summary-format", {"json", "csv"}, nullptr, "tables are written as csv"},
      {"--aic-mode", {"sample-based", "task-based"}, nullptr, kNoSteps},
      {"--aic-freq", {}, nullptr, kNoSteps, kHundred},
      {"--ai-vector-core", kSwitch, nullptr, kOneCore},
      {"--aiv-mode", {"sample-based", "task-based"}, nullptr, kOneCore},
      {"--aiv-freq", {}, nullptr, kOneCore, kFrequency},
      {"--aiv-metrics", {}, nullptr, kOneCore, kMetrics},
      {"--task-trace", kSwitch, nullptr, "--task-time says what is recorded"},
      {"--scale", {}, nullptr, "all operators are recorded"},
      {"--analyze", kSwitch, nullptr, kNoCommunication},
      {"--rule", {}, nullptr, kNoCommunication, kRules},
      {"--delay", {}, nullptr, kWholeRun, kNumber},
      {"--duration", {}, nullptr, kWholeRun, kNumber},
      {"--llc-profiling", {}, nullptr, kNoSampling, kCaches},
      {"--instr-profiling", kSwitch, nullptr, kNoSampling},
      {"--instr-profiling-freq", {}, nullptr, kNoSampling, kFrequency},
      {"--hardware-mem", kSwitch, nullptr, kNoSampling},
      {"--python-path", {}, nullptr, "no Python is needed to read recordings"},
      {"--mstx-domain-include", {}, nullptr, "ranges of all domains are recorded"},
      {"--mstx-domain-exclude", {}, nullptr, "ranges of all domains are recorded"},
      {"--biu", kSwitch, nullptr, kNoSampling},
      {"--biu-freq", {}, nullptr, kNoSampling, kFrequency},
      {"--power", kSwitch, nullptr, kNoSampling},
      {"--devices", {}, nullptr, "models run on the processor", kDevices},
      {"--sys-hardware-mem", kSwitch, nullptr, kNoSampling},
      {"--sys-hardware-mem-freq", {}, nullptr, kNoSampling, kFrequency},
      {"--sys-io-profiling", kSwitch, nullptr, kNoSampling},
      {"--sys-io-sampling-freq", {}, nullptr, kNoSampling, kFrequency},
      {"--sys-interconnection-profiling", kSwitch, nullptr, kNoSampling},
      {"--sys-interconnection-freq", {}, nullptr, kNoSampling, kFrequency},
      {"--sys-cpu-profiling", kSwitch, nullptr, kNoSampling},
      {"--sys-cpu-freq", {}, nullptr, kNoSampling, kFrequency},
      {"--sys-profiling", kSwitch, nullptr, kNoSampling},
      {"--sys-sampling-freq", {}, nullptr, kNoSampling, kFrequency},
      {"--sys-pid-profiling", kSwitch, nullptr, kNoSampling},
      {"--sys-pid-sampling-freq", {}, nullptr, kNoSampling, kFrequency},
      {"--sys-devices", {}, nullptr, kNoSampling, kDevices},
      {"--sys-period", {}, nullptr, kNoSampling, kFrequency},
      {"--sys-low-power", kSwitch, nullptr, kNoSampling},
      {"--dvpp-profiling", kSwitch, nullptr, kNoSampling},
      {"--dvpp-freq", {}, nullptr, kNoSampling, kFrequency},
      {"--host-sys", {}, nullptr, kNoSampling, kHost},
      {"--host-sys-pid", {}, nullptr, kNoSampling, kNumber},
      {"--host-sys-usage", {}, nullptr, kNoSampling, kUsage},
      {"--host-sys-usage-freq", {}, nullptr, kNoSampling, kFrequency},
      {"--iteration-count", {}},
  };
  return kOptions;
}

using Given = std::map<std::string, std::string, std::less<>>;

void tell_without_effect(const std::string& name, const char* reason) {
  fmt::print(stderr, "note: {} has no effect: {}\n", name, reason);
}

/// Takes "--name=value" out of the front of the words.
void take_given(std::vector<std::string>& words, Given& given) {
  const std::string name = words[0].substr(0, words[0].find('='));
  const std::string value = take_value(words);
  auto option = std::find_if(msprof_options().begin(), msprof_options().end(),
                             [&](const MsprofOption& each) { return each.name == name; });
  if (option == msprof_options().end()) {
    for (const char* sampled : {"--sys-", "--host-sys", "--dvpp-"})
      if (name.starts_with(sampled)) return tell_without_effect(name, kNoSampling);
    std::vector<std::string_view> names;
    for (const MsprofOption& each : msprof_options()) names.push_back(each.name);
    fail(ErrorKind::invalid_argument, name, "is no option of msprof{}; --help shows them", did_you_mean(name, names));
  }
  const auto& values = option->values;
  if (!values.empty() && std::find(values.begin(), values.end(), value) == values.end())
    fail(ErrorKind::invalid_argument, name, "is {}, found '{}'", fmt::join(values, " or "), value);
  if (option->form && !has_form(*option->form, value))
    fail(ErrorKind::invalid_argument, name, "is {}, found '{}'", option->form->words, value);
  if (option->reason != nullptr && (values.empty() || value != values.back()))
    tell_without_effect(name, option->reason);
  given[name] = value;
}

uint32_t number_given(std::string_view option, const std::string& text) {
  uint32_t number = 0;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size())
    fail(ErrorKind::invalid_argument, std::string(option), "needs a number, found '{}'", text);
  return number;
}

std::optional<Selection> selection_of(const Given& given) {
  const bool model = given.contains("--model-id"), iteration = given.contains("--iteration-id");
  if (model != iteration)
    fail(ErrorKind::invalid_argument, model ? "--model-id" : "--iteration-id", "needs {} as well",
         model ? "--iteration-id" : "--model-id");
  if (!model) return std::nullopt;
  Selection only{number_given("--model-id", given.at("--model-id")),
                 number_given("--iteration-id", given.at("--iteration-id"))};
  if (given.contains("--iteration-count"))
    only.count = number_given("--iteration-count", given.at("--iteration-count"));
  return only;
}

/// The tracks that the file of --reports leaves in the timeline. What is written there and is no track here is said.
Tracks tracks_of(const std::string& path) {
  const std::string text = read_file(expand_home(path), 1 << 20);
  const Json whole = Json::parse(text, nullptr, false);
  if (whole.is_discarded()) fail(ErrorKind::invalid_argument, path, "cannot be read as JSON: {}", json_fault(text));
  const Json& json = whole.is_object() && whole.contains("json_process") ? whole["json_process"] : whole;
  if (!json.is_object()) fail(ErrorKind::invalid_argument, path, "holds no JSON object of timeline tracks");
  Tracks tracks;
  const std::map<std::string, bool*> known = {{"ascend", &tracks.steps},
                                              {"cann", &tracks.runs},
                                              {"step_trace", &tracks.iterations},
                                              {"msproftx", &tracks.ranges}};
  for (const auto& [name, value] : json.items()) {
    if (!value.is_boolean()) fail(ErrorKind::invalid_argument, path, "{} is neither true nor false", name);
    auto track = known.find(name);
    if (track != known.end())
      *track->second = value.get<bool>();
    else
      fmt::print(stderr, "msprof: {}: {} is no track here; there are ascend, cann, msproftx and step_trace\n", path,
                 name);
  }
  return tracks;
}

/// A line for each model, in columns as wide as they need, which scripts read.
int print_recordings(const std::string& folder) {
  std::vector<std::vector<std::string>> rows = {{"Job Info", "Device ID", "Dir Name", "Collection Time", "Model ID",
                                                 "Iteration Number", "Top Time Iteration", "Rank ID"}};
  for (const std::string& each : find_recordings(folder)) {
    Recording recording = read_recording(each);
    std::string time = recording.time;
    if (time.size() >= 14)
      time = fmt::format("{}-{}-{} {}:{}:{}", time.substr(0, 4), time.substr(4, 2), time.substr(6, 2),
                         time.substr(8, 2), time.substr(10, 2), time.substr(12, 2));
    for (const auto& [model, longest] : longest_iterations(analyse(recording)))
      rows.push_back({"NA", "0", fs::path(each).filename().string(), time, std::to_string(model),
                      std::to_string(longest.count), fmt::format("{}", fmt::join(longest.numbers, ",")), "NA"});
  }
  std::vector<size_t> widths(rows[0].size());
  for (const auto& row : rows)
    for (size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
  for (const auto& row : rows) {
    std::string line;
    for (size_t i = 0; i < row.size(); ++i) line += fmt::format("{:{}}  ", row[i], widths[i]);
    fmt::print("{}\n", line.substr(0, line.find_last_not_of(' ') + 1));
  }
  return 0;
}

/// What is recorded, as PROFILING_OPTIONS.
Json recording_of(const Given& given) {
  Json json = Json::object();
  for (const MsprofOption& option : msprof_options())
    if (auto found = given.find(option.name); option.key && found != given.end()) json[option.key] = found->second;
  if (auto core = given.find("--ai-core"); core != given.end() && core->second == "off") json.erase("aic_metrics");
  return json;
}

void set_environment(const std::string& text) {
  for (const std::string& each : split_list(text, ';')) {
    size_t equals = each.find('=');
    if (equals == 0 || equals == std::string::npos)
      fail(ErrorKind::invalid_argument, "--environment", "is NAME=VALUE;NAME=VALUE, found '{}'", each);
    ::setenv(each.substr(0, equals).c_str(), each.substr(equals + 1).c_str(), 1);
  }
}

int option_form(std::vector<std::string> words) {
  Given given;
  while (!words.empty() && words[0].starts_with("--")) take_given(words, given);
  auto on = [&](const char* name) { return given.contains(name) && given[name] == "on"; };
  auto only_with = [&](const char* name, bool there) {
    if (given.contains(name) && !there)
      fail(ErrorKind::invalid_argument, name, "has no meaning here; --help shows where");
  };
  for (const char* name : {"--model-id", "--iteration-id", "--reports"}) only_with(name, on("--export"));
  if (given.contains("--type") && !on("--export"))
    tell_without_effect("--type", "a recording holds all forms; with --export=on it chooses the files");
  only_with("--pid", on("--dynamic"));
  const std::string output = expand_home(given.contains("--output") ? given["--output"] : ".");
  if (on("--parse")) return import_recordings(output);
  if (on("--query")) return print_recordings(output);
  if (on("--export")) {
    const bool text = given["--type"] != "db";
    ExportOptions made{text, text, true, text, {}, selection_of(given)};
    if (given.contains("--reports")) made.tracks = tracks_of(given["--reports"]);
    return export_recordings(output, made);
  }
  if (given.contains("--environment")) set_environment(given["--environment"]);
  if (given.contains("--application")) words = {"/bin/sh", "-c", given["--application"]};
  if (on("--dynamic")) {
    if (given.contains("--pid") == !words.empty())
      fail(ErrorKind::invalid_argument, "--dynamic", "needs one of --pid and --application");
    const uint32_t pid = given.contains("--pid") ? number_given("--pid", given["--pid"]) : 0;
    return record_on_request(pid, words, output, recording_of(given));
  }
  if (words.empty() && on("--analyze")) return 0;  // what it asks for is nothing here, and that was told
  if (words.empty()) fail(ErrorKind::invalid_argument, "--application", "is missing; --help shows what msprof does");
  return record_command(words, output, recording_of(given));
}

/// import, query and export of msprof.py.
int script_form(std::vector<std::string> words) {
  const std::string verb = words[0];
  words.erase(words.begin());
  std::string kind = "all", folder;
  if (verb == "export" && !words.empty() && !words[0].starts_with("-")) {
    kind = words[0];
    words.erase(words.begin());
    if (kind != "summary" && kind != "timeline" && kind != "db")
      fail(ErrorKind::invalid_argument, kind, "is no export; expected summary, timeline or db");
  }
  Given given;
  while (!words.empty()) {
    const std::string name = words[0].substr(0, words[0].find('='));
    const bool selects = name == "--model-id" || name == "--iteration-id" || name == "--iteration-count";
    if (name == "-dir" || name == "--collection-dir")
      folder = expand_home(take_value(words));
    else if (verb == "export" && selects)
      given[name] = take_value(words);
    else if (verb == "export" && name == "--format") {
      if (take_value(words) != "csv") tell_without_effect(name, "tables are written as csv");
    } else {
      fail(ErrorKind::invalid_argument, name, "is no option of {}; --help shows them", verb);
    }
  }
  if (folder.empty()) fail(ErrorKind::invalid_argument, verb, "needs -dir FOLDER");
  if (verb == "import") return import_recordings(folder);
  if (verb == "query") return print_recordings(folder);
  const bool all = kind == "all";
  return export_recordings(
      folder, {all || kind == "summary", all || kind == "timeline", all || kind == "db", all, {}, selection_of(given)});
}

int run_msprof(std::vector<std::string> words) {
  const bool script = words[0] == "import" || words[0] == "query" || words[0] == "export";
  return script ? script_form(std::move(words)) : option_form(std::move(words));
}

}  // namespace

int msprof_main(const std::vector<std::string>& arguments) {
  return guarded_profile("msprof", kMsprofHelp, arguments, run_msprof);
}

}  // namespace cairn::cli
