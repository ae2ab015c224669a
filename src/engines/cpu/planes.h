// Images and volumes whose channels come first: pooling and nearest resizing of the planes where they are, in place of the
// transposes around an operator that wants channels last.
#pragma once

#include "engines/cpu/call_step.h"

namespace cairn {

/// The operator with the transposes before and after it that nothing else uses, or nothing.
std::vector<const Node*> find_planes(const Node& node, const Uses& uses);

Refusal refuses_planes(const Group& group);
std::unique_ptr<Step> make_planes(const Group& group, MakeContext& context);

}  // namespace cairn
