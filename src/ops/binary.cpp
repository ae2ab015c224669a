// Element-wise ops of two and three inputs with NumPy broadcasting, computed in the element type (16-bit floats: f32).
#include <functional>

#include "ops/families.h"
#include "ops/gradients.h"
#include "ops/kernels.h"
#include "ops/rows.h"

namespace cairn {

namespace {

template <class From, class To, class F>
void map_pairs(KernelContext& context, F&& f) {
  const Tensor &x = context.input(0), &y = context.input(1);
  Tensor& out = context.output(0);
  const From *xs = data<From>(x), *ys = data<From>(y);
  To* to = data<To>(out);
  walk<2>(out.dims(), {broadcast_strides(x.dims(), out.dims()), broadcast_strides(y.dims(), out.dims())},
          [&](int64_t n, auto& at) { to[n] = f(xs[at[0]], ys[at[1]]); });
}

template <class T, class F>
T through_compute(T x, T y, F&& f) {
  return T(static_cast<Compute<T>>(f(static_cast<Compute<T>>(x), static_cast<Compute<T>>(y))));
}

template <auto kFloat>
void binary_floats(KernelContext& context) {
  allocate_results(context);
  with_floats(context.input(0).dtype(), [&](auto tag) {
    using T = decltype(tag);
    map_pairs<T, T>(context, [](T x, T y) { return through_compute(x, y, kFloat); });
  });
}

template <auto kInteger>
void binary_integers(KernelContext& context) {
  allocate_results(context);
  with_integers(context.input(0).dtype(), [&](auto tag) {
    using T = decltype(tag);
    map_pairs<T, T>(context, [](T x, T y) { return static_cast<T>(kInteger(x, y)); });
  });
}

template <auto kFloat, auto kInteger>
void binary(KernelContext& context) {
  context.input(0).dtype().is_float() ? binary_floats<kFloat>(context) : binary_integers<kInteger>(context);
}

// The same function for all numbers, and for bools and strings when the shape rule accepts them.
template <auto kFunction>
void compare(KernelContext& context) {
  allocate_results(context);
  if (context.input(0).dtype() == kString)
    return map_pairs<std::string, uint8_t>(context,
                                           [](const std::string& x, const std::string& y) { return kFunction(x, y); });
  with_numbers_or_bool(context.input(0).dtype(), [&](auto tag) {
    using T = decltype(tag);
    map_pairs<T, uint8_t>(context,
                          [](T x, T y) { return kFunction(static_cast<Compute<T>>(x), static_cast<Compute<T>>(y)); });
  });
}

template <auto kFunction>
void logical(KernelContext& context) {
  allocate_results(context);
  map_pairs<uint8_t, uint8_t>(context, [](uint8_t x, uint8_t y) { return kFunction(x != 0, y != 0); });
}

// Integer division: refuses a divisor of 0.
template <void (*kKernel)(KernelContext&)>
void divide(KernelContext& context) {
  const Tensor &x = context.input(0), &y = context.input(1);
  if (y.dtype().is_integer() && x.count() > 0)
    with_integers(y.dtype(), [&](auto tag) {
      for (auto value : y.values<decltype(tag)>())
        if (value == 0) context.fail("integer division by zero");
    });
  kKernel(context);
}

template <void (*kKernel)(KernelContext&)>
void raise(KernelContext& context) {
  const Tensor &x = context.input(0), &y = context.input(1);
  if (y.dtype().is_integer() && x.count() > 0)
    with_integers(y.dtype(), [&](auto tag) {
      for (auto value : y.values<decltype(tag)>())
        if (value < 0)
          context.fail("integers cannot be raised to negative powers, found {}", static_cast<int64_t>(value));
    });
  kKernel(context);
}

template <class T>
T truncated_quotient(T x, T y) {
  if constexpr (std::is_signed_v<T>)
    if (y == -1) return wrapped(T(0), x, std::minus<>());  // the smallest integer wraps instead of overflowing
  return static_cast<T>(x / y);
}
template <class T>
T remainder_of(T x, T y) {
  if constexpr (std::is_signed_v<T>)
    if (y == -1) return 0;
  return static_cast<T>(x % y);
}
template <class T>
T floored_quotient(T x, T y) {
  T quotient = truncated_quotient(x, y);
  return remainder_of(x, y) != 0 && (x < 0) != (y < 0) ? static_cast<T>(quotient - 1) : quotient;
}
template <class T>
T floored_remainder(T x, T y) {
  T rest = remainder_of(x, y);
  return rest != 0 && (rest < 0) != (y < 0) ? static_cast<T>(rest + y) : rest;
}
template <class T>
T float_remainder(T x, T y) {
  T rest = std::fmod(x, y);
  return rest != 0 && (rest < 0) != (y < 0) ? rest + y : rest;
}
template <class T>
T integer_power(T base, T exponent) {
  T result = 1;
  for (auto left = static_cast<uint64_t>(exponent); left; left >>= 1) {
    if (left & 1) result = wrapped(result, base, std::multiplies<>());
    base = wrapped(base, base, std::multiplies<>());
  }
  return result;
}

DType pair_type(InferContext& context) {
  number_type(context, 0);
  return equal_types(context);
}
void infer_binary(InferContext& context) {
  DType dtype = pair_type(context);
  context.result(dtype, broadcast(context, context.shape(0), context.shape(1)));
}
DType element_type(const InferContext& context, size_t i) {
  return context.dtype(i) == kString ? kString : number_type(context, i);
}
void infer_compare(InferContext& context) {
  element_type(context, 0);  // also strings, for rows that accept any tensor
  equal_types(context);
  context.result(kBool, broadcast(context, context.shape(0), context.shape(1)));
}
void infer_select(InferContext& context) {
  element_type(context, 1);
  DType dtype = equal_types(context, 1);
  Shape branches = broadcast(context, context.shape(1), context.shape(2));
  context.result(dtype, broadcast(context, context.shape(0), branches));
}

void select(KernelContext& context) {
  allocate_results(context);
  const Tensor &condition = context.input(0), &x = context.input(1), &y = context.input(2);
  Tensor& out = context.output(0);
  with_elements(out.dtype(), [&](auto tag) {
    using T = decltype(tag);
    const auto* take = data<uint8_t>(condition);
    const T *xs = data<T>(x), *ys = data<T>(y);
    T* to = data<T>(out);
    const Dims& dims = out.dims();
    walk<3>(dims,
            {broadcast_strides(condition.dims(), dims), broadcast_strides(x.dims(), dims),
             broadcast_strides(y.dims(), dims)},
            [&](int64_t n, auto& at) { to[n] = take[at[0]] ? xs[at[1]] : ys[at[2]]; });
  });
}

// Sets the gradients of both inputs: dx and dy have the shape of the result and are summed over the broadcast axes.
void set_both(GradientContext& g, Var dx, Var dy) {
  g.set(0, sum_to_like(dx, g.x(0)));
  g.set(1, sum_to_like(dy, g.x(1)));
}
// Gives dy to input `first` where the mask holds, else to the next input.
void set_chosen(GradientContext& g, size_t first, Var mask) {
  const Var zero = g.dy().number(0);
  g.set(first, sum_to_like(select(mask, g.dy(), zero), g.x(first)));
  g.set(first + 1, sum_to_like(select(mask, zero, g.dy()), g.x(first + 1)));
}

void add_rule(GradientContext& g) { set_both(g, g.dy(), g.dy()); }
void sub_rule(GradientContext& g) {
  g.set(0, sum_to_like(g.dy(), g.x(0)));
  if (g.wanted(1)) g.set(1, -sum_to_like(g.dy(), g.x(1)));
}
void mul_rule(GradientContext& g) {
  if (g.wanted(0)) g.set(0, sum_to_like(g.dy() * g.x(1), g.x(0)));
  if (g.wanted(1)) g.set(1, sum_to_like(g.dy() * g.x(0), g.x(1)));
}
void div_rule(GradientContext& g) {
  const Var share = g.dy() / g.x(1);
  g.set(0, sum_to_like(share, g.x(0)));
  if (g.wanted(1)) g.set(1, sum_to_like(-share * g.y(), g.x(1)));
}
// x - y * quotient, of which the quotient is piecewise constant.
void remainder_rule(GradientContext& g) {
  g.set(0, sum_to_like(g.dy(), g.x(0)));
  if (g.wanted(1)) g.set(1, sum_to_like(-g.dy() * ((g.x(0) - g.y()) / g.x(1)).apply("round"), g.x(1)));
}
// The gradient by the exponent contains log(x), which is taken as 0 unless x > 0.
void pow_rule(GradientContext& g) {
  const Var x = g.x(0), exponent = g.x(1);
  if (g.wanted(0)) {
    const Var slope = exponent * x.apply("pow", {exponent - 1});
    const Var none = exponent.apply("equal", {exponent.number(0)});
    g.set(0, sum_to_like(g.dy() * select(none, x.number(0), slope), x));
  }
  if (!g.wanted(1)) return;
  const Var positive = x > 0, logarithm = log(select(positive, x, x.number(1)));
  g.set(1, sum_to_like(g.dy() * g.y() * logarithm, exponent));
}
void atan2_rule(GradientContext& g) {
  const Var share = g.dy() / (square(g.x(0)) + square(g.x(1)));
  set_both(g, share * g.x(1), -share * g.x(0));
}
void squared_difference_rule(GradientContext& g) {
  const Var slope = g.dy() * (g.x(0) - g.x(1)) * 2;
  g.set(0, sum_to_like(slope, g.x(0)));
  if (g.wanted(1)) g.set(1, -sum_to_like(slope, g.x(1)));
}

using Kernel = void (*)(KernelContext&);

const std::vector<const char*> kFloatCases = {"f32[2, 3], f32[2, 3]",    "f32[2, 3], f32[3]",
                                              "f32[2, 3], f32[]",        "f32[], f32[]",
                                              "f32[4, 1, 3], f32[2, 1]", "f32[0, 3], f32[3]",
                                              "f32[0], f32[1]",          "f32[5, 67], f32[5, 1]",
                                              "f32[], f32[41]",          "f32[2, 5, 3, 7], f32[2, 5, 3, 7]",
                                              "f64[7], f64[7]",          "f16[2, 9], f16[9]",
                                              "bf16[9], bf16[9]"};
const std::vector<const char*> kIntegerCases = {"i32[2, 3], i32[3]", "i64[5], i64[]", "i8[6], i8[6]", "u8[6], u8[6]"};
const std::vector<const char*> kDivisionCases = {"i32[2, 3], i32[3]=[2, -3, 4]", "i64[5], i64[]=[-2]",
                                                 "i8[3]=[-128, 7, -7], i8[3]=[-1, -2, 2]",
                                                 "u8[6], u8[6]=[1, 2, 3, 4, 5, 255]", "i32[0], i32[1]=[0]"};

std::vector<const char*> joined(std::vector<const char*> a, const std::vector<const char*>& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

using Rule = void (*)(GradientContext&);

OpDef arithmetic(const char* name, const char* summary, uint32_t traits, Kernel reference, Oracle oracle,
                 Rule gradient = nullptr) {
  return {.name = name,
          .summary = summary,
          .inputs = {{"x", Accepts::numbers}, {"y", Accepts::numbers}},
          .traits = kElementwise | kInPlace | traits,
          .infer = infer_binary,
          .gradient = gradient,
          .reference = reference,
          .oracle = oracle,
          .cases = joined(kFloatCases, kIntegerCases)};
}
/// A denormal f32 quotient is not taken for 0, even if this thread flushes denormals.
template <class T>
T floor_of_quotient(T x, T y) {
  if constexpr (std::is_same_v<T, float>) {
    const double quotient = static_cast<double>(x) / static_cast<double>(y);
    const auto rounded = static_cast<float>(quotient);
    return rounded == 0 && quotient < -0x1p-150 ? -1.f : std::floor(rounded);
  }
  return std::floor(x / y);
}

OpDef division(const char* name, const char* summary, Kernel reference, Oracle oracle, Rule gradient = nullptr) {
  OpDef row = arithmetic(name, summary, 0, reference, oracle, gradient);
  row.cases = joined(kFloatCases, kDivisionCases);
  return row;
}
OpDef comparison(const char* name, const char* summary, Kernel reference, Oracle oracle) {
  OpDef row = arithmetic(name, summary, 0, reference, oracle);
  row.traits = kElementwise;
  row.infer = infer_compare;
  return row;
}
OpDef equality(const char* name, const char* summary, Kernel reference, Oracle oracle) {
  OpDef row = comparison(name, summary, reference, oracle);
  row.inputs = {{"x", Accepts::any_tensor}, {"y", Accepts::any_tensor}};
  row.traits |= kCommutative;
  row.cases.push_back("bool[2, 5], bool[5]");
  return row;
}
OpDef junction(const char* name, const char* summary, Kernel reference, Oracle oracle) {
  OpDef row = arithmetic(name, summary, kCommutative, reference, oracle);
  row.inputs = {{"x", Accepts::boolean}, {"y", Accepts::boolean}};
  row.cases = {"bool[2, 3], bool[2, 3]", "bool[2, 3], bool[]", "bool[4, 1], bool[0]", "bool[37], bool[37]",
               "bool[], bool[]"};
  return row;
}

std::vector<Value*> square_of_sub(Builder& b, const Node& node) {
  return {b.add("square", {b.add("sub", {node.inputs[0], node.inputs[1]})})};
}

std::vector<OpDef> make_binary_rows() {
  std::vector<OpDef> rows = {
      arithmetic("add", "x + y; integers wrap", kCommutative,
                 binary<std::plus<>{}, [](auto x, auto y) { return wrapped(x, y, std::plus<>()); }>, {"np.add(x, y)"},
                 add_rule),
      arithmetic("sub", "x - y; integers wrap", 0,
                 binary<std::minus<>{}, [](auto x, auto y) { return wrapped(x, y, std::minus<>()); }>,
                 {"np.subtract(x, y)"}, sub_rule),
      arithmetic("mul", "x * y; integers wrap", kCommutative,
                 binary<std::multiplies<>{}, [](auto x, auto y) { return wrapped(x, y, std::multiplies<>()); }>,
                 {"np.multiply(x, y)"}, mul_rule),
      division("div", "x / y of floats, correctly rounded; x / 0 is infinite, 0 / 0 NaN",
               binary_floats<std::divides<>{}>, {"np.divide(x, y)"}, div_rule),
      division("floor_div",
               "floor(x / y), the quotient rounded to the element type first; an integer divided by 0 is an error, "
               "integers wrap",
               divide<binary<[](auto x, auto y) { return floor_of_quotient(x, y); },
                             [](auto x, auto y) { return floored_quotient(x, y); }>>,
               {"np.floor(x / y) if x.dtype.kind == 'f' else x // y"}, no_slope),
      division("truncate_div",
               "integer quotient rounded towards 0; division by 0 is an error, the least integer by -1 wraps",
               divide<binary_integers<[](auto x, auto y) { return truncated_quotient(x, y); }>>,
               {"tf.truncatediv(x, y)", kTensorFlow}),
      division("mod", "remainder with the sign of y; an integer modulo 0 is an error",
               divide<binary<[](auto x, auto y) { return float_remainder(x, y); },
                             [](auto x, auto y) { return floored_remainder(x, y); }>>,
               {"np.mod(x, y)"}, remainder_rule),
      division("truncate_mod", "remainder with the sign of x; an integer modulo 0 is an error",
               divide<binary<[](auto x, auto y) { return std::fmod(x, y); },
                             [](auto x, auto y) { return remainder_of(x, y); }>>,
               {"np.fmod(x, y)"}, remainder_rule),
      arithmetic("pow", "x to the power y; a negative integer exponent is an error, integers wrap", 0,
                 raise<binary<[](auto x, auto y) { return std::pow(static_cast<double>(x), static_cast<double>(y)); },
                              [](auto x, auto y) { return integer_power(x, y); }>>,
                 {"np.power(x, y)"}, pow_rule),
      arithmetic("atan2", "angle of the point with height x and width y, between -pi and pi", 0,
                 binary_floats<[](auto x, auto y) { return std::atan2(x, y); }>, {"np.arctan2(x, y)"}, atan2_rule),
      arithmetic("maximum", "larger of x and y; NaN when either is NaN", kCommutative,
                 binary<[](auto x, auto y) { return maximum(x, y); }, [](auto x, auto y) { return maximum(x, y); }>,
                 {"np.maximum(x, y)"},
                 [](GradientContext& g) { set_chosen(g, 0, g.x(0).apply("greater_equal", {g.x(1)})); }),
      arithmetic("minimum", "smaller of x and y; NaN when either is NaN", kCommutative,
                 binary<[](auto x, auto y) { return minimum(x, y); }, [](auto x, auto y) { return minimum(x, y); }>,
                 {"np.minimum(x, y)"},
                 [](GradientContext& g) { set_chosen(g, 0, g.x(0).apply("less_equal", {g.x(1)})); }),
      arithmetic("squared_difference", "(x - y) * (x - y); integers wrap", kCommutative,
                 binary<[](auto x, auto y) { return (x - y) * (x - y); },
                        [](auto x, auto y) {
                          auto difference = wrapped(x, y, std::minus<>());
                          return wrapped(difference, difference, std::multiplies<>());
                        }>,
                 {"np.square(x - y)"}, squared_difference_rule),
      equality("equal", "x == y; NaN equals nothing", compare<std::equal_to<>{}>, {"np.equal(x, y)"}),
      equality("not_equal", "x != y; NaN differs from everything", compare<std::not_equal_to<>{}>,
               {"np.not_equal(x, y)"}),
      comparison("less", "x < y; false with NaN", compare<std::less<>{}>, {"np.less(x, y)"}),
      comparison("less_equal", "x <= y; false with NaN", compare<std::less_equal<>{}>, {"np.less_equal(x, y)"}),
      comparison("greater", "x > y; false with NaN", compare<std::greater<>{}>, {"np.greater(x, y)"}),
      comparison("greater_equal", "x >= y; false with NaN", compare<std::greater_equal<>{}>,
                 {"np.greater_equal(x, y)"}),
      junction("and", "true where both are", logical<std::logical_and<>{}>, {"np.logical_and(x, y)"}),
      junction("or", "true where either is", logical<std::logical_or<>{}>, {"np.logical_or(x, y)"}),
      junction("xor", "true where exactly one is", logical<std::not_equal_to<>{}>, {"np.logical_xor(x, y)"}),
      {.name = "select",
       .summary = "x where the condition holds, else y; all three broadcast",
       .inputs = {{"condition", Accepts::boolean}, {"x"}, {"y"}},
       .traits = kElementwise,
       .infer = infer_select,
       .gradient = [](GradientContext& g) { set_chosen(g, 1, g.x(0)); },
       .reference = select,
       .oracle = {"np.where(condition, x, y)"},
       .cases = {"bool[2, 3], f32[2, 3], f32[2, 3]", "bool[], f32[3], f32[3]", "bool[3], f32[], f32[2, 1]",
                 "bool[0], f32[1], f32[]", "bool[41], i64[41], i64[]", "bool[5], f16[5], f16[5]",
                 "bool[2], bool[2], bool[2]"}},
  };
  for (OpDef& row : rows) {
    std::string_view name = row.name;
    if (name == "div" || name == "atan2")
      row.inputs = {{"x", Accepts::floats}, {"y", Accepts::floats}}, row.cases = kFloatCases;
    if (name == "atan2") row.precision = Precision::rounded;
    if (name == "truncate_div")
      row.inputs = {{"x", Accepts::integers}, {"y", Accepts::integers}}, row.cases = kDivisionCases;
    if (name == "pow")
      row.precision = Precision::rounded,
      row.cases = joined(kFloatCases, {"i32[4], i32[4]=[0, 1, 2, 3]", "i64[2, 1], i64[3]=[5, 0, 40]"});
    if (name == "squared_difference") row.decompose = square_of_sub;
  }
  return rows;
}

}  // namespace

std::span<const OpDef> binary_ops() {
  static const std::vector<OpDef> rows = make_binary_rows();
  return rows;
}

}  // namespace cairn
