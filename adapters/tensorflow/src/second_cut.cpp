#include "second_cut.h"

#include <memory>
#include <nlohmann/json.hpp>

#include "tensorflow/core/common_runtime/function_body.h"
#include "tensorflow/core/common_runtime/function_def_utils.h"
#include "tensorflow/core/framework/graph_to_functiondef.h"

namespace cairn_tf {

std::map<std::string, std::string> refused_nodes(const Failure& failure) {
  std::map<std::string, std::string> nodes;
  auto report = nlohmann::json::parse(failure.report, nullptr, false);
  if (!report.is_object()) return nodes;
  for (const auto& problem : report.value("problems", nlohmann::json::array()))
    for (const auto& place : problem.value("places", nlohmann::json::array()))
      nodes[place.value("node", "")] = problem.value("message", "");
  return nodes;
}

namespace {

tf::Status cut_bodies(tf::Graph& graph, const Library& library, const Making& making, bool& any);

/// Adds `name`: the function with clusters; `any` tells whether there are some, else nothing is added.
tf::Status cut_function(const std::string& function, const std::string& device, const Library& library, Making making,
                        const std::string& name, bool& any) {
  const tf::FunctionDef* found = making.functions->Find(function);
  if (!found) return tf::OkStatus();
  std::unique_ptr<tf::FunctionBody> body;
  if (!tf::FunctionDefToBodyHelper(*found, tf::AttrSlice(), making.functions, &body).ok())
    return tf::OkStatus();  // its types depend on the call
  for (tf::Node* node : body->graph->op_nodes()) node->set_assigned_device_name(device);
  making.title = function;
  TF_RETURN_IF_ERROR(make_clusters(*body->graph, library, making));
  for (const tf::Node* node : body->graph->op_nodes()) any = any || node->type_string() == "CairnCluster";
  TF_RETURN_IF_ERROR(cut_bodies(*body->graph, library, making, any));
  if (!any) return tf::OkStatus();
  tf::FunctionDef cut;
  TF_RETURN_IF_ERROR(tf::GraphToFunctionDef(*body->graph, name, has_effect, &cut));
  *cut.mutable_attr() = found->attr();
  return making.functions->AddFunctionDef(cut);
}

tf::Status cut_bodies(tf::Graph& graph, const Library& library, const Making& making, bool& any) {
  for (tf::Node* node : graph.op_nodes()) {
    if (!node->IsWhileNode() && !node->IsIfNode()) continue;
    for (const char* attribute : {"body", "then_branch", "else_branch"}) {
      const tf::AttrValue* value = node->attrs().Find(attribute);
      if (!value || !value->has_func()) continue;
      tf::NameAttrList callee = value->func();
      const std::string name = making.functions->UniqueFunctionName(callee.name() + "_cut_");
      bool cut = false;
      TF_RETURN_IF_ERROR(cut_function(callee.name(), node->assigned_device_name(), library, making, name, cut));
      if (!cut) continue;
      any = true;
      callee.set_name(name);
      node->ClearAttr(attribute);
      node->AddAttr(attribute, callee);
    }
  }
  return tf::OkStatus();
}

}  // namespace

tf::Status cut_bodies(tf::Graph& graph, const Library& library, const Making& making) {
  bool any = false;
  return cut_bodies(graph, library, making, any);
}

tf::Status cut_again(const std::string& stock, const std::string& device, const Library& library, Making making,
                     std::string& name, std::vector<std::string>& nodes) {
  const tf::FunctionDef* found = making.functions->Find(stock);
  if (!found) return tf::OkStatus();
  std::unique_ptr<tf::FunctionBody> body;
  TF_RETURN_IF_ERROR(tf::FunctionDefToBodyHelper(*found, tf::AttrSlice(), making.functions, &body));
  for (tf::Node* node : body->graph->op_nodes()) {
    node->set_assigned_device_name(device);
    if (making.refused.count(node->name())) nodes.push_back(node->name());
  }
  if (nodes.empty()) return tf::OkStatus();
  TF_RETURN_IF_ERROR(make_clusters(*body->graph, library, making));
  tf::FunctionDef function;
  TF_RETURN_IF_ERROR(tf::GraphToFunctionDef(*body->graph, stock + "_again", has_effect, &function));
  TF_RETURN_IF_ERROR(making.functions->AddFunctionDef(function));
  name = stock + "_again";
  return tf::OkStatus();
}

}  // namespace cairn_tf
