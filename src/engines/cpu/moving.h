// Kernels that move elements of any type: concatenation, splitting, padding, repetition, gathering.
#pragma once

#include "engines/cpu/call_step.h"

namespace cairn {

/// Whether the slice takes a part along the axis alone that the concatenation joins, so that this could read it in place.
bool joins_slice(const Node& concat, const Node& slice);
/// A concatenation, with such slices.
Refusal refuses_concat(const Group& group);
std::unique_ptr<Step> make_concat(const Group& group, MakeContext& context);

Refusal refuses_transpose(const Group& group);
std::unique_ptr<Step> make_transpose(const Group& group, MakeContext& context);
std::unique_ptr<Step> make_strided_transpose(const Group& group, const GroupStrides& strides);

/// slice, reverse, pad, broadcast_to and tile, whose bounds are constants.
Refusal refuses_axis_copy(const Group& group);
std::unique_ptr<Step> make_axis_copy(const Group& group, MakeContext& context);

Refusal refuses_gather(const Group& group);
std::unique_ptr<Step> make_gather(const Group& group, MakeContext& context);

Refusal refuses_one_hot(const Group& group);
std::unique_ptr<Step> make_one_hot(const Group& group, MakeContext& context);

}  // namespace cairn
