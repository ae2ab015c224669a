// TensorFlow 1's control flow (Switch, Merge, Enter, Exit, NextIteration, LoopCond) raised to If and While nodes.
#pragma once

#include "frontends/tensorflow/graph_def.h"

namespace cairn::tensorflow {

/// True when a node of the graph belongs to TensorFlow 1's control flow.
bool has_switches(const GraphDef& graph);

/// Puts a While for each loop frame, inner ones first, and an If for each group of Merges that wait for one condition.
/// Exit and Merge nodes keep their names and hand on the results. Branches and bodies become functions with names as in
/// a graph (FunctionDef::graph_names); `graph.raised` says which nodes each new one stands for. What leads to no output
/// any more stays in the list. With `effects` control edges order nodes, what writes variables runs once, and a value
/// that two Ifs of one condition need is made once. Throws Error unsupported, invalid_model.
void raise_control_flow(GraphDef& graph, bool effects = false);

}  // namespace cairn::tensorflow
