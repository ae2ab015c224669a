#include "engines/cpu/row_order.h"

#include <cstring>

#include "engines/cpu/isa.h"
#include "ops/combine.h"

namespace cairn {

namespace {

CAIRN_VECTORISED(void, add_f32, (int64_t count, const float* __restrict from, float* __restrict to)) {
  for (int64_t j = 0; j < count; ++j) to[j] += from[j];
}
CAIRN_VECTORISED(void, subtract_f32, (int64_t count, const float* __restrict from, float* __restrict to)) {
  for (int64_t j = 0; j < count; ++j) to[j] -= from[j];
}
CAIRN_VECTORISED(void, multiply_f32, (int64_t count, const float* __restrict from, float* __restrict to)) {
  for (int64_t j = 0; j < count; ++j) to[j] *= from[j];
}
CAIRN_VECTORISED(void, largest_f32, (int64_t count, const float* __restrict from, float* __restrict to)) {
  for (int64_t j = 0; j < count; ++j) {
    const float larger = to[j] < from[j] ? from[j] : to[j];
    to[j] = from[j] != from[j] ? from[j] : larger;
  }
}
CAIRN_VECTORISED(void, least_f32, (int64_t count, const float* __restrict from, float* __restrict to)) {
  for (int64_t j = 0; j < count; ++j) {
    const float smaller = from[j] < to[j] ? from[j] : to[j];
    to[j] = from[j] != from[j] ? from[j] : smaller;
  }
}

template <auto kLoop>
void of_f32(int64_t count, const void* from, void* to) {
  kLoop(count, static_cast<const float*>(from), static_cast<float*>(to));
}

template <class T, class To, class F>
void of_any(int64_t count, const void* from, void* to) {
  using Number = Compute<To>;
  for (int64_t j = 0; j < count; ++j) {
    To& element = static_cast<To*>(to)[j];
    element = To(F()(static_cast<Number>(element), static_cast<Number>(static_cast<const T*>(from)[j])));
  }
}

template <class T, class F>
void at_places(int64_t count, const int64_t* places, const void* from, void* to) {
  using Number = Compute<T>;
  for (int64_t j = 0; j < count; ++j) {
    T& element = static_cast<T*>(to)[places[j]];
    element = T(F()(static_cast<Number>(element), static_cast<Number>(static_cast<const T*>(from)[j])));
  }
}

template <class T, class To>
CombineRow combine_any(std::string_view mode) {
  if (mode == "sub") return of_any<T, To, Subtract>;
  if (mode == "mul" || mode == "prod") return of_any<T, To, Multiply>;
  if (mode == "div") return of_any<T, To, Divide>;
  if (mode == "max") return of_any<T, To, Largest>;
  if (mode == "min") return of_any<T, To, Least>;
  return of_any<T, To, Add>;
}

template <class T>
CombineAt combine_at_any(std::string_view mode) {
  if (mode == "add") return at_places<T, Add>;
  if (mode == "mul") return at_places<T, Multiply>;
  if (mode == "max") return at_places<T, Largest>;
  if (mode == "min") return at_places<T, Least>;
  return at_places<T, Replace>;
}

CombineRow combine_f32(std::string_view mode) {
  if (mode == "sub") return of_f32<subtract_f32>;
  if (mode == "mul" || mode == "prod") return of_f32<multiply_f32>;
  if (mode == "div") return of_any<float, float, Divide>;
  if (mode == "max") return of_f32<largest_f32>;
  if (mode == "min") return of_f32<least_f32>;
  return of_f32<add_f32>;
}

}  // namespace

CombineRow combine_row(std::string_view mode, DType dtype, bool sums) {
  if (dtype == kF32) return combine_f32(mode);
  CombineRow found = nullptr;
  with_numbers(dtype, [&](auto tag) {
    using T = decltype(tag);
    found = sums ? combine_any<T, Compute<T>>(mode) : combine_any<T, T>(mode);
  });
  return found;
}

CombineAt combine_at(std::string_view mode, DType dtype) {
  CombineAt found = nullptr;
  with_numbers(dtype, [&](auto tag) { found = combine_at_any<decltype(tag)>(mode); });
  return found;
}

void copy_bytes(Executor& executor, const void* from, void* to, int64_t bytes) {
  constexpr int64_t kBlock = 256 << 10;
  if (from == to) return;
  executor.run(static_cast<int>((bytes + kBlock - 1) / kBlock), [&](int block, int) {
    const int64_t at = block * kBlock;
    std::memcpy(static_cast<char*>(to) + at, static_cast<const char*>(from) + at,
                static_cast<size_t>(std::min(kBlock, bytes - at)));
  });
}

}  // namespace cairn
