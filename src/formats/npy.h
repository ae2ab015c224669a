// NumPy's .npy files: tensors in and out. Nothing in a file is believed before it is checked.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "ir/tensor.h"

namespace cairn {

/// The array in `bytes`; elements are not copied when they lie row-major, aligned and in this machine's byte order, and
/// then keep `owner` alive. Two-byte void elements count as bf16, bytes (S) and characters (U) as text. `where` is for
/// messages. Throws Error io, unsupported.
Tensor parse_npy(std::string_view bytes, const std::string& where, std::shared_ptr<const void> owner);
Tensor read_npy(const std::string& path);
/// Text is written as bytes of equal length (S). Throws Error unsupported for text that ends in a zero byte, which NumPy
/// drops, and for types narrower than a byte.
std::string npy_bytes(const Tensor& tensor);
void write_npy(const std::string& path, const Tensor& tensor);

}  // namespace cairn
