#include "engines/cpu/channels.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "engines/cpu/isa.h"
#include "engines/cpu/vector_math.h"

namespace cairn {

namespace {

constexpr int kBlock = 4;  // output columns computed together

struct Range {
  int64_t first, last;
};

// Taps [first, last) of a window at `start` that fall inside [0, size).
CAIRN_INLINE Range inside(int64_t start, int64_t dilation, int64_t taps, int64_t size) {
  int64_t first = start < 0 ? (-start + dilation - 1) / dilation : 0;
  int64_t last = start >= size ? 0 : std::min(taps, (size - start + dilation - 1) / dilation);
  return {std::min(first, taps), std::max(first, last)};
}

CAIRN_INLINE Floats activate(Floats value, const Activation& activation) {
  if (activation.kind == Activation::Kind::none) return value;
  value = larger(value, spread(activation.kind == Activation::Kind::clip ? activation.low : 0.f));
  return activation.kind == Activation::Kind::clip ? smaller(value, spread(activation.high)) : value;
}

CAIRN_INLINE float activate(float value, const Activation& activation) {
  if (activation.kind == Activation::Kind::none || value != value) return value;
  value = std::max(value, activation.kind == Activation::Kind::clip ? activation.low : 0.f);
  return activation.kind == Activation::Kind::clip ? std::min(value, activation.high) : value;
}

// Output columns [x0, x0 + kBlock) whose windows lie inside the row, sixteen channels.
CAIRN_INLINE void depthwise_block(const SlidingWindow& s, const float* row, const float* kernel, Range ky, Floats sum[kBlock]) {
  for (int64_t y = ky.first; y < ky.last; ++y) {
    const float* taps = row + y * s.dilation_h * s.w * s.c;
    const float* weights = kernel + y * s.kw * s.c;
    for (int64_t k = 0; k < s.kw; ++k) {
      Floats weight = load(weights + k * s.c);
      for (int i = 0; i < kBlock; ++i) sum[i] += weight * load(taps + (i * s.stride_w + k * s.dilation_w) * s.c);
    }
  }
}

CAIRN_VECTORISED void depthwise_row(const SlidingWindow& s, const float* x, const float* kernel, const float* bias, const float* residual,
                                    const Activation& activation, float* y, int64_t row) {
  int64_t image = row / s.oh, top = row % s.oh * s.stride_h - s.pad_top;
  const float* source = x + (image * s.h + top) * s.w * s.c;
  int64_t out = row * s.ow * s.c;
  Range ky = inside(top, s.dilation_h, s.kh, s.h);
  int64_t reach = (s.kw - 1) * s.dilation_w;
  int64_t c = 0;
  for (; c + kFloats <= s.c; c += kFloats) {
    Floats start = bias ? load(bias + c) : Floats{};
    for (int64_t column = 0; column < s.ow;) {
      int64_t left = column * s.stride_w - s.pad_left;
      int64_t at = out + column * s.c + c;
      if (left >= 0 && column + kBlock <= s.ow && left + (kBlock - 1) * s.stride_w + reach < s.w) {
        Floats sum[kBlock] = {start, start, start, start};
        depthwise_block(s, source + left * s.c + c, kernel + c, ky, sum);
        for (int i = 0; i < kBlock; ++i, at += s.c) store(y + at, activate(residual ? sum[i] + load(residual + at) : sum[i], activation));
        column += kBlock;
        continue;
      }
      Range kx = inside(left, s.dilation_w, s.kw, s.w);
      Floats sum = start;
      for (int64_t a = ky.first; a < ky.last; ++a)
        for (int64_t b = kx.first; b < kx.last; ++b)
          sum += load(kernel + (a * s.kw + b) * s.c + c) * load(source + (a * s.dilation_h * s.w + left + b * s.dilation_w) * s.c + c);
      store(y + at, activate(residual ? sum + load(residual + at) : sum, activation));
      ++column;
    }
  }
  for (; c < s.c; ++c)
    for (int64_t column = 0; column < s.ow; ++column) {
      int64_t left = column * s.stride_w - s.pad_left, at = out + column * s.c + c;
      Range kx = inside(left, s.dilation_w, s.kw, s.w);
      float sum = bias ? bias[c] : 0.f;
      for (int64_t a = ky.first; a < ky.last; ++a)
        for (int64_t b = kx.first; b < kx.last; ++b)
          sum += kernel[(a * s.kw + b) * s.c + c] * source[(a * s.dilation_h * s.w + left + b * s.dilation_w) * s.c + c];
      y[at] = activate(residual ? sum + residual[at] : sum, activation);
    }
}

CAIRN_VECTORISED void pool_row(const SlidingWindow& s, PoolKind kind, const float* x, float* y, int64_t row) {
  int64_t image = row / s.oh, top = row % s.oh * s.stride_h - s.pad_top;
  const float* source = x + (image * s.h + top) * s.w * s.c;
  Range ky = inside(top, s.dilation_h, s.kh, s.h);
  bool largest = kind == PoolKind::max;
  float start = largest ? -std::numeric_limits<float>::infinity() : 0.f;
  for (int64_t column = 0; column < s.ow; ++column) {
    int64_t left = column * s.stride_w - s.pad_left;
    Range kx = inside(left, s.dilation_w, s.kw, s.w);
    int64_t taps = kind == PoolKind::average_with_padding ? s.kh * s.kw : (ky.last - ky.first) * (kx.last - kx.first);
    float divisor = largest ? 1.f : static_cast<float>(taps);
    float* to = y + (row * s.ow + column) * s.c;
    int64_t c = 0;
    for (; c + kFloats <= s.c; c += kFloats) {
      Floats value = spread(start);
      for (int64_t a = ky.first; a < ky.last; ++a)
        for (int64_t b = kx.first; b < kx.last; ++b) {
          Floats tap = load(source + (a * s.dilation_h * s.w + left + b * s.dilation_w) * s.c + c);
          value = largest ? larger(value, tap) : value + tap;
        }
      store(to + c, largest ? value : value / divisor);
    }
    for (; c < s.c; ++c) {
      float value = start;
      for (int64_t a = ky.first; a < ky.last; ++a)
        for (int64_t b = kx.first; b < kx.last; ++b) {
          float tap = source[(a * s.dilation_h * s.w + left + b * s.dilation_w) * s.c + c];
          value = !largest ? value + tap : value > tap || value != value ? value : tap;
        }
      to[c] = largest ? value : value / divisor;
    }
  }
}

// Channels [first, last) of one outer index; four partial sums in a fixed order.
CAIRN_VECTORISED void reduce_channels(bool largest, int64_t middle, int64_t c, float scale, const float* x, float* y, int64_t first,
                                      int64_t last) {
  int64_t at = first;
  for (; at + kFloats <= last; at += kFloats) {
    Floats part[4];
    for (auto& each : part) each = largest ? spread(-std::numeric_limits<float>::infinity()) : Floats{};
    for (int64_t i = 0; i < middle; ++i) {
      Floats value = load(x + i * c + at);
      part[i & 3] = largest ? larger(part[i & 3], value) : part[i & 3] + value;
    }
    Floats all = largest ? larger(larger(part[0], part[1]), larger(part[2], part[3])) : (part[0] + part[1]) + (part[2] + part[3]);
    store(y + at, largest ? all : all * scale);
  }
  for (; at < last; ++at) {
    float part[4];
    for (auto& each : part) each = largest ? -std::numeric_limits<float>::infinity() : 0.f;
    for (int64_t i = 0; i < middle; ++i) {
      float value = x[i * c + at], &sum = part[i & 3];
      sum = !largest ? sum + value : sum > value || sum != sum ? sum : value;
    }
    if (largest) {
      float all = part[0];
      for (float each : part) all = all > each || all != all ? all : each;
      y[at] = all;
    } else {
      y[at] = ((part[0] + part[1]) + (part[2] + part[3])) * scale;
    }
  }
}

CAIRN_VECTORISED void softmax_row(int64_t c, const float* x, float* y) {
  float most = -std::numeric_limits<float>::infinity();
  for (int64_t i = 0; i < c; ++i) most = x[i] > most || x[i] != x[i] ? x[i] : most;
  float total = 0;
  int64_t i = 0;
  Floats sum{};
  for (; i + kFloats <= c; i += kFloats) {
    Floats value = exp_of(load(x + i) - most);
    sum += value;
    store(y + i, value);
  }
  for (int lane = 0; lane < kFloats; ++lane) total += sum[lane];
  if (i < c) {
    float tail[kFloats];
    for (int lane = 0; lane < kFloats; ++lane) tail[lane] = i + lane < c ? x[i + lane] - most : 0.f;
    store(tail, exp_of(load(tail)));
    for (int lane = 0; i + lane < c; ++lane) total += y[i + lane] = tail[lane];
  }
  for (i = 0; i < c; ++i) y[i] /= total;
}

// Chunks of rows with enough work each; returns how many rows a chunk has.
int64_t rows_per_chunk(int64_t rows, int64_t work_per_row, int width) {
  constexpr int64_t kLeastWork = 16 << 10;  // operations below which a chunk is not worth handing out
  int64_t least = std::max<int64_t>(1, kLeastWork / std::max<int64_t>(1, work_per_row));
  return std::max(least, (rows + width * 8 - 1) / (width * 8));
}

template <class Row>
void for_rows(Executor& executor, int64_t rows, int64_t work_per_row, Row&& row) {
  int64_t each = rows_per_chunk(rows, work_per_row, executor.width());
  auto chunk = [&](int index, int) {
    for (int64_t i = index * each; i < std::min(rows, (index + 1) * each); ++i) row(i);
  };
  executor.run(static_cast<int>((rows + each - 1) / each), chunk);
}

}  // namespace

void depthwise(Executor& executor, const SlidingWindow& spec, const float* x, const float* kernel, const float* bias,
               const float* residual, const Activation& activation, float* y) {
  for_rows(executor, spec.n * spec.oh, spec.ow * spec.c * spec.kh * spec.kw,
           [&](int64_t row) { depthwise_row(spec, x, kernel, bias, residual, activation, y, row); });
}

void pool(Executor& executor, const SlidingWindow& spec, PoolKind kind, const float* x, float* y) {
  for_rows(executor, spec.n * spec.oh, spec.ow * spec.c * spec.kh * spec.kw, [&](int64_t row) { pool_row(spec, kind, x, y, row); });
}

void reduce_middle(Executor& executor, bool largest, int64_t outer, int64_t middle, int64_t c, float scale, const float* x, float* y) {
  constexpr int64_t kSlice = 128;  // channels a row of work; fixed, so that bits never depend on the workers
  int64_t slices = (c + kSlice - 1) / kSlice;
  for_rows(executor, outer * slices, middle * kSlice, [&](int64_t row) {
    int64_t i = row / slices, first = row % slices * kSlice;
    reduce_channels(largest, middle, c, scale, x + i * middle * c, y + i * c, first, std::min(c, first + kSlice));
  });
}

void softmax(Executor& executor, int64_t rows, int64_t c, const float* x, float* y) {
  for_rows(executor, rows, c * 8, [&](int64_t row) { softmax_row(c, x + row * c, y + row * c); });
}

}  // namespace cairn
