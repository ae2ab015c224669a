// Tensors in files: NumPy's .npy and .npz, and raw .bin.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "ir/tensor.h"

namespace cairn::cli {

/// A .npy file that NumPy reads by itself. Throws Error io, unsupported.
void write_array(const Tensor& tensor, const std::string& path);
/// Throws Error not_found, io, unsupported.
std::map<std::string, Tensor> read_npz(const std::string& path);
void write_npz(const std::vector<std::pair<std::string, Tensor>>& arrays, const std::string& path);
/// Raw elements; the file must have exactly the bytes of the type.
Tensor read_raw(const std::string& path, DType dtype, const std::vector<int64_t>& dims);
/// ".npy", ".bin" or ".npz:name" by the file's ending; `dtype` and `dims` are for raw files.
Tensor read_array(const std::string& path, DType dtype, const std::vector<int64_t>& dims);

/// A name for a file: characters other than letters, digits, '.', '-' and '_' become '_'.
std::string file_name(const std::string& name);

}  // namespace cairn::cli
