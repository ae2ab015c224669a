// cairn verify --steps: every fused or fast step of a run again, node by node with the reference kernels, on the inputs
// that the step had.
#include "verify_steps.h"

#include <cmath>
#include <map>

#include "passes/evaluate.h"

namespace cairn::cli {
namespace {

/// Keeps what every buffer held after it was written, because steps may write over their inputs.
class Checker : public Observer {
 public:
  explicit Checker(const Module& module) : module_(module) {}

  void step_ends(const Plan& plan, size_t number, void* const* buffers) override {
    const PlannedStep& step = plan.steps[number];
    if (step.engine != nullptr && step.kernel.rfind("reference/", 0) != 0) check(plan, step, buffers);
    for (size_t buffer : step.outputs) keep(plan, buffer, buffers);
  }

  std::vector<StepCheck> checks;

 private:
  using Key = std::pair<const Plan*, size_t>;

  HostValue read(const Plan& plan, size_t buffer, const Value& value, void* const* buffers) const {
    if (const Tensor* constant = constant_of(&value)) return {*constant, nullptr};  // its buffer may be gone: packed
    if (is_host_object(value.type)) return *static_cast<const HostValue*>(buffers[buffer]);
    auto kept = kept_.find({&plan, buffer});
    const Dims dims = value.type.shape.sizes();
    if (kept != kept_.end() && kept->second.bytes() == storage_bytes(value.type.dtype, *element_count(dims)))
      return {Tensor::view(value.type.dtype, dims, kept->second.data(), kept->second.owner()), nullptr};
    return {Tensor::view(value.type.dtype, dims, buffers[buffer], nullptr), nullptr};
  }

  void keep(const Plan& plan, size_t buffer, void* const* buffers) {
    const Value* value = plan.buffers[buffer].value;
    if (value == nullptr || is_host_object(value->type) || value->type.kind != Type::Kind::tensor) return;
    kept_[{&plan, buffer}] =
        Tensor::view(value->type.dtype, value->type.shape.sizes(), buffers[buffer], nullptr).owned();
  }

  void check(const Plan& plan, const PlannedStep& step, void* const* buffers) {
    std::map<const Value*, HostValue> known;
    for (const Node* node : step.group.nodes)
      if (!node->op->pure() || node->op->reference == nullptr) return;
    for (size_t i = 0; i < step.inputs.size(); ++i)
      known[step.group.inputs[i]] = read(plan, step.inputs[i], *step.group.inputs[i], buffers);
    for (const Node* node : step.group.nodes) {
      std::vector<HostValue> inputs;
      for (const Value* input : node->inputs) inputs.push_back(known.at(input));
      std::vector<HostValue> results = evaluate(*node, inputs, &module_);
      for (size_t i = 0; i < results.size(); ++i) known[node->result(i)] = std::move(results[i]);
    }
    double read_largest = 0;
    for (const Value* input : step.group.inputs)
      if (input->type.is_tensor() && input->type.dtype.is_float() && !constant_of(input))
        read_largest = std::max(read_largest, largest_of(known.at(input).tensor.as_f64()));
    StepCheck result{step_sources(module_, step), step.kernel, step.group.nodes.size()};
    for (size_t i = 0; i < step.outputs.size(); ++i) {
      const Value& value = *step.group.outputs[i];
      if (is_host_object(value.type)) continue;
      const Tensor found = Tensor::view(value.type.dtype, value.type.shape.sizes(), buffers[step.outputs[i]], nullptr);
      compare(found, known.at(&value).tensor, kCancelled * read_largest, result);
    }
    checks.push_back(std::move(result));
  }

  // What is left when large values cancel is measured by this part of them: the mean of what has none is rounding alone.
  static constexpr double kCancelled = 0.1;

  static double largest_of(const std::vector<double>& values) {
    double largest = 0;
    for (double value : values)
      if (std::isfinite(value)) largest = std::max(largest, std::abs(value));
    return largest;
  }

  static void compare(const Tensor& found, const Tensor& expected, double least_scale, StepCheck& result) {
    if (found.dtype() == kString) return;
    const std::vector<double> mine = found.as_f64(), theirs = expected.as_f64();
    double difference = 0;
    for (size_t i = 0; i < theirs.size(); ++i) {
      if (mine[i] == theirs[i] || (std::isnan(mine[i]) && std::isnan(theirs[i]))) continue;
      difference = std::max(difference, std::isfinite(mine[i]) ? std::abs(mine[i] - theirs[i]) : INFINITY);
    }
    const double scale = std::max({largest_of(theirs), least_scale, 1e-30});
    if (difference > 0) result.difference = std::max(result.difference, difference / scale);
  }

  const Module& module_;
  std::map<Key, Tensor> kept_;
};

}  // namespace

std::vector<StepCheck> check_steps(const Model& model, const std::vector<Tensor>& inputs) {
  Checker checker(model.module());
  RunOptions options;
  options.observer = &checker;
  model.run(inputs, options);
  return std::move(checker.checks);
}

}  // namespace cairn::cli
