// The graph passes: before placement If and While are kept whole, before execution the clusters are made. They act on
// sessions whose configuration has a custom optimiser named NpuOptimizer, which carries the parameters.
#include <atomic>

#include "clusterer.h"
#include "engine.h"
#include "second_cut.h"
#include "tensorflow/core/common_runtime/optimization_registry.h"
#include "tensorflow/core/platform/env.h"
#include "tensorflow/core/protobuf/rewriter_config.pb.h"
#include "tensorflow/core/public/session_options.h"
#include "tensorflow/core/util/determinism.h"

namespace cairn_tf {
namespace {

using Options = tf::GraphOptimizationPassOptions;

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

std::string text(const tf::RewriterConfig_CustomGraphOptimizer& entry, const std::string& key) {
  auto found = entry.parameter_map().find(key);
  return found == entry.parameter_map().end() ? "" : found->second.s();
}

int64_t number(const tf::RewriterConfig_CustomGraphOptimizer& entry, const std::string& key, int64_t fallback) {
  auto found = entry.parameter_map().find(key);
  return found == entry.parameter_map().end() ? fallback : found->second.i();
}

/// The content of the file that the key names, if it names one.
tf::Status read_file(const tf::RewriterConfig_CustomGraphOptimizer& entry, const std::string& key,
                     std::string& content) {
  const std::string path = text(entry, key);
  if (path.empty() || tf::ReadFileToString(tf::Env::Default(), path, &content).ok()) return tf::OkStatus();
  return tf::errors::InvalidArgument("Cairn: ", key, ": ", path, " cannot be read");
}

/// The session's precision keys as the engine takes them.
tf::Status read_precision(const tf::RewriterConfig_CustomGraphOptimizer& entry, Making& making) {
  making.precision_mode = text(entry, "precision_mode_v2");
  if (making.precision_mode.empty()) making.precision_mode = text(entry, "precision_mode");
  TF_RETURN_IF_ERROR(read_file(entry, "modify_mixlist", making.mixed_lists));
  TF_RETURN_IF_ERROR(read_file(entry, "customize_dtypes", making.custom_types));
  static std::atomic<bool> told{false};
  if (making.precision_mode == "allow_fp32_to_bf16" && !told.exchange(true))
    LOG(WARNING)
        << "Cairn: precision_mode=allow_fp32_to_bf16 has no effect: every operator takes float32, which comes first";
  return tf::OkStatus();
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

class MakeClusters : public tf::GraphOptimizationPass {
 public:
  tf::Status Run(const Options& options) override {
    if (!acts_on(options)) return tf::OkStatus();
    std::string why;
    const Library* engine = library(why);
    if (!engine) return tf::errors::Unavailable("Cairn: ", why);
    std::string title =
        options.is_function_graph && options.function_def ? options.function_def->signature().name() : "";
    Making making{options.flib_def, title, {}, {}};
    making.frozen =
        flag(*entry_of(options), "frozen_variable", false) && number(*entry_of(options), "graph_run_mode", 1) == 0;
    making.deterministic = number(*entry_of(options), "deterministic", 0) != 0;
    TF_RETURN_IF_ERROR(read_precision(*entry_of(options), making));
    making.may_measure = !making.deterministic && !tf::OpDeterminismRequired() && making.precision_mode.empty() &&
                         making.custom_types.empty();
    try {
      TF_RETURN_IF_ERROR(make_clusters(**options.graph, *engine, making));
      return cut_bodies(**options.graph, *engine, making);
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
