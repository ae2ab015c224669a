// Convolutions for rows of other files than that of Conv.
#pragma once

#include "frontends/onnx/importer.h"

namespace cairn::onnx {

/// The convolution of x, which stands for the node's first input, by a kernel, by the node's attributes; bias may be null.
Value* convolved(OpContext& context, Value* x, Value* kernel, Value* bias);

}  // namespace cairn::onnx
