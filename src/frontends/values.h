// Elements of tensors as stored in protocol buffers.
#pragma once

#include <string_view>
#include <vector>

#include "ir/tensor.h"

namespace cairn {

/// A copy of elements that are unaligned in a file. Releases the file's pages, most of which are never read again.
Tensor copy_of_elements(DType dtype, std::vector<int64_t> dims, std::string_view bytes);

/// Sets the first elements from integers that are stored as 64 bits for all types: 16-bit floats by their bits, other
/// types truncated.
void put_integers(Tensor& tensor, const std::vector<int64_t>& from);

/// The elements of a constant that must be integers, or numbers. Throws Error invalid_model for other element types.
std::vector<int64_t> whole_numbers(const Tensor& tensor);
std::vector<double> real_numbers(const Tensor& tensor);

}  // namespace cairn
