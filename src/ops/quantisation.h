// Zero points: what the rows of quantised numbers and of integer contractions share.
#pragma once

#include "ops/kernels.h"

namespace cairn {

/// Refuses a scale or zero point (input `of`) that does not broadcast to `all`, the shape of input x or of its transposed
/// matrices, and a zero point of another element type.
void check_scale(const InferContext& context, const Shape& all, size_t of);
void check_zero_point(const InferContext& context, size_t x, const Shape& all, size_t of);

/// x less its zero point, as i32.
Tensor centred(const Tensor& x, const Tensor& zero_point);

}  // namespace cairn
