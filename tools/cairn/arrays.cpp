// The .npy header is a Python dict literal; .npz is a zip file whose members are stored or deflated. Deflated ones are
// refused with the NumPy call that avoids them.
#include "arrays.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <filesystem>

#include "support/files.h"

namespace cairn::cli {

namespace {

constexpr size_t kLargest = size_t{16} << 30;

struct NpyType {
  const char* text;
  DType dtype;
};
constexpr NpyType kNpyTypes[] = {{"|b1", kBool}, {"|i1", kI8},  {"<i2", kI16}, {"<i4", kI32}, {"<i8", kI64},
                                 {"|u1", kU8},   {"<u2", kU16}, {"<u4", kU32}, {"<u8", kU64}, {"<f2", kF16},
                                 {"<f4", kF32},  {"<f8", kF64}, {"<c8", kC64}};

/// The text after 'key': in a header like "{'descr': '<f4', 'fortran_order': False, 'shape': (3, 4), }".
std::string_view after_key(std::string_view header, std::string_view key, const std::string& name) {
  size_t at = header.find(fmt::format("'{}':", key));
  if (at == std::string_view::npos) fail(ErrorKind::io, name, "has no '{}' in its header", key);
  std::string_view rest = header.substr(at + key.size() + 3);
  rest.remove_prefix(std::min(rest.find_first_not_of(' '), rest.size()));
  return rest;
}

std::vector<int64_t> parse_shape(std::string_view text, const std::string& name) {
  std::vector<int64_t> dims;
  size_t end = text.find(')');
  if (!text.starts_with('(') || end == std::string_view::npos)
    fail(ErrorKind::io, name, "has a bad shape in its header");
  text = text.substr(1, end - 1);
  while (!text.empty()) {
    size_t comma = std::min(text.find(','), text.size());
    std::string_view item = text.substr(0, comma);
    item.remove_prefix(std::min(item.find_first_not_of(' '), item.size()));
    int64_t dim = 0;
    if (!item.empty() && std::from_chars(item.data(), item.data() + item.size(), dim).ec == std::errc() && dim >= 0)
      dims.push_back(dim);
    else if (!item.empty())
      fail(ErrorKind::io, name, "has a bad shape in its header");
    text.remove_prefix(std::min(comma + 1, text.size()));
  }
  return dims;
}

Tensor to_row_major(const Tensor& columns) {
  std::vector<int64_t> dims = columns.dims();
  Tensor rows = Tensor::uninitialized(columns.dtype(), dims);
  size_t size = columns.dtype().size();
  std::vector<int64_t> index(dims.size(), 0);
  for (int64_t i = 0; i < rows.count(); ++i) {
    int64_t from = 0;
    for (size_t axis = dims.size(); axis-- > 0;) from = from * dims[axis] + index[axis];
    std::memcpy(static_cast<char*>(rows.mutable_data()) + static_cast<size_t>(i) * size,
                static_cast<const char*>(columns.data()) + static_cast<size_t>(from) * size, size);
    for (size_t axis = dims.size(); axis-- > 0 && ++index[axis] == dims[axis];) index[axis] = 0;
  }
  return rows;
}

Tensor parse_npy(std::string_view bytes, const std::string& name) {
  if (!bytes.starts_with("\x93NUMPY") || bytes.size() < 12) fail(ErrorKind::io, name, "is not a .npy file");
  bool wide = bytes[6] >= 2;
  size_t start = wide ? 12 : 10, length = 0;
  for (size_t i = 0; i < (wide ? 4u : 2u); ++i) length |= size_t{static_cast<unsigned char>(bytes[8 + i])} << (8 * i);
  if (length > bytes.size() - start) fail(ErrorKind::io, name, "is cut off in its header");
  std::string_view header = bytes.substr(start, length);
  std::string_view descr = after_key(header, "descr", name);
  const NpyType* type = std::find_if(std::begin(kNpyTypes), std::end(kNpyTypes), [&](const NpyType& row) {
    return descr.starts_with(fmt::format("'{}'", row.text));
  });
  if (type == std::end(kNpyTypes))
    fail(ErrorKind::unsupported, name, "has element type {}, which is not a plain number", descr.substr(0, 12));
  std::vector<int64_t> dims = parse_shape(after_key(header, "shape", name), name);
  auto count = element_count(dims);
  std::string_view data = bytes.substr(start + length);
  if (!count || *count > INT64_MAX / 16 || storage_bytes(type->dtype, *count) > data.size())
    fail(ErrorKind::io, name, "is cut off: {} bytes of elements", data.size());
  Tensor tensor = Tensor::uninitialized(type->dtype, dims);
  if (tensor.bytes()) std::memcpy(tensor.mutable_data(), data.data(), tensor.bytes());
  return after_key(header, "fortran_order", name).starts_with("True") ? to_row_major(tensor) : tensor;
}

std::string npy_header(const Tensor& tensor) {
  DType stored = tensor.dtype() == kBF16 ? kF32 : tensor.dtype();
  const NpyType* type =
      std::find_if(std::begin(kNpyTypes), std::end(kNpyTypes), [&](const NpyType& row) { return row.dtype == stored; });
  if (type == std::end(kNpyTypes))
    fail(ErrorKind::unsupported, "", "NumPy has no element type {}", to_string(tensor.dtype()));
  std::string shape = fmt::format("{}", fmt::join(tensor.dims(), ", "));
  if (tensor.rank() == 1) shape += ",";
  std::string header = fmt::format("{{'descr': '{}', 'fortran_order': False, 'shape': ({}), }}", type->text, shape);
  header.append(63 - (10 + header.size()) % 64, ' ');
  header += '\n';
  std::string out("\x93NUMPY\x01\x00", 8);
  out += static_cast<char>(header.size() & 0xff);
  out += static_cast<char>(header.size() >> 8);
  return out + header;
}

std::string npy_bytes(const Tensor& tensor) {
  std::string bytes = npy_header(tensor);
  if (tensor.dtype() == kBF16) {  // NumPy has no such type: as 32-bit floats
    for (uint16_t bits : tensor.values<uint16_t>()) {
      float value = bfloat_to_float(bits);
      bytes.append(reinterpret_cast<const char*>(&value), sizeof value);
    }
    return bytes;
  }
  return bytes.append(static_cast<const char*>(tensor.data()), tensor.bytes());
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

Tensor read_npy(const std::string& path) { return parse_npy(MappedFile::open(path)->bytes(), path); }

void write_npy(const Tensor& tensor, const std::string& path) { write_file(path, npy_bytes(tensor)); }

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
    arrays[name] = parse_npy(part(bytes, data, size, path), path + ":" + name);
  }
  return arrays;
}

void write_npz(const std::vector<std::pair<std::string, Tensor>>& arrays, const std::string& path) {
  std::string body, directory;
  for (const auto& [key, tensor] : arrays) {
    std::string data = npy_bytes(tensor), name = key + ".npy";
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
