// Sums over neighbours along an axis, for local response normalisation.
#pragma once

#include "ir/builder.h"

namespace cairn {

/// For each element the sum over those from `before` places before it to `after` places behind it along an axis of known
/// size, as far as they are there. Throws Error unsupported where the size is open.
Value* sum_of_neighbours(Value* x, size_t axis, int64_t before, int64_t after, Builder& builder);

}  // namespace cairn
