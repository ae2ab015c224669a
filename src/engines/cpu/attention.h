// Attention as one step: softmax(q k * scale + mask) v, with the transposes around it read as strides.
#pragma once

#include "engines/cpu/call_step.h"

namespace cairn {

/// What surrounds a node: the only user of a value, or null; whether a node may be computed along.
struct Surroundings {
  FunctionRef<const Node*(const Value*)> sole_user;
  FunctionRef<bool(const Node*)> joins;
};

/// The nodes of the attention around a softmax, in no order; empty when there is none.
std::vector<const Node*> find_attention(const Node& softmax, const Surroundings& around);

Refusal refuses_attention(const Group& group);
std::unique_ptr<Step> make_attention(const Group& group, MakeContext& context);

}  // namespace cairn
