// Element-wise algebra: every rule here is exact, up to the sign of zero.
#include <algorithm>

#include "passes/facts.h"
#include "passes/rules.h"

namespace cairn {

namespace {

Value* relu_of_input(Match& m) { return m.add("relu", {m["x"]}); }

Value* clip_of_input(Match& m, double low, double high) {
  return m.add("clip", {m["x"]}, {{"low", low}, {"high", high}});
}

double low_of(const Node& clip) { return clip.attr().number("low"); }
double high_of(const Node& clip) { return clip.attr().number("high"); }
bool ordered(const Node& clip) { return low_of(clip) <= high_of(clip); }

// Bounds of 16-bit and integer clips are rounded by the kernel, each in its own direction.
bool is_f32(const Match& m) { return m.type().dtype == kF32; }

double as_f32(double bound) { return static_cast<double>(static_cast<float>(bound)); }

Value* clip_once(Match& m) {
  Node &inner = m.node("inner"), &outer = m.node("outer");
  double low = as_f32(low_of(outer)), high = as_f32(high_of(outer));
  auto clamp = [&](double bound) { return std::min(std::max(as_f32(bound), low), high); };
  return clip_of_input(m, clamp(low_of(inner)), clamp(high_of(inner)));
}

bool bounds_are_scalars(const Match& m) {
  auto low = splat(m.constant("a")), high = splat(m.constant("b"));
  return keeps_type(m) && is_f32(m) && low && high && *low <= *high;
}

Value* clip_by_bounds(Match& m) { return clip_of_input(m, *splat(m.constant("a")), *splat(m.constant("b"))); }

Value* multiply_by_reciprocal(Match& m) {
  Tensor reciprocal = Tensor::uninitialized(m.constant("c").dtype(), m.constant("c").dims());
  auto fill = [&](auto zero) {
    using T = decltype(zero);
    auto from = m.constant("c").values<T>();
    std::transform(from.begin(), from.end(), reciprocal.mutable_values<T>().begin(), [](T x) { return T(1) / x; });
  };
  reciprocal.dtype() == kF32 ? fill(0.f) : fill(0.0);
  return m.add("mul", {m["x"], m.constant(reciprocal)});
}

constexpr Rule kArithmeticRules[] = {
    {.name = "divide_by_power_of_two",
     .summary = "dividing by powers of two is multiplying by their reciprocals, exactly",
     .pattern = "div(x, c!)",
     .where = [](const Match& m) { return powers_of_two(m.constant("c")); },
     .replace = multiply_by_reciprocal,
     .platform = "RealDiv2MulsFusionPass",
     .in = "(%x: f32[2]) -> (%y: f32[2]) { %c = constant {value = f32[2] (4.0, -0.5)} %y = div %x, %c return %y }",
     .out = "(%x: f32[2]) -> (%y: f32[2]) { %c = constant {value = f32[2] (0.25, -2.0)} %y = mul %x, %c return %y }"},
    {.name = "negate_twice",
     .summary = "two negations",
     .pattern = "neg(neg(x))",
     .replace = [](Match& m) { return m["x"]; },
     .removal = Removal::identity,
     .in = "(%x: f32[2]) -> (%y: f32[2]) { %a = neg %x %b = neg %a %y = exp %b return %y }",
     .out = "(%x: f32[2]) -> (%y: f32[2]) { %y = exp %x return %y }"},
    {.name = "add_negated",
     .summary = "adding what is negated",
     .pattern = "add(x, neg(z))",
     .replace =
         [](Match& m) {
           return m.add("sub", {m["x"], m["z"]});
         },
     .in = "(%x: f32[2], %z: f32[2]) -> (%y: f32[2]) { %a = neg %z %y = add %a, %x return %y }",
     .out = "(%x: f32[2], %z: f32[2]) -> (%y: f32[2]) { %y = sub %x, %z return %y }"},
    {.name = "subtract_negated",
     .summary = "subtracting what is negated",
     .pattern = "sub(x, neg(z))",
     .replace =
         [](Match& m) {
           return m.add("add", {m["x"], m["z"]});
         },
     .in = "(%x: f32[2], %z: f32[2]) -> (%y: f32[2]) { %a = neg %z %y = sub %x, %a return %y }",
     .out = "(%x: f32[2], %z: f32[2]) -> (%y: f32[2]) { %y = add %x, %z return %y }"},
    {.name = "square_of_self",
     .summary = "a value times itself, or to the power of two",
     .pattern = "mul(x, x)",
     .replace = [](Match& m) { return m.add("square", {m["x"]}); },
     .in = "(%x: f32[2]) -> (%y: f32[2]) { %y = mul %x, %x return %y }",
     .out = "(%x: f32[2]) -> (%y: f32[2]) { %y = square %x return %y }"},
    {.name = "power_of_two",
     .summary = "the second power",
     .pattern = "pow(x, c!)",
     .where = [](const Match& m) { return keeps_type(m) && m.type().dtype.is_float() && is_all(m.constant("c"), 2); },
     .replace = [](Match& m) { return m.add("square", {m["x"]}); },
     .platform = "PowFusionPass",
     .in = "(%x: f32[2]) -> (%y: f32[2]) { %c = constant {value = f32[] (2.0)} %y = pow %x, %c return %y }",
     .out = "(%x: f32[2]) -> (%y: f32[2]) { %y = square %x return %y }"},
    {.name = "power_of_three",
     .summary = "the third power is two products",
     .pattern = "pow(x, c!)",
     .where = [](const Match& m) { return keeps_type(m) && m.type().dtype.is_float() && is_all(m.constant("c"), 3); },
     .replace =
         [](Match& m) {
           return m.add("mul", {m["x"], m.add("square", {m["x"]})});
         },
     .platform = "PowFusionPass",
     .in = "(%x: f32[2]) -> (%y: f32[2]) { %c = constant {value = f32[] (3.0)} %y = pow %x, %c return %y }",
     .out = "(%x: f32[2]) -> (%y: f32[2]) { %a = square %x %y = mul %x, %a return %y }"},
    {.name = "square_of_negated",
     .summary = "the sign does not matter",
     .pattern = "square|abs(neg|abs(x):inner):outer",
     .where = [](const Match& m) { return m.type().dtype.is_float(); },
     .replace = [](Match& m) { return m.like(m.node("outer"), {m["x"]}); },
     .removal = Removal::identity,
     .in = "(%x: f32[2]) -> (%y: f32[2]) { %a = neg %x %y = square %a return %y }",
     .out = "(%x: f32[2]) -> (%y: f32[2]) { %y = square %x return %y }"},
    {.name = "square_of_difference",
     .summary = "the difference squared is one op",
     .pattern = "square(sub(x, z)~)",
     .replace =
         [](Match& m) {
           return m.add("squared_difference", {m["x"], m["z"]});
         },
     .in = "(%x: f32[2], %z: f32[2]) -> (%y: f32[2]) { %a = sub %x, %z %y = square %a return %y }",
     .out = "(%x: f32[2], %z: f32[2]) -> (%y: f32[2]) { %y = squared_difference %x, %z return %y }"},
    {.name = "relu_of_relu",
     .summary = "relu and abs leave what is not negative",
     .pattern = "relu(relu|abs|square|sigmoid|exp(x):inner)",
     .where = [](const Match& m) { return m.type().dtype.is_float(); },
     .replace = [](Match& m) { return m.node("inner").result(); },
     .removal = Removal::identity,
     .in = "(%x: f32[4]) -> (%y: f32[4]) { %a = relu %x %b = relu %a %y = exp %b return %y }",
     .out = "(%x: f32[4]) -> (%y: f32[4]) { %a = relu %x %y = exp %a return %y }"},
    {.name = "maximum_with_zero",
     .summary = "the larger of a value and zero",
     .pattern = "maximum(x, c!)",
     .where = [](const Match& m) { return keeps_type(m) && is_all(m.constant("c"), 0); },
     .replace = relu_of_input,
     .platform = "ClipFusionRule0",
     .in = "(%x: f32[4]) -> (%y: f32[4]) { %c = constant {value = f32[] (0.0)} %y = maximum %x, %c return %y }",
     .out = "(%x: f32[4]) -> (%y: f32[4]) { %y = relu %x return %y }"},
    {.name = "minimum_of_maximum",
     .summary = "constant bounds below and above",
     .pattern = "minimum(maximum(x, a!)~, b!)",
     .where = bounds_are_scalars,
     .replace = clip_by_bounds,
     .platform = "ClipFusionRule0",
     .in = "(%x: f32[4]) -> (%y: f32[4]) { %a = constant {value = f32[] (-1.0)} %b = constant {value = f32[] (0.5)} "
           "%m = maximum %x, %a %y = minimum %m, %b return %y }",
     .out = "(%x: f32[4]) -> (%y: f32[4]) { %y = clip %x {low = -1.0, high = 0.5} return %y }"},
    {.name = "minimum_of_relu",
     .summary = "relu with a constant bound above",
     .pattern = "minimum(relu(x)~, b!)",
     .where = [](const Match& m) { return keeps_type(m) && is_f32(m) && splat(m.constant("b")) >= 0.0; },
     .replace = [](Match& m) { return clip_of_input(m, 0, *splat(m.constant("b"))); },
     .platform = "ClipFusionRule0",
     .in = "(%x: f32[4]) -> (%y: f32[4]) { %b = constant {value = f32[] (1.0)} %m = relu %x %y = minimum %m, %b return "
           "%y }",
     .out = "(%x: f32[4]) -> (%y: f32[4]) { %y = clip %x {low = 0.0, high = 1.0} return %y }"},
    {.name = "clip_of_clip",
     .summary = "bounds inside bounds",
     .pattern = "clip(clip(x)~:inner):outer",
     .where = [](const Match& m) { return is_f32(m) && ordered(m.node("inner")) && ordered(m.node("outer")); },
     .replace = clip_once,
     .in = "(%x: f32[4]) -> (%y: f32[4]) { %a = clip %x {low = -1.0, high = 0.5} %y = clip %a {low = 0.0, high = 6.0} "
           "return %y }",
     .out = "(%x: f32[4]) -> (%y: f32[4]) { %y = clip %x {low = 0.0, high = 0.5} return %y }"},
    {.name = "clip_of_relu",
     .summary = "relu is a bound below",
     .pattern = "clip(relu(x)~):outer",
     .where = [](const Match& m) { return is_f32(m) && ordered(m.node("outer")) && high_of(m.node("outer")) >= 0; },
     .replace =
         [](Match& m) { return clip_of_input(m, std::max(0.0, low_of(m.node("outer"))), high_of(m.node("outer"))); },
     .in = "(%x: f32[4]) -> (%y: f32[4]) { %a = relu %x %y = clip %a {low = -1.0, high = 1.0} return %y }",
     .out = "(%x: f32[4]) -> (%y: f32[4]) { %y = clip %x {low = 0.0, high = 1.0} return %y }"},
    {.name = "relu_of_clip",
     .summary = "relu is a bound below",
     .pattern = "relu(clip(x)~:inner)",
     .where = [](const Match& m) { return is_f32(m) && ordered(m.node("inner")) && high_of(m.node("inner")) >= 0; },
     .replace =
         [](Match& m) { return clip_of_input(m, std::max(0.0, low_of(m.node("inner"))), high_of(m.node("inner"))); },
     .in = "(%x: f32[4]) -> (%y: f32[4]) { %a = clip %x {low = -1.0, high = 1.0} %y = relu %a return %y }",
     .out = "(%x: f32[4]) -> (%y: f32[4]) { %y = clip %x {low = 0.0, high = 1.0} return %y }"},
};

}  // namespace

std::span<const Rule> arithmetic_rules() { return kArithmeticRules; }

}  // namespace cairn
