// Ops without arithmetic of their own.
#include "ops/families.h"
#include "ops/kernels.h"
#include "ops/rows.h"

namespace cairn {

namespace {

void identity(KernelContext& context) {
  const HostValue& x = context.value(0);
  if (!x.tensor.defined()) {
    context.result(0) = x;
    return;
  }
  Tensor& y = context.allocate(0, x.tensor.dtype(), x.tensor.dims());
  if (y.dtype() == kString)
    copy_elements(x.tensor, y);
  else
    std::memcpy(y.mutable_data(), x.tensor.data(), x.tensor.bytes());
}

void check_assertion(KernelContext& context) {
  for (uint8_t holds : context.input(0).values<uint8_t>())
    if (!holds) context.fail("{}", context.attr.text("message"));
}

std::vector<OpDef> make_host_rows() {
  return {
      {.name = "identity",
       .summary = "x itself",
       .inputs = {{"x", Accepts::any}},
       .traits = kView | kInPlace,
       .infer = [](InferContext& context) { context.result(context.input(0)); },
       .reference = identity,
       .oracle = {"x"},
       .cases = {"f32[2, 3]", "i64[]", "bool[0, 2]", "f16[5]"}},
      {.name = "assert",
       .summary = "stops the run with the message unless every element of the condition holds",
       .inputs = {{"condition", Accepts::boolean}, {"after", Accepts::token, InputDef::Arity::optional}},
       .attributes = {{"message", AttrKind::text}},
       .results = {},
       .traits = kWritesState | kNotFoldable,
       .infer = [](InferContext&) {},
       .reference = check_assertion,
       .oracle = untested("has no result: tests/ops/kernel_test.cpp")},
  };
}

}  // namespace

std::span<const OpDef> host_ops() {
  static const std::vector<OpDef> rows = make_host_rows();
  return rows;
}

}  // namespace cairn
