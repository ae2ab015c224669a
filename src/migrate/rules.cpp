// The list of all rules, in the order in which they are tried.
#include "migrate/rules.h"

namespace cairn::migrate {

const std::vector<const Rule*>& all_rules() {
  static const std::vector<const Rule*> rules = {
      &kSessionConfig,
      &kGraphOptions,
      &kEstimatorConfig,
      &kRunConfigDistribution,
      &kRunConfigSummaries,
      &kTpuEstimator,
      &kNpuEstimator,
      &kNpuRunConfig,
      &kDropout,
      &kGelu,
      &kKerasDropout,
      &kClearSession,
      &kKerasSession,
      &kDropRemainder,
      &kShard,
      &kDatasetVariable,
      &kLookupTable,
      &kUnknownReceiver,
      &kDevice,
      &kNeutralised,
      &kSoftPlacement,
      &kMemoryLimit,
      &kJitScope,
      &kExperimentalOptions,
      &kControlFlow,
      &kLossScale,
      &kLossScaleOptimizer,
      &kGraphRewrite,
      &kHorovodInit,
      &kHorovodQuery,
      &kHorovodOptimizer,
      &kHorovodBroadcast,
      &kHorovodCallback,
      &kHorovodCollective,
      &kHorovodLaunch,
      &kHorovodLoad,
      &kHorovodOther,
      &kStrategy,
      &kStrategyOptimizer,
      &kStrategyHooks,
      &kStrategyCompile,
      &kStrategyFit,
      &kStrategyGradients,
      &kNpuDevice,
      &kNpuDeviceLossScale,
      &kNpuDeviceOptimizer,
      &kSessionNotClosed,
      &kSkipLoop,
      &kHalfSum,
      &kParameterServer,
      &kCudaEnvironment,
      &kCudaPackage,
      &kPythonTwo,
      &kIPython,
      &kForeignFramework,
      &kMissingApi,
      &kTorchNames,
      &kTorchModule,
      &kTorchTraining,
      &kTorchImports,
      &kTorchMissing,
  };
  return rules;
}

const Rule* find_rule(std::string_view id) {
  for (const Rule* rule : all_rules())
    if (rule->id == id) return rule;
  return nullptr;
}

}  // namespace cairn::migrate
