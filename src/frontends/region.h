// Regions as frontends fill them: outer values come in as parameters, constants are made again inside, so that axes and
// sizes stay numbers.
#pragma once

#include <memory>
#include <vector>

#include "ir/module.h"

namespace cairn {

/// The outer values that the regions of one node take, in order.
class Captures {
 public:
  explicit Captures(const std::vector<Value*>& values) : values_(values) {}
  /// The values that are no constants: the inputs of the node.
  std::vector<Value*> inputs() const;
  /// A block with a parameter for each input, and what stands for each value inside it.
  std::unique_ptr<Block> open(std::vector<Value*>& inside) const;
  /// Adds the same to a block that has other parameters before.
  void enter(Block& block, std::vector<Value*>& inside) const;

 private:
  std::vector<Value*> values_;
};

/// A bool[] from a scalar: what is not zero is true. Throws Error unsupported for other tensors.
Value* truth(Value* value, Builder& builder);

/// join() of types that may have nothing in common. Throws Error invalid_model.
Type joined_type(const Type& a, const Type& b, size_t number);

}  // namespace cairn
