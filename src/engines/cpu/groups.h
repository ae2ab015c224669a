// Which nodes the CPU engine computes together: a contraction with what follows it, and chains of element-wise work.
#pragma once

#include "engine/engine.h"
#include "engines/cpu/window.h"

namespace cairn {

/// What is done to a contraction's result before it is stored: + bias[channel], + residual, then the activation.
struct Epilogue {
  const Value* bias = nullptr;       // f32, [channels] or with leading ones
  const Value* residual = nullptr;   // same type as the result
  const Node* activation = nullptr;  // unary node: relu, clip, ...
};

/// A convolution or matrix product (or another op) and its epilogue, read from a group.
struct Contraction {
  const Node* node = nullptr;
  Epilogue epilogue;
  const Value* result = nullptr;  // of the last node, in place of the node's first result
};

/// Position among the group's inputs.
size_t index_of(const Group& group, const Value* value);
inline bool is_pooling(const Group& group) {
  return group.nodes.size() == 1 && (group.last().is("max_pool2d") || group.last().is("avg_pool2d"));
}
inline int64_t dim(const Value* value, size_t axis) { return value->type.shape.dims[axis].size; }
/// Why the group is not all f32, or nothing.
std::optional<std::string> not_f32(const Group& group);
Activation activation_of(const Epilogue& epilogue);
/// The images and windows of size kh x kw of a convolution or pooling.
SlideSpec slide_of(const Node& node, const Value* x, const Value* y, int64_t kh, int64_t kw);
inline SlideSpec slide_of(const Node& node, int64_t kh, int64_t kw) {
  return slide_of(node, node.inputs[0], node.result(), kh, kw);
}

/// Whether no kernel takes a group.
using Refuses = FunctionRef<bool(const Group&)>;

/// Groups of contractions with their epilogues, and of element-wise nodes; f32 only. Disjoint.
std::vector<Group> propose_groups(const Block& block, const Uses& uses, Refuses refuses);

/// The group as a contraction, or nothing when it is none.
std::optional<Contraction> as_contraction(const Group& group);
/// The group as the op of this name and an epilogue to its first result, or nothing.
std::optional<Contraction> as_extended(const Group& group, std::string_view op);

}  // namespace cairn
