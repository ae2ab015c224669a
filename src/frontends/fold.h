// Folds small integer results during import: axes, sizes and permutations that a model computes from constants must be
// known before the ops that need them can be made.
#pragma once

#include "ir/builder.h"

namespace cairn {

/// A constant instead of `value` if its node has only constant inputs and few results, else `value` itself. Results
/// computed from float initialisers are left to the passes, since training must find the initialisers themselves.
Value* folded(Value* value, Builder& builder);

/// `value` cast to `dtype`; a small constant stays a constant.
Value* cast_to(Value* value, DType dtype, Builder& builder);

}  // namespace cairn
