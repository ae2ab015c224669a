// Chooses the nodes that the CPU engine fuses: a contraction with its epilogue, and regions of element-wise nodes.
#pragma once

#include "engine/engine.h"
#include "engines/cpu/window.h"

namespace cairn {

/// The operations fused into a contraction before its result is stored: + bias[channel], + residual, then the
/// activation.
struct Epilogue {
  const Value* bias = nullptr;       // [channels], also with leading dims of 1
  const Value* residual = nullptr;   // same shape as the result
  const Node* activation = nullptr;  // unary node: relu, clip, ...
  // The result's type where that has 16 bits, and whether the sum is rounded to it before the bias, and before the residual.
  DType low = kF32;
  bool rounds_sum = false, rounds_biased = false;
  bool rounded = false;  // while it is read: what was made so far
};

/// A convolution or matrix product (or another op) and its epilogue, read from a group.
struct Contraction {
  const Node* node = nullptr;
  Epilogue epilogue;
  const Value* result = nullptr;  // the result of the last node, which replaces the node's first result
  const Node* stored = nullptr;   // makes the right operand of constants of fewer bits
};

/// Whether it is a cast of computed elements of 16 bits to f32.
bool is_widening(const Node& node);
/// Whether it rounds a param (a weight, in training) to 16 bits.
bool is_rounding(const Node& node);
/// The value that a group reads for this one: itself, or what casts in the group round and widen to it.
const Value* source_of(const Group& group, const Value* value);
inline Form form_in(const Group& group, const Value* value) { return form_of(source_of(group, value)->type.dtype); }
/// What the group rounds this value's source to before it widens it, or floats.
Form precision_in(const Group& group, const Value* value);
/// The same of a contraction's weights; of constants that were widened before, what they can be rounded to again without loss, if that is
/// the form of what they are multiplied with.
Form weights_precision(const Group& group, const Value* weights, Form x_form);
/// The index of the value, or of its source, among the group's inputs.
size_t index_of(const Group& group, const Value* value);
inline int64_t dim(const Value* value, size_t axis) { return value->type.shape.dims[axis].size; }
inline int64_t last_dim(const Value* value) { return value->type.shape.dims.back().size; }

/// Why the group is not all f32, or nothing.
std::optional<std::string> not_f32(const Group& group);
/// Why it reads or makes other elements than floats up to f32, but for dims that are constants, or nothing.
std::optional<std::string> not_floats(const Group& group);
/// How the epilogue makes results of 16 bits.
NarrowEpilogue narrow_of(const Group& group, const Epilogue& epilogue);
Activation activation_of(const Epilogue& epilogue);
/// The first element of a slice along each axis of its input.
std::vector<int64_t> slice_begin(const Node& slice);

/// Tells whether no kernel takes a group.
using Refuses = FunctionRef<bool(const Group&)>;

/// Disjoint groups: contractions with their epilogues, and element-wise regions; f32 only.
std::vector<Group> propose_groups(const Block& block, const Uses& uses, Refuses refuses);

/// The group read as a contraction with epilogue, or nothing.
std::optional<Contraction> as_contraction(const Group& group);
/// The same of any node with casts alone around it.
std::optional<Contraction> as_rounded(const Group& group);
/// The same of a group whose first node makes the right operand of constants that are stored in fewer bits.
std::optional<Contraction> as_stored_contraction(const Group& group);
/// The group read as the op of this name with an epilogue on its first result, or nothing.
std::optional<Contraction> as_extended(const Group& group, std::string_view op);

}  // namespace cairn
