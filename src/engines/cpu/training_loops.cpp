#include "engines/cpu/training_loops.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "engines/cpu/call_step.h"
#include "engines/cpu/isa.h"
#include "engines/cpu/vector_loops.h"

namespace cairn {

namespace {

/// The part of a window inside the image along one dim.
struct Taps {
  int64_t first, last;  // taps
  int64_t at;           // position of the first in the image
};
Taps taps_of(int64_t position, int64_t size, int64_t stride, int64_t dilation, int64_t pad, int64_t in) {
  const int64_t start = position * stride - pad;
  const int64_t first = start < 0 ? (-start + dilation - 1) / dilation : 0;
  const int64_t last = in - start <= 0 ? 0 : (in - start + dilation - 1) / dilation;
  return {std::min(first, size), std::max(std::min(first, size), std::min(last, size)), start};
}

constexpr int64_t kBlock = 64;  // channels whose maxima are kept at a time

// Adds one window's gradient to its first largest element, for up to kBlock channels. Plain loops: GCC lowers
// comparisons of vector types to scalars before it clones a function for each instruction set.
CAIRN_INLINE void add_to_largest(const SlideSpec& s, int64_t channels, const float* x, const float* __restrict gradient,
                                 const Taps& rows, const Taps& columns, float* dx) {
  float most[kBlock];
  int32_t winner[kBlock];
  const auto offset = [&](int64_t h, int64_t w) {
    return ((rows.at + h * s.dilation_h) * s.w + columns.at + w * s.dilation_w) * s.channels;
  };
  int32_t tap = 0;
  for (int64_t h = rows.first; h < rows.last; ++h)
    for (int64_t w = columns.first; w < columns.last; ++w, ++tap) {
      const float* __restrict from = x + offset(h, w);
      for (int64_t i = 0; i < channels; ++i) {
        const bool wins = tap == 0 || most[i] < from[i];
        most[i] = wins ? from[i] : most[i];
        winner[i] = wins ? tap : winner[i];
      }
    }
  tap = 0;
  for (int64_t h = rows.first; h < rows.last; ++h)
    for (int64_t w = columns.first; w < columns.last; ++w, ++tap) {
      float* __restrict to = dx + offset(h, w);
      for (int64_t i = 0; i < channels; ++i) to[i] += winner[i] == tap ? gradient[i] : 0.f;
    }
}

// The same for a few channels, one by one.
CAIRN_INLINE void add_to_largest_of_few(const SlideSpec& s, int64_t channels, const float* x, const float* gradient,
                                        const Taps& rows, const Taps& columns, float* dx) {
  const int64_t down = s.dilation_h * s.w * s.channels, right = s.dilation_w * s.channels;
  const int64_t corner = (rows.at * s.w + columns.at) * s.channels;
  for (int64_t i = 0; i < channels; ++i) {
    int64_t winner = corner + rows.first * down + columns.first * right + i;
    float most = x[winner];
    for (int64_t h = rows.first; h < rows.last; ++h)
      for (int64_t w = columns.first; w < columns.last; ++w) {
        const int64_t at = corner + h * down + w * right + i;
        const bool wins = most < x[at];
        most = wins ? x[at] : most;
        winner = wins ? at : winner;
      }
    dx[winner] += gradient[i];
  }
}

CAIRN_INLINE void add_to_all(const SlideSpec& s, int64_t channels, const float* __restrict gradient, float divisor,
                             const Taps& rows, const Taps& columns, float* dx) {
  for (int64_t h = rows.first; h < rows.last; ++h)
    for (int64_t w = columns.first; w < columns.last; ++w) {
      float* __restrict to = dx + ((rows.at + h) * s.w + columns.at + w) * s.channels;
      for (int64_t i = 0; i < channels; ++i) to[i] += gradient[i] / divisor;
    }
}

// The number of elements of the window inside the padded image, along one dim.
int64_t padded_taps(int64_t position, int64_t size, int64_t stride, int64_t pad, int64_t in, int64_t after) {
  return std::min(position * stride - pad + size, in + after) - (position * stride - pad);
}

// dx of the first `channels` channels of one image; handles all of them, which are adjacent, for each window.
CAIRN_VECTORISED void pool_gradient_of(const SlideSpec& s, int64_t channels, const float* x, const float* dy,
                                       float* dx) {
  for (int64_t i = 0; i < s.h * s.w; ++i)
    std::memset(dx + i * s.channels, 0, static_cast<size_t>(channels) * sizeof(float));
  for (int64_t y = 0; y < s.oh; ++y) {
    const Taps rows = taps_of(y, s.kh, s.stride_h, s.dilation_h, s.pad_top, s.h);
    const int64_t padded_rows = padded_taps(y, s.kh, s.stride_h, s.pad_top, s.h, s.pad_bottom);
    for (int64_t column = 0; column < s.ow; ++column) {
      const Taps columns = taps_of(column, s.kw, s.stride_w, s.dilation_w, s.pad_left, s.w);
      const float* gradient = dy + (y * s.ow + column) * s.channels;
      if (s.work == WindowWork::maximum) {
        if (channels < kLanes && rows.first < rows.last && columns.first < columns.last)
          add_to_largest_of_few(s, channels, x, gradient, rows, columns, dx);
        for (int64_t at = channels < kLanes ? channels : 0; at < channels; at += kBlock)
          add_to_largest(s, std::min(kBlock, channels - at), x + at, gradient + at, rows, columns, dx + at);
        continue;
      }
      const int64_t inside = (rows.last - rows.first) * (columns.last - columns.first);
      const int64_t padded = padded_rows * padded_taps(column, s.kw, s.stride_w, s.pad_left, s.w, s.pad_right);
      add_to_all(s, channels, gradient, static_cast<float>(s.count_padding ? padded : inside), rows, columns, dx);
    }
  }
}

// to[i] += a[i] * b[i]
CAIRN_VECTORISED void add_products(int64_t count, const float* a, const float* b, float* to) {
  for (int64_t i = 0; i < count; ++i) to[i] += a[i] * b[i];
}

// Calls visit(offset in x, offset in dy, tap) for every product of one image's depthwise convolution; each stands for
// all channels.
template <class Visit>
void each_product(const SlideSpec& s, Visit&& visit) {
  for (int64_t y = 0; y < s.oh; ++y)
    for (int64_t column = 0; column < s.ow; ++column) {
      const Taps rows = taps_of(y, s.kh, s.stride_h, s.dilation_h, s.pad_top, s.h);
      const Taps columns = taps_of(column, s.kw, s.stride_w, s.dilation_w, s.pad_left, s.w);
      for (int64_t h = rows.first; h < rows.last; ++h)
        for (int64_t w = columns.first; w < columns.last; ++w)
          visit(((rows.at + h * s.dilation_h) * s.w + columns.at + w * s.dilation_w) * s.channels,
                (y * s.ow + column) * s.channels, (h * s.kw + w) * s.channels);
    }
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

void pool_gradient(Executor& executor, const SlideSpec& s, const float* x, const float* dy, float* dx) {
  const int64_t slice = s.n >= kManyImages ? s.channels : kSlice, slices = (s.channels + slice - 1) / slice;
  for_each(executor, s.n * slices, s.h * s.w * slice, [&](int64_t i) {
    const int64_t image = i / slices, at = i % slices * slice, from = image * s.h * s.w * s.channels + at;
    pool_gradient_of(s, std::min(slice, s.channels - at), x ? x + from : nullptr,
                     dy + image * s.oh * s.ow * s.channels + at, dx + from);
  });
}

void depthwise_input_gradient(Executor& executor, const SlideSpec& s, const float* dy, const float* kernel, float* dx) {
  const int64_t slices = (s.channels + kSlice - 1) / kSlice;
  for_each(executor, s.n * slices, s.h * s.w * kSlice, [&](int64_t i) {
    const int64_t image = i / slices, at = i % slices * kSlice, count = std::min(kSlice, s.channels - at);
    float* to = dx + image * s.h * s.w * s.channels + at;
    const float* from = dy + image * s.oh * s.ow * s.channels + at;
    for (int64_t pixel = 0; pixel < s.h * s.w; ++pixel) std::fill_n(to + pixel * s.channels, count, 0.f);
    each_product(
        s, [&](int64_t in, int64_t out, int64_t tap) { add_products(count, from + out, kernel + tap + at, to + in); });
  });
}

size_t depthwise_workspace(const SlideSpec& s) {
  return static_cast<size_t>(s.n * s.kh * s.kw * s.channels) * sizeof(float);
}

void depthwise_kernel_gradient(Executor& executor, const SlideSpec& s, const float* x, const float* dy, float* dk,
                               float* workspace) {
  const int64_t slices = (s.channels + kSlice - 1) / kSlice, size = s.kh * s.kw * s.channels;
  for_each(executor, s.n * slices, s.oh * s.ow * kSlice, [&](int64_t i) {
    const int64_t image = i / slices, at = i % slices * kSlice, count = std::min(kSlice, s.channels - at);
    float* to = workspace + image * size + at;
    for (int64_t tap = 0; tap < s.kh * s.kw; ++tap) std::fill_n(to + tap * s.channels, count, 0.f);
    const float *from = x + image * s.h * s.w * s.channels + at, *gradient = dy + image * s.oh * s.ow * s.channels + at;
    each_product(
        s, [&](int64_t in, int64_t out, int64_t tap) { add_products(count, from + in, gradient + out, to + tap); });
  });
  for (int64_t i = 0; i < size; ++i) {
    double sum = 0;
    for (int64_t image = 0; image < s.n; ++image) sum += static_cast<double>(workspace[image * size + i]);
    dk[i] = static_cast<float>(sum);
  }
}

}  // namespace cairn
