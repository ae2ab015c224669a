#include "autodiff/prune.h"

#include <algorithm>
#include <unordered_set>

#include "autodiff/calls.h"
#include "ir/control.h"

namespace cairn {

namespace {

using Used = std::unordered_set<const Value*>;

class Pruner {
 public:
  explicit Pruner(const Module& module) : module_(module) {}

  size_t block(Block& block) {
    Used used(block.results.begin(), block.results.end());
    size_t removed = 0;
    for (size_t i = block.nodes.size(); i-- > 0;) {
      auto& node = block.nodes[i];
      const bool live = std::any_of(node->results.begin(), node->results.end(),
                                    [&](const auto& result) { return used.count(result.get()) != 0; });
      if (!live && !has_effect(*node)) {
        node = nullptr;
        ++removed;
        continue;
      }
      if (!node->regions.empty()) removed += regions(*node, used);
      used.insert(node->inputs.begin(), node->inputs.end());
    }
    std::erase(block.nodes, nullptr);
    return removed;
  }

 private:
  bool has_effect(const Node& node) {
    if (node.op->has(kWritesState)) return true;
    for (const auto& region : node.regions)
      if (has_effect(*region)) return true;
    const Function* callee = callee_of(module_, node);
    if (!callee) return false;
    auto [entry, fresh] = effects_.try_emplace(callee, false);  // of a function that calls itself: what the rest says
    if (fresh) effects_[callee] = has_effect(callee->body);
    return effects_[callee];
  }

  bool has_effect(const Block& block) {
    return std::any_of(block.nodes.begin(), block.nodes.end(), [&](const auto& node) { return has_effect(*node); });
  }

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
      // What is not carried any more is unused in both regions, once the body has lost what made it.
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
    return removed + drop_captures(node);
  }

  // Values that the condition or a needed result depends on, over any number of turns.
  std::vector<bool> needed_turns(const Node& loop, std::vector<bool> needed) {
    for (size_t r = 0;; r = 1) {
      const Block& region = *loop.regions[r];
      Used used;
      if (r == 0) used.insert(region.results.begin(), region.results.end());
      for (size_t i = 0; r == 1 && i < needed.size(); ++i)
        if (needed[i]) used.insert(region.results[i]);
      for (size_t n = region.nodes.size(); n-- > 0;) {
        const Node& node = *region.nodes[n];
        if (has_effect(node) || std::any_of(node.results.begin(), node.results.end(),
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

  static size_t drop_captures(Node& node) {
    const size_t first = is_loop(node) ? 0 : 1;
    Used used;
    for (const auto& region : node.regions) {
      used.insert(region->results.begin(), region->results.end());
      for (const auto& each : region->nodes) used.insert(each->inputs.begin(), each->inputs.end());
    }
    std::vector<bool> needed;
    for (size_t i = 0; i + first < node.inputs.size(); ++i) {
      const bool carried = is_loop(node) && i < carried_count(node);
      needed.push_back(carried || std::any_of(node.regions.begin(), node.regions.end(), [&](const auto& region) {
                         return used.count(region->params[i].get()) != 0;
                       }));
    }
    const auto unneeded = static_cast<size_t>(std::count(needed.begin(), needed.end(), false));
    if (unneeded == 0) return 0;
    for (auto& region : node.regions) {
      keep(region->params, needed);
      renumber(region->params);
    }
    if (first) needed.insert(needed.begin(), true);
    keep(node.inputs, needed);
    return unneeded;
  }

  template <class T>
  static void keep(std::vector<T>& list, const std::vector<bool>& kept) {
    size_t at = 0;
    for (size_t i = 0; i < list.size(); ++i)
      if (kept[i] && at++ != i) list[at - 1] = std::move(list[i]);
    list.resize(at);
  }

  const Module& module_;
  std::unordered_map<const Function*, bool> effects_;
};

}  // namespace

size_t prune(Block& block, const Module& module) {
  size_t all = 0;
  while (const size_t removed = Pruner(module).block(block)) all += removed;
  return all;
}

}  // namespace cairn
