// Loops that compare and choose, sixteen floats at a time, compiled for each instruction set: element-wise operations on
// tiles, reductions, softmax and its like on rows.
#pragma once

#include <cstdint>

namespace cairn {

inline constexpr int kLanes = 16;
inline constexpr int64_t kElementTile = 256;

// clang-format off
enum class ElementOp : uint8_t {
  add, sub, mul, div, maximum, minimum, squared_difference,
  equal, not_equal, less, less_equal, greater, greater_equal, logical_and, logical_or, logical_xor, logical_not,
  select, neg, abs, square, sqrt, rsqrt, reciprocal, exp, tanh, sigmoid, relu, clip, leaky_relu, floor, ceil, copy,
  erf, log, log1p, expm1, softplus, gelu, gelu_by_tanh, sign, round, elu,
  first_one_by_one, sin = first_one_by_one, cos, pow, mod, truncate_mod, floor_div,
};
// clang-format on

struct VectorLoops {
  /// Every operation before first_one_by_one on a whole tile; positions beyond its count hold whatever was there.
  void (*execute)(ElementOp op, float low, float high, const float* a, const float* b, const float* c, float* to);
  /// Channels [first, last) of x [middle, c]; four partial sums in a fixed order.
  void (*reduce_channels)(bool largest, int64_t middle, int64_t c, float scale, const float* x, float* y, int64_t first,
                          int64_t last);
  void (*reduce_row)(bool largest, int64_t c, float scale, const float* x, float* y);
  void (*layer_norm_row)(int64_t c, float epsilon, const float* x, const float* scale, const float* offset, float* y);
  void (*softmax_row)(bool log, int64_t c, const float* x, float* y);
  /// The softmax of `lanes` neighbouring columns, at most kLanes.
  void (*softmax_columns)(bool log, int64_t size, int64_t inner, int64_t lanes, const float* x, float* y);
  void (*cross_entropy_row)(int64_t c, const float* logits, const float* labels, int64_t label, float* loss,
                            float* gradient);
  /// Of x * scale + mask, in place; mask may be null.
  void (*softmax_of_scores)(int64_t count, float scale, const float* mask, float* x);
  /// to[j * to_step + i] = from[i * step + j], kLanes of each; null where that is not faster than one by one.
  void (*transpose)(const float* from, int64_t step, float* to, int64_t to_step);
};

/// Those of machine_isa().
const VectorLoops& vector_loops();

}  // namespace cairn
