#include "formats/npy.h"

#include <algorithm>
#include <charconv>

#include "support/files.h"
#include "support/utf8.h"

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
  size_t size = 0;    // bytes of an element as stored
  bool wide = false;  // texts are of four bytes a character
  bool swapped = false, columns_first = false;
  std::vector<int64_t> dims;
};

/// Of the types S and U: the characters of each text.
std::optional<size_t> text_length(std::string_view type) {
  constexpr size_t kMost = size_t{1} << 28;
  size_t length = 0;
  if (type.size() < 2 || (type[0] != 'S' && type[0] != 'U')) return std::nullopt;
  auto [last, error] = std::from_chars(type.data() + 1, type.data() + type.size(), length);
  if (error != std::errc() || last != type.data() + type.size() || length > kMost) return std::nullopt;
  return length;
}

NpyHeader parse_header(std::string_view text, const std::string& where) {
  NpyHeader header;
  std::string_view descr = after_key(text, "descr", where);
  const size_t end = descr.find('\'', 1);
  const bool sound = descr.size() > 4 && descr[0] == '\'' && end != std::string_view::npos &&
                     std::string_view("<>|=").find(descr[1]) != std::string_view::npos;
  const std::string_view name = sound ? descr.substr(2, end - 2) : "";
  const NpyType* type =
      std::find_if(std::begin(kNpyTypes), std::end(kNpyTypes), [&](const NpyType& row) { return name == row.text; });
  if (type != std::end(kNpyTypes)) {
    header.dtype = type->dtype;
    header.size = type->dtype.size();
  } else if (std::optional<size_t> length = text_length(name)) {
    header.dtype = kString;
    header.wide = name[0] == 'U';
    header.size = *length * (header.wide ? 4 : 1);
  } else {
    fail(ErrorKind::unsupported, where, "has elements of type {}, which is neither a number type that is read nor text",
         descr.substr(0, std::min<size_t>(descr.find(','), 20)));
  }
  header.swapped = descr[1] == '>';
  header.columns_first = after_key(text, "fortran_order", where).starts_with("True");
  header.dims = parse_shape(after_key(text, "shape", where), where);
  return header;
}

/// Texts are filled up with zeros to equal length; wide characters become UTF-8.
Tensor parse_texts(std::string_view data, const NpyHeader& header, const std::string& where) {
  Tensor tensor = Tensor::zeros(kString, header.dims);
  for (std::string& text : tensor.mutable_values<std::string>()) {
    std::string_view own = data.substr(0, header.size);
    data.remove_prefix(header.size);
    if (!header.wide) text = own;
    for (size_t i = 0; header.wide && i < own.size(); i += 4) {
      uint32_t character = 0;
      std::memcpy(&character, own.data() + i, 4);
      if (header.swapped) character = __builtin_bswap32(character);
      if (character > 0x10ffff) fail(ErrorKind::io, where, "holds a character that does not exist");
      append_utf8(text, character);
    }
    text.resize(text.find_last_not_of('\0') + 1);
  }
  return tensor;
}

void swap_bytes(Tensor& tensor) {
  size_t size = tensor.dtype() == kC64 ? 4 : tensor.dtype().size();
  char* at = static_cast<char*>(tensor.mutable_data());
  for (char* end = at + tensor.bytes(); at < end; at += size) std::reverse(at, at + size);
}

Tensor to_row_major(const Tensor& columns) {
  const std::vector<int64_t>& dims = columns.dims();
  Tensor rows = Tensor::uninitialized(columns.dtype(), dims);
  const bool text = columns.dtype() == kString;
  size_t size = columns.dtype().size();
  std::vector<int64_t> index(dims.size(), 0), stride(dims.size(), 1);
  for (size_t axis = 1; axis < dims.size(); ++axis) stride[axis] = stride[axis - 1] * dims[axis - 1];
  const char* from = static_cast<const char*>(columns.data());
  char* to = static_cast<char*>(rows.mutable_data());
  int64_t at = 0;
  for (int64_t i = 0; i < rows.count(); ++i) {
    if (text)
      rows.mutable_values<std::string>()[static_cast<size_t>(i)] =
          columns.values<std::string>()[static_cast<size_t>(at)];
    else
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
  size_t needed = 0;
  if (!count || __builtin_mul_overflow(static_cast<size_t>(*count), header.size, &needed) || needed > data.size())
    fail(ErrorKind::io, where, "is cut off: its shape needs more than the {} bytes that it holds", data.size());
  if (needed < data.size())
    fail(ErrorKind::io, where, "holds {} bytes more than its shape needs", data.size() - needed);
  const bool turn = header.columns_first && header.dims.size() > 1 && *count > 0;
  if (header.dtype == kString) {
    if (header.size == 0 && *count > 0) fail(ErrorKind::io, where, "has texts of no characters");
    Tensor texts = parse_texts(data, header, where);
    return turn ? to_row_major(texts) : texts;
  }

  bool aligned = reinterpret_cast<uintptr_t>(data.data()) % 8 == 0;
  Tensor tensor = Tensor::view(header.dtype, header.dims, data.data(), std::move(owner));
  if (*count > 0 && (!aligned || header.swapped)) {
    Tensor copy = Tensor::uninitialized(header.dtype, header.dims);
    std::memcpy(copy.mutable_data(), data.data(), copy.bytes());
    if (header.swapped) swap_bytes(copy);
    tensor = copy;
  }
  return turn ? to_row_major(tensor) : tensor;
}

Tensor read_npy(const std::string& path) {
  auto file = MappedFile::open(path);
  return parse_npy(file->bytes(), path, file);
}

namespace {

std::string npy_start(std::string_view type, const std::vector<int64_t>& shape) {
  std::string dims;
  for (int64_t dim : shape) dims += fmt::format("{}, ", dim);
  if (shape.size() > 1) dims.resize(dims.size() - 2);
  std::string header = fmt::format("{{'descr': '{}', 'fortran_order': False, 'shape': ({}), }}", type, dims);
  header.append(63 - (10 + header.size()) % 64, ' ').append("\n");
  std::string bytes("\x93NUMPY\x01\x00", 8);
  bytes += static_cast<char>(header.size() & 0xff);
  bytes += static_cast<char>(header.size() >> 8);
  return bytes += header;
}

std::string npy_bytes_of_texts(const Tensor& tensor) {
  size_t longest = 1;
  for (const std::string& text : tensor.values<std::string>()) {
    longest = std::max(longest, text.size());
    if (text.ends_with('\0'))
      fail(ErrorKind::unsupported, "", "a text that ends in a zero byte cannot be written to a .npy file");
  }
  std::string bytes = npy_start(fmt::format("|S{}", longest), tensor.dims());
  for (const std::string& text : tensor.values<std::string>()) bytes.append(text).append(longest - text.size(), '\0');
  return bytes;
}

}  // namespace

std::string npy_bytes(const Tensor& tensor) {
  if (tensor.dtype() == kString) return npy_bytes_of_texts(tensor);
  const NpyType* type = std::find_if(std::begin(kNpyTypes), std::end(kNpyTypes),
                                     [&](const NpyType& row) { return row.dtype == tensor.dtype(); });
  if (type == std::end(kNpyTypes))
    fail(ErrorKind::unsupported, "", "{} elements cannot be written to a .npy file", to_string(tensor.dtype()));
  const char order = tensor.dtype().size() == 1 ? '|' : '<';
  std::string bytes = npy_start(fmt::format("{}{}", order, type->text), tensor.dims());
  return bytes.append(static_cast<const char*>(tensor.data()), tensor.bytes());
}

void write_npy(const std::string& path, const Tensor& tensor) { write_file(path, npy_bytes(tensor)); }

}  // namespace cairn
