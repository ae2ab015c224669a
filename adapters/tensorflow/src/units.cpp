// TF1 control flow as the partitioner sees it: which conditional or loop each node is part of.
#include <algorithm>
#include <map>
#include <set>

#include "partition.h"

namespace cairn_tf {
namespace {

class Units {
 public:
  explicit Units(std::vector<Node>& nodes)
      : nodes_(nodes), units_(nodes.size()), shared_(nodes.size(), false), depths_(nodes.size(), 0) {
    states_.resize(nodes.size());
    for (size_t i = 0; i < nodes.size(); ++i) units_[i] = static_cast<int>(i);
    parts_ = units_;
  }

  void run() {
    auto flows = [](const Node& node) { return is(node, "Switch") || is(node, "Merge") || is(node, "Enter"); };
    if (std::none_of(nodes_.begin(), nodes_.end(), flows)) return;
    std::vector<bool> member(nodes_.size(), false);
    for (size_t i : order()) member[i] = visit(i);
    for (size_t i = 0; i < nodes_.size(); ++i)
      if (member[i]) nodes_[i].unit = root(units_, static_cast<int>(i));
    for (Node& node : nodes_)
      if (node.unit >= 0) node.constant = false;
  }

  /// After run(): copies of shared nodes at the end of the nodes, so that no two parts of a broken unit share one. The
  /// original of each.
  std::vector<int> part() {
    const std::set<int> broken = broken_units();
    if (broken.empty()) return {};
    const std::vector<size_t> sorted = order();
    std::vector<std::set<int>> needed(nodes_.size());  // by which parts
    for (auto i = sorted.rbegin(); i != sorted.rend(); ++i)
      for (const Input& input : nodes_[*i].inputs) {
        if (!shared_[at(input.node)] || !broken.count(from(input).unit)) continue;
        std::set<int>& parts = needed[at(input.node)];
        if (shared_[*i])
          parts.insert(needed[*i].begin(), needed[*i].end());
        else
          parts.insert(root(parts_, static_cast<int>(*i)));
      }
    std::vector<int> originals;
    std::map<std::pair<int, int>, int> copies;  // of a node, for a part
    auto rewire = [&](Node& node, int part) {
      for (Input& input : node.inputs)
        if (auto copy = copies.find({input.node, part}); copy != copies.end()) input.node = copy->second;
    };
    for (size_t i : sorted) {
      const bool own = needed[i].empty();
      for (int part : needed[i]) {
        if (part == *needed[i].begin()) continue;
        copies[{static_cast<int>(i), part}] = static_cast<int>(nodes_.size());
        originals.push_back(static_cast<int>(i));
        nodes_.push_back(Node(nodes_[i]));
        rewire(nodes_.back(), part);
      }
      rewire(nodes_[i], own ? root(parts_, static_cast<int>(i)) : *needed[i].begin());
    }
    return originals;
  }

 private:
  using State = std::set<std::pair<std::pair<int, int>, bool>>;  // conditions, and how they must come out

  static size_t at(int node) { return static_cast<size_t>(node); }
  static bool is(const Node& node, const std::string& op) { return node.op == op || node.op == "Ref" + op; }
  const Node& from(const Input& input) const { return nodes_[at(input.node)]; }

  static const Input* data(const Node& node, int number) {
    for (const Input& input : node.inputs)
      if (!input.control && number-- == 0) return &input;
    return nullptr;
  }

  /// Each node behind those it reads, the way round a loop left out; of what is left in a circle nothing.
  std::vector<size_t> order() const {
    std::vector<std::vector<size_t>> users(nodes_.size());
    std::vector<size_t> waits(nodes_.size(), 0), sorted;
    for (size_t i = 0; i < nodes_.size(); ++i)
      for (const Input& input : nodes_[i].inputs) {
        if (is(from(input), "NextIteration")) continue;
        users[at(input.node)].push_back(i);
        ++waits[i];
      }
    for (size_t i = 0; i < nodes_.size(); ++i)
      if (waits[i] == 0) sorted.push_back(i);
    for (size_t next = 0; next < sorted.size(); ++next)
      for (size_t user : users[sorted[next]])
        if (--waits[user] == 0) sorted.push_back(user);
    return sorted;
  }

  static int root(std::vector<int>& roots, int node) {
    while (roots[at(node)] != node) node = roots[at(node)] = roots[at(roots[at(node)])];
    return node;
  }
  static void join(std::vector<int>& roots, int a, int b) { roots[at(root(roots, a))] = root(roots, b); }

  /// Units that hold a host node, or that one stands between: as they are they stay with TensorFlow.
  std::set<int> broken_units() const {
    std::map<int, std::vector<int>> members;
    for (size_t i = 0; i < nodes_.size(); ++i)
      if (nodes_[i].unit >= 0) members[nodes_[i].unit].push_back(static_cast<int>(i));
    std::vector<std::vector<int>> users(nodes_.size());
    for (size_t i = 0; i < nodes_.size() && !members.empty(); ++i)
      for (const Input& input : nodes_[i].inputs) users[at(input.node)].push_back(static_cast<int>(i));
    std::set<int> broken;
    for (const auto& [unit, nodes] : members)
      if (std::any_of(nodes.begin(), nodes.end(), [&](int node) { return !nodes_[at(node)].host.empty(); }) ||
          returns_by_the_host(unit, nodes, users))
        broken.insert(unit);
    return broken;
  }

  /// Whether a way leads from the unit's nodes through a host node back to them.
  bool returns_by_the_host(int unit, const std::vector<int>& nodes, const std::vector<std::vector<int>>& users) const {
    std::vector<char> met(nodes_.size(), 0);  // 1: from the unit, 2: and by a host node
    std::vector<int> path = nodes;
    while (!path.empty()) {
      const int node = path.back();
      path.pop_back();
      const char by = met[at(node)] == 2 || !nodes_[at(node)].host.empty() ? 2 : 1;
      for (int user : users[at(node)]) {
        if (nodes_[at(user)].unit == unit) {
          if (by == 2) return true;
        } else if (met[at(user)] < by) {
          met[at(user)] = by;
          path.push_back(user);
        }
      }
    }
    return false;
  }

  /// Whether node i belongs to a unit; joined with the inputs that make it belong.
  bool visit(size_t i) {
    const Node& node = nodes_[i];
    const int self = static_cast<int>(i);
    bool inside = is(node, "Switch") || is(node, "Enter");
    bool shared = is(node, "Switch") || node.op == "Identity" || node.op == "Const";
    std::vector<State> branches;
    for (const Input& input : node.inputs) {
      if (is(from(input), "NextIteration")) continue;  // one of them has been here
      const int depth = depths_[at(input.node)] - (is(from(input), "Exit") ? 1 : 0);
      State state = state_behind(input);
      depths_[i] = std::max(depths_[i], depth);
      if (depth > 0 || !state.empty()) {
        inside = true;
        join(units_, self, input.node);
        if (!shared_[at(input.node)]) {
          join(parts_, self, input.node);
          shared = false;
        }
      }
      if (!input.control) branches.push_back(state);
      if (node.op != "ControlTrigger" && !(is(node, "Merge") && input.control)) states_[i].merge(state);
    }
    if (is(node, "Merge")) leave_branches(i, branches);
    if (is(node, "Enter")) {
      auto [frame, fresh] = frames_.try_emplace(node.frame, self);
      if (!fresh) join(units_, self, frame->second);
      if (!fresh) join(parts_, self, frame->second);
      ++depths_[i];
    }
    shared_[i] = shared && inside && depths_[i] == 0;
    return inside;
  }

  /// Under which conditions a value runs.
  State state_behind(const Input& input) const {
    State state = states_[at(input.node)];
    const Node& node = from(input);
    if (input.control || !is(node, "Switch")) return state;
    const Input* condition = data(node, 1);
    while (condition && from(*condition).op == "Identity" && data(from(*condition), 0))
      condition = data(from(*condition), 0);
    if (condition && from(*condition).op != "LoopCond")
      state.insert({{condition->node, condition->port}, input.port == 1});
    return state;
  }

  /// Gradients that a branch takes switch and merge its values by its own condition.
  static bool never_runs(const State& state) {
    return std::any_of(state.begin(), state.end(), [&](const auto& entry) {
      return entry.second && state.count({entry.first, false});
    });
  }

  /// A Merge of a conditional stands outside of its two branches; one of a loop joins nothing.
  void leave_branches(size_t i, const std::vector<State>& branches) {
    if (branches.size() < 2) return;
    for (size_t side : {0, 1})
      if (branches.size() == 2 && never_runs(branches[side])) {
        states_[i] = branches[1 - side];
        return;
      }
    for (const auto& [condition, yes] : branches[0])
      if (branches.size() == 2 && branches[1].count({condition, !yes})) {
        states_[i].erase({condition, true});
        states_[i].erase({condition, false});
        return;
      }
    if (nodes_[i].host.empty()) nodes_[i].host = "joins values that no condition tells apart";
  }

  std::vector<Node>& nodes_;
  std::vector<int> units_;    // a tree of each: another member, at the root itself
  std::vector<int> parts_;    // the same of what belongs together without the shared nodes
  std::vector<bool> shared_;  // a Switch, or what hands it on or waits for it: a copy does the same
  std::vector<int> depths_;   // how many frames a node is in
  std::vector<State> states_;
  std::map<std::string, int> frames_;  // an Enter of each
};

}  // namespace

void find_units(std::vector<Node>& nodes) { Units(nodes).run(); }

std::vector<int> part_conditionals(std::vector<Node>& nodes) {
  Units units(nodes);
  units.run();
  std::vector<int> originals = units.part();
  if (!originals.empty()) find_units(nodes);
  return originals;
}

}  // namespace cairn_tf
