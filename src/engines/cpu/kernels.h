// The list of CPU kernels: each says why it does not take a group, or makes the step.
#pragma once

#include "engine/engine.h"

namespace cairn {

struct CpuKernel {
  const char* name;
  std::optional<std::string> (*refuses)(const Group& group);
  std::unique_ptr<Step> (*make)(const Group& group, MakeContext& context);
  /// For strided inputs and outputs; null, or returns null, when it would need copies of them.
  std::unique_ptr<Step> (*make_strided)(const Group& group, const GroupStrides& strides) = nullptr;
  /// Takes results whose dims only a run tells, and allocates them itself.
  bool allocates = false;
  /// `refuses`, but for what decides by speed alone: of a group that the kernel takes at sizes of the same magnitude. Null: `refuses`.
  std::optional<std::string> (*refuses_again)(const Group& group) = nullptr;
};

/// All CPU kernels, best first.
std::span<const CpuKernel> cpu_kernels();

}  // namespace cairn
