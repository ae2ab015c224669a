// Statistics of a tensor in one pass over memory: extremes, mean, norm, and the number of values that are not finite.
#pragma once

#include <cstdint>

#include "ir/tensor.h"

namespace cairn {

struct Statistics {
  size_t count = 0, nan = 0, plus_infinite = 0, minus_infinite = 0, zero = 0;
  double least = 0, most = 0, mean = 0, norm = 0;  // of the finite elements; norm: root of the sum of squares

  size_t finite() const { return count - nan - plus_infinite - minus_infinite; }
};

Statistics statistics_of(const float* x, size_t count);
/// Requires a numeric dtype of at least one byte other than complex.
Statistics statistics_of(const Tensor& tensor);
/// True for what statistics_of takes.
bool has_statistics(DType dtype);
/// Whether a float tensor has an element that is NaN or infinite, or for f16 the largest number, to which the
/// platform's arithmetic saturates on overflow; false for other dtypes.
bool overflows(const Tensor& tensor);

}  // namespace cairn
