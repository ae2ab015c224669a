#include "engines/cpu/training_loops.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "engines/cpu/call_step.h"
#include "engines/cpu/isa.h"
#include "engines/cpu/taps.h"
#include "engines/cpu/vector_loops.h"
#include "support/stop.h"
#include "support/target.h"

namespace cairn {

namespace {

constexpr int64_t kBlock = 64;  // channels whose maxima are kept at a time

/// A window's taps inside the volume: how many along each dim, the offset in x of the first, and the floats between them.
struct Window {
  int64_t slices, rows, columns;
  int64_t first, back, down, right;

  /// Calls visit(offset of the tap in x) in row-major order.
  template <class Visit>
  CAIRN_INLINE void each(Visit&& visit) const {
    int64_t row = first;
    for (int64_t d = slices, h = rows; h > 0; row += down) {
      int64_t at = row;
      for (int64_t w = columns; w > 0; --w, at += right) visit(at);
      if (--h == 0 && --d > 0) h = rows, row += back - rows * down;
    }
  }
};

// Adds one window's gradient to its first largest element, for up to kBlock channels. kApart: for up to kLanes, and writes
// zeros behind them as to its other elements (a window that overlaps another would wait for what was just stored beside
// what it reads). `gated`: if that element is above 0, as behind a relu. Plain loops: GCC lowers comparisons of vector types to
// scalars before it clones a function for each instruction set.
template <bool kApart>
CAIRN_INLINE void add_to_largest(bool gated, int64_t channels, const float* x, const float* __restrict gradient,
                                 const Window& window, float* dx) {
  const int64_t lanes = kApart ? kLanes : channels;
  float most[kApart ? kLanes : kBlock];
  int32_t winner[kApart ? kLanes : kBlock];
  int32_t tap = 0;
  window.each([&](int64_t at) __attribute__((always_inline)) {
    const float* __restrict from = x + at;
#pragma GCC unroll 1
    for (int64_t i = 0; i < lanes; ++i) {
      const bool wins = tap == 0 || most[i] < from[i];
      most[i] = wins ? from[i] : most[i];
      winner[i] = wins ? tap : winner[i];
    }
    ++tap;
  });
  if (gated)
#pragma GCC unroll 1
    for (int64_t i = 0; i < lanes; ++i) winner[i] = most[i] > 0 ? winner[i] : tap;
  if (kApart)
#pragma GCC unroll 1
    for (int64_t i = 0; i < kLanes; ++i) winner[i] = i < channels ? winner[i] : tap;
  tap = 0;
  window.each([&](int64_t at) __attribute__((always_inline)) {
    float* __restrict to = dx + at;
#pragma GCC unroll 1
    for (int64_t i = 0; i < lanes; ++i) to[i] = (kApart ? 0.f : to[i]) + (winner[i] == tap ? gradient[i] : 0.f);
    ++tap;
  });
}

// The same for a few channels, one by one.
CAIRN_INLINE void add_to_largest_of_few(bool gated, int64_t channels, const float* x, const float* gradient,
                                        const Window& window, float* dx) {
  for (int64_t i = 0; i < channels; ++i) {
    int64_t winner = window.first + i;
    float most = x[winner];
    window.each([&](int64_t at) __attribute__((always_inline)) {
      const bool wins = most < x[at + i];
      most = wins ? x[at + i] : most;
      winner = wins ? at + i : winner;
    });
    if (!gated || most > 0) dx[winner] += gradient[i];
  }
}

// Adds it to every element that equals the largest; to none when that is a NaN, which comes first.
CAIRN_INLINE void add_to_all_largest(bool gated, int64_t channels, const float* x, const float* __restrict gradient,
                                     const Window& window, float* dx) {
  float most[kBlock];
  bool first = true;
  window.each([&](int64_t at) __attribute__((always_inline)) {
    const float* __restrict from = x + at;
    for (int64_t i = 0; i < channels; ++i) most[i] = first || most[i] < from[i] ? from[i] : most[i];
    first = false;
  });
  if (gated)
    for (int64_t i = 0; i < channels; ++i) most[i] = most[i] > 0 ? most[i] : std::numeric_limits<float>::quiet_NaN();
  window.each([&](int64_t at) __attribute__((always_inline)) {
    const float* __restrict from = x + at;
    float* __restrict to = dx + at;
    for (int64_t i = 0; i < channels; ++i) to[i] += most[i] == from[i] ? gradient[i] : 0.f;
  });
}

CAIRN_INLINE void add_to_all(int64_t channels, const float* __restrict gradient, float divisor, const Window& window,
                             float* dx) {
  window.each([&](int64_t at) __attribute__((always_inline)) {
    float* __restrict to = dx + at;
    for (int64_t i = 0; i < channels; ++i) to[i] += gradient[i] / divisor;
  });
}

// The number of elements of the window inside the padded image, along one dim.
int64_t padded_taps(int64_t position, int64_t size, int64_t stride, int64_t pad, int64_t in, int64_t after) {
  return std::min(position * stride - pad + size, in + after) - (position * stride - pad);
}

// `roomy`: kLanes floats can be read and written at each tap, and windows do not overlap.
CAIRN_INLINE void add_window(const SlideSpec& s, Winners winners, int64_t channels, bool roomy, float count,
                             const float* x, const float* dy, const Window& window, float* dx) {
  if (s.work == WindowWork::mean) return add_to_all(channels, dy, count, window, dx);
  if (roomy && window.slices == 1 && window.rows == 2 && window.columns == 2)  // the usual ones, without loops
    return add_to_largest<true>(winners.gated, channels, x, dy,
                                {1, 2, 2, window.first, window.back, window.down, window.right}, dx);
  if (roomy) return add_to_largest<true>(winners.gated, channels, x, dy, window, dx);
  if (channels < kLanes && !winners.all) return add_to_largest_of_few(winners.gated, channels, x, dy, window, dx);
  for (int64_t at = 0; at < channels; at += kBlock) {
    const int64_t part = std::min(kBlock, channels - at);
    if (winners.all)
      add_to_all_largest(winners.gated, part, x + at, dy + at, window, dx + at);
    else
      add_to_largest<false>(winners.gated, part, x + at, dy + at, window, dx + at);
  }
}

constexpr int64_t kPairFloats = 2048;  // of a row of windows

// Whether windows of two by two lie side by side in an image, of so few channels that each window would leave lanes unused.
bool is_paired(const SlideSpec& s) {
  return s.d * s.od * s.kd == 1 && s.kh == 2 && s.kw == 2 && s.stride_h == 2 && s.stride_w == 2 && s.dilation_h == 1 &&
         s.dilation_w == 1 && s.pad_top == 0 && s.pad_left == 0 && 2 * s.oh <= s.h && 2 * s.ow <= s.w &&
         s.channels < kLanes && 2 * s.ow * s.channels <= kPairFloats;
}

/// Two rows of x and dx, whose windows hold pairs of pixels.
struct PairRow {
  bool gated, inside;  // inside: there is memory before and behind both rows of x
  int64_t channels, count;
  const float *x, *below, *gradient;  // gradient: of each float's window
  const int32_t* second;              // -1: a float belongs to the second pixel of its window
  float *dx, *next;
};

namespace pairs_plain {
#define CAIRN_FLOATS 4
#include "engines/cpu/paired_gradient_body.h"
#undef CAIRN_FLOATS
}  // namespace pairs_plain

CAIRN_TARGET_BEGIN("arch=x86-64-v3")
namespace pairs_avx2 {
#define CAIRN_FLOATS 8
#include "engines/cpu/paired_gradient_body.h"
#undef CAIRN_FLOATS
}  // namespace pairs_avx2
CAIRN_TARGET_END

CAIRN_TARGET_BEGIN("arch=x86-64-v4")
namespace pairs_avx512 {
#define CAIRN_FLOATS 16
#include "engines/cpu/paired_gradient_body.h"
#undef CAIRN_FLOATS
}  // namespace pairs_avx512
CAIRN_TARGET_END

// dx of an image of such windows.
void paired_gradient_of(const SlideSpec& s, bool gated, int64_t image, const float* x, const float* dy, float* dx) {
  const auto store_row =
      machine_loop(pairs_plain::store_pair_row, pairs_avx2::store_pair_row, pairs_avx512::store_pair_row);
  const int64_t row = s.w * s.channels, count = 2 * s.ow * s.channels;
  float* const end = dx + s.h * row;
  int32_t second[kPairFloats + kLanes] = {};
  for (int64_t i = s.channels; i < count; i += 2 * s.channels) std::fill_n(second + i, s.channels, -1);
  // Those of the next row are spread before this one is stored: what was just stored in pieces is slow to load.
  float windows[kPairFloats / 2 + kLanes], spread[2][kPairFloats + kLanes];
  const auto spread_row = [&](int64_t i) {
    std::copy_n(dy + i * count / 2, count / 2, windows);
    const float* from = windows;
    for (int64_t at = 0; at < count; at += 2 * s.channels, from += s.channels)
      for (const int64_t pixel :
           {at, at + s.channels})  // the next pixels take the place of what lies behind the channels
        std::memcpy(spread[i % 2] + pixel, from, kLanes * sizeof(float));
  };
  spread_row(0);
  for (int64_t i = 0; i < s.oh; ++i, x += 2 * row, dx += 2 * row) {
    if (i + 1 < s.oh) spread_row(i + 1);
    const int64_t before = image * s.h * row + 2 * i * row, behind = s.n * s.h * row - before - row - count;
    const bool inside = before >= s.channels && behind >= s.channels + kLanes;
    store_row({gated, inside, s.channels, count, x, x + row, spread[i % 2], second, dx, dx + row});
    std::fill(dx + count, dx + row, 0.f);
    std::fill(dx + row + count, dx + 2 * row, 0.f);
  }
  std::fill(dx, end, 0.f);
}

// dx of the first `channels` channels of one volume; handles all of them, which are adjacent, for each window.
CAIRN_VECTORISED(void, pool_gradient_of,
                 (const SlideSpec& s, Winners winners, int64_t channels, const float* x, const float* dy, float* dx)) {
  const bool all = channels == s.channels;
  const size_t bytes = static_cast<size_t>(all ? s.pixels() * channels : channels) * sizeof(float);
  for (int64_t i = 0; i < (all ? 1 : s.pixels()); ++i) std::memset(dx + i * s.channels, 0, bytes);
  const bool apart = s.stride_d >= s.kd && s.stride_h >= s.kh && s.stride_w >= s.kw && s.dilation_d == 1 &&
                     s.dilation_h == 1 && s.dilation_w == 1;
  const bool lanes = all && apart && !winners.all && channels <= kLanes && s.work != WindowWork::mean;
  const float* last_dy = dy + s.out_pixels() * channels - kLanes;
  Window window;
  window.right = s.dilation_w * s.channels, window.down = s.dilation_h * s.w * s.channels;
  window.back = s.dilation_d * s.h * s.w * s.channels;
  for (int64_t slice = 0; slice < s.od; ++slice) {
    const Taps slices = taps_of(slice, s.kd, s.stride_d, s.dilation_d, s.pad_front, s.d);
    const int64_t padded_slices = padded_taps(slice, s.kd, s.stride_d, s.pad_front, s.d, s.pad_back);
    window.slices = slices.last - slices.first;
    for (int64_t row = 0; row < s.oh; ++row) {
      const Taps rows = taps_of(row, s.kh, s.stride_h, s.dilation_h, s.pad_top, s.h);
      const int64_t padded = padded_slices * padded_taps(row, s.kh, s.stride_h, s.pad_top, s.h, s.pad_bottom);
      const int64_t corner = slices.at * s.h * s.w * s.channels + slices.first * window.back +
                             rows.at * s.w * s.channels + rows.first * window.down;
      window.rows = rows.last - rows.first;
      for (int64_t column = 0; column < s.ow; ++column, dy += s.channels) {
        const Taps columns = taps_of(column, s.kw, s.stride_w, s.dilation_w, s.pad_left, s.w);
        window.columns = columns.last - columns.first;
        window.first = corner + columns.at * s.channels + columns.first * window.right;
        const int64_t inside = window.slices * window.rows * window.columns;
        if (inside == 0) continue;
        const int64_t count =
            s.count_padding ? padded * padded_taps(column, s.kw, s.stride_w, s.pad_left, s.w, s.pad_right) : inside;
        // What lies behind the channels is then of the next pixels of the row, to which later windows belong, or none.
        const bool roomy =
            lanes && dy <= last_dy && (columns.at + columns.last - 1) * channels + kLanes <= s.w * channels;
        add_window(s, winners, channels, roomy, static_cast<float>(count), x, dy, window, dx);
      }
    }
  }
}

// Of `count` channels of x, each of which has `filters` results: to[i] += sum over j of a[i, j] * b[i, j].
CAIRN_VECTORISED(void, add_products, (int64_t count, int64_t filters, const float* a, const float* b, float* to)) {
  if (filters == 1) {
    for (int64_t i = 0; i < count; ++i) to[i] += a[i] * b[i];
  } else if (filters == 2) {
    for (int64_t i = 0; i < count; ++i) to[i] += a[2 * i] * b[2 * i] + a[2 * i + 1] * b[2 * i + 1];
  } else {
    for (int64_t i = 0; i < count; ++i)
      for (int64_t j = 0; j < filters; ++j) to[i] += a[i * filters + j] * b[i * filters + j];
  }
}

// to[i, j] += x[i] * dy[i, j]
CAIRN_VECTORISED(void, add_spread_products,
                 (int64_t count, int64_t filters, const float* x, const float* dy, float* to)) {
  if (filters == 2) {
    for (int64_t i = 0; i < count; ++i) to[2 * i] += x[i] * dy[2 * i], to[2 * i + 1] += x[i] * dy[2 * i + 1];
  } else {
    for (int64_t i = 0; i < count; ++i)
      for (int64_t j = 0; j < filters; ++j) to[i * filters + j] += x[i] * dy[i * filters + j];
  }
}

CAIRN_VECTORISED(bool, are_finite, (int64_t count, const float* from)) {
  int32_t others = 0;
  for (int64_t i = 0; i < count; ++i) others |= std::abs(from[i]) <= std::numeric_limits<float>::max() ? 0 : 1;
  return !others;
}

constexpr int64_t kSlice = 64;       // channels of a unit of work
constexpr int64_t kManyImages = 16;  // from so many images on, a unit of work is a whole image

}  // namespace

void cross_entropy(Executor& executor, int64_t rows, int64_t c, const float* logits, const float* labels,
                   const int64_t* wide_classes, const int32_t* classes, float* loss, float* gradient) {
  for_each(executor, rows, c * 16, [&](int64_t row) {
    const int64_t label = wide_classes ? wide_classes[row] : classes ? classes[row] : -1;
    vector_loops().cross_entropy_row(c, logits + row * c, labels ? labels + row * c : nullptr, label, loss + row,
                                     gradient + row * c);
  });
}

bool all_finite(int64_t count, const float* from) { return are_finite(count, from); }

void pool_gradient(Executor& executor, const SlideSpec& s, Winners winners, const float* x, const float* dy,
                   float* dx) {
  const int64_t slice = s.n >= kManyImages ? s.channels : kSlice, slices = (s.channels + slice - 1) / slice;
  const bool paired = s.work == WindowWork::maximum && !winners.all && is_paired(s);
  for_each(executor, s.n * slices, s.pixels() * slice, [&](int64_t i) {
    const int64_t image = i / slices, at = i % slices * slice, from = image * s.pixels() * s.channels + at;
    if (paired)
      return paired_gradient_of(s, winners.gated, image, x + from, dy + image * s.out_pixels() * s.channels, dx + from);
    pool_gradient_of(s, winners, std::min(slice, s.channels - at), x ? x + from : nullptr,
                     dy + image * s.out_pixels() * s.channels + at, dx + from);
  });
}

void depthwise_input_gradient(Executor& executor, const SlideSpec& s, const float* dy, const float* kernel, float* dx) {
  const int64_t channels = s.in_channels(), slices = (channels + kSlice - 1) / kSlice, filters = s.multiplier;
  for_each(executor, s.n * slices, s.pixels() * kSlice, [&](int64_t i) {
    const int64_t image = i / slices, at = i % slices * kSlice, count = std::min(kSlice, channels - at);
    float* to = dx + image * s.pixels() * channels + at;
    const float *from = dy + image * s.out_pixels() * s.channels + at * filters, *weights = kernel + at * filters;
    for (int64_t pixel = 0; pixel < s.pixels(); ++pixel) std::fill_n(to + pixel * channels, count, 0.f);
    each_product(s, [&](int64_t in, int64_t out, int64_t tap) {
      stop_point_after(kSlice);
      add_products(count, filters, from + out * s.channels, weights + tap * s.channels, to + in * channels);
    });
  });
}

size_t depthwise_workspace(const SlideSpec& s) {
  return static_cast<size_t>(s.n * s.taps() * s.channels) * sizeof(float);
}

void depthwise_kernel_gradient(Executor& executor, const SlideSpec& s, const float* x, const float* dy, float* dk,
                               float* workspace) {
  const int64_t channels = s.in_channels(), slices = (channels + kSlice - 1) / kSlice, filters = s.multiplier;
  const int64_t size = s.taps() * s.channels;
  for_each(executor, s.n * slices, s.out_pixels() * kSlice, [&](int64_t i) {
    const int64_t image = i / slices, at = i % slices * kSlice, count = std::min(kSlice, channels - at);
    float* to = workspace + image * size + at * filters;
    for (int64_t tap = 0; tap < s.taps(); ++tap) std::fill_n(to + tap * s.channels, count * filters, 0.f);
    const float* from = x + image * s.pixels() * channels + at;
    const float* gradient = dy + image * s.out_pixels() * s.channels + at * filters;
    each_product(s, [&](int64_t in, int64_t out, int64_t tap) {
      stop_point_after(kSlice);
      if (filters == 1)
        add_products(count, 1, from + in * channels, gradient + out * s.channels, to + tap * s.channels);
      else
        add_spread_products(count, filters, from + in * channels, gradient + out * s.channels, to + tap * s.channels);
    });
  });
  for (int64_t i = 0; i < size; ++i) {
    double sum = 0;
    for (int64_t image = 0; image < s.n; ++image) sum += static_cast<double>(workspace[image * size + i]);
    dk[i] = static_cast<float>(sum);
  }
}

}  // namespace cairn
