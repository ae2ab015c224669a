#include "op_kinds.h"

#include <map>
#include <set>

#include "partition.h"

namespace cairn_tf {

bool only_reads(const std::string& op) {
  static const std::set<std::string> ops = {"ReadVariableOp", "ResourceGather", "ResourceGatherNd", "VariableShape"};
  return ops.count(op) != 0;
}

int work_of(const std::string& op) {
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
                                              "LoopCond",
                                              "MaxPoolGrad",
                                              "SoftmaxCrossEntropyWithLogits",
                                              "SparseSoftmaxCrossEntropyWithLogits"};
  static const std::set<std::string> free = {"NoOp",
                                             "CairnAssert",
                                             "Identity",
                                             "Switch",
                                             "RefSwitch",
                                             "Merge",
                                             "RefMerge",
                                             "Enter",
                                             "RefEnter",
                                             "Exit",
                                             "RefExit",
                                             "NextIteration",
                                             "ControlTrigger",
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
  if (heavy.count(op) || draws.count(op)) return kHeavy;
  return free.count(op) ? 0 : 1;
}

const std::vector<int>& known_inputs(const std::string& op) {
  static const std::vector<int> none, first{0}, second{1}, third{2}, last{-1}, every{kEvery};
  // clang-format off
  static const std::map<std::string, const std::vector<int>&> table = {
      {"Sum", second},         {"Mean", second},          {"Max", second},
      {"Min", second},         {"Prod", second},          {"Any", second},
      {"All", second},         {"ArgMax", second},        {"ArgMin", second},
      {"Transpose", second},   {"Cumsum", second},        {"Cumprod", second},
      {"ReverseV2", second},   {"ExpandDims", second},    {"ConcatV2", last},
      {"Concat", first},       {"Split", first},          {"SplitV", last},
      {"GatherV2", third},     {"EuclideanNorm", second}, {"BroadcastGradientArgs", every},
      {"DynamicStitch", every}, {"ParallelDynamicStitch", every}};
  // clang-format on
  auto found = table.find(op);
  return found == table.end() ? none : found->second;
}

bool tells_shapes(const std::string& op) {
  return op == "Shape" || op == "ShapeN" || op == "Rank" || op == "Size" || op == "VariableShape";
}

}  // namespace cairn_tf
