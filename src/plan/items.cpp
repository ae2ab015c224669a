// Engines propose groups, best engine first; the remaining nodes become items one by one; then all items are scheduled.
#include "plan/items.h"

#include <algorithm>
#include <limits>
#include <queue>

#include "ir/collective.h"
#include "plan/at_once.h"

namespace cairn {

namespace {

bool is_constant(const Node& node) {
  return node.op->inputs.empty() && node.results.size() == 1 && constant_of(node.result());
}

// Schedules the items. An item is ready once its inputs are computed. Among ready items those that update a param or
// yield only results of the function go first, so that the live ranges of gradients are short; the others follow
// program order, but what makes much of little (a gather of weights) comes right before its first reader, so that it is
// still in the cache there and lives briefly. What needs the results of collectives comes after what does not, so that they go on meanwhile. Scans wait
// until nothing else is ready, so that those that may run at once are neighbours.
class Order {
 public:
  Order(const Function& function, Items& items)
      : function_(function), items_(items), followers_(items.list.size()), waits_(items.list.size(), 0),
        first_(items.list.size(), false), scan_(items.list.size(), false), level_(items.list.size(), 0) {
    for (const auto& node : function.body.nodes) position_.try_emplace(node.get(), position_.size());
    for (size_t i = 0; i < items.list.size(); ++i)
      for (const Node* node : items.list[i].group.nodes) item_of_[node] = i;
    find_scans();
    find_levels();
    follow_makers();
    follow_effects();
    follow_readers();
    for (size_t i = 0; i < items.list.size(); ++i)
      if ((followers_[i].empty() || items.list[i].group.last().op->has(kCollective)) &&
          !items.list[i].group.inputs.empty())
        first_[i] = true;
  }

  /// Sorts the items; false when some form a cycle.
  bool sort() {
    std::vector<std::pair<size_t, bool>> turn;
    for (size_t i = 0; i < items_.list.size(); ++i) turn.push_back(turn_of(i));
    auto later = [&](size_t a, size_t b) {
      if (level_[a] != level_[b]) return level_[a] > level_[b];
      if (scan_[a] != scan_[b]) return bool{scan_[a]};
      return first_[a] != first_[b] ? bool{first_[b]} : std::pair(turn[a], a) > std::pair(turn[b], b);
    };
    std::priority_queue<size_t, std::vector<size_t>, decltype(later)> ready(later);
    for (size_t i = 0; i < waits_.size(); ++i)
      if (!waits_[i]) ready.push(i);
    std::vector<size_t> order;
    while (!ready.empty()) {
      const size_t done = order.size();
      do {
        order.push_back(ready.top());
        ready.pop();
      } while (scan_[order[done]] && !ready.empty() && scan_[ready.top()]);
      for (size_t i = done; i < order.size(); ++i)
        for (size_t follower : followers_[order[i]])
          if (!--waits_[follower]) ready.push(follower);
    }
    if (order.size() != waits_.size()) return false;
    std::vector<Item> sorted;
    std::vector<size_t> moved_to(order.size());
    for (size_t i : order) {
      moved_to[i] = sorted.size();
      sorted.push_back(std::move(items_.list[i]));
    }
    items_.list = std::move(sorted);
    for (auto& [param, readers] : items_.readers)
      for (size_t& reader : readers) reader = moved_to[reader];
    return true;
  }

  /// After sort(): whether the item was never ready.
  bool waits(size_t item) const { return waits_[item] != 0; }

 private:
  size_t place(size_t item) const { return position_.at(&items_.list[item].group.last()); }

  /// A place in program order, and whether it is the item's own; else the item comes before the one there.
  std::pair<size_t, bool> turn_of(size_t item) const {
    if (followers_[item].empty() || !makes_much(item)) return {place(item), true};
    size_t first_reader = std::numeric_limits<size_t>::max();
    for (size_t follower : followers_[item]) first_reader = std::min(first_reader, place(follower));
    return {first_reader, false};
  }

  /// Whether the results are many times as large as what is computed to make them.
  bool makes_much(size_t item) const {
    constexpr int64_t kTimes = 16, kLeast = 64 << 10;
    const Group& group = items_.list[item].group;
    int64_t made = 0, read = 0;
    for (const Node* node : group.nodes)
      if (!node->op->pure() || !node->regions.empty()) return false;
    for (const auto* list : {&group.outputs, &group.inputs})
      for (const Value* value : *list) {
        const bool stays = !items_.behind_views(value)->producer || constant_of(value);
        if (list == &group.inputs && stays) continue;
        if (!value->type.is_tensor() || !value->type.is_static()) return false;
        (list == &group.outputs ? made : read) += static_cast<int64_t>(storage_bytes(value->type));
      }
    return made >= std::max(kLeast, kTimes * read);
  }

  void after(size_t earlier, size_t later) {
    if (earlier == later) return;
    followers_[earlier].push_back(later);
    ++waits_[later];
  }

  // A single scan has no neighbour to wait for.
  void find_scans() {
    for (size_t i = 0; i < items_.list.size(); ++i) scan_[i] = is_quiet_scan(items_.list[i].group.last());
    if (std::count(scan_.begin(), scan_.end(), true) < 2) scan_.assign(scan_.size(), false);
  }

  // An item's level: the collectives on the longest way to it.
  void find_levels() {
    PointerMap<const Node*, size_t> levels;
    for (const auto& node : function_.body.nodes) {
      size_t level = 0;
      for (const Value* input : node->inputs)
        if (const Node* made = input->producer) level = std::max(level, levels.at(made) + made->op->has(kCollective));
      levels[node.get()] = level;
      if (auto item = item_of_.find(node.get()); item != item_of_.end())
        level_[item->second] = std::max(level_[item->second], level);
    }
  }

  void follow_makers() {
    for (size_t i = 0; i < items_.list.size(); ++i)
      for (const Value* input : items_.list[i].group.inputs) {
        const Value* made = items_.behind_views(input);
        if (!made->producer)
          items_.readers[made].push_back(i);
        else if (auto maker = item_of_.find(made->producer); maker != item_of_.end())
          after(maker->second, i);
      }
  }

  // Nodes with side effects keep their order.
  void follow_effects() {
    for (const auto& node : function_.body.nodes) {
      auto item = item_of_.find(node.get());
      if (item == item_of_.end() || scan_[item->second] || (node->op->pure() && node->regions.empty())) continue;
      if (!effects_.empty()) after(effects_.back().second, item->second);
      effects_.emplace_back(position_.at(node.get()), item->second);
    }
  }

  // The item that computes the new content of a param runs after all items that read the old content, unless one of
  // these depends on the new content. It also runs after earlier nodes with side effects, which may stop the run.
  void follow_readers() {
    const Block& body = function_.body;
    for (auto [result, param] : function_.updates) {
      const Value* made = items_.behind_views(body.results[result]);
      auto found = made->producer ? item_of_.find(made->producer) : item_of_.end();
      if (found == item_of_.end()) continue;
      const size_t writer = found->second;
      first_[writer] = true;
      auto readers = items_.readers.find(body.params[param].get());
      if (readers == items_.readers.end()) continue;
      const std::vector<bool> reached = reached_from(writer);
      auto late = [&](size_t reader) { return reader != writer && reached[reader]; };
      if (std::none_of(readers->second.begin(), readers->second.end(), late))
        for (size_t reader : readers->second) after(reader, writer);
    }
    for (size_t i = 0; i < items_.list.size(); ++i) {
      const auto later_effect = std::lower_bound(effects_.begin(), effects_.end(), std::pair(place(i), size_t{0}));
      if (first_[i] && later_effect != effects_.begin()) after(std::prev(later_effect)->second, i);
    }
  }

  std::vector<bool> reached_from(size_t item) const {
    std::vector<bool> reached(items_.list.size(), false);
    std::vector<size_t> pending{item};
    while (!pending.empty()) {
      const size_t i = pending.back();
      pending.pop_back();
      for (size_t follower : followers_[i])
        if (!reached[follower]) {
          reached[follower] = true;
          pending.push_back(follower);
        }
    }
    return reached;
  }

  const Function& function_;
  Items& items_;
  PointerMap<const Node*, size_t> position_, item_of_;
  std::vector<std::vector<size_t>> followers_;
  std::vector<size_t> waits_;
  std::vector<bool> first_, scan_;
  std::vector<size_t> level_;
  std::vector<std::pair<size_t, size_t>> effects_;  // position of the node, item
};

class Chooser {
 public:
  Chooser(const Module& module, const Function& function, const Uses& uses, const PlanOptions& options)
      : module_(module), function_(function), uses_(uses), options_(options) {}

  Items make() {
    while (true) {
      items_ = {};
      choose();
      Order order(function_, items_);
      if (order.sort()) return std::move(items_);
      dissolve(order);
    }
  }

 private:
  void add(const Engine* engine, Group group) {
    items_.nodes.insert(group.nodes.begin(), group.nodes.end());
    items_.list.push_back({engine, std::move(group)});
  }

  void choose() {
    for (const Engine* engine : options_.engines) {
      for (Group& group : engine->propose(function_.body, uses_)) {
        const bool free = std::none_of(group.nodes.begin(), group.nodes.end(),
                                       [&](const Node* node) { return items_.nodes.count(node); });
        if (free && !dissolved_.count(&group.last()) && engine->takes(group)) add(engine, std::move(group));
      }
    }
    for (const auto& node : function_.body.nodes)
      if (!is_constant(*node) && !is_view(*node) && !items_.nodes.count(node.get())) choose_for(*node);
  }

  void choose_for(const Node& node) {
    Group group = make_group({&node}, uses_);
    if (node.op->has(kControl)) return add(nullptr, std::move(group));
    for (const Engine* engine : options_.engines)
      if (engine->takes(group)) return add(engine, std::move(group));
    std::string refusals;
    for (const Engine* engine : options_.engines)
      refusals += fmt::format("{}{}: {}", refusals.empty() ? "" : "; ", engine->name(), *engine->refuses(group));
    fail(ErrorKind::unsupported, where(module_, node), "no engine takes {}: {}", node.op->name, refusals);
  }

  // Splits groups that cannot be scheduled: some node outside depends on a part of the group and the group on that
  // node.
  void dissolve(const Order& order) {
    const size_t before = dissolved_.size();
    for (size_t i = 0; i < items_.list.size(); ++i)
      if (order.waits(i) && items_.list[i].group.nodes.size() > 1) dissolved_.insert(&items_.list[i].group.last());
    CHECK(dissolved_.size() > before, "items wait for each other in @{}", function_.name);
  }

  const Module& module_;
  const Function& function_;
  const Uses& uses_;
  const PlanOptions& options_;
  Items items_;
  std::unordered_set<const Node*> dissolved_;  // last nodes of groups that cannot be scheduled whole
};

}  // namespace

const Value* Items::behind_views(const Value* value) const {
  while (value->producer && is_view(*value->producer) && !nodes.count(value->producer))
    value = value->producer->inputs[0];
  return value;
}

bool is_view(const Node& node) {
  return node.op->has(kView) && !is_host_object(node.result()->type) && !is_host_object(node.inputs[0]->type);
}

Items make_items(const Module& module, const Function& function, const Uses& uses, const PlanOptions& options) {
  return Chooser(module, function, uses, options).make();
}

}  // namespace cairn
