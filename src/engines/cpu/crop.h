// Crops of images and their gradient by the image.
#pragma once

#include "engines/cpu/call_step.h"

namespace cairn {

Refusal refuses_crop(const Group& group);
std::unique_ptr<Step> make_crop(const Group& group, MakeContext& context);

Refusal refuses_crop_gradient(const Group& group);
std::unique_ptr<Step> make_crop_gradient(const Group& group, MakeContext& context);

}  // namespace cairn
