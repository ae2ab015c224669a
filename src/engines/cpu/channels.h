// Kernels that walk tensors sixteen innermost elements at a time: reductions of other axes, softmax.
#pragma once

#include <cstdint>

#include "support/executor.h"

namespace cairn {

/// y[o, c] = sum (times `scale`) or largest of x[o, :, c].
void reduce_middle(Executor& executor, bool largest, int64_t outer, int64_t middle, int64_t c, float scale, const float* x, float* y);

/// Along the last axis; rows of -inf give NaN.
void softmax(Executor& executor, int64_t rows, int64_t c, const float* x, float* y);

}  // namespace cairn
