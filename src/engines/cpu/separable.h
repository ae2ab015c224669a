// Depthwise convolutions with the 1x1 convolutions before and behind them, some rows of an image at a time: what passes between
// them stays in the second-level cache.
#pragma once

#include "engines/cpu/call_step.h"

namespace cairn {

Refusal refuses_separable(const Group& group);
std::unique_ptr<Step> make_separable(const Group& group, MakeContext& context);

/// Whether it is a depthwise convolution of images, or one by kernels of 1x1 that takes each pixel by itself.
bool is_depthwise(const Node& node);
bool is_pixel_product(const Node& node);

}  // namespace cairn
