// Images sampled at the places of a grid and in regions of interest, and the gradient of regions by the image.
#pragma once

#include "engines/cpu/call_step.h"

namespace cairn {

Refusal refuses_grid_sample(const Group& group);
std::unique_ptr<Step> make_grid_sample(const Group& group, MakeContext& context);

Refusal refuses_roi_align(const Group& group);
std::unique_ptr<Step> make_roi_align(const Group& group, MakeContext& context);

Refusal refuses_roi_align_gradient(const Group& group);
std::unique_ptr<Step> make_roi_align_gradient(const Group& group, MakeContext& context);

}  // namespace cairn
