// A model, a loss and an optimiser become one function that makes a training step, and one that measures the loss.
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
  bool classes = true;                // labels are class numbers, where the loss takes both
  std::string optimiser = "sgd";
  std::map<std::string, double> numbers;  // of the optimiser, besides its rate
  double weight_decay = 0;
  double clip_norm = 0;                    // most Euclidean length of all gradients together; 0: any
  double statistics_momentum = 0.9;        // share of the old mean and variance of a batch norm
  std::vector<std::string> train, freeze;  // patterns of weights' names with * and ?; empty `train`: all
  std::string labels = "labels";           // name of the input for labels
  uint64_t seed = 0;                       // of dropout
};

/// What training keeps between steps: a param of both functions or of the step alone.
struct TrainedState {
  enum class Kind : uint8_t { weight, statistic, slot, random } kind = Kind::weight;
  std::string name;  // weights and statistics as in the model, slots "weight/slot"
  Tensor start;
  Tensor origin = {};  // of weights and statistics: the constant in the model
  /// The order of dims in which the step keeps a weight; empty: as the model has it.
  std::vector<int64_t> permutation = {};
};

/// Params of step's @main: `inputs` of the model, then labels, learning rate and number of the step (from 1) as f32, then the
/// states. Results: loss, accuracy where there is one, then the states' new content (updates). Evaluate's @main has the
/// inputs, labels, and the weights and statistics, which come first among the states; it yields loss and accuracy.
struct TrainingProgram {
  Module step, evaluate;
  std::vector<TrainedState> states;
  size_t inputs = 0;
  size_t evaluated_states = 0;
  bool has_accuracy = false;
  double usual_rate = 0;  // of the optimiser
};

/// Throws Error: options that do not fit, a model without weights, nodes on the way that have no gradient.
TrainingProgram make_training(const Module& model, const TrainingOptions& options);

/// The elements in another order of dims, and a tensor that shares them with nobody.
Tensor transposed(const Tensor& x, const std::vector<int64_t>& permutation);
Tensor copy_of(const Tensor& x);

/// "conv*.weight": * stands for any bytes, ? for one.
bool matches_pattern(std::string_view name, std::string_view pattern);

}  // namespace cairn
