// Reshapes that frontends make: the new dims are numbers or dims of the input, which may be unknown until a run.
#pragma once

#include <limits>
#include <optional>
#include <vector>

#include "ir/builder.h"

namespace cairn {

/// The end of a slice that goes on to the end of its axis.
inline constexpr int64_t kToTheEnd = std::numeric_limits<int64_t>::max();

/// One dim of the result: a number, or the size of dim `from` of the input.
struct NewDim {
  int64_t size = -1;
  int from = -1;
};

/// x under other dims. Uses a constant shape when at most one dim is unknown, unless `exact`: then a number of elements
/// that does not fit is an error of the run, where -1 would take up the difference.
Value* reshape_to(Value* x, const std::vector<NewDim>& dims, Builder& builder, bool exact = false);
/// Without the axes, which must have size 1; axes count from 0 and differ.
Value* squeeze(Value* x, const std::vector<int64_t>& axes, Builder& builder);
/// With dims of size 1 at `axes` of the result; axes count from 0 and differ.
Value* expand_dims(Value* x, const std::vector<int64_t>& axes, Builder& builder);

/// What is known of a vector of sizes: numbers, symbols of the tensors whose sizes they are, or nothing. No value at all
/// when not even their number is known. `free` is set to the place of a constant -1.
std::optional<std::vector<Dim>> sizes_in(const Value* vector, std::optional<size_t>* free = nullptr);
/// x under the dims that a vector gives, with what is known of them.
Value* reshape_by(Value* x, Value* shape, Builder& builder);

/// Axes counted from 0. Throws Error invalid_model for one out of range or named twice.
std::vector<int64_t> normal_axes(std::vector<int64_t> axes, size_t rank);
int64_t normal_axis(int64_t axis, size_t rank);

/// Elements begin .. end-1 of a vector.
Value* part_of(Value* vector, int64_t begin, int64_t end, Builder& builder);
/// Size of one dim of x as a vector of one i64: a constant where it is known.
Value* dim_of(Value* x, size_t axis, Builder& builder);
/// A vector from scalars or vectors of one element, as i64.
Value* joined(const std::vector<Value*>& parts, Builder& builder);

}  // namespace cairn
