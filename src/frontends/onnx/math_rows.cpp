// ONNX's element-wise ops and reductions, all operator sets from 7 on.
#include <cmath>
#include <limits>

#include "frontends/fold.h"
#include "frontends/onnx/importer.h"
#include "frontends/onnx/narrow.h"
#include "frontends/reshape.h"
#include "frontends/values.h"

namespace cairn::onnx {
namespace {

void unary(OpContext& c) {
  c.expect_inputs(1, 1);
  c.out = {c.b.add(c.target, c.in)};
}

/// Both operands. Up to operator set 6 the second one stands at an axis of the first: dims of 1 follow it.
std::vector<Value*> operands(OpContext& c) {
  c.expect_inputs(2, 2);
  if (c.opset >= 7 || c.integer("broadcast", 0) == 0 || !c.has("axis")) return c.in;
  const size_t rank = c.rank(0);
  const auto behind = static_cast<int64_t>(c.rank(1)) + normal_axis(c.integer("axis"), rank);
  std::vector<int64_t> added;
  for (int64_t axis = behind; axis < static_cast<int64_t>(rank); ++axis)
    added.push_back(axis - behind + static_cast<int64_t>(c.rank(1)));
  return {c.in[0], added.empty() ? c.in[1] : expand_dims(c.in[1], added, c.b)};
}

void binary(OpContext& c) { c.out = {c.b.add(c.target, operands(c))}; }

/// Sum, Max, Min: any number of inputs, one at least.
void variadic(OpContext& c) {
  c.expect_inputs(1, c.in.size());
  Value* result = c.in[0];
  for (size_t i = 1; i < c.in.size(); ++i) result = c.b.add(c.target, {result, c.in[i]});
  c.out = {result};
}

void mean(OpContext& c) {
  variadic(c);
  c.out[0] = c.b.add("div", {c.out[0], c.b.scalar_like(c.out[0], static_cast<double>(c.in.size()))});
}

void div(OpContext& c) {
  const std::vector<Value*> both = operands(c);
  c.out = {c.b.add(both[0]->type.dtype.is_integer() ? "truncate_div" : "div", both)};
}

void mod(OpContext& c) {
  c.expect_inputs(2, 2);
  c.out = {c.b.add(c.integer("fmod", 0) != 0 ? "truncate_mod" : "mod", c.in)};
}

/// An integer to the power of a float, which may be negative or broken, is computed in f64 and cut.
void pow(OpContext& c) {
  const std::vector<Value*> both = operands(c);
  const DType dtype = both[0]->type.dtype;
  if (dtype.is_integer() && both[1]->type.dtype.is_float()) {
    Value* wide = c.b.add("pow", {cast_to(both[0], kF64, c.b), cast_to(both[1], kF64, c.b)});
    c.out = {cast_to(wide, dtype, c.b)};
    return;
  }
  c.out = {c.b.add("pow", {both[0], cast_to(both[1], both[0]->type.dtype, c.b)})};
}

/// Numbers as ONNX Runtime writes them: eight digits of floats, NaN and INF by these names, bools as 1 and 0.
Value* text_of(Value* x, Builder& b) {
  if (!x->type.dtype.is_float()) return b.add("number_to_text", {x->type.dtype == kBool ? cast_to(x, kI32, b) : x});
  x = cast_to(x, x->type.dtype == kF64 ? kF64 : kF32, b);
  const auto text = [&](const char* of) { return b.constant(Tensor::of<std::string>(kString, {}, {of})); };
  Value* digits = b.add("number_to_text", {x}, {{"style", std::string("shortest")}, {"precision", int64_t{8}}});
  Value* sign = b.add("less", {x, b.scalar_like(x, 0)});
  Value* infinite = b.add("select", {sign, text("-INF"), text("INF")});
  Value* finite = b.add("select", {b.add("is_inf", {x}), infinite, digits});
  return b.add("select", {b.add("is_nan", {x}), text("NaN"), finite});
}

/// Texts become numbers, and numbers texts; narrow types are those of narrow.h.
void cast_as(OpContext& c, int32_t type) {
  const auto dtype = carrier_of(type);
  if (!dtype) c.refuse("elements of {} are not supported", type_name(type));
  Value* x = c.in[0];
  if (const int32_t from = c.narrow_type(0)) x = widened(x, from, c.b);
  if (is_narrow(type)) {
    const bool integers = *dtype == kI8 || (*dtype == kU8 && type_name(type).starts_with("UINT"));
    const bool saturate = !integers && c.integer("saturate", 1) != 0;
    c.out = {folded(narrowed(x, type, saturate, c.text("round_mode", "up"), c.b), c.b)};
    c.importer().mark_narrow(c.out[0], type);
    return;
  }
  if (x->type.dtype == kString && *dtype != kString)
    x = c.b.add("text_to_number", {x}, {{"dtype", dtype->is_integer() ? *dtype : kF32}});
  else if (x->type.dtype != kString && *dtype == kString)
    x = text_of(x, c.b);
  c.out = {cast_to(x, *dtype, c.b)};
}

void cast(OpContext& c) {
  c.expect_inputs(1, 1);
  cast_as(c, static_cast<int32_t>(c.integer("to")));
}

void cast_like(OpContext& c) {
  c.expect_inputs(2, 2);
  const int32_t type = c.narrow_type(1);
  cast_as(c, type != 0 ? type : type_of(c.in[1]->type.dtype));
}

/// Bounds are attributes up to operator set 10 and inputs, which may be left out, from 11 on.
void clip(OpContext& c) {
  c.expect_inputs(1, 3);
  if (c.opset < 11) {
    c.out = {c.b.add("clip", c.in,
                     {{"low", c.real("min", std::numeric_limits<float>::lowest())},
                      {"high", c.real("max", std::numeric_limits<float>::max())}})};
    return;
  }
  auto low = c.constant(1), high = c.constant(2);
  bool computed = (c.given(1) && !low) || (c.given(2) && !high);
  Value* result = c.in[0];
  if (computed) {
    if (c.given(1)) result = c.b.add("maximum", {result, c.in[1]});
    if (c.given(2)) result = c.b.add("minimum", {result, c.in[2]});
  } else if (low || high) {
    Attributes bounds;
    if (low && low->count() == 1) bounds.set("low", real_numbers(*low)[0]);
    if (high && high->count() == 1) bounds.set("high", real_numbers(*high)[0]);
    if (bounds.size() != size_t{low.has_value()} + size_t{high.has_value()}) c.refuse("bounds must be scalars");
    result = c.b.add("clip", {result}, bounds);
  }
  c.out = {result};
}

void leaky_relu(OpContext& c) {
  c.expect_inputs(1, 1);
  c.out = {c.b.add("leaky_relu", c.in, {{"alpha", c.real("alpha", 0.01f)}})};
}

void elu(OpContext& c) {
  c.expect_inputs(1, 1);
  c.out = {c.b.add("elu", c.in, {{"alpha", c.real("alpha", 1)}})};
}

void selu(OpContext& c) {
  c.expect_inputs(1, 1);
  Value* bent = c.b.add("elu", c.in, {{"alpha", c.real("alpha", 1.67326319217681884765625)}});
  c.out = {c.b.add("mul", {bent, c.b.scalar_like(bent, c.real("gamma", 1.05070102214813232421875))})};
}

void prelu(OpContext& c) {
  c.expect_inputs(2, 2);
  Value* zero = c.b.scalar_like(c.in[0], 0);
  Value *positive = c.b.add("less", {zero, c.in[0]}), *slope = c.in[1];
  if (c.opset < 7 && c.rank(1) == 1 && c.rank(0) > 2) {  // of channels
    std::vector<NewDim> dims(c.rank(0) - 1, NewDim{1, -1});
    dims[0] = {-1, 0};
    slope = reshape_to(slope, dims, c.b);
  }
  c.out = {c.b.add("select", {positive, c.in[0], c.b.add("mul", {c.in[0], slope})})};
}

Value* hard_sigmoid_of(OpContext& c, Value* x, double alpha, double beta) {
  Value* line = c.b.add("add", {c.b.add("mul", {x, c.b.scalar_like(x, alpha)}), c.b.scalar_like(x, beta)});
  return c.b.add("clip", {line}, {{"low", 0.0}, {"high", 1.0}});
}

void hard_sigmoid(OpContext& c) {
  c.expect_inputs(1, 1);
  c.out = {hard_sigmoid_of(c, c.in[0], c.real("alpha", 0.2f), c.real("beta", 0.5f))};
}

void hard_swish(OpContext& c) {
  c.expect_inputs(1, 1);
  c.out = {c.b.add("mul", {c.in[0], hard_sigmoid_of(c, c.in[0], 1.0 / 6, 0.5)})};
}

void gelu(OpContext& c) {
  c.expect_inputs(1, 1);
  c.out = {c.b.add("gelu", c.in, {{"approximate", c.text("approximate", "none") == "tanh"}})};
}

void swish(OpContext& c) {
  c.expect_inputs(1, 1);
  double alpha = c.real("alpha", 1);
  Value* bent = alpha == 1 ? c.in[0] : c.b.add("mul", {c.in[0], c.b.scalar_like(c.in[0], alpha)});
  c.out = {c.b.add("mul", {c.in[0], c.b.add("sigmoid", {bent})})};
}

void thresholded_relu(OpContext& c) {
  c.expect_inputs(1, 1);
  Value* above = c.b.add("greater", {c.in[0], c.b.scalar_like(c.in[0], c.real("alpha", 1))});
  c.out = {c.b.add("select", {above, c.in[0], c.b.scalar_like(c.in[0], 0)})};
}

void tan(OpContext& c) {
  c.expect_inputs(1, 1);
  c.out = {c.b.add("div", {c.b.add("sin", c.in), c.b.add("cos", c.in)})};
}

void is_inf(OpContext& c) {
  c.expect_inputs(1, 1);
  bool negative = c.integer("detect_negative", 1) != 0, positive = c.integer("detect_positive", 1) != 0;
  Value* infinite = c.b.add("is_inf", c.in);
  if (!negative || !positive) {
    Value* zero = c.b.scalar_like(c.in[0], 0);
    Value* sign = positive ? c.b.add("greater", {c.in[0], zero}) : c.b.add("less", {c.in[0], zero});
    if (!positive && !negative) sign = c.b.constant(Tensor::of<uint8_t>(kBool, {}, {0}));
    infinite = c.b.add("and", {infinite, sign});
  }
  c.out = {infinite};
}

void softsign(OpContext& c) {
  c.expect_inputs(1, 1);
  Value* one = c.b.scalar_like(c.in[0], 1);
  c.out = {c.b.add("div", {c.in[0], c.b.add("add", {one, c.b.add("abs", c.in)})})};
}

/// The axes of a reduction: an attribute in old operator sets, an input in new ones, all axes when left out.
std::vector<int64_t> reduction_axes(OpContext& c, bool& nothing) {
  auto axes = c.integers_of("axes", 1);
  bool empty = !axes || axes->empty();
  nothing = empty && c.integer("noop_with_empty_axes", 0) != 0;
  if (!empty) return *axes;
  std::vector<int64_t> all(c.rank(0));
  for (size_t i = 0; i < all.size(); ++i) all[i] = static_cast<int64_t>(i);
  return all;
}

Value* reduced(OpContext& c, const char* op, Value* x) {
  bool nothing = false;
  std::vector<int64_t> axes = reduction_axes(c, nothing);
  if (nothing) return x;
  return c.b.add(op, {x}, {{"axes", axes}, {"keep_dims", c.integer("keepdims", 1) != 0}});
}

void reduce(OpContext& c) {
  c.expect_inputs(1, 2);
  const bool truths = c.in[0]->type.dtype == kBool;
  const std::string_view op = c.target;
  c.out = {reduced(c,
                   truths && op == "reduce_max"   ? "reduce_any"
                   : truths && op == "reduce_min" ? "reduce_all"
                                                  : c.target,
                   c.in[0])};
}

/// Means of integers are their sums divided by the count, cut towards 0.
void reduce_mean(OpContext& c) {
  c.expect_inputs(1, 2);
  const DType dtype = c.in[0]->type.dtype;
  if (dtype.is_float()) return reduce(c);
  Value* wide = cast_to(c.in[0], kI64, c.b);
  Value *sum = reduced(c, "reduce_sum", wide),
        *ones = c.b.add("broadcast_to", {c.b.scalar_like(wide, 1), c.b.add("shape_of", {wide})});
  c.out = {cast_to(c.b.add("truncate_div", {sum, reduced(c, "reduce_sum", ones)}), dtype, c.b)};
}

void reduce_sum_square(OpContext& c) {
  c.expect_inputs(1, 2);
  c.out = {reduced(c, "reduce_sum", c.b.add("square", {c.in[0]}))};
}

void reduce_l1(OpContext& c) {
  c.expect_inputs(1, 2);
  c.out = {reduced(c, "reduce_sum", c.b.add("abs", {c.in[0]}))};
}

void reduce_l2(OpContext& c) {
  reduce_sum_square(c);
  c.out = {c.b.add("sqrt", c.out)};
}

void reduce_log_sum(OpContext& c) {
  c.expect_inputs(1, 2);
  c.out = {c.b.add("log", {reduced(c, "reduce_sum", c.in[0])})};
}

/// The largest element is taken out of the sum, where it is finite.
void reduce_log_sum_exp(OpContext& c) {
  c.expect_inputs(1, 2);
  bool nothing = false;
  const std::vector<int64_t> axes = reduction_axes(c, nothing);
  c.out = c.in;
  if (nothing) return;
  Builder& b = c.b;
  Value* x = c.in[0];
  Value* most = b.add("reduce_max", {x}, {{"axes", axes}, {"keep_dims", true}});
  most = b.add("select", {b.add("is_finite", {most}), most, b.scalar_like(x, 0)});
  const Attributes over{{"axes", axes}, {"keep_dims", true}};
  Value* sum = b.add("reduce_sum", {b.add("exp", {b.add("sub", {x, most})})}, over);
  Value* y = b.add("add", {b.add("log", {sum}), most});
  c.out = {c.integer("keepdims", 1) != 0 ? y : squeeze(y, normal_axes(axes, c.rank(0)), b)};
}

void arg_reduce(OpContext& c) {
  c.expect_inputs(1, 1);
  const int64_t axis = normal_axis(c.integer("axis", 0), c.rank(0));
  const Attributes attributes{{"axis", axis}, {"keep_dims", c.integer("keepdims", 1) != 0}};
  if (c.integer("select_last_index", 0) == 0) {
    c.out = {c.b.add(c.target, c.in, attributes)};
    return;
  }
  Value* from_the_end =
      c.b.add(c.target, {c.b.add("reverse", {c.in[0]}, {{"axes", std::vector<int64_t>{axis}}})}, attributes);
  Value* last = folded(c.b.add("sub", {dim_of(c.in[0], static_cast<size_t>(axis), c.b), c.b.ints({1})}), c.b);
  c.out = {c.b.add("sub", {reshape_to(last, {}, c.b), from_the_end})};
}

int64_t running_axis(OpContext& c) {
  c.expect_inputs(2, 2);
  std::vector<int64_t> axis = c.constant_integers(1, "the axis");
  if (axis.size() != 1) fail(ErrorKind::invalid_model, "", "the axis must be one integer");
  return normal_axis(axis[0], c.rank(0));
}

void cum_sum(OpContext& c) {
  c.out = {c.b.add("cumsum", {c.in[0]},
                   {{"axis", running_axis(c)},
                    {"exclusive", c.integer("exclusive", 0) != 0},
                    {"reverse", c.integer("reverse", 0) != 0}})};
}

/// Running products: of all pairs of elements, those that count multiply. Takes memory by the square of the axis.
void cum_prod(OpContext& c) {
  Builder& b = c.b;
  const auto axis = static_cast<size_t>(running_axis(c)), rank = c.rank(0);
  const bool exclusive = c.integer("exclusive", 0) != 0, reverse = c.integer("reverse", 0) != 0;
  Value* place = counted(scalar_dim(c.in[0], axis, b), b);
  // [..., of the result, of x, ...]
  Value* x = expand_dims(c.in[0], {static_cast<int64_t>(axis)}, b);
  std::vector<NewDim> to(rank - axis + 1, NewDim{1, -1}), from(rank - axis, NewDim{1, -1});
  to[0] = from[0] = {-1, 0};
  Value *of_y = reshape_to(place, to, b), *of_x = reshape_to(place, from, b);
  const char* counts = reverse ? (exclusive ? "less" : "less_equal") : (exclusive ? "greater" : "greater_equal");
  x = b.add("select", {b.add(counts, {of_y, of_x}), x, b.scalar_like(x, 1)});
  c.out = {b.add("reduce_prod", {x}, {{"axes", std::vector<int64_t>{static_cast<int64_t>(axis) + 1}}})};
}

constexpr Row kMathRows[] = {
    {"Abs", unary, "abs"},
    {"Acos", unary, "acos"},
    {"Acosh", unary, "acosh"},
    {"Add", binary, "add"},
    {"And", binary, "and"},
    {"ArgMax", arg_reduce, "arg_max"},
    {"ArgMin", arg_reduce, "arg_min"},
    {"Asin", unary, "asin"},
    {"Asinh", unary, "asinh"},
    {"Atan", unary, "atan"},
    {"Atanh", unary, "atanh"},
    {"Cast", cast, nullptr, {}, 0, false, Row::Narrow::knows},
    {"CastLike", cast_like, nullptr, {}, 0, false, Row::Narrow::knows},
    {"Ceil", unary, "ceil"},
    {"Clip", clip},
    {"Cos", unary, "cos"},
    {"Cosh", unary, "cosh"},
    {"CumProd", cum_prod, nullptr, {}, 1},
    {"CumSum", cum_sum, nullptr, {}, 1},
    {"Div", div},
    {"Elu", elu},
    {"Equal", binary, "equal"},
    {"Erf", unary, "erf"},
    {"Exp", unary, "exp"},
    {"Floor", unary, "floor"},
    {"Gelu", gelu},
    {"Gelu", gelu, nullptr, "com.microsoft"},
    {"Greater", binary, "greater"},
    {"GreaterOrEqual", binary, "greater_equal"},
    {"HardSigmoid", hard_sigmoid},
    {"HardSwish", hard_swish},
    {"IsInf", is_inf},
    {"IsNaN", unary, "is_nan"},
    {"LeakyRelu", leaky_relu},
    {"Less", binary, "less"},
    {"LessOrEqual", binary, "less_equal"},
    {"Log", unary, "log"},
    {"Max", variadic, "maximum"},
    {"Mean", mean, "add"},
    {"Min", variadic, "minimum"},
    {"Mish", unary, "mish"},
    {"Mod", mod},
    {"Mul", binary, "mul"},
    {"Neg", unary, "neg"},
    {"Not", unary, "not"},
    {"Or", binary, "or"},
    {"PRelu", prelu},
    {"Pow", pow},
    {"Reciprocal", unary, "reciprocal"},
    {"ReduceL1", reduce_l1, nullptr, {}, 1},
    {"ReduceL2", reduce_l2, nullptr, {}, 1},
    {"ReduceLogSum", reduce_log_sum, nullptr, {}, 1},
    {"ReduceLogSumExp", reduce_log_sum_exp, nullptr, {}, 1},
    {"ReduceMax", reduce, "reduce_max", {}, 1},
    {"ReduceMean", reduce_mean, "reduce_mean", {}, 1},
    {"ReduceMin", reduce, "reduce_min", {}, 1},
    {"ReduceProd", reduce, "reduce_prod", {}, 1},
    {"ReduceSum", reduce, "reduce_sum", {}, 1},
    {"ReduceSumSquare", reduce_sum_square, nullptr, {}, 1},
    {"Relu", unary, "relu"},
    {"Round", unary, "round"},
    {"Selu", selu},
    {"Sigmoid", unary, "sigmoid"},
    {"Sign", unary, "sign"},
    {"Sin", unary, "sin"},
    {"Sinh", unary, "sinh"},
    {"Softplus", unary, "softplus"},
    {"Softsign", softsign},
    {"Sqrt", unary, "sqrt"},
    {"Sub", binary, "sub"},
    {"Sum", variadic, "add"},
    {"Swish", swish},
    {"Tan", tan},
    {"Tanh", unary, "tanh"},
    {"ThresholdedRelu", thresholded_relu},
    {"Xor", binary, "xor"},
};

}  // namespace

std::span<const Row> math_rows() { return kMathRows; }

}  // namespace cairn::onnx
