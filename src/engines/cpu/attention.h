// Attention as one step: softmax(q k * scale + mask) v; surrounding transposes become strides.
#pragma once

#include "engines/cpu/call_step.h"

namespace cairn {

/// Questions about the graph around a node: the only user of a value (or null), and whether a node may join the group.
struct Surroundings {
  FunctionRef<const Node*(const Value*)> sole_user;
  FunctionRef<bool(const Node*)> joins;
};

/// The nodes of the attention around a softmax, in any order; empty when there is none.
std::vector<const Node*> find_attention(const Node& softmax, const Surroundings& around);

Refusal refuses_attention(const Group& group);
std::unique_ptr<Step> make_attention(const Group& group, MakeContext& context);

}  // namespace cairn
