// Weights that a model holds as constants become params of its function, so that they can be trained.
#pragma once

#include <string>
#include <vector>

#include "ir/module.h"

namespace cairn {

struct LiftOptions {
  /// Names of the constants; empty: every weight that has a name and `min_elements` elements.
  std::vector<std::string> names;
  int64_t min_elements = 2;
  /// Whose sources tell which constants are weights (is_weight), where there are no `names`.
  const Module* module = nullptr;
};

/// A constant that became a param.
struct Parameter {
  std::string name;  // of the param, as the constant was called
  size_t param;      // index among the function's params
  Tensor value;
};

/// Appends a param for each constant chosen, those in regions as well: constants of one name and equal elements share one.
/// Functions that are called keep theirs: inline calls first. Throws Error not_found for a name that no float constant has.
std::vector<Parameter> lift_constants(Function& function, const LiftOptions& options = {});

/// The reverse: the params are constants of the function again.
void lower_parameters(Function& function, const std::vector<Parameter>& parameters);

}  // namespace cairn
