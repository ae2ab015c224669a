// Which nodes the CPU engine computes together: a contraction with what follows it, and chains of element-wise work.
#pragma once

#include "engine/engine.h"
#include "engines/cpu/window.h"

namespace cairn {

/// What is done to a contraction's result before it is stored: + bias[channel], + residual, then the activation.
struct Epilogue {
  const Value* bias = nullptr;       // f32 constant, [channels] or broadcast to it with leading ones
  const Value* residual = nullptr;   // same type as the result
  const Node* activation = nullptr;  // unary node: relu, clip, ...
};

/// A convolution or matrix product and its epilogue, read from a group.
struct Contraction {
  const Node* node = nullptr;
  Epilogue epilogue;
};

/// Position among the group's inputs.
size_t index_of(const Group& group, const Value* value);
inline int64_t dim(const Value* value, size_t axis) { return value->type.shape.dims[axis].size; }
/// Why the group is not all f32, or nothing.
std::optional<std::string> not_f32(const Group& group);
Activation activation_of(const Epilogue& epilogue);
/// The images and windows of size kh x kw of a convolution or pooling.
SlideSpec slide_of(const Node& node, const Value* x, const Value* y, int64_t kh, int64_t kw);
inline SlideSpec slide_of(const Node& node, int64_t kh, int64_t kw) {
  return slide_of(node, node.inputs[0], node.result(), kh, kw);
}

/// Groups of contractions with their epilogues, and of element-wise nodes; f32 only. Disjoint.
std::vector<Group> propose_groups(const Block& block, const Uses& uses);

/// The group as a contraction, or nothing when it is none.
std::optional<Contraction> as_contraction(const Group& group);

/// True when every node is element-wise on f32 (bool for comparisons inside the group) and all results that leave have
/// one type.
bool is_elementwise(const Group& group);

}  // namespace cairn
