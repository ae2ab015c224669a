// cairn diff: the first operator of a model that computes something else than its framework, another engine or saved values
// say, and the pass or kernel that makes it so; of a training script: the first step, and the operator in it.
#include <filesystem>

#include "arrays.h"
#include "diff/report.h"
#include "diff/truth.h"
#include "formats/npz.h"
#include "framework.h"
#include "frontends/tensorflow/saved_model.h"
#include "passes/pipeline.h"
#include "passes/precision.h"
#include "support/files.h"
#include "verbs.h"

namespace cairn::cli {
namespace {

namespace fs = std::filesystem;

struct Diff {
  ModelArguments model;
  std::string golden, golden_engine = "auto", inputs_file, disable, precision, truth, python, output = "cairn_diff";
  std::vector<std::string> inputs;
  int most = 1, seed = 0, runs = 1;
  bool json = false;
};

diff::Subject subject_of(const Diff& diff) {
  const std::vector<PassInfo> passes = list_passes();
  for (const std::string& name : split_list(diff.disable, ','))
    if (name != "ALL" && std::none_of(passes.begin(), passes.end(), [&](auto& pass) { return pass.name == name; }))
      fail(ErrorKind::invalid_argument, "--disable", "no pass is called {}", name);
  diff::Subject subject;
  ModelArguments arguments = diff.model;
  subject.load = [arguments] { return open(arguments); };
  subject.engines = split_list(diff.model.engines, ',');
  subject.disabled = split_list(diff.disable, ',');
  subject.threads = diff.model.threads;
  if (!diff.precision.empty()) {
    DType low = diff.precision == "f16" ? kF16 : kBF16;
    std::vector<std::string> disabled = subject.disabled;
    subject.before_passes = [low, disabled](Module& module) {
      optimise(module, {.disabled = disabled});  // a fused node is one operator
      PrecisionOptions options;
      options.mode = PrecisionMode::force_low;
      options.low = low;
      set_precision(module, options);
      module.optimised_by.clear();
    };
  }
  return subject;
}

std::vector<Tensor> inputs_of(const Diff& diff, const Model& model) {
  std::vector<std::string> files = diff.inputs;
  if (!diff.inputs_file.empty()) {
    std::string path = expand_home(diff.inputs_file);
    auto is_input = [&](const std::string& name) {
      return std::any_of(model.inputs().begin(), model.inputs().end(),
                         [&](const Port& port) { return port.name == name; });
    };
    for (const std::string& name : NpzFile::open(path)->names()) {
      if (!is_input(name)) fail(ErrorKind::invalid_argument, diff.inputs_file, "holds {}, which is no input", name);
      files.push_back(fmt::format("{0}={1}:{0}", name, path));
    }
  }
  const std::string golden = expand_home(diff.golden);
  return read_inputs(model, golden.ends_with(".npz") ? diff.model : fitted(diff.model, model, golden), files, false,
                     static_cast<uint64_t>(diff.seed));
}

/// "node:1" of a saved value; without a number the first result.
diff::Key key_of(const std::string& name) {
  size_t colon = name.rfind(':');
  bool numbered = colon != std::string::npos && colon + 1 < name.size() &&
                  name.find_first_not_of("0123456789", colon + 1) == std::string::npos && name.size() - colon < 6;
  return numbered ? diff::Key{name.substr(0, colon), std::stoul(name.substr(colon + 1))} : diff::Key{name};
}

diff::Golden saved_values(const std::string& path) {
  diff::Golden golden{path, {}, {}};
  auto file = NpzFile::open(path);
  for (const std::string& name : file->names()) {
    Tensor tensor = file->read(name);
    golden.values[key_of(name)] = tensor;
    golden.outputs.emplace_back(name, tensor);
  }
  return golden;
}

/// Inputs and outputs are paired by name, or where the files call them otherwise, by type and order.
diff::Golden of_engine(const Diff& diff, const std::string& path, const Model& mine,
                       const std::vector<Tensor>& inputs) {
  diff::Subject plain;
  ModelArguments arguments = diff.model;
  arguments.path = path;
  if (kind_of(path) != FileKind::foreign || path != expand_home(diff.model.path))
    arguments.outputs.clear(), arguments.signature.clear();
  plain.load = [arguments] { return open(arguments); };
  plain.engines = {diff.golden_engine == "auto" ? "reference" : diff.golden_engine};
  plain.disabled = {"ALL"};
  plain.threads = diff.model.threads;
  auto model = plain.model();
  const std::vector<std::string> names = counterparts(mine.inputs(), model->inputs());
  std::vector<Tensor> given;
  for (const Port& port : model->inputs()) {
    auto found = std::find(names.begin(), names.end(), port.name);
    if (found == names.end()) fail(ErrorKind::not_found, port.name, "is an input of {} alone", path);
    given.push_back(inputs[static_cast<size_t>(found - names.begin())]);
  }
  diff::Golden golden =
      diff::golden_of(diff::trace_run(*model, given), fmt::format("{} ({}, passes off)", path, plain.engines[0]));
  const std::vector<std::string> results = counterparts(mine.outputs(), model->outputs());
  for (auto& [name, tensor] : golden.outputs)
    if (auto found = std::find(results.begin(), results.end(), name); found != results.end())
      name = mine.outputs()[static_cast<size_t>(found - results.begin())].name;
  return golden;
}

diff::Golden of_framework(const Diff& diff, const std::string& path, const Model& model,
                          const std::vector<Tensor>& inputs) {
  FrameworkAnswer answer = ask_framework({path, diff.model.signature, diff.python, true}, model, {inputs});
  diff::Golden golden{fmt::format("{} ({})", path, answer.maker), std::move(answer.values), {}};
  for (size_t i = 0; i < model.outputs().size(); ++i)
    golden.outputs.emplace_back(model.outputs()[i].name, answer.outputs[0][i]);
  return golden;
}

diff::Golden golden_of(const Diff& diff, const Model& model, const std::vector<Tensor>& inputs) {
  std::string path = expand_home(diff.golden);
  if (path.ends_with(".npz")) return saved_values(path);
  bool foreign = kind_of(path) == FileKind::foreign;
  if (diff.golden_engine == "framework" && !foreign)
    fail(ErrorKind::invalid_argument, "--golden-engine", "{} belongs to no framework", diff.golden);
  if (diff.golden_engine == "framework" || (diff.golden_engine == "auto" && foreign))
    return of_framework(diff, path, model, inputs);
  return of_engine(diff, path, model, inputs);
}

/// The passes of an optimised .om ran when it was made. Where it is compared with its source they run again, on that.
void ask_source(const Diff& diff, const diff::Subject& subject, const diff::Golden& golden,
                const std::vector<Tensor>& inputs, diff::Result& result) {
  std::string path = expand_home(diff.golden);
  if (result.culprits.empty() || path.ends_with(".npz") || kind_of(path) != FileKind::foreign) return;
  diff::Culprit& culprit = result.culprits[0];
  if (culprit.kernel || !culprit.pass.empty() || subject.load().optimised_by.empty()) return;
  diff::Subject source = subject;
  ModelArguments arguments = diff.model;
  arguments.path = diff.golden;
  source.load = [arguments] { return open(arguments); };
  auto mine = subject.model(), theirs = source.model();
  if (!std::equal(mine->inputs().begin(), mine->inputs().end(), theirs->inputs().begin(), theirs->inputs().end(),
                  [](const Port& a, const Port& b) { return a.name == b.name; }))
    return;
  diff::Result again = diff::find_difference(source, golden, inputs, {.most_culprits = 1});
  result.runs += again.runs;
  if (again.equal) {
    culprit.remark = fmt::format("the file: {} converted now gives a model that agrees", diff.golden);
  } else if (!again.culprits.empty() && again.culprits[0].row.key == culprit.row.key) {
    culprit.pass = again.culprits[0].pass;
    culprit.pass_alone = again.culprits[0].pass_alone;
    culprit.kernel = again.culprits[0].kernel;
    culprit.inner = again.culprits[0].inner;
  }
}

int report(const Diff& diff, const diff::Result& result) {
  fs::path folder = expand_home(diff.output);
  fs::create_directories(folder);
  write_file((folder / "index.html").string(), to_html(result));
  write_file((folder / "difference.json").string(), to_json(result));
  if (!result.culprits.empty()) write_reproducer(result.culprits[0], (folder / "reproducer").string());
  if (diff.json) {
    fmt::print("{}", to_json(result));
  } else {
    fmt::print("{}", to_text(result));
    if (!result.culprits.empty()) fmt::print("reproducer: {}\n", (folder / "reproducer" / "run.sh").string());
    fmt::print("page: {}\n", (folder / "index.html").string());
  }
  return result.equal ? 0 : kExitDiffers;
}

/// The graph that is exact in float64: golden's where it is a source, else the model's own, with the inputs in its order.
std::pair<diff::Subject, std::vector<Tensor>> truth_of(const Diff& diff, const Model& model,
                                                       const std::vector<Tensor>& inputs) {
  diff::Subject truth;
  ModelArguments arguments = diff.model;
  std::string path = expand_home(diff.golden);
  if (!path.ends_with(".npz") && kind_of(path) == FileKind::foreign) arguments.path = diff.golden;
  truth.load = [arguments] { return open(arguments); };
  truth.threads = diff.model.threads;
  truth = diff::in_float64(std::move(truth));
  auto exact = truth.model();
  std::vector<Tensor> ordered;
  for (const Port& port : exact->inputs())
    for (size_t i = 0; i < inputs.size(); ++i)
      if (model.inputs()[i].name == port.name) ordered.push_back(inputs[i]);
  if (ordered.size() != inputs.size())
    fail(ErrorKind::invalid_argument, "--truth", "{} has other inputs than {}", arguments.path, diff.model.path);
  return {truth, ordered};
}

/// Inputs that no file gives are others in each run.
int judge_rounding(Diff diff, const diff::Subject& subject, const Model& model, std::vector<Tensor> inputs,
                   diff::Golden golden) {
  std::vector<diff::TruthResult> runs;
  for (int run = 0; run < diff.runs; ++run) {
    if (run > 0) {
      ++diff.seed;
      std::vector<Tensor> others = inputs_of(diff, model);
      if (std::equal(inputs.begin(), inputs.end(), others.begin(),
                     [](const Tensor& a, const Tensor& b) { return a.same_bits(b); }))
        fail(ErrorKind::invalid_argument, "--runs", "all inputs are given by files: {} runs would be one", diff.runs);
      inputs = std::move(others), golden = golden_of(diff, model, inputs);
    }
    auto [truth, exact_inputs] = truth_of(diff, model, inputs);
    runs.push_back(diff::judge_by_truth(subject, inputs, golden, truth, exact_inputs));
  }
  diff::TruthResult result = diff::together(std::move(runs));
  result.mine = fmt::format("{} ({})", diff.model.path, diff.model.engines.empty() ? "cpu" : diff.model.engines);
  result.truth = "the graph in float64";
  fs::path folder = expand_home(diff.output);
  fs::create_directories(folder);
  write_file((folder / "index.html").string(), to_html(result));
  write_file((folder / "truth.json").string(), to_json(result));
  fmt::print("{}", diff.json ? to_json(result) : to_text(result));
  if (!diff.json) fmt::print("page: {}\n", (folder / "index.html").string());
  return result.worse() ? kExitDiffers : 0;
}

int diff_models(Diff diff) {
  diff::Subject subject = subject_of(diff);
  auto model = subject.model();
  if (!fs::exists(expand_home(diff.golden)) && tensorflow::checkpoint_prefix(expand_home(diff.golden)).empty())
    fail(ErrorKind::not_found, diff.golden, "does not exist{}", near_file(diff.golden));
  if (diff.runs > 1 && (diff.truth.empty() || diff.golden.ends_with(".npz")))
    fail(ErrorKind::invalid_argument, "--runs", "needs --truth, and a golden that can be run");
  std::vector<Tensor> inputs = inputs_of(diff, *model);
  diff::Golden golden;
  try {
    golden = golden_of(diff, *model, inputs);
  } catch (const FrameworkMissing& missing) {
    if (diff.json)
      print_json({{"equal", Json()}, {"reason", "framework missing: " + missing.reason}});
    else
      fmt::print("not compared: framework missing ({}); --golden-engine reference takes our own\n", missing.reason);
    return kExitNotVerified;
  }
  if (!diff.truth.empty()) return judge_rounding(diff, subject, *model, inputs, golden);
  diff::Result result =
      diff::find_difference(subject, golden, inputs, {.most_culprits = static_cast<size_t>(diff.most)});
  ask_source(diff, subject, golden, inputs, result);
  result.mine = fmt::format("{} ({})", diff.model.path, diff.model.engines.empty() ? "cpu" : diff.model.engines);
  return report(diff, result);
}

}  // namespace

void add_diff(Verb& app, Run& run) {
  auto diff = std::make_shared<Diff>();
  Verb verb = app.add_verb("diff", "the first operator that computes something else");
  add_model_options(verb, diff->model, diff->json);
  verb.add_option("golden", diff->golden,
                  "what is held to be right: .onnx, .pb, SavedModel, .h5, .keras, .om, or values in a .npz")
      .required();
  verb.add_option("-i,--input", diff->inputs, "NAME=FILE or FILE in order; others are random");
  verb.add_option("--inputs", diff->inputs_file, ".npz with the inputs by name");
  verb.add_option("--seed", diff->seed, "of random inputs").within(0, 1 << 30);
  verb.add_option("--golden-engine", diff->golden_engine, "framework, reference or cpu; by itself what fits the file")
      .one_of({"auto", "framework", "reference", "cpu"});
  verb.add_option("--disable", diff->disable, "passes to leave out of the first model, or ALL");
  verb.add_option("--precision", diff->precision, "the first model in f16 or bf16").one_of({"f16", "bf16"});
  verb.add_option("--truth", diff->truth,
                  "f64: judge both by the graph in float64 and tell for each operator whose rounding error is larger")
      .one_of({"f64"});
  verb.add_option("--runs", diff->runs,
                  "of --truth, each with other random inputs: the mean of their ratios, and what chance explains of it")
      .within(1, 1000);
  verb.add_option("--most", diff->most, "faults to look for, one after the other").within(1, 100);
  verb.add_option("-o,--output", diff->output, "folder for the page and the reproducer (cairn_diff)");
  verb.add_option("--python", diff->python,
                  "interpreter with TensorFlow or onnxruntime; default: $CAIRN_PYTHON, the one beside cairn, python3");
  verb.footer(
      "\nExit status: 0 no difference beyond rounding, 2 differs (with --truth: an output of ours errs\n"
      "more than 1.5 times theirs), 3 not compared (framework missing).\n\nExamples:\n"
      "  cairn diff model.om saved_model/\n  cairn diff model.om model.onnx --python ~/onnx/bin/python\n"
      "  cairn diff model.om model.om --golden-engine reference\n  cairn diff frozen.pb frozen.pb --precision f16\n"
      "  cairn diff --script train.py --steps 20\n"
      "  cairn diff model.om saved_model/ --truth f64");
  verb.callback([diff, &run] { run = [diff] { return diff_models(*diff); }; });
}

}  // namespace cairn::cli
