// Kernels on rows addressed by indices: reductions of segments, reductions into rows, and the distinct indices.
#pragma once

#include "engines/cpu/call_step.h"

namespace cairn {

Refusal refuses_row_updates(const Group& group);
std::unique_ptr<Step> make_row_updates(const Group& group, MakeContext& context);

Refusal refuses_scatter_elements(const Group& group);
std::unique_ptr<Step> make_scatter_elements(const Group& group, MakeContext& context);

Refusal refuses_segments(const Group& group);
std::unique_ptr<Step> make_segments(const Group& group, MakeContext& context);

Refusal refuses_unique_padded(const Group& group);
std::unique_ptr<Step> make_unique_padded(const Group& group, MakeContext& context);

/// The different elements of numbers or bools; the result is as long as there are.
Refusal refuses_unique(const Group& group);
std::unique_ptr<Step> make_unique_elements(const Group& group, MakeContext& context);

}  // namespace cairn
