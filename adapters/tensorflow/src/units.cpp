// TF1 control flow as the partitioner sees it: which conditional or loop each node is part of.
#include <algorithm>
#include <map>
#include <set>

#include "partition.h"

namespace cairn_tf {
namespace {

class Units {
 public:
  explicit Units(std::vector<Node>& nodes) : nodes_(nodes), roots_(nodes.size()), depths_(nodes.size(), 0) {
    states_.resize(nodes.size());
    for (size_t i = 0; i < nodes.size(); ++i) roots_[i] = static_cast<int>(i);
  }

  void run() {
    auto flows = [](const Node& node) { return is(node, "Switch") || is(node, "Merge") || is(node, "Enter"); };
    if (std::none_of(nodes_.begin(), nodes_.end(), flows)) return;
    std::vector<bool> member(nodes_.size(), false);
    for (size_t i : order()) member[i] = visit(i);
    for (size_t i = 0; i < nodes_.size(); ++i)
      if (member[i]) nodes_[i].unit = root(static_cast<int>(i));
    for (Node& node : nodes_)
      if (node.unit >= 0) node.constant = false;
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

  int root(int node) {
    while (roots_[at(node)] != node) node = roots_[at(node)] = roots_[at(roots_[at(node)])];
    return node;
  }
  void join(int a, int b) { roots_[at(root(a))] = root(b); }

  /// Whether node i belongs to a unit; joined with the inputs that make it belong.
  bool visit(size_t i) {
    const Node& node = nodes_[i];
    const int self = static_cast<int>(i);
    bool inside = is(node, "Switch") || is(node, "Enter");
    std::vector<State> branches;
    for (const Input& input : node.inputs) {
      if (is(from(input), "NextIteration")) continue;  // one of them has been here
      const int depth = depths_[at(input.node)] - (is(from(input), "Exit") ? 1 : 0);
      State state = state_behind(input);
      depths_[i] = std::max(depths_[i], depth);
      if (depth > 0 || !state.empty()) {
        inside = true;
        join(self, input.node);
      }
      if (!input.control) branches.push_back(state);
      if (node.op != "ControlTrigger" && !(is(node, "Merge") && input.control)) states_[i].merge(state);
    }
    if (is(node, "Merge")) leave_branches(i, branches);
    if (is(node, "Enter")) {
      auto [frame, fresh] = frames_.try_emplace(node.frame, self);
      if (!fresh) join(self, frame->second);
      ++depths_[i];
    }
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

  /// A Merge of a conditional stands outside of its two branches; one of a loop joins nothing.
  void leave_branches(size_t i, const std::vector<State>& branches) {
    if (branches.size() < 2) return;
    for (const auto& [condition, yes] : branches[0])
      if (branches.size() == 2 && branches[1].count({condition, !yes})) {
        states_[i].erase({condition, true});
        states_[i].erase({condition, false});
        return;
      }
    if (nodes_[i].host.empty()) nodes_[i].host = "joins values that no condition tells apart";
  }

  std::vector<Node>& nodes_;
  std::vector<int> roots_;
  std::vector<int> depths_;  // how many frames a node is in
  std::vector<State> states_;
  std::map<std::string, int> frames_;  // an Enter of each
};

}  // namespace

void find_units(std::vector<Node>& nodes) { Units(nodes).run(); }

}  // namespace cairn_tf
