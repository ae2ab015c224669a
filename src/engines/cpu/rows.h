// Kernels along axes: reductions, softmax, normalisation of rows, running sums, index of the largest, the k largest;
// linear algebra on the last two axes; Fourier transforms.
#pragma once

#include "engines/cpu/call_step.h"

namespace cairn {

/// Sums, means and maxima of f32 along adjacent axes.
Refusal refuses_reduction(const Group& group);
std::unique_ptr<Step> make_reduction(const Group& group, MakeContext& context);

/// All other reductions of numbers or bools, along any axes; slower: one result at a time.
Refusal refuses_fold(const Group& group);
std::unique_ptr<Step> make_fold(const Group& group, MakeContext& context);

/// softmax and log_softmax along any axis.
Refusal refuses_softmax(const Group& group);
std::unique_ptr<Step> make_softmax(const Group& group, MakeContext& context);

Refusal refuses_layer_norm(const Group& group);
std::unique_ptr<Step> make_layer_norm(const Group& group, MakeContext& context);

/// The nodes, in any order, of (x - mean) / sqrt(variance + epsilon) over the last axes that ends in this node, or nothing.
std::vector<const Node*> find_normalisation(const Node& last);
Refusal refuses_normalisation(const Group& group);
std::unique_ptr<Step> make_normalisation(const Group& group, MakeContext& context);

Refusal refuses_arg(const Group& group);
std::unique_ptr<Step> make_arg(const Group& group, MakeContext& context);

Refusal refuses_top_k(const Group& group);
std::unique_ptr<Step> make_top_k(const Group& group, MakeContext& context);

/// The rows of src/ops/linear_algebra.cpp.
Refusal refuses_linear_algebra(const Group& group);
std::unique_ptr<Step> make_linear_algebra(const Group& group, MakeContext& context);

/// The rows of src/ops/fourier.cpp.
Refusal refuses_fourier(const Group& group);
std::unique_ptr<Step> make_fourier(const Group& group, MakeContext& context);

Refusal refuses_cumsum(const Group& group);
std::unique_ptr<Step> make_cumsum(const Group& group, MakeContext& context);

}  // namespace cairn
