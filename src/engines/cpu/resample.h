// Resizing of images, and pooling over windows that are too large for generated code.
#pragma once

#include "engines/cpu/call_step.h"

namespace cairn {

/// resize2d to a constant size.
Refusal refuses_resize(const Group& group);
std::unique_ptr<Step> make_resize(const Group& group, MakeContext& context);

/// Pooling over windows of any size.
Refusal refuses_large_pool(const Group& group);
std::unique_ptr<Step> make_large_pool(const Group& group, MakeContext& context);

}  // namespace cairn
