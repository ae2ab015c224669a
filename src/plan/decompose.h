// Other forms of nodes that no fast engine has a kernel of: the same op on wider floats, and decompositions of rows.
#pragma once

#include "plan/plan.h"

namespace cairn {

/// Replaces each node that every engine but the last refuses by its row's decomposition, of 16-bit floats by the op on f32, if
/// these engines take all parts of that, or if the last one refuses the node too; parts may be decomposed in turn. What a group
/// proposed by an engine contains stays whole.
/// Throws Error invalid_model, at the node, when a decomposition makes other types than its op. Returns how many nodes it
/// replaced.
size_t decompose(const Module& module, Function& function, const PlanOptions& options);
/// make_scans, where the engines share the host's memory, then decompose.
void prepare(const Module& module, Function& function, const PlanOptions& options);

}  // namespace cairn
