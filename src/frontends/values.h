// Elements of tensors as protocol buffers hold them.
#pragma once

#include <vector>

#include "ir/tensor.h"

namespace cairn {

/// The first elements from integers, which come as 64 bits whatever their type: 16-bit floats as their bits, other sizes cut.
void put_integers(Tensor& tensor, const std::vector<int64_t>& from);

}  // namespace cairn
