// Functions of angles, their inverse, powers and what is made of exponentials, in vector code: within two to five units in the last place of
// the C library's in f64, at zeros of the function and beyond the angles that vectors reduce as well.
#include <functional>
#include <limits>

#include "engines/cpu/vector_loops.h"
#include "engines/cpu_reference.h"
#include "ops/special.h"

namespace cairn {
namespace {

constexpr float kLeast = std::numeric_limits<float>::min(), kInfinite = std::numeric_limits<float>::infinity();

std::vector<float> computed(ElementOp op, std::vector<float> x, std::vector<float> y) {
  const size_t count = x.size(), whole = (count / kElementTile + 1) * kElementTile;
  std::vector<float> result(whole);
  x.resize(whole), y.resize(whole);
  for (size_t i = 0; i < whole; i += kElementTile) vector_loops().execute(op, 0, 0, &x[i], &y[i], &y[i], &result[i]);
  result.resize(count);
  return result;
}

/// Between a float and an exact number, in places of the last digit that a float of its size has; what is below the normal ones counts
/// as zero.
double places(float found, double exact) {
  if (std::isnan(exact) || std::isnan(found)) return std::isnan(exact) == std::isnan(found) ? 0 : kInfinite;
  if (std::abs(exact) < kLeast) return std::abs(found) <= kLeast ? 0 : kInfinite;
  if (static_cast<double>(found) == exact || static_cast<float>(exact) == found) return 0;
  return std::abs(static_cast<double>(found) - exact) / std::ldexp(1, std::ilogb(exact) - 23);
}

void expect_near(ElementOp op, const std::vector<float>& x, const std::vector<float>& y,
                 const std::function<double(double, double)>& exact, double most = 2) {
  const std::vector<float> found = computed(op, x, y);
  double worst = 0;
  size_t at = 0;
  for (size_t i = 0; i < x.size(); ++i)
    if (const double off = places(found[i], exact(x[i], y[i])); off > worst) worst = off, at = i;
  testing::Test::RecordProperty("places", std::to_string(worst));
  EXPECT_LE(worst, most) << "operation " << static_cast<int>(op) << " of " << x[at] << ", " << y[at] << ": "
                         << found[at] << ", not " << exact(x[at], y[at]);
}
void expect_near(ElementOp op, const std::vector<float>& x, double (*exact)(double), double most = 2) {
  expect_near(
      op, x, x, [=](double each, double) { return exact(each); }, most);
}

/// Over ever smaller ranges around 0, and edges.
std::vector<float> ranged(float most) {
  Random random(5);
  std::vector<float> values{0.f, -0.f, 1.f, -1.f, 0.5f, -0.5f, kInfinite, -kInfinite, std::nanf("")};
  for (float range = most; range > most * 1e-4f; range /= 2)
    for (float each : random.floats(2000, -range, range)) values.push_back(each);
  for (float& value : values)
    if (std::abs(value) < kLeast) value = 0;
  return values;
}

TEST(CpuFunctions, functions_of_angles_have_few_wrong_places) {
  std::vector<float> angles = ranged(3 * kMostAngle);
  for (int quarters = -8000; quarters <= 8000; ++quarters) {  // where the functions are zero or infinite
    const auto near = static_cast<float>(quarters * M_PI_2);
    for (float each : {near, std::nextafter(near, kInfinite), std::nextafter(near, -kInfinite)})
      if (std::abs(each) >= kLeast) angles.push_back(each);
  }
  for (float each : {1e5f, 16367173.f * 0x1p72f, 3e38f}) angles.push_back(each);
  expect_near(ElementOp::sin, angles, std::sin);
  expect_near(ElementOp::cos, angles, std::cos);
  expect_near(ElementOp::tan, angles, std::tan, 3);
}

TEST(CpuFunctions, angles_of_numbers_have_few_wrong_places) {
  expect_near(ElementOp::asin, ranged(1.001f), std::asin, 2.5);
  expect_near(ElementOp::acos, ranged(1.001f), std::acos);
  expect_near(ElementOp::atan, ranged(1e4f), std::atan);
  expect_near(ElementOp::atan, ranged(2), std::atan);
}

/// Pairs of all sizes, with neighbours of whole multiples.
void add_divisions(std::vector<float>& x, std::vector<float>& y) {
  Random random(11);
  const std::vector<float> edges{0.f,        -0.f, 1.f,     -1.f,   kLeast, -kLeast,     kInfinite,
                                 -kInfinite, 3e38, -3e-38f, 1e-30f, -1e30f, 0x1.2p-120f, std::nanf("")};
  for (float a : edges)
    for (float b : edges) x.push_back(a), y.push_back(b);
  for (int i = 0; i < 100000; ++i) {
    const auto exponent = static_cast<int>(random.between(-20, i % 3 ? 20 : 60));
    const float divisor = std::ldexp(random.floats(1)[0], static_cast<int>(random.between(-30, 30)));
    const float part = std::ldexp(random.floats(1)[0], exponent);
    const float number = i % 2 ? part * divisor : std::nearbyint(part) * divisor;
    for (float each : {number, std::nextafter(number, 0.f), std::nextafter(number, kInfinite)})
      if (std::abs(each) >= kLeast && std::abs(divisor) >= kLeast) x.push_back(each), y.push_back(divisor);
  }
}

TEST(CpuFunctions, remainders_are_exact_and_quotients_are_rounded_down) {
  std::vector<float> x, y;
  add_divisions(x, y);
  const auto rest = computed(ElementOp::truncate_mod, x, y), below = computed(ElementOp::mod, x, y),
             quotients = computed(ElementOp::floor_div, x, y);
  const auto same = [](float a, float b) {
    return std::isnan(a) ? std::isnan(b) : a == b && std::signbit(a) == std::signbit(b);
  };
  for (size_t i = 0; i < x.size(); ++i) {
    const float wanted = std::fmod(x[i], y[i]);
    ASSERT_TRUE(same(rest[i], wanted)) << x[i] << ", " << y[i] << ": " << rest[i] << ", not " << wanted;
    const float floored = wanted != 0 && (wanted < 0) != (y[i] < 0) ? wanted + y[i] : wanted;
    ASSERT_TRUE(same(below[i], floored)) << x[i] << ", " << y[i] << ": " << below[i] << ", not " << floored;
    const float quotient = std::floor(x[i] / y[i]);
    ASSERT_TRUE(same(quotients[i], quotient)) << x[i] << ", " << y[i] << ": " << quotients[i] << ", not " << quotient;
  }
}

TEST(CpuFunctions, angles_of_points_are_within_two_places) {
  Random random(6);
  std::vector<float> x, y;
  const float edges[] = {0.f, -0.f, 1.f, -1.f, 3e38f, -3e38f, kInfinite, -kInfinite, std::nanf("")};
  for (float a : edges)
    for (float b : edges) y.push_back(a), x.push_back(b);
  for (float range : {1.f, 1e3f, 1e-3f})
    for (int i = 0; i < 3000; ++i)
      y.push_back(random.floats(1, -1, 1)[0]), x.push_back(random.floats(1, -range, range)[0]);
  expect_near(ElementOp::atan2, y, x, [](double a, double b) { return std::atan2(a, b); });
}

TEST(CpuFunctions, hyperbolic_functions_are_within_two_places) {
  expect_near(ElementOp::sinh, ranged(95), std::sinh);
  expect_near(ElementOp::cosh, ranged(95), std::cosh);
}

TEST(CpuFunctions, error_functions_have_few_wrong_places) { expect_near(ElementOp::erfc, ranged(9), std::erfc, 5); }

TEST(CpuFunctions, powers_are_within_two_places) {
  Random random(7);
  std::vector<float> x, y;
  const float edges[] = {0.f,        -0.f,       1.f,        -1.f,        0.5f,      2.f,        -2.f,
                         3.f,        -3.f,       1.5f,       -8.f,        1e30f,     -1e30f,     1.0000001f,
                         0.9999999f, 16777216.f, 16777215.f, -16777215.f, kInfinite, -kInfinite, std::nanf("")};
  for (float a : edges)
    for (float b : edges) x.push_back(a), y.push_back(b);
  for (float range : {0.01f, 1.f, 20.f, 1e6f})
    for (int i = 0; i < 5000; ++i)
      x.push_back(std::exp(random.floats(1, -80, 80)[0] / std::max(1.f, range))),
          y.push_back(random.floats(1, -range, range)[0]);
  expect_near(ElementOp::pow, x, y, [](double a, double b) { return std::pow(a, b); });
}

TEST(CpuFunctions, zeros_keep_their_sign) {
  for (ElementOp op : {ElementOp::sin, ElementOp::tan, ElementOp::asin, ElementOp::atan, ElementOp::sinh})
    for (float zero : {0.f, -0.f}) {
      const float found = computed(op, {zero}, {zero})[0];
      EXPECT_EQ(found, 0.f);
      EXPECT_EQ(std::signbit(found), std::signbit(zero)) << static_cast<int>(op);
    }
}

TEST(CpuFunctions, inverse_hyperbolic_functions_have_few_wrong_places) {
  std::vector<float> wide = ranged(3e38f);
  expect_near(ElementOp::asinh, wide, std::asinh, 4);
  expect_near(ElementOp::asinh, ranged(2), std::asinh, 4);
  expect_near(ElementOp::acosh, wide, std::acosh, 4);
  std::vector<float> near_one = ranged(2);
  for (float& value : near_one) value += 1;
  expect_near(ElementOp::acosh, near_one, std::acosh, 4);
  expect_near(ElementOp::atanh, ranged(1.01f), std::atanh, 4);
}

TEST(CpuFunctions, gamma_functions_have_few_wrong_places_at_their_zeros_too) {
  for (float most : {1e30f, 100.f, 8.f}) {
    expect_near(ElementOp::log_gamma, ranged(most), log_gamma, 4);
    std::vector<float> positive = ranged(most);
    for (float& value : positive) value = std::abs(value);
    expect_near(ElementOp::digamma, positive, digamma, 6);
  }
  std::vector<float> near_zeros;
  for (float zero : {1.f, 2.f, 1.4616321f})
    for (float step : ranged(0.5f))
      if (std::isfinite(step)) near_zeros.push_back(zero + step);
  expect_near(ElementOp::log_gamma, near_zeros, log_gamma, 4);
  expect_near(ElementOp::digamma, near_zeros, digamma, 6);
}

TEST(CpuFunctions, inverse_error_functions_have_few_wrong_places_to_the_ends_of_their_range) {
  std::vector<float> near_ends = ranged(1.01f);
  for (float step = 0.5f; step > 6e-8f; step /= 1.1f) near_ends.insert(near_ends.end(), {1 - step, step - 1});
  expect_near(ElementOp::erf_inverse, near_ends, erf_inverse, 4);
  for (float step = 0.5f; step > 1e-37f; step /= 1.3f) near_ends.push_back(step);
  expect_near(ElementOp::normal_quantile, near_ends, normal_quantile, 5);
}

TEST(CpuFunctions, bessel_functions_have_few_wrong_places) {
  for (float most : {1e30f, 200.f, 9.f}) {
    expect_near(
        ElementOp::bessel_i0e, ranged(most), [](double x) { return scaled_bessel(x, 0); }, 6);
    expect_near(
        ElementOp::bessel_i1e, ranged(most), [](double x) { return scaled_bessel(x, 1); }, 6);
  }
}

double normal_share(double x) { return x * 0.5 * std::erfc(-x * M_SQRT1_2); }

TEST(CpuFunctions, functions_for_results_of_16_bits_have_15_digits) {
  constexpr double kPlaces = 512;  // of the last of 24 digits
  for (float most : {80.f, 4.f}) {
    expect_near(
        ElementOp::sigmoid_few, ranged(most), [](double x) { return 1 / (1 + std::exp(-x)); }, kPlaces);
    expect_near(ElementOp::tanh_few, ranged(most), std::tanh, kPlaces);
  }
  std::vector<float> numbers = ranged(40);
  std::erase_if(numbers, [](float x) { return std::isinf(x); });
  const std::vector<float> found = computed(ElementOp::gelu_few, numbers, numbers);
  for (size_t i = 0; i < numbers.size(); ++i) {
    const double x = numbers[i], exact = normal_share(x);
    if (std::isnan(x))
      EXPECT_TRUE(std::isnan(found[i]));
    else
      EXPECT_LE(std::abs(found[i] - exact), 0x1p-17 * std::max(std::abs(exact), x < -3 ? 0x1p-4 : 0)) << "of " << x;
  }
}

/// A sigmoid that is rounded at once, and one that is read as f32 as well.
TEST(CpuFunctions, only_results_that_are_rounded_at_once_have_fewer_digits) {
  std::vector<float> x = ranged(15);
  std::erase_if(x, [](float value) { return std::isnan(value); });
  Tensor input = Tensor::zeros(kF32, {std::ssize(x)});
  std::ranges::copy(x, input.mutable_values<float>().begin());
  for (const char* type : {"bf16", "f16"}) {
    const double unit = type[0] == 'b' ? 0x1p-9 : 0x1p-12;  // half of that of the last digit
    const auto run = [&](const std::string& results) {
      const std::string text = fmt::format(
          "module @m {{ func @main(%x: f32[{}]) -> ({}) {{ %s = sigmoid %x %p = mul %s, %x %y = cast %p {{dtype = {}}} "
          "return {} }} }}",
          x.size(), results == "%y" ? fmt::format("%y: {}[*]", type) : fmt::format("%y: {}[*], %s: f32[*]", type), type,
          results);
      return Model::make(parse(text), {.threads = 1})->run(std::vector<Tensor>{input});
    };
    const std::vector<double> alone = run("%y")[0].as_f64(), beside = run("%y, %s")[1].as_f64();
    for (size_t i = 0; i < x.size(); ++i) {
      const double exact = 1 / (1 + std::exp(-static_cast<double>(x[i])));
      EXPECT_LE(std::abs(beside[i] - exact), 0x1p-22 * exact + 1e-37) << "of " << x[i];
      if (std::isinf(x[i]) || std::abs(exact * x[i]) < 1e-4) continue;
      EXPECT_LE(std::abs(alone[i] - exact * x[i]), 1.07 * unit * 2 * std::exp2(std::ilogb(exact * x[i])))
          << "of " << x[i];
    }
  }
}

}  // namespace
}  // namespace cairn
