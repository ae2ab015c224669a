// Kernels on parts addressed by index vectors: gather_nd, scatter_nd, scatter_update, and the vectors that non_zero finds.
#pragma once

#include "engines/cpu/call_step.h"

namespace cairn {

Refusal refuses_gather_nd(const Group& group);
std::unique_ptr<Step> make_gather_nd(const Group& group, MakeContext& context);

Refusal refuses_scatter(const Group& group);
std::unique_ptr<Step> make_scatter(const Group& group, MakeContext& context);

Refusal refuses_non_zero(const Group& group);
std::unique_ptr<Step> make_non_zero(const Group& group, MakeContext& context);

}  // namespace cairn
