#include "ir/tensor.h"

#include <algorithm>
#include <cstdlib>

#include "support/memory.h"
#include "support/stop.h"

namespace cairn {

namespace {

std::shared_ptr<void> allocate(DType dtype, int64_t count, bool zero) {
  if (dtype.kind == DType::Kind::string) {
    require_memory(static_cast<size_t>(count) > SIZE_MAX / sizeof(std::string) ? SIZE_MAX
                                                                               : count * sizeof(std::string));
    auto strings = std::make_shared<std::vector<std::string>>(static_cast<size_t>(count > 0 ? count : 1));
    return {strings, strings->data()};
  }
  size_t bytes = whole_lines(storage_bytes(dtype, count));
  require_memory(bytes);
  void* data = std::aligned_alloc(kLineBytes, bytes ? bytes : kLineBytes);
  if (!data) fail(ErrorKind::out_of_memory, "", "{} bytes cannot be allocated", bytes);
  std::shared_ptr<void> memory(data, std::free);
  if (zero) clear_bytes(data, bytes);
  return memory;
}

template <class From, class To>
void widen(const Tensor& tensor, std::vector<To>& out) {
  for (From value : tensor.values<From>()) out.push_back(static_cast<To>(value)), stop_point_after(1);
}

template <class To>
bool widen_integers(const Tensor& tensor, std::vector<To>& out) {
  DType dtype = tensor.dtype();
  if (dtype == kBool || dtype == kU8) return widen<uint8_t>(tensor, out), true;
  if (dtype == kI8) return widen<int8_t>(tensor, out), true;
  if (dtype == kI16) return widen<int16_t>(tensor, out), true;
  if (dtype == kU16) return widen<uint16_t>(tensor, out), true;
  if (dtype == kI32) return widen<int32_t>(tensor, out), true;
  if (dtype == kU32) return widen<uint32_t>(tensor, out), true;
  if (dtype == kI64) return widen<int64_t>(tensor, out), true;
  if (dtype == kU64) return widen<uint64_t>(tensor, out), true;
  return false;
}

}  // namespace

Tensor Tensor::uninitialized(DType dtype, std::vector<int64_t> dims) {
  auto count = element_count(dims);
  if (!count) fail(ErrorKind::invalid_argument, "", "dims {} are not a tensor's", to_string(Shape::of(dims)));
  Tensor tensor;
  tensor.dtype_ = dtype;
  tensor.dims_ = std::move(dims);
  tensor.count_ = *count;
  auto memory = allocate(dtype, *count, false);
  tensor.data_ = memory.get();
  tensor.owner_ = std::move(memory);
  return tensor;
}

Tensor Tensor::zeros(DType dtype, std::vector<int64_t> dims) {
  Tensor tensor = uninitialized(dtype, std::move(dims));
  if (dtype.kind != DType::Kind::string) clear_bytes(tensor.mutable_data(), tensor.bytes());
  return tensor;
}

Tensor Tensor::view(DType dtype, std::vector<int64_t> dims, const void* data, std::shared_ptr<const void> owner) {
  Tensor tensor;
  auto count = element_count(dims);
  CHECK(count.has_value(), "dims {}", to_string(Shape::of(dims)));
  tensor.dtype_ = dtype;
  tensor.dims_ = std::move(dims);
  tensor.count_ = *count;
  tensor.data_ = data;
  tensor.owner_ = std::move(owner);
  return tensor;
}

std::vector<int64_t> Tensor::as_i64() const {
  std::vector<int64_t> out;
  out.reserve(static_cast<size_t>(count_));
  CHECK(widen_integers(*this, out), "dtype {}", to_string(dtype_));
  return out;
}

std::vector<double> Tensor::as_f64() const {
  std::vector<double> out;
  out.reserve(static_cast<size_t>(count_));
  if (widen_integers(*this, out)) return out;
  if (dtype_ == kF32) {
    widen<float>(*this, out);
  } else if (dtype_ == kF64) {
    widen<double>(*this, out);
  } else if (dtype_ == kF16) {
    for (uint16_t bits : values<uint16_t>()) out.push_back(half_to_float(bits));
  } else if (dtype_ == kBF16) {
    for (uint16_t bits : values<uint16_t>()) out.push_back(bfloat_to_float(bits));
  } else {
    CHECK(false, "dtype {}", to_string(dtype_));
  }
  return out;
}

Tensor Tensor::reshaped(std::vector<int64_t> dims) const {
  CHECK(element_count(dims) == count_, "{} to {}", to_string(type()), to_string(Shape::of(dims)));
  Tensor tensor = *this;
  tensor.dims_ = std::move(dims);
  return tensor;
}

Tensor Tensor::owned() const {
  if (owner_ || !data_) return *this;
  Tensor copy = uninitialized(dtype_, dims_);
  if (dtype_.kind == DType::Kind::string)
    std::copy_n(static_cast<const std::string*>(data_), count_, static_cast<std::string*>(copy.mutable_data()));
  else
    std::memcpy(copy.mutable_data(), data_, bytes());
  return copy;
}

bool Tensor::same_bits(const Tensor& other) const {
  if (dtype_ != other.dtype_ || dims_ != other.dims_) return false;
  if (dtype_.kind == DType::Kind::string) {
    auto a = values<std::string>(), b = other.values<std::string>();
    return std::equal(a.begin(), a.end(), b.begin());
  }
  return count_ == 0 || data_ == other.data_ || std::memcmp(data_, other.data_, bytes()) == 0;
}

float half_to_float(uint16_t bits) {
  uint32_t sign = static_cast<uint32_t>(bits & 0x8000) << 16, exponent = bits >> 10 & 31, mantissa = bits & 1023;
  uint32_t wide;
  if (exponent == 31) {
    wide = sign | 0x7f800000 | mantissa << 13;
  } else if (exponent == 0) {
    float value = static_cast<float>(mantissa) * 0x1p-24f;
    std::memcpy(&wide, &value, 4);
    wide |= sign;
  } else {
    wide = sign | (exponent + 112) << 23 | mantissa << 13;
  }
  float value;
  std::memcpy(&value, &wide, 4);
  return value;
}

uint16_t float_to_half(float value) {
  uint32_t wide;
  std::memcpy(&wide, &value, 4);
  uint16_t sign = static_cast<uint16_t>(wide >> 16 & 0x8000);
  uint32_t magnitude = wide & 0x7fffffff;
  if (magnitude > 0x7f800000) return sign | 0x7e00;   // NaN
  if (magnitude >= 0x477ff000) return sign | 0x7c00;  // rounds to 65520 and above: infinity
  if (magnitude < 0x38800000) {                       // below the smallest normal half: units of 2^-24
    float absolute;
    std::memcpy(&absolute, &magnitude, 4);
    float scaled = absolute * 0x1p24f + 0x1p23f;  // the addition rounds to nearest even
    uint32_t rounded;
    std::memcpy(&rounded, &scaled, 4);
    return sign | static_cast<uint16_t>(rounded - 0x4b000000);
  }
  uint32_t rounded = magnitude + 0xfff + (magnitude >> 13 & 1);
  return sign | static_cast<uint16_t>((rounded - 0x38000000) >> 13);
}

uint16_t float_to_bfloat(float value) {
  uint32_t wide;
  std::memcpy(&wide, &value, 4);
  if ((wide & 0x7fffffff) > 0x7f800000) return static_cast<uint16_t>(wide >> 16 | 0x40);
  return static_cast<uint16_t>((wide + 0x7fff + (wide >> 16 & 1)) >> 16);
}

}  // namespace cairn
