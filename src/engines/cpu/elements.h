// Single element-wise nodes of any element type: integers, bools, f64, 16-bit floats, and casts between all.
#pragma once

#include "engines/cpu/call_step.h"

namespace cairn {

Refusal refuses_elements(const Group& group);
std::unique_ptr<Step> make_elements(const Group& group, MakeContext& context);
std::unique_ptr<Step> make_strided_elements(const Group& group, const GroupStrides& strides);

}  // namespace cairn
