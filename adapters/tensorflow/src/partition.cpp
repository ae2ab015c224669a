#include "partition.h"

#include <algorithm>
#include <limits>
#include <map>

namespace cairn_tf {

namespace {

class Partitioner {
 public:
  explicit Partitioner(const std::vector<Node>& nodes) : nodes_(nodes) {
    for (const Node& node : nodes) result_.host.push_back(node.host);
    users_.resize(nodes.size());
    ring_units();
    for (size_t i = 0; i < nodes.size(); ++i)
      for (const Input& input : nodes[i].inputs) users_[at(input.node)].push_back({static_cast<int>(i), input});
    sort();
    for (const auto& component : components_)
      for (int member : component)
        if (!result_.host[at(member)].empty() && component.size() > 1) {
          leave(at(member),
                "stands in TF1 control flow with " + nodes_[at(member)].name + ": " + nodes_[at(member)].host);
          break;
        }
  }

  Partition run() {
    do {
      keep_references_together();
      find_levels();
      sink();
    } while (part_references() || dissolve_small());
    std::map<int, std::vector<int>> clusters;
    for (size_t i = 0; i < nodes_.size(); ++i)
      if (on_engine(i)) clusters[levels_[i]].push_back(static_cast<int>(i));
    for (auto& [level, members] : clusters) result_.clusters.push_back(std::move(members));
    return std::move(result_);
  }

 private:
  struct User {
    int node;
    Input input;
  };

  static size_t at(int node) { return static_cast<size_t>(node); }
  bool on_engine(size_t i) const { return result_.host[i].empty() && !nodes_[i].constant; }

  // The nodes of a unit wait for each other in a ring, so that they are one component.
  void ring_units() {
    next_of_unit_.assign(nodes_.size(), -1);
    std::map<int, std::pair<int, int>> ends;  // first and last member so far
    for (size_t i = 0; i < nodes_.size(); ++i) {
      if (nodes_[i].unit < 0) continue;
      const int node = static_cast<int>(i);
      auto [unit, fresh] = ends.try_emplace(nodes_[i].unit, node, node);
      next_of_unit_[at(unit->second.second)] = node;
      unit->second.second = node;
    }
    for (const auto& [unit, members] : ends) next_of_unit_[at(members.second)] = members.first;
  }

  // All that has to go with a node stays with it.
  void leave(size_t i, const std::string& why) {
    for (int member : components_[component_of_[i]])
      if (result_.host[at(member)].empty()) result_.host[at(member)] = why;
  }

  // Tarjan's strongly connected components over the inputs, with a stack of our own: each component comes after all that
  // it depends on. A loop of TF1 control flow is one component, everything else a component of one node.
  void sort() {
    std::vector<int> number(nodes_.size(), -1), lowest(nodes_.size(), 0);
    std::vector<size_t> next_input(nodes_.size(), 0);
    std::vector<bool> open(nodes_.size(), false);
    std::vector<int> path, unfinished;
    int count = 0;
    auto enter = [&](int node) {
      number[at(node)] = lowest[at(node)] = count++;
      open[at(node)] = true;
      path.push_back(node);
      unfinished.push_back(node);
    };
    for (size_t root = 0; root < nodes_.size(); ++root) {
      if (number[root] < 0) enter(static_cast<int>(root));
      while (!path.empty()) {
        const int node = path.back();
        const auto& inputs = nodes_[at(node)].inputs;
        const size_t unit = next_of_unit_[at(node)] < 0 ? 0 : 1;
        if (next_input[at(node)] < inputs.size() + unit) {
          const size_t input = next_input[at(node)]++;
          const int from = input < inputs.size() ? inputs[input].node : next_of_unit_[at(node)];
          if (number[at(from)] < 0)
            enter(from);
          else if (open[at(from)])
            lowest[at(node)] = std::min(lowest[at(node)], number[at(from)]);
          continue;
        }
        path.pop_back();
        if (!path.empty()) lowest[at(path.back())] = std::min(lowest[at(path.back())], lowest[at(node)]);
        if (lowest[at(node)] != number[at(node)]) continue;
        auto first = std::find(unfinished.rbegin(), unfinished.rend(), node).base() - 1;
        components_.emplace_back(first, unfinished.end());
        unfinished.erase(first, unfinished.end());
        for (int member : components_.back()) open[at(member)] = false;
      }
    }
    component_of_.resize(nodes_.size());
    for (size_t i = 0; i < components_.size(); ++i) {
      order_.insert(order_.end(), components_[i].begin(), components_[i].end());
      for (int member : components_[i]) component_of_[at(member)] = i;
    }
  }

  // A variable's reference cannot leave a cluster: what makes one for a host node stays on the host. A list can neither
  // leave nor enter.
  void keep_references_together() {
    for (bool changed = true; changed;) {
      changed = false;
      for (auto node = order_.rbegin(); node != order_.rend(); ++node)
        for (const User& user : users_[at(*node)]) {
          bool here = on_engine(at(*node)), there = on_engine(at(user.node));
          if (here && !there && (user.input.reference || user.input.list)) {
            leave(at(*node), "hands a " + kind(user.input) + " to " + nodes_[at(user.node)].op);
            changed = true;
          } else if (!here && there && user.input.list) {
            leave(at(user.node), "takes a list from " + nodes_[at(*node)].op);
            changed = true;
          }
        }
    }
  }

  static std::string kind(const Input& input) { return input.list ? "list" : "reference of a variable"; }

  // Both ends of a reference are in one cluster, or both on the host.
  bool part_references() {
    bool parted = false;
    for (size_t i = 0; i < nodes_.size(); ++i) {
      if (!on_engine(i)) continue;
      for (const User& user : users_[i]) {
        if (!(user.input.reference || user.input.list) || !on_engine(at(user.node))) continue;
        if (levels_[at(user.node)] == levels_[i]) continue;
        leave(i, "shares a " + kind(user.input) + " across a host operator");
        leave(at(user.node), "shares a " + kind(user.input) + " across a host operator");
        parted = true;
        break;
      }
    }
    return parted;
  }

  void find_levels() {
    levels_.assign(nodes_.size(), 0);
    for (const auto& component : components_) {
      bool engine = on_engine(at(component[0]));
      int level = engine ? 1 : 0;
      for (int node : component)
        for (const Input& input : nodes_[at(node)].inputs) {
          if (nodes_[at(input.node)].constant) continue;
          level = std::max(level, levels_[at(input.node)] + (engine && !on_engine(at(input.node)) ? 1 : 0));
        }
      for (int node : component) levels_[at(node)] = nodes_[at(node)].constant ? 0 : level;
    }
  }

  // A node whose users all come later joins them instead of sending its result there, unless a variable that it reads
  // could be written in between.
  void sink() {
    int first_write = std::numeric_limits<int>::max();
    for (size_t i = 0; i < nodes_.size(); ++i)
      if (nodes_[i].writes) first_write = std::min(first_write, levels_[i]);
    for (auto component = components_.rbegin(); component != components_.rend(); ++component) {
      int level = std::numeric_limits<int>::max();
      bool used = false, stays = false;
      for (int node : *component) {
        stays = stays || !on_engine(at(node)) || nodes_[at(node)].writes;
        if (nodes_[at(node)].reads) level = std::min(level, first_write);
        for (const User& user : users_[at(node)]) {
          if (component_of_[at(user.node)] == component_of_[at(node)]) continue;
          used = true;
          level = std::min(level, on_engine(at(user.node)) ? levels_[at(user.node)] : 0);
        }
      }
      if (stays || !used) continue;
      for (int node : *component) levels_[at(node)] = std::max(levels_[at(node)], level);
    }
  }

  bool dissolve_small() {
    std::map<int, int> work;
    for (size_t i = 0; i < nodes_.size(); ++i)
      if (on_engine(i)) work[levels_[i]] += nodes_[i].work;
    bool dissolved = false;
    for (size_t i = 0; i < nodes_.size(); ++i) {
      if (!on_engine(i) || work[levels_[i]] >= kLeastWork) continue;
      result_.host[i] = "too little work for a cluster of its own";
      dissolved = true;
    }
    return dissolved;
  }

  const std::vector<Node>& nodes_;
  std::vector<std::vector<User>> users_;
  std::vector<std::vector<int>> components_;  // nodes that depend on each other, in an order of dependence
  std::vector<size_t> component_of_;
  std::vector<int> next_of_unit_;
  std::vector<int> order_;
  std::vector<int> levels_;
  Partition result_;
};

}  // namespace

Partition partition(const std::vector<Node>& nodes) { return Partitioner(nodes).run(); }

}  // namespace cairn_tf
