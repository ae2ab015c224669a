// Control flow: what the rows of `if`, `while` and `call` say about their nodes.
#pragma once

#include "ir/module.h"

namespace cairn {

/// Further traits of rows with kControl; `if` has neither.
inline constexpr uint32_t kLoop = 1 << 14;  // a condition and a body, which replaces the first `carried` inputs
inline constexpr uint32_t kCall = 1 << 15;  // runs the function that the attribute `callee` names

inline bool is_loop(const Node& node) { return node.op->has(kLoop); }
inline bool is_call(const Node& node) { return node.op->has(kCall); }
/// How many of a loop's inputs each turn replaces; 0 of another node.
inline size_t carried_count(const Node& node) {
  return is_loop(node) ? static_cast<size_t>(node.attr().integer("carried")) : 0;
}
/// The input that is the first param of the regions: an `if` keeps its condition to itself.
inline size_t first_region_input(const Node& node) { return is_loop(node) ? 0 : 1; }
inline const std::string& callee_name(const Node& call) {
  return std::get<FunctionName>(call.attr().get("callee")).name;
}

}  // namespace cairn
