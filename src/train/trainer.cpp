#include "train/trainer.h"

#include <algorithm>

#include "observe/watch.h"
#include "train/normalisation.h"

namespace cairn {
namespace {

constexpr const char* kSteps = "steps";

TensorRef ref(const Tensor& tensor) { return {tensor.dtype(), tensor.dims(), tensor.data()}; }

/// The state with its dims in the model's order, if the step stores it transposed.
Tensor in_order_of_model(const TrainedState& state, const Tensor& kept) {
  if (state.permutation.empty()) return kept;
  std::vector<int64_t> inverse(state.permutation.size());
  for (size_t i = 0; i < inverse.size(); ++i)
    inverse[static_cast<size_t>(state.permutation[i])] = static_cast<int64_t>(i);
  return transposed(kept, inverse);
}

}  // namespace

Trainer::Trainer(Module model, const TrainingOptions& options, const ModelOptions& run_options)
    : model_(std::move(model)), program_(make_training(model_, options)) {
  start_watch_from_environment();
  ModelOptions shared = run_options;
  shared.deterministic = true;  // a training rounds as sums of products do
  if (!shared.pool) shared.pool = make_pool(shared.threads > 0 ? shared.threads : available_threads());
  evaluate_ = Model::make(std::move(program_.evaluate), shared);
  shared.bind_state = true;
  step_ = Model::make(std::move(program_.step), shared);
  inputs_.assign(step_->inputs().begin(), step_->inputs().begin() + static_cast<int64_t>(program_.inputs) + 1);
  for (TrainedState& state : program_.states) states_.push_back(std::exchange(state.start, Tensor()));
}

Trainer::Result Trainer::run(const Model& model, std::span<const TensorRef> batch, std::span<const TensorRef> numbers,
                             size_t states) const {
  if (batch.size() != inputs_.size())
    fail(ErrorKind::invalid_argument, "", "a batch has {} tensors, the labels included; {} are given", inputs_.size(),
         batch.size());
  std::vector<TensorRef> all(batch.begin(), batch.end());
  all.insert(all.end(), numbers.begin(), numbers.end());
  for (size_t i = 0; i < states; ++i) all.push_back(ref(states_[i]));
  float results[2] = {};
  double wide[2] = {};
  DType dtype[2] = {kF32, kF32};
  RunWatch watch(model.module());
  RunOptions options;
  options.observer = watch.observer();
  model.run(
      all,
      [&](size_t i, DType type, std::span<const int64_t>) -> void* {
        dtype[i] = type;
        return type == kF64 ? static_cast<void*>(&wide[i]) : &results[i];
      },
      options);
  auto number = [&](size_t i) {
    return dtype[i] == kF64 ? wide[i] : Tensor::view(dtype[i], {}, &results[i], nullptr).as_f64()[0];
  };
  return {number(0), program_.has_accuracy ? number(1) : 0};
}

Trainer::Result Trainer::step(std::span<const TensorRef> batch, double rate) {
  const Tensor numbers[] = {Tensor::scalar_f32(static_cast<float>(rate)),
                            Tensor::scalar_f32(static_cast<float>(steps_ + 1))};
  const TensorRef refs[] = {ref(numbers[0]), ref(numbers[1])};
  const Result result = run(*step_, batch, refs, states_.size());
  ++steps_;
  return result;
}

Trainer::Result Trainer::evaluate(std::span<const TensorRef> batch) const {
  return run(*evaluate_, batch, {}, program_.evaluated_states);
}

std::vector<std::pair<std::string, Tensor>> Trainer::weights() const {
  std::vector<std::pair<std::string, Tensor>> weights;
  for (size_t i = 0; i < program_.evaluated_states; ++i)
    weights.emplace_back(program_.states[i].name, in_order_of_model(program_.states[i], states_[i]));
  return weights;
}

Module Trainer::trained() const {
  Module module = clone(model_);
  use_kept_statistics(module.main());
  std::unordered_map<const void*, Tensor> fresh;
  for (size_t i = 0; i < program_.evaluated_states; ++i) {
    const TrainedState& state = program_.states[i];
    fresh[state.origin.data()] = in_order_of_model(state, states_[i]).owned();
  }
  for (const auto& function : module.functions)
    for_each_block(function->body, [&](Block& block) {
      for (const auto& node : block.nodes) {
        const Tensor* value = node->results.empty() ? nullptr : constant_of(node->result());
        auto found = value ? fresh.find(value->data()) : fresh.end();
        if (found != fresh.end() && found->second.dims() == value->dims())
          node->attributes.set("value", Attribute(found->second));
      }
    });
  return module;
}

std::vector<std::pair<std::string, Tensor>> Trainer::checkpoint() const {
  std::vector<std::pair<std::string, Tensor>> all = {{kSteps, Tensor::scalar_i64(steps_)}};
  for (size_t i = 0; i < states_.size(); ++i)
    all.emplace_back(program_.states[i].name, in_order_of_model(program_.states[i], states_[i]));
  return all;
}

void Trainer::restore(const std::map<std::string, Tensor>& checkpoint) {
  auto find = [&](const std::string& name) -> const Tensor& {
    auto found = checkpoint.find(name);
    if (found == checkpoint.end())
      fail(ErrorKind::invalid_argument, name, "is not in the checkpoint, which is of another training");
    return found->second;
  };
  const Tensor& steps = find(kSteps);
  if (!steps.dtype().is_integer() || steps.count() != 1)
    fail(ErrorKind::invalid_argument, kSteps, "is {} in the checkpoint, expected an integer", to_string(steps.type()));
  std::vector<Tensor> fresh;
  for (size_t i = 0; i < states_.size(); ++i) {
    const TrainedState& state = program_.states[i];
    const Tensor& given = find(state.name);
    const Type expected = in_order_of_model(state, states_[i]).type();
    if (given.type() != expected)
      fail(ErrorKind::invalid_argument, state.name, "is {} in the checkpoint, expected {}", to_string(given.type()),
           to_string(expected));
    fresh.push_back(copy_of(state.permutation.empty() ? given : transposed(given, state.permutation)));
  }
  states_ = std::move(fresh);
  steps_ = steps.as_i64()[0];
}

}  // namespace cairn
