// Elements of tensors as protocol buffers hold them.
#pragma once

#include <string_view>
#include <vector>

#include "ir/tensor.h"

namespace cairn {

/// A copy of elements that lie in a file at an odd address. The file's pages are let go: most are never read again.
Tensor copy_of_elements(DType dtype, std::vector<int64_t> dims, std::string_view bytes);

/// The first elements from integers, which come as 64 bits whatever their type: 16-bit floats as their bits, other
/// sizes cut.
void put_integers(Tensor& tensor, const std::vector<int64_t>& from);

/// Elements of a constant where whole numbers, or numbers, must be. Throws Error invalid_model for another element type.
std::vector<int64_t> whole_numbers(const Tensor& tensor);
std::vector<double> real_numbers(const Tensor& tensor);

}  // namespace cairn
