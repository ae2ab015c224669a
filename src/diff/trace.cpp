#include "diff/trace.h"

#include <cmath>
#include <numeric>
#include <unordered_map>

#include "judge/rounding.h"

namespace cairn::diff {

namespace {

/// Makes one element from many. Softmax and its like do too, but each of their results has an error of its own size.
bool sums(const Node& node) {
  const auto count = [](const Value& value) {
    return value.type.shape.known() ? element_count(value.type.shape.sizes()) : std::nullopt;
  };
  return node.op->has(kContraction) || (node.op->has(kReduction) && count(*node.result(0)) < count(*node.inputs[0]));
}

/// What rounding in a step can do, by what it reads; `sums` is of one term.
judge::Rounding rounding_of(const Plan& plan, const PlannedStep& step, void* const* buffers) {
  judge::Rounding rounding;
  rounding.whole = true;
  std::map<const Value*, double> sizes;
  for (size_t i = 0; i < step.inputs.size(); ++i) {
    const std::optional<Tensor> tensor = tensor_at(plan, step.inputs[i], buffers);
    rounding.whole = rounding.whole && tensor && judge::is_whole(*tensor);
    // What a kernel adds behind a sum (a mask of -1e9) says nothing of the sum's size.
    if (step.group.nodes.size() > 1 && tensor && judge::is_measured(tensor->dtype()))
      sizes[step.group.inputs[i]] = judge::root_mean_square(*tensor);
  }
  const auto size_of = [&](const Value* value) {
    const auto found = sizes.find(value);
    return found == sizes.end() ? INFINITY : found->second;
  };
  const auto look = [&](const Value& value) {
    if (value.type.is_tensor() && value.type.dtype.is_float())
      rounding.roundoff = std::max(rounding.roundoff, judge::unit_roundoff(value.type.dtype));
  };
  rounding.roundoff = 0;
  for (const Value* value : step.group.inputs) look(*value);
  for (const Node* node : step.group.nodes) {
    for (const auto& value : node->results) look(*value);
    if (sums(*node))
      rounding.sums = std::max(rounding.sums,
                               size_of(node->inputs[0]) * (node->op->has(kContraction) ? size_of(node->inputs[1]) : 1));
  }
  return rounding;
}

class Tracer final : public Observer {
 public:
  Tracer(const Module& module, const Meddling& meddling, Observer* fault, Trace& trace)
      : module_(module), meddling_(meddling), fault_(fault), trace_(trace) {}

  bool needs_values() const override { return true; }
  void plan_begins(const Plan& plan) override {
    if (fault_) fault_->plan_begins(plan);
  }
  void step_begins(const Plan& plan, size_t step, void* const* buffers) override {
    if (fault_) fault_->step_begins(plan, step, buffers);
    if (plan.steps[step].control)
      begun_.push_back(trace_.values.size());
    else if (meddling_.noise)
      rounding_ = rounding_of(plan, plan.steps[step], buffers);
  }
  void step_ends(const Plan& plan, size_t index, void* const* buffers) override {
    if (fault_) fault_->step_ends(plan, index, buffers);
    const PlannedStep& step = plan.steps[index];
    if (step.control) return leave(step);
    if (step.group.nodes.empty()) return;  // a copy makes nothing new
    std::vector<size_t> inputs;
    for (const Value* value : step.group.inputs) gather(value, inputs);
    auto [names, fresh] = names_.try_emplace(&plan);
    if (fresh) names->second = step_names(plan, module_);
    for (size_t i = 0; i < step.group.outputs.size(); ++i)
      if (auto tensor = tensor_at(plan, step.outputs[i], buffers))
        add(step, *step.group.outputs[i], names->second[index].outputs[i], *tensor, inputs);
  }

 private:
  /// What is inside a loop or branch was told by itself; its results were made from all of that.
  void leave(const PlannedStep& step) {
    std::vector<size_t> inputs(trace_.values.size() - begun_.back());
    std::iota(inputs.begin(), inputs.end(), begun_.back());
    begun_.pop_back();
    for (const Value* value : step.control->inputs) gather(value, inputs);
    Traced traced;
    traced.producer = step.control, traced.step = &step, traced.inputs = std::move(inputs);
    for (const auto& result : step.control->results) places_[result.get()] = trace_.values.size();
    trace_.values.push_back(std::move(traced));
  }

  /// Nodes that only give elements another shape have no step: what they read counts.
  void gather(const Value* value, std::vector<size_t>& inputs) const {
    if (auto found = places_.find(value); found != places_.end())
      inputs.push_back(found->second);
    else if (value->producer)
      for (const Value* before : value->producer->inputs) gather(before, inputs);
  }

  void add(const PlannedStep& step, const Value& value, const ValueName& name, Tensor tensor,
           const std::vector<size_t>& inputs) {
    size_t place = trace_.values.size();
    if (auto golden = meddling_.replaced.find(place); golden != meddling_.replaced.end()) {
      CHECK(golden->second.bytes() == tensor.bytes(), "{} bytes for {}", golden->second.bytes(), tensor.bytes());
      std::memcpy(tensor.mutable_data(), golden->second.data(), tensor.bytes());
    } else if (meddling_.noise) {
      judge::Rounding rounding = rounding_;
      rounding.terms = std::max(1.0, step.cost.flops / (2 * static_cast<double>(std::max<int64_t>(tensor.count(), 1))));
      rounding.sums *= rounding.terms;
      judge::add_noise(tensor, rounding, *meddling_.noise + 7919 * place);
    }
    places_[&value] = place;
    Traced traced{{name.origin.name, name.places.empty() ? 0 : name.places[0], turns_[&value]++},
                  name.origin.op,
                  name.origin.location,
                  step.kernel,
                  {},
                  value.producer,
                  &step,
                  inputs};
    if (meddling_.keep) traced.tensor = tensor.owned();
    trace_.values.push_back(std::move(traced));
  }

  const Module& module_;
  std::unordered_map<const Plan*, std::vector<StepNames>> names_;
  const Meddling& meddling_;
  Observer* fault_;
  Trace& trace_;
  std::unordered_map<const Value*, size_t> places_, turns_;
  judge::Rounding rounding_;   // of the step that runs
  std::vector<size_t> begun_;  // of each control step that is open: values before it
};

}  // namespace

Trace trace_run(const Model& model, const std::vector<Tensor>& inputs, const Meddling& meddling, Observer* fault) {
  std::vector<Tensor> state;
  for (size_t i = 0; i < model.state().size(); ++i) state.push_back(model.state_value(i));
  Trace trace;
  Tracer tracer(model.module(), meddling, fault, trace);
  std::vector<Tensor> outputs = model.run(inputs, {.observer = &tracer});
  for (size_t i = 0; i < outputs.size(); ++i) trace.outputs.emplace_back(model.outputs()[i].name, outputs[i]);
  for (size_t i = 0; i < state.size(); ++i)
    if (state[i].defined()) model.set_state(i, state[i]);
  return trace;
}

}  // namespace cairn::diff
