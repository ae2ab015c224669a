// Kernels on rows addressed by indices: segment sums, updates of rows, and the distinct indices.
#pragma once

#include "engines/cpu/call_step.h"

namespace cairn {

/// scatter_reduce of f32, and scatter_update with index vectors of length one.
Refusal refuses_row_updates(const Group& group);
std::unique_ptr<Step> make_row_updates(const Group& group, MakeContext& context);

/// segment_reduce to sums and means of f32.
Refusal refuses_segments(const Group& group);
std::unique_ptr<Step> make_segments(const Group& group, MakeContext& context);

Refusal refuses_unique_padded(const Group& group);
std::unique_ptr<Step> make_unique_padded(const Group& group, MakeContext& context);

}  // namespace cairn
