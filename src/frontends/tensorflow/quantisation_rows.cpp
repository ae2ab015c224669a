// TensorFlow's simulation of quantised numbers by floats, and its gradients.
#include <algorithm>
#include <cmath>
#include <limits>

#include "frontends/fold.h"
#include "frontends/reshape.h"
#include "frontends/tensorflow/importer.h"

namespace cairn::tensorflow {
namespace {

/// The range of steps between two bounds, which are moved so that 0 is a step.
struct Steps {
  Value *bottom, *top, *size;
};

Steps steps_between(OpContext& c, Value* low, Value* high) {
  const int64_t bits = c.integer("num_bits", 8);
  if (bits < 2 || bits > 16) fail(ErrorKind::invalid_model, "", "has {} bits", bits);
  Value* least = c.b.scalar_like(low, c.boolean("narrow_range", false) ? 1 : 0);
  Value* most = c.b.scalar_like(low, std::ldexp(1.0, static_cast<int>(bits)) - 1);
  Value* scale = c.b.add("div", {c.b.add("sub", {high, low}), c.b.add("sub", {most, least})});
  Value* offset = c.b.add("sub", {least, c.b.add("div", {low, scale})});
  // Halves up, as std::round does for what is not negative.
  Value* half = c.b.scalar_like(low, 0.5);
  Value* zero =
      c.b.add("minimum", {c.b.add("maximum", {c.b.add("floor", {c.b.add("add", {offset, half})}), least}), most});
  return {c.b.add("mul", {c.b.add("sub", {least, zero}), scale}), c.b.add("mul", {c.b.add("sub", {most, zero}), scale}),
          scale};
}

/// In a model to be run, where 8 bits lie between known bounds: integers and back, of which products make products of integers. Halves
/// go to even steps, not up. Null elsewhere.
Value* by_integers(OpContext& c, Value* x, const Value* low, const Value* high) {
  const Tensor *least = constant_of(low), *most = constant_of(high);
  if (c.importer().keeps_effects() || c.integer("num_bits", 8) != 8 || !least || !most || x->type.dtype != kF32)
    return nullptr;
  const bool is_weight = constant_of(x) != nullptr, narrow = c.boolean("narrow_range", false);
  const float first = narrow ? 1 : 0, last = 255;
  const std::vector<int64_t> dims = least->dims();
  Tensor scale = Tensor::zeros(kF32, dims), bottom = Tensor::zeros(kF32, dims), zero = Tensor::zeros(kI64, dims);
  for (size_t i = 0; i < static_cast<size_t>(least->count()); ++i) {
    const float from = least->values<float>()[i], size = (most->values<float>()[i] - from) / (last - first);
    if (!(size > 0) || !std::isfinite(size)) return nullptr;
    const float place = std::clamp(std::round(first - from / size), first, last);
    scale.mutable_values<float>()[i] = size, bottom.mutable_values<float>()[i] = (first - place) * size;
    zero.mutable_values<int64_t>()[i] = static_cast<int64_t>(place) - (is_weight ? 128 : 0);
  }
  Value* step = c.b.constant(scale);
  Value* middle = c.b.add("cast", {c.b.constant(zero)}, {{"dtype", is_weight ? kI8 : kU8}});
  if (narrow) x = c.b.add("maximum", {x, c.b.constant(bottom)});
  return c.b.add("dequantize_linear", {c.b.add("quantize_linear", {x, step, middle}), step, middle});
}

Value* quantised(OpContext& c, Value* x, Value* low, Value* high) {
  if (Value* made = by_integers(c, x, low, high)) return made;
  const auto [bottom, top, size] = steps_between(c, low, high);
  Value* half = c.b.scalar_like(x, 0.5);
  Value* inside = c.b.add("sub", {c.b.add("minimum", {c.b.add("maximum", {x, bottom}), top}), bottom});
  Value* step = c.b.add("floor", {c.b.add("add", {c.b.add("mul", {inside, c.b.add("reciprocal", {size})}), half})});
  return c.b.add("add", {c.b.add("mul", {step, size}), bottom});
}

/// dy if x is within the bounds, else 0.
Value* passed_on(OpContext& c, Value* dy, Value* x, const Steps& steps) {
  Value* inside = c.b.add("and", {c.b.add("greater_equal", {x, steps.bottom}), c.b.add("less_equal", {x, steps.top})});
  return c.b.add("select", {inside, dy, c.b.scalar_like(dy, 0)});
}

void fake_quant_args_gradient(OpContext& c) {
  c.expect_inputs(2);
  const Steps steps =
      steps_between(c, c.b.scalar_like(c.in[1], c.real("min", -6)), c.b.scalar_like(c.in[1], c.real("max", 6)));
  c.out = {passed_on(c, c.in[0], c.in[1], steps)};
}

/// Inputs: dy, x, bounds. The gradient goes to x, or for elements beyond a bound to that bound. Bounds that are both 0
/// get none.
void fake_quant_vars_gradient(OpContext& c) {
  c.expect_inputs(4);
  Value *dy = c.in[0], *x = c.in[1], *zero = c.b.scalar_like(dy, 0);
  const Steps steps = steps_between(c, c.in[2], c.in[3]);
  Value* empty = c.b.add("and", {c.b.add("equal", {c.in[2], zero}), c.b.add("equal", {c.in[3], zero})});
  std::vector<int64_t> axes(c.rank(1) - std::min(c.rank(2), c.rank(1)));
  for (size_t i = 0; i < axes.size(); ++i) axes[i] = static_cast<int64_t>(i);
  auto beyond = [&](const char* side, Value* bound) {
    Value* part = c.b.add("select", {c.b.add(side, {x, bound}), dy, zero});
    return c.b.add("select", {empty, zero, c.b.add("reduce_sum", {part}, {{"axes", axes}})});
  };
  c.out = {c.b.add("select", {empty, dy, passed_on(c, dy, x, steps)}), beyond("less", steps.bottom),
           beyond("greater", steps.top)};
}

void fake_quant_args(OpContext& c) {
  c.expect_inputs(1);
  c.out = {
      quantised(c, c.in[0], c.b.scalar_like(c.in[0], c.real("min", -6)), c.b.scalar_like(c.in[0], c.real("max", 6)))};
}

void fake_quant_vars(OpContext& c) {
  c.expect_inputs(3);
  c.out = {quantised(c, c.in[0], c.in[1], c.in[2])};
}

/// x in steps of an integer of so many bits, whose range is told or that of x. One side of the range is widened, so that
/// both have steps of one size (quantize_and_dequantize_op.h).
void quantize_and_dequantize(OpContext& c) {
  const bool third = c.node().op.ends_with("V3");
  c.expect_inputs(third ? 4 : 3);
  const int64_t bits = third ? c.constant_integer(3, "the number of bits") : c.integer("num_bits", 8);
  if (bits < 2 || bits > 31) c.refuse("{} bits are not supported", bits);
  const bool is_signed = c.boolean("signed_input", true), given = c.boolean("range_given", false);
  const double least = is_signed ? -std::ldexp(1.0, int(bits) - 1) + (c.boolean("narrow_range", false) ? 1 : 0) : 0;
  const double most = std::ldexp(1.0, int(bits) - (is_signed ? 1 : 0)) - 1;
  Value *x = c.in[0], *low = c.in[1], *high = c.in[2];
  std::vector<int64_t> others;
  const int64_t axis = c.integer("axis", -1) < 0 ? -1 : normal_axis(c.integer("axis"), c.rank(0));
  for (int64_t i = 0; i < static_cast<int64_t>(c.rank(0)); ++i)
    if (i != axis) others.push_back(i);
  if (!given) {
    low = c.b.add("reduce_min", {x}, {{"axes", others}, {"keep_dims", true}});
    high = c.b.add("reduce_max", {x}, {{"axes", others}, {"keep_dims", true}});
  } else if (axis >= 0) {
    if (c.rank(1) != 1 || c.rank(2) != 1) fail(ErrorKind::invalid_model, "", "the range must be vectors");
    for (Value** bound : {&low, &high}) *bound = expand_dims(*bound, others, c.b);
  }
  auto number = [&](double value) { return c.b.scalar_like(x, value); };
  auto steps = [&](double edge, Value* bound) {
    Value* usable = c.b.add("greater", {c.b.add("mul", {number(edge), bound}), number(0)});
    return c.b.add("select",
                   {usable, c.b.add("div", {number(edge), bound}), number(std::numeric_limits<float>::max())});
  };
  auto size = [&](double edge, Value* bound) { return edge == 0 ? number(0) : c.b.add("div", {bound, number(edge)}); };
  Value *below = steps(least, low), *above = steps(most, high);
  Value* by_low = c.b.add("less", {below, above});
  Value* scale = c.b.add("select", {by_low, below, above});
  Value* step = c.b.add("select", {by_low, size(least, low), size(most, high)});
  if (given) {
    Value* top = c.b.add("select", {by_low, c.b.add("mul", {number(most), step}), high});
    Value* bottom = c.b.add("select", {by_low, low, c.b.add("mul", {number(least), step})});
    x = c.b.add("minimum", {c.b.add("maximum", {x, bottom}), top});
  }
  Value* scaled = c.b.add("mul", {x, scale});
  const bool up = c.text("round_mode", "HALF_TO_EVEN") == "HALF_UP";
  Value* rounded = up ? c.b.add("floor", {c.b.add("add", {scaled, number(0.5)})}) : c.b.add("round", {scaled});
  c.out = {c.b.add("mul", {rounded, step})};
}

constexpr Row kQuantisationRows[] = {
    {"FakeQuantWithMinMaxArgs", fake_quant_args},
    {"FakeQuantWithMinMaxArgsGradient", fake_quant_args_gradient},
    {"FakeQuantWithMinMaxVars", fake_quant_vars},
    {"FakeQuantWithMinMaxVarsGradient", fake_quant_vars_gradient},
    {"FakeQuantWithMinMaxVarsPerChannel", fake_quant_vars},
    {"FakeQuantWithMinMaxVarsPerChannelGradient", fake_quant_vars_gradient},
    {"QuantizeAndDequantizeV2", quantize_and_dequantize},
    {"QuantizeAndDequantizeV3", quantize_and_dequantize, Trait::host},
    {"QuantizeAndDequantizeV4", quantize_and_dequantize},
};

}  // namespace

std::span<const Row> quantisation_rows() { return kQuantisationRows; }

}  // namespace cairn::tensorflow
