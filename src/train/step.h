// Builds from a model, a loss and an optimiser one function that makes a training step and one that measures the loss.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "ir/module.h"

namespace cairn {

struct TrainingOptions {
  std::string loss = "cross_entropy";
  std::map<std::string, double> loss_numbers;
  std::optional<int64_t> class_axis;  // of the answers; none: 1 for ONNX images, else the last
  bool classes = true;                // labels are class numbers, for losses that take both forms
  std::string optimiser = "sgd";
  std::map<std::string, double> numbers;  // hyperparameters of the optimiser, without the rate
  double weight_decay = 0;
  double clip_norm = 0;                    // bound on the joint Euclidean norm of all gradients; 0: none
  double statistics_momentum = 0.9;        // weight of the old mean and variance of a batch norm
  std::vector<std::string> train, freeze;  // patterns of weights' names with * and ?; empty `train`: all
  std::string labels = "labels";           // name of the input for labels
  uint64_t seed = 0;                       // of dropout
};

/// A state that training keeps between steps: a param of both functions, or of the step only.
struct TrainedState {
  enum class Kind : uint8_t { weight, statistic, slot, random } kind = Kind::weight;
  std::string name;  // weights and statistics as in the model, slots "weight/slot"
  Tensor start;
  Tensor origin = {};  // for weights and statistics: the constant in the model
  /// The permutation of dims in which the step stores a weight; empty: as in the model.
  std::vector<int64_t> permutation = {};
};

/// The params of step's @main: the model's `inputs`, then labels, learning rate and number of the step (from 1) as f32,
/// then the states. Its results: loss, accuracy if there is one, then the states' new content (updates). Evaluate's
/// @main has the inputs, labels, and the weights and statistics (the first of the states); it returns loss and
/// accuracy.
struct TrainingProgram {
  Module step, evaluate;
  std::vector<TrainedState> states;
  size_t inputs = 0;
  size_t evaluated_states = 0;
  bool has_accuracy = false;
  double usual_rate = 0;  // of the optimiser
};

/// Throws Error when options do not fit, when the model has no weights, or when a node on the path has no gradient.
TrainingProgram make_training(const Module& model, const TrainingOptions& options);

/// The transposed tensor, as a copy of the elements.
Tensor transposed(const Tensor& x, const std::vector<int64_t>& permutation);
Tensor copy_of(const Tensor& x);

/// Matches patterns such as "conv*.weight": * stands for any bytes, ? for one byte.
bool matches_pattern(std::string_view name, std::string_view pattern);

}  // namespace cairn
