// Reverse-mode differentiation of blocks: a walk over the nodes from the last to the first, which appends what the gradients
// of their inputs are. The forward computation and the backward one stand in one block (a function), or in two (regions, and
// functions that call themselves), where the backward one takes what it needs from captures and tapes.
#pragma once

#include <map>
#include <tuple>

#include "autodiff/activity.h"
#include "autodiff/tapes.h"
#include "ir/builder.h"

namespace cairn {

/// One forward block and the block of its backward computation.
struct Sweep {
  Block* forward;
  Block* backward;
  /// Params of the forward block from here on are inputs of its node that a capture can hand to the backward block as well.
  size_t first_capture = SIZE_MAX;
  const Node* node = nullptr;  // whose region the forward block is

  std::unordered_map<const Value*, Value*> gradients;  // of forward values
  std::unordered_set<const Value*> forward_values;     // empty: both blocks are one
  std::unordered_map<const Value*, Value*> known;      // forward values as they are seen in the backward block
  std::vector<std::unique_ptr<Node>> prologue;         // what stands first in the backward block
  std::vector<std::pair<Value*, std::unique_ptr<Value>>>
      captures;  // value around the node, param of the backward block

  bool in_one_block() const { return forward == backward; }
  Value* gradient(const Value* value) const {
    auto found = gradients.find(value);
    return found == gradients.end() ? nullptr : found->second;
  }
};

class Differentiator {
 public:
  explicit Differentiator(Module& module) : module_(module) {}

  /// Differentiates in place: `wanted` are values of the function's body; `results` and the gradients of them (null: ones).
  /// The gradients of the wanted values, zeros where nothing depends on them.
  std::vector<Value*> differentiate(Function& function, const std::vector<Value*>& results,
                                    const std::vector<Value*>& cotangents, const std::vector<Value*>& wanted);
  /// Replaces marks by lists; ends the work. What nothing needs stays in the function differentiated: prune() removes it.
  void finish();

 private:
  using Gradients = std::vector<Value*>;  // one per result or input of a node, null: none
  struct Key {
    std::string callee;
    std::vector<bool> wanted, given;
    auto operator<=>(const Key&) const = default;
  };
  struct Pair {
    Function *forward, *backward;
  };

  void open(Sweep& sweep, Block& forward, Block& backward);
  void close(Sweep& sweep);
  void run(Sweep& sweep);
  void seed(Sweep& sweep, Value* forward, Value* gradient);
  void visit(Sweep& sweep, Node& node);
  void accumulate(Sweep& sweep, const Value* forward, Value* gradient);
  Gradients by_rule(Sweep& sweep, Node& node, const Gradients& given);
  bool by_decomposition(Sweep& sweep, Node& node, const Gradients& given);
  Gradients of_branches(Sweep& sweep, Node& node, const Gradients& given);
  Gradients of_loop(Sweep& sweep, Node& node, Gradients given);
  Gradients of_call(Sweep& sweep, Node& node, const Gradients& given);
  Gradients of_custom_call(Sweep& sweep, Node& node, const Gradients& given);
  Gradients of_recomputed_call(Sweep& sweep, Node& node, const Gradients& given);

  bool wants(const Node& node, size_t i) const { return active_(node.inputs[i]) && carries_gradient(node, i); }
  /// A forward value as the backward block sees it.
  Value* need(Sweep& sweep, Value* forward);
  /// Makes the nodes of the backward block from `first` on see forward values, and moves what concerns these alone forward.
  void settle(Sweep& sweep, size_t first);
  bool belongs_forward(const Sweep& sweep, const Node& node) const;
  /// In the backward block, like a forward value.
  Value* zeros(Sweep& sweep, Value* forward);
  Value* gradient_or_zeros(Sweep& sweep, Value* forward);
  Value* sum(Builder& builder, Value* a, Value* b);
  /// The forward function that keeps what its backward function needs.
  const Pair& pair_of(const Key& key);
  /// The function that computes forward and backward, of inputs and gradients.
  const std::string& recomputing(const Key& key);

  /// Its nodes stand for the gradients of the node's sources: "gradients/conv1" of "conv1", as TensorFlow calls them.
  Builder backward_builder(Sweep& sweep, const Node& node);

  Module& module_;
  std::unordered_map<SourceId, SourceId> backward_sources_;
  Activity active_;
  Tapes tapes_;
  std::vector<Function*> roots_;
  std::map<Key, Pair> pairs_;
  std::map<Key, std::string> recomputing_;
};

}  // namespace cairn
