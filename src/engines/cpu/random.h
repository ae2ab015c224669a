// Kernels that draw random numbers: the bits of the reference kernels, made by all workers, without allocation.
#pragma once

#include "engines/cpu/call_step.h"

namespace cairn {

/// random_uniform, random_normal and random_truncated_normal of f32.
Refusal refuses_random(const Group& group);
std::unique_ptr<Step> make_random(const Group& group, MakeContext& context);

}  // namespace cairn
