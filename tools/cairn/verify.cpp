// cairn verify: runs a model and the framework it came from on the same inputs and compares the outputs.
#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>

#include "arrays.h"
#include "diff/difference.h"
#include "framework.h"
#include "frontends/tensorflow/saved_model.h"
#include "judge/distance.h"
#include "made_inputs.h"
#include "support/files.h"
#include "verbs.h"
#include "verify_steps.h"

namespace cairn::cli {
namespace {

namespace fs = std::filesystem;

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
  double largest = 0;   // difference
  double spread = 0;    // of the expected output over the inputs
  double rounding = 0;  // how far two right results may be apart
  bool same_shape = true;
  bool depends = true;  // whether the output changes with the input
  double relative() const { return largest == 0 ? 0 : largest / spread; }
  bool is_equal(double tolerance) const { return same_shape && (relative() <= tolerance || largest <= rounding); }
};

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
Comparison compare(const std::string& name, const std::vector<Tensor>& ours, const std::vector<Tensor>& expected) {
  Comparison result{name};
  std::vector<std::vector<double>> values;
  for (size_t run = 0; run < ours.size(); ++run) {
    if (ours[run].dims() != expected[run].dims()) {
      result.same_shape = false;
      result.largest = INFINITY;
      return result;
    }
    values.push_back(numbers_of(expected[run]));
    const judge::Distance distance = judge::distance(numbers_of(ours[run]), values.back());
    result.largest = std::max(result.largest, distance.unlike > 0 ? INFINITY : distance.most);
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
    bool good = each.is_equal(verify.tolerance);
    equal = equal && good;
    std::string note = !each.same_shape                     ? "other shape"
                       : !good                              ? "DIFFERS"
                       : each.relative() > verify.tolerance ? "equal within rounding"
                       : each.depends                       ? "equal"
                                                            : "equal, does not depend on the inputs";
    table.add({each.name, note, fmt::format("{:.3g}", each.spread), fmt::format("{:.3g}", each.largest),
               fmt::format("{:.2g}", each.relative())});
    json.push_back({{"name", each.name},
                    {"equal", good},
                    {"depends_on_inputs", each.depends},
                    {"spread", each.spread},
                    {"largest_difference", each.largest},
                    {"rounding", each.rounding}});
  }
  if (verify.json) {
    print_json({{"verified", equal}, {"tolerance", verify.tolerance}, {"outputs", json}});
  } else {
    table.print();
    fmt::print("\n{}: largest difference at most {:g} of each output's spread or within rounding{}\n",
               equal ? "verified" : "DIFFERS", verify.tolerance, equal ? "" : " is exceeded");
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

/// By run: of our model's outputs, or of the framework's.
using Outputs = std::vector<std::vector<Tensor>>;

std::vector<Tensor> of_output(const Outputs& runs, size_t output) {
  std::vector<Tensor> list;
  for (const std::vector<Tensor>& run : runs) list.push_back(run[output]);
  return list;
}

std::vector<Dims> dims_of(const std::vector<Tensor>& tensors) {
  std::vector<Dims> dims;
  for (const Tensor& tensor : tensors) dims.push_back(tensor.dims());
  return dims;
}

/// The factorisation whose vectors the output holds as columns as they come, or null: their signs are free.
const Node* vectors_of(const Module& module, size_t output) {
  const Value* value = module.main().body.results[output];
  const Node* node = value->producer;
  const bool vectors =
      node != nullptr && ((node->is("svd") && value->index > 0) || (node->is("self_adjoint_eig") && value->index == 1));
  return vectors && value->type.dtype == kF32 ? node : nullptr;
}

/// Gives columns of vectors the framework's signs. Both kinds of singular vectors of one factorisation turn together, since
/// their product is told.
void align_signs(const Module& module, Outputs& ours, const Outputs& theirs) {
  for (size_t run = 0; run < ours.size(); ++run) {
    std::map<const Node*, std::vector<bool>> turned;
    for (size_t i = 0; i < ours[run].size(); ++i) {
      const Node* node = vectors_of(module, i);
      Tensor& mine = ours[run][i];
      if (node == nullptr || mine.dims() != theirs[run][i].dims() || mine.count() == 0) continue;
      const std::span<float> own = mine.mutable_values<float>();
      const std::span<const float> other = theirs[run][i].values<float>();
      const auto columns = static_cast<size_t>(mine.dims().back()), rows = static_cast<size_t>(mine.dims().end()[-2]);
      auto [turns, fresh] = turned.try_emplace(node, own.size() / rows);
      for (size_t column = 0; column < own.size() / rows; ++column) {
        const size_t first = column / columns * rows * columns + column % columns;
        double product = 0;
        for (size_t row = 0; row < rows; ++row)
          product += double{own[first + row * columns]} * other[first + row * columns];
        if (fresh) turns->second[column] = product < 0;
        if (column < turns->second.size() && turns->second[column])
          for (size_t row = 0; row < rows; ++row) own[first + row * columns] *= -1;
      }
    }
  }
}

bool all_equal(const std::vector<Comparison>& comparisons, double tolerance) {
  return std::all_of(comparisons.begin(), comparisons.end(),
                     [&](const Comparison& each) { return !each.same_shape || each.is_equal(tolerance); });
}

/// What rounding can do is measured on the source where it can be had, until the tolerance or it explains every difference: what
/// the fast kernels do with it, which is cheap, then operator by operator.
void measure_rounding(const Verify& verify, const Model& model, const Outputs& inputs, const Outputs& ours,
                      std::vector<Comparison>& comparisons) {
  constexpr double kMostReferenceFlops = 3e9;
  constexpr size_t kRuns = 2;
  const auto explained = [&](const std::vector<double>& allowed) {
    for (size_t i = 0; i < comparisons.size(); ++i)
      comparisons[i].rounding = std::max(comparisons[i].rounding, allowed[i]);
    return all_equal(comparisons, verify.tolerance);
  };
  if (all_equal(comparisons, verify.tolerance)) return;
  const bool small = totals_of(*model.plan(dims_of(inputs[0]))).flops < kMostReferenceFlops;
  const auto load = [arguments = verify.model] { return open(arguments); };
  const std::vector<std::string> fast, thorough = {"reference"};
  for (const auto* engines : {&fast, &thorough})
    for (size_t run = 0; run < std::min(kRuns, inputs.size()); ++run) {
      if (engines == &thorough && !small) return;
      const diff::Allowance allowance{
          .load = load, .threads = verify.model.threads, .engines = *engines, .enough = explained};
      if (explained(allowance.of(inputs[run], ours[run]))) return;
    }
}

int verify_model(const Verify& verify) try {
  if (verify.steps) return verify_steps(verify);
  if (verify.against.empty())
    fail(ErrorKind::invalid_argument, "--against", "is missing; the model's source, or --steps");
  const std::string source = expand_home(verify.against);
  if (!fs::exists(source) && tensorflow::checkpoint_prefix(source).empty())
    fail(ErrorKind::not_found, verify.against, "does not exist{}", near_file(source));
  if (fs::exists(source) && kind_of(source) != FileKind::foreign)
    fail(ErrorKind::invalid_argument, "--against", "{} belongs to no framework; cairn diff compares two models",
         verify.against);
  auto model = prepare(verify.model);
  const int runs = verify.inputs.empty() ? verify.runs : 1;
  Outputs inputs, ours;
  std::vector<Tensor> first;  // state: the framework begins each run anew
  for (size_t i = 0; i < model->state().size(); ++i) first.push_back(model->state_value(i));
  for (int run = 0; run < runs; ++run) {
    inputs.push_back(run == 0 ? read_inputs(*model, fitted(verify.model, *model, source), verify.inputs)
                              : make_inputs(*model, dims_of(inputs[0]), static_cast<uint64_t>(run)));
    for (size_t i = 0; i < first.size(); ++i)
      if (first[i].defined()) model->set_state(i, first[i]);
    ours.push_back(run_watched(*model, inputs.back()));
  }
  const FrameworkAnswer answer = ask_framework({source, verify.model.signature, verify.python, false}, *model, inputs);
  align_signs(model->module(), ours, answer.outputs);
  std::vector<Comparison> comparisons;
  for (size_t i = 0; i < model->outputs().size(); ++i)
    comparisons.push_back(compare(model->outputs()[i].name, of_output(ours, i), of_output(answer.outputs, i)));
  measure_rounding(verify, *model, inputs, ours, comparisons);
  return report(verify, comparisons);
} catch (const FrameworkMissing& missing) {
  return not_verified(verify,
                      fmt::format("framework missing ({}); --python names an interpreter that has it, --steps checks "
                                  "each step with the reference kernels instead",
                                  missing.reason));
}

}  // namespace

void add_verify(Verb& app, Run& run) {
  auto verify = std::make_shared<Verify>();
  Verb verb = app.add_verb("verify", "compares a model with the framework it came from");
  add_model_options(verb, verify->model, verify->json);
  verb.add_option("--against", verify->against,
                  "the model's source: SavedModel folder, checkpoint prefix, .pb, .h5, .keras, .onnx");
  verb.add_flag("--steps", verify->steps, "instead: each step of one run again, node by node on the reference engine");
  verb.add_option("-i,--input", verify->inputs,
                  "NAME=FILE or FILE in order, for one run; none: several on made inputs");
  verb.add_option("--runs", verify->runs, "runs on made inputs").within(1, 1000);
  verb.add_option("--tolerance", verify->tolerance, "largest difference, as part of the output's spread");
  verb.add_option(
      "--python", verify->python,
      "interpreter with TensorFlow or onnxruntime; default: $CAIRN_PYTHON, or the one beside cairn, those of "
      "environments beside its own, python3");
  verb.footer(
      "\nExit status: 0 equal, 2 differs, 3 not verified (framework missing).\n\nExamples:\n"
      "  cairn verify model.om --against saved_model/\n  cairn verify model.om --against model.onnx --python "
      "~/onnx/bin/python\n"
      "  cairn verify model.om --against frozen.pb --input x=images.npy --tolerance 1e-5\n"
      "  cairn verify model.om --steps");
  verb.callback([verify, &run] { run = [verify] { return verify_model(*verify); }; });
}

}  // namespace cairn::cli
