#include "plan/repeat_cheap.h"

#include <algorithm>

#include "engine/engine.h"
#include "plan/items.h"
#include "support/pointer_map.h"

namespace cairn {

namespace {

constexpr int64_t kFewest = 1 << 14;  // elements; a smaller tensor stays in a cache
constexpr ptrdiff_t kLongest = 3;     // most nodes to repeat for one result, besides changes of type
constexpr size_t kVisits = 2000;      // bound of the search: nodes visited in all, per node of the block

/// Whether it gives floats another type, as mixed precision does behind every operator.
bool changes_type(const Node& node) {
  return node.is("cast") && node.inputs[0]->type.dtype.is_float() && node.result()->type.dtype.is_float();
}

/// Whether it makes 16 bits of 32. What it reads, which takes twice the memory, is never kept for it.
bool rounds(const Node& node) { return changes_type(node) && node.result()->type.dtype.bits == 16; }

/// Whether it makes floats of computed integers of 8 bits: to read these again costs less than to store what takes four times the memory.
bool expands(const Node& node) {
  return node.is("dequantize_linear") && node.inputs[0]->type.dtype.bits == 8 && !constant_of(node.inputs[0]) &&
         std::all_of(node.inputs.begin() + 1, node.inputs.end(), constant_of);
}

/// Whether the node's arithmetic costs little compared with reading its operands (unlike transcendental functions).
bool is_cheap(const Node& node) {
  if (changes_type(node) || expands(node)) return true;
  constexpr std::string_view kCheap[] = {"add", "sub", "mul", "neg", "square"};
  return std::any_of(std::begin(kCheap), std::end(kCheap), [&](std::string_view name) { return node.is(name); });
}

/// Whether it is worth looking at: so large that it may leave a cache between its users.
bool is_large(const Node& node) {
  const Type& type = node.results.size() == 1 ? node.result()->type : Type::token();
  return type.is_static() && type.dtype == kF32 && *element_count(type.shape.sizes()) >= kFewest && is_cheap(node);
}

class Repeater {
 public:
  explicit Repeater(Block& block) : block_(block), uses_(block) {
    for (const auto& node : block.nodes) {
      position_.try_emplace(node.get(), position_.size());
      auto& makers = makers_.emplace_back();
      for (const Value* input : node->inputs) {
        last_use_[root(input)] = position_.at(node.get());
        if (const auto found = position_.find(input->producer); found != position_.end())
          makers.push_back(found->second);
      }
    }
    for (const Value* result : block.results) last_use_[root(result)] = block.nodes.size();
    visits_ = kVisits * block.nodes.size();
  }

  void run() {
    for (const auto& node : block_.nodes)
      if (is_large(*node) && !uses_.is_result(node->result())) consider(*node);
    std::vector<std::unique_ptr<Node>> nodes;
    for (auto& node : block_.nodes) {
      if (auto found = repeated_.find(node.get()); found != repeated_.end())
        for (auto& copy : found->second) nodes.push_back(std::move(copy));
      nodes.push_back(std::move(node));
    }
    block_.nodes = std::move(nodes);
  }

 private:
  static const Value* root(const Value* value) {
    while (value->producer && is_view(*value->producer)) value = value->producer->inputs[0];
    return value;
  }
  static bool goes_along(const Node& node, const Node& other) {
    return node.op->has(kElementwise) && node.results.size() == 1 &&
           node.result()->type.shape == other.result()->type.shape;
  }

  /// Whether the node adds to a contraction's result: the contraction's epilogue may take it if the other operand is
  /// kept.
  static bool adds_to_product(const Node& node) {
    return node.is("add") && std::any_of(node.inputs.begin(), node.inputs.end(), [](const Value* input) {
             return input->producer && input->producer->op->has(kContraction);
           });
  }

  // Users that can be fused with the node keep using it; the late ones get a copy of it.
  void consider(const Node& node) {
    const auto& users = uses_.users(node.result());
    std::vector<const Node*> late, copied;
    if (users.size() >= 2 && expands(node)) return separate(node, users);
    if (users.size() < 2 || !is_kept(node, position_.at(&node), copied)) return;
    if (!std::all_of(users.begin(), users.end(), [&](const Node* user) { return goes_along(*user, node); })) return;
    const size_t parting = find_late(node, users, late);
    if (!late.empty() && late.size() < users.size() && is_kept(node, parting, copied)) repeat(node, late, copied);
  }

  // Users that are no element-wise operations get a copy each, the late ones another.
  void separate(const Node& node, std::vector<const Node*> users) {
    std::vector<const Node*> late;
    std::ranges::sort(users, {}, [&](const Node* user) { return position_.at(user); });
    users.erase(std::unique(users.begin(), users.end()), users.end());
    find_late(node, users, late);
    if (late.size() == users.size()) late.clear();
    size_t left = users.size() - late.size();
    if (!late.empty()) repeat(node, late, {&node});
    for (const Node* user : users)
      if (left > 1 && !goes_along(*user, node)) repeat(node, {user}, {&node}), --left;
  }

  /// Collects the late users: those that also depend on the node through other nodes which cannot be fused with it, and
  /// those whose result only such users need. Returns the position of the first of these other nodes.
  size_t find_late(const Node& node, const std::vector<const Node*>& users, std::vector<const Node*>& late) {
    size_t last = position_.at(users.back());
    for (const Node* user : users)
      for (const Node* next : uses_.users(user->result())) last = std::max(last, position_.at(next));
    enum : uint8_t {
      kApart,
      kBehind,
      kBeyond
    };  // depends on the node; also through nodes that cannot be fused with it
    const size_t first = position_.at(&node);
    std::vector<uint8_t> states(last - first + 1, kApart);
    states[0] = kBehind;
    size_t parting = last;
    for (size_t place = first + 1; place <= last && visits_ > 0; ++place, --visits_) {
      uint8_t& state = states[place - first];
      for (const size_t maker : makers_[place])
        if (maker >= first) state = std::max(state, states[maker - first]);
      const Node& at = *block_.nodes[place];
      if (state == kBehind && !is_view(at) && !goes_along(at, node)) state = kBeyond;
      if (state == kBeyond) parting = std::min(parting, place);
    }
    const auto is_behind = [&](const Node* user) {
      return states[position_.at(user) - first] == kBeyond && goes_along(*user, node);
    };
    for (const Node* user : users) {
      const auto& next = uses_.users(user->result());
      const bool waits =
          !next.empty() && !uses_.is_result(user->result()) && std::all_of(next.begin(), next.end(), is_behind);
      if ((is_behind(user) || waits) && !adds_to_product(*user)) late.push_back(user);
    }
    return parting;
  }

  /// Whether all operands of the node are still live after the position, if the nodes in `copied` are repeated with it.
  bool is_kept(const Node& node, size_t position, std::vector<const Node*>& copied) const {
    copied.assign(1, &node);
    for (size_t i = 0; i < copied.size(); ++i)
      for (const Value* input : copied[i]->inputs) {
        const Node* producer = input->producer;
        if (constant_of(input)) continue;
        if (std::find(copied.begin(), copied.end(), producer) != copied.end()) continue;
        const auto last = last_use_.find(root(input));
        if (last != last_use_.end() && last->second > position && !rounds(*copied[i])) continue;
        if (!producer || !is_cheap(*producer) || !goes_along(*producer, node)) return false;
        copied.push_back(producer);
        if (std::ranges::count_if(copied, [](const Node* each) { return !changes_type(*each); }) > kLongest)
          return false;
      }
    return true;
  }

  void repeat(const Node& node, const std::vector<const Node*>& users, const std::vector<const Node*>& copied) {
    std::unordered_map<const Value*, Value*> map;
    std::vector<const Node*> in_order = copied;
    std::sort(in_order.begin(), in_order.end(),
              [&](const Node* a, const Node* b) { return position_.at(a) < position_.at(b); });
    auto& copies = repeated_[users.front()];
    for (const Node* each : in_order) {
      for (Value* input : each->inputs) map.try_emplace(input, input);
      copies.push_back(clone(*each, map));
    }
    for (const Node* user : users)
      for (Value*& input : block_.nodes[position_.at(user)]->inputs)
        if (input == node.result()) input = copies.back()->result();
    size_t& last = last_use_[node.result()] = 0;
    for (const Node* user : uses_.users(node.result()))
      if (std::find(users.begin(), users.end(), user) == users.end()) last = std::max(last, position_.at(user));
  }

  Block& block_;
  Uses uses_;
  PointerMap<const Node*, size_t> position_;
  std::vector<std::vector<size_t>> makers_;    // by position: the positions of those that make the node's operands
  PointerMap<const Value*, size_t> last_use_;  // by root
  PointerMap<const Node*, std::vector<std::unique_ptr<Node>>> repeated_;  // copies, by the node after them
  size_t visits_ = 0;
};

}  // namespace

void repeat_cheap(Block& block) {
  PointerMap<const Value*, const Node*> users;  // of large results: the last one so far
  bool several = false;
  for (const auto& node : block.nodes) {
    for (const Value* input : node->inputs)
      if (const auto found = users.find(input); found != users.end()) {
        several = several || (found->second && found->second != node.get());
        found->second = node.get();
      }
    if (is_large(*node)) users[node->result()] = nullptr;
  }
  if (several) Repeater(block).run();
}

}  // namespace cairn
