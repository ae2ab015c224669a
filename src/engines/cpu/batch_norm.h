// Batch normalisation in training: over a batch or by running statistics, with the addition and the relu that follow it, and its gradient with the
// relu's gradient before it.
#pragma once

#include "engines/cpu/call_step.h"

namespace cairn {

Refusal refuses_batch_norm_training(const Group& group);
std::unique_ptr<Step> make_batch_norm_training(const Group& group, MakeContext& context);

/// With running statistics, in a graph that trains; where they are constants, the convolution before has it in its weights.
Refusal refuses_batch_norm_inference(const Group& group);
std::unique_ptr<Step> make_batch_norm_inference(const Group& group, MakeContext& context);

Refusal refuses_batch_norm_gradient(const Group& group);
std::unique_ptr<Step> make_batch_norm_gradient(const Group& group, MakeContext& context);

/// The nodes select(r > 0, dy, 0) and r > 0 when they gate the gradient `dy` of one user alone; else nothing.
std::vector<const Node*> relu_gate(const Value* gradient, const Uses& uses);

}  // namespace cairn
