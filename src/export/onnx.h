// A module as an ONNX model: for viewers, for other runtimes and for a way back.
#pragma once

#include "ir/module.h"

namespace cairn {

/// The bytes of an ONNX model (operator set 20) with the module's inputs and outputs. A copy is optimised; operators without a
/// counterpart are written as what they decompose into. Throws Error unsupported with all operators that have no way.
std::string onnx_of(const Module& module);

}  // namespace cairn
