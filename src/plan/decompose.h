// Rewrites nodes for which no fast engine has a kernel: as the same op on wider floats, or by the decomposition of the
// row.
#pragma once

#include "plan/plan.h"

namespace cairn {

/// Replaces each node that all engines but the last refuse by its row's decomposition (for 16-bit floats by the op on
/// f32) if these engines take all nodes of it, or if the last engine refuses the node as well. Decompositions may be
/// decomposed in turn; nodes in a group that an engine proposes are kept. Throws Error invalid_model, at the node, when
/// a decomposition gives other types than its op. `like`, of the same function at other dims, tells the nodes
/// without asking the engines.
Decomposed decompose(const Module& module, Function& function, const PlanOptions& options,
                     const Decomposed* like = nullptr);
/// make_scans, where the engines share the host's memory, then decompose and more; whether that changed anything.
bool prepare(const Module& module, Function& function, const PlanOptions& options, Decomposed& decomposed,
             const Decomposed* like = nullptr);

}  // namespace cairn
