#include "autodiff/prune.h"

#include <algorithm>
#include <unordered_set>

#include "ir/control.h"

namespace cairn {

namespace {

using Used = std::unordered_set<const Value*>;

class Pruner {
 public:
  explicit Pruner(const Module& module) : effects_(&module) {}

  size_t block(Block& block) {
    Used used(block.results.begin(), block.results.end());
    size_t removed = 0;
    std::vector<bool> live(block.nodes.size());
    for (size_t i = block.nodes.size(); i-- > 0;) {
      Node& node = *block.nodes[i];
      live[i] = std::any_of(node.results.begin(), node.results.end(),
                            [&](const auto& result) { return used.count(result.get()) != 0; });
      live[i] = live[i] || effects_.of(node);
      if (!live[i]) {
        ++removed;
        continue;
      }
      if (!node.regions.empty()) removed += regions(node, used);
      used.insert(node.inputs.begin(), node.inputs.end());
    }
    keep(block.nodes, live);
    return removed;
  }

 private:
  size_t regions(Node& node, const Used& used) {
    std::vector<bool> needed;
    for (const auto& result : node.results) needed.push_back(used.count(result.get()) != 0);
    if (is_loop(node)) needed = needed_turns(node, std::move(needed));
    const auto unneeded = static_cast<size_t>(std::count(needed.begin(), needed.end(), false));
    const size_t before = node.results.size();
    if (unneeded > 0) {
      for (size_t r = is_loop(node) ? 1 : 0; r < node.regions.size(); ++r) keep(node.regions[r]->results, needed);
      keep(node.results, needed);
      renumber(node.results);
    }
    size_t removed = unneeded;
    if (unneeded > 0 && is_loop(node)) {
      // Remove the dead nodes of both regions first; after that, the params of dropped carried values are unused.
      for (auto& region : node.regions) removed += block(*region);
      needed.resize(node.inputs.size(), true);
      keep(node.inputs, needed);
      for (auto& region : node.regions) {
        keep(region->params, needed);
        renumber(region->params);
      }
      node.attributes.set(kCarried, static_cast<int64_t>(before - unneeded));
    } else {
      for (auto& region : node.regions) removed += block(*region);
    }
    return removed + drop_unused_captures(node).size();
  }

  // The carried values that the condition or a needed result depends on after any number of iterations (fixed point).
  std::vector<bool> needed_turns(const Node& loop, std::vector<bool> needed) {
    for (size_t r = 0;; r = 1) {
      const Block& region = *loop.regions[r];
      Used used;
      if (r == 0) used.insert(region.results.begin(), region.results.end());
      for (size_t i = 0; r == 1 && i < needed.size(); ++i)
        if (needed[i]) used.insert(region.results[i]);
      for (size_t n = region.nodes.size(); n-- > 0;) {
        const Node& node = *region.nodes[n];
        if (effects_.of(node) || std::any_of(node.results.begin(), node.results.end(),
                                             [&](const auto& result) { return used.count(result.get()) != 0; }))
          used.insert(node.inputs.begin(), node.inputs.end());
      }
      bool changed = r == 0;
      for (size_t i = 0; i < needed.size(); ++i) {
        if (needed[i] || !used.count(region.params[i].get())) continue;
        needed[i] = changed = true;
      }
      if (!changed) return needed;
    }
  }

  Effects effects_;
};

}  // namespace

size_t prune(Block& block, const Module& module) {
  Pruner pruner(module);
  size_t all = 0;
  while (const size_t removed = pruner.block(block)) all += removed;
  return all;
}

}  // namespace cairn
