// Reshapes for frontends: each new dim is a number or a dim of the input, which may be known only at run time.
#pragma once

#include <limits>
#include <optional>
#include <vector>

#include "ir/builder.h"

namespace cairn {

/// The `end` of a slice that extends to the end of its axis.
inline constexpr int64_t kToTheEnd = std::numeric_limits<int64_t>::max();

/// One dim of the result: a number, or the size of dim `from` of the input.
struct NewDim {
  int64_t size = -1;
  int from = -1;
};

/// Reshapes x. Uses a constant shape with -1 if at most one dim is unknown, unless `exact`: then a wrong number of
/// elements is an error at run time, which a -1 would hide.
Value* reshape_to(Value* x, const std::vector<NewDim>& dims, Builder& builder, bool exact = false);
/// Removes the axes, which must have size 1; axes are distinct and count from 0.
Value* squeeze(Value* x, const std::vector<int64_t>& axes, Builder& builder);
/// x with its axes in the given order.
Value* transposed(Value* x, std::vector<int64_t> permutation, Builder& builder);
/// Inserts dims of size 1 at `axes` of the result; axes are distinct and count from 0.
Value* expand_dims(Value* x, const std::vector<int64_t>& axes, Builder& builder);

/// The elements of a vector of sizes as far as they are known: numbers, symbols of the tensors whose sizes they are, or
/// unknown. Nothing when not even their number is known. `free` receives the index of a constant -1.
std::optional<std::vector<Dim>> sizes_in(const Value* vector, std::optional<size_t>* free = nullptr);
/// Reshapes x to the dims that a vector gives, with the type as far as they are known.
Value* reshape_by(Value* x, Value* shape, Builder& builder);

/// The axes counted from 0. Throws Error invalid_model for an axis that is out of range or named twice.
std::vector<int64_t> normal_axes(std::vector<int64_t> axes, size_t rank);
int64_t normal_axis(int64_t axis, size_t rank);
/// first .. rank-1.
std::vector<int64_t> axes_from(int64_t first, size_t rank);
/// The permutation of `rank` axes that exchanges two of them, which count from 0.
std::vector<int64_t> swapped_axes(size_t rank, size_t one, size_t other);

/// Elements begin .. end-1 of a vector.
Value* part_of(Value* vector, int64_t begin, int64_t end, Builder& builder);
/// The size of one dim of x as i64[1]; a constant if it is known.
Value* dim_of(Value* x, size_t axis, Builder& builder);
/// The same as an i64 scalar.
Value* scalar_dim(Value* x, size_t axis, Builder& builder);
/// 0, 1, .. below an i64 scalar.
Value* counted(Value* size, Builder& builder);
/// An i64 vector from scalars and vectors of one element.
Value* joined(const std::vector<Value*>& parts, Builder& builder);

}  // namespace cairn
