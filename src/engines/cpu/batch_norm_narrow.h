// The loops of batch normalisation over rows of 16-bit elements, widened and rounded in registers.
#pragma once

#include "engines/cpu/batch_norm_loops.h"

namespace cairn {

/// `first`: row of the operands, which all have one form.
struct NarrowRows {
  void (*add_rows)(int64_t rows, int64_t c, const BatchNorm& b, int64_t first, float* sum);
  /// Adds distances from the mean, and their squares.
  void (*add_moments)(int64_t rows, int64_t c, const BatchNorm& b, int64_t first, const float* mean, float* sum,
                      float* squares);
  void (*normalise)(int64_t rows, int64_t c, const BatchNorm& b, int64_t first, const float* factor);
  /// Adds dy, and dy times the distance from the mean.
  void (*add_slopes)(int64_t rows, int64_t c, const BatchNormGradient& b, int64_t first, float* level, float* slope);
  void (*input_gradient)(int64_t rows, int64_t c, const BatchNormGradient& b, int64_t first, const float* factor,
                         const float* level, const float* slope);
};

/// Of operands of this form; null for floats, and where registers are narrower than AVX-512's.
const NarrowRows* narrow_rows(Form form);

}  // namespace cairn
