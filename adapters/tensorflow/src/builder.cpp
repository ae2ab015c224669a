// Makes a cluster operator of chosen nodes: their graph for the engine, the same nodes as a function of TensorFlow, and the
// edges to and from what stays.
#include "builder.h"

#include <algorithm>
#include <atomic>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "collectives.h"
#include "edges.h"
#include "engine.h"
#include "op_traits.h"
#include "partition.h"
#include "tensorflow/core/framework/graph_to_functiondef.h"
#include "tensorflow/core/framework/node_def_builder.h"
#include "tensorflow/core/graph/algorithm.h"
#include "tensorflow/core/lib/strings/proto_serialization.h"

namespace cairn_tf {
namespace {

using tf::DataType;
using Port = std::pair<tf::Node*, int>;

struct Argument {
  tf::Node* node;
  int port;
  DataType type;     // of the edge
  DataType content;  // of the elements
  bool written = false;
  bool found = false;  // a variable that the operator finds itself: no input
};

/// Assign and its like hand on the reference of their first input.
Port variable_behind(Port port) {
  while (port.first->num_inputs() > 0 && tf::IsRefType(port.first->input_type(0))) {
    const tf::Edge* edge = nullptr;
    if (!port.first->input_edge(0, &edge).ok()) break;
    port = {edge->src(), edge->src_output()};
  }
  return port;
}

/// A variable that waits for nothing is not worth an operator of the graph, which costs more than finding it.
bool can_be_found(const tf::Node& node, const tf::Node& user) {
  if (!holds_variable(node)) return false;
  if (!node.IsVariable() && node.attrs().Find("shared_name")->s() == tf::ResourceHandle::ANONYMOUS_NAME) return false;
  return node.assigned_device_name() == user.assigned_device_name() &&
         std::none_of(node.in_edges().begin(), node.in_edges().end(),
                      [](const tf::Edge* edge) { return edge->src()->IsOp(); });
}

class Builder {
 public:
  Builder(tf::Graph& graph, const Making& making, const std::vector<tf::Node*>& members)
      : graph_(graph), making_(making), functions_(making.functions), members_(members),
        inside_(members.begin(), members.end()) {}

  tf::Status run(std::string& name) {
    static std::atomic<int> made{0};
    name_ = name = "CairnCluster_" + std::to_string(made++);  // kernels are kept by node name
    find_arguments();
    for (tf::Node* node : members_)
      for (const tf::Edge* edge : sorted_outputs(*node))
        if (!edge->IsControlEdge() && !inside_.count(edge->dst()) &&
            result_number_.emplace(Port(node, edge->src_output()), static_cast<int>(results_.size())).second)
          results_.push_back({node, edge->src_output()});
    TF_RETURN_IF_ERROR(add_stock_function());
    return replace();
  }

 private:
  void find_arguments() {
    std::map<Port, Argument> found;
    std::vector<Port> met;
    auto meet = [&](const tf::Edge& edge, tf::Node* from, int port) {
      DataType type = from->output_type(port);
      DataType content = type == tf::DT_RESOURCE ? *content_type(edge) : tf::BaseType(type);
      auto [entry, fresh] = found.try_emplace({from, port}, Argument{from, port, type, content});
      if (fresh) met.push_back({from, port});
      if (may_write(edge)) entry->second.written = true;
    };
    for (tf::Node* node : members_) {
      for (const tf::Edge* edge : sorted_inputs(*node)) {
        tf::Node* from = edge->src();
        if (!from->IsOp() || inside_.count(from)) continue;
        if (making_.copied.count(from)) {
          const bool known = std::find(copied_.begin(), copied_.end(), from) != copied_.end();
          if (edge->IsControlEdge() || known) continue;
          copied_.push_back(from);
          for (const tf::Edge* variable : from->in_edges())
            if (!variable->IsControlEdge()) meet(*variable, variable->src(), variable->src_output());
        } else if (edge->IsControlEdge()) {
          waits_.insert(from);
        } else if (makes_reference(*edge)) {
          Port variable = variable_behind({from, edge->src_output()});
          behind_[{from, edge->src_output()}] = variable;
          if (variable.first != from) waits_.insert(from);
          meet(*edge, variable.first, variable.second);
        } else {
          meet(*edge, from, edge->src_output());
        }
      }
    }
    for (const Port& port : met) {
      arguments_.push_back(found.at(port));
      arguments_.back().found = can_be_found(*port.first, *members_[0]);
    }
    auto group = [](const Argument& argument) {
      if (argument.found) return kGroups;
      return tf::IsRefType(argument.type) ? reference_group(argument.content) : -1;
    };
    std::stable_sort(arguments_.begin(), arguments_.end(),
                     [&](const auto& a, const auto& b) { return group(a) < group(b); });
  }

  /// The cluster's nodes as a graph of their own.
  std::string content() const {
    tf::GraphDef graph;
    std::map<Port, std::string> names;
    for (size_t i = 0; i < arguments_.size(); ++i) {
      tf::NodeDef* def = graph.add_node();
      def->set_name(argument_name(i));
      def->set_op("_Arg");
      (*def->mutable_attr())["index"].set_i(static_cast<int64_t>(i));
      (*def->mutable_attr())["T"].set_type(arguments_[i].content);
      if (tf::IsRefType(arguments_[i].type)) (*def->mutable_attr())["handle"].set_s("ref");
      if (arguments_[i].type == tf::DT_RESOURCE) (*def->mutable_attr())["handle"].set_s("resource");
      names[{arguments_[i].node, arguments_[i].port}] = def->name();
    }
    for (const auto& [port, variable] : behind_) names[port] = names.at(variable);
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
    for (const tf::Node* node : copied_) {
      tf::NodeDef* def = add(*node);
      for (const tf::Edge* edge : node->in_edges())
        if (!edge->IsControlEdge()) def->add_input(names.at({edge->src(), edge->src_output()}));
    }
    for (tf::Node* node : members_) {
      tf::NodeDef* def = add(*node);
      for (const tf::Edge* edge : sorted_inputs(*node)) {
        if (edge->IsControlEdge()) continue;
        auto argument = names.find({edge->src(), edge->src_output()});
        def->add_input(argument != names.end() ? argument->second
                                               : edge->src()->name() + ":" + std::to_string(edge->src_output()));
      }
      for (const tf::Edge* edge : sorted_inputs(*node))
        if (edge->IsControlEdge() && inside_.count(edge->src())) def->add_input("^" + edge->src()->name());
    }
    for (size_t i = 0; i < results_.size(); ++i) {
      tf::NodeDef* def = graph.add_node();
      def->set_name("__result_" + std::to_string(i));
      def->set_op("_Retval");
      def->add_input(results_[i].first->name() + ":" + std::to_string(results_[i].second));
      (*def->mutable_attr())["index"].set_i(static_cast<int64_t>(i));
    }
    if (functions_) *graph.mutable_library() = functions_->ReachableDefinitions(graph).ToProto();
    std::string bytes;
    tf::SerializeToStringDeterministic(graph, &bytes);
    return bytes;
  }

  /// The members that npu_scope.keep_dtype_scope marks, as the engine takes them.
  std::string keep_types() const {
    nlohmann::json names = nlohmann::json::array();
    for (const tf::Node* node : members_) {
      const tf::AttrValue* mark = node->attrs().Find("_keep_dtype");
      if (mark && (mark->i() != 0 || mark->b())) names.push_back(node->name());
    }
    return names.empty() || making_.precision_mode.empty() ? "" : names.dump();
  }

  /// The same nodes as a function of TensorFlow's own, for shapes that the engine refuses. A TF1 variable cannot be an
  /// argument: the function has a node that finds it by name. Without a name for it there is no such function.
  tf::Status add_stock_function() {
    if (!functions_) return tf::OkStatus();
    for (const Argument& argument : arguments_)
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
    for (size_t i = 0; i < arguments_.size(); ++i) {
      const Argument& argument = arguments_[i];
      tf::Node*& source = sources[{argument.node, argument.port}];
      if (argument.found || tf::IsRefType(argument.type)) {
        TF_RETURN_IF_ERROR(copy(*argument.node));
        source = copies.at(argument.node);
        continue;
      }
      tf::NodeDef def;
      TF_RETURN_IF_ERROR(tf::NodeDefBuilder(argument_name(i), "_Arg")
                             .Attr("T", argument.type)
                             .Attr("index", static_cast<int>(stock_inputs_.size()))
                             .Finalize(&def));
      TF_RETURN_IF_ERROR(add(def, source));
      stock_inputs_.push_back(static_cast<int>(i));
    }
    for (const auto& [port, variable] : behind_) sources[port] = sources.at(variable);
    for (const tf::Node* node : copied_) {
      TF_RETURN_IF_ERROR(copy(*node));
      for (const tf::Edge* edge : node->in_edges())
        if (!edge->IsControlEdge())
          body.AddEdge(sources.at({edge->src(), edge->src_output()}), 0, copies.at(node), edge->dst_input());
    }
    for (const tf::Node* node : members_) TF_RETURN_IF_ERROR(copy(*node));
    for (const tf::Node* node : members_)
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
    for (size_t i = 0; i < results_.size(); ++i) {
      tf::NodeDef def;
      tf::Node* from = copies.at(results_[i].first);
      TF_RETURN_IF_ERROR(
          tf::NodeDefBuilder("__result_" + std::to_string(i), "_Retval")
              .Input(from->name(), results_[i].second, tf::BaseType(from->output_type(results_[i].second)))
              .Attr("index", static_cast<int>(i))
              .Finalize(&def));
      tf::Node* result = nullptr;
      TF_RETURN_IF_ERROR(add(def, result));
      body.AddEdge(from, results_[i].second, result, 0);
    }
    tf::FixupSourceAndSinkEdges(&body);
    tf::FunctionDef function;
    TF_RETURN_IF_ERROR(tf::GraphToFunctionDef(body, name_ + "_stock", has_effect, &function));
    stock_.set_name(name_ + "_stock");
    return functions_->AddFunctionDef(function);
  }

  /// Whether TensorFlow's kernels may run what the engine does: not where another process counts on it.
  bool may_choose(const std::string& graph) const {
    return making_.may_measure && graph.find(kCollective) == std::string::npos;
  }

  bool in_doubt() const {
    int work = 0;
    for (const tf::Node* node : members_) {
      if (!making_.doubtful.count(node)) continue;
      const OpTraits& traits = traits_of(node->type_string());
      work += traits.has("rivalled") || node->IsSwitch() ? kHeavy : traits.work();
    }
    return work >= kLeastWork;
  }

  tf::Status replace() {
    std::vector<tf::NodeDefBuilder::NodeOut> plain, references[kGroups];
    tf::GraphDef variables;
    tf::DataTypeVector input_types, output_types;
    std::vector<int> written, fixed, frozen;
    std::vector<std::string> names;
    for (size_t i = 0; i < arguments_.size(); ++i) {
      const Argument& argument = arguments_[i];
      tf::NodeDefBuilder::NodeOut from(argument.node->name(), argument.port, argument.type);
      const bool reference = tf::IsRefType(argument.type);
      if (argument.found) {
        *variables.add_node() = argument.node->def();
      } else if (reference) {
        references[reference_group(argument.content)].push_back(from);
      } else {
        plain.push_back(from);
        input_types.push_back(argument.type);
      }
      if (argument.written)
        written.push_back(static_cast<int>(i));
      else if (making_.frozen && (reference || argument.type == tf::DT_RESOURCE))
        frozen.push_back(static_cast<int>(i));
      if (!reference && argument.type != tf::DT_RESOURCE && making_.known.count(argument.node->name()))
        fixed.push_back(static_cast<int>(i));
      names.push_back(argument.node->name());
    }
    for (const Port& port : results_) output_types.push_back(tf::BaseType(port.first->output_type(port.second)));
    tf::NodeDefBuilder builder(name_, "CairnCluster");
    builder.Input(plain);
    for (const auto& group : references) builder.Input(group);
    static constexpr const char* kCounts[kGroups] = {"n_float", "n_half",   "n_bfloat16",  "n_int32",     "n_int64",
                                                     "n_bool",  "n_double", "n_complex64", "n_complex128"};
    for (int i = 0; i < kGroups; ++i) builder.Attr(kCounts[i], static_cast<int>(references[i].size()));
    const std::string graph = content();
    std::string found;
    tf::SerializeToStringDeterministic(variables, &found);
    tf::NodeDef def;
    TF_RETURN_IF_ERROR(builder.Attr("Tin", input_types)
                           .Attr("Tout", output_types)
                           .Attr("graph", graph)
                           .Attr("variables", found)
                           .Attr("stock", stock_)
                           .Attr("stock_inputs", stock_inputs_)
                           .Attr("precision_mode", making_.precision_mode)
                           .Attr("mixed_lists", making_.mixed_lists)
                           .Attr("custom_types", making_.custom_types)
                           .Attr("keep_types", keep_types())
                           .Attr("deterministic", making_.deterministic)
                           .Attr("fixed", fixed)
                           .Attr("frozen", frozen)
                           .Attr("written", written)
                           .Attr("names", names)
                           .Attr("function", making_.title)
                           .Attr("choose", may_choose(graph))
                           .Attr("in_doubt", in_doubt())
                           .Device(members_[0]->requested_device())
                           .Finalize(&def, true));
    tf::Status status;
    tf::Node* cluster = graph_.AddNode(def, &status);
    TF_RETURN_IF_ERROR(status);
    cluster->set_assigned_device_name(members_[0]->assigned_device_name());
    for (size_t i = 0; i < arguments_.size() && !arguments_[i].found; ++i)
      graph_.AddEdge(arguments_[i].node, arguments_[i].port, cluster, static_cast<int>(i));
    for (tf::Node* node : waits_) graph_.AddControlEdge(node, cluster);
    for (tf::Node* node : members_) {
      for (const tf::Edge* edge : sorted_outputs(*node)) {
        tf::Node* user = edge->dst();
        if (inside_.count(user) || !user->IsOp()) continue;
        if (edge->IsControlEdge()) {
          graph_.AddControlEdge(cluster, user);
          continue;
        }
        int input = edge->dst_input();
        int output = result_number_.at({node, edge->src_output()});
        graph_.RemoveEdge(edge);
        graph_.AddEdge(cluster, output, user, input);
      }
    }
    for (tf::Node* node : members_) graph_.RemoveNode(node);
    tf::FixupSourceAndSinkEdges(&graph_);
    return tf::OkStatus();
  }

  static constexpr int kGroups = 9;  // of references, by type

  tf::Graph& graph_;
  const Making& making_;
  tf::FunctionLibraryDefinition* functions_;
  const std::vector<tf::Node*>& members_;
  std::set<const tf::Node*> inside_;
  std::string name_;
  std::set<tf::Node*> waits_;            // control inputs
  std::vector<const tf::Node*> copied_;  // constants and views of variables, which stand outside as well
  std::vector<Argument> arguments_;
  std::map<Port, Port> behind_;  // a reference that a host node hands on -> the variable itself
  std::vector<Port> results_;
  std::map<Port, int> result_number_;
  tf::NameAttrList stock_;
  std::vector<int> stock_inputs_;
};

}  // namespace

std::optional<std::string> has_effect(const tf::Node* node) {
  if (node->IsArg() || node->IsRetval()) return std::nullopt;
  bool writes = std::any_of(node->input_types().begin(), node->input_types().end(), tf::IsRefType);
  return writes || node->op_def().is_stateful() || node->num_outputs() == 0 ? std::optional(node->name())
                                                                            : std::nullopt;
}

tf::Status build_cluster(tf::Graph& graph, const Making& making, const std::vector<tf::Node*>& members,
                         std::string& name) {
  return Builder(graph, making, members).run(name);
}

}  // namespace cairn_tf
