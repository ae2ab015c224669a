// Sixteen floats at a time in GCC's vector type: the same source is compiled for each instruction set. All functions are
// inlined into callers that carry CAIRN_VECTORISED.
#pragma once

#include <cstdint>

namespace cairn {

typedef float Floats __attribute__((vector_size(64), aligned(4), may_alias));
typedef int32_t Ints __attribute__((vector_size(64), aligned(4), may_alias));

inline constexpr int kFloats = 16;

#define CAIRN_INLINE inline __attribute__((always_inline))

CAIRN_INLINE Floats load(const float* from) { return *reinterpret_cast<const Floats*>(from); }
CAIRN_INLINE void store(float* to, Floats value) { *reinterpret_cast<Floats*>(to) = value; }
CAIRN_INLINE Floats spread(float value) { return Floats{} + value; }
CAIRN_INLINE Floats choose(Ints mask, Floats yes, Floats no) {
  return reinterpret_cast<Floats>((mask & reinterpret_cast<Ints>(yes)) | (~mask & reinterpret_cast<Ints>(no)));
}
/// The larger, or the NaN if either is one.
CAIRN_INLINE Floats larger(Floats a, Floats b) { return choose((a > b) | (a != a), a, b); }
CAIRN_INLINE Floats smaller(Floats a, Floats b) { return choose((a < b) | (a != a), a, b); }

/// exp to about 1 ulp: x = n ln 2 + r, Taylor polynomial of degree 7 in r (|r| <= 0.347: remainder below 2^-24), 2^n in
/// two steps so that results down to the smallest normal come out right; below that zero, above the range infinity.
CAIRN_INLINE Floats exp_of(Floats x) {
  Floats clamped = choose(x > 89.f, spread(89.f), x);
  clamped = choose(clamped < -88.f, spread(-88.f), clamped);
  Floats n = (clamped * 1.44269504088896341f + 12582912.f) - 12582912.f;
  Floats r = clamped - n * 0.693359375f;
  r = r + n * 2.12194440e-4f;
  Floats p = spread(1.f / 5040);
  p = p * r + 1.f / 720;
  p = p * r + 1.f / 120;
  p = p * r + 1.f / 24;
  p = p * r + 1.f / 6;
  p = p * r + 0.5f;
  p = p * r + 1.f;
  p = p * r + 1.f;
  Ints whole = __builtin_convertvector(n, Ints);
  Ints half = whole >> 1;
  Floats first = reinterpret_cast<Floats>((half + 127) << 23);
  Floats second = reinterpret_cast<Floats>((whole - half + 127) << 23);
  Floats result = p * first * second;
  result = choose(x < -87.33654f, Floats{}, result);
  return choose(x != x, x, result);
}

CAIRN_INLINE Floats sigmoid_of(Floats x) { return 1.f / (1.f + exp_of(-x)); }

/// Series up to x^15 below 0.5 (next term under 2^-25 of x), 1 - 2 / (exp(2|x|) + 1) above.
CAIRN_INLINE Floats tanh_of(Floats x) {
  Floats square = x * x;
  Floats p = spread(-929569.f / 638512875);
  p = p * square + 21844.f / 6081075;
  p = p * square - 1382.f / 155925;
  p = p * square + 62.f / 2835;
  p = p * square - 17.f / 315;
  p = p * square + 2.f / 15;
  p = p * square - 1.f / 3;
  Floats small = x + x * square * p;
  Floats magnitude = choose(x < 0.f, -x, x);
  Floats large = 1.f - 2.f / (exp_of(2.f * magnitude) + 1.f);
  large = choose(x < 0.f, -large, large);
  return choose(magnitude < 0.5f, small, large);
}

}  // namespace cairn
