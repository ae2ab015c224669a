// Pixels for gradients of kernels: which of them taps reach, and packing ranges of their channels, one behind the other.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>

#include "engines/cpu/narrow.h"

namespace cairn {

inline int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }

/// Along one dim: the outputs [first, last) for which a tap is inside the image, and its input position for the first.
struct Reach {
  int64_t first, last, at;
};
inline Reach reach_of(int64_t first, int64_t last, int64_t in, int64_t stride, int64_t shift) {
  const int64_t low = shift < 0 ? ceil_div(-shift, stride) : 0;
  const int64_t high = in - shift <= 0 ? 0 : ceil_div(in - shift, stride);
  first = std::max(first, low), last = std::max(first, std::min(last, high));
  return {first, last, first * stride + shift};
}

struct Range {
  int64_t first = 0, last = 0;
  int64_t size() const { return last - first; }
};
/// The i-th of `parts` nearly equal parts of [0, count), the larger ones first.
inline Range part_of(int64_t count, int64_t parts, int64_t i) {
  const int64_t each = count / parts, more = count % parts;
  return {i * each + std::min(i, more), (i + 1) * each + std::min(i + 1, more)};
}

inline const void* element_at(Form form, const void* data, int64_t at) {
  return static_cast<const char*>(data) + at * bytes_of(form);
}

/// Packs `count` pixels that are `step` elements apart, as floats: range i of the channels of pixel p goes to
/// to[i * range_floats + p * pitch].
void pack_pixels(Form form, int64_t count, const void* from, int64_t step, std::span<const Range> channels,
                 int64_t range_floats, int64_t pitch, float* to);
/// The same of bf16: each element is one of a pixel and, `step / 2` further, that of the next pixel.
void pack_pairs_of_pixels(int64_t count, const uint16_t* from, int64_t step, std::span<const Range> channels,
                          int64_t range_floats, int64_t pitch, float* to);

}  // namespace cairn
