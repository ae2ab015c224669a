// Functions of vectors, written once for every type Floats that the including file defines: that of the loops compiled
// for each instruction set (vector_types.h), and that of element_recorder.cpp, which generates code from them at run
// time. Multiply-adds are contracted if the instruction set has them.

CAIRN_INLINE Floats magnitude_of(Floats x) { return floats_of(bits_of(x) & 0x7fffffff); }
CAIRN_INLINE Ints sign_of(Floats x) { return bits_of(x) & std::numeric_limits<int32_t>::min(); }
CAIRN_INLINE Floats with_sign(Floats x, Ints sign) { return floats_of(bits_of(x) ^ sign); }

/// The maximum; NaN if either is NaN.
CAIRN_INLINE Floats larger(Floats a, Floats b) { return choose((a > b) | (a != a), a, b); }
CAIRN_INLINE Floats smaller(Floats a, Floats b) { return choose((a < b) | (a != a), a, b); }

/// exp(r) 2^n by the Taylor polynomial of degree 7 for |r| <= 0.347, whose remainder is below 2^-24; n whole.
CAIRN_INLINE Floats exp_reduced(Floats r, Floats n) {
  Floats p = spread(1.f / 5040);
  p = p * r + 1.f / 720;
  p = p * r + 1.f / 120;
  p = p * r + 1.f / 24;
  p = p * r + 1.f / 6;
  p = p * r + 0.5f;
  p = p * r + 1.f;
  p = p * r + 1.f;
  return times_power(p, n);
}
CAIRN_INLINE Floats whole_powers(Floats x) { return (x * 1.44269504088896341f + 12582912.f) - 12582912.f; }
/// x - n ln 2
CAIRN_INLINE Floats less_powers(Floats x, Floats n) {
  const Floats r = x - n * 0.693359375f;
  return r + n * 2.12194440e-4f;
}
/// exp to about 1 ulp from -150 to 89, where denormals are flushed to zero.
CAIRN_INLINE Floats exp_within(Floats x) {
  const Floats n = whole_powers(x);
  return exp_reduced(less_powers(x, n), n);
}
CAIRN_INLINE Floats at_most(Floats x, float most) { return choose(x > most, spread(most), x); }
CAIRN_INLINE Floats at_least(Floats x, float least) { return choose(x < least, spread(least), x); }

/// Whole numbers from low to low + 255 nearest to x / scale. With fused multiply-adds the quotient is the product with the
/// reciprocal of the scale, corrected by the rest, which rounds as a division does (Markstein); bounds keep it finite.
CAIRN_INLINE Floats steps_of(Floats x, Floats scale, float reciprocal, float low) {
  const Floats near = at_most(at_least(x * spread(reciprocal), low - 1), low + 256), rest = x - near * scale;
  const Floats quotient = kContracts ? near + rest * spread(reciprocal) : x / scale;
  return round_of(at_most(at_least(quotient, low), low + 255));
}

/// Above the range infinity, below it zero.
CAIRN_INLINE Floats exp_below(Floats x) { return exp_within(at_least(x, -150.f)); }  // of x up to 89
CAIRN_INLINE Floats exp_of(Floats x) { return exp_below(at_most(x, 89.f)); }

CAIRN_INLINE Floats sigmoid_of(Floats x) { return 1.f / (1.f + exp_within(at_least(at_most(-x, 89.f), -88.f))); }

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
  Floats large = 1.f - 2.f / (exp_within(at_most(2.f * magnitude, 89.f)) + 1.f);
  large = choose(x < 0.f, -large, large);
  return choose(magnitude < 0.5f, small, large);
}

/// erf(x) / x on [-1, 1], fitted.
CAIRN_INLINE Floats erf_slope(Floats square) {
  Floats p = spread(-9.673590284e-06f);
  for (float c : {0.00011268253729f, -0.00084843963850f, 0.0052210530923f, -0.026865437627f, 0.1128378287f,
                  -0.37612637877f, 1.1283792257f})
    p = p * square + c;
  return p;
}
/// Outside [-1, 1], 1 - exp of a polynomial fitted to log(erfc). Relative error below 2e-7.
CAIRN_INLINE Floats erf_of(Floats x) {
  const Floats near = erf_slope(x * x);
  Floats magnitude = choose(x < 0.f, -x, x);
  magnitude = choose(magnitude > 4.f, spread(4.f), magnitude);
  Floats far = spread(-4.9867292517e-08f);
  for (float c : {2.7258390674e-06f, -5.6346943893e-05f, 0.00065193662886f, -0.0049437754788f, 0.026818113402f,
                  -0.11063101888f, -0.63135212660f, -1.1304624081f, 0.00036744691897f})
    far = far * magnitude + c;
  far = 1.f - exp_within(far);
  far = choose(x < 0.f, -far, far);
  return choose(x != x, x, choose(magnitude < 1.f, x * near, far));
}

/// x = m 2^e with m in [sqrt(1/2), sqrt(2)); log m = 2 artanh((m - 1) / (m + 1)). Denormals count as 0.
CAIRN_INLINE Floats log_of(Floats x) {
  Ints bits = bits_of(x);
  Ints exponent = minus(bits, 0x3f3504f3) >> 23;  // of x / sqrt(1/2)
  Floats m = floats_of(minus(bits, exponent << 23));
  Floats e = to_floats(exponent);
  Floats s = (m - 1.f) / (m + 1.f), square = s * s;
  Floats p = spread(2.f / 11);
  for (float c : {2.f / 9, 2.f / 7, 2.f / 5, 2.f / 3}) p = p * square + c;
  // Each sum has at most one product: with two, the compiler could contract either one.
  Floats result = s + s + s * (square * p);
  result = result - e * 2.12194440e-4f;
  result = result + e * 0.693359375f;
  result = choose(x > 3.4028235e38f, x, result);
  result = choose(x < 1.17549435e-38f, spread(-__builtin_inff()), result);
  return choose((x < 0.f) | (x != x), spread(__builtin_nanf("")), result);
}

/// log(1 + x), corrected for the rounding of 1 + x.
CAIRN_INLINE Floats log1p_of(Floats x) {
  Floats above = 1.f + x;
  Floats result = log_of(above) * (x / (above - 1.f));
  result = choose(above == 1.f, x, result);
  return choose((x > 3.4028235e38f) | (above == 0.f), log_of(above), result);
}

/// Series up to x^9 below 0.5, where exp(x) - 1 would lose digits.
CAIRN_INLINE Floats expm1_of(Floats x) {
  Floats p = spread(1.f / 362880);
  for (float c : {1.f / 40320, 1.f / 5040, 1.f / 720, 1.f / 120, 1.f / 24, 1.f / 6, 0.5f}) p = p * x + c;
  Floats near = x + x * x * p;
  return choose((x < 0.5f) & (x > -0.5f), near, exp_of(x) - 1.f);
}

CAIRN_INLINE Floats softplus_of(Floats x) {
  Floats magnitude = choose(x < 0.f, -x, x);
  return choose(x != x, x, choose(x > 0.f, x, Floats{}) + log1p_of(exp_of(-magnitude)));
}

/// x P(normal < x), by exp of a polynomial fitted to log P(normal < -|x|) on [0, 6], which falls ever faster behind:
/// within 9e-8 of the larger of 1 and |x|, and 5e-6 of the result from -5 on.
CAIRN_INLINE Floats gelu_of(Floats x) {
  const Floats magnitude = magnitude_of(x);
  Floats p = spread(-1.71990996e-08f);
  for (float c : {5.25375289e-07f, -6.86360601e-06f, 4.87253898e-05f, -0.000179120422f, -3.08283021e-05f,
                  0.00485335383f, -0.0363754614f, -0.31829925f, -0.797885515f, -0.69314718f})
    p = p * magnitude + c;
  const Floats below = exp_below(p);
  return x * choose(x < 0.f, below, 1.f - below);
}
CAIRN_INLINE Floats gelu_by_tanh_of(Floats x) {
  return 0.5f * x * (1.f + tanh_of(0.79788456080f * (x + 0.044715f * x * x * x)));
}

/// Functions for results that are rounded to 16 bits, of which f16 keeps 11 digits: they err by less than 2^-15, in less than half the
/// instructions. 2^x for x in [-127, 127], by the fraction around the nearest whole number; polynomials are fitted.
CAIRN_INLINE Floats power_of_two_few(Floats shifted, Floats fraction) {
  Floats p = spread(0.00957005121f);
  for (float c : {0.0559178625f, 0.240247458f, 0.693121815f, 0.999999261f}) p = p * fraction + c;
  return p * floats_of(bits_of(shifted) << 23);
}
constexpr float kWithExponent =
    12582912.f + 127;  // added to a number, makes its whole part the lowest bits, as an exponent
CAIRN_INLINE Floats sigmoid_few_of(Floats x) {
  constexpr float kScale = -1.44269504088896341f;
  const Floats within = at_least(at_most(x, 88.f), -88.f), shifted = within * kScale + kWithExponent;
  const Floats whole = shifted - kWithExponent;
  return 1.f / (1.f + power_of_two_few(shifted, within * kScale - whole));
}
/// x times a quotient of polynomials in x^2 fitted on [0, 6.5], from where on it is 1.
CAIRN_INLINE Floats tanh_few_of(Floats x) {
  const Floats within = at_least(at_most(x, 6.5f), -6.5f), square = within * within;
  Floats p = spread(0.00145353923f), q = spread(5.24523763e-05f);
  for (float c : {0.113868768f, 0.999987752f}) p = p * square + c;
  for (float c : {0.0172489637f, 0.447123022f, 1.f}) q = q * square + c;
  return within * p / q;
}
/// As gelu_of, by a polynomial fitted on [0, 6], which falls to 2^-90 at 12.
CAIRN_INLINE Floats gelu_few_of(Floats x) {
  const Floats magnitude = at_most(magnitude_of(x), 12.f);
  Floats p = spread(3.27821788e-05f);
  for (float c : {-0.000757108197f, 0.0079990918f, -0.0532007387f, -0.459005805f, -1.15110094f, -1.00000374f})
    p = p * magnitude + c;
  const Floats shifted = p + kWithExponent, below = power_of_two_few(shifted, p - (shifted - kWithExponent));
  return x * choose(x < 0.f, below, 1.f - below);
}
CAIRN_INLINE Floats gelu_by_tanh_few_of(Floats x) {
  return x * sigmoid_few_of(1.5957691216f * (x + 0.044715f * x * x * x));
}

/// yes where the number is odd, or negative.
CAIRN_INLINE Floats choose_odd(Ints number, Floats yes, Floats no) {
  return choose(floats_of((number & 1) << 30) != 0.f, yes, no);
}
CAIRN_INLINE Floats choose_negative(Ints number, Floats yes, Floats no) {
  return choose(floats_of((number >> 1) & 0x40000000) != 0.f, yes, no);
}

/// x + x s p(s) for the square s, p by its coefficients from the highest.
template <int kCount>
CAIRN_INLINE Floats odd_series(Floats x, Floats s, const float (&coefficients)[kCount]) {
  Floats p = spread(coefficients[0]);
  for (int i = 1; i < kCount; ++i) p = p * s + coefficients[i];
  return x + x * (s * p);
}

/// An angle's magnitude up to kMostAngle, less whole quarter turns: the rest is in [-pi/4, pi/4]. pi/2 is taken off in parts, the
/// first three of 11 bits, whose products with the number of turns, of 13 bits, are exact.
struct Turned {
  Floats rest;
  Ints turns;  // the lowest two bits count them
};
CAIRN_INLINE Turned turned(Floats magnitude) {
  const Floats shifted = magnitude * 0.63661977236758134f + 12582912.f, turns = shifted - 12582912.f;
  Floats rest = magnitude - turns * 1.5703125f;
  for (float part : {4.837512969970703125e-4f, 7.549533620476723e-8f, 2.5633441e-12f}) rest = rest - turns * part;
  return {rest, bits_of(shifted)};
}

/// Polynomials fitted on [-pi/4, pi/4].
CAIRN_INLINE Floats sin_within(Floats x, Floats square) {
  return odd_series(x, square, {-0.000195108382f, 0.00833213149f, -0.166666542f});
}
CAIRN_INLINE Floats cos_within(Floats square) {
  Floats p = spread(2.44312032e-05f);
  for (float c : {-0.0013887306f, 0.0416666457f}) p = p * square + c;
  const Floats start = 1.f - 0.5f * square;
  return start + square * (square * p);
}
/// The sine of an angle of this magnitude and so many quarter turns more, to about 1 ulp.
CAIRN_INLINE Floats sin_of_sum(Floats magnitude, int quarters) {
  const Turned angle = turned(magnitude);
  const Floats square = angle.rest * angle.rest;
  const Ints turns = quarters == 0 ? angle.turns : minus(angle.turns, -quarters);
  return with_sign(choose_odd(turns, cos_within(square), sin_within(angle.rest, square)), (turns & 2) << 30);
}
CAIRN_INLINE Floats sin_of(Floats x) {
  const Floats magnitude = magnitude_of(x);
  return by_library(magnitude > kMostAngle, ElementOp::sin, x, with_sign(sin_of_sum(magnitude, 0), sign_of(x)));
}
CAIRN_INLINE Floats cos_of(Floats x) {
  const Floats magnitude = magnitude_of(x);
  return by_library(magnitude > kMostAngle, ElementOp::cos, x, sin_of_sum(magnitude, 1));
}
CAIRN_INLINE Floats tan_of(Floats x) {
  const Floats magnitude = magnitude_of(x);
  const Turned angle = turned(magnitude);
  const Floats y =
      odd_series(angle.rest, angle.rest * angle.rest,
                 {0.00967652368f, 0.00261699186f, 0.0247520344f, 0.0533181954f, 0.133399677f, 0.333331095f});
  return by_library(magnitude > kMostAngle, ElementOp::tan, x,
                    with_sign(choose_odd(angle.turns, -1.f / y, y), sign_of(x)));
}

constexpr float kQuarter = 1.57079632679489662f, kQuarterRest = -4.37113883e-8f;  // pi/2 and what its rounding left

/// The angle with the tangent x in [0, 1]; fitted.
CAIRN_INLINE Floats atan_within(Floats x) {
  return odd_series(x, x * x,
                    {-0.00182718522f, 0.0110643176f, -0.031455474f, 0.0582343251f, -0.0841944627f, 0.10957572f,
                     -0.142652446f, 0.199986386f, -0.333333019f});
}
/// pi/2 - x
CAIRN_INLINE Floats quarter_less(Floats x) { return kQuarter - (x - kQuarterRest); }
CAIRN_INLINE Floats atan_of(Floats x) {
  const Floats magnitude = magnitude_of(x);
  const Floats angle = atan_within(choose(magnitude > 1.f, 1.f / magnitude, magnitude));
  return with_sign(choose(magnitude > 1.f, quarter_less(angle), angle), sign_of(x));
}
/// The angle of the point (x, y); signs of zeros count.
CAIRN_INLINE Floats atan2_of(Floats y, Floats x) {
  const Floats height = magnitude_of(y), width = magnitude_of(x);
  const Floats large = choose(height > width, height, width), small = choose(height > width, width, height);
  Floats ratio = choose(large > 0.f, small / large, large);
  ratio = choose(small > 3.4028235e38f, spread(1.f), ratio);  // both are infinite
  Floats angle = atan_within(ratio);
  angle = choose(height > width, quarter_less(angle), angle);
  angle = choose_negative(bits_of(x), 2 * kQuarter - (angle - 2 * kQuarterRest), angle);
  return choose((x != x) | (y != y), x + y, with_sign(angle, sign_of(y)));
}

/// asin of a magnitude up to 0.5; above, of sqrt((1 - magnitude) / 2), half the angle from there to pi/2. NaN above 1.
CAIRN_INLINE Floats asin_part(Floats magnitude) {
  const Floats half = 0.5f - 0.5f * magnitude, x = choose(magnitude > 0.5f, root_of(half), magnitude);
  return odd_series(x, choose(magnitude > 0.5f, half, magnitude * magnitude),
                    {0.0422185417f, 0.0241476148f, 0.0454770964f, 0.0749524178f, 0.166667539f});
}
CAIRN_INLINE Floats asin_of(Floats x) {
  const Floats magnitude = magnitude_of(x), part = asin_part(magnitude);
  return with_sign(choose(magnitude > 0.5f, quarter_less(2.f * part), part), sign_of(x));
}
CAIRN_INLINE Floats acos_of(Floats x) {
  const Floats magnitude = magnitude_of(x), part = asin_part(magnitude), twice = 2.f * part;
  const Floats outer = choose(x < 0.f, 2 * kQuarter - (twice - 2 * kQuarterRest), twice);
  return choose(magnitude > 0.5f, outer, quarter_less(with_sign(part, sign_of(x))));
}

/// exp(x) / 2 of x above 0, which ends later than exp.
CAIRN_INLINE Floats half_exp_of(Floats x) {
  const Floats most = at_most(x, 90.f), n = whole_powers(most);
  return exp_reduced(less_powers(most, n), n - 1.f);
}
/// Series fitted below 1, where the exponentials would cancel.
CAIRN_INLINE Floats sinh_of(Floats x) {
  const Floats magnitude = magnitude_of(x), half = half_exp_of(magnitude);
  const Floats near = odd_series(magnitude, magnitude * magnitude, {0.000203774059f, 0.0083302114f, 0.166667182f});
  return with_sign(choose(magnitude < 1.f, near, half - 0.25f / half), sign_of(x));
}
CAIRN_INLINE Floats cosh_of(Floats x) {
  const Floats half = half_exp_of(magnitude_of(x));
  return half + 0.25f / half;
}

/// exp of a sum whose second term is small, or the first beyond all results.
CAIRN_INLINE Floats exp_of_sum(Floats x, Floats rest) {
  const Floats within = at_least(at_most(x, 89.f), -150.f), n = whole_powers(within);
  return exp_reduced(less_powers(within, n) + choose(within == x, rest, Floats{}), n);
}
/// The first 12 of 24 digits, so that products of two such numbers are exact.
CAIRN_INLINE Floats first_digits(Floats x) { return floats_of(bits_of(x) & -0x1000); }

/// From 0.5 on exp(-x^2) times a polynomial in 1 / (1 + x / 2), fitted to 9.3, from where on it is 0; x^2 as a sum. Below -0.5, 2 less
/// that, between 1 - erf.
CAIRN_INLINE Floats erfc_of(Floats x) {
  const Floats magnitude = magnitude_of(x), high = first_digits(at_most(magnitude, 100.f));
  const Floats t = 1.f / (1.f + 0.5f * magnitude);
  Floats p = spread(0.033835377f);
  for (float c : {-0.179509031f, 0.351263885f, -0.244110386f, -0.0656467473f, 0.0632639363f, 0.0429632023f, 0.18896168f,
                  0.244578999f, 0.282313225f, 0.282085863f})
    p = p * t + c;
  const Floats rest = (high - magnitude) * (high + magnitude);
  const Floats tail = exp_of_sum(-(high * high), rest) * (p * t);
  const Floats far = choose(x < 0.f, 2.f - tail, tail);
  return choose(magnitude < 0.5f, 1.f - x * erf_slope(x * x), far);
}

/// log(x) of normal numbers as a sum, the first term of 12 digits: x = m 2^e as log_of does it, and the quotient (m - 1) / (m + 1)
/// as a sum by what its first digits leave of m - 1.
struct Sum {
  Floats high, low;
};
CAIRN_INLINE Sum log_as_sum(Floats x) {
  const Ints exponent = minus(bits_of(x), 0x3f3504f3) >> 23;
  const Floats m = floats_of(minus(bits_of(x), exponent << 23)), e = to_floats(exponent);
  const Floats above = m + 1.f, below = m - 1.f, share = 1.f / above, s = below * share;
  const Floats high = first_digits(s), above_high = first_digits(above), above_low = m - (above_high - 1.f);
  Floats left = below - high * above_high;
  left = left - high * above_low;
  const Floats low = left * share, square = s * s;
  Floats p = spread(2.f / 11);
  for (float c : {2.f / 9, 2.f / 7, 2.f / 5, 2.f / 3}) p = p * square + c;
  Floats rest = (low + low) + s * (square * p);
  rest = rest - e * 2.12194440e-4f;
  const Floats twice = high + high;
  const Floats most = first_digits((twice + e * 0.693359375f) + rest);
  return {most, ((e * 0.693359375f - most) + twice) + rest};
}

/// x^y by exp(y log x), the product as a sum; as the C library's at zeros, infinities and NaN, and below 0.
CAIRN_INLINE Floats pow_of(Floats x, Floats y) {
  constexpr float kMost = 3.4028235e38f, kSurely = 1e10f;  // of y, beyond all results but of 1
  const Floats magnitude = magnitude_of(x), one = spread(1.f), zero = spread(0.f), infinite = spread(__builtin_inff());
  const Sum log = log_as_sum(magnitude);
  const Floats power = at_least(at_most(y, kSurely), -kSurely), power_high = first_digits(power);
  const Floats rest = at_most(power * log.low, kMost) + (power - power_high) * log.high;
  const Floats product = power_high * log.high, sum = product + rest;
  Floats result = exp_of_sum(sum, (product - sum) + rest);
  result = choose(magnitude < 1.17549435e-38f, choose(y < 0.f, infinite, zero), result);
  result = choose(magnitude > kMost, choose(y < 0.f, zero, infinite), result);
  const Floats half = 0.5f * y, floor = floor_of(y);
  const Floats sign = choose((floor == y) & (floor_of(half) != half), floats_of(sign_of(x)), zero);
  result = with_sign(result, bits_of(sign));
  result = choose((x < 0.f) & (floor != y) & (magnitude <= kMost), spread(__builtin_nanf("")), result);
  result = choose((x != x) | (y != y), x + y, result);
  return choose((x == 1.f) | (y == 0.f), one, result);
}

/// x less y times their quotient, rounded toward zero, exact as the C library's. A fused multiply-add leaves what the quotient, one too
/// large at times, leaves; the library takes quotients of more digits, and operands whose rest may be no normal number.
CAIRN_INLINE Floats truncate_mod_of(Floats x, Floats y) {
  const Floats a = magnitude_of(x), b = magnitude_of(y), quotient = floor_of(a / b);
  Floats rest = a - quotient * b;
  rest = with_sign(choose(rest < 0.f, rest + b, rest), sign_of(x));
  const Floats pattern = to_floats(bits_of(a)), none = spread(__builtin_nanf(""));
  Floats called = choose((quotient >= 0x1p22f) | (b < 0x1p-100f), x, none);
  called = choose(b > 3.4028235e38f, x, called);
  called = choose((pattern > 0.f) & (pattern < 8388608.f), x, called);  // denormals, which may compare as 0
  if (!kContracts) called = x;
  return by_library(called == called, ElementOp::truncate_mod, called, choose(called == called, y, rest));
}
/// The same of a quotient that is rounded down.
CAIRN_INLINE Floats mod_of(Floats x, Floats y) {
  const Floats rest = truncate_mod_of(x, y);
  return choose(((rest < 0.f) & (y > 0.f)) | ((rest > 0.f) & (y < 0.f)), rest + y, rest);
}
/// The quotient rounded down; one that is a denormal below 0 is not taken for 0.
CAIRN_INLINE Floats floor_div_of(Floats x, Floats y) {
  const Floats quotient = x / y, scaled = (x * 0x1p64f) / y;
  return choose((quotient == 0.f) & (scaled < -0x1p-86f), spread(-1.f), floor_of(quotient));
}

/// The quotient of two polynomials, coefficients from the highest; fitted where it is used.
template <int kTop, int kBottom>
CAIRN_INLINE Floats quotient_of(Floats x, const float (&top)[kTop], const float (&bottom)[kBottom]) {
  Floats p = spread(top[0]), q = spread(bottom[0]);
  for (int i = 1; i < kTop; ++i) p = p * x + top[i];
  for (int i = 1; i < kBottom; ++i) q = q * x + bottom[i];
  return p / q;
}
template <int kCount>
CAIRN_INLINE Floats polynomial_of(Floats x, const float (&coefficients)[kCount]) {
  Floats p = spread(coefficients[0]);
  for (int i = 1; i < kCount; ++i) p = p * x + coefficients[i];
  return p;
}

constexpr float kLogOf2 = 0.69314718056f;

/// The logarithm of x + sqrt(x^2 + 1), by the magnitude; far out that of 2x.
CAIRN_INLINE Floats asinh_of(Floats x) {
  const Floats magnitude = magnitude_of(x), square = magnitude * magnitude;
  const Floats near = log1p_of(magnitude + square / (1.f + root_of(square + 1.f)));
  return with_sign(choose(magnitude > 1e8f, log_of(magnitude) + kLogOf2, near), sign_of(x));
}
CAIRN_INLINE Floats acosh_of(Floats x) {
  const Floats above = x - 1.f, near = log1p_of(above + root_of(above * (x + 1.f)));
  return choose(x > 1e8f, log_of(x) + kLogOf2, choose(x < 1.f, spread(__builtin_nanf("")), near));
}
CAIRN_INLINE Floats atanh_of(Floats x) {
  const Floats magnitude = magnitude_of(x);
  return with_sign(0.5f * log1p_of(2.f * magnitude / (1.f - magnitude)), sign_of(x));
}

/// Above 0: up to 5 (x - 1) (x - 2) times a quotient, which keeps its digits at the zeros 1 and 2, below 1 from x + 1; then
/// Stirling's series.
CAIRN_INLINE Floats log_gamma_of(Floats x) {
  const Floats above = choose(x < 1.f, x, x - 1.f), log = log_of(x), r = 1.f / x;  // above 1, by this or by x + 1
  const Floats share = quotient_of(above, {0.000118881342f, 0.022848111f, 0.266134883f, 0.756655719f, 0.577215663f},
                                   {0.00725158807f, 0.166474001f, 0.929289466f, 1.73575835f, 1.f});
  const Floats near = (above * (above - 1.f)) * share - choose(x < 1.f, log, Floats{});
  const Floats series = polynomial_of(r * r, {1.f / 1188, -1.f / 1680, 1.f / 1260, -1.f / 360, 1.f / 12});
  const Floats far = (x - 0.5f) * (log - 1.f) + (0.418938533f + r * series);
  return by_library(x <= 0.f, ElementOp::log_gamma, x, choose(x > 5.f, far, near));
}
/// Above 0: up to 3 the distance from the zero, a sum of two floats, times a quotient, below 1 from x + 1; then A&S 6.3.18.
CAIRN_INLINE Floats digamma_of(Floats x) {
  const Floats above = choose(x < 1.f, x, x - 1.f), r = 1.f / x;
  const Floats share = quotient_of(above, {0.00182571899f, 0.185722369f, 1.08642468f, 1.25038012f},
                                   {0.0541486255f, 0.607906907f, 1.55242135f, 1.f});
  const Floats near = ((above - 0.46163213f) - 1.24381499e-08f) * share - choose(x < 1.f, r, Floats{});
  const Floats series = polynomial_of(r * r, {691.f / 32760, -1.f / 132, 1.f / 240, -1.f / 252, 1.f / 120, -1.f / 12});
  const Floats far = log_of(x) + r * (r * series - 0.5f);
  return by_library(x <= 0.f, ElementOp::digamma, x, choose(x > 3.f, far, near));
}

/// erf_inverse(x) / x by w = -log(1 - x^2): as Giles splits it (Approximating the erfinv function, 2010), and beyond all floats x.
CAIRN_INLINE Floats inverse_slope(Floats w) {
  const Floats root = root_of(w);
  const Floats near = quotient_of(w, {0.000385696147f, 0.00626769232f, 0.055378258f, 0.309002404f, 0.886226928f},
                                  {4.33303254e-05f, 0.0015840135f, 0.0267116291f, 0.0868726102f, 1.f});
  const Floats middle = polynomial_of((root - 3.143034f) * (1 / 0.906966f),
                                      {-8.30866262e-05f, -5.69109036e-05f, 0.000731368233f, -0.00154792629f,
                                       0.00239396486f, -0.00373404405f, 0.0055714656f, 0.910563045f, 2.97642336f});
  const Floats far = quotient_of(root - 4.f, {0.0402637572f, 0.569903911f, 2.58496893f, 3.83978379f},
                                 {7.97618974e-07f, 0.0402230798f, 0.410303164f, 1.f});
  return choose(w > 1000.f, w, choose(w < 5.f, near, choose(w < 16.f, middle, far)));
}
CAIRN_INLINE Floats erf_inverse_of(Floats x) { return x * inverse_slope(-log_of((1.f - x) * (1.f + x))); }
CAIRN_INLINE Floats normal_quantile_of(Floats x) {
  return 1.41421356f * ((2.f * x - 1.f) * inverse_slope(-log_of(4.f * x * (1.f - x))));
}

/// exp(-|x|) times the modified Bessel functions: a quotient up to 8, then a polynomial in 1 / |x| over its root.
CAIRN_INLINE Floats bessel_i0e_of(Floats x) {
  const Floats magnitude = magnitude_of(x), r = 1.f / magnitude;
  const Floats near = quotient_of(
      magnitude, {0.000124861034f, 0.00675737208f, 0.0172242528f, 0.211533169f, 0.0928518214f, 0.999999947f},
      {0.00378950833f, 0.0326643401f, 0.16860685f, 0.55440129f, 1.09284931f, 1.f});
  const Floats far = polynomial_of((r - 0.063f) * (1 / 0.062f), {3.59629821e-07f, 1.59880266e-06f, 1.0885861e-05f,
                                                                 0.000134251368f, 0.00333583753f, 0.402203406f});
  return choose(magnitude > 8.f, far / root_of(magnitude), near);
}
CAIRN_INLINE Floats bessel_i1e_of(Floats x) {
  const Floats magnitude = magnitude_of(x), r = 1.f / magnitude;
  const Floats near =
      quotient_of(magnitude, {1.13454608e-05f, 0.000792264341f, 0.00315106029f, 0.0457524284f, 0.042162477f, 0.5f},
                  {0.000387561419f, 0.00481472488f, 0.0353004281f, 0.171095799f, 0.550829342f, 1.08432504f, 1.f});
  const Floats far = polynomial_of((r - 0.063f) * (1 / 0.062f), {-4.19182818e-07f, -1.95957283e-06f, -1.46924124e-05f,
                                                                 -0.000216032963f, -0.00967507032f, 0.389320445f});
  return with_sign(choose(magnitude > 8.f, far / root_of(magnitude), magnitude * near), sign_of(x));
}

/// Applies an instruction of the table (element_table.h) to vectors.
CAIRN_INLINE Floats element(ElementOp op, float low, float high, Floats x, Floats y, Floats z) {
  const Floats one = spread(1.f), zero = spread(0.f);
  switch (op) {
// clang-format off
#define CAIRN_VECTOR(name, instruction, f32) \
  case ElementOp::instruction: return f32;
#include "engines/cpu/element_table.h"
    // clang-format on
    default: return x;  // their number
  }
}
