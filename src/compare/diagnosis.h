// What the ten columns cannot see: scale and bias, where and how the error is spread, in units of the last place, values
// that are not finite, and the error that an operator of this kind may have.
#pragma once

#include <array>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "ir/tensor.h"

namespace cairn::compare {

inline constexpr size_t kUlpBuckets = 34;

/// Elements where x or y is not finite are counted, and left out of everything else.
struct Diagnosis {
  size_t count = 0, finite = 0;
  double scale = 1, bias = 0;                    // x ~ scale*y + bias, least squares; scale 1 when y is constant
  double fit_residual = 0;                       // root mean square of x - (scale*y + bias)
  double difference = 0;                         // root mean square of x - y
  double sqnr_db = 0;                            // 20 log10(|y| / |x-y|)
  double p50 = 0, p99 = 0, p999 = 0, worst = 0;  // of |x-y|: the smallest error that so many elements do not exceed
  size_t worst_index = 0;
  double worst_x = 0, worst_y = 0;
  /// Bucket 0: equal; bucket k: |x-y| in [2^(k-2), 2^(k-1)) units in the last place of y (bucket 1: below one).
  std::array<uint64_t, kUlpBuckets> ulps{};
  size_t nan_x = 0, nan_y = 0, infinite_x = 0, infinite_y = 0;
  size_t nonfinite_mismatches = 0, first_mismatch = 0;  // NaN against a number, infinity against another value
  bool zero_x = false, zero_y = false;                  // all elements are zero

  bool zero_mismatch() const { return count > 0 && zero_x != zero_y; }
  /// "scale 2 (x ~ 2 y + 0)", "3 values are NaN or infinite on one side only, first at 17"; empty when nothing is said.
  std::string finding() const;
};

/// Units in the last place are those of `precision` (the coarser of the two dtypes). Requires equal sizes.
Diagnosis diagnose(std::span<const float> x, std::span<const float> y, DType precision);
/// The float dtype with fewer bits of fraction; f32 when neither is a float.
DType coarser(DType a, DType b);
/// Half the distance between 1 and the next number: 2^-24 for f32.
double unit_roundoff(DType dtype);

/// Facts of an operator from which its rounding error follows.
struct BoundFacts {
  int64_t reduction = 1;  // products or terms added for one output element
  double magnitude = 0;   // estimate of the sum of their absolute values
  double output = 0;      // largest absolute value of the output
  DType storage = kF32;   // the coarser output dtype of the two sides
};
/// |x-y| that two correct implementations stay within: 2 k u sum|a||b| from both sums (N. Higham, Accuracy and Stability
/// of Numerical Algorithms, 2nd ed., 3.1), added in f32 or wider, and one rounding to storage on each side.
double error_bound(const BoundFacts& facts);
/// Facts from the operator's type and the reference's tensors; nothing when the inputs that it needs are not there.
std::optional<BoundFacts> bound_facts(std::string_view op_type, const std::vector<Tensor>& inputs, const Tensor& output,
                                      DType storage);

}  // namespace cairn::compare
