#include "passes/provenance.h"

#include <unordered_set>

#include "ir/control.h"

namespace cairn {

namespace {

// Liveness: the values on which a result or side effect of the block depends; callees of live calls are added to
// `called`.
class Liveness {
 public:
  explicit Liveness(const Module& module) : module_(module), effects_(&module) {}

  void function(const std::string& name) {
    if (!functions_.insert(name).second) return;
    if (const Function* function = module_.find(name)) block(function->body);
  }
  bool has(const Node* node) const { return nodes_.count(node) != 0; }

 private:
  void block(const Block& block) {
    std::unordered_set<const Value*> used(block.results.begin(), block.results.end());
    for (size_t i = block.nodes.size(); i-- > 0;) {
      const Node& node = *block.nodes[i];
      bool live = effects_.of(node);
      for (const auto& result : node.results) live = live || used.count(result.get());
      if (!live) continue;
      nodes_.insert(&node);
      used.insert(node.inputs.begin(), node.inputs.end());
      for (const auto& region : node.regions) this->block(*region);
      if (is_call(node)) function(callee_name(node));
    }
  }

  const Module& module_;
  Effects effects_;
  std::unordered_set<std::string> functions_;
  std::unordered_set<const Node*> nodes_;
};

std::vector<bool> carried_sources(const Module& module, size_t count) {
  std::vector<bool> carried(count, false);
  for (const auto& function : module.functions)
    for_each_block(function->body, [&](const Block& block) {
      for (const auto& node : block.nodes)
        for (SourceId id : node->sources)
          if (id < count) carried[id] = true;
    });
  return carried;
}

}  // namespace

SourceGraph::SourceGraph(const Module& module) : entries_(module.sources.size()) {
  for (const auto& function : module.functions) add_block(function->body);
  mark_live(module);
}

void SourceGraph::mark_live(const Module& module) {
  Liveness liveness(module);
  if (module.find("main"))
    liveness.function("main");
  else
    for (const auto& function : module.functions) liveness.function(function->name);
  for (const auto& function : module.functions)
    for_each_block(function->body, [&](const Block& block) {
      for (const auto& node : block.nodes)
        if (liveness.has(node.get()))
          for (SourceId id : node->sources) entries_[id].live = true;
    });
}

void SourceGraph::add_block(const Block& block) {
  std::unordered_set<const Value*> constants;
  for (const auto& node : block.nodes) {
    bool constant = node->op->pure() && node->regions.empty() && !node->op->has(kControl);
    if (node->op->has(kNotFoldable) && !node->inputs.empty()) constant = false;
    if (!node->op->has(kShapeOnly))
      for (const Value* input : node->inputs) constant = constant && constants.count(input);
    if (constant)
      for (const auto& result : node->results) constants.insert(result.get());
    for (SourceId id : node->sources) {
      Entry& entry = entries_[id];
      if (!entry.has_node) order_.push_back(id);
      entry.has_node = true;
      entry.constant = entry.constant && constant;
      entry.shape_only = entry.shape_only && node->op->has(kShapeOnly);
      for (size_t i = 0; i < node->inputs.size(); ++i) {
        if (!node->inputs[i]->producer) continue;
        bool operand = node->op->role(i) == Role::shape;
        for (SourceId from : node->inputs[i]->producer->sources) {
          if (from == id) continue;
          if (operand)
            entries_[from].operand = true;
          else
            entries_[from].users.push_back(id);
        }
      }
    }
    for (const auto& region : node->regions) {
      add_block(*region);
      for (const auto& inner : region->nodes)
        for (SourceId from : inner->sources)
          for (SourceId id : node->sources)
            if (from != id) entries_[from].users.push_back(id);
    }
  }
}

// Whether all live users that still exist use types only; dead users do not count.
bool SourceGraph::shape_only_users(const Entry& entry, const std::vector<bool>& carried) const {
  bool any = false;
  for (SourceId user : entry.users) {
    if (!entries_[user].live) continue;
    if (carried[user] && !entries_[user].shape_only) return false;
    any = true;
  }
  return any;
}

bool SourceGraph::users_removed(const Entry& entry, const std::vector<bool>& carried) const {
  bool any = entry.operand;
  for (SourceId user : entry.users) {
    if (!entries_[user].live) continue;
    if (carried[user]) return false;
    any = true;
  }
  return any;
}

Removal SourceGraph::reason(const Entry& entry, const std::vector<bool>& carried, const Module& after) const {
  if (!entry.live) return entry.constant ? Removal::folded : Removal::dead;
  if (entry.constant || !shape_only_users(entry, carried)) return Removal::folded;
  for (SourceId user : entry.users) {
    auto found = after.removed.find(user);
    bool shape = entries_[user].shape_only || (found != after.removed.end() && found->second == Removal::shape_only);
    if (entries_[user].live && !shape) return Removal::folded;
  }
  return Removal::shape_only;
}

void SourceGraph::explain(Module& after) const {
  std::vector<bool> carried = carried_sources(after, entries_.size());
  std::erase_if(after.removed, [&](const auto& item) {
    return item.first < carried.size() && carried[item.first] != (item.second == Removal::fused) &&
           entries_[item.first].has_node;
  });
  for (size_t i = order_.size(); i-- > 0;) {
    const Entry& entry = entries_[order_[i]];
    if (carried[order_[i]]) continue;
    if (!entry.live)  // a constant that became an attribute or a size was needed once
      after.removed[order_[i]] = reason(entry, carried, after);
    else
      after.removed.emplace(order_[i], reason(entry, carried, after));
  }
}

std::vector<std::string> SourceGraph::check(const Module& after) const {
  std::vector<bool> carried = carried_sources(after, entries_.size());
  std::vector<std::string> faults;
  for (SourceId id = 0; id < entries_.size(); ++id) {
    const Entry& entry = entries_[id];
    auto found = after.removed.find(id);
    auto fault = [&](const char* text) {
      faults.push_back(fmt::format("{} ({}): {}", after.sources[id].name, after.sources[id].op, text));
    };
    if (carried[id]) {
      if (found != after.removed.end() && found->second != Removal::fused) fault("is present and yet removed");
    } else if (found == after.removed.end()) {
      fault("has no node and no reason for that");
    } else if (entry.has_node) {
      Removal why = found->second;
      if (why == Removal::fused) fault("is said to be fused, no node carries it");
      if (why == Removal::dead && entry.live) fault("is said to be dead, a result depends on it");
      if (why == Removal::folded && !entry.constant && !users_removed(entry, carried))
        fault("is said to be folded, depends on inputs and is used");
      if (why == Removal::shape_only && !shape_only_users(entry, carried))
        fault("is said to give its shape only, its elements are used");
    }
  }
  return faults;
}

std::vector<std::string> check_provenance(const Module& before, const Module& after) {
  return SourceGraph(before).check(after);
}

}  // namespace cairn
