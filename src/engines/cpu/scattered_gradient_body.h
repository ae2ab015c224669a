// The loop of scattered_gradient.cpp, included once for each instruction set, each time in another namespace.
#include "engines/cpu/vector_types.h"

/// Adds the products of one row of pixels to the image, whose row and column `image` is where the first pixel's taps begin.
void add_pixels(const ScatteredGradient& s, const float* products, float* image) {
  for (int64_t pixel = 0; pixel < s.ow; ++pixel, image += s.stride_w * s.ic)
    for (int64_t ky = 0; ky < s.kh; ++ky) {
      float* const to = image + ky * s.dilation_h * s.pitch;
      for (int64_t i = 0; i < s.segment; i += kFloats, products += kFloats)
        store(to + i, load(to + i) + load(products));
    }
}
