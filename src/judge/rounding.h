// Models of the rounding error of an operator's result: a bound, if only its tensors are known, and random
// perturbations of its elements, if the following operators can run again and show how the errors propagate.
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "ir/tensor.h"

namespace cairn::judge {

/// The number of fraction bits of a float type; 23, as for f32, for other types.
int fraction_bits(DType dtype);
/// The float dtype with fewer bits of fraction; f32 when neither is a float.
DType coarser(DType a, DType b);
/// Half the distance between 1 and the next number: 2^-24 for f32.
double unit_roundoff(DType dtype);
/// The largest difference that rounding to the two types can make for elements up to `largest`; 0 if `mine` is not a
/// float type.
double last_place(DType mine, DType golden, double largest);

/// Facts about an operator that determine a bound of its rounding error.
struct BoundFacts {
  int64_t reduction = 1;  // products or terms added for one output element
  double magnitude = 0;   // estimate of the sum of their absolute values
  double output = 0;      // largest absolute value of the output
  DType storage = kF32;   // the coarser output dtype of the two sides
};
/// A bound of |x-y| for two correct implementations: 2 k u sum|a||b| for both sums (N. Higham, Accuracy and Stability
/// of Numerical Algorithms, 2nd ed., 3.1), added in f32 or wider, plus one rounding to storage on each side.
double error_bound(const BoundFacts& facts);
/// The facts by the operator's type and the reference's tensors; nothing when inputs that it needs are missing.
std::optional<BoundFacts> bound_facts(std::string_view op_type, const std::vector<Tensor>& inputs, const Tensor& output,
                                      DType storage);

/// The rounding of an operator that runs.
struct Rounding {
  double roundoff = 0x1p-24;  // of the narrowest type that it reads or makes
  double terms = 1;           // summed for an element, in f32 or wider
  /// How large the sums of terms can be. All elements have an error of sums of the size of the result, up to this; 0: nothing
  /// is summed across elements, and the error is proportional to each element.
  double sums = 0;
  bool whole = false;  // it reads whole numbers: the whole numbers that it makes are exact
};
/// Perturbs each float of `made` by a random fraction of its rounding error: that of a sum grows with the square root
/// of the number of terms (independent errors), plus one unit in the last place of both sides.
void add_noise(Tensor made, const Rounding& rounding, uint64_t seed);

/// Whether all elements are whole numbers.
bool is_whole(const Tensor& tensor);
/// 0 when it has no elements.
double root_mean_square(const Tensor& tensor);

}  // namespace cairn::judge
