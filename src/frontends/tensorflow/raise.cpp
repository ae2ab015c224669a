#include "frontends/tensorflow/raise.h"

#include <algorithm>

#include "frontends/tensorflow/flow.h"

namespace cairn::tensorflow {

bool has_switches(const GraphDef& graph) {
  return std::any_of(graph.nodes.begin(), graph.nodes.end(), [](const Node& node) {
    return is_op(node, "Switch") || is_op(node, "Merge") || is_op(node, "Enter");
  });
}

void raise_control_flow(GraphDef& graph, bool effects) {
  Raising raising(graph, effects);
  if (effects) hoist_array_gradients(raising);
  raise_loops(raising);
  raise_branches(graph.nodes, nullptr, raising, 0);
}

}  // namespace cairn::tensorflow
