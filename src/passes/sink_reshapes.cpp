// Moves reshapes behind element-wise nodes, so that bias and activation directly follow the matrix product.
#include <algorithm>

#include "passes/facts.h"
#include "passes/passes.h"
#include "passes/rewriter.h"

namespace cairn {

namespace {

bool same_last_dim(const Type& a, const Type& b) {
  return a.shape.ranked && b.shape.ranked && a.shape.rank() > 0 && b.shape.rank() > 0 &&
         a.shape.dims.back().surely_equals(b.shape.dims.back());
}

/// The index of the node's reshaped input, if all other inputs are constants that broadcast to the shape before as
/// well.
std::optional<size_t> movable_input(const Node& node, const Rewriter& rewriter) {
  if (!node.op->has(kElementwise) || node.results.size() != 1) return {};
  if (node.is("dequantize_linear") && node.inputs[0]->type.dtype.bits == 8) return {};  // programs make floats of bytes
  std::optional<size_t> moved;
  for (size_t i = 0; i < node.inputs.size(); ++i) {
    const Node* producer = node.inputs[i]->producer;
    if (constant_of(node.inputs[i])) continue;
    if (moved || !producer || !producer->is("reshape") || rewriter.uses(node.inputs[i]) != 1) return {};
    const Node* before = producer->inputs[0]->producer;
    if (!before || !(before->op->has(kContraction) || before->op->has(kElementwise))) return {};
    if (!same_by_count(node.inputs[i]->type, Type::tensor(node.inputs[i]->type.dtype, node.result()->type.shape)))
      return {};
    moved = i;
  }
  if (!moved) return {};
  const Value* before = node.inputs[*moved]->producer->inputs[0];
  for (const Value* input : node.inputs) {
    const Tensor* constant = constant_of(input);
    if (!constant || constant->rank() == 0) continue;
    if (!along_last_dim(*constant) || constant->rank() > before->type.shape.rank()) return {};
    if (constant->count() != 1 && !same_last_dim(before->type, node.result()->type)) return {};
  }
  return moved;
}

}  // namespace

size_t sink_reshapes(Block& block, Module& module) {
  size_t inner = 0;
  Rewriter rewriter(block, &module);
  size_t changes = rewriter.run([&](Node& node) -> std::optional<std::vector<Value*>> {
    for (auto& region : node.regions) inner += sink_reshapes(*region, module);
    auto moved = movable_input(node, rewriter);
    if (!moved) return {};
    const Node& reshape = *node.inputs[*moved]->producer;
    std::vector<Value*> inputs = node.inputs;
    inputs[*moved] = reshape.inputs[0];
    Value* before = rewriter.like(node, std::move(inputs));
    before->name = node.result()->name;
    rewriter.inherit(reshape.sources);
    return std::vector<Value*>{rewriter.like(reshape, {before, reshape.inputs[1]})};
  });
  return changes + inner;
}

}  // namespace cairn
