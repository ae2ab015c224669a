// Makes functions: nodes by op, regions, calls. Frontends, gradients, decompositions, passes, operators from users and the C
// ABI all build through it.
#pragma once

#include "ir/module.h"
#include "support/function_ref.h"

namespace cairn {

class Builder;

/// Builds the body of a region. The first argument appends to the region; the second holds the values that stand inside
/// it for the values passed in (its parameters and copies of captured constants). Returns the region's results.
using RegionBody = FunctionRef<std::vector<Value*>(Builder&, const std::vector<Value*>&)>;

/// Appends nodes to a block, inferring types; sources set on the builder go to every node it makes.
class Builder {
 public:
  explicit Builder(Block& block) : block_(&block) {}
  /// The node's first result. Throws Error invalid_model when the op refuses the inputs.
  Value* add(std::string_view op, std::vector<Value*> inputs, Attributes attributes = {}, std::string name = {});
  /// `types`: what is known about the results beyond inference; required for ops without a shape rule, such as call.
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
  /// `taken`: the outer values that the branches capture. Both branches return equally many values, whose types join
  /// (types.h).
  std::vector<Value*> make_if(Value* condition, const std::vector<Value*>& taken, RegionBody then,
                              RegionBody otherwise);
  /// `condition` returns one bool[], `body` the carried values of the next iteration. The parameters of both are the
  /// carried values, then the captures `taken`.
  std::vector<Value*> make_while(std::vector<Value*> carried, const std::vector<Value*>& taken, RegionBody condition,
                                 RegionBody body);

  Block& block() { return *block_; }
  std::vector<SourceId> sources;

 private:
  Block* block_;
};

/// The outer values that the regions of one node capture, in order. Constants are copied into the region instead of
/// becoming parameters, so that axes and sizes stay known there.
class Captures {
 public:
  explicit Captures(const std::vector<Value*>& values) : values_(values) {}
  /// The captured values that are not constants: these become inputs of the node.
  std::vector<Value*> inputs() const;
  /// A new block with one parameter per input. `inside` receives what stands in the block for each captured value.
  std::unique_ptr<Block> open(std::vector<Value*>& inside) const;
  /// The same for an existing block: the parameters are added after those that it has.
  void enter(Block& block, std::vector<Value*>& inside) const;

 private:
  std::vector<Value*> values_;
};

}  // namespace cairn
