// Queries of rules and passes about constants, shapes and permutations.
#pragma once

#include <optional>
#include <unordered_set>
#include <vector>

#include "ir/module.h"

namespace cairn {

using Permutation = std::vector<int64_t>;

bool is_identity(const Permutation& permutation);
/// transpose(transpose(x, first), second) = transpose(x, compose(first, second)).
Permutation compose(const Permutation& first, const Permutation& second);
Permutation inverse(const Permutation& permutation);
/// The permutation of a transpose node, without negative axes.
Permutation permutation_of(const Node& transpose);

/// Axis in 0 .. rank - 1.
size_t axis_of(int64_t axis, size_t rank);

/// The number that all elements of a numeric or boolean tensor are equal to; nothing when they differ or there are
/// none.
std::optional<double> splat(const Tensor& tensor);
inline bool is_all(const Tensor& tensor, double number) { return splat(tensor) == number; }
/// Whether the value is a constant of zeros, also behind a broadcast.
bool is_zero(const Value* value);
/// Each element is an exact power of two with an exact reciprocal.
bool powers_of_two(const Tensor& tensor);

/// Whether each element of the result is representable in every float type in which the operands are: moved, compared or
/// chosen, not computed.
bool makes_no_digits(const Node& node);

/// Dims of which runs make the dims of both sides of a reshape, and in which dim of each side they lie.
struct CommonDims {
  std::vector<Dim> dims;
  std::vector<size_t> before, after;
};

/// Nothing where a dim of one side lies across the border of two dims of the other.
std::optional<CommonDims> common_dims(const Shape& before, const Shape& after);

/// Whether both are surely tensors of the same element type and dims.
bool surely_same(const Type& a, const Type& b);
/// The same, but each may have one unknown dim: since the numbers of elements are equal, these agree too.
bool same_by_count(const Type& a, const Type& b);
/// Whether `type` is at least as precise as `known`: all that `known` says of a value follows from `type`.
bool implies(const Type& type, const Type& known);

/// The elements of an integer vector or scalar as far as they are known at compile time: numbers, or the symbolic dims
/// that they equal. Nothing when not even their number is known.
std::optional<std::vector<Dim>> known_elements(const Value* value, int depth = 16);
/// The dims as a constant operand of reshape, with one unknown dim as -1; nothing when more are unknown.
std::optional<std::vector<int64_t>> reshape_operand(const std::vector<Dim>& dims);
/// 1-D integers of the element type of `like`.
Tensor integers_like(const Type& like, const std::vector<int64_t>& values);

/// Whether it is one number, or one for each index of this axis of a tensor of so many dims.
bool varies_along(const Value* value, size_t axis, size_t rank);

/// Nodes that make the right operand of one product of elements in fewer bits: engines expand constant ones while they multiply.
/// `kernels`: also the kernels of convolutions, which no rule is to change any more.
std::unordered_set<const Node*> expanded_operands(const Block& block, bool kernels);

/// True for a constant that varies along the last dim at most: one element, or [n], or [1, ..., 1, n].
bool along_last_dim(const Tensor& tensor);

}  // namespace cairn
