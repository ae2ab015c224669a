// Reductions of what several ranks give, element by element.
#pragma once

#include <span>

#include "comm/request.h"

namespace cairn::comm {

/// to[i] = sources[0][i] + sources[1][i] + ... in this order. 16-bit floats are combined in f32 and rounded once; integers
/// wrap; max and min of a NaN are NaN; of bools sum and max are "or", prod and min "and". `to` may be one of the sources.
void combine(Reduction reduction, DType dtype, std::span<const void* const> sources, void* to, size_t count);

/// Whether the reduction is defined for these elements: means of integers and the order of complex numbers are not.
bool reducible(Reduction reduction, DType dtype);

}  // namespace cairn::comm
