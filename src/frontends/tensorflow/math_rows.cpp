// TensorFlow's element-wise ops and reductions.
#include <algorithm>

#include "frontends/fold.h"
#include "frontends/reshape.h"
#include "frontends/tensorflow/complex.h"

namespace cairn::tensorflow {

void unary(OpContext& c) {
  c.expect_inputs(1);
  c.out = {c.b.add(c.target, c.in)};
}

void binary(OpContext& c) {
  c.expect_inputs(2);
  c.out = {c.b.add(c.target, c.in)};
}

namespace {

void div(OpContext& c) {
  c.expect_inputs(2);
  bool integers = c.in[0]->type.dtype.is_integer();
  c.out = {c.b.add(integers ? "truncate_div" : "div", c.in)};
}

void div_no_nan(OpContext& c) {
  c.expect_inputs(2);
  Value* zero = c.b.scalar_like(c.in[1], 0);
  Value* safe = c.b.add("div", c.in);
  c.out = {c.b.add("select", {c.b.add("equal", {c.in[1], zero}), zero, safe})};
}

void add_n(OpContext& c) {
  if (c.in.empty()) c.expect_inputs(1);
  Value* sum = c.in[0];
  for (size_t i = 1; i < c.in.size(); ++i)
    sum = c.b.add(sum->type.kind == Type::Kind::list ? "list_add" : "add", {sum, c.in[i]});
  c.out = {sum};
}

/// The functions scaled by exp(-|x|), without the scale.
void bessel(OpContext& c) {
  c.expect_inputs(1);
  Value* scale = c.b.add("exp", {c.b.add("abs", c.in)});
  c.out = {c.b.add("mul", {c.b.add(c.target, c.in), scale})};
}

void betainc(OpContext& c) {
  c.expect_inputs(3);
  c.out = {c.b.add("incomplete_beta", c.in)};
}

void relu6(OpContext& c) {
  c.expect_inputs(1);
  c.out = {c.b.add("clip", c.in, {{"low", 0.0}, {"high", 6.0}})};
}

void leaky_relu(OpContext& c) {
  c.expect_inputs(1);
  c.out = {c.b.add("leaky_relu", c.in, {{"alpha", c.real("alpha", 0.2)}})};
}

void selu(OpContext& c) {
  c.expect_inputs(1);
  Value* bent = c.b.add("elu", c.in, {{"alpha", 1.6732632423543772}});
  c.out = {c.b.add("mul", {bent, c.b.scalar_like(bent, 1.0507009873554805)})};
}

void softsign(OpContext& c) {
  c.expect_inputs(1);
  Value* one = c.b.scalar_like(c.in[0], 1);
  c.out = {c.b.add("div", {c.in[0], c.b.add("add", {one, c.b.add("abs", c.in)})})};
}

void clip_by_value(OpContext& c) {
  c.expect_inputs(3);
  c.out = {c.b.add("maximum", {c.b.add("minimum", {c.in[0], c.in[2]}), c.in[1]})};
}

void cast(OpContext& c) {
  c.expect_inputs(1);
  const DType dtype = c.dtype("DstT");
  if (dtype.kind == DType::Kind::complex_float) return cast_complex(c);
  c.out = {cast_to(c.in[0], dtype, c.b)};
}

void bias_add(OpContext& c) {
  c.expect_inputs(2);
  Value* bias = c.in[1];
  bool channels_first = c.text("data_format", "NHWC").starts_with("NC");
  if (channels_first && c.rank(0) > 2) {
    std::vector<int64_t> shape(c.rank(0) - 1, 1);
    shape[0] = -1;
    bias = c.b.add("reshape", {bias, c.b.ints(shape)});
  }
  c.out = {c.b.add("add", {c.in[0], bias})};
}

/// The first version broadcasts a vector condition along the first dim.
void select(OpContext& c) {
  c.expect_inputs(3);
  Value* condition = c.in[0];
  if (c.rank(0) == 1 && c.rank(1) > 1) {
    std::vector<int64_t> shape(c.rank(1), 1);
    shape[0] = -1;
    condition = c.b.add("reshape", {condition, c.b.ints(shape)});
  }
  c.out = {c.b.add("select", {condition, c.in[1], c.in[2]})};
}

/// The shape that was broadcast along these axes of input 0, if the axes are known only at run time; else null. The
/// broadcast shapes may be those of the leading dims, as for batches of matrices.
Value* repeated_shape(OpContext& c, const Value* axes) {
  while (axes->producer && axes->producer->is("cast")) axes = axes->producer->inputs[0];
  const auto* node = axes->producer;
  if (!node || !node->is("broadcast_axes")) return nullptr;
  int64_t first = 0;
  for (const Value* shape : node->inputs) {
    if (!shape->type.is_static()) c.refuse("its axes are those of shapes of unknown rank");
    first = std::max(first, shape->type.shape.dims[0].size);
  }
  std::vector<Value*> sizes{node->inputs[axes == node->result(0) ? 0 : 1]};
  for (auto axis = static_cast<size_t>(first); axis < c.rank(0); ++axis) sizes.push_back(dim_of(c.in[0], axis, c.b));
  return sizes.size() == 1 ? sizes[0] : joined(sizes, c.b);
}

void reduce(OpContext& c) {
  c.expect_inputs(2);
  Value* shape = std::string_view(c.target) == "reduce_sum" ? repeated_shape(c, c.in[1]) : nullptr;
  if (shape != nullptr) {  // with its own rank: a reshape to it follows
    c.out = {c.b.add("sum_to", {c.in[0], shape})};
    return;
  }
  std::vector<int64_t> axes = c.constant_integers(1, "the reduction axes");
  c.out = {c.b.add(c.target, {c.in[0]}, {{"axes", axes}, {"keep_dims", c.boolean("keep_dims", false)}})};
}

void arg_reduce(OpContext& c) {
  c.expect_inputs(1, 2);
  int64_t axis = c.in.size() > 1 ? c.constant_integer(1, "the axis") : 0;
  c.out = {c.b.add(c.target, {c.in[0]}, {{"axis", axis}, {"dtype", c.dtype("output_type", kDtInt64)}})};
}

void top_k(OpContext& c) {
  c.expect_inputs(1, 2);
  Value* k = c.in.size() > 1 ? c.in[1] : c.b.constant(Tensor::scalar_i64(c.integer("k")));
  auto* made = c.b.add_node(op_named("top_k"), {c.in[0], k}, {{"sorted", c.boolean("sorted", true)}});
  c.out = {made->result(0), cast_to(made->result(1), c.dtype("index_type", kDtInt32), c.b)};
}

void cum_sum(OpContext& c) {
  c.expect_inputs(2);
  c.out = {c.b.add("cumsum", {c.in[0]},
                   {{"axis", c.constant_integer(1, "the axis")},
                    {"exclusive", c.boolean("exclusive", false)},
                    {"reverse", c.boolean("reverse", false)}})};
}

constexpr Row kMathRows[] = {
    {"Abs", unary, "abs"},
    {"AccumulateNV2", add_n},
    {"Add", binary, "add"},
    {"AddN", add_n},
    {"AddV2", binary, "add"},
    {"All", reduce, "reduce_all", known(1)},
    {"Any", reduce, "reduce_any", known(1)},
    {"ArgMax", arg_reduce, "arg_max", known(1)},
    {"ArgMin", arg_reduce, "arg_min", known(1)},
    {"BesselI0", bessel, "bessel_i0e"},
    {"BesselI0e", unary, "bessel_i0e"},
    {"BesselI1", bessel, "bessel_i1e"},
    {"BesselI1e", unary, "bessel_i1e"},
    {"Betainc", betainc},
    {"BiasAdd", bias_add},
    {"BiasAddV1", bias_add},
    {"BitwiseAnd", binary, "bit_and"},
    {"BitwiseOr", binary, "bit_or"},
    {"BitwiseXor", binary, "bit_xor"},
    {"Cast", cast, Trait::free},
    {"Ceil", unary, "ceil"},
    {"ClipByValue", clip_by_value},
    {"Cos", unary, "cos"},
    {"Cumsum", cum_sum, known(1)},
    {"Digamma", unary, "digamma"},
    {"Div", div},
    {"DivNoNan", div_no_nan},
    {"Elu", unary, "elu"},
    {"Equal", binary, "equal"},
    {"Erf", unary, "erf"},
    {"Erfc", unary, "erfc"},
    {"Erfinv", unary, "erf_inverse"},
    {"Exp", unary, "exp"},
    {"Expm1", unary, "expm1"},
    {"Floor", unary, "floor"},
    {"FloorDiv", binary, "floor_div"},
    {"FloorMod", binary, "mod"},
    {"Greater", binary, "greater"},
    {"GreaterEqual", binary, "greater_equal"},
    {"Igamma", binary, "incomplete_gamma"},
    {"Igammac", binary, "incomplete_gamma_upper"},
    {"Inv", unary, "reciprocal"},
    {"Invert", unary, "bit_not"},
    {"IsFinite", unary, "is_finite"},
    {"IsInf", unary, "is_inf"},
    {"IsNan", unary, "is_nan"},
    {"LeakyRelu", leaky_relu},
    {"LeftShift", binary, "shift_left"},
    {"Less", binary, "less"},
    {"LessEqual", binary, "less_equal"},
    {"Lgamma", unary, "log_gamma"},
    {"Log", unary, "log"},
    {"Log1p", unary, "log1p"},
    {"LogicalAnd", binary, "and"},
    {"LogicalNot", unary, "not"},
    {"LogicalOr", binary, "or"},
    {"Max", reduce, "reduce_max", known(1)},
    {"Maximum", binary, "maximum"},
    {"Mean", reduce, "reduce_mean", known(1)},
    {"Min", reduce, "reduce_min", known(1)},
    {"Minimum", binary, "minimum"},
    {"Mod", binary, "truncate_mod"},
    {"Mul", binary, "mul"},
    {"Ndtri", unary, "normal_quantile"},
    {"Neg", unary, "neg"},
    {"NotEqual", binary, "not_equal"},
    {"Polygamma", binary, "polygamma"},
    {"PopulationCount", unary, "population_count"},
    {"Pow", binary, "pow"},
    {"Prod", reduce, "reduce_prod", known(1) | Trait::free},
    {"RealDiv", binary, "div"},
    {"Reciprocal", unary, "reciprocal"},
    {"Relu", unary, "relu"},
    {"Relu6", relu6},
    {"RightShift", binary, "shift_right"},
    {"Rint", unary, "round"},
    {"Round", unary, "round"},
    {"Rsqrt", unary, "rsqrt"},
    {"Select", select},
    {"SelectV2", select},
    {"Selu", selu},
    {"Sigmoid", unary, "sigmoid"},
    {"Sign", unary, "sign"},
    {"Sin", unary, "sin"},
    {"Softplus", unary, "softplus"},
    {"Softsign", softsign},
    {"Sqrt", unary, "sqrt"},
    {"Square", unary, "square"},
    {"SquaredDifference", binary, "squared_difference"},
    {"Sub", binary, "sub"},
    {"Sum", reduce, "reduce_sum", known(1)},
    {"Tanh", unary, "tanh"},
    {"TopK", top_k},
    {"TopKV2", top_k},
    {"TruncateDiv", binary, "truncate_div"},
    {"TruncateMod", binary, "truncate_mod"},
    {"Zeta", binary, "zeta"},
};

}  // namespace

std::span<const Row> math_rows() { return kMathRows; }

}  // namespace cairn::tensorflow
