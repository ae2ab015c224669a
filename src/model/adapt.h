// Changes the element types of a module's inputs and outputs, as requested for a conversion.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "ir/module.h"

namespace cairn {

/// Converts outputs to the given types; the name "" stands for all outputs. Throws Error not_found, unsupported.
void set_output_types(Module& module, const std::map<std::string, DType>& types);
/// Makes the named inputs take `dtype`; they are converted to the type in which the model computes.
void set_input_types(Module& module, const std::vector<std::string>& inputs, DType dtype);

}  // namespace cairn
