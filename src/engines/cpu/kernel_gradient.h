// The gradient of a convolution by its kernel: for each tap a product of the image, transposed, with dy.
#pragma once

#include "engines/cpu/call_step.h"

namespace cairn {

Refusal refuses_kernel_gradient(const Group& group);
std::unique_ptr<Step> make_kernel_gradient(const Group& group, MakeContext& context);
/// The same for a product: x [rows, in], transposed, with dy [rows, out]. x and dy: which inputs of the group they are.
std::unique_ptr<Step> make_transposed_product(int64_t rows, int64_t in, int64_t out, size_t x, size_t dy,
                                              MakeContext& context);

}  // namespace cairn
