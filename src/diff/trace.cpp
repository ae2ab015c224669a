#include "diff/trace.h"

#include <cmath>
#include <numeric>
#include <unordered_map>

namespace cairn::diff {

namespace {

/// A uniform number in [-1, 1) of a place and an element (splitmix64).
double uniform(uint64_t seed) {
  seed += 0x9e3779b97f4a7c15u;
  seed = (seed ^ (seed >> 30)) * 0xbf58476d1ce4e5b9u;
  seed = (seed ^ (seed >> 27)) * 0x94d049bb133111ebu;
  return static_cast<double>((seed ^ (seed >> 31)) >> 11) * 0x1p-52 - 1;
}

/// What rounding in an operator may do to a float: `roundoff` of its narrowest type and `terms` summed in f32 or wider.
struct Rounding {
  double roundoff, terms;
};

double roundoff_of(DType dtype) {
  if (dtype == kF16) return 0x1p-11;
  if (dtype == kBF16) return 0x1p-8;
  return dtype == kF64 ? 0x1p-53 : 0x1p-24;
}

Rounding rounding_of(const PlannedStep& step, const Tensor& made) {
  Rounding rounding{roundoff_of(made.dtype()), 1};
  auto look = [&](const Value& value) {
    if (value.type.is_tensor() && value.type.dtype.is_float())
      rounding.roundoff = std::max(rounding.roundoff, roundoff_of(value.type.dtype));
  };
  for (const Node* node : step.group.nodes)
    for (const auto& value : node->results) look(*value);
  for (const Value* value : step.group.inputs) look(*value);
  rounding.terms = std::max(1.0, step.cost.flops / (2 * static_cast<double>(std::max<int64_t>(made.count(), 1))));
  return rounding;
}

template <class Read, class Write>
void move(size_t count, Rounding rounding, uint64_t seed, Read&& read, Write&& write) {
  double square = 0;
  size_t finite = 0;
  for (size_t i = 0; i < count; ++i)
    if (double value = read(i); std::isfinite(value)) square += value * value, ++finite;
  double size = finite > 0 ? std::sqrt(square / static_cast<double>(finite)) : 0;
  // A sum of many terms errs by their size, whatever is left of it; else an element errs by its own size.
  double sums = std::min(rounding.roundoff, 0x1p-24) * std::sqrt(rounding.terms);
  bool narrow = rounding.roundoff > 0x1p-24;
  double common = rounding.terms > 1 ? size * (sums + (narrow ? rounding.roundoff : 0)) : 0;
  for (size_t i = 0; i < count; ++i)
    if (double value = read(i); std::isfinite(value))
      write(i, value + (common + 2 * rounding.roundoff * std::abs(value)) * uniform(seed * 0x100000001b3u + i));
}

void add_noise(Tensor tensor, Rounding rounding, uint64_t seed) {
  auto count = static_cast<size_t>(tensor.count());
  if (tensor.dtype() == kF32) {
    auto values = tensor.mutable_values<float>();
    move(
        count, rounding, seed, [&](size_t i) { return values[i]; },
        [&](size_t i, double value) { values[i] = static_cast<float>(value); });
  } else if (tensor.dtype() == kF16 || tensor.dtype() == kBF16) {
    auto values = tensor.mutable_values<uint16_t>();
    bool half = tensor.dtype() == kF16;
    move(
        count, rounding, seed, [&](size_t i) { return half ? half_to_float(values[i]) : bfloat_to_float(values[i]); },
        [&](size_t i, double value) {
          values[i] = half ? float_to_half(static_cast<float>(value)) : float_to_bfloat(static_cast<float>(value));
        });
  } else if (tensor.dtype() == kF64) {
    auto values = tensor.mutable_values<double>();
    move(
        count, rounding, seed, [&](size_t i) { return values[i]; }, [&](size_t i, double value) { values[i] = value; });
  }
}

class Tracer final : public Observer {
 public:
  Tracer(const Module& module, const Meddling& meddling, Observer* fault, Trace& trace)
      : module_(module), meddling_(meddling), fault_(fault), trace_(trace) {}

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
      add_noise(tensor, rounding_of(step, tensor), *meddling_.noise + 7919 * place);
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
