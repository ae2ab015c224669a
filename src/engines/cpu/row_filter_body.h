// The loops of row_filter.cpp, included once for each instruction set, each time in another namespace.
#include "engines/cpu/vector_types.h"

/// Narrows [first, last) to the taps along one dim of which `size` results read the image, at `at` by tap 0.
CAIRN_INLINE void keep_inside(int64_t at, int64_t size, int64_t dilation, int64_t in, int64_t& first, int64_t& last) {
  while (first < last && at + first * dilation + size <= 0) ++first;
  while (first < last && at + (last - 1) * dilation >= in) --last;
}

/// `kRows` x `kVectors` vectors of results from float `at` of a row on; `x` is the window of the first one, whose tap 0 lies in row
/// `y` of the image. Lane i of vector v has channel phases[v] + i.
template <int kRows, int kVectors>
CAIRN_INLINE void filter_block(const RowFilter& f, int64_t y, int64_t at, const float* x, const float* weights,
                               const int64_t* phases, Floats (&sums)[kRows][kVectors]) {
  const int64_t pixel = at / f.channels, pixels = (at + kVectors * kFloats - 1) / f.channels + 1 - pixel;
  int64_t ky = 0, end_y = f.kh, first_x = 0, end_x = f.kw;
  keep_inside(y, kRows, f.dilation_h, f.h, ky, end_y);
  keep_inside(pixel - f.pad_left, pixels, f.dilation_w, f.w, first_x, end_x);
  for (; ky < end_y; ++ky)
    for (int64_t kx = first_x; kx < end_x; ++kx) {
      const float* from = x + ky * f.dilation_h * f.pitch() + kx * f.dilation_w * f.channels;
      const float* of_tap = weights + (ky * f.kw + kx) * f.period();
      for (int v = 0; v < kVectors; ++v) {
        const Floats weight = load(of_tap + phases[v]);
        for (int r = 0; r < kRows; ++r) sums[r][v] += weight * load(from + r * f.pitch() + v * kFloats);
      }
    }
}

template <int kRows>
void filter_some_rows(const RowFilter& f, int64_t top, const float* x, const float* weights, const float* bias,
                      float* y) {
  constexpr int kVectors = 2;
  const int64_t row = f.ow * f.channels, step = kVectors * kFloats;
  for (int64_t at = 0; at < row; at += step) {
    const int64_t phases[kVectors] = {at % f.channels, (at + kFloats) % f.channels};
    Floats sums[kRows][kVectors] = {};
    filter_block<kRows, kVectors>(f, top, at, x + at, weights, phases, sums);
    for (int r = 0; r < kRows; ++r)
      for (int v = 0; v < kVectors; ++v) {
        const int64_t first = at + v * kFloats, count = row - first;
        if (count <= 0) continue;
        Floats made = bias ? sums[r][v] + load(bias + phases[v]) : sums[r][v];
        made = choose(made < f.low, spread(f.low), choose(made > f.high, spread(f.high), made));
        float* const to = y + r * row + first;
        count >= kFloats ? store(to, made) : store_first(to, count, made);
      }
  }
}

/// Rows of results, from rows of x with borders, of which tap 0 of the first reads row `top` of the image.
void filter_rows(const RowFilter& f, int64_t top, int64_t rows, const float* x, const float* weights, const float* bias,
                 float* y) {
  int64_t r = 0;
  const int64_t row = f.ow * f.channels;
  for (; r + 4 <= rows; r += 4) filter_some_rows<4>(f, top + r, x + r * f.pitch(), weights, bias, y + r * row);
  for (; r < rows; ++r) filter_some_rows<1>(f, top + r, x + r * f.pitch(), weights, bias, y + r * row);
}

/// Rows of pixels, whose `filters` adjacent channels are added up, go to pixels that lie `step` and rows that lie `pitch` floats apart.
void store_phase(int64_t rows, int64_t columns, int64_t channels, int64_t filters, const float* from, float* y,
                 int64_t step, int64_t pitch) {
  for (int64_t r = 0; r < rows; ++r, y += pitch)
    for (int64_t i = 0; i < columns; ++i, from += channels * filters) {
      float* const to = y + i * step;
      if (filters == 1) {
        for (int64_t c = 0; c < channels; c += kFloats) put(to + c, channels - c, take(from + c, channels - c));
        continue;
      }
      for (int64_t c = 0; c < channels; ++c) {
        float sum = 0;
        for (int64_t k = 0; k < filters; ++k) sum += from[c * filters + k];
        to[c] = sum;
      }
    }
}

/// Sums of products of some taps from `tap` on, in the lanes of one vector of each `cycle` floats.
template <int kTaps>
void sum_taps(const RowFilter& f, int64_t rows, int64_t tap, int64_t lane, int64_t cycle, const float* x,
              const float* dy, float* sums, int64_t width) {
  Floats all[kTaps];
  const float* from[kTaps];
  for (int t = 0; t < kTaps; ++t) {
    all[t] = load(sums + t * width);
    from[t] = x + (tap + t) / f.kw * f.dilation_h * f.pitch() + f.place((tap + t) % f.kw);
  }
  for (int64_t r = 0; r < rows; ++r)
    for (int64_t at = lane; at < f.ow * f.channels; at += cycle) {
      const Floats gradient = load(dy + r * f.gradient_pitch() + at);
      for (int t = 0; t < kTaps; ++t) all[t] += gradient * load(from[t] + r * f.stride_h * f.pitch() + at);
    }
  for (int t = 0; t < kTaps; ++t) store(sums + t * width, all[t]);
}

/// sums[taps][width] += products of rows of x with borders and rows of dy, each lane that of channel lane % channels. `width`: the
/// cycle in whole vectors; what lies behind the cycle is nothing.
void sum_products(const RowFilter& f, int64_t rows, int64_t cycle, const float* x, const float* dy, float* sums) {
  constexpr int64_t kMost = 9;  // sums that hide the latency of a multiply-add, and fit the registers
  constexpr decltype(&sum_taps<1>) kSums[] = {sum_taps<1>, sum_taps<2>, sum_taps<3>, sum_taps<4>, sum_taps<5>,
                                              sum_taps<6>, sum_taps<7>, sum_taps<8>, sum_taps<9>};
  const int64_t width = (cycle + kFloats - 1) / kFloats * kFloats, taps = f.taps(), groups = (taps + kMost - 1) / kMost;
  for (int64_t lane = 0; lane < cycle; lane += kFloats)
    for (int64_t group = 0; group < groups; ++group) {
      const int64_t tap = taps * group / groups, count = taps * (group + 1) / groups - tap;
      kSums[count - 1](f, rows, tap, lane, cycle, x, dy, sums + tap * width + lane, width);
    }
}
