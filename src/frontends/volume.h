// 3-D convolution and pooling of volumes in NDHWC: sums, largest or means over depth of the 2-D forms on slices.
#pragma once

#include <vector>

#include "ir/module.h"

namespace cairn {

/// How windows slide along the depth of a volume.
struct DepthWindow {
  int64_t size = 1, stride = 1, dilation = 1;
  int64_t before = 0, after = 0;  // padding

  int64_t reach() const { return (size - 1) * dilation + 1; }
};

enum class Pooling : uint8_t { largest, mean, mean_with_padding };

/// Refuses volumes whose depth, height, width or channels are not known. Throws Error.
void check_volume(const Value* x);
/// x [n, d, h, w, c] with a kernel [kd, kh, kw, c / groups, out]; `plane` has the attributes of conv2d for height and
/// width. Throws Error invalid_model where no window fits.
Value* conv3d(Value* x, Value* kernel, const DepthWindow& depth, const Attributes& plane, Builder& builder);
/// `plane` has the attributes of the 2-D pooling.
Value* pool3d(Value* x, Pooling pooling, const DepthWindow& depth, Attributes plane, Builder& builder);

}  // namespace cairn
