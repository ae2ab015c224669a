// The command line: `cairn VERB`, and the platform's tools under their own names atc, omg, msame, msprof and msaccucmp.
#include <filesystem>

#include "console.h"
#include "launch.h"
#include "model/om_file.h"
#include "process.h"
#include "profile.h"
#include "support/fault.h"
#include "support/report.h"
#include "support/stop.h"
#include "verbs.h"
#ifdef CAIRN_MIGRATE
#include "migrate.h"
#endif
#ifdef CAIRN_COMPARE
#include "compare.h"
#endif

namespace cairn::cli {
namespace {

constexpr const char* kExamples = R"(
Examples:
  cairn show saved_model/                      signatures, operators, size, what is not supported
  cairn convert saved_model/ -o model.om       one file that runs anywhere Cairn runs
  cairn quantize model.om --data xy.npz -o q.om  integers of 8 bits, within a budget of accuracy
  cairn run model.om --input x=image.npy       outputs as a table; -o FOLDER keeps them
  cairn train model.onnx --data xy.npz -o t.onnx  new weights from examples
  cairn bench model.om --batch 8 --per-op      latency, throughput, time of each step
  cairn verify model.om --against saved_model/ compares with the framework that made it
  cairn diff model.om model.onnx               the first operator that computes something else
  cairn data inspect train.mindrecord0         columns, rows and labels of a data set
  cairn port train.py -- --epochs 1            migrates, trains on TensorFlow and on Cairn, compares
  cairn ms train.py --epochs 1                 a MindSpore script, without MindSpore
  cairn simulate profiles --ranks 8,64 ...     how training would scale, from one rank
  cairn launch -n 4 train.py                   the same script as four processes of one job
  cairn VERB --help                            examples of each verb

Also: atc, omg, msame, msprof and msaccucmp, with the options of the platform's tools.)";

int report_error(const Error& error, const std::string& verb, bool json) {
  const auto* several = dynamic_cast<const ReportError*>(&error);
  if (json) {
    Json out = {{"error", {{"where", error.where()}, {"message", error.message()}}}};
    if (several) {
      out["error"]["message"] = several->headline();
      out["problems"] = Json::parse(several->report().json())["problems"];
    }
    print_json(out);
  } else {
    fmt::print(stderr, "{} {}: {}\n", red("error:"), verb, error.what());
  }
  return 1;
}

int cairn_main(const std::vector<std::string>& arguments) {
#ifdef CAIRN_MIGRATE
  if (!arguments.empty() && arguments[0] == "migrate") {
    std::vector<char*> words;
    for (const std::string& word : arguments) words.push_back(const_cast<char*>(word.c_str()));
    return migrate_main(static_cast<int>(words.size()), words.data());
  }
#endif
#ifdef CAIRN_COMPARE
  if (!arguments.empty() && (arguments[0] == "compare" || arguments[0] == "msaccucmp")) {
    std::vector<char*> words;
    for (const std::string& word : arguments) words.push_back(const_cast<char*>(word.c_str()));
    return compare_main(static_cast<int>(words.size()), words.data());
  }
#endif
  if (!arguments.empty() && arguments[0] == "profile") return profile_main({arguments.begin() + 1, arguments.end()});
  if (!arguments.empty() && arguments[0] == "launch") return launch_main({arguments.begin() + 1, arguments.end()});
  if (!arguments.empty() && arguments[0] == "atc") return atc_main({arguments.begin() + 1, arguments.end()});
  if (!arguments.empty() && arguments[0] == "omg") return omg_main({arguments.begin() + 1, arguments.end()});
  if (!arguments.empty() && arguments[0] == "msame") return msame_main({arguments.begin() + 1, arguments.end()});

  bool script_diff = arguments.size() > 1 && arguments[0] == "diff" && arguments[1].starts_with("--script");
  if (!arguments.empty() && (arguments[0] == "tf1" || arguments[0] == "port" || arguments[0] == "ms" || script_diff)) {
    try {
      auto names = [&](std::string_view option) {
        return std::any_of(arguments.begin(), arguments.end(),
                           [&](const std::string& word) { return word.starts_with(option); });
      };
      const bool of_torch = names("--to") || names("--weights");  // of PyTorch, to MindSpore
      const char* module = script_diff             ? "cairn_tf1.diff"
                           : arguments[0] == "ms"  ? "cairn.ms"
                           : arguments[0] == "tf1" ? "cairn_tf1"
                           : of_torch              ? "cairn.ms.port"
                                                   : "cairn_tf1.port";
      return run_script_verb(arguments[0], module, {arguments.begin() + 1, arguments.end()});
    } catch (const Error& error) {
      return report_error(error, arguments[0], false);
    }
  }

  Program app("cairn", "Converts, runs and checks trained models.");
  app.footer(kExamples);
  app.version(kProducer);
  Run run;
  add_show(app, run);
  add_freeze(app, run);
  add_convert(app, run);
  add_quantize(app, run);
  add_run(app, run);
  add_train(app, run);
  add_bench(app, run);
  add_verify(app, run);
  add_diff(app, run);
  add_why(app, run);
  add_check(app, run);
  add_op(app, run);
  add_simulate(app, run);
  add_data(app, run);
  app.add_verb("profile", "where the time of a run goes, of any program").prefix_command();
#ifdef CAIRN_MIGRATE
  app.add_verb("migrate", "move training scripts to this platform").prefix_command();
#endif
#ifdef CAIRN_COMPARE
  app.add_verb("compare", "dump files against dump files").prefix_command();
#endif
  app.add_verb("launch", "start a training script as several processes of one job").prefix_command();
  app.add_verb("tf1", "run a TensorFlow 1 training script on the engine").prefix_command();
  app.add_verb("ms", "run a MindSpore script on the engine").prefix_command();
  app.add_verb("port", "migrate a training script, train it on both engines, compare").prefix_command();
  if (std::optional<int> status = app.parse(arguments)) return *status;
  std::string verb = app.verb();
  bool json = std::find(arguments.begin(), arguments.end(), "--json") != arguments.end();
  try {
    StopScope limit({.max_seconds = time_limit()});
    const LastLimit last_limit(time_limit());
    load_libraries();
    return run();
  } catch (const ReportError& error) {
    return report_error(error, verb, json);
  } catch (...) {
    return report_error(current_fault(), verb, json);
  }
}

}  // namespace
}  // namespace cairn::cli

namespace {

int dispatch(const std::string& name, int count, char** words) {
  using namespace cairn::cli;
  std::vector<std::string> arguments(words + std::min(count, 1), words + count);
  if (name == "atc") return atc_main(arguments);
  if (name == "omg") return omg_main(arguments);
  if (name == "msame") return msame_main(arguments);
  if (name == "msprof") return msprof_main(arguments);
#ifdef CAIRN_COMPARE
  if (name == "msaccucmp") return compare_main(count, words);
#endif
  return cairn_main(arguments);
}

}  // namespace

int main(int count, char** words) {
  const std::string name = count > 0 ? std::filesystem::path(words[0]).filename().string() : "cairn";
  const bool has_verb = name == "cairn" && count > 1 && words[1][0] != '-';
  const std::string verb = has_verb ? words[1] : name;
  const cairn::cli::Process process(verb, verb == "migrate" ? 2 : 1);
  try {
    return process.finish(dispatch(name, count, words));
  } catch (...) {
    return process.finish(process.fail());
  }
}
