// Gradients of depthwise convolutions with operands or results of 16 bits, by the kernel of floats on widened copies.
#pragma once

#include "engines/cpu/call_step.h"

namespace cairn {

Refusal refuses_widened_gradient(const Group& group);
std::unique_ptr<Step> make_widened_gradient(const Group& group, MakeContext& context);

}  // namespace cairn
