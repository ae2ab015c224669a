// The loops of few_channels.cpp, included once for each instruction set, each time in another namespace.
#include "engines/cpu/vector_types.h"

constexpr int kPixels = kFloats == 16 ? 8 : 4, kColumns = 2 * kFloats;

/// products[column * s.step + pixel] for the pixels of one row of the image.
void multiply_row(const FewChannels& s, const float* x, const float* weights, float* products) {
  for (int64_t next = 0; next < s.w; next += kPixels) {
    const int64_t pixel = std::min<int64_t>(next, s.w - kPixels);
    const float* from = x + pixel * s.ic;
    for (int64_t column = 0; column < s.columns; column += kColumns) {
      Floats sums[kPixels][2] = {};
      const float* row = weights + column;
      for (int64_t i = 0; i < s.ic; ++i, row += s.padded) {
        const Floats a = load(row), b = load(row + kFloats);
#pragma GCC unroll 8
        for (int p = 0; p < kPixels; ++p) {
          const Floats value = spread(from[p * s.ic + i]);
          sums[p][0] += value * a, sums[p][1] += value * b;
        }
      }
      float lanes[kPixels][kColumns];
      for (int p = 0; p < kPixels; ++p) store(lanes[p], sums[p][0]), store(lanes[p] + kFloats, sums[p][1]);
      for (int64_t c = 0; c < std::min<int64_t>(kColumns, s.columns - column); ++c)
        for (int p = 0; p < kPixels; ++p) products[(column + c) * s.step + pixel + p] = lanes[p][c];
    }
  }
}

void add_row(int64_t count, const float* from, float* __restrict to) {
  for (int64_t i = 0; i < count; ++i) to[i] += from[i];
}

/// Adds the products of row `h` of the image to the rows [first, last) of results: sums[channel][row][column].
void add_products(const FewChannels& s, int64_t h, int64_t first, int64_t last, const float* products, float* sums) {
  for (int64_t ky = 0; ky < s.kh; ++ky) {
    const int64_t row = h + s.pad_top - ky * s.dilation_h;
    if (row < first || row >= last) continue;
    for (int64_t kx = 0; kx < s.kw; ++kx) {
      const int64_t shift = kx * s.dilation_w - s.pad_left;
      const int64_t begin = std::max<int64_t>(0, -shift), end = std::min(s.ow, s.w - shift);
      for (int64_t c = 0; c < s.oc && begin < end; ++c)
        add_row(end - begin, products + ((ky * s.kw + kx) * s.oc + c) * s.step + begin + shift,
                sums + (c * (last - first) + row - first) * s.ow + begin);
    }
  }
}

/// Rows [first, last) of the results of one image.
void compute_rows(const FewChannels& s, int64_t first, int64_t last, const char* x, const float* weights,
                  const float* bias, const FewScratch& scratch, char* y) {
  const int64_t each = (last - first) * s.ow;
  float* const sums = scratch.sums;
  std::fill_n(sums, s.oc * each, 0.f);
  const int64_t end = std::min(s.h, last + (s.kh - 1) * s.dilation_h - s.pad_top);
  for (int64_t h = std::max<int64_t>(0, first - s.pad_top); h < end; ++h) {
    const char* const row = x + h * s.row() * bytes_of(s.x_form);
    if (is_narrow(s.x_form)) widen(s.x_form, s.row(), row, scratch.wide);
    multiply_row(s, is_narrow(s.x_form) ? scratch.wide : reinterpret_cast<const float*>(row), weights,
                 scratch.products);
    add_products(s, h, first, last, scratch.products, sums);
  }
  if (s.narrow.rounds_sum) round_to(s.narrow.result, s.oc * each, sums);
  char* const result = y + first * s.ow * s.oc * bytes_of(s.narrow.result);
  float* const to = s.has_narrow_result() ? scratch.made : reinterpret_cast<float*>(result);
  for (int64_t c = 0; c < s.oc; ++c)
    for (int64_t i = 0; i < each; ++i) {
      const float value = sums[c * each + i] + (bias ? bias[c] : 0.f), high = value > s.high ? s.high : value;
      to[i * s.oc + c] = high < s.low ? s.low : high;
    }
  if (s.has_narrow_result()) narrow(s.narrow.result, s.oc * each, to, result);
}
