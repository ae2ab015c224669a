// Control flow: what the rows of `if`, `while` and `call` say about their nodes, what regions capture, which calls act.
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
/// How many of a loop's inputs each turn replaces; 0 of another node.
inline size_t carried_count(const Node& node) {
  return is_loop(node) ? static_cast<size_t>(node.attr().integer(kCarried)) : 0;
}
/// The input that is the first param of the regions: an `if` keeps its condition to itself.
inline size_t first_region_input(const Node& node) { return is_loop(node) ? 0 : 1; }
inline const std::string& callee_name(const Node& call) {
  return std::get<FunctionName>(call.attr().get(kCallee)).name;
}
/// Of a call: whether a gradient computes the callee again, and the function that is its gradient.
inline bool recomputes(const Node& call) { return call.attr().boolean("recompute"); }
inline const std::string& backward_of(const Node& call) {
  return std::get<FunctionName>(call.attr().get("backward")).name;
}
inline bool has_backward(const Node& call) { return !backward_of(call).empty(); }

/// What the nodes and the results of a block take.
std::unordered_set<const Value*> used_values(const Block& block);
/// Drops the captures that no region of the node uses; returns the inputs that went.
std::vector<Value*> drop_unused_captures(Node& node);

/// Leaves those elements of the list whose mark is set.
template <class T>
void keep(std::vector<T>& list, const std::vector<bool>& marks) {
  size_t at = 0;
  for (size_t i = 0; i < list.size(); ++i)
    if (marks[i] && at++ != i) list[at - 1] = std::move(list[i]);
  list.resize(at);
}

/// Which nodes write state: themselves, in their regions or through calls. Calls of functions that the module lacks count.
class Effects {
 public:
  /// Without a module all calls count.
  explicit Effects(const Module* module) : module_(module) {}
  bool of(const Node& node);

 private:
  void find_harmless();

  const Module* module_;
  std::optional<std::set<std::string>> harmless_;  // functions, once a call asks for them
};

}  // namespace cairn
