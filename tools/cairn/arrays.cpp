// .npz is a zip file whose members are stored or deflated. Deflated ones are refused with the NumPy call that avoids them.
#include "arrays.h"

#include <algorithm>
#include <array>
#include <filesystem>

#include "formats/npy.h"
#include "support/files.h"

namespace cairn::cli {

namespace {

constexpr size_t kLargest = size_t{16} << 30;

/// NumPy has no bfloat16 of its own: as 32-bit floats.
std::string plain_npy(const Tensor& tensor) {
  if (tensor.dtype() != kBF16) return npy_bytes(tensor);
  Tensor wide = Tensor::uninitialized(kF32, tensor.dims());
  std::transform(tensor.values<uint16_t>().begin(), tensor.values<uint16_t>().end(),
                 wide.mutable_values<float>().begin(), bfloat_to_float);
  return npy_bytes(wide);
}

template <class T>
T little(std::string_view bytes, size_t at, const std::string& name) {
  if (at > bytes.size() || bytes.size() - at < sizeof(T)) fail(ErrorKind::io, name, "is cut off");
  T value;
  std::memcpy(&value, bytes.data() + at, sizeof value);
  return value;
}

std::string_view part(std::string_view bytes, uint64_t at, uint64_t size, const std::string& name) {
  if (at > bytes.size() || bytes.size() - at < size) fail(ErrorKind::io, name, "is cut off");
  return bytes.substr(at, size);
}

uint32_t crc32(std::string_view bytes) {  // of zip: the reflected polynomial 0xedb88320
  static const auto table = [] {
    std::array<uint32_t, 256> rows{};
    for (uint32_t i = 0; i < 256; ++i) {
      uint32_t crc = i;
      for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1) ^ ((crc & 1) ? 0xedb88320u : 0);
      rows[i] = crc;
    }
    return rows;
  }();
  uint32_t crc = ~0u;
  for (char c : bytes) crc = (crc >> 8) ^ table[(crc ^ static_cast<uint8_t>(c)) & 0xff];
  return ~crc;
}

template <class T>
void put(std::string& out, T value) {
  out.append(reinterpret_cast<const char*>(&value), sizeof value);
}

}  // namespace

void write_array(const Tensor& tensor, const std::string& path) { write_file(path, plain_npy(tensor)); }

std::map<std::string, Tensor> read_npz(const std::string& path) {
  auto file = MappedFile::open(path);
  std::string_view bytes = file->bytes();
  std::map<std::string, Tensor> arrays;
  size_t end = bytes.rfind(std::string_view("PK\x05\x06", 4));
  if (end == std::string_view::npos) fail(ErrorKind::io, path, "is not a .npz file");
  auto members = little<uint16_t>(bytes, end + 10, path);
  uint64_t at = little<uint32_t>(bytes, end + 16, path);
  for (int i = 0; i < members; ++i) {
    if (part(bytes, at, 4, path) != std::string_view("PK\x01\x02", 4))
      fail(ErrorKind::io, path, "has a broken directory");
    auto method = little<uint16_t>(bytes, at + 10, path);
    auto size = little<uint32_t>(bytes, at + 20, path);
    auto name_size = little<uint16_t>(bytes, at + 28, path);
    auto local = little<uint32_t>(bytes, at + 42, path);
    std::string name(part(bytes, at + 46, name_size, path));
    at += 46 + name_size + little<uint16_t>(bytes, at + 30, path) + little<uint16_t>(bytes, at + 32, path);
    if (method != 0)
      fail(ErrorKind::unsupported, path, "is compressed; write it with numpy.savez, not savez_compressed");
    if (size == UINT32_MAX || local == UINT32_MAX)
      fail(ErrorKind::unsupported, path, "has a member of 4 GiB or more; use .npy files");
    uint64_t data =
        uint64_t{local} + 30 + little<uint16_t>(bytes, local + 26, path) + little<uint16_t>(bytes, local + 28, path);
    if (name.ends_with(".npy")) name.resize(name.size() - 4);
    arrays[name] = parse_npy(part(bytes, data, size, path), path + ":" + name, file);
  }
  return arrays;
}

void write_npz(const std::vector<std::pair<std::string, Tensor>>& arrays, const std::string& path) {
  std::string body, directory;
  for (const auto& [key, tensor] : arrays) {
    std::string data = plain_npy(tensor), name = key + ".npy";
    if (body.size() + data.size() > UINT32_MAX / 2)
      fail(ErrorKind::unsupported, path, "is too large for one .npz file");
    std::string common;  // from "version needed" to "extra length", shared by both headers
    for (uint16_t field : {uint16_t{20}, uint16_t{0x800}, uint16_t{0}, uint16_t{0}, uint16_t{0x21}}) put(common, field);
    put(common, crc32(data));
    put(common, static_cast<uint32_t>(data.size()));
    put(common, static_cast<uint32_t>(data.size()));
    put(common, static_cast<uint16_t>(name.size()));
    put(common, uint16_t{0});
    directory += std::string("PK\x01\x02\x14\x00", 6) + common + std::string(10, '\0');
    put(directory, static_cast<uint32_t>(body.size()));
    directory += name;
    body += std::string("PK\x03\x04", 4) + common + name + data;
  }
  std::string tail("PK\x05\x06\0\0\0\0", 8);
  put(tail, static_cast<uint16_t>(arrays.size()));
  put(tail, static_cast<uint16_t>(arrays.size()));
  put(tail, static_cast<uint32_t>(directory.size()));
  put(tail, static_cast<uint32_t>(body.size()));
  put(tail, uint16_t{0});
  write_file(path, body + directory + tail);
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
