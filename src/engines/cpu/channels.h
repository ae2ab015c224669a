// Kernels that process sixteen innermost elements at a time: reductions, softmax, layer normalisation.
#pragma once

#include <algorithm>
#include <cstdint>

#include "engines/cpu/narrow.h"
#include "support/executor.h"

namespace cairn {

/// y[o, c] = sum (times `scale`) or maximum (where `scale` is -1, minimum) of x[o, :, c], whose elements have this form. `workspace`:
/// reduce_workspace() bytes.
void reduce_middle(Executor& executor, bool largest, int64_t outer, int64_t middle, int64_t c, float scale,
                   const void* x, float* y, float* workspace, Form form = Form::floats);
/// Whether many rows of few channels are reduced as fewer rows of more channels (kFolded rows in one).
inline bool folds_rows(int64_t outer, int64_t middle, int64_t c) {
  return outer == 1 && c > 1 && c < 8 && middle % 16 == 0;
}
size_t reduce_workspace(int64_t outer, int64_t middle, int64_t c);

/// Sums of integers of 8 bits less a zero point, times a number; exact before that.
struct SumOfBytes {
  static constexpr int64_t kMost = 1 << 22;  // rows, whose sums fit into 32 bits
  int64_t outer, middle, c;
  int64_t zero;
  float scale;
  bool is_signed;
};
/// y[o, c] of x[o, :, c].
void sum_bytes(Executor& executor, const SumOfBytes& sum, const void* x, float* y);

/// y[row] = sum (times `scale`) or maximum (where `scale` is -1, minimum) of x[row, :].
void reduce_rows(Executor& executor, bool largest, int64_t rows, int64_t c, float scale, const float* x, float* y);

/// Rows of so many elements of these forms. Where one has 16 bits, `scratch` has scratch_floats() for each worker.
struct FormedRows {
  int64_t rows, c;
  Form x = Form::floats, y = Form::floats;
  float* scratch = nullptr;
  bool narrow() const { return is_narrow(x) || is_narrow(y); }
  int64_t at_once() const { return std::max<int64_t>(1, 2048 / std::max<int64_t>(1, c)); }
  int64_t scratch_floats() const { return narrow() ? 2 * at_once() * c : 0; }
};
/// (x - mean) / sqrt(variance + epsilon) * scale[c] + offset[c] with mean and biased variance of each row; both null: 1 and 0.
void layer_norm(Executor& executor, const FormedRows& forms, float epsilon, const void* x, const float* scale,
                const float* offset, void* y);

/// softmax, or its logarithm, of each row; rows of -inf give NaN. y may be x.
void softmax(Executor& executor, bool log, int64_t rows, int64_t c, const float* x, float* y);

/// The same along the middle axis of x [outer, size, inner].
void softmax_middle(Executor& executor, bool log, int64_t outer, int64_t size, int64_t inner, const float* x, float* y);

}  // namespace cairn
