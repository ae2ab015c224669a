// Convolutions for rows of other files than that of Conv.
#pragma once

#include "frontends/onnx/importer.h"

namespace cairn::onnx {

/// The convolution of x, which stands for the node's first input, by a kernel, by the node's attributes; bias may be null.
/// Of integers where their zero points are given: that of x, and one for all or each channel of the kernel.
Value* convolved(OpContext& context, Value* x, Value* kernel, Value* bias, const std::vector<Value*>& zeros = {});

/// The convolution of integers in volumes [n, depth, height, width, channels] by conv3d's attributes, with the zero points of both.
Value* integer_volume(OpContext& context, Value* x, Value* kernel, const std::vector<Value*>& zeros,
                      Attributes attributes);

}  // namespace cairn::onnx
