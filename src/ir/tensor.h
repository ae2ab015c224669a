// A dense tensor in host memory: the constants of a module, and the inputs and results of reference kernels and of the
// public interfaces.
#pragma once

#include <cstring>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "ir/types.h"
#include "support/error.h"

namespace cairn {

/// Row-major elements, 64-byte aligned when allocated here. Copies share the elements: write only to a tensor that was
/// just made. The elements of a string tensor are std::string.
class Tensor {
 public:
  Tensor() = default;
  /// Zero-filled (strings: empty). Throws Error out_of_memory.
  static Tensor zeros(DType dtype, std::vector<int64_t> dims);
  /// The elements are not initialised: the caller writes all of them.
  static Tensor uninitialized(DType dtype, std::vector<int64_t> dims);
  /// Refers to elements that `owner` keeps alive.
  static Tensor view(DType dtype, std::vector<int64_t> dims, const void* data, std::shared_ptr<const void> owner);
  template <class T>
  static Tensor of(DType dtype, std::vector<int64_t> dims, const std::vector<T>& values);
  static Tensor of_i64(const std::vector<int64_t>& values) {
    return of(kI64, {static_cast<int64_t>(values.size())}, values);
  }
  static Tensor scalar_i64(int64_t value) { return of<int64_t>(kI64, {}, {value}); }
  static Tensor scalar_f32(float value) { return of<float>(kF32, {}, {value}); }

  bool defined() const { return data_ != nullptr; }
  DType dtype() const { return dtype_; }
  const std::vector<int64_t>& dims() const { return dims_; }
  size_t rank() const { return dims_.size(); }
  int64_t count() const { return count_; }
  size_t bytes() const { return storage_bytes(dtype_, count_); }
  Type type() const { return Type::tensor(dtype_, Shape::of(dims_)); }
  const void* data() const { return data_; }
  void* mutable_data() { return const_cast<void*>(data_); }
  const std::shared_ptr<const void>& owner() const { return owner_; }

  template <class T>
  std::span<const T> values() const {
    return {static_cast<const T*>(data_), static_cast<size_t>(count_)};
  }
  template <class T>
  std::span<T> mutable_values() {
    return {static_cast<T*>(mutable_data()), static_cast<size_t>(count_)};
  }
  /// Integers of any width (or bools) as int64; requires an integer or boolean dtype.
  std::vector<int64_t> as_i64() const;
  /// Numbers of any dtype as double; requires a numeric or boolean dtype.
  std::vector<double> as_f64() const;
  /// The same elements under other dims of equal count.
  Tensor reshaped(std::vector<int64_t> dims) const;
  /// This tensor when it owns its elements, else a copy that does: for values that outlive the run that made them.
  Tensor owned() const;
  /// Same dtype, dims and bits (strings: equal text).
  bool same_bits(const Tensor& other) const;

 private:
  DType dtype_ = kF32;
  std::vector<int64_t> dims_;
  int64_t count_ = 0;
  const void* data_ = nullptr;
  std::shared_ptr<const void> owner_;
};

template <class T>
Tensor Tensor::of(DType dtype, std::vector<int64_t> dims, const std::vector<T>& values) {
  Tensor tensor = uninitialized(dtype, std::move(dims));
  CHECK(tensor.count() == static_cast<int64_t>(values.size()), "{} values", values.size());
  if constexpr (std::is_same_v<T, std::string>)
    std::copy(values.begin(), values.end(), static_cast<std::string*>(tensor.mutable_data()));
  else if (!values.empty())
    std::memcpy(tensor.mutable_data(), values.data(), values.size() * sizeof(T));
  return tensor;
}

float half_to_float(uint16_t bits);
uint16_t float_to_half(float value);  // round to nearest even
inline float bfloat_to_float(uint16_t bits) {
  uint32_t wide = static_cast<uint32_t>(bits) << 16;
  float value;
  std::memcpy(&value, &wide, 4);
  return value;
}
uint16_t float_to_bfloat(float value);  // round to nearest even

}  // namespace cairn
