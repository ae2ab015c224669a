// Element-wise programs of f64: the nodes of a group one after the other on tiles that stay in the first-level cache. Bools are
// the numbers 0 and 1 inside a program; what is cast to f64 is widened where it is read.
#pragma once

#include "engines/cpu/call_step.h"

namespace cairn {

/// Whether a program may contain the node.
bool takes_doubles(const Node& node);

Refusal refuses_doubles(const Group& group);
std::unique_ptr<Step> make_doubles(const Group& group, MakeContext& context);
std::unique_ptr<Step> make_strided_doubles(const Group& group, const GroupStrides& strides);

}  // namespace cairn
