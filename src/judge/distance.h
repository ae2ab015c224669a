// The distance of a tensor from a reference: the numbers on which all verdicts are based.
#pragma once

#include <cmath>
#include <optional>
#include <span>
#include <vector>

#include "ir/tensor.h"

namespace cairn::judge {

/// Only elements that are finite in both tensors count, except for `unlike`.
struct Distance {
  double most = 0;     // largest |x - y|
  double rms = 0;      // root mean square of x - y
  double size = 0;     // root mean square of y
  double largest = 0;  // |y|
  size_t unlike = 0;   // elements finite on one side only, infinities of other sign, texts that differ
  size_t finite = 0;   // elements whose difference counts; 0: not known
};

/// Of the elements of all together.
Distance together(std::span<const Distance> parts);

/// True for a number and NaN, a number and an infinity, and infinities of different sign.
template <class Float>
bool is_unlike(Float x, Float y) {
  return !(std::isfinite(x) && std::isfinite(y)) && !(std::isnan(x) && std::isnan(y)) && x != y;
}

Distance distance(std::span<const double> x, std::span<const double> y);
/// The distance of two tensors of equal count: both numbers of any types, or both texts.
Distance distance(const Tensor& x, const Tensor& y);

/// Whether the distance is defined for the type: real numbers of whole bytes.
bool is_measured(DType dtype);

/// The interpretations of `golden` with the dims of `like`, the most likely first: unchanged, and with the channel axis
/// moved (the dims may agree by chance). None when the counts differ.
std::vector<Tensor> forms_of(const Tensor& golden, const Tensor& like);

/// The interpretation of `golden` that is nearest to `mine`.
struct Nearest {
  Tensor golden;
  Distance distance;
};
std::optional<Nearest> nearest(const Tensor& mine, const Tensor& golden);

}  // namespace cairn::judge
