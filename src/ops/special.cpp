// Special functions: gamma, beta, zeta, Bessel's, inverse error functions. Computed in f64, rounded once. Formulas are
// those of Abramowitz and Stegun, "Handbook of mathematical functions" (A&S), where no other source is named.
#include "ops/special.h"

#include "ops/families.h"
#include "ops/gradients.h"
#include "ops/kernels.h"
#include "ops/rows.h"

namespace cairn {

namespace {

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
constexpr double kInfinite = std::numeric_limits<double>::infinity();
constexpr double kEpsilon = std::numeric_limits<double>::epsilon();
constexpr int kMostTerms = 10000;

}  // namespace

double log_gamma(double x) {
  int sign = 0;
  return lgamma_r(x, &sign);
}

/// Reflection, recurrence up to 10, then the asymptotic series: A&S 6.3.7, 6.3.5 and 6.3.18.
double digamma(double x) {
  if (std::isinf(x)) return x > 0 ? x : kNaN;
  if (x <= 0 && x == std::floor(x)) return kNaN;
  if (x < 0) return digamma(1 - x) - M_PI / std::tan(M_PI * (x - std::nearbyint(x)));
  double sum = 0;
  for (; x < 10; ++x) sum -= 1 / x;
  const double r = 1 / (x * x);
  const double series =
      r *
      (1.0 / 12 - r * (1.0 / 120 - r * (1.0 / 252 - r * (1.0 / 240 - r * (1.0 / 132 - r * (691.0 / 32760 - r / 12))))));
  return sum + std::log(x) - 0.5 / x - series;
}

namespace {

/// y with erfc(y) = q, for q in (0, 1]: Winitzki's formula, then three steps of Halley's method.
double erfc_inverse(double q) {
  if (q == 0) return kInfinite;
  const double log = std::log(q * (2 - q)), a = 0.147, half = 2 / (M_PI * a) + log / 2;
  double y = std::sqrt(std::sqrt(half * half - log / a) - half);
  for (int i = 0; i < 3; ++i) {
    const double error = (std::erfc(y) - q) / (-M_2_SQRTPI * std::exp(-y * y));
    y -= error / (1 + y * error);
  }
  return y;
}

}  // namespace

double erf_inverse(double x) {
  if (!(std::abs(x) <= 1)) return kNaN;
  if (std::abs(x) > 0.5) return std::copysign(erfc_inverse(1 - std::abs(x)), x);
  double y = x * (std::sqrt(M_PI) / 2);
  for (int i = 0; i < 5; ++i) {
    const double error = (std::erf(y) - x) / (M_2_SQRTPI * std::exp(-y * y));
    y -= error / (1 + y * error);
  }
  return y;
}
double normal_quantile(double p) {
  if (!(p >= 0 && p <= 1)) return kNaN;
  if (p > 0.25 && p < 0.75) return M_SQRT2 * erf_inverse(2 * p - 1);
  return p < 0.5 ? -M_SQRT2 * erfc_inverse(2 * p) : M_SQRT2 * erfc_inverse(2 * (1 - p));
}

/// The power series, or from 30 on the asymptotic one: A&S 9.6.10 and 9.7.1.
double scaled_bessel(double x, int order) {
  const double z = std::abs(x), sign = order == 1 && x < 0 ? -1 : 1;
  if (std::isnan(x)) return x;
  if (std::isinf(x)) return 0;
  double term = 1, sum = 1;
  if (z < 30) {
    for (int k = 1; k < kMostTerms && term > sum * kEpsilon / 4; ++k) sum += term *= z * z / 4 / k / (k + order);
    return sign * std::exp(-z) * sum * (order == 1 ? z / 2 : 1);
  }
  for (int k = 1; k < 60 && std::abs(term) > kEpsilon / 4; ++k)
    sum += term *= -(4.0 * order - (2.0 * k - 1) * (2.0 * k - 1)) / (k * 8 * z);
  return sign * sum / std::sqrt(2 * M_PI * z);
}

namespace {

/// The lower (or upper) incomplete gamma function over gamma(a): A&S 6.5.29, or the continued fraction 6.5.31.
double incomplete_gamma(double a, double x, bool upper) {
  if (x == 0 && !upper) return 0;
  if (std::isnan(x) || !(a > 0) || x < 0) return kNaN;
  if (std::isinf(x)) return std::isinf(a) ? kNaN : upper ? 0 : 1;
  if (x == 0 || std::isinf(a)) return upper ? 1 : 0;
  const double scale = std::exp(a * std::log(x) - x - log_gamma(a));
  if (x < a + 1) {
    double term = 1 / a, sum = term;
    for (int n = 1; n < kMostTerms && term > sum * kEpsilon; ++n) sum += term *= x / (a + n);
    return upper ? 1 - scale * sum : scale * sum;
  }
  double b = x + 1 - a, c = 1e300, d = 1 / b, h = d;  // Lentz's method
  for (int n = 1; n < kMostTerms; ++n) {
    const double an = -n * (n - a);
    b += 2;
    d = 1 / (an * d + b), c = b + an / c;
    h *= c * d;
    if (std::abs(c * d - 1) < kEpsilon) break;
  }
  return upper ? scale * h : 1 - scale * h;
}

/// A number with its derivative.
struct Dual {
  double value, slope = 0;
  friend Dual operator+(Dual a, Dual b) { return {a.value + b.value, a.slope + b.slope}; }
  friend Dual operator*(Dual a, Dual b) { return {a.value * b.value, a.slope * b.value + a.value * b.slope}; }
  friend Dual operator/(Dual a, Dual b) {
    const double quotient = a.value / b.value;
    return {quotient, (a.slope - quotient * b.slope) / b.value};
  }
};

/// The derivative by a of the lower incomplete gamma function: that of the same series and continued fraction.
double incomplete_gamma_slope(double a, double x) {
  if (std::isnan(x) || !(a > 0) || x < 0) return kNaN;
  if (x == 0 || std::isinf(x) || std::isinf(a)) return 0;
  const double log = a * std::log(x) - x - log_gamma(a);
  const Dual scale{std::exp(log), std::exp(log) * (std::log(x) - digamma(a))};
  if (x < a + 1) {
    Dual term = Dual{1} / Dual{a, 1}, sum = term;
    for (int n = 1; n < kMostTerms && std::abs(term.slope) > std::abs(sum.slope) * kEpsilon; ++n)
      sum = sum + (term = term * (Dual{x} / Dual{a + n, 1}));
    return (scale * sum).slope;
  }
  Dual b{x + 1 - a, -1}, c{1e300}, d = Dual{1} / b, h = d;
  for (int n = 1; n < kMostTerms; ++n) {
    const Dual an{-n * (n - a), static_cast<double>(n)};
    b = b + Dual{2};
    d = Dual{1} / (an * d + b), c = b + an / c;
    const Dual factor = c * d;
    h = h * factor;
    if (std::abs(factor.value - 1) < kEpsilon && std::abs(factor.slope) < kEpsilon) break;
  }
  return -(scale * h).slope;
}

/// The regularised incomplete beta function by its continued fraction, A&S 26.5.8.
double incomplete_beta(double a, double b, double x) {
  if (!(a > 0 && b > 0 && x >= 0 && x <= 1)) return kNaN;
  if (x == 0 || x == 1) return x;
  if (x > (a + 1) / (a + b + 2)) return 1 - incomplete_beta(b, a, 1 - x);
  double c = 1, d = 1 / (1 - (a + b) * x / (a + 1)), h = d;
  for (int m = 1; m < kMostTerms; ++m) {
    const double even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m));
    d = 1 / (1 + even * d), c = 1 + even / c, h *= c * d;
    const double odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1));
    d = 1 / (1 + odd * d), c = 1 + odd / c, h *= c * d;
    if (std::abs(c * d - 1) < kEpsilon) break;
  }
  return h / a * std::exp(a * std::log(x) + b * std::log1p(-x) + log_gamma(a + b) - log_gamma(a) - log_gamma(b));
}

/// q^-x; whole exponents, those of polygamma, by products, at a tenth of the time.
double inverse_power(double q, double x) {
  if (x != std::floor(x) || x > 16) return std::pow(q, -x);
  double power = 1;
  for (auto n = static_cast<int>(x); n > 0; --n) power *= q;
  return 1 / power;
}

/// Hurwitz' zeta function, sum of (q + k)^-x, by Euler and Maclaurin's formula, A&S 23.1.30.
double zeta(double x, double q) {
  if (std::isnan(x) || std::isnan(q) || x < 1) return kNaN;
  if (x == 1) return kInfinite;
  if (q <= 0) {
    if (q == std::floor(q)) return kInfinite;
    if (x != std::floor(x)) return kNaN;
  }
  if (q < -20) {  // the terms from q to about -10 are the difference of two sums over positive numbers
    const double count = std::floor(-q) - 9;
    return (std::fmod(x, 2) == 0 ? 1 : -1) * (zeta(x, -q - count + 1) - zeta(x, -q + 1)) + zeta(x, q + count);
  }
  double sum = 0;
  for (int k = 0; k < 10 || q < 10; ++k, ++q) sum += inverse_power(q, x);
  sum += inverse_power(q, x - 1) / (x - 1) + inverse_power(q, x) / 2;
  // B_2k / (2k)! times x (x + 1) ... (x + 2k - 2) q^(-x - 2k + 1)
  const double bernoulli[] = {1.0 / 6, -1.0 / 30, 1.0 / 42, -1.0 / 30, 5.0 / 66, -691.0 / 2730, 7.0 / 6, -3617.0 / 510};
  double factor = inverse_power(q, x + 1) * x / 2;
  for (int k = 1; k <= 8; ++k) {
    sum += bernoulli[k - 1] * factor;
    factor *= (x + 2 * k - 1) * (x + 2 * k) / (q * q * (2.0 * k + 1) * (2.0 * k + 2));
  }
  return sum;
}
double polygamma(double n, double x) {
  if (n != std::floor(n) || n < 0) return kNaN;
  if (n == 0) return digamma(x);
  return (std::fmod(n, 2) == 0 ? -1 : 1) * std::exp(log_gamma(n + 1)) * zeta(n + 1, x);
}

constexpr SpecialFunction kFunctionsOfSeveral[] = {
    {"incomplete_gamma", [](double a, double x) { return incomplete_gamma(a, x, false); }},
    {"incomplete_gamma_upper", [](double a, double x) { return incomplete_gamma(a, x, true); }},
    {"incomplete_gamma_slope", incomplete_gamma_slope},
    {"incomplete_beta", nullptr, incomplete_beta},
    {"zeta", zeta},
    {"polygamma", polygamma},
};

template <auto kFunction>
void map_one(KernelContext& context) {
  allocate_results(context);
  with_floats(context.input(0).dtype(), [&](auto tag) {
    using T = decltype(tag);
    for (const int64_t i : turns(context.input(0).count()))
      data<T>(context.output(0))[i] =
          T(static_cast<Compute<T>>(kFunction(static_cast<double>(data<T>(context.input(0))[i]))));
  });
}

/// A kernel of two or three inputs, which broadcast.
template <size_t kInputs>
void map_several(KernelContext& context) {
  allocate_results(context);
  const SpecialFunction& function = *find_special_function(context.op().name);
  const Dims& dims = context.output(0).dims();
  std::array<Dims, kInputs> strides;
  for (size_t k = 0; k < kInputs; ++k) strides[k] = broadcast_strides(context.input(k).dims(), dims);
  with_floats(context.input(0).dtype(), [&](auto tag) {
    using T = decltype(tag);
    auto at = [&](size_t k, auto& offsets) { return static_cast<double>(data<T>(context.input(k))[offsets[k]]); };
    walk<kInputs>(dims, strides, [&](int64_t n, auto& offsets) {
      double value = 0;
      if constexpr (kInputs == 2)
        value = function.of_two(at(0, offsets), at(1, offsets));
      else
        value = function.of_three(at(0, offsets), at(1, offsets), at(2, offsets));
      data<T>(context.output(0))[n] = T(static_cast<Compute<T>>(value));
    });
  });
}

void infer_several(InferContext& context) {
  number_type(context, 0);
  const DType dtype = equal_types(context);
  Shape shape = context.shape(0);
  for (size_t i = 1; i < context.input_count(); ++i) shape = broadcast(context, shape, context.shape(i));
  context.result(dtype, std::move(shape));
}

// The derivative of bessel_i0e; A&S 9.6.27.
Var bessel_i0e_slope(GradientContext& g) { return g.x(0).apply("bessel_i1e") - sign(g.x(0)) * g.y(); }
// The derivative of bessel_i1e; A&S 9.6.26. At 0, where I1(x) / x is 1/2, it is 1/2.
Var bessel_i1e_slope(GradientContext& g) {
  const Var x = g.x(0), none = x.apply("equal", {x.number(0)}), divisor = select(none, x.number(1), x);
  const Var share = select(none, x.number(0.5), g.y() / divisor);
  return x.apply("bessel_i0e") - sign(x) * g.y() - share;
}

void digamma_rule(GradientContext& g) { g.set(0, g.dy() * g.x(0).number(1).apply("polygamma", {g.x(0)})); }

// By x: the density of the gamma distribution.
template <int kSign>
void incomplete_gamma_rule(GradientContext& g) {
  const Var a = g.x(0), x = g.x(1);
  if (g.wanted(0)) g.set(0, sum_to_like(g.dy() * a.apply("incomplete_gamma_slope", {x}) * kSign, a));
  if (!g.wanted(1)) return;
  const Var density = exp((a - 1) * log(x) - x - a.apply("log_gamma"));
  g.set(1, sum_to_like(g.dy() * density * kSign, x));
}
void incomplete_gamma_slope_rule(GradientContext& g) {
  if (g.wanted(0)) refuse_gradient(g, "has a gradient by x alone, not by a");
  const Var a = g.x(0), x = g.x(1), logarithm = log(x);
  const Var density = exp((a - 1) * logarithm - x - a.apply("log_gamma"));
  g.set(1, sum_to_like(g.dy() * density * (logarithm - a.apply("digamma")), x));
}
// By x: the density of the beta distribution.
void incomplete_beta_rule(GradientContext& g) {
  const Var a = g.x(0), b = g.x(1), x = g.x(2);
  if (g.wanted(0) || g.wanted(1)) refuse_gradient(g, "has a gradient by x alone, not by a and b");
  const Var scale = (a + b).apply("log_gamma") - a.apply("log_gamma") - b.apply("log_gamma");
  const Var density = exp((a - 1) * log(x) + (b - 1) * (-x).apply("log1p") + scale);
  g.set(2, sum_to_like(g.dy() * density, x));
}
void zeta_rule(GradientContext& g) {
  if (g.wanted(0)) refuse_gradient(g, "has a gradient by q alone, not by x");
  g.set(1, sum_to_like(-g.dy() * g.x(0) * (g.x(0) + 1).apply("zeta", {g.x(1)}), g.x(1)));
}
void polygamma_rule(GradientContext& g) {
  if (g.wanted(0)) refuse_gradient(g, "has a gradient by x alone, not by the order n");
  g.set(1, sum_to_like(g.dy() * (g.x(0) + 1).apply("polygamma", {g.x(1)}), g.x(1)));
}

OpDef special_of_one(const char* name, const char* summary, void (*reference)(KernelContext&), const char* oracle,
                     const char* values, void (*gradient)(GradientContext&)) {
  return {.name = name,
          .summary = summary,
          .inputs = {{"x", Accepts::floats}},
          .traits = kElementwise | kInPlace,
          .precision = Precision::rounded,
          .infer = infer_same,
          .gradient = gradient,
          .reference = reference,
          .oracle = {oracle, kTensorFlow},
          .cases = {values, "f32[]=[0.75]", "f32[0, 4]", "f64[2]=[0.25, 0.5]"}};
}
OpDef special_of_several(const char* name, const char* summary, std::vector<InputDef> inputs,
                         void (*reference)(KernelContext&), const char* oracle, std::vector<const char*> cases,
                         void (*gradient)(GradientContext&)) {
  return {.name = name,
          .summary = summary,
          .inputs = std::move(inputs),
          .traits = kElementwise,
          .precision = Precision::accumulate_f32,
          .infer = infer_several,
          .gradient = gradient,
          .reference = reference,
          .oracle = {oracle, kTensorFlow},
          .cases = std::move(cases)};
}

std::vector<OpDef> make_special_rows() {
  const std::vector<InputDef> a_x = {{"a", Accepts::floats}, {"x", Accepts::floats}};
  const std::vector<const char*> gamma_cases = {"f32[2, 3]=[0.5, 1, 2, 3, 10, 50], f32[3]=[0.1, 2.5, 20]",
                                                "f32[4]=[1, -1, 0, nan], f32[4]=[0, 1, 2, 1]",
                                                "f64[2]=[0.5, 20], f64[]=[3]", "f32[0], f32[1]=[2]"};
  return {
      special_of_one("log_gamma", "logarithm of the magnitude of the gamma function; inf at 0, -1, -2, ...",
                     map_one<log_gamma>, "tf.cast(tf.math.lgamma(x.astype(np.float64)), x.dtype)",
                     "f32[9]=[0.5, 1, 2.5, 10, 100, -0.5, -2.25, 0, -3]",
                     by_slope<[](GradientContext& g) { return g.x(0).apply("digamma"); }>),
      special_of_one("digamma", "derivative of log_gamma; NaN at 0, -1, -2, ...", map_one<digamma>,
                     "tf.cast(tf.math.digamma(x.astype(np.float64)), x.dtype)",
                     "f32[8]=[0.5, 1, 2.5, 10, 100, -0.5, -2.25, -3]", digamma_rule),
      special_of_one("erf_inverse", "y with erf(y) = x; infinite at -1 and 1, NaN beyond", map_one<erf_inverse>,
                     "tf.cast(tf.math.erfinv(x.astype(np.float64)), x.dtype)",
                     "f32[9]=[-1, -0.999, -0.5, -0.1, 0, 0.25, 0.75, 0.99999, 1]",
                     by_slope<[](GradientContext& g) { return exp(square(g.y())) * (1 / M_2_SQRTPI); }>),
      special_of_one("normal_quantile",
                     "y below which a standard normal number is with probability x; NaN outside 0 .. 1",
                     map_one<normal_quantile>, "tf.cast(tf.math.ndtri(x.astype(np.float64)), x.dtype)",
                     "f32[9]=[0, 1e-20, 0.001, 0.25, 0.5, 0.6, 0.9, 0.99999, 1]",
                     by_slope<[](GradientContext& g) { return exp(square(g.y()) * 0.5) * std::sqrt(2 * M_PI); }>),
      special_of_one("bessel_i0e", "exp(-|x|) times the modified Bessel function of order 0",
                     map_one<[](double x) { return scaled_bessel(x, 0); }>,
                     "tf.cast(tf.math.bessel_i0e(x.astype(np.float64)), x.dtype)",
                     "f32[7]=[0, 0.5, -1, 5, 25, 50, -1000]", by_slope<bessel_i0e_slope>),
      special_of_one("bessel_i1e", "exp(-|x|) times the modified Bessel function of order 1",
                     map_one<[](double x) { return scaled_bessel(x, 1); }>,
                     "tf.cast(tf.math.bessel_i1e(x.astype(np.float64)), x.dtype)",
                     "f32[7]=[0, 0.5, -1, 5, 25, 50, -1000]", by_slope<bessel_i1e_slope>),
      special_of_several("incomplete_gamma",
                         "lower incomplete gamma function of x over the gamma function of a; NaN for negative numbers",
                         a_x, map_several<2>,
                         "tf.cast(tf.math.igamma(a.astype(np.float64), x.astype(np.float64)), x.dtype)", gamma_cases,
                         incomplete_gamma_rule<1>),
      special_of_several("incomplete_gamma_upper", "1 - incomplete_gamma, accurate where that is near 1", a_x,
                         map_several<2>,
                         "tf.cast(tf.math.igammac(a.astype(np.float64), x.astype(np.float64)), x.dtype)", gamma_cases,
                         incomplete_gamma_rule<-1>),
      special_of_several("incomplete_gamma_slope", "derivative of incomplete_gamma by a", a_x, map_several<2>,
                         "tf.cast(tf.raw_ops.IgammaGradA(a=a.astype(np.float64), x=x.astype(np.float64)), x.dtype)",
                         {"f32[2, 3]=[0.5, 1, 2, 3, 10, 50], f32[3]=[0.1, 2.5, 20]", "f64[2]=[0.5, 20], f64[]=[3]",
                          "f32[0], f32[1]=[2]"},
                         incomplete_gamma_slope_rule),
      special_of_several(
          "incomplete_beta", "regularised incomplete beta function; NaN unless a and b are above 0 and x in 0 .. 1",
          {{"a", Accepts::floats}, {"b", Accepts::floats}, {"x", Accepts::floats}}, map_several<3>,
          "tf.cast(tf.math.betainc(a.astype(np.float64), b.astype(np.float64), x.astype(np.float64)), x.dtype)",
          {"f32[3]=[0.5, 2, 10], f32[3]=[1, 3, 0.5], f32[3]=[0.1, 0.5, 0.9]",
           "f64[2]=[0.5, 20], f64[2]=[3, 4], f64[2]=[0.25, 1]", "f32[0], f32[0], f32[0]"},
          incomplete_beta_rule),
      special_of_several("zeta", "Hurwitz' zeta function, sum of (q + k)^-x over k = 0, 1, ...; NaN for x below 1",
                         {{"x", Accepts::floats}, {"q", Accepts::floats}}, map_several<2>,
                         "tf.cast(tf.math.zeta(x.astype(np.float64), q.astype(np.float64)), q.dtype)",
                         {"f32[3]=[1.5, 2, 10], f32[3]=[1, 0.5, 3]", "f64[2]=[2, 4], f64[]=[0.25]", "f32[0], f32[0]"},
                         zeta_rule),
      special_of_several("polygamma", "derivative of order n of digamma; NaN unless n is 0, 1, 2, ...",
                         {{"n", Accepts::floats}, {"x", Accepts::floats}}, map_several<2>,
                         "tf.cast(tf.math.polygamma(n.astype(np.float64), x.astype(np.float64)), x.dtype)",
                         {"f32[3]=[0, 1, 3], f32[3]=[1, 0.5, 3]", "f64[2]=[1, 2], f64[]=[0.25]", "f32[0], f32[0]"},
                         polygamma_rule),
  };
}

}  // namespace

const SpecialFunction* find_special_function(std::string_view row) {
  for (const SpecialFunction& function : kFunctionsOfSeveral)
    if (row == function.name) return &function;
  return nullptr;
}

std::span<const OpDef> special_ops() {
  static const std::vector<OpDef> rows = make_special_rows();
  return rows;
}

}  // namespace cairn
