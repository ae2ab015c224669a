// Parsers of the platform's files that configure lower precision.
#pragma once

#include "passes/precision.h"

namespace cairn {

/// JSON of changes to the lists of a mixed mode: {"black-list": {"to-add": ["ReduceSumD"], "to-remove": []}}, also
/// "white-list" and "gray-list"; an operator removed from a list becomes gray. Throws Error invalid_argument.
void read_mix_lists(const std::string& text, PrecisionOptions& precision);

/// One operator per line: "conv1::InputDtype:float16,float32,OutputDtype:float32", or "OpType::Conv2D:InputDtype:...".
/// Throws Error invalid_argument.
std::vector<CustomTypes> read_custom_types(const std::string& text);

}  // namespace cairn
