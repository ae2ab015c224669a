// Control flow: what the rows of `if`, `while` and `call` say about their nodes.
#pragma once

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

}  // namespace cairn
