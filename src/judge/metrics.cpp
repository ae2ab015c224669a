#include "judge/metrics.h"

#include <charconv>
#include <cmath>
#include <limits>

#include "judge/kernels.h"
#include "ops/kernels.h"
#include "support/denormals.h"

namespace cairn::judge {

namespace {

constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();
constexpr std::string_view kColumns[kMetrics] = {
    "CosineSimilarity",          "MaxAbsoluteError",  "AccumulatedRelativeError", "RelativeEuclideanDistance",
    "KullbackLeiblerDivergence", "StandardDeviation", "MeanAbsoluteError",        "RootMeanSquareError",
    "MaxRelativeError",          "MeanRelativeError"};

/// numpy divides a float32 sum by the count in float64 and rounds once more.
float mean_of(float sum, size_t count) {
  return static_cast<float>(static_cast<double>(sum) / static_cast<double>(count));
}

/// Sets the cosine and its note by the norms; `value` is used when both are large enough.
void set_cosine(Metrics& metrics, size_t count, float norm_x, float norm_y, float value) {
  double& cosine = metrics[Metric::cosine];
  if (count == 1) {
    cosine = 1;
    metrics.note = "This tensor is scalar.";
  } else if (norm_x <= static_cast<float>(kEpsilon) && norm_y < static_cast<float>(kEpsilon)) {
    cosine = 1;
    metrics.both_zero = true;
  } else if (std::sqrt(norm_x) <= static_cast<float>(kEpsilon)) {
    metrics.note = "All the data is zero in NPUDump.";
  } else if (std::sqrt(norm_y) <= static_cast<float>(kEpsilon)) {
    metrics.note = "All the data is zero in GroundTruth.";
  } else {
    cosine = value > 1 ? 1 : value;
  }
}

/// Maps [low, high] to [0, 1]. A constant tensor is mapped to 1, which gives the uniform distribution.
void set_scale(float low, float high, float& from, float& range) {
  bool constant = low == high;
  from = constant ? low - 1 : low;
  range = constant ? 1 : high - low;
}

double divergence(const SecondPass& pass) {
  double value = pass.sum_pln / pass.sum_p + std::log(pass.sum_q / pass.sum_p);
  return std::abs(value) < kEpsilon ? 0 : static_cast<float>(value);
}

/// The text of a mean or deviation in the StandardDeviation column.
std::string shown(double value) {
  return std::isnan(value) ? "nan" : fmt::format("{:.3f}", std::abs(value) < 1e-3 ? 0 : value);
}

template <class From>
void convert(const Tensor& tensor, std::vector<float>& to) {
  auto values = tensor.values<From>();
  to.assign(values.begin(), values.end());
}

std::string decimals(double value) {
  if (std::isnan(value)) return "NaN";
  return std::isinf(value) ? (value > 0 ? "inf" : "-inf") : fmt::format("{:.6f}", value);
}

}  // namespace

std::string_view column_name(Metric metric) { return kColumns[static_cast<size_t>(metric)]; }

std::optional<Metric> parse_metric(std::string_view text) {
  for (size_t i = 0; i < kMetrics; ++i)
    if (text == kColumns[i]) return static_cast<Metric>(i);
  size_t number = kMetrics;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size() || number >= kMetrics) return std::nullopt;
  return static_cast<Metric>(number);
}

Metrics::Metrics() { values.fill(kNaN); }

std::string Metrics::text(Metric metric) const {
  if (metric == Metric::cosine && both_zero) return "1.0";
  if (metric != Metric::deviation) return decimals((*this)[metric]);
  if (!has_deviation) return "NaN";
  return fmt::format("({};{}),({};{})", shown(mean_x), shown(std_x), shown(mean_y), shown(std_y));
}

Metrics measure(std::span<const float> x, std::span<const float> y) {
  CHECK(x.size() == y.size(), "{} and {} elements", x.size(), y.size());
  Metrics m;
  size_t count = x.size();
  if (count == 0) return m;
  KeepDenormals keep;
  FirstPass one = first_pass(x.data(), y.data(), count);
  if (std::isnan(one.absolute)) one.max_absolute = kNaN;
  if (std::isnan(one.relative)) one.max_relative = kNaN;
  SecondScales scales;
  scales.norm_x = std::sqrt(one.xx), scales.norm_y = std::sqrt(one.yy);
  set_scale(std::isnan(one.xx) ? kNaN : one.x.min, one.x.max, scales.low_x, scales.range_x);
  set_scale(std::isnan(one.yy) ? kNaN : one.y.min, one.y.max, scales.low_y, scales.range_y);
  SecondPass two = second_pass(x.data(), y.data(), count, scales);

  set_cosine(m, count, scales.norm_x, scales.norm_y, two.sum_cosine);
  m[Metric::max_absolute] = one.max_absolute;
  m[Metric::accumulated_relative] = one.relative;
  m[Metric::relative_euclidean] = scales.norm_y <= static_cast<float>(kEpsilon) ? 0 : std::sqrt(one.dd / one.yy);
  m[Metric::divergence] = divergence(two);
  m.mean_x = one.x.mean, m.mean_y = one.y.mean;
  m.std_x = std::sqrt(one.x.variance), m.std_y = std::sqrt(one.y.variance);
  m.has_deviation = true;
  m[Metric::deviation] = std::max(std::abs(m.mean_x - m.mean_y), std::abs(m.std_x - m.std_y));
  m[Metric::mean_absolute] = mean_of(one.absolute, count);
  m[Metric::root_mean_square] = std::sqrt(mean_of(one.dd, count));
  m[Metric::max_relative] = one.max_relative;
  m[Metric::mean_relative] = mean_of(one.relative, count);
  return m;
}

Metrics measure_bools(std::span<const uint8_t> x, std::span<const uint8_t> y) {
  CHECK(x.size() == y.size(), "{} and {} elements", x.size(), y.size());
  Metrics m;
  if (x.empty()) return m;
  size_t in_x = 0, in_y = 0, in_both = 0, differ = 0;
  for (size_t i = 0; i < x.size(); ++i) {
    bool a = x[i] != 0, b = y[i] != 0;
    in_x += a, in_y += b, in_both += a && b, differ += a != b;
  }
  auto root = [](size_t value) { return std::sqrt(static_cast<float>(value)); };
  set_cosine(m, x.size(), root(in_x), root(in_y), static_cast<float>(in_both) / (root(in_x) * root(in_y)));
  m[Metric::relative_euclidean] = in_y == 0 ? 0 : std::sqrt(static_cast<float>(differ) / static_cast<float>(in_y));
  return m;
}

std::span<const float> as_floats(const Tensor& tensor, std::vector<float>& storage) {
  DType dtype = tensor.dtype();
  size_t count = static_cast<size_t>(tensor.count());
  if (dtype == kF32) return tensor.values<float>();
  if (dtype == kC64) return {static_cast<const float*>(tensor.data()), 2 * count};
  if (dtype == kF16) {
    storage.resize(count);
    half_to_floats(tensor.values<uint16_t>().data(), storage.data(), count);
  } else if (dtype == kBool || (dtype.is_float() && dtype.bits >= 16) || (dtype.is_integer() && dtype.bits >= 8)) {
    with_numbers_or_bool(dtype, [&]<class T>(T) { convert<T>(tensor, storage); });
  } else {
    fail(ErrorKind::unsupported, "", "{} elements cannot be compared as numbers", to_string(dtype));
  }
  return storage;
}

Metrics measure(const Tensor& x, const Tensor& y, int64_t limit) {
  auto cut = [&](auto values) { return limit < 0 ? values : values.first(std::min<size_t>(values.size(), limit)); };
  if (x.dtype() == kBool && y.dtype() == kBool && x.count() == y.count())
    return measure_bools(cut(x.values<uint8_t>()), cut(y.values<uint8_t>()));
  std::vector<float> storage_x, storage_y;
  auto floats_x = cut(as_floats(x, storage_x)), floats_y = cut(as_floats(y, storage_y));
  if (floats_x.size() != floats_y.size())
    fail(ErrorKind::invalid_argument, "", "sizes differ: {} and {} elements", floats_x.size(), floats_y.size());
  return measure(floats_x, floats_y);
}

}  // namespace cairn::judge
