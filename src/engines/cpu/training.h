// Kernels that only training needs, besides the convolution's gradients and batch normalisation: losses with their
// gradients, gradients of pooling and of depthwise convolution.
#pragma once

#include "engines/cpu/call_step.h"

namespace cairn {

/// softmax_cross_entropy, with labels as probabilities or as class numbers.
Refusal refuses_cross_entropy(const Group& group);
std::unique_ptr<Step> make_cross_entropy(const Group& group, MakeContext& context);

Refusal refuses_pool_gradient(const Group& group);
std::unique_ptr<Step> make_pool_gradient(const Group& group, MakeContext& context);
Refusal refuses_pool_places(const Group& group);
std::unique_ptr<Step> make_pool_places(const Group& group, MakeContext& context);
/// The gradient of a maximum pooling with the nodes x > 0 and select(x > 0, gradient, 0) of the relu before it that alone reads
/// it; else nothing.
std::vector<const Node*> gated_pool_gradient(const Node& gradient, const Uses& uses);

/// conv2d_input_gradient and conv2d_kernel_gradient of depthwise convolutions with one filter per channel.
Refusal refuses_depthwise_gradient(const Group& group);
std::unique_ptr<Step> make_depthwise_gradient(const Group& group, MakeContext& context);

}  // namespace cairn
