// Scans that do not depend on each other, such as the two directions of a recurrent layer, run at the same time, each on one
// thread, where their turns are too short for several.
#pragma once

#include "plan/plan.h"
#include "support/function_ref.h"

namespace cairn {

/// Whether the node is a scan whose body has no effects and no loops of its own: what does not depend on it may come before it.
bool is_quiet_scan(const Node& node);

/// Sets `at_once` of the plan's steps, whose buffers are not placed yet, and extends live ranges accordingly. `memory`: equal
/// for buffers that share memory.
void run_scans_at_once(Plan& plan, FunctionRef<const void*(size_t buffer)> memory);

}  // namespace cairn
