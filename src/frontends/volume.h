// 3-D convolution and pooling of volumes in NDHWC: sums, maxima or means over depth of the 2-D operations on slices.
#pragma once

#include <vector>

#include "ir/builder.h"

namespace cairn {

/// How windows slide along the depth of a volume.
struct DepthWindow {
  int64_t size = 1, stride = 1, dilation = 1;
  int64_t before = 0, after = 0;  // padding

  int64_t reach() const { return (size - 1) * dilation + 1; }
};

/// The window over `in` slices; "same" padding is divided between both sides, with an odd slice at the end.
DepthWindow depth_window(int64_t in, int64_t size, int64_t stride, int64_t dilation, bool same);

enum class Pooling : uint8_t { largest, mean, mean_with_padding };

/// Refuses volumes whose depth, height, width or channels are not known. Throws Error.
void check_volume(const Value* x);
/// The convolution of x [n, d, h, w, c] with a kernel [kd, kh, kw, c / groups, out]; `plane` has the attributes of
/// conv2d for height and width. Throws Error invalid_model when no window fits.
Value* conv3d(Value* x, Value* kernel, const DepthWindow& depth, const Attributes& plane, Builder& builder);
/// The transposed convolution: the volume [n, depth, h, w, out] from x and a kernel [kd, kh, kw, out, c]. `depth` and
/// `plane` give the windows of the forward convolution, `sizes` the result's depth, height and width.
Value* conv3d_transpose(Value* x, Value* kernel, const DepthWindow& depth, const Attributes& plane,
                        const std::vector<int64_t>& sizes, Builder& builder);
/// `plane` has the attributes of the 2-D pooling.
Value* pool3d(Value* x, Pooling pooling, const DepthWindow& depth, Attributes plane, Builder& builder);

}  // namespace cairn
