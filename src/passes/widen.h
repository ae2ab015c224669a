// A graph in float64: what it computes when rounding hardly counts, to judge the kernels and the framework by.
#pragma once

#include "ir/module.h"

namespace cairn {

/// Runs the required passes, then widens every floating tensor in every block to f64. Params of functions keep their types and
/// are cast where they enter; results are cast back to their types unless `wide_results`. Random numbers are drawn in their
/// own type, so that they are the same numbers; an operator that takes no f64 runs in its own type as well.
void widen_floats(Module& module, bool wide_results);

}  // namespace cairn
