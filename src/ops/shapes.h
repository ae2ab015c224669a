// Helpers of shape rules. Every helper works on known, symbolic and unknown dims: it keeps a symbol when the size is
// surely unchanged, returns an unknown dim when nothing can be said, and throws (Error invalid_model) what no run could
// satisfy.
#pragma once

#include <optional>

#include "ir/op_def.h"

namespace cairn {

using Dims = std::vector<int64_t>;

/// The largest rank that is accepted from data; more than any model needs.
inline constexpr int64_t kMaxRank = 64;

/// Element type of input i for arithmetic; refuses complex, string and packed elements.
DType number_type(const InferContext& context, size_t i);
/// Element type of input i for ops that only move elements; refuses packed elements.
DType moved_type(const InferContext& context, size_t i);
/// Refuses unless all inputs from `first` on have the same element type; returns it.
DType equal_types(const InferContext& context, size_t first = 0);

/// Refuses a ranked input of any other rank; false when the input is unranked.
bool ranked(const InferContext& context, size_t i, size_t rank);
/// The dims of an input of this rank; as many unknown dims when it is unranked.
std::vector<Dim> dims_of_rank(const InferContext& context, size_t i, size_t rank);
/// Refuses a ranked input that is not a scalar.
void require_scalar(const InferContext& context, size_t i);

/// The more precise of two sizes that must be equal. Refuses when they cannot be.
Dim same_size(const InferContext& context, const Dim& a, const Dim& b, const char* what);
/// The shape that two shapes broadcast to, by NumPy's rules.
Shape broadcast(const InferContext& context, const Shape& a, const Shape& b);
/// The number of elements, if every dim is known and it does not overflow.
std::optional<int64_t> known_count(const Shape& shape);

/// The axis as 0 .. rank-1; a negative one counts from the end. Refuses others.
size_t axis_of(const InferContext& context, int64_t axis, size_t rank, const char* what = "axis");
/// One flag per dim, set for the given axes. Refuses axes out of range or named twice.
std::vector<bool> axis_set(const InferContext& context, const std::vector<int64_t>& axes, size_t rank);
/// The shape without the flagged dims, or with ones in their place.
Shape reduced(const Shape& shape, const std::vector<bool>& axes, bool keep_dims);

/// The values of an integer operand if it is constant, else nothing.
std::optional<Dims> constant_integers(const InferContext& context, size_t i);
/// The shape that operand i (integers of rank 1) gives: its values if constant, else as many unknown dims as it has
/// elements. Refuses negative values.
Shape shape_operand(const InferContext& context, size_t i);

/// Sliding windows along one dim.
struct WindowSpec {
  int64_t size = 1, stride = 1, dilation = 1;
  std::string_view padding = "valid";
  int64_t before = 0, after = 0;  // explicit padding
  bool ceil = false;              // a last window may extend beyond the padded input if it starts inside

  int64_t reach() const { return (size - 1) * dilation + 1; }
  /// Padding before the first of `in` elements when there are `out` windows.
  int64_t padding_before(int64_t in, int64_t out) const;
};
/// Reads the attributes strides, padding, pads and, if the op has them, dilations and ceil_mode, for a spatial axis.
WindowSpec window_spec(const AttributeView& attr, int64_t size, size_t axis);
/// Refuses lists in those attributes that are not of `dims` spatial axes.
void check_windows(const InferContext& context, size_t dims);
/// Number of windows over `in` elements.
Dim slide(const InferContext& context, const Dim& in, const WindowSpec& spec);

}  // namespace cairn
