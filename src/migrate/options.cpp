// The table of options and its readers.
#include "migrate/options.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <nlohmann/json.hpp>

#include "migrate/rule.h"
#include "support/json_fault.h"

namespace cairn::migrate {
namespace {

int integer(std::string_view name, std::string_view value, int lowest) {
  int number = 0;
  auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), number);
  if (error != std::errc() || end != value.data() + value.size() || number < lowest)
    fail(ErrorKind::invalid_argument, std::string(name), "expected a whole number of at least {}, found '{}'", lowest,
         value);
  return number;
}

bool truth(std::string_view name, std::string_view value) {
  if (value.empty() || value == "true" || value == "1") return true;
  if (value == "false" || value == "0") return false;
  fail(ErrorKind::invalid_argument, std::string(name), "expected true or false, found '{}'", value);
}

void append(std::vector<std::string>& list, std::string_view value) {
  while (!value.empty()) {
    size_t end = std::min(value.find(','), value.size());
    if (end) list.emplace_back(value.substr(0, end));
    value.remove_prefix(std::min(end + 1, value.size()));
  }
}

void rule_ids(std::vector<std::string>& list, std::string_view value) {
  size_t before = list.size();
  append(list, value);
  for (size_t i = before; i < list.size(); ++i)
    if (!find_rule(list[i]))
      fail(ErrorKind::invalid_argument, "", "there is no rule '{}'; `cairn migrate --rules` lists them", list[i]);
}

std::string quotable(std::string_view name, std::string_view value) {
  if (value.find_first_of("\"\\\n\r") != value.npos)
    fail(ErrorKind::invalid_argument, std::string(name), "quotes, backslashes and line breaks cannot be taken");
  return std::string(value);
}

}  // namespace

const std::vector<OptionRow>& option_rows() {
  static const std::vector<OptionRow> rows = {
      {"to", "ascend|mindspore", "TensorFlow scripts for the Ascend platform, or PyTorch scripts to MindSpore",
       [](Options& o, std::string_view v) {
         if (v != "ascend" && v != "mindspore")
           fail(ErrorKind::invalid_argument, "to", "expected ascend or mindspore, found '{}'", v);
         o.to = v == "mindspore" ? Target::mindspore : Target::ascend;
       }},
      {"tf", "1|2|auto", "the interface generation of the scripts",
       [](Options& o, std::string_view v) {
         if (v != "auto" && v != "1" && v != "2")
           fail(ErrorKind::invalid_argument, "tf", "expected 1, 2 or auto, found '{}'", v);
         o.tf = v == "auto" ? 0 : v[0] - '0';
       }},
      {"distributed", "auto|none|horovod|tf_strategy", "how the scripts are distributed",
       [](Options& o, std::string_view v) {
         static constexpr std::pair<std::string_view, Distribution> kinds[] = {
             {"auto", Distribution::automatic},
             {"none", Distribution::none},
             {"horovod", Distribution::horovod},
             {"tf_strategy", Distribution::tf_strategy}};
         for (const auto& [name, kind] : kinds)
           if (name == v) return void(o.distributed = kind);
         fail(ErrorKind::invalid_argument, "distributed", "expected auto, none, horovod or tf_strategy, found '{}'", v);
       }},
      {"main", "FILE", "the program's entry script, relative to PATH; detected by its main guard otherwise",
       [](Options& o, std::string_view v) { o.main = v; }},
      {"platform", "", "also make the rewrites that only the Ascend hardware needs",
       [](Options& o, std::string_view v) { o.platform = truth("platform", v); }},
      {"safe_only", "", "leave out edits that need a review",
       [](Options& o, std::string_view v) { o.safe_only = truth("safe_only", v); }},
      {"npu_estimator", "", "NPUEstimator and NPURunConfig in place of wrapped ones",
       [](Options& o, std::string_view v) { o.npu_estimator = truth("npu_estimator", v); }},
      {"control_flow_v2", "", "switch control flow of the first version to the second",
       [](Options& o, std::string_view v) { o.control_flow_v2 = truth("control_flow_v2", v); }},
      {"precision_mode", "MODE", "set precision_mode on sessions (and NPURunConfig), as allow_mix_precision",
       [](Options& o, std::string_view v) { o.precision_mode = quotable("precision_mode", v); }},
      {"iterations_per_loop", "N", "set iterations_per_loop on NPURunConfig",
       [](Options& o, std::string_view v) { o.iterations_per_loop = integer("iterations_per_loop", v, 1); }},
      {"loss_scale", "dynamic|N", "wrap optimizers with NPULossScaleOptimizer",
       [](Options& o, std::string_view v) {
         if (v != "dynamic") integer("loss_scale", v, 1);
         o.loss_scale = v;
       }},
      {"dump_path", "DIR", "dump tensors of sessions to DIR",
       [](Options& o, std::string_view v) { o.dump_path = quotable("dump_path", v); }},
      {"profiling_options", "TEXT", "profile sessions with these options",
       [](Options& o, std::string_view v) { o.profiling_options = quotable("profiling_options", v); }},
      {"disable", "RULE,...", "rules left out", [](Options& o, std::string_view v) { rule_ids(o.disable, v); }},
      {"enable", "RULE,...", "rules taken in that would not be",
       [](Options& o, std::string_view v) { rule_ids(o.enable, v); }},
      {"include", "GLOB,...", "only these files", [](Options& o, std::string_view v) { append(o.include, v); }},
      {"exclude", "GLOB,...", "not these files", [](Options& o, std::string_view v) { append(o.exclude, v); }},
      {"jobs", "N", "threads; all processors otherwise",
       [](Options& o, std::string_view v) { o.jobs = integer("jobs", v, 1); }},
  };
  return rows;
}

void set_option(Options& options, std::string_view name, std::string_view value) {
  for (const OptionRow& row : option_rows())
    if (row.name == name) return row.set(options, value);
  fail(ErrorKind::invalid_argument, "", "there is no option '{}'", name);
}

std::vector<Finding> idle_options(const Result& result, const Options& options) {
  struct Row {
    std::string_view option;
    bool set;
    std::string_view mark;  // a rule that it switches on, or a word of the text that it writes
    std::string_view needs;
  };
  const bool horovod = options.distributed == Distribution::horovod;
  const Row rows[] = {
      {"--precision-mode", !options.precision_mode.empty(), "precision_mode",
       "a session of TensorFlow 1 or an NPURunConfig"},
      {"--dump-path", !options.dump_path.empty(), "enable_dump", "a session of TensorFlow 1"},
      {"--profiling-options", !options.profiling_options.empty(), "profiling_mode", "a session of TensorFlow 1"},
      {"--iterations-per-loop", options.iterations_per_loop > 0, "iterations_per_loop",
       "--npu-estimator and a tf.estimator.RunConfig"},
      {"--npu-estimator", options.npu_estimator, "npu-estimator",
       "a tf.estimator.Estimator that is not an NPUEstimator yet"},
      {"--loss-scale", !options.loss_scale.empty(), "NPULossScaleOptimizer",
       "an optimizer of tf.train that is not wrapped yet"},
      {"--control-flow-v2", options.control_flow_v2, "control-flow-v2", "an entry script that imports TensorFlow 1"},
      {"--distributed horovod", horovod, "horovod-", "a use of Horovod in a script of TensorFlow 1"},
      {"--distributed tf_strategy", options.distributed == Distribution::tf_strategy, "strategy",
       "a strategy, an optimizer or a training call of TensorFlow 1 that is not rewritten yet"},
      {"--platform", options.platform, "platform",
       "a RunConfig, a dropout layer or options of the optimizer in TensorFlow 1"},
      {"--main", !options.main.empty(), "main", "the path of a script that uses TensorFlow, relative to PATH"},
  };
  auto does = [&](const Row& row) {
    for (const FileResult& file : result.files) {
      if (row.mark == "main" && file.entry) return true;
      for (const AppliedChange& change : file.changes) {
        const Rule* rule = find_rule(change.change.rule);
        if (change.change.rule.starts_with(row.mark) ||
            (row.mark == "npu-estimator" && change.change.rule == "npu-run-config") ||
            (row.mark == "platform" && rule && rule->when == When::platform) ||
            (row.mark == "strategy" && rule && (rule->when == When::strategy || rule->id == "optimizer")))
          return true;
        for (const Edit& edit : change.change.edits)
          if (edit.text.find(row.mark) != std::string::npos) return true;
      }
    }
    return false;
  };
  std::vector<Finding> found;
  for (const Row& row : rows)
    if (row.set && !does(row))
      found.push_back({"option", Severity::note, "", 0, 0, 0, 0, fmt::format("{} has changed nothing", row.option),
                       fmt::format("it needs {}, and none was found", row.needs), false});
  return found;
}

void set_options(Options& options, std::string_view words) {
  while (!words.empty()) {
    size_t end = std::min(words.find(' '), words.size());
    std::string_view word = words.substr(0, end);
    words.remove_prefix(std::min(end + 1, words.size()));
    size_t equals = word.find('=');
    if (!word.empty()) set_option(options, word.substr(0, equals), equals == word.npos ? "" : word.substr(equals + 1));
  }
}

void set_options_json(Options& options, const std::string& text, const std::string& where) {
  nlohmann::json object = nlohmann::json::parse(text, nullptr, false, true);
  if (object.is_discarded()) fail(ErrorKind::invalid_argument, where, "{}", json_fault(text, true));
  if (!object.is_object()) fail(ErrorKind::invalid_argument, where, "expected a JSON object of options");
  for (const auto& [name, value] : object.items()) {
    try {
      if (value.is_string())
        set_option(options, name, value.get<std::string>());
      else if (value.is_boolean())
        set_option(options, name, value.get<bool>() ? "true" : "false");
      else if (value.is_number_integer())
        set_option(options, name, std::to_string(value.get<int64_t>()));
      else if (value.is_array())
        for (const auto& item : value)
          set_option(options, name, item.is_string() ? item.get<std::string>() : item.dump());
      else
        fail(ErrorKind::invalid_argument, name, "expected a string, a number, true, false or a list of strings");
    } catch (const Error& error) {
      fail(error.kind(), where, "{}", error.what());
    }
  }
}

}  // namespace cairn::migrate
