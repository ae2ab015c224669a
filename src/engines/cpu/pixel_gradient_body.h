// The loops of pixel_gradient.cpp, included once for each instruction set, each time in another namespace.
#include "engines/cpu/vector_types.h"

#include "engines/cpu/pixel_columns_body.h"

#if CAIRN_FLOATS > 4
typedef float Eight __attribute__((vector_size(32), aligned(4), may_alias));
/// Eight floats of a pixel and, in wide vectors, of the eighth pixel behind it; 0 where fewer than 1 or 9 pixels are left.
CAIRN_INLINE Floats pixel_channels(const float* from, [[maybe_unused]] int64_t eighth, int64_t left) {
  const Eight first = left > 0 ? *reinterpret_cast<const Eight*>(from) : Eight{};
#if CAIRN_FLOATS == 16
  const Eight second = left > 8 ? *reinterpret_cast<const Eight*>(from + eighth) : Eight{};
  return __builtin_shufflevector(first, second, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
#else
  return first;
#endif
}
#endif

/// Rows [first, first + count) of the result's gradient: to[channel][row][pixel], with 0 behind a row's pixels. Memory ends at `end`.
void spread_channels(const PixelGradient& s, const float* dy, int64_t first, int64_t count,
                     [[maybe_unused]] const float* end, float* to) {
  const int64_t plane = s.rows * s.step;
  for (int64_t row = 0; row < count; ++row)
    for (int64_t pixel = 0; pixel < s.step; pixel += kFloats) {
      const float* from = dy + ((first + row) * s.ow + pixel) * s.oc;
      float* const place = to + row * s.step + pixel;
      const int64_t pixels = std::min<int64_t>(kFloats, s.ow - pixel);
#if CAIRN_FLOATS > 4
      if (end - from >= (kFloats - 1) * s.oc + 8) {
        Floats rows[8];
#pragma GCC unroll 8
        for (int i = 0; i < 8; ++i) rows[i] = pixel_channels(from + i * s.oc, 8 * s.oc, pixels - i);
        exchange_of_eight<1>(rows);
        exchange_of_eight<2>(rows);
        exchange_of_eight<4>(rows);
#pragma GCC unroll 8
        for (int c = 0; c < 8; ++c)
          if (c < s.made) store(place + c * plane, rows[c]);
        continue;
      }
#endif
      for (int64_t c = 0; c < s.made; ++c)
        for (int64_t i = 0; i < kFloats; ++i) place[c * plane + i] = i < pixels && c < s.oc ? from[i * s.oc + c] : 0.f;
    }
}

/// sums[tap][channel] += the products of rows of x, from the places of each tap on, with those of the gradient.
template <int kChannels, int kTaps>
void add_taps(const PixelGradient& s, int64_t rows, const float* x, const int64_t* places, const float* dy,
              float* sums) {
  Floats all[kTaps][kChannels];
#pragma GCC unroll 8
  for (int t = 0; t < kTaps; ++t)
#pragma GCC unroll 8
    for (int c = 0; c < kChannels; ++c) all[t][c] = load(sums + (t * kChannels + c) * kFloats);
  const float* from[kTaps];
  for (int t = 0; t < kTaps; ++t) from[t] = x + places[t];
  for (int64_t row = 0; row < rows; ++row)
    for (int64_t pixel = 0; pixel < s.step; pixel += kFloats) {
      Floats gradient[kChannels];
#pragma GCC unroll 8
      for (int c = 0; c < kChannels; ++c) gradient[c] = load(dy + (c * s.rows + row) * s.step + pixel);
#pragma GCC unroll 8
      for (int t = 0; t < kTaps; ++t) {
        const Floats pixels = load(from[t] + row * s.stride_h * s.row + pixel);
#pragma GCC unroll 8
        for (int c = 0; c < kChannels; ++c) all[t][c] += pixels * gradient[c];
      }
    }
#pragma GCC unroll 8
  for (int t = 0; t < kTaps; ++t)
#pragma GCC unroll 8
    for (int c = 0; c < kChannels; ++c) store(sums + (t * kChannels + c) * kFloats, all[t][c]);
}

template <int kChannels>
void add_all_taps(const PixelGradient& s, int64_t rows, const float* x, const float* dy, float* sums) {
  constexpr int kRegisters = kFloats == 16 ? 31 : 15, kMost = (kRegisters - 1 - kChannels) / kChannels;
  constexpr int kTaps = kMost < 1 ? 1 : kMost > 6 ? 6 : kMost;
  int64_t tap = 0;
  for (; tap + kTaps <= s.taps(); tap += kTaps)
    add_taps<kChannels, kTaps>(s, rows, x, s.places.data() + tap, dy, sums + tap * kChannels * kFloats);
  for (; tap < s.taps(); ++tap)
    add_taps<kChannels, 1>(s, rows, x, s.places.data() + tap, dy, sums + tap * kChannels * kFloats);
}

/// Adds what rows [first, first + count) of an image's result contribute.
void add_band(const PixelGradient& s, int64_t first, int64_t count, const float* x, const float* dy, const float* end,
              float* columns, float* channels, float* sums) {
  spread_columns(s, x, first * s.stride_h, (count - 1) * s.stride_h + (s.kh - 1) * s.dilation_h + 1, columns);
  spread_channels(s, dy, first, count, end, channels);
  const auto add = s.made <= 2   ? add_all_taps<2>
                   : s.made <= 4 ? add_all_taps<4>
                   : s.made <= 6 ? add_all_taps<6>
                                 : add_all_taps<8>;
  add(s, count, columns, channels, sums);
}

/// gradient[tap][channel]: the sums of all lanes of `parts` times sums.
void sum_parts(const PixelGradient& s, int64_t parts, const float* sums, float* gradient) {
  for (int64_t tap = 0; tap < s.taps(); ++tap)
    for (int64_t c = 0; c < s.oc; ++c) {
      Floats all = {};
      for (int64_t part = 0; part < parts; ++part) all += load(sums + ((part * s.taps() + tap) * s.made + c) * kFloats);
      float sum = 0;
      for (int lane = 0; lane < kFloats; ++lane) sum += all[lane];
      *gradient++ = sum;
    }
}
