// What a gradient rule works with, in the block where the gradient is computed: the node's operands and results and the
// gradients of its results. A rule emits nodes of ordinary ops, so that it can be differentiated again.
#pragma once

#include "ir/expression.h"

namespace cairn {

class GradientContext {
 public:
  /// `gradients`: one per result, null when the differentiated value does not depend on it. `wanted`: one per input.
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
  /// Whether the differentiated value depends on result i.
  bool has_dy(size_t i = 0) const { return gradients_[i] != nullptr; }
  /// The gradient of result i; zeros when there is none.
  Var dy(size_t i = 0) const { return gradients_[i] ? Var{b, gradients_[i]} : zeros_like(y(i)); }
  /// Whether the gradient of input i is asked for; gradients set for other inputs are ignored.
  bool wanted(size_t i) const { return wanted_[i]; }
  /// Sets the gradient of input i; an input for which none is set has gradient zero.
  void set(size_t i, Var gradient) { made_[i] = gradient.value; }
  Value* made(size_t i) const { return made_[i]; }

 private:
  const Node& node_;
  std::vector<Value*> inputs_, results_, gradients_;
  std::vector<bool> wanted_;
  std::vector<Value*> made_;
};

}  // namespace cairn
