#include "collectives.h"

#include <algorithm>

#include "tensorflow/core/graph/algorithm.h"

namespace cairn_tf {

Collectives::Collectives(const tf::Graph& graph, const tf::FunctionLibraryDefinition* functions)
    : functions_(functions) {
  for (tf::Node* node : graph.op_nodes()) {
    if (node->type_string() == kCollective)
      keys_[node] = {node->attrs().Find("order")->i(), node->name()};
    else if (calls_collective(node->def()))
      keys_[node] = {0, node->name()};
  }
  if (keys_.size() > 1) find_places(graph);
}

bool Collectives::calls_collective(const tf::NodeDef& node) {
  if (!functions_) return false;
  if (has_collective(node.op())) return true;
  for (const auto& [name, value] : node.attr()) {
    if (value.has_func() && has_collective(value.func().name())) return true;
    for (const auto& each : value.list().func())
      if (has_collective(each.name())) return true;
  }
  return false;
}

bool Collectives::has_collective(const std::string& function) {
  auto [known, fresh] = functions_with_.try_emplace(function, false);
  if (!fresh) return known->second;
  const tf::FunctionDef* body = functions_->Find(function);
  bool found = false;
  for (int i = 0; body && !found && i < body->node_def_size(); ++i)
    found = body->node_def(i).op() == kCollective || calls_collective(body->node_def(i));
  return functions_with_[function] = found;
}

void Collectives::find_places(const tf::Graph& graph) {
  std::vector<tf::Node*> order;
  tf::GetReversePostOrder(graph, &order, tf::NodeComparatorID(),
                          [](const tf::Edge& edge) { return !is_back_edge(edge); });
  places_.resize(static_cast<size_t>(graph.num_node_ids()));
  for (tf::Node* node : order) {
    Place& place = places_[static_cast<size_t>(node->id())];
    bool heads_loop = false, ends_turn = false;
    for (const tf::Edge* edge : node->in_edges()) {
      if (is_back_edge(*edge)) {
        heads_loop = true;
        continue;
      }
      const Place& before = places_[static_cast<size_t>(edge->src()->id())];
      const bool leaves = edge->src()->IsExit() && !before.frame.empty();
      const size_t depth = before.frame.size() - leaves;
      if (depth > place.frame.size())
        place.frame.assign(before.frame.begin(), before.frame.begin() + static_cast<ptrdiff_t>(depth));
      place.conditions = std::max(place.conditions, before.conditions);
      place.level = std::max(place.level, before.level + static_cast<int>(keys_.count(edge->src())));
      ends_turn = ends_turn || edge->src()->IsLoopCond();
    }
    if (node->IsEnter()) place.frame.push_back(node->attrs().Find("frame_name")->s());
    if (node->IsSwitch() && !ends_turn) ++place.conditions;
    if (node->IsMerge() && !heads_loop) place.conditions = std::max(0, place.conditions - 1);
  }
}

}  // namespace cairn_tf
