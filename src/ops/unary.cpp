// Element-wise ops of one input. Floats are computed in f64 and rounded once (16-bit floats through f32).
#include "ops/families.h"
#include "ops/gradients.h"
#include "ops/kernels.h"
#include "ops/rows.h"

namespace cairn {

namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

template <class From, class To, class F>
void map_elements(const Tensor& x, Tensor& y, F&& f) {
  for (const int64_t i : turns(x.count())) data<To>(y)[i] = f(data<From>(x)[i]);
}

// A kernel from a function double -> double.
template <auto kFunction>
void map_floats(KernelContext& context) {
  allocate_results(context);
  with_floats(context.input(0).dtype(), [&](auto tag) {
    using T = decltype(tag);
    map_elements<T, T>(context.input(0), context.output(0),
                       [](T x) { return T(static_cast<Compute<T>>(kFunction(static_cast<double>(x)))); });
  });
}

// A kernel from two functions T -> T, one for floats and one for integers.
template <auto kFloat, auto kInteger>
void map_numbers(KernelContext& context) {
  if (context.input(0).dtype().is_float()) return map_floats<kFloat>(context);
  allocate_results(context);
  with_integers(context.input(0).dtype(), [&](auto tag) {
    using T = decltype(tag);
    map_elements<T, T>(context.input(0), context.output(0), [](T x) { return static_cast<T>(kInteger(x)); });
  });
}

// A kernel from a function double -> bool.
template <auto kFunction>
void test_floats(KernelContext& context) {
  allocate_results(context);
  with_floats(context.input(0).dtype(), [&](auto tag) {
    using T = decltype(tag);
    map_elements<T, uint8_t>(context.input(0), context.output(0),
                             [](T x) { return kFunction(static_cast<double>(x)); });
  });
}

// A kernel from a function double -> double, which may read attributes of the node.
template <class F>
void map_with(KernelContext& context, F&& f) {
  allocate_results(context);
  with_floats(context.input(0).dtype(), [&](auto tag) {
    using T = decltype(tag);
    map_elements<T, T>(context.input(0), context.output(0),
                       [&](T x) { return T(static_cast<Compute<T>>(f(static_cast<double>(x)))); });
  });
}

constexpr uint32_t kUnary = kElementwise | kInPlace;
using Kernel = void (*)(KernelContext&);

const std::vector<const char*> kFloatCases = {"f32[2, 3]",    "f32[]",  "f32[0, 4]", "f32[37]",
                                              "f32[3, 5, 7]", "f64[5]", "f16[9]",    "bf16[9]"};
const std::vector<const char*> kNumberCases = {"f32[2, 3]", "f32[]",  "f32[0, 4]", "f32[37]", "f64[5]", "f16[9]",
                                               "bf16[9]",   "i32[5]", "i64[3]",    "i8[6]",   "u8[6]"};

using UnaryRule = void (*)(GradientContext&);

OpDef of_floats(const char* name, const char* summary, Kernel reference, Oracle oracle, Precision precision,
                UnaryRule gradient) {
  return {.name = name,
          .summary = summary,
          .inputs = {{"x", Accepts::floats}},
          .traits = kUnary,
          .precision = precision,
          .infer = infer_same,
          .gradient = gradient,
          .reference = reference,
          .oracle = oracle,
          .cases = kFloatCases};
}
OpDef rounded(const char* name, const char* summary, Kernel reference, Oracle oracle, UnaryRule gradient) {
  return of_floats(name, summary, reference, oracle, Precision::rounded, gradient);
}
OpDef exact(const char* name, const char* summary, Kernel reference, Oracle oracle, UnaryRule gradient) {
  return of_floats(name, summary, reference, oracle, Precision::exact, gradient);
}
OpDef of_numbers(const char* name, const char* summary, Kernel reference, Oracle oracle, UnaryRule gradient) {
  OpDef row = exact(name, summary, reference, oracle, gradient);
  row.inputs = {{"x", Accepts::numbers}};
  row.cases = kNumberCases;
  return row;
}
OpDef of_tests(const char* name, const char* summary, Kernel reference, Oracle oracle) {
  OpDef row = exact(name, summary, reference, oracle, nullptr);
  row.traits = kElementwise;
  row.infer = [](InferContext& context) { context.result(kBool, context.shape(0)); };
  return row;
}
OpDef with(OpDef row, std::vector<AttrDef> attributes, std::vector<const char*> cases) {
  row.attributes = std::move(attributes);
  row.cases = std::move(cases);
  return row;
}
OpDef decomposed(OpDef row, std::vector<Value*> (*decompose)(Builder&, const Node&)) {
  row.decompose = decompose;
  return row;
}

double sign(double x) { return x > 0 ? 1 : x < 0 ? -1 : x == 0 ? 0 : x; }
double softplus(double x) { return std::log1p(std::exp(-std::abs(x))) + (x > 0 ? x : 0); }
double gelu_tanh(double x) { return 0.5 * x * (1 + std::tanh(std::sqrt(2 / M_PI) * (x + 0.044715 * x * x * x))); }
double gelu_erf(double x) { return 0.5 * x * (1 + std::erf(x * M_SQRT1_2)); }

void gelu(KernelContext& context) {
  context.attr.boolean("approximate") ? map_floats<gelu_tanh>(context) : map_floats<gelu_erf>(context);
}
void leaky_relu(KernelContext& context) {
  map_with(context, [alpha = context.attr.number("alpha")](double x) { return x > 0 ? x : alpha * x; });
}
void elu(KernelContext& context) {
  map_with(context, [alpha = context.attr.number("alpha")](double x) { return x > 0 ? x : alpha * std::expm1(x); });
}

void clip(KernelContext& context) {
  allocate_results(context);
  const double low = context.attr.number("low"), high = context.attr.number("high");
  with_numbers(context.input(0).dtype(), [&](auto tag) {
    using T = decltype(tag);
    const auto least = static_cast<Compute<T>>(saturate<T>(kIsFloat<T> ? low : std::ceil(low)));
    const auto most = static_cast<Compute<T>>(saturate<T>(kIsFloat<T> ? high : std::floor(high)));
    map_elements<T, T>(context.input(0), context.output(0),
                       [&](T x) { return T(minimum(maximum(static_cast<Compute<T>>(x), least), most)); });
  });
}

void infer_clip(InferContext& context) {
  if (std::isnan(context.attr.number("low")) || std::isnan(context.attr.number("high")))
    context.fail("bounds must not be NaN");
  infer_same(context);
}

void cast(KernelContext& context) {
  allocate_results(context);
  const Tensor& x = context.input(0);
  Tensor& y = context.output(0);
  with_numbers_or_bool(x.dtype(), [&](auto from) {
    using From = decltype(from);
    if (y.dtype() == kBool)
      return map_elements<From, uint8_t>(x, y, [](From value) { return static_cast<Compute<From>>(value) != 0; });
    with_numbers(y.dtype(), [&](auto to) { map_elements<From, decltype(to)>(x, y, cast_element<From, decltype(to)>); });
  });
}

void infer_cast(InferContext& context) {
  number_type(context, 0);
  DType dtype = context.attr.dtype("dtype");
  if (dtype.kind == DType::Kind::complex_float || dtype == kString || dtype.bits < 8)
    context.fail("{} elements are not supported", to_string(dtype));
  context.result(dtype, context.shape(0));
}

void logical_not(KernelContext& context) {
  allocate_results(context);
  map_elements<uint8_t, uint8_t>(context.input(0), context.output(0), [](uint8_t x) { return x == 0; });
}

// Where x is positive. An activation whose result has x's sign reads that: the step before then need not keep x, and may hold the activation.
Var positive(GradientContext& g, bool sign_kept) { return (sign_kept ? g.y() : g.x(0)) > 0; }
void relu_rule(GradientContext& g) { g.set(0, keep_where(positive(g, true), g.dy())); }
void leaky_relu_rule(GradientContext& g) {
  const double alpha = g.attr.number("alpha");
  g.set(0, select(positive(g, alpha >= 0), g.dy(), g.dy() * alpha));
}
// Below 0 the derivative alpha * exp(x) equals y + alpha.
void elu_rule(GradientContext& g) {
  const double alpha = g.attr.number("alpha");
  g.set(0, select(positive(g, alpha >= 0), g.dy(), g.dy() * (g.y() + alpha)));
}
// At the bounds themselves the derivative is 1.
void clip_rule(GradientContext& g) {
  const Var x = g.x(0), above = x.apply("greater_equal", {x.number(g.attr.number("low"))});
  const Var below = x.apply("less_equal", {x.number(g.attr.number("high"))});
  g.set(0, keep_where(above.apply("and", {below}), g.dy()));
}
void cast_rule(GradientContext& g) { g.set(0, cast(g.dy(), g.x(0).dtype())); }
Var gelu_slope(GradientContext& g) {
  const Var x = g.x(0);
  if (!g.attr.boolean("approximate")) {
    const Var density = exp(square(x) * -0.5) * (0.5 * M_SQRT1_2 * M_2_SQRTPI);
    return ((x * M_SQRT1_2).apply("erf") + 1) * 0.5 + x * density;
  }
  const double steep = std::sqrt(2 / M_PI), cubic = 0.044715;
  const Var squares = square(x), bend = (x * (squares * cubic + 1) * steep).apply("tanh");
  return (bend + 1) * 0.5 + x * (1 - square(bend)) * (squares * (3 * cubic) + 1) * (0.5 * steep);
}

std::vector<Value*> square_by_mul(Builder& b, const Node& node) {
  return {b.add("mul", {node.inputs[0], node.inputs[0]})};
}
std::vector<Value*> reciprocal_by_div(Builder& b, const Node& node) {
  return {b.add("div", {b.scalar_like(node.inputs[0], 1), node.inputs[0]})};
}
std::vector<Value*> relu_by_maximum(Builder& b, const Node& node) {
  return {b.add("maximum", {node.inputs[0], b.scalar_like(node.inputs[0], 0)})};
}
std::vector<Value*> softplus_by_log1p(Builder& b, const Node& node) {
  Value* x = node.inputs[0];
  Value* tail = b.add("log1p", {b.add("exp", {b.add("neg", {b.add("abs", {x})})})});
  return {b.add("add", {tail, b.add("maximum", {x, b.scalar_like(x, 0)})})};
}
std::vector<Value*> gelu_by_erf(Builder& b, const Node& node) {
  Value *x = node.inputs[0], *half = b.add("mul", {x, b.scalar_like(x, 0.5)}), *bend;
  if (node.attr().boolean("approximate")) {
    Value* cube = b.add("mul", {b.add("mul", {x, x}), b.add("mul", {x, b.scalar_like(x, 0.044715)})});
    bend = b.add("tanh", {b.add("mul", {b.add("add", {x, cube}), b.scalar_like(x, std::sqrt(2 / M_PI))})});
  } else {
    bend = b.add("erf", {b.add("mul", {x, b.scalar_like(x, M_SQRT1_2)})});
  }
  return {b.add("mul", {half, b.add("add", {bend, b.scalar_like(x, 1)})})};
}
std::vector<Value*> elu_by_expm1(Builder& b, const Node& node) {
  Value *x = node.inputs[0], *zero = b.scalar_like(x, 0);
  Value* below =
      b.add("mul", {b.add("expm1", {b.add("minimum", {x, zero})}), b.scalar_like(x, node.attr().number("alpha"))});
  return {b.add("select", {b.add("greater", {x, zero}), x, below})};
}

double mish(double x) { return x * std::tanh(softplus(x)); }
std::vector<Value*> mish_by_softplus(Builder& b, const Node& node) {
  const Var x(b, node.inputs[0]);
  return {(x * x.apply("softplus").apply("tanh")).value};
}
Var mish_slope(GradientContext& g) {
  const Var x = g.x(0), bend = x.apply("softplus").apply("tanh");
  return bend + x * (1 - square(bend)) * x.apply("sigmoid");
}

// Engines compute it by its decomposition, fused into one program.
OpDef mish_row() {
  return decomposed(rounded("mish", "x * tanh(softplus(x))", map_floats<mish>,
                            {"x * np.tanh(np.logaddexp(x, np.zeros((), x.dtype)))"}, by_slope<mish_slope>),
                    mish_by_softplus);
}

OpDef logical_not_row() {
  return {.name = "not",
          .summary = "true where x is false",
          .inputs = {{"x", Accepts::boolean}},
          .traits = kUnary,
          .infer = infer_same,
          .reference = logical_not,
          .oracle = {"np.logical_not(x)"},
          .cases = {"bool[2, 3]", "bool[]", "bool[0]", "bool[41]"}};
}

OpDef cast_row() {
  return {.name = "cast",
          .summary =
              "to another element type; float to integer truncates, and where that is out of range "
              "(undefined elsewhere) saturates, NaN giving 0; integers wrap; bool is x != 0",
          .inputs = {{"x", Accepts::number_or_bool}},
          .attributes = {{"dtype", AttrKind::dtype}},
          .traits = kUnary,
          .infer = infer_cast,
          .gradient = cast_rule,
          .reference = cast,
          .oracle = {"x.astype(dtype)"},
          .cases = {"f32[2, 3] {dtype = i32}", "f32[5] {dtype = f64}", "f64[5] {dtype = f32}", "f32[40] {dtype = f16}",
                    "f16[7] {dtype = f32}", "i64[6] {dtype = f32}", "i32[4] {dtype = u8}", "f32[6] {dtype = bool}",
                    "bool[5] {dtype = f32}", "i64[3]=[4294967297, -1, 255] {dtype = i32}", "f32[] {dtype = i64}",
                    "f32[0, 2] {dtype = i8}", "i32[9] {dtype = bf16}", "f32[4]=[-2.7, 2.7, -0.5, 0.5] {dtype = i16}"}};
}

OpDef clip_row() {
  OpDef row = with(
      of_numbers("clip",
                 "minimum(maximum(x, low), high); NaN stays NaN; for integers the bounds are those inside [low, high]",
                 clip, {"np.clip(x, low, high).astype(x.dtype)"}, clip_rule),
      {number("low", -kInfinity), number("high", kInfinity)},
      {"f32[2, 3] {low = 0, high = 6}", "f32[33] {low = -1.5}", "f32[] {high = 0.25}", "f32[0] {low = 0}",
       "i32[9] {low = -2, high = 3}", "f16[5] {low = -1, high = 1}"});
  row.infer = infer_clip;
  return row;
}

std::vector<OpDef> make_unary_rows() {
  return {
      of_numbers(
          "neg", "-x; integers wrap",
          map_numbers<[](double x) { return -x; }, [](auto x) { return wrapped(decltype(x)(0), x, std::minus<>()); }>,
          {"np.negative(x)"}, [](GradientContext& g) { g.set(0, -g.dy()); }),
      of_numbers("abs", "magnitude; the least signed integer stays itself",
                 map_numbers<[](double x) { return std::abs(x); },
                             [](auto x) { return x < 0 ? wrapped(decltype(x)(0), x, std::minus<>()) : x; }>,
                 {"np.abs(x)"}, by_slope<[](GradientContext& g) { return sign(g.x(0)); }>),
      of_numbers("sign", "-1, 0 or 1, of both zeros 0; NaN stays NaN",
                 map_numbers<sign, [](auto x) { return (x > 0) - (x < 0); }>, {"np.sign(x)"}, no_slope),
      decomposed(
          of_numbers(
              "square", "x * x; integers wrap",
              map_numbers<[](double x) { return x * x; }, [](auto x) { return wrapped(x, x, std::multiplies<>()); }>,
              {"np.square(x)"}, by_slope<[](GradientContext& g) { return g.x(0) * 2; }>),
          square_by_mul),
      decomposed(of_numbers("relu", "maximum of x and 0; NaN stays NaN",
                            map_numbers<[](double x) { return x < 0 ? 0 : x; }, [](auto x) { return x < 0 ? 0 : x; }>,
                            {"np.maximum(x, np.zeros((), x.dtype))"}, relu_rule),
                 relu_by_maximum),
      rounded("exp", "e to the power x", map_floats<[](double x) { return std::exp(x); }>, {"np.exp(x)"},
              by_slope<[](GradientContext& g) { return g.y(); }>),
      rounded("expm1", "exp(x) - 1, accurate near 0", map_floats<[](double x) { return std::expm1(x); }>,
              {"np.expm1(x)"}, by_slope<[](GradientContext& g) { return g.y() + 1; }>),
      rounded("log", "natural logarithm; NaN below 0, -inf at 0", map_floats<[](double x) { return std::log(x); }>,
              {"np.log(x)"}, [](GradientContext& g) { g.set(0, g.dy() / g.x(0)); }),
      rounded("log1p", "log(1 + x), accurate near 0", map_floats<[](double x) { return std::log1p(x); }>,
              {"np.log1p(x)"}, [](GradientContext& g) { g.set(0, g.dy() / (g.x(0) + 1)); }),
      exact("sqrt", "square root, correctly rounded; NaN below 0", map_floats<[](double x) { return std::sqrt(x); }>,
            {"np.sqrt(x)"}, [](GradientContext& g) { g.set(0, g.dy() * 0.5 / g.y()); }),
      rounded("rsqrt", "1 / sqrt(x); inf at 0", map_floats<[](double x) { return 1 / std::sqrt(x); }>,
              {"np.reciprocal(np.sqrt(x))"},
              [](GradientContext& g) { g.set(0, g.dy() * g.y() * square(g.y()) * -0.5); }),
      decomposed(exact("reciprocal", "1 / x, correctly rounded", map_floats<[](double x) { return 1 / x; }>,
                       {"np.reciprocal(x)"}, [](GradientContext& g) { g.set(0, -(g.dy() * square(g.y()))); }),
                 reciprocal_by_div),
      rounded("tanh", "hyperbolic tangent", map_floats<[](double x) { return std::tanh(x); }>, {"np.tanh(x)"},
              by_slope<[](GradientContext& g) { return 1 - square(g.y()); }>),
      rounded("sigmoid", "1 / (1 + exp(-x))", map_floats<[](double x) { return 1 / (1 + std::exp(-x)); }>,
              {"tf.sigmoid(x)", kTensorFlow}, by_slope<[](GradientContext& g) { return g.y() * (1 - g.y()); }>),
      decomposed(rounded("softplus", "log(1 + exp(x)), without overflow", map_floats<softplus>,
                         {"np.logaddexp(x, np.zeros((), x.dtype))"},
                         by_slope<[](GradientContext& g) { return g.x(0).apply("sigmoid"); }>),
                 softplus_by_log1p),
      rounded("erf", "error function", map_floats<[](double x) { return std::erf(x); }>,
              {"tf.math.erf(x)", kTensorFlow},
              by_slope<[](GradientContext& g) { return exp(-square(g.x(0))) * M_2_SQRTPI; }>),
      decomposed(with(rounded("gelu", "x * P(normal < x); approximate: by tanh", gelu,
                              {"tf.nn.gelu(x, approximate=approximate)", kTensorFlow}, by_slope<gelu_slope>),
                      {flag("approximate")},
                      {"f32[2, 3]", "f32[] {approximate = true}", "f32[67] {approximate = true}", "f32[67]", "f32[0]",
                       "f16[9]"}),
                 gelu_by_erf),
  };
}

std::vector<OpDef> angle_and_step_rows() {
  return {
      rounded("sin", "sine of radians", map_floats<[](double x) { return std::sin(x); }>, {"np.sin(x)"},
              by_slope<[](GradientContext& g) { return g.x(0).apply("cos"); }>),
      rounded("cos", "cosine of radians", map_floats<[](double x) { return std::cos(x); }>, {"np.cos(x)"},
              by_slope<[](GradientContext& g) { return -g.x(0).apply("sin"); }>),
      rounded("tan", "tangent of radians", map_floats<[](double x) { return std::tan(x); }>, {"np.tan(x)"},
              by_slope<[](GradientContext& g) { return square(g.y()) + 1; }>),
      rounded("asin", "angle with the sine x; NaN outside -1 .. 1", map_floats<[](double x) { return std::asin(x); }>,
              {"np.arcsin(x)"}, by_slope<[](GradientContext& g) { return rsqrt(1 - square(g.x(0))); }>),
      rounded("acos", "angle with the cosine x; NaN outside -1 .. 1", map_floats<[](double x) { return std::acos(x); }>,
              {"np.arccos(x)"}, by_slope<[](GradientContext& g) { return -rsqrt(1 - square(g.x(0))); }>),
      rounded("atan", "angle with the tangent x", map_floats<[](double x) { return std::atan(x); }>, {"np.arctan(x)"},
              [](GradientContext& g) { g.set(0, g.dy() / (square(g.x(0)) + 1)); }),
      rounded("sinh", "hyperbolic sine", map_floats<[](double x) { return std::sinh(x); }>, {"np.sinh(x)"},
              by_slope<[](GradientContext& g) { return g.x(0).apply("cosh"); }>),
      rounded("cosh", "hyperbolic cosine", map_floats<[](double x) { return std::cosh(x); }>, {"np.cosh(x)"},
              by_slope<[](GradientContext& g) { return g.x(0).apply("sinh"); }>),
      rounded("asinh", "inverse hyperbolic sine", map_floats<[](double x) { return std::asinh(x); }>, {"np.arcsinh(x)"},
              by_slope<[](GradientContext& g) { return rsqrt(square(g.x(0)) + 1); }>),
      rounded("acosh", "inverse hyperbolic cosine; NaN below 1", map_floats<[](double x) { return std::acosh(x); }>,
              {"np.arccosh(x)"}, by_slope<[](GradientContext& g) { return rsqrt(g.x(0) - 1) * rsqrt(g.x(0) + 1); }>),
      rounded("atanh", "inverse hyperbolic tangent; NaN outside -1 .. 1",
              map_floats<[](double x) { return std::atanh(x); }>, {"np.arctanh(x)"},
              [](GradientContext& g) { g.set(0, g.dy() / (1 - square(g.x(0)))); }),
      exact("floor", "largest whole number not above x", map_floats<[](double x) { return std::floor(x); }>,
            {"np.floor(x)"}, no_slope),
      exact("ceil", "smallest whole number not below x", map_floats<[](double x) { return std::ceil(x); }>,
            {"np.ceil(x)"}, no_slope),
      exact("round", "nearest whole number, halves to the even one",
            map_floats<[](double x) { return std::nearbyint(x); }>, {"np.round(x)"}, no_slope),
      of_tests("is_nan", "true where x is NaN", test_floats<[](double x) { return std::isnan(x); }>, {"np.isnan(x)"}),
      of_tests("is_inf", "true where x is infinite", test_floats<[](double x) { return std::isinf(x); }>,
               {"np.isinf(x)"}),
      of_tests("is_finite", "true where x is neither infinite nor NaN",
               test_floats<[](double x) { return std::isfinite(x); }>, {"np.isfinite(x)"}),
      logical_not_row(),
      clip_row(),
      with(rounded("leaky_relu", "x above 0, else alpha * x", leaky_relu, {"np.where(x > 0, x, np.float32(alpha) * x)"},
                   leaky_relu_rule),
           {number("alpha", 0.2)}, {"f32[2, 3]", "f32[] {alpha = 0.5}", "f32[35] {alpha = 0.01}", "f32[0]", "f16[5]"}),
      decomposed(with(rounded("elu", "x above 0, else alpha * (exp(x) - 1)", elu,
                              {"np.where(x > 0, x, np.float32(alpha) * np.expm1(np.minimum(x, 0))).astype(x.dtype)"},
                              elu_rule),
                      {number("alpha", 1)}, {"f32[2, 3]", "f32[] {alpha = 0.5}", "f32[35]", "f32[0]", "f16[5]"}),
                 elu_by_expm1),
      cast_row(),
      rounded("erfc", "1 - erf(x), accurate where erf(x) is near 1; NaN stays NaN",
              map_floats<[](double x) { return std::erfc(x); }>, {"tf.math.erfc(x)", kTensorFlow},
              by_slope<[](GradientContext& g) { return exp(-square(g.x(0))) * -M_2_SQRTPI; }>),
      mish_row(),
  };
}

}  // namespace

std::span<const OpDef> unary_ops() {
  static const std::vector<OpDef> rows = [] {
    std::vector<OpDef> all = make_unary_rows(), more = angle_and_step_rows();
    all.insert(all.end(), more.begin(), more.end());
    return all;
  }();
  return rows;
}

}  // namespace cairn
