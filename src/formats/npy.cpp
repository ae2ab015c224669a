#include "formats/npy.h"

#include <algorithm>
#include <charconv>

#include "support/files.h"

namespace cairn {

namespace {

struct NpyType {
  const char* text;  // without the byte order
  DType dtype;
};
constexpr NpyType kNpyTypes[] = {{"b1", kBool}, {"i1", kI8},  {"i2", kI16}, {"i4", kI32}, {"i8", kI64},
                                 {"u1", kU8},   {"u2", kU16}, {"u4", kU32}, {"u8", kU64}, {"f2", kF16},
                                 {"f4", kF32},  {"f8", kF64}, {"c8", kC64}, {"V2", kBF16}};
constexpr size_t kMostNpyDims = 64;

/// The value's text after 'key': in the header, which is a Python dictionary.
std::string_view after_key(std::string_view header, std::string_view key, const std::string& where) {
  size_t at = header.find(fmt::format("'{}':", key));
  if (at == std::string_view::npos) fail(ErrorKind::io, where, "has no '{}' in its .npy header", key);
  std::string_view rest = header.substr(at + key.size() + 3);
  rest.remove_prefix(std::min(rest.find_first_not_of(' '), rest.size()));
  return rest;
}

std::vector<int64_t> parse_shape(std::string_view text, const std::string& where) {
  std::vector<int64_t> dims;
  size_t end = text.find(')');
  bool sound = text.starts_with('(') && end != std::string_view::npos;
  text = sound ? text.substr(1, end - 1) : "";
  while (sound && !text.empty()) {
    size_t comma = std::min(text.find(','), text.size());
    std::string_view item = text.substr(0, comma);
    item.remove_prefix(std::min(item.find_first_not_of(' '), item.size()));
    int64_t dim = 0;
    if (!item.empty()) {
      auto [last, error] = std::from_chars(item.data(), item.data() + item.size(), dim);
      sound = error == std::errc() && last == item.data() + item.size() && dim >= 0 && dims.size() < kMostNpyDims;
      dims.push_back(dim);
    }
    text.remove_prefix(std::min(comma + 1, text.size()));
  }
  if (!sound) fail(ErrorKind::io, where, "has a bad shape in its .npy header");
  return dims;
}

struct NpyHeader {
  DType dtype;
  bool swapped = false, columns_first = false;
  std::vector<int64_t> dims;
};

NpyHeader parse_header(std::string_view text, const std::string& where) {
  NpyHeader header;
  std::string_view descr = after_key(text, "descr", where);
  const NpyType* type = nullptr;
  if (descr.size() > 4 && descr[0] == '\'' && std::string_view("<>|=").find(descr[1]) != std::string_view::npos)
    type = std::find_if(std::begin(kNpyTypes), std::end(kNpyTypes),
                        [&](const NpyType& row) { return descr.substr(2, 2) == row.text && descr[4] == '\''; });
  if (type == nullptr || type == std::end(kNpyTypes))
    fail(ErrorKind::unsupported, where, "has elements of type {}, which is not a number type that is read",
         descr.substr(0, std::min<size_t>(descr.find(','), 20)));
  header.dtype = type->dtype;
  header.swapped = descr[1] == '>';
  header.columns_first = after_key(text, "fortran_order", where).starts_with("True");
  header.dims = parse_shape(after_key(text, "shape", where), where);
  return header;
}

void swap_bytes(Tensor& tensor) {
  size_t size = tensor.dtype() == kC64 ? 4 : tensor.dtype().size();
  char* at = static_cast<char*>(tensor.mutable_data());
  for (char* end = at + tensor.bytes(); at < end; at += size) std::reverse(at, at + size);
}

Tensor to_row_major(const Tensor& columns) {
  const std::vector<int64_t>& dims = columns.dims();
  Tensor rows = Tensor::uninitialized(columns.dtype(), dims);
  size_t size = columns.dtype().size();
  std::vector<int64_t> index(dims.size(), 0), stride(dims.size(), 1);
  for (size_t axis = 1; axis < dims.size(); ++axis) stride[axis] = stride[axis - 1] * dims[axis - 1];
  const char* from = static_cast<const char*>(columns.data());
  char* to = static_cast<char*>(rows.mutable_data());
  int64_t at = 0;
  for (int64_t i = 0; i < rows.count(); ++i) {
    std::memcpy(to + static_cast<size_t>(i) * size, from + static_cast<size_t>(at) * size, size);
    for (size_t axis = dims.size(); axis-- > 0;) {
      at += stride[axis];
      if (++index[axis] < dims[axis]) break;
      at -= stride[axis] * dims[axis];
      index[axis] = 0;
    }
  }
  return rows;
}

}  // namespace

Tensor parse_npy(std::string_view bytes, const std::string& where, std::shared_ptr<const void> owner) {
  if (!bytes.starts_with("\x93NUMPY") || bytes.size() < 12) fail(ErrorKind::io, where, "is not a .npy file");
  bool wide = bytes[6] >= 2;
  size_t start = wide ? 12 : 10, length = 0;
  for (size_t i = 0; i < start - 8; ++i) length |= size_t{static_cast<unsigned char>(bytes[8 + i])} << (8 * i);
  if (length > bytes.size() - start) fail(ErrorKind::io, where, "is cut off in its .npy header");
  NpyHeader header = parse_header(bytes.substr(start, length), where);
  std::string_view data = bytes.substr(start + length);
  std::optional<int64_t> count = element_count(header.dims);
  if (!count || storage_bytes(header.dtype, *count) > data.size())
    fail(ErrorKind::io, where, "is cut off: its shape needs more than the {} bytes that it holds", data.size());
  if (storage_bytes(header.dtype, *count) < data.size())
    fail(ErrorKind::io, where, "holds {} bytes more than its shape needs",
         data.size() - storage_bytes(header.dtype, *count));

  bool aligned = reinterpret_cast<uintptr_t>(data.data()) % 8 == 0;
  Tensor tensor = Tensor::view(header.dtype, header.dims, data.data(), std::move(owner));
  if (*count > 0 && (!aligned || header.swapped)) {
    Tensor copy = Tensor::uninitialized(header.dtype, header.dims);
    std::memcpy(copy.mutable_data(), data.data(), copy.bytes());
    if (header.swapped) swap_bytes(copy);
    tensor = copy;
  }
  return header.columns_first && header.dims.size() > 1 && *count > 0 ? to_row_major(tensor) : tensor;
}

Tensor read_npy(const std::string& path) {
  auto file = MappedFile::open(path);
  return parse_npy(file->bytes(), path, file);
}

std::string npy_bytes(const Tensor& tensor) {
  const NpyType* type = std::find_if(std::begin(kNpyTypes), std::end(kNpyTypes),
                                     [&](const NpyType& row) { return row.dtype == tensor.dtype(); });
  if (type == std::end(kNpyTypes))
    fail(ErrorKind::unsupported, "", "{} elements cannot be written to a .npy file", to_string(tensor.dtype()));
  std::string dims;
  for (int64_t dim : tensor.dims()) dims += fmt::format("{}, ", dim);
  if (tensor.rank() > 1) dims.resize(dims.size() - 2);
  std::string header = fmt::format("{{'descr': '{}{}', 'fortran_order': False, 'shape': ({}), }}",
                                   tensor.dtype().size() == 1 ? '|' : '<', type->text, dims);
  header.append(63 - (10 + header.size()) % 64, ' ').append("\n");
  std::string bytes("\x93NUMPY\x01\x00", 8);
  bytes += static_cast<char>(header.size() & 0xff);
  bytes += static_cast<char>(header.size() >> 8);
  bytes += header;
  return bytes.append(static_cast<const char*>(tensor.data()), tensor.bytes());
}

void write_npy(const std::string& path, const Tensor& tensor) { write_file(path, npy_bytes(tensor)); }

}  // namespace cairn
