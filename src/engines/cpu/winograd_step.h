// The step for convolutions by Winograd's method (winograd.h).
#pragma once

#include "engine/engine.h"

namespace cairn {

/// Convolutions with kernels of 3 x 3 and stride 1, and their gradients by the image, where that is faster. Elements of 16 bits are
/// widened, but for bf16 that the processor multiplies. Where the context wants them by their definition, make_winograd() makes the other step (tile_step.h, conv_parts.h).
std::optional<std::string> refuses_winograd(const Group& group);
std::unique_ptr<Step> make_winograd(const Group& group, MakeContext& context);

}  // namespace cairn
