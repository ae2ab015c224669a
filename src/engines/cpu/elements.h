// Single element-wise nodes of any element type: integers, bools, f64, 16-bit floats, and casts between all.
#pragma once

#include "engines/cpu/call_step.h"
#include "ops/kernels.h"

namespace cairn {

/// The strides of a tensor broadcast to the shape `to`; `own` empty: the tensor is row-major.
Dims walked_strides(const Dims& from, Dims own, const Dims& to);

Refusal refuses_elements(const Group& group);
std::unique_ptr<Step> make_elements(const Group& group, MakeContext& context);
std::unique_ptr<Step> make_strided_elements(const Group& group, const GroupStrides& strides);

}  // namespace cairn
