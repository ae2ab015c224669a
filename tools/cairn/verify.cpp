// cairn verify: runs a model and the framework it came from on the same inputs and compares the outputs.
#include <algorithm>
#include <cmath>
#include <filesystem>

#include "arrays.h"
#include "frontends/tensorflow/saved_model.h"
#include "support/files.h"
#include "verbs.h"
#include "verify_steps.h"
#include "worker.h"

namespace cairn::cli {
namespace {

namespace fs = std::filesystem;

/// Arguments: source, signature, number of runs, folder. Reads in_0.npz ..., writes out_0.npz ... with the outputs in the
/// framework's names. Exits with 3 when the framework is not installed.
constexpr const char* kScript = R"py(
import os, sys
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
source, signature, runs, folder = sys.argv[1:5]
try:
    import numpy as np
    if source.endswith(".onnx"):
        import onnxruntime
    else:
        import tensorflow as tf
except ImportError as error:
    sys.stdout.write(error.name or str(error))
    sys.exit(3)

def names(tensor):
    return tensor if ":" in tensor else tensor + ":0"

if source.endswith(".onnx"):
    session = onnxruntime.InferenceSession(source, providers=["CPUExecutionProvider"])
    def run(feeds):
        return dict(zip([o.name for o in session.get_outputs()], session.run(None, feeds)))
elif os.path.isdir(source):
    model = tf.saved_model.load(source)
    key = signature or ("serving_default" if "serving_default" in model.signatures else list(model.signatures)[0])
    function = model.signatures[key]
    def run(feeds):
        return {name: value.numpy() for name, value in function(**{n: tf.constant(v) for n, v in feeds.items()}).items()}
else:
    graph = tf.Graph()
    session = tf.compat.v1.Session(graph=graph)
    with graph.as_default():
        if os.path.exists(source + ".meta"):
            tf.compat.v1.train.import_meta_graph(source + ".meta", clear_devices=True).restore(session, source)
        else:
            with open(source, "rb") as file:
                tf.import_graph_def(tf.compat.v1.GraphDef.FromString(file.read()), name="")
    with open(folder + "/outputs") as file:
        outputs = file.read().split("\n")[:-1]
    def run(feeds):
        values = session.run([names(o) for o in outputs], {names(n): v for n, v in feeds.items()})
        return dict(zip(outputs, values))

for i in range(int(runs)):
    with np.load(f"{folder}/in_{i}.npz") as feeds:
        outputs = run({name: feeds[name] for name in feeds.files})
    arrays = {name: np.asarray(value) for name, value in outputs.items()}
    np.savez(f"{folder}/out_{i}.npz", **{n: a.astype("S") if a.dtype == object else a for n, a in arrays.items()})
)py";

struct Verify {
  ModelArguments model;
  std::string against, python;
  std::vector<std::string> inputs;
  double tolerance = 1e-4;
  int runs = 4;
  bool json = false, steps = false;
};

struct Comparison {
  std::string name;
  double largest = 0;  // difference
  double spread = 0;   // of the expected output over the inputs
  bool same_shape = true;
  bool depends = true;  // whether the output changes with the input
  double relative() const { return largest == 0 ? 0 : largest / spread; }
};

const Tensor* find_output(const std::map<std::string, Tensor>& outputs, const std::string& name) {
  for (const std::string& each : {name, name + ":0", name.substr(0, name.rfind(':'))})
    if (auto found = outputs.find(each); found != outputs.end()) return &found->second;
  return nullptr;
}

/// Texts as numbers that differ where the texts do, within what a double holds exactly.
std::vector<double> numbers_of(const Tensor& tensor) {
  if (tensor.dtype() != kString) return tensor.as_f64();
  std::vector<double> numbers;
  for (const std::string& text : tensor.values<std::string>())
    numbers.push_back(static_cast<double>(std::hash<std::string>()(text) >> 11));
  return numbers;
}

/// Largest difference over the runs, and the root mean square over elements of the standard deviation over the runs
/// (of one run: over the elements).
Comparison compare(const std::string& name, const std::vector<Tensor>& ours,
                   const std::vector<const Tensor*>& expected) {
  Comparison result{name};
  std::vector<std::vector<double>> values;
  for (size_t run = 0; run < ours.size(); ++run) {
    if (ours[run].dims() != expected[run]->dims()) {
      result.same_shape = false;
      result.largest = INFINITY;
      return result;
    }
    values.push_back(numbers_of(*expected[run]));
    std::vector<double> mine = numbers_of(ours[run]);
    for (size_t i = 0; i < mine.size(); ++i) {
      if (std::isnan(mine[i]) && std::isnan(values[run][i])) continue;
      double difference = mine[i] == values[run][i] ? 0 : std::abs(mine[i] - values[run][i]);
      if (!(difference <= result.largest)) result.largest = std::isnan(difference) ? INFINITY : difference;
    }
  }
  bool over_runs = values.size() > 1;
  for (const auto& run : values) over_runs = over_runs && run.size() == values[0].size();
  if (!over_runs) values.resize(1);
  double variance = 0, square = 0;
  size_t groups = over_runs ? values[0].size() : 1, members = over_runs ? values.size() : values[0].size();
  for (size_t group = 0; group < groups; ++group) {
    double sum = 0, squares = 0;
    for (size_t member = 0; member < members; ++member) {
      double value = over_runs ? values[member][group] : values[0][member];
      sum += value, squares += value * value;
    }
    double mean = members ? sum / double(members) : 0;
    variance += members ? std::max(0.0, squares / double(members) - mean * mean) : 0;
    square += members ? squares / double(members) : 0;
  }
  result.spread = groups ? std::sqrt(variance / double(groups)) : 0;
  result.depends = !over_runs || groups == 0 || variance > 1e-12 * square;
  return result;
}

int not_verified(const Verify& verify, const std::string& reason) {
  if (verify.json)
    print_json({{"verified", Json()}, {"reason", reason}});
  else
    fmt::print("not verified: {}\n", reason);
  return kExitNotVerified;
}

int report(const Verify& verify, const std::vector<Comparison>& comparisons) {
  bool equal = true;
  Json json = Json::array();
  Table table({"output", "", ">spread", ">largest difference", ">of spread"});
  for (const Comparison& each : comparisons) {
    bool good = each.same_shape && each.relative() <= verify.tolerance;
    equal = equal && good;
    std::string note = !each.same_shape ? "other shape"
                       : !good          ? "DIFFERS"
                       : each.depends   ? "equal"
                                        : "equal, does not depend on the inputs";
    table.add({each.name, note, fmt::format("{:.3g}", each.spread), fmt::format("{:.3g}", each.largest),
               fmt::format("{:.2g}", each.relative())});
    json.push_back({{"name", each.name},
                    {"equal", good},
                    {"depends_on_inputs", each.depends},
                    {"spread", each.spread},
                    {"largest_difference", each.largest}});
  }
  if (verify.json) {
    print_json({{"verified", equal}, {"tolerance", verify.tolerance}, {"outputs", json}});
  } else {
    table.print();
    fmt::print("\n{}: largest difference at most {:g} of each output's spread{}\n", equal ? "verified" : "DIFFERS",
               verify.tolerance, equal ? "" : " is exceeded");
  }
  return equal ? 0 : kExitDiffers;
}

int verify_steps(const Verify& verify) {
  auto model = prepare(verify.model);
  std::vector<StepCheck> checks = check_steps(*model, read_inputs(*model, verify.model, verify.inputs));
  std::stable_sort(checks.begin(), checks.end(),
                   [](const StepCheck& a, const StepCheck& b) { return a.difference > b.difference; });
  const size_t faults = static_cast<size_t>(std::count_if(
      checks.begin(), checks.end(), [&](const StepCheck& check) { return !(check.difference <= verify.tolerance); }));
  Json json = Json::array();
  Table table({"step", "kernel", ">nodes", ">largest difference"});
  constexpr size_t kShown = 10;
  for (const StepCheck& check : checks) {
    json.push_back({{"sources", check.sources},
                    {"kernel", check.kernel},
                    {"nodes", check.nodes},
                    {"difference", check.difference}});
    if (json.size() <= std::max(kShown, faults))
      table.add({check.sources, check.kernel, std::to_string(check.nodes), fmt::format("{:.2g}", check.difference)});
  }
  if (verify.json) {
    print_json({{"verified", faults == 0}, {"tolerance", verify.tolerance}, {"steps", json}});
  } else {
    table.print();
    fmt::print("\n{} steps run again node by node, {} differ by more than {:g} of their largest element\n",
               checks.size(), faults, verify.tolerance);
  }
  return faults == 0 ? 0 : kExitDiffers;
}

int verify_model(const Verify& verify) {
  if (verify.steps) return verify_steps(verify);
  if (verify.against.empty())
    fail(ErrorKind::invalid_argument, "--against", "is missing; the model's source, or --steps");
  std::string source = fs::absolute(expand_home(verify.against)).string();
  const std::string checkpoint = tensorflow::checkpoint_prefix(source);
  if (!checkpoint.empty()) source = checkpoint;
  if (checkpoint.empty() && !fs::exists(source)) fail(ErrorKind::not_found, verify.against, "does not exist");
  auto model = prepare(verify.model);
  TemporaryFolder folder;
  int runs = verify.inputs.empty() ? verify.runs : 1;
  std::vector<std::vector<Tensor>> ours;  // by run
  for (int run = 0; run < runs; ++run) {
    std::vector<Tensor> inputs = read_inputs(*model, verify.model, verify.inputs);
    for (size_t i = 0; run > 0 && i < inputs.size(); ++i)
      inputs[i] = random_tensor(inputs[i].dtype(), inputs[i].dims(), 1000 * static_cast<uint64_t>(run) + i);
    std::vector<std::pair<std::string, Tensor>> named;
    for (size_t i = 0; i < inputs.size(); ++i) named.emplace_back(model->inputs()[i].name, inputs[i]);
    write_npz(named, (folder.path() / fmt::format("in_{}.npz", run)).string());
    ours.push_back(run_watched(*model, inputs));
  }
  std::string names;
  for (const Port& port : model->outputs()) names += port.name + "\n";
  write_file((folder.path() / "outputs").string(), names);

  std::string python = find_python(verify.python), log = (folder.path() / "log").string();
  int status = run_program(
      {python, "-c", kScript, source, verify.model.signature, std::to_string(runs), folder.path().string()}, log);
  if (status == 127) return not_verified(verify, fmt::format("framework missing ({} cannot be started)", python));
  std::string said = printable(read_file(log));
  if (status == 3) return not_verified(verify, fmt::format("framework missing ({} in {})", said, python));
  if (status != 0) fail_with_log(verify.against, read_file(log));
  std::vector<std::map<std::string, Tensor>> theirs;
  for (int run = 0; run < runs; ++run)
    theirs.push_back(read_npz((folder.path() / fmt::format("out_{}.npz", run)).string()));
  std::vector<Comparison> comparisons;
  for (size_t i = 0; i < model->outputs().size(); ++i) {
    const std::string& name = model->outputs()[i].name;
    std::vector<Tensor> mine;
    std::vector<const Tensor*> expected;
    for (int run = 0; run < runs; ++run) {
      mine.push_back(ours[static_cast<size_t>(run)][i]);
      expected.push_back(find_output(theirs[static_cast<size_t>(run)], name));
      if (!expected.back()) fail(ErrorKind::not_found, name, "is no output of {}", verify.against);
    }
    comparisons.push_back(compare(name, mine, expected));
  }
  return report(verify, comparisons);
}

}  // namespace

void add_verify(Verb& app, Run& run) {
  auto verify = std::make_shared<Verify>();
  Verb verb = app.add_verb("verify", "compares a model with the framework it came from");
  add_model_options(verb, verify->model, verify->json);
  verb.add_option("--against", verify->against, "the model's source: SavedModel folder, checkpoint prefix, .pb, .onnx");
  verb.add_flag("--steps", verify->steps, "instead: each step of one run again, node by node on the reference engine");
  verb.add_option("-i,--input", verify->inputs,
                  "NAME=FILE or FILE in order, for one run; none: several on random inputs");
  verb.add_option("--runs", verify->runs, "runs on random inputs").within(1, 1000);
  verb.add_option("--tolerance", verify->tolerance, "largest difference, as part of the output's spread");
  verb.add_option("--python", verify->python,
                  "interpreter with TensorFlow or onnxruntime; default: $CAIRN_PYTHON, the one beside cairn, python3");
  verb.footer(
      "\nExit status: 0 equal, 2 differs, 3 not verified (framework missing).\n\nExamples:\n"
      "  cairn verify model.om --against saved_model/\n  cairn verify model.om --against model.onnx --python "
      "~/onnx/bin/python\n"
      "  cairn verify model.om --against frozen.pb --input x=images.npy --tolerance 1e-5\n"
      "  cairn verify model.om --steps");
  verb.callback([verify, &run] { run = [verify] { return verify_model(*verify); }; });
}

}  // namespace cairn::cli
