// Batch normalisation in training: with batch or running statistics, fused with the addition and relu that follow it;
// and its gradient, fused with the gradient of that relu.
#pragma once

#include "engines/cpu/call_step.h"

namespace cairn {

Refusal refuses_batch_norm_training(const Group& group);
std::unique_ptr<Step> make_batch_norm_training(const Group& group, MakeContext& context);

/// With running statistics that are not constants; constant ones are folded into the preceding convolution's weights.
Refusal refuses_batch_norm_inference(const Group& group);
std::unique_ptr<Step> make_batch_norm_inference(const Group& group, MakeContext& context);

Refusal refuses_batch_norm_gradient(const Group& group);
std::unique_ptr<Step> make_batch_norm_gradient(const Group& group, MakeContext& context);

/// The nodes r > 0 and select(r > 0, dy, 0) that compute `gradient` for a single user; else nothing.
std::vector<const Node*> relu_gate(const Value* gradient, const Uses& uses);

}  // namespace cairn
