#include "formats/dump_data.h"

#include <algorithm>
#include <cmath>
#include <protozero/pbf_reader.hpp>
#include <protozero/pbf_writer.hpp>

#include "support/files.h"

namespace cairn {

namespace {

constexpr size_t kMostTensors = 4096, kMostDims = 64;

using WireType = protozero::pbf_wire_type;

/// protozero takes a field of another wire type for the caller's fault; here it is the file's.
class Reader {
 public:
  explicit Reader(std::string_view bytes) : reader_(bytes.data(), bytes.size()) {}
  bool next() { return reader_.next(); }
  uint32_t tag() const { return reader_.tag(); }
  bool is_packed() const { return reader_.wire_type() == WireType::length_delimited; }
  void skip() { reader_.skip(); }
  uint64_t integer() {
    need(WireType::varint);
    return reader_.get_uint64();
  }
  std::string_view bytes() {
    need(WireType::length_delimited);
    protozero::data_view view = reader_.get_view();
    return {view.data(), view.size()};
  }
  auto packed() { return reader_.get_packed_uint64(); }

 private:
  protozero::pbf_reader reader_;
  void need(WireType type) const {
    if (reader_.wire_type() != type) throw protozero::unknown_pbf_wire_type_exception();
  }
};

[[noreturn]] void damaged(const std::string& where, const char* what) {
  fail(ErrorKind::io, where, "is not a sound dump file: {}", what);
}

void bounded(size_t count, const std::string& where) {
  if (count >= kMostTensors) damaged(where, "it lists more than 4096 tensors");
}

std::vector<int64_t> read_shape(Reader message, const std::string& where) {
  std::vector<int64_t> dims;
  while (message.next()) {
    if (message.tag() != 1) {
      message.skip();
    } else if (message.is_packed()) {
      for (uint64_t dim : message.packed()) {
        if (dims.size() >= kMostDims) damaged(where, "a shape has more than 64 dims");
        dims.push_back(static_cast<int64_t>(dim));
      }
    } else {
      if (dims.size() >= kMostDims) damaged(where, "a shape has more than 64 dims");
      dims.push_back(static_cast<int64_t>(message.integer()));
    }
  }
  return dims;
}

void read_origin(Reader message, DumpTensor& tensor) {
  while (message.next()) {
    switch (message.tag()) {
      case 1: tensor.original_name = message.bytes(); break;
      case 2: tensor.original_index = static_cast<int>(message.integer()); break;
      case 3: tensor.original_data_type = static_cast<int>(message.integer()); break;
      case 4: tensor.original_format = static_cast<uint32_t>(message.integer()); break;
      default: message.skip();
    }
  }
}

/// OpInput and OpOutput hold the same facts; an output has the original operator as field 4, which shifts the rest.
DumpTensor read_tensor(Reader message, bool output, const std::string& where) {
  DumpTensor tensor;
  while (message.next()) {
    uint32_t tag = message.tag();
    if (output && tag == 4) {
      read_origin(Reader(message.bytes()), tensor);
      continue;
    }
    switch (output && tag > 4 ? tag - 1 : tag) {
      case 1: tensor.data_type = static_cast<int>(message.integer()); break;
      case 2: tensor.format = static_cast<uint32_t>(message.integer()); break;
      case 3: tensor.dims = read_shape(Reader(message.bytes()), where); break;
      case 4: tensor.data = message.bytes(); break;
      case 5: tensor.size = static_cast<int64_t>(message.integer()); break;
      case 6: tensor.original_dims = read_shape(Reader(message.bytes()), where); break;
      case 8: tensor.address = static_cast<int64_t>(message.integer()); break;
      default: message.skip();
    }
  }
  return tensor;
}

/// OpBuffer and Workspace: data 2, size 3; the size goes into `sizes`.
std::string_view read_block(Reader message, std::vector<uint64_t>& sizes) {
  std::string_view data;
  uint64_t size = 0;
  while (message.next()) {
    switch (message.tag()) {
      case 2: data = message.bytes(); break;
      case 3: size = message.integer(); break;
      default: message.skip();
    }
  }
  sizes.push_back(size);
  return data;
}

struct Header {
  DumpFile file;
  std::vector<uint64_t> buffer_sizes, space_sizes;
};

Header read_header(std::string_view bytes, const std::string& where) try {
  Header header;
  DumpFile& file = header.file;
  Reader reader(bytes);
  while (reader.next()) {
    switch (reader.tag()) {
      case 1: file.version = reader.bytes(); break;
      case 2: file.time = reader.integer(); break;
      case 3:
        bounded(file.outputs.size(), where);
        file.outputs.push_back(read_tensor(Reader(reader.bytes()), true, where));
        break;
      case 4:
        bounded(file.inputs.size(), where);
        file.inputs.push_back(read_tensor(Reader(reader.bytes()), false, where));
        break;
      case 5:
        bounded(file.buffers.size(), where);
        file.buffers.push_back(read_block(Reader(reader.bytes()), header.buffer_sizes));
        break;
      case 6: file.op_name = reader.bytes(); break;
      case 8:
        bounded(file.spaces.size(), where);
        file.spaces.push_back(read_block(Reader(reader.bytes()), header.space_sizes));
        break;
      default: reader.skip();
    }
  }
  return header;
} catch (const protozero::exception&) {
  damaged(where, "its protobuf header is damaged");
}

/// Gives every entry its raw bytes behind the header, in the order of the form.
void take_data(Header& header, std::string_view rest, const std::string& where) {
  auto take = [&](uint64_t size) {
    if (size > rest.size()) damaged(where, "its tensors need more bytes than it holds");
    std::string_view data = rest.substr(0, size);
    rest.remove_prefix(size);
    return data;
  };
  for (DumpTensor& tensor : header.file.inputs) tensor.data = take(static_cast<uint64_t>(tensor.size));
  for (DumpTensor& tensor : header.file.outputs) tensor.data = take(static_cast<uint64_t>(tensor.size));
  for (size_t i = 0; i < header.buffer_sizes.size(); ++i) header.file.buffers[i] = take(header.buffer_sizes[i]);
  for (size_t i = 0; i < header.space_sizes.size(); ++i) header.file.spaces[i] = take(header.space_sizes[i]);
}

uint64_t header_length(std::string_view bytes) {
  uint64_t length = 0;
  for (size_t i = 0; i < 8; ++i) length |= uint64_t{static_cast<unsigned char>(bytes[i])} << (8 * i);
  return length;
}

DumpFile read_separate(std::string_view bytes, const std::string& where) {
  if (bytes.size() < 8) damaged(where, "it is shorter than 8 bytes");
  uint64_t length = header_length(bytes);
  if (length > bytes.size() - 8) damaged(where, "its header is longer than the file");
  Header header = read_header(bytes.substr(8, length), where);
  take_data(header, bytes.substr(8 + length), where);
  return header.file;
}

void add_shape(protozero::pbf_writer& to, protozero::pbf_tag_type tag, const std::vector<int64_t>& dims) {
  std::string shape;
  protozero::pbf_writer(shape).add_packed_uint64(1, dims.begin(), dims.end());
  to.add_message(tag, shape);
}

void add_tensor(protozero::pbf_writer& file, const DumpTensor& tensor, bool output, bool with_data) {
  std::string bytes;
  protozero::pbf_writer message(bytes);
  protozero::pbf_tag_type shift = output ? 1 : 0;
  message.add_int32(1, tensor.data_type);
  message.add_int32(2, static_cast<int32_t>(tensor.format));
  add_shape(message, 3, tensor.dims);
  if (output && !tensor.original_name.empty()) {
    std::string origin;
    protozero::pbf_writer writer(origin);
    writer.add_string(1, tensor.original_name);
    writer.add_uint32(2, static_cast<uint32_t>(tensor.original_index));
    writer.add_int32(3, tensor.original_data_type);
    writer.add_int32(4, static_cast<int32_t>(tensor.original_format));
    message.add_message(4, origin);
  }
  if (with_data) message.add_bytes(4 + shift, tensor.data.data(), tensor.data.size());
  message.add_uint64(5 + shift, tensor.data.size());
  add_shape(message, 6 + shift, tensor.original_dims);
  message.add_uint64(8 + shift, static_cast<uint64_t>(tensor.address));
  file.add_message(output ? 3 : 4, bytes);
}

void add_block(protozero::pbf_writer& file, protozero::pbf_tag_type tag, std::string_view data, bool with_data) {
  std::string bytes;
  protozero::pbf_writer message(bytes);
  message.add_int32(1, 0);
  if (with_data) message.add_bytes(2, data.data(), data.size());
  message.add_uint64(3, data.size());
  file.add_message(tag, bytes);
}

struct TypeRow {
  int number;
  const char* name;
  DType dtype;
};
/// The dump numbering; quantised integers count as the integers that they are stored in.
constexpr TypeRow kTypes[] = {{1, "float32", kF32},  {2, "float16", kF16},       {27, "bfloat16", kBF16},
                              {12, "float64", kF64}, {3, "int8", kI8},           {5, "int16", kI16},
                              {7, "int32", kI32},    {8, "int64", kI64},         {4, "uint8", kU8},
                              {6, "uint16", kU16},   {9, "uint32", kU32},        {10, "uint64", kU64},
                              {11, "bool", kBool},   {16, "complex64", kC64},    {18, "qint8", kI8},
                              {19, "qint16", kI16},  {20, "qint32", kI32},       {21, "quint8", kU8},
                              {22, "quint16", kU16}, {14, "dual_sub_int8", kI8}, {15, "dual_sub_uint8", kU8}};

/// Small floating types of 8 bits: exponent and mantissa widths; `finite` has one NaN and no infinity.
struct SmallFloat {
  int number;
  const char* name;
  int exponent, mantissa, bias;
  bool finite;
};
constexpr SmallFloat kSmallFloats[] = {{34, "float8_e5m2", 5, 2, 15, false}, {35, "float8_e4m3fn", 4, 3, 7, true}};
constexpr int kE8M0 = 36;

float small_float(uint8_t bits, const SmallFloat& type) {
  int exponent = bits >> type.mantissa & ((1 << type.exponent) - 1), mantissa = bits & ((1 << type.mantissa) - 1);
  int top = (1 << type.exponent) - 1;
  float value;
  if (exponent == top && !type.finite)
    value = mantissa == 0 ? INFINITY : NAN;
  else if (exponent == top && mantissa == (1 << type.mantissa) - 1 && type.finite)
    value = NAN;
  else if (exponent == 0)
    value = std::ldexp(static_cast<float>(mantissa), 1 - type.bias - type.mantissa);
  else
    value = std::ldexp(static_cast<float>(mantissa + (1 << type.mantissa)), exponent - type.bias - type.mantissa);
  return bits & 0x80 ? -value : value;
}

Tensor from_small_floats(const DumpTensor& dumped) {
  Tensor tensor = Tensor::uninitialized(kF32, dumped.dims);
  auto values = tensor.mutable_values<float>();
  const SmallFloat* type = std::find_if(std::begin(kSmallFloats), std::end(kSmallFloats),
                                        [&](const SmallFloat& row) { return row.number == dumped.data_type; });
  for (size_t i = 0; i < values.size(); ++i) {
    uint8_t bits = static_cast<uint8_t>(dumped.data[i]);
    if (dumped.data_type == kE8M0)
      values[i] = bits == 255 ? NAN : std::ldexp(1.0f, bits - 127);
    else
      values[i] = small_float(bits, *type);
  }
  return tensor;
}

}  // namespace

DumpFile read_dump(const std::string& path, int version) {
  auto mapped = MappedFile::open(path);
  std::string_view bytes = mapped->bytes();
  if (version == 0) version = bytes.size() >= 8 && header_length(bytes) <= bytes.size() - 8 ? 2 : 1;
  DumpFile file = version == 2 ? read_separate(bytes, path) : read_header(bytes, path).file;
  if (file.inputs.empty() && file.outputs.empty() && file.buffers.empty() && file.spaces.empty())
    damaged(path, "it lists no tensor");
  file.owner = mapped;
  return file;
}

void send_dump(const DumpFile& file, int version, const FileSink& sink) {
  bool with_data = version == 1;
  std::string header;
  protozero::pbf_writer writer(header);
  writer.add_string(1, file.version);
  writer.add_uint64(2, file.time);
  for (const DumpTensor& tensor : file.outputs) add_tensor(writer, tensor, true, with_data);
  for (const DumpTensor& tensor : file.inputs) add_tensor(writer, tensor, false, with_data);
  for (std::string_view data : file.buffers) add_block(writer, 5, data, with_data);
  writer.add_string(6, file.op_name);
  for (std::string_view data : file.spaces) add_block(writer, 8, data, with_data);
  if (!with_data) {
    char length[8];
    for (int i = 0; i < 8; ++i) length[i] = static_cast<char>(uint64_t{header.size()} >> (8 * i));
    sink({length, 8});
  }
  sink(header);
  if (with_data) return;
  for (const DumpTensor& tensor : file.inputs) sink(tensor.data);
  for (const DumpTensor& tensor : file.outputs) sink(tensor.data);
  for (std::string_view data : file.buffers) sink(data);
  for (std::string_view data : file.spaces) sink(data);
}

void write_dump(const std::string& path, const DumpFile& file, int version) {
  write_file(path, [&](const FileSink& sink) { send_dump(file, version, sink); });
}

std::string dump_type_name(int data_type) {
  for (const TypeRow& row : kTypes)
    if (row.number == data_type) return row.name;
  for (const SmallFloat& row : kSmallFloats)
    if (row.number == data_type) return row.name;
  return data_type == kE8M0 ? "float8_e8m0" : fmt::format("type {}", data_type);
}

int dump_type_of(DType dtype) {
  for (const TypeRow& row : kTypes)
    if (row.dtype == dtype) return row.number;
  fail(ErrorKind::unsupported, "", "{} elements have no dump type", to_string(dtype));
}

Tensor to_tensor(const DumpTensor& dumped, const std::string& where, std::shared_ptr<const void> owner) {
  const TypeRow* row = std::find_if(std::begin(kTypes), std::end(kTypes),
                                    [&](const TypeRow& type) { return type.number == dumped.data_type; });
  bool known = row != std::end(kTypes);
  bool small = dumped.data_type == 34 || dumped.data_type == 35 || dumped.data_type == kE8M0;
  if (!known && !small)
    fail(ErrorKind::unsupported, where, "{} elements cannot be compared", dump_type_name(dumped.data_type));
  std::optional<int64_t> count = element_count(dumped.dims);
  if (!count || storage_bytes(known ? row->dtype : kU8, *count) != dumped.data.size())
    fail(ErrorKind::io, where, "holds {} bytes where its shape and type need another number", dumped.data.size());
  if (small) return from_small_floats(dumped);
  if (reinterpret_cast<uintptr_t>(dumped.data.data()) % 8 == 0 || *count == 0)
    return Tensor::view(row->dtype, dumped.dims, dumped.data.data(), std::move(owner));
  Tensor tensor = Tensor::uninitialized(row->dtype, dumped.dims);
  std::memcpy(tensor.mutable_data(), dumped.data.data(), dumped.data.size());
  return tensor;
}

DumpTensor to_dump(const Tensor& tensor) {
  DumpTensor dumped;
  dumped.data_type = dump_type_of(tensor.dtype());
  dumped.dims = dumped.original_dims = tensor.dims();
  dumped.data = {static_cast<const char*>(tensor.data()), tensor.bytes()};
  dumped.size = static_cast<int64_t>(dumped.data.size());
  return dumped;
}

}  // namespace cairn
