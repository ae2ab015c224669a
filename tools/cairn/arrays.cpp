#include "arrays.h"

#include <algorithm>
#include <filesystem>

#include "formats/npy.h"
#include "formats/npz.h"
#include "support/files.h"

namespace cairn::cli {

namespace {

constexpr size_t kLargest = size_t{16} << 30;

/// NumPy has no bfloat16 of its own: as 32-bit floats.
Tensor plain(const Tensor& tensor) {
  if (tensor.dtype() != kBF16) return tensor;
  Tensor wide = Tensor::uninitialized(kF32, tensor.dims());
  std::transform(tensor.values<uint16_t>().begin(), tensor.values<uint16_t>().end(),
                 wide.mutable_values<float>().begin(), bfloat_to_float);
  return wide;
}

}  // namespace

void write_array(const Tensor& tensor, const std::string& path) { write_file(path, npy_bytes(plain(tensor))); }

std::map<std::string, Tensor> read_npz(const std::string& path) {
  auto file = NpzFile::open(path);
  std::map<std::string, Tensor> arrays;
  for (const std::string& name : file->names()) arrays[name] = file->read(name);
  return arrays;
}

void write_npz(const std::vector<std::pair<std::string, Tensor>>& arrays, const std::string& path) {
  std::vector<std::pair<std::string, Tensor>> wide;
  for (const auto& [name, tensor] : arrays) wide.emplace_back(name, plain(tensor));
  cairn::write_npz(path, wide);
}

Tensor read_raw(const std::string& path, DType dtype, const std::vector<int64_t>& dims) {
  if (dtype == kString) fail(ErrorKind::unsupported, path, "text cannot be read from raw elements; give a .npy file");
  Tensor tensor = Tensor::uninitialized(dtype, dims);
  std::string bytes = read_file(path, kLargest);
  if (bytes.size() != tensor.bytes())
    fail(ErrorKind::invalid_argument, path, "has {} bytes, expected {} for {}", bytes.size(), tensor.bytes(),
         to_string(tensor.type()));
  if (!bytes.empty()) std::memcpy(tensor.mutable_data(), bytes.data(), bytes.size());
  return tensor;
}

Tensor read_array(const std::string& path, DType dtype, const std::vector<int64_t>& dims) {
  size_t npz = path.rfind(".npz:");
  if (npz != std::string::npos) {
    std::string name = path.substr(npz + 5);
    auto arrays = read_npz(path.substr(0, npz + 4));
    auto found = arrays.find(name);
    if (found == arrays.end()) fail(ErrorKind::not_found, path, "there is no array '{}' in it", name);
    return found->second;
  }
  return path.ends_with(".npy") ? read_npy(path) : read_raw(path, dtype, dims);
}

std::string file_name(const std::string& name) {
  std::string text = name.empty() ? "_" : name;
  for (char& c : text)
    if (!(std::isalnum(static_cast<unsigned char>(c)) || c == '.' || c == '-' || c == '_')) c = '_';
  return text;
}

}  // namespace cairn::cli
