// Convolutions that are computed as several plain ones on views of the same tensors: one per group, and for the
// gradient by the image one for each position of a pixel modulo the strides.
#pragma once

#include "engines/cpu/call_step.h"

namespace cairn {

/// Convolution with several groups.
Refusal refuses_grouped(const Group& group);
std::unique_ptr<Step> make_grouped(const Group& group, MakeContext& context);

/// conv2d_input_gradient.
Refusal refuses_input_gradient(const Group& group);
std::unique_ptr<Step> make_input_gradient(const Group& group, MakeContext& context);

}  // namespace cairn
