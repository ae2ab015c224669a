// Trains a model: holds its weights, makes steps, measures, and returns the trained model.
#pragma once

#include "runtime/model.h"
#include "train/step.h"

namespace cairn {

class Trainer {
 public:
  /// Throws Error.
  Trainer(Module model, const TrainingOptions& options = {}, const ModelOptions& run_options = {});

  /// The model's inputs, then the labels.
  const std::vector<Port>& inputs() const { return inputs_; }
  bool has_accuracy() const { return program_.has_accuracy; }
  double usual_rate() const { return program_.usual_rate; }
  int64_t steps() const { return steps_; }
  /// Loss and accuracy of one batch.
  struct Result {
    double loss = 0, accuracy = 0;
  };
  /// Makes one step with this learning rate on a batch; the tensors are in the order of inputs(). Throws Error.
  Result step(std::span<const TensorRef> batch, double rate);
  /// Loss and accuracy with the current weights and statistics.
  Result evaluate(std::span<const TensorRef> batch) const;

  /// The current weights and statistics of batch norms, by name, in the model's order of dims.
  std::vector<std::pair<std::string, Tensor>> weights() const;
  /// The model with the current weights.
  Module trained() const;

  /// The state on which the next step depends: weights, statistics, the optimiser's slots and the number of steps made,
  /// by name, in the model's order of dims.
  std::vector<std::pair<std::string, Tensor>> checkpoint() const;
  /// Throws Error invalid_argument when names, types or dims are not those of this training.
  void restore(const std::map<std::string, Tensor>& checkpoint);

  const Model& step_model() const { return *step_; }
  const Model& evaluation_model() const { return *evaluate_; }

 private:
  Result run(const Model& model, std::span<const TensorRef> batch, std::span<const TensorRef> numbers,
             size_t states) const;

  Module model_;
  TrainingProgram program_;
  std::vector<Port> inputs_;
  std::shared_ptr<const Model> step_, evaluate_;
  std::vector<Tensor> states_;  // in the step's order of dims
  int64_t steps_ = 0;
};

}  // namespace cairn
