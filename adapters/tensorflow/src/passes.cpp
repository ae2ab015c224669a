// The graph passes: before placement If and While are kept whole, before execution the clusters are made. They act on
// sessions whose configuration has a custom optimiser named NpuOptimizer, which carries the parameters.
#include <algorithm>
#include <atomic>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>

#include "engine.h"
#include "partition.h"
#include "report.h"
#include "tensorflow/core/common_runtime/optimization_registry.h"
#include "tensorflow/core/framework/function.h"
#include "tensorflow/core/framework/graph_to_functiondef.h"
#include "tensorflow/core/framework/node_def_builder.h"
#include "tensorflow/core/graph/algorithm.h"
#include "tensorflow/core/graph/graph.h"
#include "tensorflow/core/lib/strings/proto_serialization.h"
#include "tensorflow/core/protobuf/rewriter_config.pb.h"
#include "tensorflow/core/public/session_options.h"

namespace cairn_tf {
namespace {

namespace tf = tensorflow;
using tf::DataType;
using Options = tf::GraphOptimizationPassOptions;

constexpr int64_t kSmallConstant = 64 << 10;  // bytes; larger ones are not copied into several clusters

const tf::RewriterConfig_CustomGraphOptimizer* entry_of(const Options& options) {
  if (!options.session_options || !options.graph || !*options.graph) return nullptr;
  for (const auto& each : options.session_options->config.graph_options().rewrite_options().custom_optimizers())
    if (each.name() == "NpuOptimizer") return &each;
  return nullptr;
}

bool flag(const tf::RewriterConfig_CustomGraphOptimizer& entry, const std::string& key, bool fallback) {
  auto found = entry.parameter_map().find(key);
  return found == entry.parameter_map().end() ? fallback : found->second.b();
}

/// Functions of dataset pipelines, and single operators run eagerly: not worth a cluster.
bool acts_on(const Options& options) {
  const auto* entry = entry_of(options);
  if (!entry || !flag(*entry, "use_off_line", true)) return false;
  if (!options.is_function_graph || !options.function_def) return true;
  const std::string& name = options.function_def->signature().name();
  return name.rfind("__wrapped__", 0) != 0 && name.rfind("Dataset_", 0) != 0 &&
         name.find("_Dataset_") == std::string::npos;
}

class KeepFunctional : public tf::GraphOptimizationPass {
 public:
  tf::Status Run(const Options& options) override {
    const auto* entry = entry_of(options);
    if (!entry || !flag(*entry, "use_off_line", true) || flag(*entry, "lower_functional_ops", false))
      return tf::OkStatus();
    for (tf::Node* node : (*options.graph)->op_nodes())
      if (node->IsIfNode() || node->IsWhileNode() || node->IsCaseNode()) node->ClearAttr("_lower_using_switch_merge");
    return tf::OkStatus();
  }
};

bool is_reference_input(const tf::Edge& edge) {
  return !edge.IsControlEdge() && edge.dst()->IsOp() && tf::IsRefType(edge.dst()->input_type(edge.dst_input()));
}
bool makes_reference(const tf::Edge& edge) {
  return !edge.IsControlEdge() && tf::IsRefType(edge.src()->output_type(edge.src_output()));
}
bool is_resource(const tf::Edge& edge) {
  return !edge.IsControlEdge() && edge.src()->output_type(edge.src_output()) == tf::DT_RESOURCE;
}

bool only_reads(const std::string& op) {
  static const std::set<std::string> ops = {"ReadVariableOp", "ResourceGather", "ResourceGatherNd", "VariableShape"};
  return ops.count(op) != 0;
}

int work_of(const tf::Node& node) {
  static const std::set<std::string> heavy = {"MatMul",
                                              "BatchMatMul",
                                              "BatchMatMulV2",
                                              "BatchMatMulV3",
                                              "Conv2D",
                                              "Conv3D",
                                              "DepthwiseConv2dNative",
                                              "Einsum",
                                              "Conv2DBackpropInput",
                                              "Conv2DBackpropFilter",
                                              "DepthwiseConv2dNativeBackpropInput",
                                              "DepthwiseConv2dNativeBackpropFilter",
                                              "FusedBatchNormV3",
                                              "FusedBatchNormGradV3",
                                              "_FusedMatMul",
                                              "_FusedConv2D",
                                              "If",
                                              "While",
                                              "StatelessIf",
                                              "StatelessWhile",
                                              "PartitionedCall",
                                              "StatefulPartitionedCall",
                                              "MaxPoolGrad",
                                              "SoftmaxCrossEntropyWithLogits",
                                              "SparseSoftmaxCrossEntropyWithLogits"};
  static const std::set<std::string> free = {"NoOp",
                                             "Identity",
                                             "IdentityN",
                                             "Shape",
                                             "ShapeN",
                                             "Rank",
                                             "Size",
                                             "Reshape",
                                             "Squeeze",
                                             "ExpandDims",
                                             "StopGradient",
                                             "ReadVariableOp",
                                             "Snapshot",
                                             "PreventGradient",
                                             "Pack",
                                             "Fill",
                                             "BroadcastGradientArgs",
                                             "Assign",
                                             "AssignVariableOp",
                                             "StridedSlice",
                                             "Cast",
                                             "Prod",
                                             "Range",
                                             "ZerosLike",
                                             "OnesLike",
                                             "ConcatOffset"};
  // A stream of random numbers is continued where it was begun: on the engine, whatever else a run fetches.
  static const std::set<std::string> draws = {"RandomUniform",    "RandomStandardNormal", "TruncatedNormal",
                                              "RandomUniformInt", "Multinomial",          "RandomShuffle"};
  if (heavy.count(node.type_string()) || draws.count(node.type_string())) return kHeavy;
  return free.count(node.type_string()) ? 0 : 1;
}

bool computes(const tf::Node& node) {
  if (node.IsConstant() || node.IsVariable() || node.type_string() == "VarHandleOp" || node.type_string() == "NoOp" ||
      node.IsArg() || node.IsRetval())
    return false;
  auto numeric = [](DataType type) {
    type = tf::BaseType(type);
    return tf::DataTypeIsFloating(type) || tf::DataTypeIsInteger(type) || type == tf::DT_BOOL ||
           type == tf::DT_RESOURCE;
  };
  if (node.num_inputs() == 0 && node.num_outputs() == 0) return false;
  return std::all_of(node.input_types().begin(), node.input_types().end(), numeric) &&
         std::all_of(node.output_types().begin(), node.output_types().end(), numeric);
}

constexpr int kEvery = 1000;

/// Inputs (negative: from the end) that the engine must know when it compiles: axes, permutations and the like.
const std::vector<int>& known_inputs(const std::string& op) {
  static const std::vector<int> none, first{0}, second{1}, third{2}, last{-1}, every{kEvery};
  static const std::map<std::string, const std::vector<int>&> table = {
      {"Sum", second},         {"Mean", second},          {"Max", second},
      {"Min", second},         {"Prod", second},          {"Any", second},
      {"All", second},         {"ArgMax", second},        {"ArgMin", second},
      {"Transpose", second},   {"Cumsum", second},        {"Cumprod", second},
      {"ReverseV2", second},   {"ExpandDims", second},    {"ConcatV2", last},
      {"Concat", first},       {"Split", first},          {"SplitV", last},
      {"GatherV2", third},     {"EuclideanNorm", second}, {"BroadcastGradientArgs", every},
      {"DynamicStitch", every}};
  auto found = table.find(op);
  return found == table.end() ? none : found->second;
}

/// Results of these follow from shapes, which are known when a cluster is compiled.
bool tells_shapes(const std::string& op) {
  return op == "Shape" || op == "ShapeN" || op == "Rank" || op == "Size" || op == "VariableShape";
}

/// What TensorFlow's own passes note on nodes for each other, in forms of their own.
bool is_note(const std::string& attribute) { return attribute[0] == '_'; }

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

/// A graph as the partitioner sees it, and back.
class Clusterer {
 public:
  Clusterer(tf::Graph& graph, const Library& library, tf::FunctionLibraryDefinition* functions)
      : graph_(graph), library_(library), functions_(functions) {}

  tf::Status run(const std::string& title) {
    title_ = title;
    TF_RETURN_IF_ERROR(read());
    keep_frames_on_host(nodes_);
    keep_unknown_axes_on_host();
    Partition parts = partition(nodes_);
    std::vector<std::string> names;
    std::vector<bool> numeric;
    if (report_wanted())
      for (const tf::Node* node : order_) numeric.push_back(computes(*node));
    for (const auto& members : parts.clusters) {
      std::vector<tf::Node*> inside;
      for (int member : members) inside.push_back(order_[static_cast<size_t>(member)]);
      TF_RETURN_IF_ERROR(build(inside, names.emplace_back()));
    }
    if (report_wanted()) report(title, nodes_, numeric, parts, names);
    return tf::OkStatus();
  }

 private:
  tf::Status read() {
    for (tf::Node* node : graph_.op_nodes()) {
      number_[node] = static_cast<int>(order_.size());
      order_.push_back(node);
    }
    std::string bytes = outline(graph_, functions_).SerializeAsString();
    char* text = nullptr;
    if (library_.cluster_refusals(bytes.data(), bytes.size(), &text) != CAIRN_OK)
      return tf::errors::Internal("Cairn: ", last_failure(library_).message);
    auto refusals = nlohmann::json::parse(text, nullptr, false);
    library_.free_text(text);
    for (const tf::Node* node : order_) {
      Node& mine = nodes_.emplace_back();
      mine.name = node->name();
      mine.op = node->type_string();
      mine.work = work_of(*node);
      mine.host = why_on_host(*node);
      if (mine.host.empty() && refusals.contains(mine.name)) mine.host = refusals[mine.name];
      mine.constant = node->IsConstant() && mine.host.empty() && is_free(*node);
      for (const tf::Edge* edge : node->in_edges()) {
        if (!edge->src()->IsOp()) continue;
        bool variable = is_reference_input(*edge) || is_resource(*edge);
        bool list = !edge->IsControlEdge() && edge->src()->output_type(edge->src_output()) == tf::DT_VARIANT;
        mine.inputs.push_back(
            {number_.at(edge->src()), edge->src_output(), edge->IsControlEdge(), is_reference_input(*edge), list});
        if (variable && !only_reads(mine.op)) mine.writes = true;
        if (variable || makes_reference(*edge)) mine.reads = true;
      }
    }
    return tf::OkStatus();
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
      for (int input : known_inputs(nodes_[i].op)) {
        auto at = static_cast<size_t>(input < 0 ? input + node->num_inputs() : input);
        bool found = input == kEvery ? all : at >= inputs.size() || inputs[at];
        if (nodes_[i].host.empty() && !found) nodes_[i].host = "its axes are known at run time only";
      }
      known[i] = nodes_[i].host.empty() && !nodes_[i].reads &&
                 (nodes_[i].constant || node->IsConstant() || tells_shapes(nodes_[i].op) || all);
    }
  }

  /// Constants that wait for nothing and are small, or have one user.
  static bool is_free(const tf::Node& node) {
    for (const tf::Edge* edge : node.in_edges())
      if (edge->src()->IsOp()) return false;
    const tf::TensorProto& value = node.attrs().Find("value")->tensor();
    return static_cast<int64_t>(value.ByteSizeLong()) <= kSmallConstant || node.out_edges().size() == 1;
  }

  static std::string why_on_host(const tf::Node& node) {
    if (node.IsArg() || node.IsRetval()) return "an end of the graph";
    if (node.IsVariable() || node.type_string() == "VarHandleOp") return "holds a variable, in TensorFlow's memory";
    if (node.attrs().Find("_without_npu_compile")) return "npu_scope.without_npu_compile_scope";
    if (node.type_string().rfind("TensorArray", 0) == 0) return "belongs to a loop of TF1 control flow";
    const std::string& device = node.assigned_device_name();
    if (!device.empty() && device.find("CPU:0") == std::string::npos) return "placed on " + device;
    auto slow = [](DataType type) {
      type = tf::BaseType(type);
      return type == tf::DT_DOUBLE || type == tf::DT_COMPLEX64 || type == tf::DT_COMPLEX128;
    };
    for (DataType type : node.input_types())
      if (slow(type)) return "computes in " + tf::DataTypeString(type);
    for (DataType type : node.output_types())
      if (slow(type)) return "computes in " + tf::DataTypeString(type);
    if (node.type_string() == "Assign" || node.type_string() == "AssignVariableOp")
      if (!is_read_elsewhere(node)) return "may be the variable's first value";
    for (const tf::Edge* edge : node.in_edges()) {
      if (is_resource(*edge) && !content_type(*edge)) return "uses a resource of unknown content";
      if (makes_reference(*edge) && reference_group(tf::BaseType(edge->src()->output_type(edge->src_output()))) < 0)
        return "uses a variable of " + tf::DataTypeString(edge->src()->output_type(edge->src_output()));
    }
    return {};
  }

  /// A variable that the same graph reads, and not only when it has a value, has one before.
  static bool is_read_elsewhere(const tf::Node& node) {
    const tf::Edge* variable = nullptr;
    if (!node.input_edge(0, &variable).ok()) return false;
    for (const tf::Edge* edge : variable->src()->out_edges())
      if (!edge->IsControlEdge() && edge->dst() != &node && edge->dst()->type_string() != node.type_string() &&
          edge->dst()->IsOp() && !edge->dst()->IsSwitch() &&
          edge->dst()->type_string().find("Initialized") == std::string::npos)
        return true;
    return false;
  }

  /// Element type of the variable behind a resource edge: its maker says it, else its user.
  static std::optional<DataType> content_type(const tf::Edge& edge) {
    const tf::Node* maker = edge.src();
    for (const tf::Edge* before = nullptr; maker->IsIdentity() && maker->input_edge(0, &before).ok();)
      maker = before->src();
    for (const tf::Node* node : {maker, static_cast<const tf::Node*>(edge.dst())})
      for (const char* name : {"dtype", "T"}) {
        const tf::AttrValue* attr = node->attrs().Find(name);
        if (attr && attr->type() != tf::DT_INVALID && attr->type() != tf::DT_RESOURCE) return attr->type();
      }
    return std::nullopt;
  }

  static int reference_group(DataType type) {
    constexpr DataType kGroups[] = {tf::DT_FLOAT, tf::DT_HALF,  tf::DT_BFLOAT16,
                                    tf::DT_INT32, tf::DT_INT64, tf::DT_BOOL};
    auto found = std::find(std::begin(kGroups), std::end(kGroups), type);
    return found == std::end(kGroups) ? -1 : static_cast<int>(found - std::begin(kGroups));
  }

  struct Argument {
    tf::Node* node;
    int port;
    DataType type;     // of the edge
    DataType content;  // of the elements
    bool written = false;
  };
  using Port = std::pair<tf::Node*, int>;
  struct Made {
    std::string graph;
    tf::NameAttrList stock;
    std::vector<int> stock_inputs;
  };

  tf::Status build(const std::vector<tf::Node*>& members, std::string& name) {
    std::set<tf::Node*> inside(members.begin(), members.end());
    std::set<tf::Node*> waits;  // control inputs
    std::vector<tf::Node*> constants;
    std::map<Port, Argument> found;
    std::vector<Port> met;
    auto meet = [&](const tf::Edge& edge, tf::Node* from, int port) {
      DataType type = from->output_type(port);
      DataType content = type == tf::DT_RESOURCE ? *content_type(edge) : tf::BaseType(type);
      auto [entry, fresh] = found.try_emplace({from, port}, Argument{from, port, type, content});
      if (fresh) met.push_back({from, port});
      if ((tf::IsRefType(type) && is_reference_input(edge)) ||
          (type == tf::DT_RESOURCE && !only_reads(edge.dst()->type_string())))
        entry->second.written = true;
    };
    std::map<Port, Port> behind;  // a reference that a host node hands on -> the variable itself
    for (tf::Node* node : members) {
      for (const tf::Edge* edge : sorted_inputs(*node)) {
        tf::Node* from = edge->src();
        if (!from->IsOp() || inside.count(from)) continue;
        auto known = number_.find(from);  // not a cluster made before
        bool constant = known != number_.end() && nodes_[static_cast<size_t>(known->second)].constant;
        if (edge->IsControlEdge()) {
          if (!constant) waits.insert(from);
        } else if (constant) {
          if (std::find(constants.begin(), constants.end(), from) == constants.end()) constants.push_back(from);
        } else if (makes_reference(*edge)) {
          Port variable = variable_behind({from, edge->src_output()});
          behind[{from, edge->src_output()}] = variable;
          if (variable.first != from) waits.insert(from);
          meet(*edge, variable.first, variable.second);
        } else {
          meet(*edge, from, edge->src_output());
        }
      }
    }
    std::vector<Argument> arguments;
    for (const Port& port : met) arguments.push_back(found.at(port));
    auto group = [](const Argument& argument) {
      return tf::IsRefType(argument.type) ? reference_group(argument.content) : -1;
    };
    std::stable_sort(arguments.begin(), arguments.end(),
                     [&](const auto& a, const auto& b) { return group(a) < group(b); });

    std::vector<Port> results;
    std::map<Port, int> result_number;
    for (tf::Node* node : members)
      for (const tf::Edge* edge : sorted_outputs(*node))
        if (!edge->IsControlEdge() && !inside.count(edge->dst()) &&
            result_number.emplace(Port(node, edge->src_output()), static_cast<int>(results.size())).second)
          results.push_back({node, edge->src_output()});

    static std::atomic<int> made{0};
    name = "CairnCluster_" + std::to_string(made++);  // kernels are kept by node name
    Made cluster{content(members, constants, arguments, results, behind), {}, {}};
    TF_RETURN_IF_ERROR(add_stock_function(name, members, constants, arguments, results, behind, cluster));
    return replace(members, inside, waits, arguments, results, result_number, cluster, name);
  }

  static std::vector<const tf::Edge*> sorted_inputs(const tf::Node& node) {
    std::vector<const tf::Edge*> edges(node.in_edges().begin(), node.in_edges().end());
    std::sort(edges.begin(), edges.end(), [](const tf::Edge* a, const tf::Edge* b) {
      return std::pair(a->dst_input(), a->src()->id()) < std::pair(b->dst_input(), b->src()->id());
    });
    return edges;
  }
  static std::vector<const tf::Edge*> sorted_outputs(const tf::Node& node) {
    std::vector<const tf::Edge*> edges(node.out_edges().begin(), node.out_edges().end());
    std::sort(edges.begin(), edges.end(), [](const tf::Edge* a, const tf::Edge* b) {
      return std::tuple(a->src_output(), a->dst()->id(), a->dst_input()) <
             std::tuple(b->src_output(), b->dst()->id(), b->dst_input());
    });
    return edges;
  }

  /// Assign and its like hand on the reference of their first input.
  static Port variable_behind(Port port) {
    while (port.first->num_inputs() > 0 && tf::IsRefType(port.first->input_type(0))) {
      const tf::Edge* edge = nullptr;
      if (!port.first->input_edge(0, &edge).ok()) break;
      port = {edge->src(), edge->src_output()};
    }
    return port;
  }

  /// The cluster's nodes as a graph of their own.
  std::string content(const std::vector<tf::Node*>& members, const std::vector<tf::Node*>& constants,
                      const std::vector<Argument>& arguments, const std::vector<Port>& results,
                      const std::map<Port, Port>& behind) {
    tf::GraphDef graph;
    std::map<Port, std::string> names;
    for (size_t i = 0; i < arguments.size(); ++i) {
      tf::NodeDef* def = graph.add_node();
      def->set_name(argument_name(i));
      def->set_op("_Arg");
      (*def->mutable_attr())["index"].set_i(static_cast<int64_t>(i));
      (*def->mutable_attr())["T"].set_type(arguments[i].content);
      if (tf::IsRefType(arguments[i].type)) (*def->mutable_attr())["handle"].set_s("ref");
      if (arguments[i].type == tf::DT_RESOURCE) (*def->mutable_attr())["handle"].set_s("resource");
      names[{arguments[i].node, arguments[i].port}] = def->name();
    }
    for (const auto& [port, variable] : behind) names[port] = names.at(variable);
    auto add = [&](const tf::Node& node) {
      tf::NodeDef* def = graph.add_node();
      *def = node.def();
      def->clear_input();
      def->clear_device();
      def->clear_experimental_debug_info();
      for (const auto& [name, value] : node.def().attr())
        if (is_note(name)) def->mutable_attr()->erase(name);
      return def;
    };
    for (const tf::Node* node : constants) add(*node);
    std::set<const tf::Node*> inside(members.begin(), members.end());
    for (tf::Node* node : members) {
      tf::NodeDef* def = add(*node);
      for (const tf::Edge* edge : sorted_inputs(*node)) {
        if (edge->IsControlEdge()) continue;
        auto argument = names.find({edge->src(), edge->src_output()});
        def->add_input(argument != names.end() ? argument->second
                                               : edge->src()->name() + ":" + std::to_string(edge->src_output()));
      }
      for (const tf::Edge* edge : sorted_inputs(*node))
        if (edge->IsControlEdge() && inside.count(edge->src())) def->add_input("^" + edge->src()->name());
    }
    for (size_t i = 0; i < results.size(); ++i) {
      tf::NodeDef* def = graph.add_node();
      def->set_name("__result_" + std::to_string(i));
      def->set_op("_Retval");
      def->add_input(results[i].first->name() + ":" + std::to_string(results[i].second));
      (*def->mutable_attr())["index"].set_i(static_cast<int64_t>(i));
    }
    if (functions_) *graph.mutable_library() = functions_->ReachableDefinitions(graph).ToProto();
    std::string bytes;
    tf::SerializeToStringDeterministic(graph, &bytes);
    return bytes;
  }

  /// The same nodes as a function of TensorFlow's own, for shapes that the engine refuses. A TF1 variable cannot be an
  /// argument: the function has a node that finds it by name. Without a name for it there is no such function.
  tf::Status add_stock_function(const std::string& name, const std::vector<tf::Node*>& members,
                                const std::vector<tf::Node*>& constants, const std::vector<Argument>& arguments,
                                const std::vector<Port>& results, const std::map<Port, Port>& behind, Made& made) {
    if (!functions_) return tf::OkStatus();
    for (const Argument& argument : arguments)
      if (tf::IsRefType(argument.type) && !argument.node->IsVariable()) return tf::OkStatus();
    tf::Graph body(functions_);
    std::map<const tf::Node*, tf::Node*> copies;
    std::map<Port, tf::Node*> sources;
    auto add = [&](const tf::NodeDef& def, tf::Node*& node) {
      tf::Status status;
      node = body.AddNode(def, &status);
      return status;
    };
    auto copy = [&](const tf::Node& node) {
      tf::NodeDef def = node.def();
      def.clear_input();
      def.clear_device();
      if (node.IsVariable() && node.attrs().Find("shared_name")->s().empty())
        (*def.mutable_attr())["shared_name"].set_s(node.name());
      return add(def, copies[&node]);
    };
    for (size_t i = 0; i < arguments.size(); ++i) {
      const Argument& argument = arguments[i];
      tf::Node*& source = sources[{argument.node, argument.port}];
      if (tf::IsRefType(argument.type)) {
        TF_RETURN_IF_ERROR(copy(*argument.node));
        source = copies.at(argument.node);
        continue;
      }
      tf::NodeDef def;
      TF_RETURN_IF_ERROR(tf::NodeDefBuilder(argument_name(i), "_Arg")
                             .Attr("T", argument.type)
                             .Attr("index", static_cast<int>(made.stock_inputs.size()))
                             .Finalize(&def));
      TF_RETURN_IF_ERROR(add(def, source));
      made.stock_inputs.push_back(static_cast<int>(i));
    }
    for (const auto& [port, variable] : behind) sources[port] = sources.at(variable);
    for (const tf::Node* node : constants) TF_RETURN_IF_ERROR(copy(*node));
    for (const tf::Node* node : members) TF_RETURN_IF_ERROR(copy(*node));
    for (const tf::Node* node : members)
      for (const tf::Edge* edge : sorted_inputs(*node)) {
        tf::Node* to = copies.at(node);
        auto source = sources.find({edge->src(), edge->src_output()});
        auto from = copies.find(edge->src());
        if (edge->IsControlEdge()) {
          if (from != copies.end()) body.AddControlEdge(from->second, to);
        } else if (source != sources.end()) {
          body.AddEdge(source->second, 0, to, edge->dst_input());
        } else {
          body.AddEdge(from->second, edge->src_output(), to, edge->dst_input());
        }
      }
    for (size_t i = 0; i < results.size(); ++i) {
      tf::NodeDef def;
      tf::Node* from = copies.at(results[i].first);
      TF_RETURN_IF_ERROR(tf::NodeDefBuilder("__result_" + std::to_string(i), "_Retval")
                             .Input(from->name(), results[i].second, tf::BaseType(from->output_type(results[i].second)))
                             .Attr("index", static_cast<int>(i))
                             .Finalize(&def));
      tf::Node* result = nullptr;
      TF_RETURN_IF_ERROR(add(def, result));
      body.AddEdge(from, results[i].second, result, 0);
    }
    tf::FixupSourceAndSinkEdges(&body);
    auto effect = [](const tf::Node* node) -> std::optional<std::string> {
      if (node->IsArg() || node->IsRetval()) return std::nullopt;
      bool writes = std::any_of(node->input_types().begin(), node->input_types().end(), tf::IsRefType);
      return writes || node->op_def().is_stateful() || node->num_outputs() == 0 ? std::optional(node->name())
                                                                                : std::nullopt;
    };
    tf::FunctionDef function;
    TF_RETURN_IF_ERROR(tf::GraphToFunctionDef(body, name + "_stock", effect, &function));
    made.stock.set_name(name + "_stock");
    return functions_->AddFunctionDef(function);
  }

  tf::Status replace(const std::vector<tf::Node*>& members, const std::set<tf::Node*>& inside,
                     const std::set<tf::Node*>& waits, const std::vector<Argument>& arguments,
                     const std::vector<Port>& results, const std::map<Port, int>& result_number, const Made& made,
                     const std::string& name) {
    constexpr size_t kGroups = 6;
    std::vector<tf::NodeDefBuilder::NodeOut> plain, references[kGroups];
    tf::DataTypeVector input_types, output_types;
    std::vector<int> written;
    std::vector<std::string> names;
    for (size_t i = 0; i < arguments.size(); ++i) {
      const Argument& argument = arguments[i];
      tf::NodeDefBuilder::NodeOut from(argument.node->name(), argument.port, argument.type);
      bool reference = tf::IsRefType(argument.type);
      (reference ? references[static_cast<size_t>(reference_group(argument.content))] : plain).push_back(from);
      if (!reference) input_types.push_back(argument.type);
      if (argument.written) written.push_back(static_cast<int>(i));
      names.push_back(argument.node->name());
    }
    for (const Port& port : results) output_types.push_back(tf::BaseType(port.first->output_type(port.second)));
    tf::NodeDefBuilder builder(name, "CairnCluster");
    builder.Input(plain);
    for (const auto& group : references) builder.Input(group);
    static constexpr const char* kCounts[kGroups] = {"n_float", "n_half", "n_bfloat16", "n_int32", "n_int64", "n_bool"};
    for (size_t i = 0; i < kGroups; ++i) builder.Attr(kCounts[i], static_cast<int>(references[i].size()));
    tf::NodeDef def;
    TF_RETURN_IF_ERROR(builder.Attr("Tin", input_types)
                           .Attr("Tout", output_types)
                           .Attr("graph", made.graph)
                           .Attr("stock", made.stock)
                           .Attr("stock_inputs", made.stock_inputs)
                           .Attr("written", written)
                           .Attr("names", names)
                           .Attr("function", title_)
                           .Device(members[0]->requested_device())
                           .Finalize(&def, true));
    tf::Status status;
    tf::Node* cluster = graph_.AddNode(def, &status);
    TF_RETURN_IF_ERROR(status);
    cluster->set_assigned_device_name(members[0]->assigned_device_name());
    for (size_t i = 0; i < arguments.size(); ++i)
      graph_.AddEdge(arguments[i].node, arguments[i].port, cluster, static_cast<int>(i));
    for (tf::Node* node : waits) graph_.AddControlEdge(node, cluster);
    for (tf::Node* node : members) {
      for (const tf::Edge* edge : sorted_outputs(*node)) {
        tf::Node* user = edge->dst();
        if (inside.count(user) || !user->IsOp()) continue;
        if (edge->IsControlEdge()) {
          graph_.AddControlEdge(cluster, user);
          continue;
        }
        int input = edge->dst_input();
        int output = result_number.at({node, edge->src_output()});
        graph_.RemoveEdge(edge);
        graph_.AddEdge(cluster, output, user, input);
      }
    }
    for (tf::Node* node : members) graph_.RemoveNode(node);
    tf::FixupSourceAndSinkEdges(&graph_);
    return tf::OkStatus();
  }

  tf::Graph& graph_;
  const Library& library_;
  tf::FunctionLibraryDefinition* functions_;
  std::string title_;  // of the function that the graph is the body of, or ""
  std::vector<tf::Node*> order_;
  std::map<const tf::Node*, int> number_;
  std::vector<Node> nodes_;
};

class MakeClusters : public tf::GraphOptimizationPass {
 public:
  tf::Status Run(const Options& options) override {
    if (!acts_on(options)) return tf::OkStatus();
    std::string why;
    const Library* engine = library(why);
    if (!engine) return tf::errors::Unavailable("Cairn: ", why);
    std::string title =
        options.is_function_graph && options.function_def ? options.function_def->signature().name() : "";
    try {
      return Clusterer(**options.graph, *engine, options.flib_def).run(title);
    } catch (const std::exception& fault) {
      return tf::errors::Internal("Cairn: ", fault.what());
    }
  }
};

constexpr int kBeforeLowering = 1;  // TensorFlow's own pass that lowers If and While has 10
constexpr int kBeforeXla = 3;       // TensorFlow's XLA passes start at 5
REGISTER_OPTIMIZATION(tf::OptimizationPassRegistry::PRE_PLACEMENT, kBeforeLowering, KeepFunctional);
REGISTER_OPTIMIZATION(tf::OptimizationPassRegistry::POST_REWRITE_FOR_EXEC, kBeforeXla, MakeClusters);

}  // namespace
}  // namespace cairn_tf
