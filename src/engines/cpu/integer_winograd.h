// Convolutions of bytes by Winograd's method in floats, where the processor has no products of bytes: some rows of an image at a
// time, which are widened and rounded in the second-level cache.
#pragma once

#include "engine/engine.h"

namespace cairn {

std::optional<std::string> refuses_integer_winograd(const Group& group);
std::unique_ptr<Step> make_integer_winograd(const Group& group, MakeContext& context);

}  // namespace cairn
