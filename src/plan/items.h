// Items: the units that a plan runs, chosen by the engines and put into an order.
#pragma once

#include <vector>

#include "plan/plan.h"
#include "support/pointer_map.h"

namespace cairn {

/// A group for an engine, or a control node.
struct Item {
  const Engine* engine = nullptr;  // null: a control node
  Group group;
};

/// The items of a function in the order in which they run.
struct Items {
  std::vector<Item> list;
  PointerSet<const Node*> nodes;  // of all items; constants, and views that no engine took, belong to no item
  PointerMap<const Value*, std::vector<size_t>> readers;  // param -> items that read it, through views as well

  /// The value whose elements this one has, in front of views that no engine took.
  const Value* behind_views(const Value* value) const;
};

/// Whether the result aliases its input, with other dims.
bool is_view(const Node& node);

/// Throws Error unsupported, at the node, with each engine's reason when no engine takes a node.
Items make_items(const Module& module, const Function& function, const Uses& uses, const PlanOptions& options);

}  // namespace cairn
