// The range of values that 8 bits shall cover, chosen from what calibration has seen.
#pragma once

#include <optional>
#include <span>
#include <string_view>
#include <vector>

namespace cairn::quantize {

enum class Method : uint8_t {
  minmax,      // all values
  percentile,  // all but a share of the outermost
  kl,          // what keeps the distribution nearest by Kullback and Leibler's divergence
  mse,         // what makes the mean square of the error least
};
std::optional<Method> parse_method(std::string_view text);
std::string_view name_of(Method method);

/// Always holds 0.
struct Range {
  double low = 0, high = 0;
};

/// What one value was over the calibration.
class Seen {
 public:
  static constexpr size_t kBins = 2048;

  /// First pass; `channels`: size of the last dim.
  void measure(std::span<const float> values, size_t channels);
  /// Second pass over the same values.
  void count(std::span<const float> values);

  Range range(Method method, double percentile) const;
  Range extent() const { return extent_; }
  /// Values that were no numbers, or infinite.
  size_t not_finite() const { return not_finite_; }
  size_t elements() const { return elements_; }
  const std::vector<float>& largest() const { return largest_; }  // |x| by channel
  std::vector<double> means() const;                              // by channel

 private:
  Range by_percentile(double percentile) const;
  Range by_divergence() const;
  Range by_error() const;
  double center(size_t bin) const;

  Range extent_;
  size_t not_finite_ = 0, elements_ = 0;
  std::vector<float> largest_;
  std::vector<double> sums_;
  std::vector<double> bins_;  // without exact zeros, which every range represents exactly
  double zeros_ = 0;
};

/// x is near (q - zero) * scale, with q in 0 .. 255.
struct Affine {
  float scale = 1;
  int zero = 0;
};
Affine affine_of(Range range);

}  // namespace cairn::quantize
