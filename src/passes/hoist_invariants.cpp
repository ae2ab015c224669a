// Loop-invariant code motion: nodes of a loop's body that depend on loop-invariant values only move before the loop.
#include <algorithm>
#include <set>

#include "ir/control.h"
#include "passes/passes.h"

namespace cairn {

namespace {

int64_t bytes_of(const Value& value) { return static_cast<int64_t>(storage_bytes(value.type)); }

/// Whether the node may be hoisted: it cannot fail (the loop may have no iteration), and its result is not much larger
/// than its operands (it lives as long as the loop).
bool may_move(const Node& node) {
  static const std::set<std::string_view> kOthers = {"transpose", "slice", "concat", "reverse", "pad"};
  if (!node.regions.empty() || node.results.size() != 1 || !node.op->pure() || node.op->has(kNotFoldable)) return false;
  if (!node.op->has(kElementwise) && !node.op->has(kView) && !node.op->has(kReduction) && !node.op->has(kContraction) &&
      !kOthers.contains(node.op->name))
    return false;
  int64_t read = 0;
  for (size_t i = 0; i < node.inputs.size(); ++i) {
    const Value& input = *node.inputs[i];
    if (!input.type.is_static()) return false;
    if (node.op->role(i) == Role::shape && !constant_of(&input)) return false;
    if (node.op->role(i) == Role::data && !input.type.dtype.is_float()) return false;
    read += bytes_of(input);
  }
  const Value& result = *node.result();
  return result.type.is_static() && result.type.dtype.is_float() && bytes_of(result) <= read;
}

size_t hoist_from(Node& loop, std::vector<std::unique_ptr<Node>>& before) {
  Block& body = *loop.regions[1];
  std::unordered_map<const Value*, Value*> outside;  // value of the body -> its equal before the loop
  for (size_t i = carried_count(loop); i < loop.inputs.size(); ++i) outside[body.params[i].get()] = loop.inputs[i];
  std::vector<std::unique_ptr<Node>> kept, moved;
  for (auto& node : body.nodes) {
    const bool moves = may_move(*node) &&
                       std::all_of(node->inputs.begin(), node->inputs.end(),
                                   [&](const Value* input) { return outside.contains(input) || constant_of(input); });
    if (moves) {
      for (const Value* input : node->inputs)
        if (!outside.contains(input)) before.push_back(clone(*input->producer, outside));
      before.push_back(clone(*node, outside));
    }
    (moves ? moved : kept).push_back(std::move(node));
  }
  body.nodes = std::move(kept);
  if (moved.empty()) return 0;
  std::unordered_map<const Value*, Value*> captured;
  for (const auto& node : moved) captured[node->result()] = nullptr;
  const auto capture = [&](Value*& value) {
    const auto found = captured.find(value);
    if (found == captured.end()) return;
    Value*& inside = found->second;
    if (!inside) {
      loop.inputs.push_back(outside.at(value));
      for (auto& region : loop.regions) inside = region->add_param(value->type, "");  // ends as the param of the body
    }
    value = inside;
  };
  for (auto& node : body.nodes) std::for_each(node->inputs.begin(), node->inputs.end(), capture);
  std::for_each(body.results.begin(), body.results.end(), capture);
  return moved.size();
}

}  // namespace

size_t hoist_invariants(Block& block) {
  size_t changes = 0;
  std::vector<std::unique_ptr<Node>> nodes;
  for (auto& node : block.nodes) {
    for (auto& region : node->regions) changes += hoist_invariants(*region);
    if (is_loop(*node)) changes += hoist_from(*node, nodes);
    nodes.push_back(std::move(node));
  }
  block.nodes = std::move(nodes);
  return changes;
}

}  // namespace cairn
