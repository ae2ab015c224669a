// Ops that create values: constants and number sequences.
#include "ops/families.h"
#include "ops/kernels.h"
#include "ops/rows.h"

namespace cairn {

namespace {

void infer_constant(InferContext& context) {
  const Tensor& value = context.attr.tensor("value");
  if (!value.defined()) context.fail("value is missing");
  context.result(value.type());
}

void constant(KernelContext& context) {
  const Tensor& value = context.attr.tensor("value");
  Tensor& y = context.allocate(0, value.dtype(), value.dims());
  if (value.dtype() == kString)
    copy_elements(value, y);
  else
    std::memcpy(y.mutable_data(), value.data(), value.bytes());
}

template <class T>
int64_t sequence_length(const InferContext& context) {
  const auto start = *data<T>(*context.constant(0)), limit = *data<T>(*context.constant(1)),
             step = *data<T>(*context.constant(2));
  if (step == 0) context.fail("step is 0");
  if constexpr (kIsFloat<T>) {
    const double length =
        std::ceil((static_cast<double>(limit) - static_cast<double>(start)) / static_cast<double>(step));
    if (!(length < 0x1p55))
      context.fail("{} to {} by {} is no sequence", static_cast<double>(start), static_cast<double>(limit),
                   static_cast<double>(step));
    return length > 0 ? static_cast<int64_t>(length) : 0;
  } else {
    const __int128 distance = __int128{limit} - start, stride = step;
    const __int128 length = (distance + stride + (stride > 0 ? -1 : 1)) / stride;
    if (length > (int64_t{1} << 55)) context.fail("{} to {} by {} is too long", start, limit, step);
    return (stride > 0) == (distance > 0) && distance != 0 ? static_cast<int64_t>(length) : 0;
  }
}

void infer_iota(InferContext& context) {
  const DType dtype = context.attr.dtype("dtype");
  if (dtype != kI64 && dtype != kI32 && dtype != kF32)
    context.fail("dtype must be i64, i32 or f32, found {}", to_string(dtype));
  if (equal_types(context) != dtype)
    context.fail("inputs are {}, dtype is {}", to_string(context.dtype(0)), to_string(dtype));
  for (size_t i : {0, 1, 2}) require_scalar(context, i);
  Dim length;
  if (context.constant(0) && context.constant(1) && context.constant(2))
    with_numbers(dtype, [&](auto tag) { length = sequence_length<decltype(tag)>(context); });
  context.result(dtype, Shape{length});
}

void iota(KernelContext& context) {
  allocate_results(context);
  Tensor& y = context.output(0);
  with_numbers(y.dtype(), [&](auto tag) {
    using T = decltype(tag);
    const T start = *data<T>(context.input(0)), step = *data<T>(context.input(2));
    for (const int64_t i : turns(y.count())) {
      if constexpr (kIsFloat<T>)
        data<T>(y)[i] =
            T(static_cast<Compute<T>>(static_cast<double>(start) + static_cast<double>(i) * static_cast<double>(step)));
      else
        data<T>(y)[i] = wrapped(start, wrapped(static_cast<T>(i), step, std::multiplies<>()), std::plus<>());
    }
  });
}

std::vector<OpDef> make_constants_rows() {
  return {
      {.name = "constant",
       .summary = "the value itself",
       .attributes = {{"value", AttrKind::tensor}},
       .traits = kNotFoldable,
       .infer = infer_constant,
       .reference = constant,
       .oracle = {"value"},
       .cases = {"{value = f32[2] (1.5, -2.0)}", "{value = i64[] (7)}", "{value = bool[2, 1] (true, false)}",
                 "{value = f32[0] ()}"}},
      {.name = "iota",
       .summary = "start, start + step, ... below (with a negative step above) limit; element i of floats is start + i "
                  "* step rounded once; a step of "
                  "0 is an error",
       .inputs = {shape_operand("start", Accepts::numbers), shape_operand("limit", Accepts::numbers),
                  shape_operand("step", Accepts::numbers)},
       .attributes = {{"dtype", AttrKind::dtype}},
       .precision = Precision::rounded,
       .infer = infer_iota,
       .reference = iota,
       .oracle = {"np.arange(start, limit, step, dtype)"},
       .cases = {"i64[]=[0], i64[]=[10], i64[]=[1] {dtype = i64}", "i32[]=[5], i32[]=[-4], i32[]=[-3] {dtype = i32}",
                 "f32[]=[0.5], f32[]=[4], f32[]=[0.5] {dtype = f32}", "i64[]=[3], i64[]=[3], i64[]=[1] {dtype = i64}",
                 "i64[]=[3], i64[]=[1], i64[]=[1] {dtype = i64}", "f32[]=[1], f32[]=[0], f32[]=[-0.25] {dtype = f32}"}},
  };
}

}  // namespace

std::span<const OpDef> constant_ops() {
  static const std::vector<OpDef> rows = make_constants_rows();
  return rows;
}

}  // namespace cairn
