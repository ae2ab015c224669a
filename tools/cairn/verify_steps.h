// Steps of a run against the reference kernels, for `cairn verify --steps`.
#pragma once

#include <string>
#include <vector>

#include "session.h"

namespace cairn::cli {

struct StepCheck {
  std::string sources;
  std::string kernel;
  size_t nodes = 0;
  double difference = 0;  // the largest, as part of the largest element made, or of a tenth of the largest read
};

/// Runs the model once and each step of a fast engine again, node by node.
std::vector<StepCheck> check_steps(const Model& model, const std::vector<Tensor>& inputs);

}  // namespace cairn::cli
