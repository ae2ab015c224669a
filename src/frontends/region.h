// Conditions and results of regions as frontends meet them.
#pragma once

#include "ir/builder.h"

namespace cairn {

/// A bool[] from a scalar: what is not zero is true. Throws Error unsupported for other tensors.
Value* truth(Value* value, Builder& builder);

/// join() of types that may have nothing in common. Throws Error invalid_model.
Type joined_type(const Type& a, const Type& b, size_t number);

}  // namespace cairn
