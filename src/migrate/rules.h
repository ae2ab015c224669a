// The rules' rows by file, and what several of them share.
#pragma once

#include "migrate/rule.h"

namespace cairn::migrate {

// A function of npu_bridge.npu_init that an argument is handed through.
struct Wrapper {
  std::string_view function, keyword, done;  // `done`: the class that marks its result
};
inline constexpr Wrapper kWrapConfig = {"npu_config_proto", "config_proto", "npu.done.config"};
inline constexpr Wrapper kWrapRunConfig = {"npu_run_config_init", "run_config", "npu.done.run_config"};
inline constexpr Wrapper kWrapGraphOptions = {"npu_graph_options", "graph_options", "npu.done.graph_options"};
inline constexpr Wrapper kWrapOptimizerOptions = {"npu_optimizer_options", "optimizer_options",
                                                  "npu.done.optimizer_options"};

/// Hands argument `parameter` of the call through the wrapper, in place; adds it when absent and `add`. A ** argument that is
/// a known dict is followed; one that is not is reported. False when nothing was to be done or could be.
/// What reduces an optimizer's gradients over the ranks, as Rewrite::use() takes it.
const char* optimizer_wrapper(const Context& file);
bool wrap_argument(Spot& spot, const Arguments& bound, std::string_view parameter, const Wrapper& wrapper, bool add);

/// Hands a list of hooks or callbacks through npu_hooks_append / npu_callbacks_append: a copy, never the caller's own list.
bool append_to_list(Spot& spot, const Arguments& bound, std::string_view parameter, bool callbacks);

/// Replaces a call that is a statement by `pass`, and one that is part of an expression by `None`.
void neutralise(Spot& spot, const std::string& why);

/// The dict literal or dict(...) call that `**expression` is, in this module; kNoNode when unknown.
NodeId dict_of(Context& file, NodeId splat);
/// The value of `key` in a dict literal or dict(...) call.
NodeId dict_value(const Syntax& syntax, NodeId dict, std::string_view key);

enum class Phase : uint8_t { unknown, train, evaluate };
/// What the code around a node is for, by the names of functions, variables and branches.
Phase phase_of(Context& file, NodeId node);
/// The condition under which the function around the node trains ("is_training", "mode == tf.estimator.ModeKeys.TRAIN"), or "".
std::string training_condition(Context& file, NodeId node);

/// hccl_ops, imported as the file's interface of TensorFlow has it.
std::string use_collectives(Rewrite& rewrite, const Context& file);

/// Whether all that the project uses of Horovod has a peer, so that what stands for its module may be anything.
bool all_have_peers(const std::vector<FileFacts>& files);

/// The `if __name__ == "__main__":` of a file, either way round; kNoNode when it has none.
NodeId main_guard(const Syntax& syntax);

extern const Rule kSessionConfig, kGraphOptions, kSessionNotClosed;
extern const Rule kEstimatorConfig, kRunConfigDistribution, kRunConfigSummaries, kTpuEstimator, kNpuEstimator,
    kNpuRunConfig;
extern const Rule kDropout, kGelu, kKerasDropout, kClearSession, kKerasSession, kSkipLoop;
extern const Rule kDropRemainder, kShard, kDatasetVariable, kLookupTable;
extern const Rule kDevice, kNeutralised, kSoftPlacement, kMemoryLimit, kJitScope, kExperimentalOptions,
    kCudaEnvironment, kControlFlow, kHalfSum, kParameterServer;
extern const Rule kLossScale, kLossScaleOptimizer, kGraphRewrite;
extern const Rule kHorovodInit, kHorovodQuery, kHorovodOptimizer, kHorovodBroadcast, kHorovodCallback,
    kHorovodCollective, kHorovodLaunch, kHorovodLoad, kHorovodOther;
extern const Rule kStrategy, kStrategyOptimizer, kStrategyHooks, kStrategyCompile, kStrategyFit, kStrategyGradients;
extern const Rule kNpuDevice, kNpuDeviceLossScale, kNpuDeviceOptimizer;
extern const Rule kTorchNames, kTorchModule, kTorchTraining, kTorchImports, kTorchMissing;
extern const Rule kForeignFramework, kCudaPackage, kPythonTwo, kIPython, kMissingApi, kUnknownReceiver;

}  // namespace cairn::migrate
