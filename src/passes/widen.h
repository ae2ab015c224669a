// Converts a graph to float64, so that rounding is negligible: a reference for judging the kernels and the framework.
#pragma once

#include "ir/module.h"

namespace cairn {

/// Runs the required passes, then widens every float tensor in every block to f64. Params of functions keep their types
/// and are cast at entry; results are cast back unless `wide_results`. Random numbers are drawn in their original type,
/// so that they are the same numbers; an operator that does not take f64 also keeps its type.
void widen_floats(Module& module, bool wide_results);

}  // namespace cairn
