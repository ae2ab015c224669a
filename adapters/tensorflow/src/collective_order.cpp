// The pass that gives the collectives of a graph one order. TensorFlow starts operators as their inputs become ready, which
// differs between ranks, while all ranks must call the collectives of a group in the same order: each waits for the one before.
// The order follows from the collectives alone, what they depend on and their numbers, so that ranks whose graphs differ
// elsewhere (one fetches summaries) agree on it.
#include "collectives.h"
#include "tensorflow/core/common_runtime/optimization_registry.h"

namespace cairn_tf {
namespace {

class Order {
 public:
  Order(tf::Graph& graph, const Collectives& all) : graph_(graph), all_(all) {}

  tf::Status run() {
    if (all_.keys().size() < 2) return tf::OkStatus();
    std::vector<tf::Node*> nodes;
    for (tf::Node* node : graph_.nodes()) nodes.push_back(node);
    return order(nodes, 0);
  }

 private:
  /// What runs as one: a node, or a loop with all that is in it.
  struct Unit {
    std::vector<tf::Node*> nodes;
    std::vector<tf::Node*> collectives;
    bool loop = false;
  };

  /// Of nodes that have so many frames in common.
  tf::Status order(const std::vector<tf::Node*>& nodes, size_t depth) {
    std::vector<Unit> units = units_of(nodes, depth);
    tf::Node* before = nullptr;
    for (const size_t i : sorted(units)) {
      const Unit& unit = units[i];
      if (!unit.loop) {
        if (before) graph_.AddControlEdge(before, unit.nodes[0]);
        TF_RETURN_IF_ERROR(behind({unit.nodes[0]}, all_.conditions(unit.nodes[0]) > 0, before));
        continue;
      }
      // The loop begins once those before it have ended, makes one turn after the other, and ends before those behind it begin.
      std::vector<tf::Node*> exits;
      for (tf::Node* node : unit.nodes) {
        if (all_.frame(node).size() != depth + 1) continue;
        if (node->IsExit()) exits.push_back(node);
        if (!node->IsEnter()) continue;
        if (before) graph_.AddControlEdge(before, node);
        node->ClearAttr("parallel_iterations");
        node->AddAttr("parallel_iterations", 1);
      }
      TF_RETURN_IF_ERROR(order(unit.nodes, depth + 1));
      if (!exits.empty()) TF_RETURN_IF_ERROR(behind(exits, true, before));
    }
    return tf::OkStatus();
  }

  /// What the next collective waits for. Where a conditional may leave these out, it must not end those behind it: a
  /// ControlTrigger runs in any case.
  tf::Status behind(const std::vector<tf::Node*>& nodes, bool may_be_dead, tf::Node*& before) {
    before = nodes[0];
    if (!may_be_dead) return tf::OkStatus();
    tf::NodeDef def;
    def.set_name(graph_.NewName(nodes[0]->name() + "/order"));
    def.set_op("ControlTrigger");
    def.set_device(nodes[0]->requested_device());
    tf::Status status;
    before = graph_.AddNode(def, &status);
    if (!status.ok()) return status;
    before->set_assigned_device_name(nodes[0]->assigned_device_name());
    for (tf::Node* node : nodes) graph_.AddControlEdge(node, before);
    return status;
  }

  std::vector<Unit> units_of(const std::vector<tf::Node*>& nodes, size_t depth) const {
    std::vector<Unit> units;
    std::map<std::string, size_t> loops;
    for (tf::Node* node : nodes) {
      const Collectives::Frame& frame = all_.frame(node);
      size_t index = units.size();
      if (frame.size() > depth) index = loops.emplace(frame[depth], index).first->second;
      if (index == units.size()) units.emplace_back();
      units[index].loop = frame.size() > depth;
      units[index].nodes.push_back(node);
      if (all_.keys().count(node)) units[index].collectives.push_back(node);
    }
    return units;
  }

  /// Those with collectives in an order in which each follows what it depends on; of those that could come next the one with the
  /// least key does.
  std::vector<size_t> sorted(const std::vector<Unit>& units) const {
    constexpr size_t kElsewhere = -1;
    std::vector<size_t> unit_of(static_cast<size_t>(graph_.num_node_ids()), kElsewhere);
    for (size_t i = 0; i < units.size(); ++i)
      for (const tf::Node* node : units[i].nodes) unit_of[static_cast<size_t>(node->id())] = i;
    std::vector<std::vector<size_t>> followers(units.size());
    std::vector<int> waits(units.size(), 0);
    for (size_t i = 0; i < units.size(); ++i)
      for (const tf::Node* node : units[i].nodes)
        for (const tf::Edge* edge : node->out_edges()) {
          const auto id = static_cast<size_t>(edge->dst()->id());
          const size_t other = id < unit_of.size() ? unit_of[id] : kElsewhere;
          if (is_back_edge(*edge) || other == i || other == kElsewhere) continue;
          followers[i].push_back(other);
          ++waits[other];
        }
    std::vector<size_t> plain, order;
    std::map<Collectives::Key, size_t> ready;
    const auto add = [&](size_t unit) {
      if (units[unit].collectives.empty()) return plain.push_back(unit);
      Collectives::Key least = all_.keys().at(units[unit].collectives[0]);
      for (tf::Node* node : units[unit].collectives) least = std::min(least, all_.keys().at(node));
      ready[least] = unit;
    };
    for (size_t i = 0; i < units.size(); ++i)
      if (!waits[i]) add(i);
    while (!plain.empty() || !ready.empty()) {
      size_t unit = 0;
      if (!plain.empty()) {
        unit = plain.back();
        plain.pop_back();
      } else {
        unit = ready.begin()->second;
        ready.erase(ready.begin());
        order.push_back(unit);
      }
      for (const size_t follower : followers[unit])
        if (!--waits[follower]) add(follower);
    }
    return order;
  }

  tf::Graph& graph_;
  const Collectives& all_;
};

class OrderCollectives : public tf::GraphOptimizationPass {
 public:
  tf::Status Run(const tf::GraphOptimizationPassOptions& options) override {
    if (!options.graph || !*options.graph) return tf::OkStatus();
    TF_RETURN_IF_ERROR(fuse_collectives(**options.graph, options.flib_def));
    return Order(**options.graph, Collectives(**options.graph, options.flib_def)).run();
  }
};

constexpr int kBeforeClusters = 2;
REGISTER_OPTIMIZATION(tf::OptimizationPassRegistry::POST_REWRITE_FOR_EXEC, kBeforeClusters, OrderCollectives);

}  // namespace
}  // namespace cairn_tf
