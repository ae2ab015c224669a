// cairn verify --steps: every fused or fast step of a run again, node by node with the reference kernels, on the inputs
// that the step had.
#include "verify_steps.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "ir/evaluate.h"
#include "judge/distance.h"

namespace cairn::cli {
namespace {

/// Copies what a step reads before it runs, because it may write over that.
class Checker : public Observer {
 public:
  explicit Checker(const Module& module) : module_(module) {}

  bool needs_values() const override { return true; }
  void step_begins(const Plan& plan, size_t number, void* const* buffers) override {
    const PlannedStep& step = plan.steps[number];
    if (!is_fast(step)) return;
    known_.clear();
    for (size_t i = 0; i < step.inputs.size(); ++i)
      known_[step.group.inputs[i]] = read(*step.group.inputs[i], buffers[step.inputs[i]]);
  }

  void step_ends(const Plan& plan, size_t number, void* const* buffers) override {
    const PlannedStep& step = plan.steps[number];
    if (is_fast(step)) check(step, buffers);
  }

  std::vector<StepCheck> checks;

 private:
  /// By a fast engine, of nodes that the reference kernels can do again. Such a step has no steps within it.
  static bool is_fast(const PlannedStep& step) {
    return step.engine != nullptr && step.kernel.rfind("reference/", 0) != 0 &&
           std::all_of(step.group.nodes.begin(), step.group.nodes.end(),
                       [](const Node* node) { return node->op->pure() && node->op->reference != nullptr; });
  }

  static HostValue read(const Value& value, void* buffer) {
    if (const Tensor* constant = constant_of(&value)) return {*constant, nullptr};  // its buffer may be gone: packed
    if (is_host_object(value.type)) return *static_cast<const HostValue*>(buffer);
    return {Tensor::view(value.type.dtype, value.type.shape.sizes(), buffer, nullptr).owned(), nullptr};
  }

  void check(const PlannedStep& step, void* const* buffers) {
    double read_largest = 0;
    for (const Value* input : step.group.inputs)
      if (input->type.is_tensor() && input->type.dtype.is_float() && !constant_of(input))
        read_largest = std::max(read_largest, largest_of(known_.at(input).tensor));
    for (const Node* node : step.group.nodes) {
      std::vector<HostValue> inputs;
      for (const Value* input : node->inputs) inputs.push_back(known_.at(input));
      std::vector<HostValue> results = evaluate(*node, inputs, &module_);
      for (size_t i = 0; i < results.size(); ++i) known_[node->result(i)] = std::move(results[i]);
    }
    StepCheck result{step_sources(module_, step), step.kernel, step.group.nodes.size()};
    for (size_t i = 0; i < step.outputs.size(); ++i) {
      const Value& value = *step.group.outputs[i];
      if (is_host_object(value.type)) continue;
      const Tensor found = Tensor::view(value.type.dtype, value.type.shape.sizes(), buffers[step.outputs[i]], nullptr);
      compare(found, known_.at(&value).tensor, kCancelled * read_largest, result);
    }
    checks.push_back(std::move(result));
  }

  // What is left when large values cancel is measured by this part of them: the mean of what has none is rounding alone.
  static constexpr double kCancelled = 0.1;

  static double largest_of(const Tensor& tensor) { return judge::distance(tensor, tensor).largest; }

  static void compare(const Tensor& found, const Tensor& expected, double least_scale, StepCheck& result) {
    const judge::Distance distance = judge::distance(found, expected);
    const double scale = std::max({distance.largest, least_scale, 1e-30});
    result.difference = std::max(result.difference, distance.unlike > 0 ? INFINITY : distance.most / scale);
  }

  const Module& module_;
  std::map<const Value*, HostValue> known_;  // of the step that runs
};

}  // namespace

std::vector<StepCheck> check_steps(const Model& model, const std::vector<Tensor>& inputs) {
  Checker checker(model.module());
  RunOptions options;
  options.observer = &checker;
  run_watched(model, inputs, options);
  return std::move(checker.checks);
}

}  // namespace cairn::cli
