// The ten columns of a comparison: x is the tensor under test ("NPUDump"), y the reference ("GroundTruth"). Both count as
// flat float32; the formulas and their edge rules are those of the platform's comparison command.
#pragma once

#include <array>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "ir/tensor.h"

namespace cairn::judge {

/// In the order of the columns; the numbers are those of the -alg option.
enum class Metric : uint8_t {
  cosine,                // sum of (x/|x|)*(y/|y|), at most 1
  max_absolute,          // max |x-y|
  accumulated_relative,  // sum of |x/y-1| where |y| > eps
  relative_euclidean,    // sqrt(sum (x-y)^2 / sum y^2)
  divergence,            // Kullback-Leibler, of both scaled to [0, 1] and to sum 1
  deviation,             // text: (mean;std) of x and of y
  mean_absolute,
  root_mean_square,
  max_relative,
  mean_relative,
};
inline constexpr size_t kMetrics = 10;
inline constexpr double kEpsilon = 2.22e-16;

/// "CosineSimilarity".
std::string_view column_name(Metric metric);
/// Accepts the column's name and its number; nothing for other text.
std::optional<Metric> parse_metric(std::string_view text);

struct Metrics {
  /// NaN for metrics without a value; `deviation` is the larger of the differences of the means and of the deviations.
  std::array<double, kMetrics> values;
  double mean_x = 0, std_x = 0, mean_y = 0, std_y = 0;
  bool both_zero = false;  // cosine prints as "1.0"
  bool has_deviation = false;
  std::string note;  // "This tensor is scalar."

  Metrics();
  double operator[](Metric metric) const { return values[static_cast<size_t>(metric)]; }
  double& operator[](Metric metric) { return values[static_cast<size_t>(metric)]; }
  /// As the CSV prints it: six decimals, "NaN", "inf".
  std::string text(Metric metric) const;
};

/// Requires equal sizes; without elements every metric is NaN.
Metrics measure(std::span<const float> x, std::span<const float> y);
/// Booleans support cosine and relative Euclidean distance only.
Metrics measure_bools(std::span<const uint8_t> x, std::span<const uint8_t> y);
/// Any numeric dtypes; at most `limit` leading elements when it is not negative. Throws Error invalid_argument when the
/// sizes differ or a tensor holds strings.
Metrics measure(const Tensor& x, const Tensor& y, int64_t limit = -1);

/// The elements as float32: the tensor's own if it is f32, else converted in `storage`. A complex number gives two.
std::span<const float> as_floats(const Tensor& tensor, std::vector<float>& storage);

}  // namespace cairn::judge
