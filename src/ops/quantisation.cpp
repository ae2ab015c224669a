// Numbers as integers of a scale and a zero point. Scales and zero points broadcast against x by NumPy's rules: one for all,
// or of the shape [n, 1, 1] for one of each channel.
#include "ops/quantisation.h"

#include "ops/families.h"
#include "ops/gradients.h"
#include "ops/rows.h"

namespace cairn {

void check_scale(const InferContext& context, const Shape& all, size_t of) {
  const Shape& each = context.shape(of);
  if (!all.ranked || !each.ranked) return;
  bool fits = each.rank() <= all.rank();
  for (size_t i = 0; fits && i < each.rank(); ++i) {
    const Dim &a = all.dims[all.rank() - each.rank() + i], &b = each.dims[i];
    fits = !a.known() || !b.known() || b.size == 1 || a.size == b.size;
  }
  if (!fits) context.fail("input {} must broadcast to {}, found {}", of, to_string(all), to_string(context.input(of)));
}

void check_zero_point(const InferContext& context, size_t x, const Shape& all, size_t of) {
  if (context.dtype(of) != context.dtype(x))
    context.fail("zero points must be {} as their elements, found {}", to_string(context.dtype(x)),
                 to_string(context.dtype(of)));
  check_scale(context, all, of);
}

Tensor centred(const Tensor& x, const Tensor& zero_point) {
  Tensor y = Tensor::zeros(kI32, x.dims());
  with_integers(x.dtype(), [&](auto tag) {
    using T = decltype(tag);
    const T *from = data<T>(x), *zeros = data<T>(zero_point);
    auto* to = data<int32_t>(y);
    walk<1>(x.dims(), {broadcast_strides(zero_point.dims(), x.dims())}, [&](int64_t n, auto& at) {
      to[n] = wrapped(static_cast<int32_t>(from[n]), static_cast<int32_t>(zeros[at[0]]), std::minus<>());
    });
  });
  return y;
}

namespace {

void check_quantize(InferContext& context) {
  if (context.dtype(0) != kF32 || context.dtype(1) != kF32) context.fail("x and scale must be f32");
  if (context.dtype(2).bits > 16) context.fail("results of {} are not supported", to_string(context.dtype(2)));
  check_scale(context, context.shape(0), 1);
  check_scale(context, context.shape(0), 2);
}

void infer_quantize(InferContext& context) {
  check_quantize(context);
  context.result(context.dtype(2), context.shape(0));
}

/// Gives `store` each place of x with the integer that stands for it, and its scale and zero point.
template <class Store>
void quantized(KernelContext& context, Store store) {
  allocate_results(context);
  const Tensor &x = context.input(0), &scale = context.input(1), &zero = context.input(2);
  with_integers(zero.dtype(), [&](auto tag) {
    using T = decltype(tag);
    walk<2>(x.dims(), {broadcast_strides(scale.dims(), x.dims()), broadcast_strides(zero.dims(), x.dims())},
            [&](int64_t n, auto& at) {
              const float step = data<float>(scale)[at[0]], steps = std::nearbyint(data<float>(x)[n] / step);
              const T middle = data<T>(zero)[at[1]];
              store(n, saturate<T>(static_cast<double>(steps) + middle), step, middle);
            });
  });
}

void quantize(KernelContext& context) {
  quantized(context, [&](int64_t n, auto y, float, auto) { data<decltype(y)>(context.output(0))[n] = y; });
}

void infer_fake_quantize(InferContext& context) {
  check_quantize(context);
  context.result(kF32, context.shape(0));
}

void fake_quantize(KernelContext& context) {
  quantized(context, [&](int64_t n, auto y, float scale, auto zero) {
    data<float>(context.output(0))[n] =
        static_cast<float>(static_cast<int64_t>(y) - static_cast<int64_t>(zero)) * scale;
  });
}

void infer_dequantize(InferContext& context) {
  if (context.dtype(1) != kF32 && context.dtype(1) != kF64)
    context.fail("scale must be f32 or f64, found {}", to_string(context.dtype(1)));
  if (context.dtype(0).bits > 16 && context.dtype(0) != kI32)
    context.fail("{} elements are not supported", to_string(context.dtype(0)));
  check_scale(context, context.shape(0), 1);
  check_zero_point(context, 0, context.shape(0), 2);
  context.result(context.dtype(1), context.shape(0));
}

void dequantize(KernelContext& context) {
  allocate_results(context);
  const Tensor steps = centred(context.input(0), context.input(2)), &scale = context.input(1);
  const auto scaled = [&](auto tag) {
    using T = decltype(tag);
    walk<1>(steps.dims(), {broadcast_strides(scale.dims(), steps.dims())}, [&](int64_t n, auto& at) {
      data<T>(context.output(0))[n] = static_cast<T>(data<int32_t>(steps)[n]) * data<T>(scale)[at[0]];
    });
  };
  scale.dtype() == kF32 ? scaled(float()) : scaled(double());
}

void infer_dequantize_blocks(InferContext& context) {
  const int64_t bits = context.attr.integer("bits"), block = context.attr.integer("block");
  const int64_t columns = context.attr.integer("columns");
  if (bits != 4 && bits != 8) context.fail("bits must be 4 or 8, found {}", bits);
  if (block < 1 || columns < 0) context.fail("block and columns must be positive, found {} and {}", block, columns);
  if (context.dtype(0) != kU8) context.fail("x must be u8, found {}", to_string(context.dtype(0)));
  for (size_t i : {1, 2})
    if (context.dtype(i) != kF32) context.fail("input {} must be f32, found {}", i, to_string(context.dtype(i)));
  Dim rows;
  const auto read = [&](size_t i, int64_t least, bool exact) {
    const Shape& shape = context.shape(i);
    if (!shape.ranked) return;
    const bool fits = shape.rank() == 2 &&
                      (!shape.dims[1].known() || shape.dims[1].size == least || (!exact && shape.dims[1].size > least));
    if (!fits || (rows.known() && shape.dims[0].known() && shape.dims[0] != rows))
      context.fail("input {} must have {}{} elements in each of the rows of x, found {}", i, exact ? "" : "at least ",
                   least, to_string(context.input(i)));
    if (!rows.known()) rows = shape.dims[0];
  };
  const int64_t blocks = columns / block + (columns % block != 0);
  read(0, bits == 8 ? columns : columns / 2 + columns % 2, false);
  read(1, blocks, true);
  if (!context.shape(2).ranked || context.shape(2).rank() > 0) read(2, blocks, true);
  context.result(kF32, Shape({rows, Dim(columns)}));
}

void dequantize_blocks(KernelContext& context) {
  allocate_results(context);
  const Tensor &x = context.input(0), &scale = context.input(1), &zero = context.input(2);
  const int64_t rows = context.output(0).dims()[0], columns = context.output(0).dims()[1];
  const int64_t block = context.attr.integer("block"), blocks = scale.dims()[1];
  const bool nibbles = context.attr.integer("bits") == 4;
  auto* to = data<float>(context.output(0));
  for (const int64_t row : turns(rows))
    for (const int64_t i : turns(columns)) {
      const uint8_t byte = data<uint8_t>(x)[row * x.dims()[1] + (nibbles ? i / 2 : i)];
      const int code = nibbles ? byte >> (i % 2 * 4) & 15 : byte;
      const int64_t at = row * blocks + i / block;
      *to++ = (static_cast<float>(code) - data<float>(zero)[zero.rank() ? at : 0]) * data<float>(scale)[at];
    }
}

std::vector<Value*> dequantize_parts(Builder& b, const Node& node) {
  const auto as = [&](size_t i, DType dtype) { return b.add("cast", {node.inputs[i]}, {{"dtype", dtype}}); };
  Value* steps = b.add("sub", {as(0, kI32), as(2, kI32)});
  return {b.add("mul", {b.add("cast", {steps}, {{"dtype", node.inputs[1]->type.dtype}}), node.inputs[1]})};
}

std::pair<double, double> range_of(DType dtype) {
  const double low = dtype.kind == DType::Kind::signed_int ? -std::exp2(dtype.bits - 1) : 0;
  return {low, low + std::exp2(dtype.bits) - 1};
}

std::vector<Value*> quantize_parts(Builder& b, const Node& node) {
  const DType dtype = node.inputs[2]->type.dtype;
  const auto [low, high] = range_of(dtype);
  Value* steps = b.add("round", {b.add("div", {node.inputs[0], node.inputs[1]})});
  Value* moved = b.add("add", {steps, b.add("cast", {node.inputs[2]}, {{"dtype", kF32}})});
  return {b.add("cast", {b.add("clip", {moved}, {{"low", low}, {"high", high}})}, {{"dtype", dtype}})};
}

// y = x scale, so that the gradient of a scale of 1 gives the centred x.
void dequantize_rule(GradientContext& g) {
  if (!g.wanted(1)) return;
  const Var one = {g.b, g.b.scalar_like(g.x(1).value, 1)};
  const Var steps = {g.b, g.b.add("dequantize_linear", {g.x(0).value, one.value, g.x(2).value})};
  g.set(1, sum_to_like(g.dy() * steps, g.x(1)));
}

std::vector<Value*> fake_quantize_parts(Builder& b, const Node& node) {
  Value* steps = b.add("quantize_linear", node.inputs);
  return {b.add("dequantize_linear", {steps, node.inputs[1], node.inputs[2]})};
}

// The straight-through estimator: y moves with x inside of the range, and with a bound, which is a multiple of the scale, beyond it.
// For the scale the rounding error counts as well (Esser et al. 2020, "Learned step size quantization").
void fake_quantize_rule(GradientContext& g) {
  const Var x = g.x(0), scale = g.x(1), none = x.number(0);
  const auto [low, high] = range_of(g.x(2).dtype());
  const Var steps = (x / scale).apply("round") + cast(g.x(2), kF32);
  const Var outside = (steps < low).apply("or", {steps > high});
  if (g.wanted(0)) g.set(0, select(outside, none, g.dy()));
  if (g.wanted(1)) g.set(1, sum_to_like(g.dy() * (g.y() - select(outside, none, x)) / scale, scale));
}

std::vector<OpDef> make_quantisation_rows() {
  const std::vector<InputDef> scaled = {{"scale", Accepts::floats}, {"zero_point", Accepts::integers}};
  return {
      {.name = "quantize_linear",
       .summary =
           "x / scale rounded to the nearest, halves to even, + zero_point, cut to the range of zero_point's type, "
           "which the result has; scale and zero_point broadcast to x; NaN gives 0",
       .inputs = {{"x", Accepts::floats}, scaled[0], scaled[1]},
       .traits = kElementwise,
       .infer = infer_quantize,
       .decompose = quantize_parts,
       .reference = quantize,
       .oracle = {"np.clip(np.round(x / scale) + zero_point, np.iinfo(zero_point.dtype).min, "
                  "np.iinfo(zero_point.dtype).max).astype(zero_point.dtype)"},
       .cases = {"f32[2, 3], f32[]=[0.02], u8[]=[128]", "f32[70], f32[]=[0.05], i8[]=[3]",
                 "f32[2, 5, 3], f32[3]=[0.01, 0.25, 2], i8[3]=[0, 1, -5]",
                 "f32[2, 3, 4], f32[3, 1]=[0.01, 0.25, 2], u8[]=[7]", "f32[3], f32[]=[0.001], i16[]=[-4]",
                 "f32[], f32[]=[0.5], u16[]=[9]", "f32[0], f32[]=[1], u8[]=[0]"}},
      {.name = "dequantize_linear",
       .summary = "(x - zero_point) * scale in the type of scale, the difference in i32, which wraps; scale and "
                  "zero_point broadcast to x",
       .inputs = {{"x", Accepts::integers}, scaled[0], scaled[1]},
       .traits = kElementwise | kNotFoldable,  // integers of constants are what products take: dequantize_constants
       .infer = infer_dequantize,
       .gradient = dequantize_rule,
       .decompose = dequantize_parts,
       .reference = dequantize,
       .oracle = {"((x.astype(np.int64) - zero_point).astype(scale.dtype) * scale).astype(scale.dtype)"},
       .cases = {"u8[2, 3], f32[], u8[]=[128]", "i8[70], f32[], i8[]=[-3]", "i8[2, 5, 3], f32[3], i8[3]=[0, 1, -5]",
                 "u8[2, 3, 4], f32[3, 1], u8[3, 1]=[7, 0, 255]", "i32[33, 17], f32[17], i32[]=[0]",
                 "i16[3], f32[], i16[]=[-4]", "u16[], f32[], u16[]=[9]", "u8[0], f32[], u8[]=[0]",
                 "i8[2, 3], f64[3], i8[]=[5]"}},
      {.name = "fake_quantize",
       .summary = "x as quantize_linear and dequantize_linear would give it back; the gradient passes through the "
                  "rounding, to x "
                  "within the range of zero_point's type and to scale",
       .inputs = {{"x", Accepts::floats}, scaled[0], scaled[1]},
       .traits = kElementwise,
       .infer = infer_fake_quantize,
       .gradient = fake_quantize_rule,
       .decompose = fake_quantize_parts,
       .reference = fake_quantize,
       .oracle = {"((np.clip(np.round(x / scale) + zero_point, np.iinfo(zero_point.dtype).min, "
                  "np.iinfo(zero_point.dtype).max) - zero_point) * scale).astype(x.dtype)"},
       .cases = {"f32[2, 3], f32[]=[0.02], u8[]=[128]", "f32[2, 5, 3], f32[3]=[0.01, 0.25, 2], i8[3]=[0, 1, -5]",
                 "f32[], f32[]=[0.5], u16[]=[9]", "f32[0], f32[]=[1], u8[]=[0]"}},
      {.name = "dequantize_blocks",
       .summary =
           "(code - zero) * scale for unsigned codes of 4 bits (the first in the low half of a byte) or 8, of so "
           "many columns; scale and zero (or one for all) are those of each block of a row's codes; bytes behind "
           "the last code are unused",
       .inputs = {{"x", Accepts::integers}, {"scale", Accepts::floats}, {"zero", Accepts::floats}},
       .attributes = {integer("bits", 8), integer("block", 32), integer("columns", 0)},
       .traits = kNotFoldable,  // as above
       .infer = infer_dequantize_blocks,
       .no_gradient = "its codes are integers",
       .reference = dequantize_blocks,
       .oracle = {"((np.stack([x & 15, x >> 4], -1).reshape(len(x), -1) if bits == 4 else x)[:, :columns] - "
                  "(np.repeat(zero, block, 1)[:, :columns] if zero.ndim else zero)) * np.repeat(scale, block, 1)[:, "
                  ":columns]"},
       .cases = {"u8[3, 8], f32[3, 2], f32[]=[8] {bits = 4, block = 8, columns = 16}",
                 "u8[2, 5], f32[2, 3], f32[2, 3] {bits = 4, block = 4, columns = 9}",
                 "u8[2, 7], f32[2, 2], f32[2, 2] {bits = 8, block = 4, columns = 7}",
                 "u8[0, 4], f32[0, 1], f32[]=[128] {bits = 8, block = 4, columns = 4}"}},
  };
}

}  // namespace

std::span<const OpDef> quantisation_ops() {
  static const std::vector<OpDef> rows = make_quantisation_rows();
  return rows;
}

}  // namespace cairn
