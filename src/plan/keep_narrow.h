// Values of 16 bits stay small in memory: what widens them stands before each of its users, where a kernel reads them as they are.
#pragma once

#include "ir/module.h"

namespace cairn {

/// Changes no bit of any result.
bool keep_narrow(Block& block);

/// What the value of f32 is widened from, or null.
Value* narrow_source(const Value* value);
/// Whether all elements of f32 have 16 bits already.
bool is_representable(const Tensor& tensor, DType dtype);

}  // namespace cairn
