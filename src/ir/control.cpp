#include "ir/control.h"

#include <algorithm>

namespace cairn {

std::unordered_set<const Value*> used_values(const Block& block) {
  std::unordered_set<const Value*> used(block.results.begin(), block.results.end());
  for (const auto& node : block.nodes) used.insert(node->inputs.begin(), node->inputs.end());
  return used;
}

std::vector<Value*> drop_unused_captures(Node& node) {
  const size_t first = first_region_input(node);
  std::unordered_set<const Value*> used;
  for (const auto& region : node.regions) used.merge(used_values(*region));
  std::vector<bool> kept(node.inputs.size() - first, true);
  std::vector<Value*> dropped;
  for (size_t i = carried_count(node); i < kept.size(); ++i) {
    kept[i] = std::any_of(node.regions.begin(), node.regions.end(),
                          [&](const auto& region) { return used.contains(region->params[i].get()); });
    if (!kept[i]) dropped.push_back(node.inputs[first + i]);
  }
  if (dropped.empty()) return dropped;
  for (auto& region : node.regions) {
    keep(region->params, kept);
    renumber(region->params);
  }
  kept.insert(kept.begin(), first, true);
  keep(node.inputs, kept);
  return dropped;
}

bool Effects::of(const Node& node) {
  if (node.op->has(kWritesState)) return true;
  for (const auto& region : node.regions)
    for (const auto& each : region->nodes)
      if (of(*each)) return true;
  if (!is_call(node)) return false;
  if (!harmless_) find_harmless();
  return !harmless_->contains(callee_name(node));
}

// Starts from the functions that write state themselves (or call unknown ones) and removes them and all their callers.
void Effects::find_harmless() {
  harmless_.emplace();
  if (!module_) return;
  for (const auto& function : module_->functions) harmless_->insert(function->name);
  std::map<std::string, std::vector<std::string>> callers;
  std::vector<std::string> open;
  for (const auto& function : module_->functions)
    for_each_block(function->body, [&](const Block& block) {
      for (const auto& node : block.nodes) {
        const bool unknown = is_call(*node) && !harmless_->contains(callee_name(*node));
        if (node->op->has(kWritesState) || unknown)
          open.push_back(function->name);
        else if (is_call(*node))
          callers[callee_name(*node)].push_back(function->name);
      }
    });
  while (!open.empty()) {
    const std::string name = std::move(open.back());
    open.pop_back();
    if (!harmless_->erase(name)) continue;
    const std::vector<std::string>& more = callers[name];
    open.insert(open.end(), more.begin(), more.end());
  }
}

}  // namespace cairn
