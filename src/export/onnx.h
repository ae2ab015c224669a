// A module as an ONNX model: for viewers, for other runtimes and for a way back.
#pragma once

#include "ir/module.h"

namespace cairn {

struct OnnxModel {
  std::string bytes;
  std::vector<Tensor>
      data;  // of a file of its own, each from a multiple of kOnnxAlignment on; empty when there is none
};
inline constexpr size_t kOnnxAlignment = 64;

/// An ONNX model (operator set 20) with the module's inputs and outputs. A copy is optimised; operators without a counterpart are
/// written as what they decompose into. A variable that changes is an input, and its new content the output NAME:new; random
/// numbers come from the generator of the runtime that reads the model. Weights go to `data_file`, beside the model, where asked
/// for or where the model would be larger than the 2 GB that a file holds. Throws Error unsupported with all operators that have
/// no way.
OnnxModel onnx_of(const Module& module, const std::string& data_file, bool external = false);

}  // namespace cairn
