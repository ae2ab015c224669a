// Kernels on parts addressed by index vectors: gather_nd of any element type, scatter_nd of f32.
#pragma once

#include "engines/cpu/call_step.h"

namespace cairn {

Refusal refuses_gather_nd(const Group& group);
std::unique_ptr<Step> make_gather_nd(const Group& group, MakeContext& context);

Refusal refuses_scatter_nd(const Group& group);
std::unique_ptr<Step> make_scatter_nd(const Group& group, MakeContext& context);

}  // namespace cairn
