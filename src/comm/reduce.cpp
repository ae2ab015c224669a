#include "comm/reduce.h"

#include <algorithm>
#include <cmath>
#include <complex>

#include "ir/tensor.h"

namespace cairn::comm {

namespace {

struct F16 {
  using Wide = float;
  uint16_t bits;
  operator float() const { return half_to_float(bits); }
  static F16 of(float value) { return {float_to_half(value)}; }
};
struct BF16 {
  using Wide = float;
  uint16_t bits;
  operator float() const { return bfloat_to_float(bits); }
  static BF16 of(float value) { return {float_to_bfloat(value)}; }
};

template <class T>
struct Element {  // integers: unsigned arithmetic wraps
  using Wide = T;
  static T narrow(T value) { return value; }
};
template <>
struct Element<F16> {
  using Wide = float;
  static F16 narrow(float value) { return F16::of(value); }
};
template <>
struct Element<BF16> {
  using Wide = float;
  static BF16 narrow(float value) { return BF16::of(value); }
};

struct Add {
  template <class T>
  static T of(T a, T b) {
    if constexpr (std::is_integral_v<T>)
      return static_cast<T>(static_cast<uint64_t>(a) + static_cast<uint64_t>(b));
    else
      return a + b;
  }
};
struct Multiply {
  template <class T>
  static T of(T a, T b) {
    if constexpr (std::is_integral_v<T>)
      return static_cast<T>(static_cast<uint64_t>(a) * static_cast<uint64_t>(b));
    else
      return a * b;
  }
};
struct Largest {
  template <class T>
  static T of(T a, T b) {
    return a != a ? a : b != b || a < b ? b : a;
  }
};
struct Least {
  template <class T>
  static T of(T a, T b) {
    return a != a ? a : b != b || b < a ? b : a;
  }
};

/// Of two sources, one of which `to` may be.
template <class T, class Operation>
void combine_two(const T* a, const T* b, T* to, size_t count) {
#pragma GCC ivdep
  for (size_t i = 0; i < count; ++i) to[i] = Operation::of(a[i], b[i]);
}

// Blocks stay in the first cache while every source is added to them.
template <class T, class Operation>
void combine_with(std::span<const void* const> sources, void* to, size_t count, bool mean) {
  using Wide = typename Element<T>::Wide;
  if constexpr (std::is_same_v<T, Wide>)
    if (sources.size() == 2 && !mean)
      return combine_two<T, Operation>(static_cast<const T*>(sources[0]), static_cast<const T*>(sources[1]),
                                       static_cast<T*>(to), count);
  constexpr size_t kBlock = 1024;
  Wide sums[kBlock];
  for (size_t first = 0; first < count; first += kBlock) {
    const size_t size = std::min(kBlock, count - first);
    const T* begin = static_cast<const T*>(sources[0]) + first;
    for (size_t i = 0; i < size; ++i) sums[i] = static_cast<Wide>(begin[i]);
    for (size_t s = 1; s < sources.size(); ++s) {
      const T* next = static_cast<const T*>(sources[s]) + first;
      for (size_t i = 0; i < size; ++i) sums[i] = Operation::of(sums[i], static_cast<Wide>(next[i]));
    }
    if constexpr (!std::is_integral_v<T>)
      if (mean)
        for (size_t i = 0; i < size; ++i) sums[i] = sums[i] / static_cast<Wide>(static_cast<float>(sources.size()));
    T* end = static_cast<T*>(to) + first;
    for (size_t i = 0; i < size; ++i) end[i] = Element<T>::narrow(sums[i]);
  }
}

template <class T>
void combine_elements(Reduction reduction, std::span<const void* const> sources, void* to, size_t count) {
  if (reduction == Reduction::sum || reduction == Reduction::mean)
    return combine_with<T, Add>(sources, to, count, reduction == Reduction::mean);
  if (reduction == Reduction::prod) return combine_with<T, Multiply>(sources, to, count, false);
  if constexpr (!std::is_same_v<T, std::complex<float>>) {
    if (reduction == Reduction::max) return combine_with<T, Largest>(sources, to, count, false);
    return combine_with<T, Least>(sources, to, count, false);
  }
  CHECK(false, "{} of complex numbers", to_string(reduction));
}

}  // namespace

bool reducible(Reduction reduction, DType dtype) {
  if (dtype.kind == DType::Kind::string || (dtype.bits < 8 && dtype != kBool)) return false;
  const bool complex = dtype.kind == DType::Kind::complex_float;
  if (reduction == Reduction::mean) return dtype.is_float() || complex;
  return !complex || reduction == Reduction::sum || reduction == Reduction::prod;
}

void combine(Reduction reduction, DType dtype, std::span<const void* const> sources, void* to, size_t count) {
  if (dtype == kBool) {  // bytes of 0 and 1
    const bool any = reduction == Reduction::sum || reduction == Reduction::max;
    return combine_elements<uint8_t>(any ? Reduction::max : Reduction::min, sources, to, count);
  }
  const auto with = [&]<class T>(T) { combine_elements<T>(reduction, sources, to, count); };
  if (dtype == kF32) return with(float());
  if (dtype == kF64) return with(double());
  if (dtype == kF16) return with(F16());
  if (dtype == kBF16) return with(BF16());
  if (dtype == kC64) return with(std::complex<float>());
  if (dtype == kI8) return with(int8_t());
  if (dtype == kI16) return with(int16_t());
  if (dtype == kI32) return with(int32_t());
  if (dtype == kI64) return with(int64_t());
  if (dtype == kU8) return with(uint8_t());
  if (dtype == kU16) return with(uint16_t());
  if (dtype == kU32) return with(uint32_t());
  if (dtype == kU64) return with(uint64_t());
  CHECK(false, "reduction of {}", cairn::to_string(dtype));
}

}  // namespace cairn::comm
