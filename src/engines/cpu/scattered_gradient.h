// The gradient by the image of convolutions from few channels: one product makes what each pixel of the result's gradient adds to
// the image, all taps and channels side by side, and these are added where they belong.
#pragma once

#include "engines/cpu/call_step.h"

namespace cairn {

Refusal refuses_scattered_gradient(const Group& group);
std::unique_ptr<Step> make_scattered_gradient(const Group& group, MakeContext& context);

}  // namespace cairn
