// CAIRN_FLOATS floats in GCC's vector type, included once for each instruction set, each time in another namespace. They
// fill one register: GCC lowers comparisons of wider vectors to scalars.
// CAIRN_VECTORISED would not work here: GCC lowers comparisons of vectors to scalars before it inlines them.

constexpr int kFloats = CAIRN_FLOATS;
constexpr bool kContracts = CAIRN_FLOATS > 4;  // products and sums become fused multiply-adds

typedef float Floats __attribute__((vector_size(4 * CAIRN_FLOATS), aligned(4), may_alias));
typedef int32_t Ints __attribute__((vector_size(4 * CAIRN_FLOATS), aligned(4), may_alias));
typedef uint32_t Words __attribute__((vector_size(4 * CAIRN_FLOATS), aligned(4), may_alias));

CAIRN_INLINE Floats load(const float* from) { return *reinterpret_cast<const Floats*>(from); }
CAIRN_INLINE void store(float* to, Floats value) { *reinterpret_cast<Floats*>(to) = value; }
/// The first `count` floats, up to a whole vector; the other lanes are `other`.
CAIRN_INLINE Floats load_first(const float* from, int64_t count, float other = 0.f) {
#if CAIRN_FLOATS == 16
  const auto mask = static_cast<unsigned short>((1u << count) - 1);
  return __builtin_ia32_loadups512_mask(from, other - Floats{}, mask);
#else
  float lanes[kFloats];
  for (int64_t lane = 0; lane < kFloats; ++lane) lanes[lane] = lane < count ? from[lane] : other;
  return load(lanes);
#endif
}
CAIRN_INLINE void store_first(float* to, int64_t count, Floats value) {
#if CAIRN_FLOATS == 16
  __builtin_ia32_storeups512_mask(to, value, static_cast<unsigned short>((1u << count) - 1));
#else
  for (int64_t lane = 0; lane < count; ++lane) to[lane] = value[lane];
#endif
}
/// A whole vector, or the first `count` lanes of one.
CAIRN_INLINE Floats take(const float* from, int64_t count) {
  return count >= kFloats ? load(from) : load_first(from, count);
}
CAIRN_INLINE void put(float* to, int64_t count, Floats value) {
  count >= kFloats ? store(to, value) : store_first(to, count, value);
}
CAIRN_INLINE Floats spread(float value) { return value - Floats{}; }  // a sum would make 0 of -0
CAIRN_INLINE Floats choose(Ints mask, Floats yes, Floats no) { return mask ? yes : no; }
CAIRN_INLINE Ints bits_of(Floats x) { return reinterpret_cast<Ints>(x); }
/// Subtraction modulo 2^32.
CAIRN_INLINE Ints minus(Ints a, Ints b) {
  return reinterpret_cast<Ints>(reinterpret_cast<Words>(a) - reinterpret_cast<Words>(b));
}
CAIRN_INLINE Ints minus(Ints a, int32_t b) { return minus(a, Ints{} + b); }
/// Addition modulo 2^32.
CAIRN_INLINE Ints added(Ints a, Ints b) {
  return reinterpret_cast<Ints>(reinterpret_cast<Words>(a) + reinterpret_cast<Words>(b));
}
/// Lane i of CAIRN_SHUFFLE is lane places[i] of a vector, or of two after one another.
#ifdef __clang__
#define CAIRN_SHUFFLE shuffle
CAIRN_INLINE Floats shuffle(Floats of, Ints places) {
  Floats result;
  for (int lane = 0; lane < kFloats; ++lane) result[lane] = of[places[lane] & (kFloats - 1)];
  return result;
}
CAIRN_INLINE Floats shuffle(Floats first, Floats second, Ints places) {
  return (places & kFloats) != 0 ? shuffle(second, places) : shuffle(first, places);
}
#else
#define CAIRN_SHUFFLE __builtin_shuffle
#endif
CAIRN_INLINE Floats floats_of(Ints bits) { return reinterpret_cast<Floats>(bits); }
/// Functions written lane by lane, which the compiler turns into one instruction.
#define CAIRN_LANES(name, function)                       \
  CAIRN_INLINE Floats name(Floats x) {                    \
    float lanes[kFloats];                                 \
    store(lanes, x);                                      \
    for (float& lane : lanes) lane = std::function(lane); \
    return load(lanes);                                   \
  }
CAIRN_LANES(root_of, sqrt)
CAIRN_LANES(floor_of, floor)
CAIRN_LANES(ceil_of, ceil)
CAIRN_LANES(round_of, nearbyint)
#undef CAIRN_LANES
/// Rounded to f16, to nearest even: numbers below its normal ones by a sum whose last place is theirs.
CAIRN_INLINE Floats half_of(Floats x) {
  const Ints sign = bits_of(x) & std::numeric_limits<int32_t>::min(), bits = bits_of(x) ^ sign;
  const Floats magnitude = floats_of(bits);
  const auto up =
      reinterpret_cast<Words>(bits) + 0xfff + reinterpret_cast<Words>((bits >> 13) & 1);  // of a NaN it wraps
  Floats y = floats_of(reinterpret_cast<Ints>(up) & -0x2000);
  y = choose(magnitude < 0x1p-14f, (magnitude + 0.5f) - 0.5f, y);
  y = choose(y > 65504.f, spread(std::numeric_limits<float>::infinity()), y);
  return choose(x != x, x + x, floats_of(bits_of(y) | sign));
}
/// Rounded to bf16, to nearest even; a NaN stays one. Denormals are rounded as well, whatever additions do with them.
CAIRN_INLINE Floats brain_of(Floats x) {
  const Ints bits = bits_of(x), odd = (bits >> 16) & 1;
  return choose(x != x, x + x, floats_of(added(bits, odd + 0x7fff) & -0x10000));
}
/// Conversion to integers, rounding toward zero, and back.
CAIRN_INLINE Ints to_ints(Floats x) { return __builtin_convertvector(x, Ints); }
CAIRN_INLINE Floats to_floats(Ints x) { return __builtin_convertvector(x, Floats); }
/// y, and where the mask is set what one_by_one makes of x.
template <class Op>
CAIRN_INLINE Floats by_library(Ints where, Op op, Floats x, Floats y) {
  int32_t any = 0;
  for (int lane = 0; lane < kFloats; ++lane) any |= where[lane];
  for (int lane = 0; any && lane < kFloats; ++lane)
    if (where[lane]) y[lane] = one_by_one(op, x[lane], y[lane]);
  return y;
}
/// x 2^n for whole n from -254 to 129.
CAIRN_INLINE Floats times_power(Floats x, Floats n) {
#if CAIRN_FLOATS == 16
  return __builtin_ia32_scalefps512_mask(x, n, x, -1, 4);
#else
  const Ints whole = to_ints(n), half = whole >> 1;  // in two steps, whose powers are normal numbers
  return x * floats_of((half + 127) << 23) * floats_of((whole - half + 127) << 23);
#endif
}
