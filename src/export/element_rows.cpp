// Element-wise operators: most have one of the same meaning.
#include "export/rows.h"

#include "frontends/onnx/model.h"

namespace cairn::onnx_export {

namespace {

bool of_floats(const Node& node) { return node.inputs[0]->type.dtype.is_float(); }

bool is_signed(const Node& node) {
  const DType dtype = node.inputs[0]->type.dtype;
  return dtype.is_float() || dtype.kind == DType::Kind::signed_int;
}

/// ONNX Runtime has no Relu of these integers, and no Where of truths.
void relu(const Context& c) {
  c.out(of_floats(c.node) ? c.one("Relu", {c.in(0)}) : c.one("Max", {c.in(0), c.number(0)}));
}
void select(const Context& c) {
  if (c.type().dtype != kBool) return c.out(c.one("Where", {c.in(0), c.in(1), c.in(2)}));
  const Name yes = c.one("And", {c.in(0), c.in(1)}), no = c.one("And", {c.one("Not", {c.in(0)}), c.in(2)});
  c.out(c.one("Or", {yes, no}));
}

template <const char* const& kWay>
void shift(const Context& c) {
  c.out(c.one("BitShift", {c.in(0), c.in(1)}, {{"direction", std::string(kWay)}}));
}
constexpr const char *kLeft = "LEFT", *kRight = "RIGHT";
/// Beyond the width ONNX says nothing.
bool shifts_within(const Node& node) {
  const DType dtype = node.inputs[0]->type.dtype;
  const Tensor* by = constant_of(node.inputs[1]);
  if (dtype.kind != DType::Kind::unsigned_int || !by) return false;
  const auto all = by->as_i64();
  return std::all_of(all.begin(), all.end(), [&](int64_t bits) { return bits >= 0 && bits < dtype.bits; });
}

void square(const Context& c) { c.out(c.one("Mul", {c.in(0), c.in(0)})); }
void rsqrt(const Context& c) { c.out(c.one("Reciprocal", {c.one("Sqrt", {c.in(0)})})); }
void expm1(const Context& c) { c.out(c.one("Sub", {c.one("Exp", {c.in(0)}), c.number(1)})); }
void log1p(const Context& c) { c.out(c.one("Log", {c.one("Add", {c.in(0), c.number(1)})})); }
void erfc(const Context& c) { c.out(c.one("Sub", {c.number(1), c.one("Erf", {c.in(0)})})); }
void not_equal(const Context& c) { c.out(c.one("Not", {c.one("Equal", {c.in(0), c.in(1)})})); }
void pass(const Context& c) { c.out(c.one("Identity", {c.in(0)})); }

void gelu(const Context& c) {
  const std::string how = c.attr().boolean("approximate") ? "tanh" : "none";
  c.out(c.one("Gelu", {c.in(0)}, {{"approximate", how}}));
}

void is_finite(const Context& c) {
  c.out(c.one("Not", {c.one("Or", {c.one("IsNaN", {c.in(0)}), c.one("IsInf", {c.in(0)})})}));
}

void clip(const Context& c) {
  const double low = c.attr().number("low"), high = c.attr().number("high");
  c.out(c.one("Clip", {c.in(0), std::isfinite(low) ? c.number(low) : "", std::isfinite(high) ? c.number(high) : ""}));
}

void cast(const Context& c) { c.out(c.cast(c.in(0), c.attr().dtype("dtype"))); }

template <const char* const& kOp>
void with_alpha(const Context& c) {
  c.out(c.one(kOp, {c.in(0)}, {{"alpha", static_cast<float>(c.attr().number("alpha"))}}));
}
constexpr const char* kLeaky = "LeakyRelu";
constexpr const char* kElu = "Elu";

void squared_difference(const Context& c) {
  const Name gap = c.one("Sub", {c.in(0), c.in(1)});
  c.out(c.one("Mul", {gap, gap}));
}

void mod(const Context& c) {
  if (!of_floats(c.node)) return c.out(c.one("Mod", {c.in(0), c.in(1)}));
  const Name whole = c.one("Floor", {c.one("Div", {c.in(0), c.in(1)})});
  c.out(c.one("Sub", {c.in(0), c.one("Mul", {whole, c.in(1)})}));
}

void truncate_mod(const Context& c) { c.out(c.one("Mod", {c.in(0), c.in(1)}, {{"fmod", int64_t{1}}})); }

void floor_div(const Context& c) {
  if (of_floats(c.node)) return c.out(c.one("Floor", {c.one("Div", {c.in(0), c.in(1)})}));
  const Name rest = c.one("Mod", {c.in(0), c.in(1)});
  c.out(c.one("Div", {c.one("Sub", {c.in(0), rest}), c.in(1)}));
}

constexpr Row kElementRows[] = {{"neg", nullptr, "Neg", is_signed},
                                {"abs", nullptr, "Abs"},
                                {"sign", nullptr, "Sign"},
                                {"relu", relu, nullptr, is_signed},
                                {"exp", nullptr, "Exp"},
                                {"log", nullptr, "Log"},
                                {"sqrt", nullptr, "Sqrt"},
                                {"reciprocal", nullptr, "Reciprocal"},
                                {"tanh", nullptr, "Tanh"},
                                {"sigmoid", nullptr, "Sigmoid"},
                                {"softplus", nullptr, "Softplus"},
                                {"erf", nullptr, "Erf"},
                                {"sin", nullptr, "Sin"},
                                {"cos", nullptr, "Cos"},
                                {"tan", nullptr, "Tan"},
                                {"asin", nullptr, "Asin"},
                                {"acos", nullptr, "Acos"},
                                {"atan", nullptr, "Atan"},
                                {"sinh", nullptr, "Sinh"},
                                {"cosh", nullptr, "Cosh"},
                                {"asinh", nullptr, "Asinh"},
                                {"acosh", nullptr, "Acosh"},
                                {"atanh", nullptr, "Atanh"},
                                {"floor", nullptr, "Floor"},
                                {"ceil", nullptr, "Ceil"},
                                {"round", nullptr, "Round"},
                                {"is_nan", nullptr, "IsNaN"},
                                {"is_inf", nullptr, "IsInf"},
                                {"not", nullptr, "Not"},
                                {"mish", nullptr, "Mish"},
                                {"identity", nullptr, "Identity"},
                                {"stop_gradient", nullptr, "Identity"},
                                {"add", nullptr, "Add"},
                                {"sub", nullptr, "Sub"},
                                {"mul", nullptr, "Mul"},
                                {"div", nullptr, "Div"},
                                {"truncate_div", nullptr, "Div"},
                                {"pow", nullptr, "Pow"},
                                {"maximum", nullptr, "Max"},
                                {"minimum", nullptr, "Min"},
                                {"equal", nullptr, "Equal"},
                                {"less", nullptr, "Less"},
                                {"less_equal", nullptr, "LessOrEqual"},
                                {"greater", nullptr, "Greater"},
                                {"greater_equal", nullptr, "GreaterOrEqual"},
                                {"and", nullptr, "And"},
                                {"or", nullptr, "Or"},
                                {"xor", nullptr, "Xor"},
                                {"select", select},
                                {"shift_left", shift<kLeft>, nullptr, shifts_within},
                                {"shift_right", shift<kRight>, nullptr, shifts_within},
                                {"bit_and", nullptr, "BitwiseAnd"},
                                {"bit_or", nullptr, "BitwiseOr"},
                                {"bit_xor", nullptr, "BitwiseXor"},
                                {"bit_not", nullptr, "BitwiseNot"},
                                {"square", square},
                                {"rsqrt", rsqrt},
                                {"expm1", expm1},
                                {"log1p", log1p},
                                {"erfc", erfc},
                                {"gelu", gelu},
                                {"is_finite", is_finite},
                                {"clip", clip},
                                {"cast", cast},
                                {"leaky_relu", with_alpha<kLeaky>},
                                {"elu", with_alpha<kElu>},
                                {"not_equal", not_equal},
                                {"squared_difference", squared_difference},
                                {"mod", mod},
                                {"truncate_mod", truncate_mod},
                                {"floor_div", floor_div},
                                {"dropout", pass},
                                {"after", pass}};

}  // namespace

std::span<const Row> element_rows() { return kElementRows; }

}  // namespace cairn::onnx_export
