// Helpers of reference kernels: element types, dispatch by dtype, strided loops. They are simple on purpose; the fast
// kernels are in the engines.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <type_traits>

#include "ir/op_def.h"
#include "ops/shapes.h"
#include "support/memory.h"
#include "support/stop.h"

namespace cairn {

/// 16-bit floats: every read widens to f32, every write rounds once to nearest even.
struct Half {
  uint16_t bits = 0;
  Half() = default;
  Half(float value) : bits(float_to_half(value)) {}       // NOLINT: an element is its value
  operator float() const { return half_to_float(bits); }  // NOLINT
};
struct BFloat {
  uint16_t bits = 0;
  BFloat() = default;
  BFloat(float value) : bits(float_to_bfloat(value)) {}     // NOLINT
  operator float() const { return bfloat_to_float(bits); }  // NOLINT
};

template <class T>
inline constexpr bool kIsFloat = std::is_floating_point_v<T> || std::is_same_v<T, Half> || std::is_same_v<T, BFloat>;
/// The type of arithmetic: f32 for 16-bit floats, the element type for others.
template <class T>
using Compute = std::conditional_t<kIsFloat<T> && sizeof(T) == 2, float, T>;
/// The type of accumulators.
template <class T>
using Sum = std::conditional_t<kIsFloat<T>, double, T>;

namespace detail {
template <class F>
bool with_float(DType dtype, F&& f) {
  if (dtype == kF32) return f(float()), true;
  if (dtype == kF64) return f(double()), true;
  if (dtype == kF16) return f(Half()), true;
  if (dtype == kBF16) return f(BFloat()), true;
  return false;
}
template <class F>
bool with_integer(DType dtype, F&& f) {
  if (dtype == kI32) return f(int32_t()), true;
  if (dtype == kI64) return f(int64_t()), true;
  if (dtype == kI8) return f(int8_t()), true;
  if (dtype == kI16) return f(int16_t()), true;
  if (dtype == kU8) return f(uint8_t()), true;
  if (dtype == kU16) return f(uint16_t()), true;
  if (dtype == kU32) return f(uint32_t()), true;
  if (dtype == kU64) return f(uint64_t()), true;
  return false;
}
inline void refuse(bool done, DType dtype) { CHECK(done, "the shape rule let {} pass", to_string(dtype)); }
}  // namespace detail

/// Calls f(T()) with the C++ type of the elements. The shape rule has refused other dtypes.
template <class F>
void with_floats(DType dtype, F&& f) {
  detail::refuse(detail::with_float(dtype, f), dtype);
}
template <class F>
void with_integers(DType dtype, F&& f) {
  detail::refuse(detail::with_integer(dtype, f), dtype);
}
template <class F>
void with_numbers(DType dtype, F&& f) {
  detail::refuse(detail::with_float(dtype, f) || detail::with_integer(dtype, f), dtype);
}
/// Bools are bytes of 0 and 1.
template <class F>
void with_numbers_or_bool(DType dtype, F&& f) {
  with_numbers(dtype == kBool ? kU8 : dtype, f);
}
/// For ops that only move elements: dispatches on their width, or on strings.
template <class F>
void with_elements(DType dtype, F&& f) {
  if (dtype == kString) return f(std::string());
  if (dtype.bits == 8) return f(uint8_t());
  if (dtype.bits == 16) return f(uint16_t());
  if (dtype.bits == 32) return f(uint32_t());
  if (dtype.bits == 64) return f(uint64_t());
  if (dtype.bits == 128) return f(std::array<uint64_t, 2>());
  detail::refuse(false, dtype);
}

/// Allocates all results with the dims that the shape rule gives for the actual operands.
inline void allocate_results(KernelContext& context) {
  auto types = context.infer();
  for (size_t i = 0; i < types.size(); ++i) context.allocate(i, types[i].dtype, types[i].shape.sizes());
}

/// Row-major strides in elements.
inline Dims strides_of(const Dims& dims) {
  Dims strides(dims.size());
  uint64_t stride = 1;  // may wrap when another dim is 0; then there are no elements
  for (size_t i = dims.size(); i-- > 0;) {
    strides[i] = static_cast<int64_t>(stride);
    stride *= static_cast<uint64_t>(dims[i]);
  }
  return strides;
}
/// Strides of a tensor of dims `from` broadcast to the dims `to`; 0 along repeated axes.
inline Dims broadcast_strides(const Dims& from, const Dims& to) {
  Dims own = strides_of(from), strides(to.size(), 0);
  size_t lead = to.size() - from.size();
  for (size_t i = 0; i < from.size(); ++i)
    if (from[i] != 1) strides[lead + i] = own[i];
  return strides;
}

/// Product of dims[first .. last).
inline int64_t count_between(const Dims& dims, size_t first, size_t last) {
  uint64_t count = 1;  // may wrap when another dim is 0; then the tensor has no elements
  for (size_t i = first; i < last; ++i) count *= static_cast<uint64_t>(dims[i]);
  return static_cast<int64_t>(count);
}
inline int64_t count_of(const Dims& dims) { return count_between(dims, 0, dims.size()); }

/// Calls visit(n, offsets) for every position of `dims` in row-major order: n counts the positions, offsets[k] is the
/// element offset in operand k, which has strides[k].
template <size_t N, class Visit>
void walk(const Dims& dims, const std::array<Dims, N>& strides, Visit&& visit) {
  const int64_t count = count_of(dims);
  std::array<int64_t, N> offsets{};
  Dims index(dims.size(), 0);
  for (const int64_t n : turns(count)) {
    visit(n, offsets);
    for (size_t d = dims.size(); d-- > 0;) {
      for (size_t k = 0; k < N; ++k) offsets[k] += strides[k][d];
      if (++index[d] < dims[d]) break;
      for (size_t k = 0; k < N; ++k) offsets[k] -= strides[k][d] * dims[d];
      index[d] = 0;
    }
  }
}

template <class T>
const T* data(const Tensor& tensor) {
  return static_cast<const T*>(tensor.data());
}
template <class T>
T* data(Tensor& tensor) {
  return static_cast<T*>(tensor.mutable_data());
}

/// y[i, j, ...] = x[source(0, i), source(1, j), ...], or *fill (when given) if a source is negative. When y has more
/// dims than x, x is repeated along the leading ones; `source` is called with axes of x only.
template <class Source>
void take_along_axes(const Tensor& x, Tensor& y, Source&& source, const Tensor* fill = nullptr) {
  if (y.count() == 0) return;
  const size_t lead = y.rank() - x.rank();
  const Dims strides = strides_of(x.dims());
  std::vector<Dims> offsets(y.rank());  // per axis of y: the offset in x of each index; -1: outside
  for (size_t d = 0; d < y.rank(); ++d) {
    offsets[d].assign(static_cast<size_t>(y.dims()[d]), 0);
    for (size_t i = 0; d >= lead && i < offsets[d].size(); ++i) {
      int64_t at = source(d - lead, static_cast<int64_t>(i));
      offsets[d][i] = at < 0 ? -1 : at * strides[d - lead];
    }
  }
  with_elements(x.dtype(), [&](auto tag) {
    using T = decltype(tag);
    const T* from = data<T>(x);
    T* to = data<T>(y);
    Dims index(y.rank(), 0);
    for (const int64_t n : turns(y.count())) {
      int64_t at = 0;
      for (size_t d = 0; d < index.size() && at >= 0; ++d)
        at = offsets[d][static_cast<size_t>(index[d])] < 0 ? -1 : at + offsets[d][static_cast<size_t>(index[d])];
      to[n] = at < 0 ? *data<T>(*fill) : from[at];
      for (size_t d = index.size(); d-- > 0;) {
        if (++index[d] < y.dims()[d]) break;
        index[d] = 0;
      }
    }
  });
}

/// Copies the elements of x to y in row-major order.
inline void copy_elements(const Tensor& x, Tensor& y) {
  with_elements(x.dtype(), [&](auto tag) {
    using T = decltype(tag);
    if constexpr (std::is_trivially_copyable_v<T>)
      copy_bytes(data<T>(y), data<T>(x), static_cast<size_t>(x.count()) * sizeof(T));
    else
      std::copy_n(data<T>(x), x.count(), data<T>(y));
  });
}

/// An integer operation with two's complement wrap-around, done without overflow.
template <class T>
using Unsigned = std::make_unsigned_t<T>;
template <class T, class F>
T wrapped(T a, T b, F&& f) {
  using Wide = std::conditional_t<(sizeof(T) < 4), uint32_t, Unsigned<T>>;
  return static_cast<T>(f(static_cast<Wide>(a), static_cast<Wide>(b)));
}

/// NaN when either is NaN, as TensorFlow and IEEE 754-2019 maximum.
template <class T>
T maximum(T a, T b) {
  if constexpr (std::is_floating_point_v<T>)
    if (std::isnan(a) || std::isnan(b)) return std::numeric_limits<T>::quiet_NaN();
  return a < b ? b : a;
}
template <class T>
T minimum(T a, T b) {
  if constexpr (std::is_floating_point_v<T>)
    if (std::isnan(a) || std::isnan(b)) return std::numeric_limits<T>::quiet_NaN();
  return b < a ? b : a;
}
template <class T>
bool is_nan(T value) {
  if constexpr (kIsFloat<T>) return std::isnan(static_cast<Compute<T>>(value));
  return false;
}

/// Converts a double to an element: floats round; integers truncate and saturate, NaN gives 0.
template <class T>
T saturate(double value) {
  if constexpr (kIsFloat<T>) {
    return T(static_cast<Compute<T>>(value));
  } else {
    using Limits = std::numeric_limits<T>;
    if (std::isnan(value)) return 0;
    if (value <= static_cast<double>(Limits::min())) return Limits::min();
    if (value >= static_cast<double>(Limits::max())) return Limits::max();
    return static_cast<T>(value);
  }
}

/// Converts an element to another type: floats round, floats to integers saturate, integers wrap.
template <class From, class To>
To cast_element(From x) {
  if constexpr (kIsFloat<To>)
    return To(static_cast<Compute<To>>(static_cast<Compute<From>>(x)));
  else if constexpr (kIsFloat<From>)
    return saturate<To>(static_cast<double>(x));
  else
    return static_cast<To>(x);
}

}  // namespace cairn
