// The inner loops of kernels.cpp, included once for the baseline and once for AVX2 with FMA, each time in another
// namespace. Both give the same bits, except for the last bits of the divergence and the deviations. Needs kBlock,
// kLanes and CAIRN_FMA (0 or 1).

using Floats = float __attribute__((vector_size(32)));
using Ints = int32_t __attribute__((vector_size(32)));
using FourFloats = float __attribute__((vector_size(16)));
using Doubles = double __attribute__((vector_size(32)));

template <class Vector>
INLINE Vector load(const float* from) {
  Vector value;
  std::memcpy(&value, from, sizeof value);
  return value;
}

INLINE Floats absolute(Floats value) { return (Floats)((Ints)value & 0x7fffffff); }
#if CAIRN_FMA
INLINE Floats larger(Floats a, Floats b) { return _mm256_max_ps(a, b); }
INLINE Floats smaller(Floats a, Floats b) { return _mm256_min_ps(a, b); }
INLINE Floats multiply_add(Floats a, Floats b, Floats c) { return _mm256_fmadd_ps(a, b, c); }
INLINE Doubles multiply_add(Doubles a, Doubles b, Doubles c) { return _mm256_fmadd_pd(a, b, c); }
#else
INLINE Floats larger(Floats a, Floats b) { return a > b ? a : b; }
INLINE Floats smaller(Floats a, Floats b) { return a < b ? a : b; }
INLINE Floats multiply_add(Floats a, Floats b, Floats c) { return a * b + c; }
INLINE Doubles multiply_add(Doubles a, Doubles b, Doubles c) { return a * b + c; }
#endif

/// The sum of the eight lanes of a block in numpy's order.
INLINE float across(Floats r) {
  r += __builtin_shufflevector(r, r, 1, 0, 3, 2, 5, 4, 7, 6);
  r += __builtin_shufflevector(r, r, 2, 3, 0, 1, 6, 7, 4, 5);
  return r[0] + r[4];
}

/// Copies the last `count` < 8 elements and fills the remaining lanes with the first of them.
INLINE void copy_tail(const float* from, size_t count, float* to) {
  for (size_t i = 0; i < kLanes; ++i) to[i] = from[i < count ? i : 0];
}

/// A float32 sum over a block: in eight lanes, then sequentially over the remaining elements, as in numpy.
struct LaneSum {
  Floats lanes{};
  INLINE void add(Floats terms) { lanes += terms; }
  INLINE float total(Floats tail_terms, size_t tail, bool any_whole) const {
    float sum = any_whole ? across(lanes) : 0;
    for (size_t i = 0; i < tail; ++i) sum += tail_terms[i];
    return sum;
  }
};

/// Accumulators that are carried from block to block, in lanes.
struct Spread {
  Floats min, max;
  Doubles sum{}, square{}, square_high{};  // about the first element
  double origin;
  explicit Spread(float first) : min(Floats{} + first), max(min), origin(first) {}
};
struct FirstState {
  Floats max_absolute{}, max_relative{};
  Spread x, y;
};

struct FirstTerms {
  Floats xx, yy, dd, absolute_error, relative_error;
};

INLINE FirstTerms first_terms(const float* x, const float* y, FirstState& state) {
  Floats a = load<Floats>(x), b = load<Floats>(y), d = a - b;
  FirstTerms t;
  t.xx = a * a, t.yy = b * b, t.dd = d * d, t.absolute_error = absolute(d);
  t.relative_error = (Floats)((Ints)absolute(a / b - 1.0f) & (absolute(b) > static_cast<float>(kEpsilon)));
  state.max_absolute = larger(t.absolute_error, state.max_absolute);
  state.max_relative = larger(t.relative_error, state.max_relative);
  return t;
}

/// Range and moments of one tensor; a separate loop, because with the sums they would not fit the registers.
INLINE void first_moments(const float* x, size_t count, Spread& carried) {
  Spread s = carried;
  size_t whole = count / kLanes * kLanes;
#pragma GCC unroll 2
  for (size_t i = 0; i < whole; i += kLanes) {
    Floats value = load<Floats>(x + i);
    s.min = smaller(value, s.min), s.max = larger(value, s.max);
    Doubles low = __builtin_convertvector(load<FourFloats>(x + i), Doubles) - s.origin;
    Doubles high = __builtin_convertvector(load<FourFloats>(x + i + 4), Doubles) - s.origin;
    s.sum += low + high;
    s.square = multiply_add(low, low, s.square);
    s.square_high = multiply_add(high, high, s.square_high);
  }
  for (size_t i = whole; i < count; ++i) {
    s.min = smaller(Floats{} + x[i], s.min), s.max = larger(Floats{} + x[i], s.max);
    double d = x[i] - s.origin;
    s.sum[0] += d, s.square[0] += d * d;
  }
  carried = s;
}

INLINE FirstSums first_block(const float* x, const float* y, size_t count, FirstState& carried) {
  FirstState state = carried;
  LaneSum xx, yy, dd, ae, re;
  size_t whole = count / kLanes * kLanes, tail = count - whole;
  for (size_t i = 0; i < whole; i += kLanes) {
    FirstTerms t = first_terms(x + i, y + i, state);
    xx.add(t.xx), yy.add(t.yy), dd.add(t.dd);
    ae.add(t.absolute_error), re.add(t.relative_error);
  }
  FirstTerms t{};
  if (tail > 0) {
    float last_x[kLanes], last_y[kLanes];
    copy_tail(x + whole, tail, last_x), copy_tail(y + whole, tail, last_y);
    t = first_terms(last_x, last_y, state);
  }
  carried.max_absolute = state.max_absolute, carried.max_relative = state.max_relative;
  first_moments(x, count, carried.x);
  first_moments(y, count, carried.y);
  bool any = whole > 0;
  return {xx.total(t.xx, tail, any), yy.total(t.yy, tail, any), dd.total(t.dd, tail, any),
          ae.total(t.absolute_error, tail, any), re.total(t.relative_error, tail, any)};
}

FirstSums first_part(const float* x, const float* y, size_t count, FirstState& state) {
  if (count == kBlock) return first_block(x, y, kBlock, state);
  if (count < kBlock) return first_block(x, y, count, state);
  size_t left = count / 2 / kLanes * kLanes;
  FirstSums sums = first_part(x, y, left, state);
  return sums + first_part(x + left, y + left, count - left, state);
}

Moments moments(const Spread& s, double count) {
  Moments out{s.min[0], s.max[0], 0, 0};
  for (size_t i = 1; i < kLanes; ++i) out.min = std::min(out.min, s.min[i]), out.max = std::max(out.max, s.max[i]);
  double shift = ((s.sum[0] + s.sum[1]) + (s.sum[2] + s.sum[3])) / count;
  out.mean = s.origin + shift;
  Doubles square = s.square + s.square_high;
  out.variance = ((square[0] + square[1]) + (square[2] + square[3])) / count - shift * shift;
  if (out.variance < 0) out.variance = 0;
  return out;
}

FirstPass first(const float* x, const float* y, size_t count) {
  FirstState state{{}, {}, Spread(x[0]), Spread(y[0])};
  FirstSums sums = first_part(x, y, std::min(count, kChunk), state);
  for (size_t at = kChunk; at < count; at += kChunk)
    sums = sums + first_part(x + at, y + at, std::min(count - at, kChunk), state);
  FirstPass out{sums, 0, 0, moments(state.x, static_cast<double>(count)), moments(state.y, static_cast<double>(count))};
  for (size_t i = 0; i < kLanes; ++i) {
    out.max_absolute = std::max(out.max_absolute, state.max_absolute[i]);
    out.max_relative = std::max(out.max_relative, state.max_relative[i]);
  }
  return out;
}

/// Repeated division by one number. For `plain` divisors, which are so small or large that the reciprocal or a
/// remainder could leave the range of normal numbers, it uses the division instruction.
struct Divisor {
  Floats value, reciprocal;
  bool plain;
  INLINE explicit Divisor(float divisor) : value(Floats{} + divisor), reciprocal(Floats{} + 1.0f / divisor) {
    plain = !(divisor > 0x1p-60f && divisor < 0x1p60f);
  }
  /// Correctly rounded.
  INLINE Floats divide(Floats v, [[maybe_unused]] bool any_plain) const {
#if CAIRN_FMA  // Markstein's theorem: one step from a correctly rounded reciprocal is correctly rounded
    if (!any_plain) {
      Floats quotient = v * reciprocal;
      return _mm256_fmadd_ps(_mm256_fnmadd_ps(quotient, value, v), reciprocal, quotient);
    }
#endif
    return v / value;
  }
  INLINE Floats scale(Floats v, bool any_plain) const { return any_plain ? v / value : v * reciprocal; }
};
struct Divisors {
  Divisor norm_x, norm_y, range_x, range_y;
  INLINE explicit Divisors(const SecondScales& s)
      : norm_x(s.norm_x), norm_y(s.norm_y), range_x(s.range_x), range_y(s.range_y) {}
  bool any_plain() const { return norm_x.plain || norm_y.plain || range_x.plain || range_y.plain; }
};

/// ln of a positive normal value, error below 1e-7 (polynomial of Cephes logf, S. Moshier); meaningless for other
/// values.
INLINE Floats natural_log(Floats v) {
  Ints bits = (Ints)v;
  Ints exponent = (bits - 0x3f3504f3) >> 23;  // of the mantissa in [sqrt(1/2), sqrt(2))
  Floats m = (Floats)(bits - (exponent << 23)) - 1.0f;
  Floats e = __builtin_convertvector(exponent, Floats);
  Floats m2 = m * m, m4 = m2 * m2;
  auto both = [&](float high, float low) { return multiply_add(Floats{} + high, m, Floats{} + low); };
  Floats low = multiply_add(both(-1.6668057665e-1f, 2.0000714765e-1f), m2, both(-2.4999993993e-1f, 3.3333331174e-1f));
  Floats high = multiply_add(both(-1.1514610310e-1f, 1.1676998740e-1f), m2, both(-1.2420140846e-1f, 1.4249322787e-1f));
  high = multiply_add(Floats{} + 7.0376836292e-2f, m4, high);
  Floats p = multiply_add(high, m4, low) * (m * m2);
  p = multiply_add(e, Floats{} - 2.12194440e-4f, p);
  p = multiply_add(m2, Floats{} - 0.5f, p) + m;
  return multiply_add(e, Floats{} + 0.693359375f, p);
}

struct SecondTerms {
  Floats cosine, p, q, pln;
};

INLINE SecondTerms second_terms(const float* x, const float* y, const SecondScales& s, const Divisors& by, bool plain) {
  Floats a = load<Floats>(x), b = load<Floats>(y), floor = Floats{} + kFloor;
  SecondTerms t;
  t.cosine = by.norm_x.divide(a, plain) * by.norm_y.divide(b, plain);
  t.p = larger(floor, by.range_x.scale(a - s.low_x, plain));  // NaN stays
  t.q = larger(floor, by.range_y.scale(b - s.low_y, plain));
  t.pln = t.p * natural_log(t.p / t.q);
  return t;
}

template <bool kPlain>
INLINE SecondPass second_block(const float* x, const float* y, size_t count, const SecondScales& scales) {
  const SecondScales s = scales;
  const Divisors by(s);
  LaneSum cosine;
  Floats p{}, q{}, pln{};
  size_t whole = count / kLanes * kLanes, tail = count - whole;
  for (size_t i = 0; i < whole; i += kLanes) {
    SecondTerms t = second_terms(x + i, y + i, s, by, kPlain);
    cosine.add(t.cosine);
    p += t.p, q += t.q, pln += t.pln;
  }
  SecondPass out{0, across(p), across(q), across(pln)};
  SecondTerms t{};
  if (tail > 0) {
    float last_x[kLanes], last_y[kLanes];
    copy_tail(x + whole, tail, last_x), copy_tail(y + whole, tail, last_y);
    t = second_terms(last_x, last_y, s, by, kPlain);
    for (size_t i = 0; i < tail; ++i) out.sum_p += t.p[i], out.sum_q += t.q[i], out.sum_pln += t.pln[i];
  }
  out.sum_cosine = cosine.total(t.cosine, tail, whole > 0);
  return out;
}

template <bool kPlain>
SecondPass second_part(const float* x, const float* y, size_t count, const SecondScales& scales) {
  if (count == kBlock) return second_block<kPlain>(x, y, kBlock, scales);
  if (count < kBlock) return second_block<kPlain>(x, y, count, scales);
  size_t left = count / 2 / kLanes * kLanes;
  SecondPass out = second_part<kPlain>(x, y, left, scales);
  return out + second_part<kPlain>(x + left, y + left, count - left, scales);
}

SecondPass second(const float* x, const float* y, size_t count, const SecondScales& scales) {
  auto part = Divisors(scales).any_plain() ? second_part<true> : second_part<false>;
  SecondPass out = part(x, y, std::min(count, kChunk), scales);
  for (size_t at = kChunk; at < count; at += kChunk)
    out = out + part(x + at, y + at, std::min(count - at, kChunk), scales);
  return out;
}

void halves(const uint16_t* from, float* to, size_t count) {
  for (size_t i = 0; i < count; ++i) {
    uint32_t magnitude = (from[i] & 0x7fffu) << 13, exponent = magnitude & 0x0f800000u;
    // Zero exponent: an integer times 2^-24. All ones: infinity or NaN. Else: shift the exponent.
    float denormal = static_cast<float>(static_cast<int32_t>(magnitude >> 13)) * 0x1p-24f;
    uint32_t small;
    std::memcpy(&small, &denormal, 4);
    uint32_t bits = exponent == 0 ? small : magnitude + (exponent == 0x0f800000u ? 0x70000000u : 0x38000000u);
    bits |= (from[i] & 0x8000u) << 16;
    std::memcpy(to + i, &bits, 4);
  }
}
