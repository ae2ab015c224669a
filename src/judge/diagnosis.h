// Properties of an error that the ten metrics do not show: scale and bias, its distribution, its size in units of the
// last place, values that are not finite.
#pragma once

#include <array>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "judge/distance.h"

namespace cairn::judge {

inline constexpr size_t kUlpBuckets = 34;

/// Elements for which x or y is not finite are counted and left out of all other numbers.
struct Diagnosis {
  size_t count = 0, finite = 0;
  Distance distance;
  double scale = 1, bias = 0;         // x ~ scale*y + bias, least squares; scale 1 when y is constant
  double fit_residual = 0;            // root mean square of x - (scale*y + bias)
  double sqnr_db = 0;                 // 20 log10(|y| / |x-y|)
  double p50 = 0, p99 = 0, p999 = 0;  // percentiles of |x-y|
  size_t worst_index = 0;
  double worst_x = 0, worst_y = 0;
  /// Bucket 0: equal; bucket k: |x-y| in [2^(k-2), 2^(k-1)) units in the last place of y (bucket 1: below one).
  std::array<uint64_t, kUlpBuckets> ulps{};
  size_t nan_x = 0, nan_y = 0, infinite_x = 0, infinite_y = 0;
  size_t first_unlike = 0;
  bool zero_x = false, zero_y = false;  // all elements are zero

  bool zero_mismatch() const { return count > 0 && zero_x != zero_y; }
  /// A sentence such as "scale 2 (x ~ 2 y + 0)" or "3 values are NaN or infinite on one side only, first at 17"; empty
  /// when there is nothing to say.
  std::string finding() const;
};

/// Units in the last place refer to `precision` (the coarser of the two dtypes). Requires equal sizes.
Diagnosis diagnose(std::span<const float> x, std::span<const float> y, DType precision);

}  // namespace cairn::judge
