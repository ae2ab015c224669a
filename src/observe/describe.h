// A plan as JSON for a recording: what each step computes, from which source nodes, and the memory over the steps.
#pragma once

#include <string>

#include "plan/plan.h"

namespace cairn::observe {

std::string describe_plan(const Plan& plan, const Module& module, uint32_t serial, uint32_t model);

}  // namespace cairn::observe
