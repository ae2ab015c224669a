// Reads a TensorFlow graph as the partitioner sees it, and has its clusters made.
#include "clusterer.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "assertion.h"
#include "edges.h"
#include "op_traits.h"
#include "report.h"
#include "tensorflow/core/graph/algorithm.h"

namespace cairn_tf {
namespace {

using tf::DataType;

constexpr int64_t kSmallConstant = 64 << 10;  // bytes; larger ones are not copied into several clusters

bool computes(const tf::Node& node) {
  if (node.IsConstant() || holds_variable(node) || node.IsArg() || node.IsRetval()) return false;
  auto numeric = [](DataType type) {
    type = tf::BaseType(type);
    return tf::DataTypeIsFloating(type) || tf::DataTypeIsInteger(type) || type == tf::DT_BOOL ||
           type == tf::DT_RESOURCE;
  };
  if (node.num_inputs() == 0 && node.num_outputs() == 0) return false;
  return std::all_of(node.input_types().begin(), node.input_types().end(), numeric) &&
         std::all_of(node.output_types().begin(), node.output_types().end(), numeric);
}

/// The graph without what constants hold, as the engine is asked about it.
tf::GraphDef outline(const tf::Graph& graph, const tf::FunctionLibraryDefinition* functions) {
  tf::GraphDef outline;
  bool calls = false;
  for (const tf::Node* node : graph.op_nodes()) {
    tf::NodeDef* def = outline.add_node();
    def->set_name(node->name());
    def->set_op(node->type_string());
    for (const auto& [name, value] : node->def().attr()) {
      if ((node->IsConstant() && name == "value") || is_note(name)) continue;
      calls = calls || value.has_func() || value.list().func_size() > 0;
      (*def->mutable_attr())[name] = value;
    }
    calls = calls || (functions && functions->Find(node->type_string()));
  }
  if (calls && functions) *outline.mutable_library() = functions->ReachableDefinitions(outline).ToProto();
  return outline;
}

/// The switches of conditionals inside loops. The engine copies what a branch hands out, so TensorFlow may be faster there.
std::vector<const tf::Node*> branches_in_loops(const tf::Graph& graph) {
  std::vector<const tf::Node*> found, open;
  std::vector<bool> met(static_cast<size_t>(graph.num_node_ids()), false);
  const auto meet = [&](const tf::Node* node) {
    if (met[static_cast<size_t>(node->id())] || node->IsExit()) return;
    met[static_cast<size_t>(node->id())] = true;
    open.push_back(node);
  };
  for (const tf::Node* node : graph.op_nodes())
    if (node->IsEnter()) meet(node);
  while (!open.empty()) {
    const tf::Node* node = open.back();
    open.pop_back();
    for (const tf::Node* next : node->out_nodes()) meet(next);
    const tf::Node* condition = nullptr;
    if (node->IsSwitch() && node->input_node(1, &condition).ok() && !condition->IsLoopCond()) found.push_back(node);
  }
  return found;
}

/// A graph as the partitioner sees it.
class Clusterer {
 public:
  Clusterer(tf::Graph& graph, const Library& library, const Making& making)
      : graph_(graph), library_(library), making_(making) {}

  tf::Status run() {
    TF_RETURN_IF_ERROR(carry_texts(graph_));
    TF_RETURN_IF_ERROR(read());
    copy_shared(part_conditionals(nodes_));
    keep_unknown_axes_on_host();
    order_queues();
    std::vector<tf::Node*> replaceable;
    for (tf::Node* node : order_)
      if (holds_variable(*node) && has_users(*node)) replaceable.push_back(node);
    Partition parts = partition(nodes_);
    std::vector<std::string> names;
    std::vector<bool> numeric;
    if (report_wanted())
      for (const tf::Node* node : order_) numeric.push_back(computes(*node));
    for (size_t i = 0; i < nodes_.size(); ++i)
      if (nodes_[i].constant && has_users(*order_[i])) making_.copied.insert(order_[i]);
    copy_waiting_constants(parts);
    for (const auto& members : parts.clusters) {
      std::vector<tf::Node*> inside;
      for (int member : members) inside.push_back(order_[static_cast<size_t>(member)]);
      TF_RETURN_IF_ERROR(build_cluster(graph_, making_, inside, names.emplace_back()));
    }
    if (report_wanted()) {
      add_views(parts);
      report(making_.title, nodes_, numeric, parts, names);
    }
    for (const tf::Node* node : making_.copied)
      if (!has_users(*node)) graph_.RemoveNode(graph_.FindNodeId(node->id()));  // all have copies
    for (tf::Node* variable : replaceable)
      if (!has_users(*variable)) graph_.RemoveNode(variable);  // clusters find it themselves
    tf::FixupSourceAndSinkEdges(&graph_);
    return tf::OkStatus();
  }

 private:
  static bool has_users(const tf::Node& node) {
    return std::any_of(node.out_edges().begin(), node.out_edges().end(),
                       [](const tf::Edge* edge) { return edge->dst()->IsOp(); });
  }

  /// A constant that waits for something is part of one cluster. Others get a copy, and wait for the constant itself: its value
  /// is known while they are compiled.
  void copy_waiting_constants(const Partition& parts) {
    std::vector<int> cluster_of(nodes_.size(), -1);
    for (size_t i = 0; i < parts.clusters.size(); ++i)
      for (int member : parts.clusters[i]) cluster_of[static_cast<size_t>(member)] = static_cast<int>(i);
    for (size_t i = 0; i < nodes_.size(); ++i) {
      if (!order_[i]->IsConstant() || nodes_[i].constant || !is_small(*order_[i])) continue;
      const std::vector<const tf::Edge*> edges(order_[i]->out_edges().begin(), order_[i]->out_edges().end());
      tf::Node* copy = nullptr;
      for (const tf::Edge* edge : edges) {
        if (edge->IsControlEdge() || !edge->dst()->IsOp()) continue;
        const int user = cluster_of[static_cast<size_t>(number_.at(edge->dst()))];
        if (user < 0 || user == cluster_of[i]) continue;
        if (!copy) {
          copy = graph_.CopyNode(order_[i]);
          copy->set_name(graph_.NewName(copy->name()));
          making_.copied.insert(copy);
        }
        tf::Node* to = edge->dst();
        const int input = edge->dst_input();
        graph_.RemoveEdge(edge);
        graph_.AddEdge(copy, 0, to, input);
        graph_.AddControlEdge(order_[i], to);
      }
    }
  }

  /// The views of variables that clusters have copies of, for the report: each counts once.
  void add_views(Partition& parts) const {
    std::vector<bool> met(nodes_.size(), false);
    for (auto& cluster : parts.clusters)
      for (size_t m = 0, members = cluster.size(); m < members; ++m)
        for (const Input& input : nodes_[static_cast<size_t>(cluster[m])].inputs) {
          const auto from = static_cast<size_t>(input.node);
          if (!nodes_[from].constant || nodes_[from].op != "Identity" || met[from]) continue;
          met[from] = true;
          cluster.push_back(input.node);
        }
  }

  tf::Status read() {
    for (tf::Node* node : graph_.op_nodes()) {
      number_[node] = static_cast<int>(order_.size());
      order_.push_back(node);
    }
    std::string bytes = outline(graph_, making_.functions).SerializeAsString();
    char* text = nullptr;
    if (library_.cluster_refusals(bytes.data(), bytes.size(), &text) != CAIRN_OK)
      return tf::errors::Internal("Cairn: ", last_failure(library_).message);
    auto refusals = nlohmann::json::parse(text, nullptr, false);
    library_.free_text(text);
    // A stream of random numbers is continued on the engine, whatever is faster.
    may_measure_ = making_.may_measure && std::none_of(order_.begin(), order_.end(), [](const tf::Node* node) {
                     return traits_of(node->type_string()).has("draws");
                   });
    for (const tf::Node* node : branches_in_loops(graph_)) making_.doubtful.insert(node);
    for (const tf::Node* node : order_) {
      Node& mine = nodes_.emplace_back();
      mine.name = node->name();
      mine.op = node->type_string();
      const OpTraits& traits = traits_of(mine.op);
      mine.work = traits.work();
      if (node->IsEnter()) mine.frame = node->attrs().Find("frame_name")->s();
      if (traits.has("rivalled") || computes_in_slow_types(*node)) making_.doubtful.insert(node);
      mine.host = why_on_host(*node);
      if (mine.host.empty() && refusals.contains(mine.name)) mine.host = refusals[mine.name];
      auto refused = making_.refused.find(mine.name);
      if (mine.host.empty() && refused != making_.refused.end()) mine.host = refused->second;
      mine.constant = mine.host.empty() && ((node->IsConstant() && is_free(*node)) || reads_reference(*node));
      for (const tf::Edge* edge : sorted_inputs(*node)) {
        if (!edge->src()->IsOp()) continue;
        const bool list = carries_list(*edge);
        const bool variable = is_reference_input(*edge) || (is_resource(*edge) && !list);
        mine.inputs.push_back(
            {number_.at(edge->src()), edge->src_output(), edge->IsControlEdge(), is_reference_input(*edge), list});
        if (variable && !traits.hands_on() && !traits.has("reads")) mine.writes = true;
        if (variable || makes_reference(*edge) || reads_reference(*edge->src())) mine.reads = true;
      }
    }
    return tf::OkStatus();
  }

  /// Makes the copies in the graph, and gives each node the inputs that the partitioner chose.
  void copy_shared(const std::vector<int>& originals) {
    if (originals.empty()) return;
    const size_t count = order_.size();
    for (int original : originals) {
      tf::Node* copy = graph_.CopyNode(order_[static_cast<size_t>(original)]);
      copy->set_name(graph_.NewName(copy->name()));
      nodes_[order_.size()].name = copy->name();
      number_[copy] = static_cast<int>(order_.size());
      order_.push_back(copy);
    }
    for (size_t i = order_.size(); i-- > 0;) {  // copies first: they look at their originals' edges
      const bool copy = i >= count;
      size_t number = 0;
      for (const tf::Edge* edge :
           sorted_inputs(copy ? *order_[static_cast<size_t>(originals[i - count])] : *order_[i])) {
        if (!edge->src()->IsOp()) continue;
        tf::Node* from = order_[static_cast<size_t>(nodes_[i].inputs[number++].node)];
        if (!copy && from == edge->src()) continue;
        const int port = edge->src_output(), input = edge->dst_input();
        if (!copy) graph_.RemoveEdge(edge);
        graph_.AddEdge(from, port, order_[i], input);
      }
    }
  }

  /// A reduction over axes that only a run tells cannot be compiled.
  void keep_unknown_axes_on_host() {
    std::vector<bool> known(nodes_.size(), false);
    std::vector<tf::Node*> order;
    tf::GetReversePostOrder(graph_, &order, tf::NodeComparatorName(),
                            [](const tf::Edge& edge) { return !edge.src()->IsNextIteration(); });
    for (const tf::Node* node : order) {
      if (!node->IsOp()) continue;
      const auto i = static_cast<size_t>(number_.at(node));
      std::vector<bool> inputs(static_cast<size_t>(node->num_inputs()), false);
      for (const tf::Edge* edge : node->in_edges())
        if (!edge->IsControlEdge())
          inputs[static_cast<size_t>(edge->dst_input())] = known[static_cast<size_t>(number_.at(edge->src()))];
      bool all = !inputs.empty() && std::all_of(inputs.begin(), inputs.end(), [](bool each) { return each; });
      const OpTraits& traits = traits_of(nodes_[i].op);
      bool compiles = all || !traits.has("all_known");
      if (const std::optional<int> input = traits.known_input) {
        const auto at = static_cast<size_t>(*input < 0 ? *input + node->num_inputs() : *input);
        compiles = compiles && (at >= inputs.size() || inputs[at]);
      }
      if (nodes_[i].host.empty() && !compiles) nodes_[i].host = "its axes are known at run time only";
      known[i] = nodes_[i].host.empty() && !nodes_[i].reads &&
                 (nodes_[i].constant || node->IsConstant() || traits.has("shapes") || all);
      if (known[i]) making_.known.insert(nodes_[i].name);
    }
  }

  /// What takes from a queue may wait for what puts into it in the same run. One cluster around both would wait for itself, so
  /// what takes comes later, but where the graph leads from it to what puts.
  void order_queues() {
    std::map<const tf::Node*, std::vector<int>> puts, takes;  // by queue
    for (size_t i = 0; i < order_.size(); ++i) {
      const OpTraits& traits = traits_of(nodes_[i].op);
      const bool take = traits.has("takes");
      const tf::Edge* queue = nullptr;
      if ((take || traits.has("puts")) && order_[i]->input_edge(0, &queue).ok())
        (take ? takes : puts)[queue->src()].push_back(static_cast<int>(i));
    }
    for (const auto& [queue, nodes] : takes)
      for (int take : nodes)
        for (int put : puts[queue])
          if (!leads(take, put)) nodes_[static_cast<size_t>(take)].inputs.push_back({put, 0, true});
  }

  bool leads(int from, int to) const {
    std::vector<bool> met(nodes_.size(), false);
    std::vector<int> path{to};
    while (!path.empty()) {
      const int node = path.back();
      path.pop_back();
      if (node == from) return true;
      for (const Input& input : nodes_[static_cast<size_t>(node)].inputs)
        if (!met[static_cast<size_t>(input.node)]) {
          met[static_cast<size_t>(input.node)] = true;
          path.push_back(input.node);
        }
    }
    return false;
  }

  /// Constants that wait for nothing and are small, or have one user.
  static bool is_free(const tf::Node& node) {
    for (const tf::Edge* edge : node.in_edges())
      if (edge->src()->IsOp()) return false;
    return is_small(node) || node.out_edges().size() == 1;
  }

  static bool is_small(const tf::Node& constant) {
    return static_cast<int64_t>(constant.attrs().Find("value")->tensor().ByteSizeLong()) <= kSmallConstant;
  }

  /// Types in which the engine is not always faster.
  static bool computes_in_slow_types(const tf::Node& node) {
    const auto slow = [](DataType type) {
      type = tf::BaseType(type);
      return type == tf::DT_DOUBLE || type == tf::DT_COMPLEX64 || type == tf::DT_COMPLEX128;
    };
    return std::any_of(node.input_types().begin(), node.input_types().end(), slow) ||
           std::any_of(node.output_types().begin(), node.output_types().end(), slow);
  }

  std::string why_on_host(const tf::Node& node) const {
    if (node.IsArg() || node.IsRetval()) return "an end of the graph";
    if (holds_variable(node)) return "holds a variable, in TensorFlow's memory";
    if (node.attrs().Find("_without_npu_compile")) return "npu_scope.without_npu_compile_scope";
    const std::string& device = node.assigned_device_name();
    if (!device.empty() && device.find("CPU:0") == std::string::npos) return "placed on " + device;
    if (!may_measure_ && computes_in_slow_types(node))
      return "computes in f64 or complex numbers, and nothing is measured";
    if (traits_of(node.type_string()).has("assigns") && !is_read_elsewhere(node))
      return "may be the variable's first value";
    if (asks_for_a_value(node)) return "uses a variable that may have no value";
    if (may_repeat_rows(node)) return "may name a row twice, which TensorFlow updates twice";
    for (const tf::Edge* edge : node.in_edges()) {
      if (is_resource(*edge) && !carries_list(*edge) && !content_type(*edge))
        return "uses a resource of unknown content";
      if (makes_reference(*edge) && reference_group(tf::BaseType(edge->src()->output_type(edge->src_output()))) < 0)
        return "uses a variable of " + tf::DataTypeString(edge->src()->output_type(edge->src_output()));
    }
    return {};
  }

  /// A Switch that hands on a variable where it has a value.
  static bool asks_for_a_value(const tf::Node& node) {
    const tf::Edge *data = nullptr, *predicate = nullptr;
    if (!node.IsSwitch() || !node.input_edge(0, &data).ok() || !node.input_edge(1, &predicate).ok()) return false;
    if (!is_resource(*data) && !makes_reference(*data)) return false;
    const tf::Node* asked = predicate->src();
    while ((asked->IsIdentity() || asked->type_string() == "LogicalNot") && asked->input_edge(0, &predicate).ok())
      asked = predicate->src();
    return traits_of(asked->type_string()).has("asks");
  }

  /// The engine updates all rows of a sparse update at once. TensorFlow's optimizers add up the gradients of equal rows and
  /// name those that Unique found; of other rows nobody knows whether they differ.
  static bool may_repeat_rows(const tf::Node& node) {
    if (!traits_of(node.type_string()).has("rows")) return false;
    for (const tf::Edge* edge : node.in_edges()) {
      if (edge->IsControlEdge() || node.op_def().input_arg(edge->dst_input()).name() != "indices") continue;
      const tf::Node* maker = edge->src();
      for (const tf::Edge* before = nullptr;
           (maker->IsIdentity() || maker->IsSwitch()) && maker->input_edge(0, &before).ok();)
        maker = before->src();
      return !traits_of(maker->type_string()).has("distinct");
    }
    return true;
  }

  /// A variable that the same graph reads, and not only when it has a value, has one before.
  static bool is_read_elsewhere(const tf::Node& node) {
    const tf::Edge* variable = nullptr;
    if (!node.input_edge(0, &variable).ok()) return false;
    if (variable->src()->IsSwitch() || variable->src()->IsEnter()) return true;  // in a branch or loop: not at first
    for (const tf::Edge* edge : variable->src()->out_edges())
      if (!edge->IsControlEdge() && edge->dst() != &node && edge->dst()->type_string() != node.type_string() &&
          edge->dst()->IsOp() && !edge->dst()->IsSwitch() && !traits_of(edge->dst()->type_string()).has("asks"))
        return true;
    return false;
  }

  tf::Graph& graph_;
  const Library& library_;
  Making making_;
  bool may_measure_ = false;
  std::vector<tf::Node*> order_;
  std::map<const tf::Node*, int> number_;
  std::vector<Node> nodes_;
};

}  // namespace

tf::Status make_clusters(tf::Graph& graph, const Library& library, const Making& making) {
  return Clusterer(graph, library, making).run();
}

}  // namespace cairn_tf
