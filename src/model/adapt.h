// Changes to the borders of a module that are asked for while converting: element types of inputs and outputs.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "ir/module.h"

namespace cairn {

/// Outputs by name, or all under "", are converted to the type. Throws Error not_found, unsupported.
void set_output_types(Module& module, const std::map<std::string, DType>& types);
/// Inputs of these names are handed in as `dtype` and converted to what the model computes in.
void set_input_types(Module& module, const std::vector<std::string>& inputs, DType dtype);

}  // namespace cairn
