// The gradient by their kernel of convolutions from and to few channels, with pixels in the lanes: channels would fill a few.
#pragma once

#include "engines/cpu/call_step.h"

namespace cairn {

Refusal refuses_pixel_gradient(const Group& group);
std::unique_ptr<Step> make_pixel_gradient(const Group& group, MakeContext& context);

}  // namespace cairn
