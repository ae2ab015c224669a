// Reports the steps of a plan that fall to its last engine, the slow one that takes every operator, because all other
// engines refuse them.
#pragma once

#include <string>
#include <vector>

#include "plan/plan.h"

namespace cairn {

struct ReferenceStep {
  std::string op, types;  // "conv2d", "f32[1, 224, 224, 3], f32[16, 16, 3, 768]"
  std::string node;       // "patches/Conv2D (vit.py:12)"
  std::string reason;     // why the kernels of this kind of operator refused (or all kernels, if there are none)
  double seconds = 0;     // estimated from FLOPs and bytes
  size_t count = 1;       // steps with the same operator, types and reason
};

/// The part of a plan that falls to the last engine; the bodies of loops and branches count once.
struct ReferenceShare {
  std::vector<ReferenceStep> steps;     // slowest first
  double of_flops = 0, of_seconds = 0;  // fractions of the plan's FLOPs and estimated time, 0 to 1
};

/// Empty when the caller asked for a single engine.
ReferenceShare reference_share(const Plan& plan, const Module& module, const PlanOptions& options);
/// The same for the plan that @main would have for these dims, without making its steps. Leaves out loops, branches and
/// nodes with dynamic dims.
ReferenceShare expected_share(const Module& module, std::span<const Dims> dims, const PlanOptions& options);
/// Whether the share of the estimated time, and that time itself, are large enough to tell the user.
bool is_slow(const ReferenceShare& share);
/// A sentence with the shares, then a line for each of the slowest steps. Empty without such steps.
std::vector<std::string> describe(const ReferenceShare& share);

/// Writes a note to standard error, once per operator and process, when such steps take more than a twentieth of the
/// plan's estimated time. If CAIRN_REFERENCE_STEPS names a file, appends a line for each step: operator, types, node
/// and reason, separated by tabs.
void tell_reference_steps(const Plan& plan, const Module& module, const PlanOptions& options);

}  // namespace cairn
