// The integers and list lengths that a loop's turns compute, where they follow from what is known before the loop.
#pragma once

#include <functional>

#include "ir/module.h"

namespace cairn {

class LoopNumbers {
 public:
  /// What is known around the loop: of a value, its elements (of a list, how many it has); of a list, its elements one after
  /// the other.
  struct Known {
    std::function<std::optional<Tensor>(const Value*)> value, elements;
  };
  LoopNumbers(const Node& loop, const Known& known);

  /// 0 where it is not known, or more than is worth following.
  int64_t turns() const { return turns_; }
  /// By turn, of a value of the body: its one integer, or the length of the list. Null where it is not known.
  const std::vector<int64_t>* of(const Value* value) const;
  /// Of carried value i after the last turn.
  const std::optional<Tensor>& last(size_t i) const { return last_[i]; }
  /// The param of the body whose elements the list still has, if none were added or changed.
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
  std::vector<Tensor> elements_;                  // of the lists that the turns only read, by param
  std::unordered_map<const Value*, Tensor> now_;  // what is known has an entry
  std::unordered_map<const Value*, std::vector<int64_t>> by_turn_;
  std::vector<std::optional<Tensor>> last_;
  int64_t turns_ = 0;
};

}  // namespace cairn
