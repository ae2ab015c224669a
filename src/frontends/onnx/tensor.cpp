// ONNX TensorProto: raw bytes, typed values, or bytes in another file.
#include <algorithm>
#include <charconv>

#include "frontends/onnx/external_data.h"
#include "frontends/onnx/fields.h"
#include "frontends/onnx/model.h"
#include "frontends/onnx/narrow.h"
#include "frontends/values.h"

namespace cairn::onnx {
namespace {

struct External {
  std::string_view location;
  int64_t offset = 0;
  int64_t length = -1;
};

struct Parts {
  std::vector<int64_t> dims;
  int32_t type = kUndefined;
  bool segment = false;
  std::string_view raw;
  bool has_raw = false;
  std::string fixed;  // float_data, double_data
  uint32_t fixed_field = 0;
  std::vector<int64_t> integers;
  std::vector<std::string_view> texts;
  bool external = false;
  External where;
};

int64_t number_of(std::string_view text, const std::string& where, std::string_view key) {
  int64_t value = -1;
  auto [stop, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || stop != text.data() + text.size() || value < 0)
    fail(ErrorKind::invalid_model, where, "external data has {} '{}', expected a number", key, printable(text));
  return value;
}

void read_external(Wire wire, External& external, const std::string& where) {
  std::string_view key, value;
  while (wire.next()) {
    switch (wire.field()) {
      case field::entry::key: key = wire.bytes(); break;
      case field::entry::value: value = wire.bytes(); break;
      default: wire.skip();
    }
  }
  if (key == "location") external.location = value;
  if (key == "offset") external.offset = number_of(value, where, key);
  if (key == "length") external.length = number_of(value, where, key);
}

Parts read_parts(const TensorProto& tensor, ModelBytes& model, const std::string& where) {
  Parts parts;
  Wire wire(tensor.bytes, "TensorProto", model);
  while (wire.next()) {
    switch (wire.field()) {
      case field::tensor::dims: wire.append_integers(parts.dims); break;
      case field::tensor::data_type: parts.type = static_cast<int32_t>(wire.integer()); break;
      case field::tensor::segment: parts.segment = true, wire.skip(); break;
      case field::tensor::raw_data: parts.raw = wire.bytes(), parts.has_raw = true; break;
      case field::tensor::float_data:
      case field::tensor::double_data:
        parts.fixed_field = wire.field();
        wire.append_fixed(parts.fixed);
        break;
      case field::tensor::int32_data:
      case field::tensor::int64_data:
      case field::tensor::uint64_data: wire.append_integers(parts.integers); break;
      case field::tensor::string_data:
        model.charge(2 * sizeof(std::string_view));
        parts.texts.push_back(wire.bytes());
        break;
      case field::tensor::external_data:
        read_external(wire.message("StringStringEntryProto"), parts.where, where);
        break;
      case field::tensor::data_location: parts.external = wire.integer() == 1; break;
      default: wire.skip();
    }
  }
  return parts;
}

Tensor from_bytes(const Parts& parts, DType dtype, std::string_view bytes, std::shared_ptr<ModelBytes> owner,
                  bool charge, const std::string& where) {
  uint64_t expected = static_cast<uint64_t>(*element_count(parts.dims)) * dtype.size();
  if (bytes.size() != expected)
    fail(ErrorKind::invalid_model, where, "tensor data has {} bytes, expected {}", bytes.size(), expected);
  if (dtype == kBool && std::any_of(bytes.begin(), bytes.end(), [](char c) { return c != 0 && c != 1; }))
    fail(ErrorKind::invalid_model, where, "boolean tensor has values other than 0 and 1");
  if (!bytes.empty() && reinterpret_cast<uintptr_t>(bytes.data()) % dtype.size() == 0)
    return Tensor::view(dtype, parts.dims, bytes.data(), std::move(owner));
  if (charge) owner->charge(bytes.size());
  return copy_of_elements(dtype, parts.dims, bytes);
}

Tensor from_values(const Parts& parts, DType dtype, ModelBytes& model, const std::string& where) {
  auto count = static_cast<uint64_t>(*element_count(parts.dims));
  uint64_t given = dtype == kString          ? parts.texts.size()
                   : !parts.integers.empty() ? parts.integers.size()
                                             : parts.fixed.size() / dtype.size();
  uint32_t fixed_field = 0;
  if (dtype == kF32 || dtype == kC64) fixed_field = field::tensor::float_data;
  if (dtype == kF64) fixed_field = field::tensor::double_data;
  if (given != count) fail(ErrorKind::invalid_model, where, "tensor has {} values for {} elements", given, count);
  bool wrong = dtype != kString && (fixed_field == 0 ? !parts.fixed.empty() : !parts.integers.empty());
  if (wrong || (!parts.fixed.empty() && parts.fixed_field != fixed_field))
    fail(ErrorKind::invalid_model, where, "tensor of {} has values of another type", type_name(parts.type));
  model.charge(dtype == kString ? count * sizeof(std::string) : count * dtype.size());
  Tensor tensor = Tensor::zeros(dtype, parts.dims);
  if (dtype == kString) {
    auto to = tensor.mutable_values<std::string>();
    for (size_t i = 0; i < to.size(); ++i) to[i] = parts.texts[i];
    return tensor;
  }
  if (!parts.fixed.empty()) std::memcpy(tensor.mutable_data(), parts.fixed.data(), tensor.bytes());
  put_integers(tensor, parts.integers);
  return tensor;
}

/// Elements below a byte, which lie in bytes (or in 32 bits each holding a byte) from the lowest bits on.
Tensor unpacked(const Parts& parts, DType dtype, int bits, ModelBytes& model, const std::string& where) {
  const auto count = static_cast<uint64_t>(*element_count(parts.dims)), each = static_cast<uint64_t>(8 / bits);
  const uint64_t given = parts.has_raw ? parts.raw.size() : parts.integers.size();
  if (given != (count + each - 1) / each)
    fail(ErrorKind::invalid_model, where, "tensor data has {} bytes for {} elements", given, count);
  model.charge(count);
  Tensor tensor = Tensor::uninitialized(dtype, parts.dims);
  auto to = tensor.mutable_values<uint8_t>();
  for (uint64_t i = 0; i < count; ++i) {
    const auto byte = static_cast<uint8_t>(parts.has_raw ? parts.raw[i / each] : parts.integers[i / each]);
    const int code = byte >> static_cast<int>(i % each) * bits & ((1 << bits) - 1);
    const bool negative = dtype == kI8 && code >> (bits - 1);
    to[i] = static_cast<uint8_t>(negative ? code - (1 << bits) : code);
  }
  return tensor;
}

struct SparseParts {
  TensorProto values, indices;
  std::vector<int64_t> dims;
};

SparseParts read_sparse_parts(const TensorProto& tensor, ModelBytes& model) {
  SparseParts parts;
  Wire wire(tensor.bytes, "SparseTensorProto", model);
  while (wire.next()) {
    switch (wire.field()) {
      case field::sparse_tensor::values: parts.values.bytes = wire.bytes(); break;
      case field::sparse_tensor::indices: parts.indices.bytes = wire.bytes(); break;
      case field::sparse_tensor::dims: wire.append_integers(parts.dims); break;
      default: wire.skip();
    }
  }
  return parts;
}

/// The elements of a sparse tensor, and zeros between them. Its indices are places among all elements, or rows of coordinates.
Tensor dense(const SparseParts& parts, const Model& model, const std::string& where) {
  const Tensor values = read_tensor(parts.values, model, where), indices = read_tensor(parts.indices, model, where);
  const auto count = values.count(), rank = static_cast<int64_t>(parts.dims.size());
  const bool coordinates = indices.rank() == 2;
  if (values.rank() != 1 || indices.dtype() != kI64 || (coordinates && indices.dims()[1] != rank) ||
      (!coordinates && indices.rank() != 1) || indices.dims()[0] != count)
    fail(ErrorKind::invalid_model, where, "a sparse tensor has values {} at indices {}", to_string(values.type()),
         to_string(indices.type()));
  const std::optional<int64_t> elements = element_count(parts.dims);
  if (values.dtype() == kString) fail(ErrorKind::unsupported, where, "sparse tensors of texts are not supported");
  if (!elements || static_cast<uint64_t>(*elements) > UINT64_MAX / values.dtype().size() / 2)
    fail(ErrorKind::invalid_model, where, "tensor has more elements than can be counted, or a negative dim");
  model.bytes->charge(static_cast<uint64_t>(*elements) * values.dtype().size());
  Tensor tensor = Tensor::zeros(values.dtype(), parts.dims);
  const int64_t* index = indices.values<int64_t>().data();
  const size_t size = values.dtype().size();
  for (int64_t i = 0; i < count; ++i) {
    int64_t at = coordinates ? 0 : *index++;
    bool inside = at >= 0 && at < *elements;
    for (int64_t axis = 0; coordinates && axis < rank; ++axis) {
      const int64_t place = *index++, dim = parts.dims[static_cast<size_t>(axis)];
      inside = inside && place >= 0 && place < dim;
      if (inside) at = at * dim + place;
    }
    if (!inside) fail(ErrorKind::invalid_model, where, "index {} of a sparse tensor lies outside of it", i);
    std::memcpy(static_cast<char*>(tensor.mutable_data()) + static_cast<size_t>(at) * size,
                static_cast<const char*>(values.data()) + static_cast<size_t>(i) * size, size);
  }
  return tensor;
}

}  // namespace

int32_t element_type(const TensorProto& tensor, const Model& model) {
  if (tensor.sparse) return element_type(read_sparse_parts(tensor, *model.bytes).values, model);
  Wire wire(tensor.bytes, "TensorProto", *model.bytes);
  int32_t type = kUndefined;
  while (wire.next()) {
    if (wire.field() == field::tensor::data_type)
      type = static_cast<int32_t>(wire.integer());
    else
      wire.skip();
  }
  return type;
}

Tensor read_tensor(const TensorProto& tensor, const Model& model, const std::string& where) {
  if (tensor.sparse) return dense(read_sparse_parts(tensor, *model.bytes), model, where);
  Parts parts = read_parts(tensor, *model.bytes, where);
  std::optional<DType> dtype = carrier_of(parts.type);
  if (!dtype) fail(ErrorKind::unsupported, where, "tensors of {} are not supported", type_name(parts.type));
  if (parts.segment) fail(ErrorKind::unsupported, where, "tensors in segments are not supported");
  std::optional<int64_t> count = element_count(parts.dims);
  if (!count || (dtype->size() > 0 && static_cast<uint64_t>(*count) > UINT64_MAX / dtype->size() / 2))
    fail(ErrorKind::invalid_model, where, "tensor has more elements than can be counted, or a negative dim");
  if (*dtype == kString && (parts.external || parts.has_raw))
    fail(ErrorKind::invalid_model, where, "string tensor has raw data");
  const int narrow = bits_of_narrow(parts.type);
  if (narrow != 0 && narrow < 8) {
    if (parts.external)
      fail(ErrorKind::unsupported, where, "external data of {} is not supported", type_name(parts.type));
    return unpacked(parts, *dtype, narrow, *model.bytes, where);
  }
  if (parts.external) {
    auto& file = (*model.external_files)[std::string(parts.where.location)];
    if (!file) file = open_external(model.directory, parts.where.location, where);
    uint64_t size = file->bytes().size();
    auto offset = static_cast<uint64_t>(parts.where.offset);
    if (offset > size || (parts.where.length >= 0 && static_cast<uint64_t>(parts.where.length) > size - offset))
      fail(ErrorKind::invalid_model, where, "external data at {} with {} bytes lies outside the file of {} bytes",
           parts.where.offset, parts.where.length, size);
    uint64_t length = parts.where.length >= 0 ? static_cast<uint64_t>(parts.where.length)
                                              : std::min(size - offset, static_cast<uint64_t>(*count) * dtype->size());
    return from_bytes(parts, *dtype, file->bytes().substr(offset, length), file, false, where);
  }
  if (parts.has_raw) return from_bytes(parts, *dtype, parts.raw, model.bytes, true, where);
  return from_values(parts, *dtype, *model.bytes, where);
}

}  // namespace cairn::onnx
