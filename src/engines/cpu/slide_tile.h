// A tile of a sliding window, which generated code (window.cpp) or the loop in plain C++ computes.
#pragma once

#include "engines/cpu/window.h"

namespace cairn {

struct SlideTap {
  int64_t x_bytes;  // from the tile's first tap
  uint32_t pixels;  // bit i: the tap applies to pixel i
};

/// One tile of pixels; everything except the channels is constant in the generated code.
struct SlideTile {
  std::vector<int64_t> pixel_bytes;  // displacement of each pixel in x
  std::vector<SlideTap> taps;
  std::vector<float> divisors;  // mean: per pixel
};

/// In plain C++, for processors without AVX2: whole vectors of 8 channels, then the remaining channels if `rest` is set.
void slide_plainly(const SlideSpec& spec, const SlideTile& tile, const float* x, const float* packed, float* y,
                   const float* residual, int64_t vectors, int64_t rest, const float* bias);

}  // namespace cairn
