// Steps of nodes whose result dims follow from the elements of shape operands (a count, a shape, bounds) that only a run
// computes: the kernel for these dims is made in the run and kept for the next one with the same operands.
#pragma once

#include "engines/cpu/kernels.h"

namespace cairn {

/// A tensor whose dims only a run tells.
inline bool has_late_dims(const Value* value) { return value->type.is_tensor() && !value->type.shape.known(); }

/// A copy of a group's only node with constants for its shape operands, so that its result dims are known.
class SizedNode {
 public:
  /// With 1 for every unknown dim and every element of a shape operand; for asking kernels whether they take the node. Null
  /// when the result dims do not follow from shape operands.
  static std::unique_ptr<SizedNode> stand_in(const Group& group);
  /// With these elements of the shape operands, in the order of the node's inputs. Throws Error as the shape rule does.
  SizedNode(const Group& group, std::span<const Tensor> operands);

  const Group& group() const { return group_; }
  /// For each input of group(): its position among those of the group that it was copied from.
  const std::vector<size_t>& inputs() const { return inputs_; }

 private:
  SizedNode(const Group& group, std::span<const Tensor> operands, FunctionRef<std::vector<Type>(const Node&)> types);

  Block block_;
  Group group_;
  std::vector<size_t> inputs_;
};

/// The step of a group with late dims whose stand-in the kernel takes.
std::unique_ptr<Step> make_late_step(const Group& group, const CpuKernel& kernel, MakeContext& context);

}  // namespace cairn
