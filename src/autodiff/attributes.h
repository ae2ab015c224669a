// The attributes by which differentiation knows loops and calls.
#pragma once

#include "ir/control.h"

namespace cairn {

inline constexpr const char* kCarried = "carried";
inline constexpr const char* kCallee = "callee";

inline bool recomputes(const Node& node) { return node.attr().boolean("recompute"); }
inline const std::string& backward_of(const Node& node) {
  return std::get<FunctionName>(node.attr().get("backward")).name;
}
inline bool has_backward(const Node& node) { return !backward_of(node).empty(); }

}  // namespace cairn
