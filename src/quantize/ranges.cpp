#include "quantize/ranges.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

namespace cairn::quantize {

namespace {
constexpr std::pair<std::string_view, Method> kMethods[] = {
    {"minmax", Method::minmax}, {"percentile", Method::percentile}, {"kl", Method::kl}, {"mse", Method::mse}};
constexpr double kLevels = 255;
}  // namespace

std::optional<Method> parse_method(std::string_view text) {
  for (const auto& [name, method] : kMethods)
    if (name == text) return method;
  return {};
}

std::string_view name_of(Method method) { return kMethods[static_cast<size_t>(method)].first; }

void Seen::measure(std::span<const float> values, size_t channels) {
  channels = std::max<size_t>(channels, 1);
  largest_.resize(channels), sums_.resize(channels);
  for (size_t i = 0, channel = 0; i < values.size(); ++i, channel = channel + 1 == channels ? 0 : channel + 1) {
    const float x = values[i];
    if (!std::isfinite(x)) {
      ++not_finite_;
      continue;
    }
    largest_[channel] = std::max(largest_[channel], std::abs(x));
    sums_[channel] += x;
    extent_.low = std::min<double>(extent_.low, x), extent_.high = std::max<double>(extent_.high, x);
  }
  elements_ += values.size();
}

std::vector<double> Seen::means() const {
  std::vector<double> means = sums_;
  for (double& mean : means) mean /= std::max<double>(1, static_cast<double>(elements_ / sums_.size()));
  return means;
}

void Seen::count(std::span<const float> values) {
  bins_.resize(kBins);
  const double width = extent_.high - extent_.low, scale = width > 0 ? kBins / width : 0;
  for (const float x : values) {
    if (x == 0) zeros_ += 1;
    if (x == 0 || !std::isfinite(x)) continue;
    const auto bin = static_cast<int64_t>((x - extent_.low) * scale);
    bins_[static_cast<size_t>(std::clamp<int64_t>(bin, 0, kBins - 1))] += 1;
  }
}

double Seen::center(size_t bin) const {
  return extent_.low + (extent_.high - extent_.low) * (static_cast<double>(bin) + 0.5) / kBins;
}

Range Seen::by_percentile(double percentile) const {
  const double total = std::accumulate(bins_.begin(), bins_.end(), zeros_);
  const double outside = total * (1 - percentile / 100);
  Range range = extent_;
  double passed = 0;
  for (size_t i = 0; i < kBins && center(i) < 0 && (passed += bins_[i]) <= outside; ++i) range.low = center(i);
  passed = 0;
  for (size_t i = kBins; i-- > 0 && center(i) > 0 && (passed += bins_[i]) <= outside;) range.high = center(i);
  return range;
}

/// Bounds of |x| are tried; what is outside counts to the outermost bins.
Range Seen::by_divergence() const {
  const double total = std::accumulate(bins_.begin(), bins_.end(), 0.0);
  if (total == 0) return extent_;
  Range best = extent_;
  double least = std::numeric_limits<double>::infinity();
  const double most = std::max(-extent_.low, extent_.high);
  for (double bound = most; bound > 0.02 * most; bound *= 0.95) {
    const Range range{std::max(extent_.low, -bound), std::min(extent_.high, bound)};
    std::vector<size_t> inside;
    for (size_t i = 0; i < kBins; ++i)
      if (center(i) >= range.low && center(i) <= range.high) inside.push_back(i);
    if (inside.size() <= kLevels) break;
    const size_t first = inside.front(), last = inside.back();
    std::vector<double> p(bins_.begin() + static_cast<long>(first), bins_.begin() + static_cast<long>(last) + 1);
    std::vector<double> level_sum(static_cast<size_t>(kLevels)), level_used(level_sum.size());
    const auto level = [&](size_t i) { return i * level_sum.size() / p.size(); };
    for (size_t i = 0; i < p.size(); ++i) level_sum[level(i)] += p[i], level_used[level(i)] += p[i] > 0;
    const double quantised = std::accumulate(p.begin(), p.end(), 0.0);
    for (size_t i = 0; i < first; ++i) p.front() += bins_[i];
    for (size_t i = last + 1; i < kBins; ++i) p.back() += bins_[i];
    double divergence = 0;
    for (size_t i = 0; i < p.size(); ++i) {
      if (p[i] == 0) continue;
      const double used = level_used[level(i)];
      const double q = used > 0 ? level_sum[level(i)] / used / quantised : 1e-9;
      divergence += p[i] / total * std::log(p[i] / total / std::max(q, 1e-9));
    }
    if (divergence < least) least = divergence, best = range;
  }
  return best;
}

/// The error of a range: what is cut off, and a twelfth of the squared step for the rest.
Range Seen::by_error() const {
  std::vector<double> count(kBins + 1), sum(kBins + 1), square(kBins + 1);
  for (size_t i = 0; i < kBins; ++i) {
    count[i + 1] = count[i] + bins_[i];
    sum[i + 1] = sum[i] + bins_[i] * center(i);
    square[i + 1] = square[i] + bins_[i] * center(i) * center(i);
  }
  const auto bin_of = [&](double x) {
    const double width = extent_.high - extent_.low;
    return static_cast<size_t>(std::clamp(std::round((x - extent_.low) / width * kBins), 0.0, double{kBins}));
  };
  const auto cut = [&](size_t from, size_t to, double edge) {
    const double n = count[to] - count[from], s = sum[to] - sum[from], q = square[to] - square[from];
    return q - 2 * edge * s + n * edge * edge;
  };
  std::vector<double> factors;
  for (double factor = 1; factor > 1e-3; factor *= 0.93) factors.push_back(factor);
  Range best = extent_;
  double least = std::numeric_limits<double>::infinity();
  for (size_t i = 0; i < (extent_.low < 0 ? factors.size() : 1); ++i)
    for (size_t j = 0; j < (extent_.high > 0 ? factors.size() : 1); ++j) {
      const Range range{extent_.low * factors[i], extent_.high * factors[j]};
      const size_t first = bin_of(range.low), last = bin_of(range.high);
      const double step = (range.high - range.low) / kLevels;
      const double error =
          cut(0, first, range.low) + cut(last, kBins, range.high) + (count[last] - count[first]) * step * step / 12;
      if (error < least) least = error, best = range;
    }
  return best;
}

Range Seen::range(Method method, double percentile) const {
  if (!(extent_.high > extent_.low) || bins_.empty()) return extent_;
  switch (method) {
    case Method::percentile: return by_percentile(percentile);
    case Method::kl: return by_divergence();
    case Method::mse: return by_error();
    case Method::minmax: break;
  }
  return extent_;
}

Affine affine_of(Range range) {
  const double step = (range.high - range.low) / kLevels;
  const auto scale = static_cast<float>(step);
  if (!(scale >= std::numeric_limits<float>::min())) return {};
  return {scale, static_cast<int>(std::clamp(std::round(-range.low / step), 0.0, kLevels))};
}

}  // namespace cairn::quantize
