// Reverse-mode differentiation of blocks: visits the nodes from last to first and appends nodes that compute the
// gradients of their inputs. Forward and backward computation share one block (for a function), or stand in two blocks
// (for regions and recursive functions); then the backward block gets forward values through captures and tapes.
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
  /// Params of the forward block from this index on are loop-invariant inputs of its node, which the backward block can
  /// capture as well.
  size_t first_capture = SIZE_MAX;
  const Node* node = nullptr;  // the node whose region the forward block is

  std::unordered_map<const Value*, Value*> gradients;  // of forward values
  std::unordered_set<const Value*> forward_values;     // empty when both blocks are one
  std::unordered_map<const Value*, Value*> known;      // forward value -> its counterpart in the backward block
  std::vector<std::unique_ptr<Node>> prologue;         // nodes to be put at the start of the backward block
  std::vector<std::pair<Value*, std::unique_ptr<Value>>> captures;  // outer value, param of the backward block

  bool in_one_block() const { return forward == backward; }
  Value* gradient(const Value* value) const {
    auto found = gradients.find(value);
    return found == gradients.end() ? nullptr : found->second;
  }
};

class Differentiator {
 public:
  explicit Differentiator(Module& module) : module_(module) {}

  /// Differentiates the function in place: `results` and `wanted` are values of its body, `cotangents` the gradients of
  /// the results (null: ones). Returns the gradients of the wanted values, zeros for those on which no result depends.
  std::vector<Value*> differentiate(Function& function, const std::vector<Value*>& results,
                                    const std::vector<Value*>& cotangents, const std::vector<Value*>& wanted);
  /// The last step: replaces the marks of tapes by lists. Unused nodes stay in the differentiated function; prune()
  /// removes them.
  void finish();

 private:
  using Gradients = std::vector<Value*>;  // one per result or input of a node; null: no gradient
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
  /// The backward block's counterpart of a forward value: a copy (constants), a capture, or an element from a tape.
  Value* need(Sweep& sweep, Value* forward);
  /// For the nodes of the backward block from `first` on: moves those that belongs_forward() accepts to the forward
  /// block, and replaces forward values among the other nodes' inputs by their counterparts.
  void settle(Sweep& sweep, size_t first);
  bool belongs_forward(const Sweep& sweep, const Node& node) const;
  /// Zeros like a forward value, made in the backward block.
  Value* zeros(Sweep& sweep, Value* forward);
  Value* gradient_or_zeros(Sweep& sweep, Value* forward);
  Value* sum(Builder& builder, Value* a, Value* b);
  /// A forward function that pushes to tapes, and the backward function that pops from them.
  const Pair& pair_of(const Key& key);
  /// The name of the function of inputs and result gradients that computes forward and backward in one.
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
