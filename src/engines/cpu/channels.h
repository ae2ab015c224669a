// Kernels that walk NHWC tensors sixteen channels at a time: depthwise convolution, pooling, spatial reductions, softmax.
#pragma once

#include <cstdint>

#include "engines/cpu/tile_jit.h"
#include "support/executor.h"

namespace cairn {

/// A window that slides over x [n, h, w, c] to y [n, oh, ow, c].
struct SlidingWindow {
  int64_t n = 1, h = 1, w = 1, c = 1, oh = 1, ow = 1;
  int64_t kh = 1, kw = 1;
  int64_t stride_h = 1, stride_w = 1, dilation_h = 1, dilation_w = 1;
  int64_t pad_top = 0, pad_left = 0;
};

/// kernel [kh, kw, c], bias [c] or null; residual like y or null.
void depthwise(Executor& executor, const SlidingWindow& spec, const float* x, const float* kernel, const float* bias,
               const float* residual, const Activation& activation, float* y);

enum class PoolKind : uint8_t { max, average, average_with_padding };
/// Taps in the padding do not count, except as zeros in average_with_padding. A window without taps gives -inf or NaN.
void pool(Executor& executor, const SlidingWindow& spec, PoolKind kind, const float* x, float* y);

/// y[o, c] = sum (times `scale`) or largest of x[o, :, c].
void reduce_middle(Executor& executor, bool largest, int64_t outer, int64_t middle, int64_t c, float scale, const float* x, float* y);

/// Along the last axis; rows of -inf give NaN.
void softmax(Executor& executor, int64_t rows, int64_t c, const float* x, float* y);

}  // namespace cairn
