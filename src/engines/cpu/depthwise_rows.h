// Depthwise convolution of images whose channels fill few lanes of a vector, or by windows too large for generated code.
#pragma once

#include "engines/cpu/call_step.h"

namespace cairn {

Refusal refuses_depthwise_rows(const Group& group);
std::unique_ptr<Step> make_depthwise_rows(const Group& group, MakeContext& context);

}  // namespace cairn
