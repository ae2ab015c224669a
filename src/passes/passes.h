// The passes, one file each; pipeline.cpp calls them in order. Each changes the graph or does not, and returns how many
// nodes it rewrote or removed.
#pragma once

#include <span>

#include "ir/module.h"

namespace cairn {

class Rewriter;

/// Nodes and edges that the passes of this thread have looked at: the measure of their work (PassRecord::visits).
inline thread_local size_t visits = 0;

size_t inline_calls(Module& module);
/// Those with a kernel stay.
size_t expand_user_ops(Module& module);
size_t lift_state(Module& module);
size_t take_constant_branches(Block& block, Module& module);
size_t simplify_captures(Block& block, Module& module);
size_t hoist_invariants(Block& block);
size_t merge_equal_nodes(Block& block, Module& module);
size_t sink_transposes(Block& block, Module& module);
size_t sink_reshapes(Block& block, Module& module);
size_t pad_unique(Block& block, Module& module);

/// Copies the nodes of a function's or region's body to where the rewriter stands, with `arguments` for its params;
/// returns what its results have become, for the results of `node`.
std::vector<Value*> splice(Rewriter& rewriter, const Block& body, const Node& node, std::span<Value* const> arguments);

}  // namespace cairn
