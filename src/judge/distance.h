// How far a tensor is from another that is held to be right: the numbers from which every verdict is made.
#pragma once

#include <cmath>
#include <optional>
#include <span>
#include <vector>

#include "ir/tensor.h"

namespace cairn::judge {

/// Elements that are finite on both sides count in all but `unlike`.
struct Distance {
  double most = 0;     // largest |x - y|
  double rms = 0;      // root mean square of x - y
  double size = 0;     // root mean square of y
  double largest = 0;  // |y|
  size_t unlike = 0;   // elements finite on one side only, infinities of other sign, texts that differ
};

/// True for a number and NaN, a number and an infinity, and infinities of other sign.
template <class Float>
bool is_unlike(Float x, Float y) {
  return !(std::isfinite(x) && std::isfinite(y)) && !(std::isnan(x) && std::isnan(y)) && x != y;
}

Distance distance(std::span<const double> x, std::span<const double> y);
/// Of numbers of any types, or of texts. Requires equal counts, and texts on both sides or on none.
Distance distance(const Tensor& x, const Tensor& y);

/// Real numbers of whole bytes.
bool is_measured(DType dtype);

/// All that `golden` may be in the dims of `like`, the likely one first: as it is, and with channels moved, which can have
/// equal dims by chance. None when the counts differ.
std::vector<Tensor> forms_of(const Tensor& golden, const Tensor& like);

/// The form of `golden` that fits `mine` best.
struct Nearest {
  Tensor golden;
  Distance distance;
};
std::optional<Nearest> nearest(const Tensor& mine, const Tensor& golden);

}  // namespace cairn::judge
