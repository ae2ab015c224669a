// Removes nodes that no result or effect depends on.
#include <unordered_set>

#include "ir/control.h"
#include "passes/passes.h"
#include "passes/pipeline.h"

namespace cairn {

namespace {

// Functions of the module that write state, directly or through calls.
class Effects {
 public:
  explicit Effects(const Module* module) : module_(module) {}

  bool of(const Node& node) {
    if (node.op->has(kWritesState)) return true;
    for (const auto& region : node.regions)
      if (of(*region)) return true;
    return is_call(node) && of_function(callee_name(node));
  }

 private:
  bool of(const Block& block) {
    for (const auto& node : block.nodes)
      if (of(*node)) return true;
    return false;
  }

  // Recursive functions count as effects: rare, and a call kept for nothing harms nobody.
  bool of_function(const std::string& name) {
    auto [entry, fresh] = functions_.try_emplace(name, true);
    if (!fresh) return entry->second;
    const Function* function = module_ ? module_->find(name) : nullptr;
    bool effects = !function || of(function->body);
    return functions_[name] = effects;
  }

  const Module* module_;
  std::unordered_map<std::string, bool> functions_;
};

size_t remove_dead(Block& block, Effects& effects) {
  std::unordered_set<const Value*> used(block.results.begin(), block.results.end());
  size_t removed = 0;
  for (size_t i = block.nodes.size(); i-- > 0;) {
    auto& node = block.nodes[i];
    bool live = false;
    ++visits;
    for (const auto& result : node->results) live = live || used.count(result.get());
    live = live || effects.of(*node);
    if (live) {
      used.insert(node->inputs.begin(), node->inputs.end());
      visits += node->inputs.size();
      for (auto& region : node->regions) removed += remove_dead(*region, effects);
    } else {
      node = nullptr;
      ++removed;
    }
  }
  std::erase(block.nodes, nullptr);
  return removed;
}

}  // namespace

size_t remove_dead(Block& block, const Module* module) {
  Effects effects(module);
  return remove_dead(block, effects);
}

}  // namespace cairn
