#include "judge/diagnosis.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "judge/rounding.h"
#include "support/denormals.h"

namespace cairn::judge {

namespace {

struct Precision {
  int fraction_bits, lowest_exponent;  // lowest exponent of normal numbers
};

Precision precision_of(DType dtype) {
  return {fraction_bits(dtype), dtype == kF16 ? -14 : dtype == kF64 ? -1022 : -126};
}

/// The unbiased exponent of a float32; zero and denormals have the smallest one.
int exponent_of(float value) { return static_cast<int>(std::bit_cast<uint32_t>(value) >> 23 & 0xff) - 127; }

size_t ulp_bucket(float error, float y, Precision precision) {
  if (error == 0) return 0;
  // The bucket is the power of two of error / 2^(exponent of y - fraction bits), computed from the exponents.
  int unit = std::max(exponent_of(y), precision.lowest_exponent) - precision.fraction_bits;
  return static_cast<size_t>(std::clamp(exponent_of(error) - unit + 2, 1, static_cast<int>(kUlpBuckets) - 1));
}

/// Sums for fitting the line x ~ scale*y + bias, relative to the first finite pair.
struct LineSums {
  double origin_x = 0, origin_y = 0, x = 0, y = 0, xx = 0, xy = 0, yy = 0;
  void add(double a, double b) {
    a -= origin_x, b -= origin_y;
    x += a, y += b, xx += a * a, xy += a * b, yy += b * b;
  }
};

void fit_line(const LineSums& s, double n, Diagnosis& out) {
  double var_y = s.yy - s.y * s.y / n, var_x = s.xx - s.x * s.x / n, cov = s.xy - s.x * s.y / n;
  out.scale = var_y > 1e-30 * s.yy && var_y > 0 ? cov / var_y : 1;
  out.bias = s.origin_x + s.x / n - out.scale * (s.origin_y + s.y / n);
  out.fit_residual = std::sqrt(std::max(0.0, var_x - 2 * out.scale * cov + out.scale * out.scale * var_y) / n);
}

/// Exact order statistics of |x-y| in two counting passes over the bits of non-negative floats.
class Quantiles {
 public:
  explicit Quantiles(size_t wanted) : high_(size_t{1} << 15), low_(wanted, std::vector<uint32_t>(size_t{1} << 16)) {}
  void count(float error) { ++high_[std::bit_cast<uint32_t>(error) >> 16]; }
  /// The bucket that holds the element of this rank, and its rank inside.
  void find(size_t which, size_t rank) {
    uint32_t bucket = 0;
    while (rank >= high_[bucket]) rank -= high_[bucket++];
    chosen_.resize(std::max(chosen_.size(), which + 1));
    chosen_[which] = {bucket, rank};
  }
  void refine(float error) {
    uint32_t bits = std::bit_cast<uint32_t>(error);
    for (size_t i = 0; i < chosen_.size(); ++i)
      if (bits >> 16 == chosen_[i].bucket) ++low_[i][bits & 0xffff];
  }
  float value(size_t which) const {
    auto [bucket, rank] = chosen_[which];
    uint32_t bits = 0;
    while (rank >= low_[which][bits]) rank -= low_[which][bits++];
    return std::bit_cast<float>(bucket << 16 | bits);
  }

 private:
  struct Chosen {
    uint32_t bucket;
    size_t rank;
  };
  std::vector<uint64_t> high_;
  std::vector<std::vector<uint32_t>> low_;
  std::vector<Chosen> chosen_;
};

bool count_nonfinite(float x, float y, size_t index, Diagnosis& out) {
  if (std::isfinite(x) && std::isfinite(y)) return false;
  out.nan_x += std::isnan(x), out.nan_y += std::isnan(y);
  out.infinite_x += std::isinf(x), out.infinite_y += std::isinf(y);
  if (is_unlike(x, y) && out.distance.unlike++ == 0) out.first_unlike = index;
  return true;
}

}  // namespace

Diagnosis diagnose(std::span<const float> x, std::span<const float> y, DType precision_dtype) {
  CHECK(x.size() == y.size(), "{} and {} elements", x.size(), y.size());
  KeepDenormals keep;
  Diagnosis out;
  out.count = x.size();
  Precision precision = precision_of(precision_dtype);
  constexpr std::array<double, 3> kWanted = {0.5, 0.99, 0.999};
  Quantiles quantiles(kWanted.size());
  LineSums line;
  double noise = 0, signal = 0;
  bool any_x = false, any_y = false;
  float worst = -1, largest = 0;
  for (size_t i = 0; i < x.size(); ++i) {
    any_x |= x[i] != 0, any_y |= y[i] != 0;
    if (count_nonfinite(x[i], y[i], i, out)) continue;
    // Two finite values may differ by more than the largest float.
    float error = std::min(std::abs(x[i] - y[i]), std::numeric_limits<float>::max());
    if (out.finite++ == 0) line.origin_x = x[i], line.origin_y = y[i];
    line.add(x[i], y[i]);
    double difference = static_cast<double>(x[i]) - y[i];
    noise += difference * difference, signal += static_cast<double>(y[i]) * y[i];
    ++out.ulps[ulp_bucket(error, y[i], precision)];
    quantiles.count(error);
    largest = std::max(largest, std::abs(y[i]));
    if (error > worst) worst = error, out.worst_index = i;
  }
  out.zero_x = !any_x, out.zero_y = !any_y;
  if (out.finite == 0) return out;
  fit_line(line, static_cast<double>(out.finite), out);
  out.distance.most = worst, out.distance.largest = largest;
  out.distance.rms = std::sqrt(noise / static_cast<double>(out.finite));
  out.distance.size = std::sqrt(signal / static_cast<double>(out.finite));
  out.sqnr_db = noise == 0 ? INFINITY : 10 * std::log10(signal / noise);
  for (size_t i = 0; i < kWanted.size(); ++i) {
    auto rank = static_cast<size_t>(std::ceil(kWanted[i] * static_cast<double>(out.finite)));
    quantiles.find(i, std::clamp<size_t>(rank, 1, out.finite) - 1);
  }
  for (size_t i = 0; i < x.size(); ++i)
    if (std::isfinite(x[i]) && std::isfinite(y[i]))
      quantiles.refine(std::min(std::abs(x[i] - y[i]), std::numeric_limits<float>::max()));
  out.p50 = quantiles.value(0), out.p99 = quantiles.value(1), out.p999 = quantiles.value(2);
  out.worst_x = x[out.worst_index], out.worst_y = y[out.worst_index];
  return out;
}

std::string Diagnosis::finding() const {
  if (distance.unlike > 0)
    return fmt::format("{} values are NaN or infinite on one side only, first at {}", distance.unlike, first_unlike);
  if (zero_mismatch()) return fmt::format("all values are zero on {} side only", zero_x ? "this" : "the reference's");
  const double worst = distance.most, difference = distance.rms, signal = distance.size;
  if (finite < 3 || worst == 0) return "";
  bool explained = fit_residual < 0.05 * difference && difference > 1e-3 * signal;
  if (explained && std::abs(scale - 1) > 1e-3)
    return fmt::format("off by a factor: x ~ {:.4g} y{}", scale,
                       std::abs(bias) > 1e-3 * signal ? fmt::format(" {:+.3g}", bias) : "");
  if (explained && bias != 0) return fmt::format("off by a constant: x ~ y {:+.4g}", bias);
  if (p99 < 1e-3 * worst && worst > 0.1 * signal)
    return fmt::format("few elements differ: worst at {} ({:.6g} against {:.6g})", worst_index, worst_x, worst_y);
  return "";
}

}  // namespace cairn::judge
