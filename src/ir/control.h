// Control flow: what the rows of `if`, `while` and `call` say about their nodes, what regions capture, which calls have
// side effects.
#pragma once

#include <optional>
#include <set>
#include <unordered_set>

#include "ir/module.h"

namespace cairn {

/// Attributes of `while` and `call`.
inline constexpr const char* kCarried = "carried";
inline constexpr const char* kCallee = "callee";

inline bool is_loop(const Node& node) { return node.op->has(kLoop); }
inline bool is_call(const Node& node) { return node.op->has(kCall); }
/// How many of a loop's inputs each iteration replaces (the first ones); 0 for a node that is no loop.
inline size_t carried_count(const Node& node) {
  return is_loop(node) ? static_cast<size_t>(node.attr().integer(kCarried)) : 0;
}
/// The index of the input that becomes the regions' first param: an `if` does not pass its condition on.
inline size_t first_region_input(const Node& node) { return is_loop(node) ? 0 : 1; }
inline const std::string& callee_name(const Node& call) {
  return std::get<FunctionName>(call.attr().get(kCallee)).name;
}
/// Whether the gradient of the call recomputes the callee instead of storing its intermediate values.
inline bool recomputes(const Node& call) { return call.attr().boolean("recompute"); }
/// The name of the function that the user gave as the call's gradient; "" when there is none.
inline const std::string& backward_of(const Node& call) {
  return std::get<FunctionName>(call.attr().get("backward")).name;
}
inline bool has_backward(const Node& call) { return !backward_of(call).empty(); }

/// The values that the nodes of a block use as operands or that the block returns.
std::unordered_set<const Value*> used_values(const Block& block);
/// Drops the captures that no region of the node uses; returns the removed inputs.
std::vector<Value*> drop_unused_captures(Node& node);

/// Keeps only the elements whose mark is set.
template <class T>
void keep(std::vector<T>& list, const std::vector<bool>& marks) {
  size_t at = 0;
  for (size_t i = 0; i < list.size(); ++i)
    if (marks[i] && at++ != i) list[at - 1] = std::move(list[i]);
  list.resize(at);
}

/// Which nodes write state: themselves, in their regions or through calls. A call of a function that the module lacks
/// is taken to write state.
class Effects {
 public:
  /// Without a module every call is taken to write state.
  explicit Effects(const Module* module) : module_(module) {}
  bool of(const Node& node);

 private:
  void find_harmless();

  const Module* module_;
  std::optional<std::set<std::string>> harmless_;  // functions that write no state; computed at the first call
};

}  // namespace cairn
