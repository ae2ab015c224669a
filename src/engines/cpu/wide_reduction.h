// Sums, means, maxima and minima of f64 and of whole numbers along adjacent axes.
#pragma once

#include "engines/cpu/call_step.h"

namespace cairn {

Refusal refuses_wide_reduction(const Group& group);
std::unique_ptr<Step> make_wide_reduction(const Group& group, MakeContext& context);

}  // namespace cairn
