// Kernels that draw random numbers in parallel and without allocation; their bits equal those of the reference kernels.
#pragma once

#include "engines/cpu/call_step.h"

namespace cairn {

/// random_uniform, random_normal and random_truncated_normal of f32.
Refusal refuses_random(const Group& group);
std::unique_ptr<Step> make_random(const Group& group, MakeContext& context);

/// random_integers, and random_categorical of logits of f32.
Refusal refuses_discrete_random(const Group& group);
std::unique_ptr<Step> make_discrete_random(const Group& group, MakeContext& context);

}  // namespace cairn
