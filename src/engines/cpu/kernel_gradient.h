// The gradient of a convolution by its kernel: for each tap the product of the transposed image with dy.
#pragma once

#include "engines/cpu/call_step.h"
#include "engines/cpu/narrow.h"

namespace cairn {

Refusal refuses_kernel_gradient(const Group& group);
std::unique_ptr<Step> make_kernel_gradient(const Group& group, MakeContext& context);
/// Whether each tile of the product of transposed x [rows, in] with dy [rows, out] would read a little of many rows.
constexpr bool has_many_transposed_rows(int64_t rows, int64_t in, int64_t out) {
  return rows >= 256 && in >= 64 && out >= 64;
}
/// The product of transposed x [rows, in] with dy [rows, out]. `x` and `dy` are the indices of the group's inputs.
std::unique_ptr<Step> make_transposed_product(int64_t rows, int64_t in, int64_t out, size_t x, Form x_form, size_t dy,
                                              Form dy_form, MakeContext& context);

}  // namespace cairn
