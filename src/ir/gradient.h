// What a gradient rule sees of one node, in the block where the gradient is computed: the node's own operands and results are
// there, and the gradients of its results. A rule is written in rows, so that it can be differentiated again.
#pragma once

#include "ir/expression.h"

namespace cairn {

class GradientContext {
 public:
  /// `gradients`: one per result, null where nothing depends on it. `wanted`: one per input.
  GradientContext(Builder& builder, const Node& node, std::vector<Value*> inputs, std::vector<Value*> results,
                  std::vector<Value*> gradients, std::vector<bool> wanted)
      : b(builder), attr(node.attr()), node_(node), inputs_(std::move(inputs)), results_(std::move(results)),
        gradients_(std::move(gradients)), wanted_(std::move(wanted)), made_(inputs_.size(), nullptr) {}

  Builder& b;
  AttributeView attr;
  const Node& node() const { return node_; }
  size_t input_count() const { return inputs_.size(); }
  Var x(size_t i) const { return {b, inputs_[i]}; }
  Var y(size_t i = 0) const { return {b, results_[i]}; }
  /// Whether anything depends on result i.
  bool has_dy(size_t i = 0) const { return gradients_[i] != nullptr; }
  /// The gradient of result i, zeros where nothing depends on it.
  Var dy(size_t i = 0) const { return gradients_[i] ? Var{b, gradients_[i]} : zeros_like(y(i)); }
  /// Whether the gradient of input i is asked for; what is set for others is dropped.
  bool wanted(size_t i) const { return wanted_[i]; }
  /// The gradient of input i; an input that is never set gets none (its gradient is zero).
  void set(size_t i, Var gradient) { made_[i] = gradient.value; }
  Value* made(size_t i) const { return made_[i]; }

 private:
  const Node& node_;
  std::vector<Value*> inputs_, results_, gradients_;
  std::vector<bool> wanted_;
  std::vector<Value*> made_;
};

}  // namespace cairn
