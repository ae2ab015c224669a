// Where the taps of a row of windows are: what does not depend on the column is computed once.
#pragma once

#include <array>

#include "engines/cpu/window.h"

namespace cairn {

class WindowRow {
 public:
  static constexpr int64_t kMostTaps = 64;

  /// Requires at most kMostTaps taps.
  WindowRow(const SlideSpec& s, int64_t volume, int64_t slice, int64_t line) : stride_(s.stride_w), width_(s.w) {
    for (int64_t tap = 0; tap < s.taps(); ++tap) {
      const int64_t z = slice * s.stride_d + tap / (s.kh * s.kw) * s.dilation_d - s.pad_front;
      const int64_t y = line * s.stride_h + tap / s.kw % s.kh * s.dilation_h - s.pad_top;
      const bool inside = z >= 0 && z < s.d && y >= 0 && y < s.h;
      const auto at = static_cast<size_t>(tap);
      rows_[at] = inside ? ((volume * s.d + z) * s.h + y) * s.w : -1;
      columns_[at] = tap % s.kw * s.dilation_w - s.pad_left;
    }
  }

  /// The pixel of x under a tap of the window at this column, or -1 outside the image.
  int64_t pixel(int64_t tap, int64_t column) const {
    const int64_t x = column * stride_ + columns_[static_cast<size_t>(tap)], row = rows_[static_cast<size_t>(tap)];
    return row < 0 || x < 0 || x >= width_ ? -1 : row + x;
  }

 private:
  int64_t stride_, width_;
  std::array<int64_t, kMostTaps> rows_, columns_;
};

}  // namespace cairn
