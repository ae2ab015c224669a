#include "engines/cpu/integer_division.h"

#include "engines/cpu/isa.h"
#include "ops/kernels.h"

namespace cairn {

namespace {

template <class T>
T quotient(T x, T y) {
  if constexpr (std::is_signed_v<T>)
    if (y == -1) return wrapped(T(0), x, std::minus<>());
  return static_cast<T>(x / y);
}
template <class T>
T rest(T x, T y) {
  if constexpr (std::is_signed_v<T>)
    if (y == -1) return 0;
  return static_cast<T>(x % y);
}

template <Division kDivision, class T>
T divided(T x, T y) {
  if constexpr (kDivision == Division::truncate_div) return quotient(x, y);
  if constexpr (kDivision == Division::truncate_mod) return rest(x, y);
  const bool turns = rest(x, y) != 0 && (x < 0) != (y < 0);
  if constexpr (kDivision == Division::floor_div) return static_cast<T>(quotient(x, y) - turns);
  return static_cast<T>(rest(x, y) + (turns ? y : T(0)));
}

constexpr int64_t kExact = int64_t{1} << 52;  // a quotient of smaller numbers never rounds up to a whole one

template <class T>
CAIRN_INLINE bool all_exact(int64_t count, const T* x) {
  uint64_t outside = 0;
  for (int64_t i = 0; i < count; ++i) outside |= (static_cast<uint64_t>(x[i]) + kExact) >> 53;
  return outside == 0;
}

/// By a divisor other than 0 and -1; all numbers are exact.
template <Division kDivision, class T>
CAIRN_INLINE void divide_exact(int64_t count, const T* x, double divisor, T* result) {
#pragma GCC ivdep
  for (int64_t i = 0; i < count; ++i) {
    const auto a = static_cast<double>(x[i]);
    const auto quotient = static_cast<double>(static_cast<T>(a / divisor));
    const double rest = a - quotient * divisor;
    const bool turns = (rest != 0) & ((rest < 0) != (divisor < 0));
    if constexpr (kDivision == Division::truncate_div) result[i] = static_cast<T>(quotient);
    if constexpr (kDivision == Division::truncate_mod) result[i] = static_cast<T>(rest);
    if constexpr (kDivision == Division::floor_div) result[i] = static_cast<T>(quotient - (turns ? 1. : 0.));
    if constexpr (kDivision == Division::mod) result[i] = static_cast<T>(rest + (turns ? divisor : 0.));
  }
}

template <Division kDivision, class T>
void divide_as(int64_t count, const T* x, int64_t x_step, const T* y, int64_t y_step, T* result) {
  constexpr int64_t kPiece = 512;
  int64_t done = 0;
  if constexpr (std::is_same_v<T, int32_t> || std::is_same_v<T, int64_t>)
    if (x_step == 1 && y_step == 0 && *y != -1 && all_exact(1, y))
      for (int64_t many; done < count; done += many) {
        many = std::min(kPiece, count - done);
        if (sizeof(T) == 8 && !Vectorised<all_exact<T>>()(many, x + done)) break;
        Vectorised<divide_exact<kDivision, T>>()(many, x + done, static_cast<double>(*y), result + done);
      }
  for (; done < count; ++done) result[done] = divided<kDivision>(x[done * x_step], y[done * y_step]);
}

}  // namespace

std::optional<Division> division_of(const Node& node) {
  if (node.is("truncate_div")) return Division::truncate_div;
  if (node.is("truncate_mod")) return Division::truncate_mod;
  if (node.is("floor_div")) return Division::floor_div;
  if (node.is("mod")) return Division::mod;
  return std::nullopt;
}

template <class T>
void divide(Division division, int64_t count, const T* x, int64_t x_step, const T* y, int64_t y_step, T* result) {
  const auto as = [&](auto which) { divide_as<which()>(count, x, x_step, y, y_step, result); };
  switch (division) {
    case Division::truncate_div: return as(std::integral_constant<Division, Division::truncate_div>());
    case Division::truncate_mod: return as(std::integral_constant<Division, Division::truncate_mod>());
    case Division::floor_div: return as(std::integral_constant<Division, Division::floor_div>());
    case Division::mod: return as(std::integral_constant<Division, Division::mod>());
  }
}

#define CAIRN_DIVIDE(T) template void divide(Division, int64_t, const T*, int64_t, const T*, int64_t, T*);
CAIRN_DIVIDE(int8_t)
CAIRN_DIVIDE(int16_t)
CAIRN_DIVIDE(int32_t)
CAIRN_DIVIDE(int64_t)
CAIRN_DIVIDE(uint8_t)
CAIRN_DIVIDE(uint16_t)
CAIRN_DIVIDE(uint32_t)
CAIRN_DIVIDE(uint64_t)
#undef CAIRN_DIVIDE

}  // namespace cairn
