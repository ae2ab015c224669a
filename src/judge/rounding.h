// What rounding may do to the result of an operator: as a bound, where only its tensors are known, and as random moves of
// its elements, where it can run again and show how far they carry.
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "ir/tensor.h"

namespace cairn::judge {

/// Of a float's representation; 23, as of f32, for other types.
int fraction_bits(DType dtype);
/// The float dtype with fewer bits of fraction; f32 when neither is a float.
DType coarser(DType a, DType b);
/// Half the distance between 1 and the next number: 2^-24 for f32.
double unit_roundoff(DType dtype);
/// How far the two sides' rounding to their types moves apart elements up to `largest`; 0 where `mine` holds no floats.
double last_place(DType mine, DType golden, double largest);

/// Facts of an operator from which a bound of its rounding error follows.
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

/// Of an operator that runs.
struct Rounding {
  double roundoff = 0x1p-24;  // of the narrowest type that it reads or makes
  double terms = 1;           // summed for an element, in f32 or wider
};
/// Moves each float of `made` by a random part of what `rounding` may do to it: a sum's terms by their number's root, which
/// is what independent errors add up to, and both sides' last place.
void add_noise(Tensor made, const Rounding& rounding, uint64_t seed);

}  // namespace cairn::judge
