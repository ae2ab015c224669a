// Sums over decision trees.
#pragma once

#include "engines/cpu/call_step.h"

namespace cairn {

Refusal refuses_trees(const Group& group);
std::unique_ptr<Step> make_trees(const Group& group, MakeContext& context);

}  // namespace cairn
