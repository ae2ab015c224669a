#include "diff/trace.h"

#include <cmath>
#include <numeric>
#include <unordered_map>

#include "judge/rounding.h"

namespace cairn::diff {

namespace {

judge::Rounding rounding_of(const PlannedStep& step, const Tensor& made) {
  judge::Rounding rounding{judge::unit_roundoff(made.dtype()), 1};
  auto look = [&](const Value& value) {
    if (value.type.is_tensor() && value.type.dtype.is_float())
      rounding.roundoff = std::max(rounding.roundoff, judge::unit_roundoff(value.type.dtype));
  };
  for (const Node* node : step.group.nodes)
    for (const auto& value : node->results) look(*value);
  for (const Value* value : step.group.inputs) look(*value);
  rounding.terms = std::max(1.0, step.cost.flops / (2 * static_cast<double>(std::max<int64_t>(made.count(), 1))));
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
    if (plan.steps[step].control) begun_.push_back(trace_.values.size());
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
      judge::add_noise(tensor, rounding_of(step, tensor), *meddling_.noise + 7919 * place);
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
