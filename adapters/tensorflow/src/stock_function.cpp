#include "stock_function.h"

#include <memory>
#include <unordered_map>
#include <utility>

#include "clusterer.h"
#include "stock_rewriting.h"
#include "tensorflow/core/common_runtime/function_body.h"
#include "tensorflow/core/common_runtime/function_def_utils.h"
#include "tensorflow/core/common_runtime/optimization_registry.h"
#include "tensorflow/core/framework/graph_to_functiondef.h"
#include "tensorflow/core/public/session_options.h"

namespace cairn_tf {

namespace {

/// Adds `name`, what the rewrites make of `function`, unless it is there.
tf::Status add_rewritten(const std::string& function, const std::string& name, tf::FunctionLibraryRuntime& runtime) {
  tf::FunctionLibraryDefinition& functions = library_of(runtime);
  const std::string& device = runtime.device()->name();
  if (functions.Contains(name)) return tf::OkStatus();
  const tf::FunctionDef* found = functions.Find(function);
  if (!found) return tf::errors::Internal("Cairn: there is no function ", function);
  std::unique_ptr<tf::FunctionBody> body;
  TF_RETURN_IF_ERROR(tf::FunctionDefToBodyHelper(*found, tf::AttrSlice(), &functions, &body));
  for (tf::Node* node : body->graph->op_nodes()) node->set_assigned_device_name(device);
  std::unordered_map<std::string, std::unique_ptr<tf::Graph>> graphs;
  std::unique_ptr<tf::Graph>& graph = graphs[device];
  graph.reset(std::exchange(body->graph, nullptr));
  if (runtime.config_proto()) {
    tf::DeviceSet devices;
    devices.AddDevice(runtime.device());
    rewrite_as_stock(*runtime.config_proto(), name, *runtime.device(), devices, functions, graph);
  }
  const tf::SessionOptions session;
  tf::GraphOptimizationPassOptions options;
  options.session_options = &session;
  options.flib_def = &functions;
  options.partition_graphs = &graphs;
  TF_RETURN_IF_ERROR(
      tf::OptimizationPassRegistry::Global()->RunGrouping(tf::OptimizationPassRegistry::POST_PARTITIONING, options));
  tf::FunctionDef rewritten;
  TF_RETURN_IF_ERROR(tf::GraphToFunctionDef(*graph, name, has_effect, &rewritten));
  return functions.AddFunctionDef(rewritten);
}

}  // namespace

tf::FunctionLibraryDefinition& library_of(tf::FunctionLibraryRuntime& runtime) {
  return *const_cast<tf::FunctionLibraryDefinition*>(runtime.GetFunctionLibraryDefinition());
}

tf::Status instantiate_as_in_a_session(tf::FunctionLibraryRuntime& runtime, const std::string& function,
                                       const google::protobuf::Map<std::string, tf::AttrValue>& attributes,
                                       tf::FunctionLibraryRuntime::Handle& handle) {
  const std::string name = function + "_rewritten";
  TF_RETURN_IF_ERROR(add_rewritten(function, name, runtime));
  return runtime.Instantiate(name, tf::AttrSlice(&attributes), &handle);
}

}  // namespace cairn_tf
