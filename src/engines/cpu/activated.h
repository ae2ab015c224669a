// Convolutions by pixels and by channels with the element-wise operations that alone read their results in 16 bits, some pixels at a
// time: between them are floats in the cache, and every rounding is done in registers.
#pragma once

#include "engines/cpu/call_step.h"

namespace cairn {

Refusal refuses_activated(const Group& group);
std::unique_ptr<Step> make_activated(const Group& group, MakeContext& context);

}  // namespace cairn
