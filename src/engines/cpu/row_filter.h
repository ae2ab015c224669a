// Depthwise convolution without strides, and the gradients of any, over whole rows of pixels: the lanes of a vector are adjacent
// floats of a row, whatever pixels and channels they are, so that images of few channels fill them.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <vector>

#include "engines/cpu/window.h"
#include "support/executor.h"

namespace cairn {

struct RowFilter {
  int64_t n, h, w, oh, ow, channels, repeats, kh, kw, dilation_h, dilation_w, pad_top,
      pad_left;                        // repeats: of each channel of x
  int64_t stride_h = 1, stride_w = 1;  // of the gradient by the kernel alone
  float low = -std::numeric_limits<float>::infinity(), high = std::numeric_limits<float>::infinity();

  /// Of a row of x with its border, every stride_w-th column lies side by side: columns, floats with a vector behind, and floats of
  /// the row.
  int64_t columns() const { return ow + (kw - 1) * dilation_w / stride_w; }
  int64_t part() const { return columns() * channels + kBehind; }
  int64_t pitch() const { return stride_w * part(); }
  /// Where the window's column of a tap begins in such a row.
  int64_t place(int64_t kx) const {
    return kx * dilation_w % stride_w * part() + kx * dilation_w / stride_w * channels;
  }
  /// Floats of a row of dy, with a vector behind.
  int64_t gradient_pitch() const { return ow * channels + kBehind; }
  int64_t period() const { return channels + kBehind; }  // of a tap's weights, which begin anew behind the last
  int64_t taps() const { return kh * kw; }

  static constexpr int64_t kBehind = 32;
};

/// The filter that computes y, without strides, or of which row_kernel_gradient makes the gradient; nothing where there is depth.
std::optional<RowFilter> row_filter(const SlideSpec& spec);

/// Bytes for so many workers.
size_t row_filter_workspace(const RowFilter& filter, int threads);
/// y. kernel [taps, channels]; bias may be null. Needs finite weights: they are multiplied by the zeros around an image.
void filter_images(Executor& executor, const RowFilter& filter, const float* x, const float* kernel, const float* bias,
                   float* y, void* workspace);

/// The pixels of dx that lie at one place between the strides, which a filter of every few taps computes from dy.
struct PhaseFilter {
  /// Along one dim: the first pixel; the first tap, taps to the next one, and their number.
  struct Along {
    int64_t first, tap, step, count;
  };
  RowFilter filter;
  Along down, across;
};
/// All of them; none where there is depth.
std::vector<PhaseFilter> phase_filters(const SlideSpec& spec);
size_t phase_filters_workspace(const std::vector<PhaseFilter>& phases, int threads);
/// dx of `spec` from dy; bias may be null, and is where a channel has several filters. Needs finite weights.
void filter_phases(Executor& executor, const SlideSpec& spec, const std::vector<PhaseFilter>& phases, const float* dy,
                   const float* kernel, const float* bias, float* dx, void* workspace);

size_t row_kernel_gradient_workspace(const RowFilter& filter, int threads);
/// dk [taps, channels] of finite dy.
void row_kernel_gradient(Executor& executor, const RowFilter& filter, const float* x, const float* dy, float* dk,
                         void* workspace);

}  // namespace cairn
