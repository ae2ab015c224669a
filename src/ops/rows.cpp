#include "ops/rows.h"

#include "ops/kernels.h"

namespace cairn {

Value* scalar_like(Builder& builder, const Value* like, double value) {
  Tensor scalar = Tensor::uninitialized(like->type.dtype, {});
  with_numbers(scalar.dtype(), [&](auto tag) { *data<decltype(tag)>(scalar) = saturate<decltype(tag)>(value); });
  return builder.constant(std::move(scalar));
}

}  // namespace cairn
