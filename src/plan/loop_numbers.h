// Abstract execution of a loop: the integers and list lengths in each iteration, if they follow from values known
// before the loop.
#pragma once

#include <functional>

#include "ir/module.h"

namespace cairn {

class LoopNumbers {
 public:
  /// What is known outside of the loop: `value` gives the elements of a value (for a list its length), `elements` the
  /// elements of a list, concatenated.
  struct Known {
    std::function<std::optional<Tensor>(const Value*)> value, elements;
  };
  LoopNumbers(const Node& loop, const Known& known);

  /// The number of iterations; 0 if it is unknown, or too large to follow.
  int64_t turns() const { return turns_; }
  /// For a value of the body, by iteration: its single integer, or the length of the list. Null if unknown.
  const std::vector<int64_t>* of(const Value* value) const;
  /// Carried value i after the last iteration, if known.
  const std::optional<Tensor>& last(size_t i) const { return last_[i]; }
  /// The param of the body from which the list derives by pops and resizes only, so that no element was changed.
  std::optional<size_t> origin(const Value* list) const;

 private:
  void find_origins();
  void find_known(const Known& known);
  bool can_know(const Node& node) const;
  void follow();
  Tensor computed(const Node& node, size_t result) const;
  Tensor element_popped(const Node& pop) const;

  const Node& loop_;
  const Block &condition_, &body_;
  std::unordered_map<const Value*, size_t> origins_;
  std::vector<Tensor> elements_;                  // of lists that the iterations only read, by param
  std::unordered_map<const Value*, Tensor> now_;  // known values in the current iteration
  std::unordered_map<const Value*, std::vector<int64_t>> by_turn_;
  std::vector<std::optional<Tensor>> last_;
  int64_t turns_ = 0;
};

}  // namespace cairn
