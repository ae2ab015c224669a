// Steps of a plan that fall to its last engine, which takes every operator and is slow, because all others refuse them.
#pragma once

#include <string>
#include <vector>

#include "plan/plan.h"

namespace cairn {

struct ReferenceStep {
  std::string op, types;  // "conv2d", "f32[1, 224, 224, 3], f32[16, 16, 3, 768]"
  std::string node;       // "patches/Conv2D (vit.py:12)"
  std::string reason;     // of the kernels that are of this kind of operator, or of all
  double seconds = 0;     // estimated from FLOPs and bytes
  size_t count = 1;       // of the same operator, types and reason
};

/// What of a plan, with the bodies of its loops and branches once, falls to the last engine.
struct ReferenceShare {
  std::vector<ReferenceStep> steps;     // most time first
  double of_flops = 0, of_seconds = 0;  // shares of the plan's, 0 to 1
};

/// None where the plan has one engine alone, as asked for by the caller.
ReferenceShare reference_share(const Plan& plan, const Module& module, const PlanOptions& options);
/// The same of the plan that @main would have for these dims, without making its steps. Loops and branches, and what has dims
/// born from data, are left out.
ReferenceShare expected_share(const Module& module, std::span<const Dims> dims, const PlanOptions& options);
/// More of a plan's estimated time than a user expects, and not too short to matter.
bool is_slow(const ReferenceShare& share);
/// For people: a sentence with the shares, then a line each for the steps that take most time. Empty without such steps.
std::vector<std::string> describe(const ReferenceShare& share);

/// Says on standard error, once for each operator in a process, that such steps take more than a twentieth of the plan's
/// estimated time. CAIRN_REFERENCE_STEPS names a file to which all of them are added, a line each: operator, types, node and
/// reason between tabs.
void tell_reference_steps(const Plan& plan, const Module& module, const PlanOptions& options);

}  // namespace cairn
