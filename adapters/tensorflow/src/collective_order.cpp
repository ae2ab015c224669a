// The pass that gives the collectives of a graph one order. TensorFlow starts operators as their inputs become ready, which
// differs between ranks, while all ranks must call the collectives of a group in the same order: each waits for the one before.
// The order follows from the collectives alone, what they depend on and their numbers, so that ranks whose graphs differ
// elsewhere (one fetches summaries) agree on it.
#include <map>

#include "tensorflow/core/common_runtime/optimization_registry.h"
#include "tensorflow/core/framework/function.h"
#include "tensorflow/core/graph/algorithm.h"
#include "tensorflow/core/graph/graph.h"

namespace cairn_tf {
namespace {

namespace tf = tensorflow;

constexpr const char* kCollective = "CairnCollective";

class Order {
 public:
  Order(tf::Graph& graph, const tf::FunctionLibraryDefinition* functions) : graph_(graph), functions_(functions) {}

  void run() {
    find_collectives();
    if (keys_.size() < 2) return;
    find_depths();
    tf::Node* before = nullptr;
    for (tf::Node* node : sorted()) {
      if (depth_[static_cast<size_t>(node->id())] != 0) continue;  // a dead collective must not end those behind it
      if (before) graph_.AddControlEdge(before, node);
      before = node;
    }
  }

 private:
  using Key = std::pair<tf::int64, std::string>;

  void find_collectives() {
    for (tf::Node* node : graph_.op_nodes()) {
      if (node->type_string() == kCollective)
        keys_[node] = {node->attrs().Find("order")->i(), node->name()};
      else if (calls_collective(node->def()))
        keys_[node] = {0, node->name()};
    }
  }

  bool calls_collective(const tf::NodeDef& node) {
    if (!functions_) return false;
    if (has_collective(node.op())) return true;
    for (const auto& [name, value] : node.attr()) {
      if (value.has_func() && has_collective(value.func().name())) return true;
      for (const auto& each : value.list().func())
        if (has_collective(each.name())) return true;
    }
    return false;
  }

  bool has_collective(const std::string& function) {
    auto [known, fresh] = functions_with_.try_emplace(function, false);
    if (!fresh) return known->second;
    const tf::FunctionDef* body = functions_->Find(function);
    bool found = false;
    for (int i = 0; body && !found && i < body->node_def_size(); ++i)
      found = body->node_def(i).op() == kCollective || calls_collective(body->node_def(i));
    return functions_with_[function] = found;
  }

  static bool is_back_edge(const tf::Edge& edge) { return edge.src()->IsNextIteration(); }

  /// Topological; of the collectives that could come next the one with the least key does.
  std::vector<tf::Node*> sorted() const {
    std::vector<int> waits(static_cast<size_t>(graph_.num_node_ids()), 0);
    std::vector<tf::Node*> plain, order;
    std::map<Key, tf::Node*> ready;
    const auto add = [&](tf::Node* node) {
      const auto key = keys_.find(node);
      if (key == keys_.end())
        plain.push_back(node);
      else
        ready[key->second] = node;
    };
    for (tf::Node* node : graph_.nodes()) {
      for (const tf::Edge* edge : node->in_edges()) waits[static_cast<size_t>(node->id())] += !is_back_edge(*edge);
      if (!waits[static_cast<size_t>(node->id())]) add(node);
    }
    while (!plain.empty() || !ready.empty()) {
      tf::Node* node = nullptr;
      if (!plain.empty()) {
        node = plain.back();
        plain.pop_back();
      } else {
        node = ready.begin()->second;
        ready.erase(ready.begin());
        order.push_back(node);
      }
      for (const tf::Edge* edge : node->out_edges())
        if (!is_back_edge(*edge) && !--waits[static_cast<size_t>(edge->dst()->id())]) add(edge->dst());
    }
    return order;
  }

  /// How many TF1 conditionals and loops a node is in.
  void find_depths() {
    std::vector<tf::Node*> order;
    tf::GetReversePostOrder(graph_, &order, tf::NodeComparatorID(),
                            [](const tf::Edge& edge) { return !is_back_edge(edge); });
    depth_.assign(static_cast<size_t>(graph_.num_node_ids()), 0);
    for (const tf::Node* node : order) {
      int& depth = depth_[static_cast<size_t>(node->id())];
      bool heads_loop = false;
      for (const tf::Edge* edge : node->in_edges()) {
        heads_loop = heads_loop || is_back_edge(*edge);
        depth = std::max(depth, depth_[static_cast<size_t>(edge->src()->id())]);
      }
      if (node->IsSwitch() || node->IsEnter()) ++depth;
      if ((node->IsMerge() && !heads_loop) || node->IsExit()) depth = std::max(0, depth - (node->IsExit() ? 2 : 1));
    }
  }

  tf::Graph& graph_;
  const tf::FunctionLibraryDefinition* functions_;
  std::map<const tf::Node*, Key> keys_;
  std::map<std::string, bool> functions_with_;
  std::vector<int> depth_;
};

class OrderCollectives : public tf::GraphOptimizationPass {
 public:
  tf::Status Run(const tf::GraphOptimizationPassOptions& options) override {
    if (options.graph && *options.graph) Order(**options.graph, options.flib_def).run();
    return tf::OkStatus();
  }
};

constexpr int kBeforeClusters = 2;
REGISTER_OPTIMIZATION(tf::OptimizationPassRegistry::POST_REWRITE_FOR_EXEC, kBeforeClusters, OrderCollectives);

}  // namespace
}  // namespace cairn_tf
