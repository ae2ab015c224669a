// Computes small integer results at once while importing: axes, sizes and permutations that a model works out from
// constants must be numbers before the ops that need them can be made.
#pragma once

#include "ir/builder.h"

namespace cairn {

/// A constant in place of `value` when its node has only constant inputs and few results, else `value` itself. What is
/// computed of float initializers is left to the passes: whoever trains a model wants to tell them from it.
Value* folded(Value* value, Builder& builder);

/// `value` with elements of `dtype`, as a constant where it is a small one.
Value* cast_to(Value* value, DType dtype, Builder& builder);

}  // namespace cairn
