// What an observer of a step needs to say whose values it sees: the tensor in a buffer, the source node that it is called
// by, and the script line that made that.
#pragma once

#include <optional>
#include <string>

#include "plan/plan.h"

namespace cairn {

/// "train.py:41" of the source node, told by a door that knows the script; later calls replace.
void set_script_line(std::string node, std::string location);
/// The source's own location, or what set_script_line said; may be empty.
std::string script_line(const Source& source);

/// What a node's results are called: its last source, whose results they are; without sources the op and value of ours.
struct Origin {
  std::string framework, name, op, location;
};
Origin origin_of(const Module& module, const Node& node);
/// Of the group's last node, or of the control node; empty for copies.
Origin origin_of(const Module& module, const PlannedStep& step);

/// A view of what lies in buffer `i` in the middle of a run; nothing for lists, states, strings, types narrower than a byte
/// and other places than host memory.
std::optional<Tensor> tensor_at(const Plan& plan, size_t i, void* const* buffers);

}  // namespace cairn
