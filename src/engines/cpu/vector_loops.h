// Loops with comparisons and selections, a register of floats at a time, compiled for each instruction set: element-wise
// operations on tiles, reductions, softmax and similar functions of rows.
#pragma once

#include <cstdint>

namespace cairn {

inline constexpr int kLanes = 16;
inline constexpr int64_t kElementTile = 256;
inline constexpr int64_t kMostInterleaved = 4;

/// Instructions of element-wise programs.
enum class ElementOp : uint8_t {
#define CAIRN_VECTOR(name, instruction, f32) instruction,
#include "engines/cpu/element_table.h"
  count
};

/// Angles that vector code reduces; sine, cosine and tangent of larger ones are computed one by one, as the gamma function's
/// logarithm and its derivative at and below 0 are, and remainders of divisions whose quotient has more digits than a float. The
/// second operand of an operation of two is where the result goes; its first is NaN where it is not called.
inline constexpr float kMostAngle = 12000.f;
bool is_one_by_one(ElementOp op, float x);
float one_by_one(ElementOp op, float x, float y);

struct VectorLoops {
  /// Executes any operation on a whole tile; positions beyond its count have arbitrary content.
  void (*execute)(ElementOp op, float low, float high, const float* a, const float* b, const float* c, float* to);
  /// Reduces channels [first, last) of x [middle, c] with four partial sums in a fixed order; `scale` of the largest: 1, or -1 for
  /// the smallest.
  void (*reduce_channels)(bool largest, int64_t middle, int64_t c, float scale, const float* x, float* y, int64_t first,
                          int64_t last);
  void (*reduce_rows)(bool largest, int64_t rows, int64_t c, float scale, const float* x, float* y);
  /// scale and offset may both be null.
  void (*layer_norm_row)(int64_t c, float epsilon, const float* x, const float* scale, const float* offset, float* y);
  void (*softmax_row)(bool log, int64_t c, const float* x, float* y);
  /// The softmax of `lanes` adjacent columns, at most kLanes.
  void (*softmax_columns)(bool log, int64_t size, int64_t inner, int64_t lanes, const float* x, float* y);
  void (*cross_entropy_row)(int64_t c, const float* logits, const float* labels, int64_t label, float* loss,
                            float* gradient);
  /// The softmax of x * scale + mask, in place; mask may be null.
  void (*softmax_of_scores)(int64_t count, float scale, const float* mask, float* x);
  /// to[row * columns + i] = from[row] for i < columns, of items of `width` floats: 1, 2 or 4.
  void (*spread_rows)(int64_t rows, int64_t columns, int64_t width, const float* from, float* to);
  /// to[row * columns + i] = from[row * step + i] for i < columns.
  void (*copy_rows)(int64_t rows, int64_t columns, const float* from, int64_t step, float* to);
  /// to[row * columns + i] = from[offsets[row] + i] for i < columns.
  void (*copy_rows_at)(int64_t rows, int64_t columns, const float* from, const int64_t* offsets, float* to);
  /// Of each of `lanes` adjacent columns, at most kLanes, the place of its first largest number, or smallest; 0 where none is
  /// beyond the least (most) finite one.
  void (*arg_columns)(bool most, int64_t size, int64_t inner, int64_t lanes, const float* x, int32_t* places);
  /// The same of a row.
  int64_t (*arg_row)(bool most, int64_t c, const float* x);
  /// to[i] = from[places[i]], places below `size` that never fall, with kLanes more behind the last.
  void (*pick)(int64_t count, const int32_t* places, const float* from, int64_t size, float* to);
  /// to[i * columns + k] = from[k * step + i] for up to kMostInterleaved columns.
  void (*interleave)(int64_t count, int64_t columns, const float* from, int64_t step, float* to);
  /// Toward zero; what is too large or too small as the last number there is, NaN as 0.
  void (*truncate)(int64_t count, const float* from, int32_t* to);
  /// to[i] = from[2 * i].
  void (*every_second)(int64_t count, const float* from, float* to);
  /// to[j * to_step + i] = from[i * step + j] for i, j < kLanes; null when that is not faster than a scalar loop.
  void (*transpose)(const float* from, int64_t step, float* to, int64_t to_step);
};

/// The loops compiled for machine_isa().
const VectorLoops& vector_loops();

}  // namespace cairn
