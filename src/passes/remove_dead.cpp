// Dead-code elimination: removes nodes on which no result or side effect depends.
#include "ir/control.h"
#include "passes/passes.h"
#include "passes/pipeline.h"
#include "support/pointer_map.h"

namespace cairn {

namespace {

size_t remove_dead(Block& block, Effects& effects) {
  PointerSet<const Value*> used;
  used.reserve(2 * block.nodes.size());
  used.insert(block.results.begin(), block.results.end());
  size_t removed = 0;
  std::vector<bool> live(block.nodes.size());
  for (size_t i = block.nodes.size(); i-- > 0;) {
    const Node& node = *block.nodes[i];
    ++visits;
    for (const auto& result : node.results) live[i] = live[i] || used.count(result.get());
    live[i] = live[i] || effects.of(node);
    if (live[i]) {
      used.insert(node.inputs.begin(), node.inputs.end());
      visits += node.inputs.size();
      for (auto& region : node.regions) removed += remove_dead(*region, effects);
    } else {
      ++removed;
    }
  }
  keep(block.nodes, live);
  return removed;
}

}  // namespace

size_t remove_dead(Block& block, const Module* module) {
  Effects effects(module);
  return remove_dead(block, effects);
}

}  // namespace cairn
