// Makes functions: nodes by op, regions, calls. Frontends, gradients, decompositions, passes, operators from users and the C
// ABI all build through it.
#pragma once

#include "ir/module.h"
#include "support/function_ref.h"

namespace cairn {

class Builder;

/// Fills a region: gets a builder for it and what stands inside for the values handed in; returns the region's results.
using RegionBody = FunctionRef<std::vector<Value*>(Builder&, const std::vector<Value*>&)>;

/// Appends nodes to a block, inferring types; sources set on the builder go to every node it makes.
class Builder {
 public:
  explicit Builder(Block& block) : block_(&block) {}
  /// The node's first result. Throws Error invalid_model when the op refuses the inputs.
  Value* add(std::string_view op, std::vector<Value*> inputs, Attributes attributes = {}, std::string name = {});
  /// `types`: what is known about the results beyond inference (all there is for ops without a shape rule, like call).
  Node* add_node(const OpDef& op, std::vector<Value*> inputs, Attributes attributes = {},
                 std::vector<std::unique_ptr<Block>> regions = {}, const std::vector<Type>& types = {},
                 std::string name = {});
  Value* constant(Tensor value, std::string name = {});
  Value* scalar(float value) { return constant(Tensor::scalar_f32(value)); }
  Value* ints(const std::vector<int64_t>& values) { return constant(Tensor::of_i64(values)); }
  /// A scalar of the element type, the value rounded to it (integers: saturated).
  Value* number(double value, DType dtype);
  Value* scalar_like(const Value* like, double value) { return number(value, like->type.dtype); }

  /// The results of calling a function of the module.
  std::vector<Value*> call(const Function& callee, std::vector<Value*> inputs);
  /// `taken` are the outer values that the branches use. Both branches return as many values, of types that join.
  std::vector<Value*> make_if(Value* condition, const std::vector<Value*>& taken, RegionBody then,
                              RegionBody otherwise);
  /// `condition` returns one bool[], `body` the carried values of the next turn; both get carried values, then `taken`.
  std::vector<Value*> make_while(std::vector<Value*> carried, const std::vector<Value*>& taken, RegionBody condition,
                                 RegionBody body);

  Block& block() { return *block_; }
  std::vector<SourceId> sources;

 private:
  Block* block_;
};

/// The outer values that the regions of one node take, in order. Constants are made again inside, so that axes and sizes
/// stay numbers there.
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

}  // namespace cairn
