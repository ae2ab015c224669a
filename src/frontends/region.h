// Helpers of frontends for the conditions and results of regions.
#pragma once

#include "ir/builder.h"

namespace cairn {

/// A bool[] from a scalar, true when it is not zero. Throws Error unsupported for other tensors.
Value* truth(Value* value, Builder& builder);

/// join() with a check that it is defined. Throws Error invalid_model when it is not.
Type joined_type(const Type& a, const Type& b, size_t number);

}  // namespace cairn
