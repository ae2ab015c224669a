#include "stock_rewriting.h"

#include "builder.h"
#include "tensorflow/core/grappler/optimizers/meta_optimizer.h"
#include "tensorflow/core/protobuf/rewriter_config.pb.h"

namespace cairn_tf {

namespace {

/// The session's configuration without what npu_bridge (`prepare` and `lighten`) has set. What only a script sets stays.
tf::ConfigProto as_stock(tf::ConfigProto config) {
  auto& rewriting = *config.mutable_graph_options()->mutable_rewrite_options();
  rewriting.clear_custom_optimizers();
  rewriting.clear_memory_optimization();
  rewriting.clear_remapping();
  rewriting.clear_disable_tfg_optimizer();
  rewriting.clear_meta_optimizer_iterations();
  rewriting.clear_layout_optimizer();
  rewriting.clear_common_subgraph_elimination();
  return config;
}

}  // namespace

void rewrite_as_stock(const tf::ConfigProto& config, const std::string& title, tf::Device& cpu,
                      const tf::DeviceSet& devices, tf::FunctionLibraryDefinition& functions,
                      std::unique_ptr<tf::Graph>& graph) {
  std::vector<std::string> results, kept;
  for (const tf::Node* node : graph->op_nodes()) {
    if (node->IsRetval()) results.push_back(node->name());
    if (node->IsArg() || has_effect(node)) kept.push_back(node->name());
  }
  tf::grappler::GrapplerItem::OptimizationOptions options;
  options.allow_pruning_stateful_and_dataset_ops = false;
  options.optimize_function_library = false;
  const tf::Status status =
      tf::grappler::OptimizeGraph(results, kept, &functions, devices, &cpu, as_stock(config), title, options, &graph);
  if (!status.ok()) VLOG(1) << "Cairn: " << title << " is not rewritten: " << status;
}

}  // namespace cairn_tf
