// The passes, one file each; pipeline.cpp calls them in order. Each returns the number of nodes that it rewrote or
// removed.
#pragma once

#include <span>

#include "ir/module.h"

namespace cairn {

class Rewriter;

/// Nodes and edges that the passes of this thread have visited, as a measure of work (PassRecord::visits).
inline thread_local size_t visits = 0;

size_t inline_calls(Module& module);
/// Keeps operators that have a kernel.
size_t expand_user_ops(Module& module);
size_t lift_state(Module& module);
size_t take_constant_branches(Block& block, Module& module);
size_t simplify_captures(Block& block, Module& module);
size_t hoist_invariants(Block& block);
size_t merge_equal_nodes(Block& block, Module& module);
size_t sink_transposes(Block& block, Module& module);
size_t sink_reshapes(Block& block, Module& module);
size_t pad_unique(Block& block, Module& module);
size_t fuse_gathers(Block& block, Module& module);
/// Gradients are taken before: each all_reduce has its own, a bucket one for all.
size_t bucket_collectives(Block& block, Module& module);
/// Dequantises constants, which folding leaves alone until no product took their integers.
size_t dequantize_constants(Block& block, Module& module);

/// Copies the nodes of a function's or region's body to the rewriter's current position, with `arguments` for its
/// params; returns the copies of the body's results, which replace the results of `node`.
std::vector<Value*> splice(Rewriter& rewriter, const Block& body, const Node& node, std::span<Value* const> arguments);

}  // namespace cairn
