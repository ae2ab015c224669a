// The gradient of a weight by a product or a convolution, and the optimiser's update that alone reads it.
#pragma once

#include "engines/cpu/call_step.h"

namespace cairn {

/// Whether the node makes the gradient of a weight as steps make it that can update the weight as well.
bool makes_weight_gradient(const Node& node);

Refusal refuses_updated_gradient(const Group& group);
/// The same whatever the number of rows of a product.
Refusal cannot_make_updated_gradient(const Group& group);
std::unique_ptr<Step> make_updated_gradient(const Group& group, MakeContext& context);

}  // namespace cairn
