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
