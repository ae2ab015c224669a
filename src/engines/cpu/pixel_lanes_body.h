// The loops of pixel_lanes.cpp, included once for each instruction set, each time in another namespace.
#include "engines/cpu/vector_types.h"

#include "engines/cpu/vector_math.h"

#include "engines/cpu/pixel_columns_body.h"

/// sums[channel * step + pixel] of some vectors of pixels; `x` is the first row of their windows.
template <int kChannels, int kVectors>
void sum_pixels(const PixelLanes& s, const float* x, const float* weights, const float* bias, float* sums) {
  Floats all[kChannels][kVectors] = {};
  for (int64_t ky = 0; ky < s.kh; ++ky, x += s.dilation_h * s.row)
    for (int64_t k = 0; k < s.kw * s.ic; ++k, weights += kMostOutputs) {
      const float* from = x + s.places[k];
      Floats pixels[kVectors];
#pragma GCC unroll 2
      for (int v = 0; v < kVectors; ++v) pixels[v] = load(from + v * kFloats);
#pragma GCC unroll 8
      for (int c = 0; c < kChannels; ++c) {
        const Floats weight = spread(weights[c]);
#pragma GCC unroll 2
        for (int v = 0; v < kVectors; ++v) all[c][v] += weight * pixels[v];
      }
    }
#pragma GCC unroll 8
  for (int c = 0; c < kChannels; ++c)
#pragma GCC unroll 2
    for (int v = 0; v < kVectors; ++v) store(sums + c * s.step + v * kFloats, all[c][v] + spread(bias[c]));
}

template <int kChannels>
void sum_pixel_row(const PixelLanes& s, const float* x, const float* weights, const float* bias, float* sums) {
  constexpr int kPair = kFloats == 16 ? 2 : 1;  // vectors whose sums fit the registers
  int64_t at = 0;
  for (; at + kFloats < s.ow; at += kPair * kFloats) sum_pixels<kChannels, kPair>(s, x + at, weights, bias, sums + at);
  if (at < s.ow) sum_pixels<kChannels, 1>(s, x + at, weights, bias, sums + at);
}

/// The largest of each two columns of two rows, `step` floats apart.
void pool_pixel_pairs(const PixelLanes& s, const float* sums, float* to) {
  Ints even;
  for (int lane = 0; lane < kFloats; ++lane) even[lane] = 2 * lane;
  for (int64_t at = 0; at < s.made_w; at += kFloats) {
    const float *up = sums + 2 * at, *down = up + kMostOutputs * s.step;
    const Floats a = larger(load(up), load(down)), b = larger(load(up + kFloats), load(down + kFloats));
    store(to + at, larger(CAIRN_SHUFFLE(a, b, even), CAIRN_SHUFFLE(a, b, even + 1)));
  }
}

/// to[pixel * oc + c] = activation(from[c * step + pixel]).
void store_pixel_row(const PixelLanes& s, const float* from, float* to) {
  int64_t pixel = 0;
#if CAIRN_FLOATS > 4
  typedef float Eight __attribute__((vector_size(32), aligned(4), may_alias));
  for (; pixel < s.made_w; pixel += kFloats) {
    Floats rows[8];
#pragma GCC unroll 8
    for (int c = 0; c < 8; ++c) rows[c] = at_least(at_most(load(from + c * s.step + pixel), s.high), s.low);
    exchange_of_eight<1>(rows);
    exchange_of_eight<2>(rows);
    exchange_of_eight<4>(rows);
    float lanes[8][kFloats];
#pragma GCC unroll 8
    for (int i = 0; i < 8; ++i) store(lanes[i], rows[i]);
    // What is stored beyond a pixel is overwritten by the next one, but not beyond the row.
    const int64_t count = std::min<int64_t>(kFloats, s.made_w - pixel), whole = s.made_w * s.oc - 8;
    for (int64_t i = 0; i < count; ++i) {
      const float* each = &lanes[i % 8][i / 8 * 8];
      const int64_t at = (pixel + i) * s.oc;
      if (at <= whole)
        *reinterpret_cast<Eight*>(to + at) = *reinterpret_cast<const Eight*>(each);
      else
        std::copy_n(each, s.oc, to + at);
    }
  }
#endif
  for (; pixel < s.made_w; ++pixel)
    for (int64_t c = 0; c < s.oc; ++c) {
      const float value = from[c * s.step + pixel], high = value > s.high ? s.high : value;
      to[pixel * s.oc + c] = high < s.low ? s.low : high;
    }
}

/// Rows [first, last) of the results of one image, pooled if they are.
void compute_pixel_rows(const PixelLanes& s, int64_t first, int64_t last, const float* x, const float* weights,
                        const float* bias, float* columns, float* sums, float* y) {
  const int64_t rows = s.pools ? 2 : 1, step = rows * s.stride_h;
  spread_columns(s, x, first * step, s.rows_of(last - first), columns);
  float* const pooled = sums + rows * kMostOutputs * s.step;
  const auto row = s.oc <= 2   ? sum_pixel_row<2>
                   : s.oc <= 4 ? sum_pixel_row<4>
                   : s.oc <= 6 ? sum_pixel_row<6>
                               : sum_pixel_row<8>;
  for (int64_t i = 0; i < last - first; ++i) {
    for (int64_t half = 0; half < rows; ++half)
      row(s, columns + (i * step + half * s.stride_h) * s.row, weights, bias, sums + half * kMostOutputs * s.step);
    for (int64_t c = 0; s.pools && c < s.oc; ++c) pool_pixel_pairs(s, sums + c * s.step, pooled + c * s.step);
    store_pixel_row(s, s.pools ? pooled : sums, y + (first + i) * s.made_w * s.oc);
  }
}
