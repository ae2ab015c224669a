// Turns the weights that a model holds as constants into params of its function, so that they can be trained.
#pragma once

#include <string>
#include <vector>

#include "ir/module.h"

namespace cairn {

struct LiftOptions {
  /// Names of the constants; empty: every weight that has a name and `min_elements` elements.
  std::vector<std::string> names;
  int64_t min_elements = 2;
  /// Without `names`: the module whose sources tell which constants are weights (is_weight).
  const Module* module = nullptr;
};

/// A constant that became a param.
struct Parameter {
  std::string name;  // of the param, equal to the constant's name
  size_t param;      // index among the function's params
  Tensor value;
};

/// Replaces each chosen constant, also in regions, by a new param. Constants of equal name and elements share a param.
/// The constants of called functions are not lifted: inline calls first. Throws Error not_found for a name that no
/// float constant has.
std::vector<Parameter> lift_constants(Function& function, const LiftOptions& options = {});

/// The reverse of lift_constants: replaces the params by constants.
void lower_parameters(Function& function, const std::vector<Parameter>& parameters);

}  // namespace cairn
