// Where the pixels of a resized image come from: shared by the reference kernel and by engines.
#pragma once

#include <array>

#include "ir/op_def.h"

namespace cairn {

/// Of one axis, for each pixel of the result: up to four taps with their weights.
struct Sampling {
  std::vector<std::array<int64_t, 4>> taps;
  std::vector<std::array<float, 4>> weights;
  size_t count = 1;  // taps that count
};
/// Those of resize2d and of its gradient.
std::vector<AttrDef> resize_attributes();
/// By these attributes.
Sampling resize_sampling(const AttributeView& attr, int64_t in, int64_t out);

}  // namespace cairn
