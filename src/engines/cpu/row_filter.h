// Depthwise convolution without strides, and its gradients, over whole rows of pixels: the lanes of a vector are adjacent floats of
// a row, whatever pixels and channels they are, so that images of few channels fill them.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>

#include "engines/cpu/window.h"
#include "support/executor.h"

namespace cairn {

struct RowFilter {
  int64_t n, h, w, oh, ow, channels, repeats, kh, kw, dilation_h, dilation_w, pad_top,
      pad_left;  // repeats: of each channel of x
  float low = -std::numeric_limits<float>::infinity(), high = std::numeric_limits<float>::infinity();

  /// Floats of a row of x with its border and of a row of dy, both with a vector behind.
  int64_t pitch() const { return (ow + (kw - 1) * dilation_w) * channels + kBehind; }
  int64_t gradient_pitch() const { return ow * channels + kBehind; }
  int64_t period() const { return channels + kBehind; }  // of a tap's weights, which begin anew behind the last
  int64_t taps() const { return kh * kw; }

  static constexpr int64_t kBehind = 32;
};

/// The filter that computes y, or with `of_image` the one that computes dx from dy; nothing where there are strides or depth.
std::optional<RowFilter> row_filter(const SlideSpec& spec, bool of_image);

/// Bytes for so many workers.
size_t row_filter_workspace(const RowFilter& filter, int threads);
/// y, or dx: then `filters` adjacent channels of the result are added up. kernel [taps, channels]; bias may be null.
/// Needs finite weights: they are multiplied by the zeros around an image.
void filter_images(Executor& executor, const RowFilter& filter, bool of_image, int64_t filters, const float* x,
                   const float* kernel, const float* bias, float* y, void* workspace);

/// Floats after which the lanes of a row have the same channels again.
int64_t row_cycle(const RowFilter& filter);
size_t row_kernel_gradient_workspace(const RowFilter& filter, int threads);
/// dk [taps, channels] of finite dy.
void row_kernel_gradient(Executor& executor, const RowFilter& filter, const float* x, const float* dy, float* dk,
                         void* workspace);

}  // namespace cairn
