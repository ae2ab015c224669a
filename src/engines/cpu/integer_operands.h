// Operands of products of integers in 4-byte elements: 4 steps of k as bytes, or 2 as words of which the zero point is taken.
#pragma once

#include "engines/cpu/tile_jit.h"
#include "ir/types.h"
#include "support/executor.h"

namespace cairn {

/// Steps of k in an element.
inline int64_t steps_in(Arithmetic arithmetic) { return arithmetic == Arithmetic::bytes ? 4 : 2; }

/// Writes rows of `columns` integers of `dtype` as rows of whole elements. Bytes: i8 are moved up by 128, as unsigned_zero()
/// tells. The rest of a row is 0.
void stage_rows(Executor& executor, Arithmetic arithmetic, DType dtype, const void* from, int64_t rows, int64_t columns,
                int32_t zero, uint32_t* to);
/// Zero point of A for Arithmetic::bytes.
inline int32_t unsigned_zero(DType dtype, int32_t zero) { return dtype == kI8 ? zero + 128 : zero; }

/// A matrix of weights: element (i, o) is at data[i * row_step + o * column_step].
struct IntegerMatrix {
  DType dtype;
  const void* data = nullptr;
  int64_t rows = 0, columns = 0, row_step = 0, column_step = 0;
};

/// Packs columns [first, first + count) of `taps` matrices, one after the other in memory, as rows of `width` elements; the rest is
/// 0. Words: less zeros[o * zero_step]; bytes: u8 are moved down by 128.
void pack_integers(Arithmetic arithmetic, const IntegerMatrix& matrix, int64_t taps, int64_t first, int64_t count,
                   int64_t width, const int32_t* zeros, int64_t zero_step, uint32_t* to);

/// sums[tap * columns + o] of the weights as pack_integers() packs them as bytes.
void sum_taps(const IntegerMatrix& matrix, int64_t taps, int32_t* sums);

}  // namespace cairn
