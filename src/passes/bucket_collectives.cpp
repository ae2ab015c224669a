// Puts all_reduce nodes of the same kind together to buckets, by the strategy of their group or by equal fusion_id, and orders
// the buckets as their operands become ready, which all ranks see alike in the same graph.
#include <algorithm>
#include <map>
#include <queue>

#include "comm/job.h"
#include "ir/builder.h"
#include "ir/collective.h"
#include "passes/passes.h"
#include "passes/rewriter.h"

namespace cairn {

namespace {

constexpr const char* kSingle = "all_reduce";
constexpr const char* kBucket = "all_reduce_bucket";

struct Member {
  Node* node;
  size_t place;   // in the block
  size_t level;   // collectives on the longest way to it: equal ones do not depend on each other
  size_t needed;  // nodes that have to run before it
  int64_t bytes;
};

bool movable(const Node& node) {
  return node.is(kSingle) && node.attr().integer("fusion") != 0 && node.result()->type.is_static();
}

class Bucketing {
 public:
  explicit Bucketing(Block& block, Module& module) : block_(block), module_(module) {
    for (const auto& node : block.nodes) {
      place_[node.get()] = place_.size();
      size_t level = 0;
      for (const Value* input : node->inputs)
        if (input->producer)
          level = std::max(level, level_.at(input->producer) + input->producer->op->has(kCollective));
      level_[node.get()] = level;
    }
  }

  size_t run() {
    find_members();
    std::vector<std::vector<Member>> buckets;
    for (auto& [key, members] : kinds_) {
      std::sort(members.begin(), members.end(), [](const Member& a, const Member& b) {
        return std::tie(a.needed, a.place) < std::tie(b.needed, b.place);
      });
      cut(members, buckets);
    }
    std::stable_sort(buckets.begin(), buckets.end(), [](const auto& a, const auto& b) {
      return std::pair(a[0].level, a.back().needed) < std::pair(b[0].level, b.back().needed);
    });
    const auto several = [](const auto& bucket) { return bucket.size() > 1; };
    const auto changed = static_cast<size_t>(std::count_if(buckets.begin(), buckets.end(), several));
    return reorder(buckets) ? changed : 0;
  }

 private:
  void find_members() {
    for (const auto& node : block_.nodes) {
      if (!movable(*node)) continue;
      const AttributeView attr = node->attr();
      const bool by_id = attr.integer("fusion") == 2;
      const std::string key = fmt::format(
          "{:08} {} {} {} {} {}", level_.at(node.get()), attr.text("group"), attr.text("reduction"),
          attr.integer("ranks"), to_string(node->result()->type.dtype), by_id ? attr.integer("fusion_id") : -1);
      const Type& type = node->result()->type;
      kinds_[key].push_back({node.get(), place_.at(node.get()), level_.at(node.get()), ancestors(*node),
                             static_cast<int64_t>(storage_bytes(type))});
    }
  }

  size_t ancestors(const Node& node) {
    std::unordered_set<const Node*> seen;
    std::vector<const Node*> open = {&node};
    while (!open.empty()) {
      const Node* next = open.back();
      open.pop_back();
      ++visits;
      for (const Value* input : next->inputs)
        if (input->producer && seen.insert(input->producer).second) open.push_back(input->producer);
    }
    return seen.size();
  }

  // Members are in the order in which they become ready.
  static void cut(const std::vector<Member>& members, std::vector<std::vector<Member>>& buckets) {
    const AttributeView attr = members[0].node->attr();
    const comm::Fusion fusion = comm::fusion_of(attr.text("group"));
    const bool by_id = attr.integer("fusion") == 2;
    int64_t all = 0, before = 0, held = 0;
    for (const Member& member : members) all += member.bytes;
    size_t border = 0;
    std::vector<Member>* open = nullptr;
    for (size_t i = 0; i < members.size(); ++i) {
      const Member& member = members[i];
      if (!open || (!by_id && fusion.none) ||
          (!by_id && fusion.indices.empty() && fusion.percents.empty() && held + member.bytes > fusion.bytes)) {
        open = &buckets.emplace_back();
        held = 0;
      }
      open->push_back(member);
      held += member.bytes, before += member.bytes;
      if (by_id) continue;
      if (border < fusion.indices.size() && static_cast<int64_t>(i) >= fusion.indices[border]) ++border, open = nullptr;
      if (border < fusion.percents.size() && before * 100 >= percent_until(fusion, border) * all)
        ++border, open = nullptr;
    }
  }

  static int64_t percent_until(const comm::Fusion& fusion, size_t border) {
    int64_t sum = 0;
    for (size_t i = 0; i <= border; ++i) sum += fusion.percents[i];
    return sum;
  }

  // Sorts the nodes so that each bucket follows the one before it and other effects keep their order; false, and nothing
  // changed, when that is not possible.
  bool reorder(const std::vector<std::vector<Member>>& buckets) {
    const size_t count = block_.nodes.size();
    std::vector<size_t> unit(count);  // of nodes that move as one: the place of a bucket's last member
    for (size_t i = 0; i < count; ++i) unit[i] = i;
    for (const auto& bucket : buckets) {
      size_t last = 0;
      for (const Member& member : bucket) last = std::max(last, member.place);
      for (const Member& member : bucket) unit[member.place] = last;
    }
    std::vector<std::vector<size_t>> followers(count);
    std::vector<size_t> waits(count, 0);
    const auto after = [&](size_t earlier, size_t later) {
      if (unit[earlier] != unit[later]) followers[unit[earlier]].push_back(unit[later]), ++waits[unit[later]];
    };
    std::optional<size_t> effect;
    for (size_t i = 0; i < count; ++i) {
      const Node& node = *block_.nodes[i];
      for (const Value* input : node.inputs)
        if (input->producer) after(place_.at(input->producer), i);
      if (movable(node) || (node.op->pure() && node.regions.empty())) continue;
      if (effect) after(*effect, i);
      effect = i;
    }
    for (size_t i = 1; i < buckets.size(); ++i) after(buckets[i - 1][0].place, buckets[i][0].place);
    std::priority_queue<size_t, std::vector<size_t>, std::greater<>> ready;
    for (size_t i = 0; i < count; ++i)
      if (unit[i] == i && !waits[i]) ready.push(i);
    std::vector<size_t> order;
    while (!ready.empty()) {
      order.push_back(ready.top());
      ready.pop();
      for (size_t follower : followers[order.back()])
        if (!--waits[follower]) ready.push(follower);
    }
    size_t moved = 0;
    for (const auto& bucket : buckets) moved += bucket.size() - 1;
    if (order.size() + moved != count) return false;
    rebuild(buckets, order, unit);
    return true;
  }

  void rebuild(const std::vector<std::vector<Member>>& buckets, const std::vector<size_t>& order,
               const std::vector<size_t>& unit) {
    std::map<size_t, const std::vector<Member>*> bucket_at;
    for (const auto& bucket : buckets)
      if (bucket.size() > 1) bucket_at[unit[bucket[0].place]] = &bucket;
    std::vector<std::unique_ptr<Node>> old = std::move(block_.nodes);
    block_.nodes.clear();
    std::unordered_map<const Value*, Value*> replaced;
    for (size_t place : order) {
      auto bucket = bucket_at.find(place);
      if (bucket == bucket_at.end()) {
        block_.nodes.push_back(std::move(old[place]));
      } else {
        add_bucket(*bucket->second, replaced);
      }
      for (Value*& input : block_.nodes.back()->inputs)
        if (auto found = replaced.find(input); found != replaced.end()) input = found->second;
    }
    for (Value*& result : block_.results)
      if (auto found = replaced.find(result); found != replaced.end()) result = found->second;
  }

  void add_bucket(const std::vector<Member>& members, std::unordered_map<const Value*, Value*>& replaced) {
    const AttributeView attr = members[0].node->attr();
    std::vector<Value*> inputs;
    std::vector<std::string> names;
    std::vector<SourceId> sources;
    for (const Member& member : members) {
      inputs.push_back(member.node->inputs[0]);
      names.push_back(member.node->attr().text("name"));
      sources.insert(sources.end(), member.node->sources.begin(), member.node->sources.end());
    }
    Builder builder(block_);
    builder.sources = merged(std::move(sources), {});
    Node* node = builder.add_node(op_named(kBucket), inputs,
                                  {{"reduction", attr.text("reduction")},
                                   {"group", attr.text("group")},
                                   {"ranks", attr.integer("ranks")},
                                   {"names", names}});
    for (size_t i = 0; i < members.size(); ++i) {
      replaced[members[i].node->result()] = node->result(i);
      node->result(i)->name = members[i].node->result()->name;
    }
  }

  Block& block_;
  Module& module_;
  std::unordered_map<const Node*, size_t> place_, level_;
  std::map<std::string, std::vector<Member>> kinds_;
};

}  // namespace

size_t bucket_collectives(Block& block, Module& module) {
  size_t changes = 0;
  for (auto& node : block.nodes)
    for (auto& region : node->regions) changes += bucket_collectives(*region, module);
  const auto movables =
      std::count_if(block.nodes.begin(), block.nodes.end(), [](const auto& node) { return movable(*node); });
  return movables > 1 ? changes + Bucketing(block, module).run() : changes;
}

}  // namespace cairn
