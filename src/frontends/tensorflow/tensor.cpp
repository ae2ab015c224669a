// TensorProto in all its encodings: dense content, or typed values, of which the last one may be repeated.
#include <algorithm>

#include "frontends/tensorflow/fields.h"
#include "frontends/tensorflow/graph_def.h"
#include "frontends/values.h"

namespace cairn::tensorflow {
namespace {

struct TensorFields {
  DataType dtype = kDtInvalid;
  ShapeProto shape;
  std::string_view content;
  std::string fixed;              // packed floats or doubles
  uint32_t fixed_field = 0;       // and the field they came in
  std::vector<int64_t> integers;  // every integer field, halves as bits
  std::vector<std::string_view> texts;
};

TensorFields read_fields(std::string_view bytes, ModelBytes& model) {
  TensorFields parts;
  Wire wire(bytes, "TensorProto", model);
  while (wire.next()) {
    switch (wire.field()) {
      case field::tensor::dtype: parts.dtype = static_cast<DataType>(wire.integer()); break;
      case field::tensor::shape: parts.shape = read_shape(wire.message("TensorShapeProto")); break;
      case field::tensor::content: parts.content = wire.bytes(); break;
      case field::tensor::float_val:
      case field::tensor::double_val:
      case field::tensor::scomplex_val:
      case field::tensor::dcomplex_val:
        parts.fixed_field = wire.field();
        wire.append_fixed(parts.fixed);
        break;
      case field::tensor::int_val:
      case field::tensor::int64_val:
      case field::tensor::bool_val:
      case field::tensor::half_val:
      case field::tensor::uint32_val:
      case field::tensor::uint64_val: wire.append_integers(parts.integers); break;
      case field::tensor::string_val:
        model.charge(2 * sizeof(std::string_view));
        parts.texts.push_back(wire.bytes());
        break;
      default: wire.skip();
    }
  }
  return parts;
}

/// Repeats element `filled - 1` up to the end; zero elements given mean zeros.
void splat(Tensor& tensor, size_t filled) {
  size_t size = tensor.dtype().size();
  char* data = static_cast<char*>(tensor.mutable_data());
  for (size_t i = filled; i < static_cast<size_t>(tensor.count()) && filled > 0; ++i)
    std::memcpy(data + i * size, data + (filled - 1) * size, size);
}

Tensor read_texts(const TensorFields& parts, ModelBytes& model, int64_t count, const std::string& where) {
  if (parts.texts.size() > static_cast<uint64_t>(count) || !parts.content.empty())
    fail(ErrorKind::invalid_model, where, "string tensor has {} values for {} elements", parts.texts.size(), count);
  uint64_t bytes = static_cast<uint64_t>(count) * sizeof(std::string);
  for (std::string_view text : parts.texts) bytes += text.size();
  if (!parts.texts.empty() && count > 0) {
    // The last text repeats; an overflowing product is beyond any limit anyway.
    uint64_t repeated = static_cast<uint64_t>(count) - parts.texts.size();
    if (__builtin_mul_overflow(repeated, parts.texts.back().size(), &repeated)) repeated = UINT64_MAX / 2;
    model.charge(repeated);
  }
  model.charge(bytes);
  Tensor tensor = Tensor::zeros(kString, parts.shape.dims);
  auto to = tensor.mutable_values<std::string>();
  for (size_t i = 0; i < to.size() && !parts.texts.empty(); ++i)
    to[i] = parts.texts[std::min(i, parts.texts.size() - 1)];
  return tensor;
}

Tensor read_values(const TensorFields& parts, DType dtype, const std::string& where) {
  Tensor tensor = Tensor::zeros(dtype, parts.shape.dims);
  size_t size = dtype.size();
  size_t given = parts.fixed.empty() ? parts.integers.size() : parts.fixed.size() / size;
  if (given > static_cast<uint64_t>(tensor.count()) || parts.fixed.size() % size != 0)
    fail(ErrorKind::invalid_model, where, "tensor has {} values for {} elements", given, tensor.count());
  uint32_t fixed_field = 0;
  if (dtype == kF32) fixed_field = field::tensor::float_val;
  if (dtype == kF64) fixed_field = field::tensor::double_val;
  if (dtype == kC64) fixed_field = field::tensor::scomplex_val;
  if (dtype.bits == 128) fixed_field = field::tensor::dcomplex_val;
  if (parts.fixed_field != fixed_field && !parts.fixed.empty())
    fail(ErrorKind::invalid_model, where, "tensor of {} has values of another type", to_string(parts.dtype));
  if (!parts.integers.empty() && fixed_field != 0)
    fail(ErrorKind::invalid_model, where, "tensor of {} has integer values", to_string(parts.dtype));
  if (!parts.fixed.empty()) std::memcpy(tensor.mutable_data(), parts.fixed.data(), parts.fixed.size());
  put_integers(tensor, parts.integers);
  splat(tensor, given);
  return tensor;
}

}  // namespace

Tensor read_tensor(const AttrValue& value, const std::shared_ptr<ModelBytes>& model, const std::string& where) {
  TensorFields parts = read_fields(value.tensor, *model);
  if (!value.payload.empty()) parts.content = value.payload;
  std::optional<DType> dtype = dtype_of(parts.dtype);
  if (!dtype) fail(ErrorKind::unsupported, where, "tensors of {} are not supported", to_string(parts.dtype));
  if (parts.shape.unknown_rank) fail(ErrorKind::invalid_model, where, "tensor has no shape");
  std::optional<int64_t> count = element_count(parts.shape.dims);
  if (!count) fail(ErrorKind::invalid_model, where, "tensor has more elements than can be counted, or a negative dim");
  if (*dtype == kString) return read_texts(parts, *model, *count, where);
  size_t size = dtype->size();
  if (static_cast<uint64_t>(*count) > UINT64_MAX / size / 2)
    fail(ErrorKind::invalid_model, where, "tensor of {} elements is too large", *count);
  uint64_t bytes = static_cast<uint64_t>(*count) * size;
  if (parts.content.empty()) {
    model->charge(bytes);
    return read_values(parts, *dtype, where);
  }
  if (parts.content.size() != bytes)
    fail(ErrorKind::invalid_model, where, "tensor content has {} bytes, expected {}", parts.content.size(), bytes);
  if (*dtype == kBool &&
      std::any_of(parts.content.begin(), parts.content.end(), [](char c) { return c != 0 && c != 1; }))
    fail(ErrorKind::invalid_model, where, "boolean tensor has values other than 0 and 1");
  if (reinterpret_cast<uintptr_t>(parts.content.data()) % size == 0)
    return Tensor::view(*dtype, parts.shape.dims, parts.content.data(), model);
  if (value.payload.empty()) model->charge(bytes);  // a payload lies in another file and is counted there
  return copy_of_elements(*dtype, parts.shape.dims, parts.content);
}

}  // namespace cairn::tensorflow
