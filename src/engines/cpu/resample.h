// Resizing of images, and pooling over windows that are too large for generated code.
#pragma once

#include "engines/cpu/call_step.h"

namespace cairn {

/// The part of a window inside the image along one dim: first position in the image, number of elements there and in the
/// padded image.
struct Inside {
  int64_t first, count, padded;
};
/// Of the window at this position of the result; `pad` and `after`: what padding adds before and behind `in` elements.
Inside inside_of(int64_t position, int64_t size, int64_t stride, int64_t dilation, int64_t pad, int64_t in,
                 int64_t after);

/// resize2d to a constant size.
Refusal refuses_resize(const Group& group);
std::unique_ptr<Step> make_resize(const Group& group, MakeContext& context);

/// Its gradient, where pixels are not just copied a whole number of times.
Refusal refuses_resize_gradient(const Group& group);
std::unique_ptr<Step> make_resize_gradient(const Group& group, MakeContext& context);

/// Pooling over windows of any size.
Refusal refuses_large_pool(const Group& group);
std::unique_ptr<Step> make_large_pool(const Group& group, MakeContext& context);

}  // namespace cairn
