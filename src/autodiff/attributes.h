// The attributes by which differentiation knows loops and calls.
#pragma once

#include "ir/module.h"

namespace cairn {

inline constexpr const char* kCarried = "carried";
inline constexpr const char* kCallee = "callee";

inline bool is_loop(const Node& node) { return node.op->find_attribute(kCarried) != nullptr; }
inline size_t carried_count(const Node& node) { return static_cast<size_t>(node.attr().integer(kCarried)); }
inline bool recomputes(const Node& node) { return node.attr().boolean("recompute"); }
inline const std::string& backward_of(const Node& node) {
  return std::get<FunctionName>(node.attr().get("backward")).name;
}
inline bool has_backward(const Node& node) { return !backward_of(node).empty(); }

}  // namespace cairn
