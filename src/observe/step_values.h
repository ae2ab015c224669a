// What observers need to identify the values of a step: the tensor in a buffer, the source node after which it is
// named, and the script line that created that node.
#pragma once

#include <optional>
#include <string>

#include "plan/plan.h"

namespace cairn {

/// Sets the script line ("train.py:41") of a source node; called by interfaces that know the script. Later calls
/// replace it.
void set_script_line(std::string node, std::string location);
/// The source's own location, or what set_script_line said; may be empty.
std::string script_line(const Source& source);

/// The name and type by which a node's results are known: those of its last source; without sources, of our op and
/// value.
struct Origin {
  std::string framework, name, op, location;
};
Origin origin_of(const Module& module, const Node& node);
/// The origin of the group's last node, or of the control node; empty for copies.
Origin origin_of(const Module& module, const PlannedStep& step);

/// A view of the content of buffer `i` during a run; nothing for lists, states, strings, types narrower than a byte and
/// memory other than the host's.
std::optional<Tensor> tensor_at(const Plan& plan, size_t i, void* const* buffers);

}  // namespace cairn
