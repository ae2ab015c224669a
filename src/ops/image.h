// Source pixels and weights of resized images and of crops, shared by the reference kernel and the engines.
#pragma once

#include <array>
#include <cmath>

#include "ir/op_def.h"

namespace cairn {

/// For each pixel of the result along one axis: up to four taps (source positions) with their weights.
struct Sampling {
  std::vector<std::array<int64_t, 4>> taps;
  std::vector<std::array<float, 4>> weights;
  size_t count = 1;  // number of taps in use
};
/// The attributes of resize2d and of its gradient.
std::vector<AttrDef> resize_attributes();
/// The sampling of an axis of `in` pixels resized to `out`, by the attributes of resize2d.
Sampling resize_sampling(const AttributeView& attr, int64_t in, int64_t out);

/// The pixels of an axis of an image from which one pixel of a crop is computed.
struct CropTap {
  bool inside;
  int64_t before, after;
  float fraction;  // of `after`
};
/// Pixel i of `count` along an axis of a crop from low to high, where 1 is the last of the image's `size` pixels; a crop of
/// one pixel takes the middle. Not `smooth`: the nearest pixel alone.
inline CropTap crop_tap(bool smooth, float low, float high, int64_t size, int64_t count, int64_t i) {
  const auto last = static_cast<float>(size - 1);
  const float at = count <= 1
                       ? 0.5f * (low + high) * last
                       : low * last + static_cast<float>(i) * ((high - low) * last / static_cast<float>(count - 1));
  if (!(at >= 0 && at <= last)) return {false, 0, 0, 0};
  if (!smooth) return {true, static_cast<int64_t>(std::round(at)), static_cast<int64_t>(std::round(at)), 0};
  const float floor = std::floor(at);
  return {true, static_cast<int64_t>(floor), static_cast<int64_t>(std::ceil(at)), at - floor};
}

}  // namespace cairn
