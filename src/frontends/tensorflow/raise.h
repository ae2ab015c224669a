// TensorFlow 1's control flow (Switch, Merge, Enter, Exit, NextIteration, LoopCond) raised to If and While nodes.
#pragma once

#include "frontends/tensorflow/graph_def.h"

namespace cairn::tensorflow {

/// Whether a node of the graph belongs to TensorFlow 1's control flow.
bool has_switches(const GraphDef& graph);

/// Replaces each loop frame by a While, inner ones first, and each group of Merges with the same condition by an If.
/// Exit and Merge nodes keep their names and forward the results. Branches and bodies become functions with names as in
/// a graph (FunctionDef::graph_names); `graph.raised` tells which nodes each new one replaces. Nodes that no longer
/// lead to an output stay in the list. With `effects`, control edges order nodes, nodes that write variables run once,
/// and a value that two Ifs with the same condition use is computed once. Throws Error unsupported, invalid_model.
void raise_control_flow(GraphDef& graph, bool effects = false);

}  // namespace cairn::tensorflow
