// Source pixels and weights of resized images, shared by the reference kernel and the engines.
#pragma once

#include <array>

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

}  // namespace cairn
