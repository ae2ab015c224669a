// Kernels that move elements of any type: concatenation, splitting, padding, repetition, gathering.
#pragma once

#include "engines/cpu/call_step.h"

namespace cairn {

/// Whether the slice takes a part along the axis alone that the concatenation joins, so that this could read it in place.
bool joins_slice(const Node& concat, const Node& slice);
/// A concatenation, with such slices.
Refusal refuses_concat(const Group& group);
std::unique_ptr<Step> make_concat(const Group& group, MakeContext& context);

Refusal refuses_transpose(const Group& group);
std::unique_ptr<Step> make_transpose(const Group& group, MakeContext& context);
std::unique_ptr<Step> make_strided_transpose(const Group& group, const GroupStrides& strides);

/// slice, reverse, pad, broadcast_to and tile, whose bounds are constants.
Refusal refuses_axis_copy(const Group& group);
std::unique_ptr<Step> make_axis_copy(const Group& group, MakeContext& context);

/// A gathering as rows: of each of outer * middle parts of x, which have `size` rows of `inner` elements, `picks` rows by the
/// indices [outer, picks].
struct GatherRows {
  explicit GatherRows(const Node& gather);
  /// Fails where an index is out of range.
  void check(const void* indices) const;
  /// In x, of `count` rows of a part from this one on; `indices` were checked.
  void offsets(int64_t part, int64_t pick, int64_t count, const void* indices, int64_t* offsets) const;

  int64_t outer, middle, size, picks, inner;
  int64_t least;  // an index may be
  bool wide;      // i64, else i32
};

Refusal refuses_gather(const Group& group);
std::unique_ptr<Step> make_gather(const Group& group, MakeContext& context);

Refusal refuses_one_hot(const Group& group);
std::unique_ptr<Step> make_one_hot(const Group& group, MakeContext& context);

}  // namespace cairn
