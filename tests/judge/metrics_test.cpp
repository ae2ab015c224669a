// The ten metrics against the numpy statement (data/expected_metrics.json, made by tests/compare/make_data.py), the diagnosis
// and bounds.
#include "judge/metrics.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <nlohmann/json.hpp>

#include "judge/diagnosis.h"
#include "judge/kernels.h"
#include "judge/rounding.h"
#include "support/files.h"

// The blocks of the baseline, which a machine with AVX2 never chooses.
#define INLINE inline __attribute__((always_inline))
#define CAIRN_FMA 0
namespace baseline {
using namespace cairn::judge;
constexpr size_t kLanes = 8, kBlock = 128, kChunk = 8192;
constexpr float kFloor = 1.1920929e-07f;
#include "judge/kernels_body.h"
}  // namespace baseline

namespace cairn::judge {
namespace {

std::vector<float> hashed(size_t count, uint64_t seed) {
  std::vector<float> values(count);
  for (size_t i = 0; i < count; ++i) {
    auto bits = static_cast<uint32_t>(i * 2654435761u + seed * 40503);
    bits ^= bits >> 15;
    bits *= 2246822519u;
    bits ^= bits >> 13;
    values[i] = static_cast<float>(static_cast<int32_t>(bits)) * 0x1p-31f;
  }
  return values;
}

std::vector<float> noisy(const std::vector<float>& y, uint64_t seed) {
  std::vector<float> x = hashed(y.size(), seed);
  for (size_t i = 0; i < x.size(); ++i) x[i] = y[i] + x[i] * 0x1p-10f;
  return x;
}

std::vector<float> listed(const nlohmann::json& json) {
  std::vector<float> values;
  for (const auto& value : json)
    values.push_back(value.is_string() ? std::stof(value.get<std::string>()) : static_cast<float>(value.get<double>()));
  return values;
}

TEST(Metrics, EqualTheNumpyStatementTextForText) {
  auto cases = nlohmann::json::parse(read_file(CAIRN_SOURCE_DIR "/tests/judge/data/expected_metrics.json"));
  ASSERT_GT(cases.size(), 40u);
  for (const auto& entry : cases) {
    SCOPED_TRACE(entry["name"].get<std::string>());
    std::vector<float> x, y;
    if (entry.contains("count")) {
      y = hashed(entry["count"], 1), x = noisy(y, 2);
    } else {
      x = listed(entry["x"]), y = listed(entry["y"]);
    }
    Metrics metrics = measure(x, y);
    EXPECT_EQ(metrics.note, entry["note"].get<std::string>());
    for (const auto& [column, expected] : entry["columns"].items()) {
      auto metric = *parse_metric(column);
      std::string text = metrics.text(metric), wanted = expected.get<std::string>();
      if (entry["name"] == "squares overflow" || entry["name"] == "norms beyond the quick division")
        if (metric == Metric::deviation) continue;  // 3 decimals of 1e20 are not decided by float64
      // The statement's own logarithm and sums of float32 are good for so many digits only.
      if (metric == Metric::divergence && wanted != "NaN" && text != "NaN")
        EXPECT_NEAR(std::stod(text), std::stod(wanted), 1.1e-6 + 2e-6 * std::abs(std::stod(wanted))) << column;
      else
        EXPECT_EQ(text, wanted) << column;
    }
  }
}

TEST(Metrics, HaveTheSameBitsOnEveryInstructionSet) {
  for (size_t count : {1, 5, 8, 100, 129, 8193, 50000}) {
    std::vector<float> y = hashed(count, 3), x = noisy(y, 4);
    FirstPass chosen = first_pass(x.data(), y.data(), count), plain = baseline::first(x.data(), y.data(), count);
    EXPECT_EQ(std::memcmp(&chosen, &plain, sizeof(FirstSums) + 2 * sizeof(float)), 0) << count;
    EXPECT_EQ(chosen.x.min, plain.x.min);
    EXPECT_EQ(chosen.y.max, plain.y.max);
    EXPECT_NEAR(chosen.x.variance, plain.x.variance, 1e-13);
    for (float norm : {3.7f, 1e-20f, 1e25f}) {
      SecondScales scales{norm, 1.3f, -1, 0.5f, -1, 0.5f};
      SecondPass a = second_pass(x.data(), y.data(), count, scales),
                 b = baseline::second(x.data(), y.data(), count, scales);
      EXPECT_EQ(a.sum_cosine, b.sum_cosine) << count << " " << norm;
      EXPECT_EQ(a.sum_p, b.sum_p);
      EXPECT_NEAR(a.sum_pln, b.sum_pln, 1e-6 * b.sum_p);
    }
  }
}

TEST(Metrics, HalvesBecomeFloatsExactly) {
  std::vector<uint16_t> all(65536);
  for (size_t i = 0; i < all.size(); ++i) all[i] = static_cast<uint16_t>(i);
  std::vector<float> floats(all.size());
  half_to_floats(all.data(), floats.data(), all.size());
  for (size_t i = 0; i < all.size(); ++i) {
    float expected = half_to_float(all[i]);
    if (std::isnan(expected))
      EXPECT_TRUE(std::isnan(floats[i])) << i;
    else
      EXPECT_EQ(floats[i], expected) << i;
  }
}

TEST(Metrics, BooleansHaveCosineAndDistanceOnly) {
  Tensor x = Tensor::of<uint8_t>(kBool, {4}, {1, 1, 0, 0}), y = Tensor::of<uint8_t>(kBool, {4}, {1, 0, 0, 0});
  Metrics metrics = measure(x, y);
  EXPECT_EQ(metrics.text(Metric::cosine), "0.707107");
  EXPECT_EQ(metrics.text(Metric::relative_euclidean), "1.000000");
  EXPECT_EQ(metrics.text(Metric::max_absolute), "NaN");
  EXPECT_EQ(metrics.text(Metric::deviation), "NaN");
}

TEST(Metrics, CutBothTensorsToTheLimit) {
  Tensor x = Tensor::of<float>(kF32, {4}, {1, 2, 3, 9}), y = Tensor::of<float>(kF32, {2, 2}, {1, 2, 3, 4});
  EXPECT_EQ(measure(x, y, 3).text(Metric::max_absolute), "0.000000");
  EXPECT_EQ(measure(x, y).text(Metric::max_absolute), "5.000000");
}

TEST(Metrics, RefuseSizesThatDiffer) {
  EXPECT_THROW(measure(Tensor::zeros(kF32, {4}), Tensor::zeros(kF32, {5})), Error);
  EXPECT_THROW(measure(Tensor::zeros(kString, {4}), Tensor::zeros(kF32, {4})), Error);
}

TEST(Metrics, OfNoElementsAreNaN) {
  EXPECT_EQ(measure(Tensor::zeros(kF32, {0}), Tensor::zeros(kF32, {0})).text(Metric::cosine), "NaN");
}

TEST(Diagnosis, QuantilesAreThoseOfTheSortedErrors) {
  std::vector<float> y = hashed(10007, 5), x = noisy(y, 6), errors;
  for (size_t i = 0; i < x.size(); ++i) errors.push_back(std::abs(x[i] - y[i]));
  auto worst = std::max_element(errors.begin(), errors.end());
  Diagnosis d = diagnose(x, y, kF32);
  EXPECT_EQ(d.worst_index, static_cast<size_t>(worst - errors.begin()));
  EXPECT_EQ(d.distance.most, *worst);
  std::sort(errors.begin(), errors.end());
  EXPECT_EQ(d.p50, errors[5003]);   // ceil(0.5 * 10007) - 1
  EXPECT_EQ(d.p99, errors[9906]);   // ceil(9906.93) - 1
  EXPECT_EQ(d.p999, errors[9996]);  // ceil(9996.993) - 1
}

TEST(Diagnosis, FindsScaleAndBias) {
  std::vector<float> y = hashed(1000, 7), x = y;
  for (float& v : x) v = 2 * v + 0.5f;
  Diagnosis d = diagnose(x, y, kF32);
  EXPECT_NEAR(d.scale, 2, 1e-6);
  EXPECT_NEAR(d.bias, 0.5, 1e-6);
  EXPECT_NE(d.finding().find("off by a factor: x ~ 2 y +0.5"), std::string::npos) << d.finding();
}

TEST(Diagnosis, CountsUlpsOfTheCoarserType) {
  std::vector<float> y = {1, 1, 1, 1}, x = {1, 1 + 0x1p-23f, 1 + 0x1p-10f, 1 + 0x1p-9f};
  Diagnosis fine = diagnose(x, y, kF32), coarse = diagnose(x, y, kF16);
  EXPECT_EQ(fine.ulps[0], 1u);
  EXPECT_EQ(fine.ulps[2], 1u);    // one unit
  EXPECT_EQ(fine.ulps[15], 1u);   // 2^13 units
  EXPECT_EQ(coarse.ulps[1], 1u);  // less than one
  EXPECT_EQ(coarse.ulps[2], 1u);
  EXPECT_EQ(coarse.ulps[3], 1u);
}

TEST(Diagnosis, SeesWhatIsNotFiniteAndWhatIsZeroOnOneSide) {
  float nan = std::nanf(""), inf = INFINITY;
  Diagnosis d = diagnose(std::vector<float>{nan, 1, inf, nan}, std::vector<float>{nan, 1, -inf, 2}, kF32);
  EXPECT_EQ(d.distance.unlike, 2u);
  EXPECT_EQ(d.first_unlike, 2u);
  EXPECT_EQ(d.finite, 1u);
  EXPECT_TRUE(diagnose(std::vector<float>{0, 0}, std::vector<float>{1, 2}, kF32).zero_mismatch());
  EXPECT_FALSE(diagnose(std::vector<float>{0, 0}, std::vector<float>{0, 0}, kF32).zero_mismatch());
}

/// A product in float32, added in the given order.
std::vector<float> product(const std::vector<float>& a, const std::vector<float>& b, int m, int k, int n,
                           bool backwards) {
  std::vector<float> out(static_cast<size_t>(m * n));
  for (int i = 0; i < m; ++i)
    for (int j = 0; j < n; ++j) {
      float sum = 0;
      for (int s = 0; s < k; ++s) {
        int at = backwards ? k - 1 - s : s;
        sum += a[static_cast<size_t>(i * k + at)] * b[static_cast<size_t>(at * n + j)];
      }
      out[static_cast<size_t>(i * n + j)] = sum;
    }
  return out;
}

TEST(Bound, HoldsForOrdersOfAdditionAndNotForAFault) {
  int m = 16, k = 1000, n = 24;
  std::vector<float> a = hashed(static_cast<size_t>(m * k), 8), b = hashed(static_cast<size_t>(k * n), 9);
  Tensor ta = Tensor::of(kF32, {m, k}, a), tb = Tensor::of(kF32, {k, n}, b);
  std::vector<float> y = product(a, b, m, k, n, false), x = product(a, b, m, k, n, true);
  auto facts = bound_facts("MatMul", {ta, tb}, Tensor::of(kF32, {m, n}, y), kF32);
  ASSERT_TRUE(facts);
  EXPECT_EQ(facts->reduction, k);
  double bound = error_bound(*facts);
  EXPECT_LT(diagnose(x, y, kF32).distance.most, bound);
  x[5] += 0.2f;
  EXPECT_GT(diagnose(x, y, kF32).distance.most, bound);
  EXPECT_FALSE(bound_facts("MatMul", {}, Tensor::of(kF32, {m, n}, y), kF32));
}

}  // namespace
}  // namespace cairn::judge
