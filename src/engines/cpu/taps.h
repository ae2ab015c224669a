// Which taps of a window lie inside the image.
#pragma once

#include <algorithm>
#include <cstdint>

#include "engines/cpu/window.h"

namespace cairn {

/// The part of a window inside the image along one dim.
struct Taps {
  int64_t first, last;  // taps
  int64_t at;           // position of tap 0, which may lie outside
};
inline Taps taps_of(int64_t position, int64_t size, int64_t stride, int64_t dilation, int64_t pad, int64_t in) {
  const auto taps = [&](int64_t room) {  // dividing takes longer than a window of few channels
    return room <= 0 ? 0 : dilation == 1 ? room : (room + dilation - 1) / dilation;
  };
  const int64_t start = position * stride - pad, first = taps(-start), last = taps(in - start);
  return {std::min(first, size), std::max(std::min(first, size), std::min(last, size)), start};
}

/// Calls visit(pixel of x, pixel of y, tap) for every product of one volume's convolution, or of its gradients; each stands for all
/// channels.
template <class Visit>
void each_product(const SlideSpec& s, Visit&& visit) {
  for (int64_t pixel = 0; pixel < s.out_pixels(); ++pixel) {
    const Taps slices = taps_of(pixel / (s.oh * s.ow), s.kd, s.stride_d, s.dilation_d, s.pad_front, s.d);
    const Taps rows = taps_of(pixel / s.ow % s.oh, s.kh, s.stride_h, s.dilation_h, s.pad_top, s.h);
    const Taps columns = taps_of(pixel % s.ow, s.kw, s.stride_w, s.dilation_w, s.pad_left, s.w);
    for (int64_t d = slices.first; d < slices.last; ++d)
      for (int64_t h = rows.first; h < rows.last; ++h) {
        const int64_t row = (slices.at + d * s.dilation_d) * s.h + rows.at + h * s.dilation_h;
        for (int64_t w = columns.first; w < columns.last; ++w)
          visit(row * s.w + columns.at + w * s.dilation_w, pixel, (d * s.kh + h) * s.kw + w);
      }
  }
}

}  // namespace cairn
