// The gradient of a convolution by its kernel: for each tap a product of the image, transposed, with dy.
#pragma once

#include "engines/cpu/call_step.h"

namespace cairn {

Refusal refuses_kernel_gradient(const Group& group);
std::unique_ptr<Step> make_kernel_gradient(const Group& group, MakeContext& context);

}  // namespace cairn
