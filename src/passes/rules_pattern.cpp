// Recognises compositions that frameworks write out and for which there is one op here.
#include <cmath>

#include "passes/facts.h"
#include "passes/rules.h"

namespace cairn {

namespace {

// Whether the constant equals the number within the rounding of its type.
bool is_about(const Tensor& tensor, double number) {
  auto value = splat(tensor);
  return value && std::abs(*value - number) <= 1e-3 * std::abs(number);
}

// x / 2 * (1 + erf(x / sqrt(2))), the quotient written as either.
bool gelu_constants(const Match& m) {
  bool divided = m.node("inner").is("div");
  return keeps_type(m) && is_about(m.constant("s"), divided ? std::sqrt(2.0) : std::sqrt(0.5)) &&
         is_all(m.constant("one"), 1) && is_all(m.constant("half"), 0.5);
}

Value* gelu_of_input(Match& m) { return m.add("gelu", {m["x"]}, {{"approximate", false}}); }

#define GELU_CONSTANTS                                                                                               \
  "%s = constant {value = f32[] (1.4142135)} %one = constant {value = f32[] (1.0)} %half = constant {value = f32[] " \
  "(0.5)} "
#define GELU_OUT "(%x: f32[4]) -> (%y: f32[4]) { %y = gelu %x {approximate = false} return %y }"

// Mean and variance over the last dims, to the end.
bool over_last_dims(const Match& m, const char* name, int64_t& axis) {
  const Node& node = m.node(name);
  size_t rank = node.inputs[0]->type.shape.rank();
  std::vector<int64_t> axes = node.attr().integers("axes");
  if (!node.inputs[0]->type.shape.ranked || !node.attr().boolean("keep_dims") || axes.empty() || axes.size() > rank)
    return false;
  std::vector<bool> set(rank, false);
  for (int64_t each : axes) set[axis_of(each, rank)] = true;
  for (size_t i = 0; i < rank; ++i)
    if (set[i] != (i + axes.size() >= rank)) return false;
  axis = -static_cast<int64_t>(axes.size());
  return true;
}

bool is_layer_norm(const Match& m) {
  int64_t mean = 0, variance = 0;
  return keeps_type(m) && splat(m.constant("e")) && over_last_dims(m, "mean", mean) &&
         over_last_dims(m, "variance", variance) && mean == variance;
}

Value* layer_norm_of_input(Match& m) {
  int64_t axis = 0;
  over_last_dims(m, "mean", axis);
  double epsilon = *splat(m.constant("e"));
  return m.add("layer_norm", {m["x"], m["g"], m["b"]}, {{"epsilon", epsilon}, {"axis", axis}});
}

// Rows scattered into zeros by addition, and the result added to x: the rows can be scattered into x directly. Gathered ones
// need no memory if they are not (fuse_gathers).
bool sums_into_places(const Match& m) {
  const Node& sums = m.node("segment_reduce");
  const Node* rows = sums.inputs[0]->producer;
  if (rows && rows->is("gather") && rows->result()->type.dtype == kF32 && rows->inputs[1]->type.shape.ranked &&
      rows->inputs[1]->type.shape.rank() == 1 && rows->attr().integer("axis") == 0)
    return false;
  return keeps_type(m) && sums.attr().text("mode") == "sum" && sums.inputs[0]->type.dtype == m.type().dtype;
}

bool sums_into_reshaped_places(const Match& m) {
  const Type &rows = m.node("segment_reduce").result()->type, &places = m["s"]->type;
  return sums_into_places(m) && m.type().is_static() && rows.shape.ranked && rows.shape.rank() > 0 &&
         m.type().shape.rank() > 0 && rows.shape.dims[0] == m.type().shape.dims[0] && places.is_static();
}

Value* added_to_places(Match& m, Value* rows) {
  return m.add("scatter_reduce", {m["x"], m["s"], rows}, {{"mode", std::string("add")}, {"padded", true}});
}

Value* added_to_reshaped_places(Match& m) {
  std::vector<int64_t> dims = m["s"]->type.shape.sizes(), row = m.type().shape.sizes();
  dims.insert(dims.end(), row.begin() + 1, row.end());
  return added_to_places(m, m.add("reshape", {m["u"], m.constant(Tensor::of_i64(dims))}));
}

constexpr Rule kPatternRules[] = {
    {.name = "add_segments",
     .summary = "x plus sums of rows at their places: the rows are added to x",
     .pattern = "add(x, segment_reduce(u, s, n)~)",
     .where = sums_into_places,
     .replace = [](Match& m) { return added_to_places(m, m["u"]); },
     .in = "(%x: f32[4, 2], %u: f32[3, 2], %s: i64[3]) -> (%y: f32[4, 2]) { %n = constant {value = i64[] (4)} "
           "%z = segment_reduce %u, %s, %n %y = add %x, %z return %y }",
     .out = "(%x: f32[4, 2], %u: f32[3, 2], %s: i64[3]) -> (%y: f32[4, 2]) { "
            "%y = scatter_reduce %x, %s, %u {mode = \"add\", padded = true} return %y }"},
    {.name = "add_reshaped_segments",
     .summary = "x plus reshaped sums of rows at their places: the rows are added to x",
     .pattern = "add(x, reshape(segment_reduce(u, s, n)~, d)~)",
     .where = sums_into_reshaped_places,
     .replace = added_to_reshaped_places,
     .in = "(%x: f32[4, 2, 2], %u: f32[3, 4], %s: i64[3]) -> (%y: f32[4, 2, 2]) { %n = constant {value = i64[] (4)} "
           "%d = constant {value = i64[3] (4, 2, 2)} %z = segment_reduce %u, %s, %n %r = reshape %z, %d "
           "%y = add %x, %r return %y }",
     .out = "(%x: f32[4, 2, 2], %u: f32[3, 4], %s: i64[3]) -> (%y: f32[4, 2, 2]) { %d = constant {value = i64[3] (3, "
            "2, 2)} "
            "%r = reshape %u, %d %y = scatter_reduce %x, %s, %r {mode = \"add\", padded = true} return %y }"},
    {.name = "gelu_by_erf",
     .summary = "half of x times one plus the error function of x",
     .pattern = "mul(mul(x, add(erf(div|mul(x, s!):inner), one!)), half!)",
     .where = gelu_constants,
     .replace = gelu_of_input,
     .platform = "GeluFusionPass",
     .in = "(%x: f32[4]) -> (%y: f32[4]) { " GELU_CONSTANTS
           "%d = div %x, %s %f = erf %d %a = add %f, %one %m = mul %x, %a "
           "%y = mul %m, %half return %y }",
     .out = GELU_OUT},
    {.name = "gelu_by_erf_half_first",
     .summary = "half of x times one plus the error function of x",
     .pattern = "mul(mul(x, half!), add(erf(div|mul(x, s!):inner), one!))",
     .where = gelu_constants,
     .replace = gelu_of_input,
     .platform = "GeluFusionPass",
     .in = "(%x: f32[4]) -> (%y: f32[4]) { " GELU_CONSTANTS
           "%d = div %x, %s %f = erf %d %a = add %f, %one %h = mul %x, %half "
           "%y = mul %h, %a return %y }",
     .out = GELU_OUT},
    {.name = "gelu_by_erf_half_last",
     .summary = "x times half of one plus the error function of x",
     .pattern = "mul(x, mul(add(erf(div|mul(x, s!):inner), one!), half!))",
     .where = gelu_constants,
     .replace = gelu_of_input,
     .platform = "GeluFusionPass",
     .in = "(%x: f32[4]) -> (%y: f32[4]) { " GELU_CONSTANTS
           "%d = div %x, %s %f = erf %d %a = add %f, %one %h = mul %a, %half "
           "%y = mul %x, %h return %y }",
     .out = GELU_OUT},
    {.name = "layer_norm_by_division",
     .summary = "difference from the mean over the root of the variance, scaled and shifted",
     .pattern = "add(mul(div(sub(x, reduce_mean(x):mean):d, sqrt(add(reduce_mean(square(d)):variance, e!))), g), b)",
     .where = is_layer_norm,
     .replace = layer_norm_of_input,
     .platform = "LayerNormONNXFusionPass",
     .in = "(%x: f32[2, 4], %g: f32[4], %b: f32[4]) -> (%y: f32[2, 4]) { %e = constant {value = f32[] (0.5)} "
           "%m = reduce_mean %x {axes = [1], keep_dims = true} %d = sub %x, %m %q = square %d "
           "%v = reduce_mean %q {axes = [1], keep_dims = true} %s = add %v, %e %r = sqrt %s %n = div %d, %r %k = mul "
           "%n, %g "
           "%y = add %k, %b return %y }",
     .out = "(%x: f32[2, 4], %g: f32[4], %b: f32[4]) -> (%y: f32[2, 4]) { %y = layer_norm %x, %g, %b {epsilon = 0.5, "
            "axis = -1} return %y }"},
    {.name = "layer_norm_by_moments",
     .summary = "x times a factor plus a shift, both from mean and variance of the last dims",
     .pattern =
         "add(mul(x, mul(rsqrt(add(reduce_mean(squared_difference(x, reduce_mean(x):mean)):variance, e!)), g):k), "
         "sub(b, mul(mean, k)))",
     .where = is_layer_norm,
     .replace = layer_norm_of_input,
     .platform = "LayerNormFusionPass",
     .in = "(%x: f32[2, 4], %g: f32[4], %b: f32[4]) -> (%y: f32[2, 4]) { %e = constant {value = f32[] (0.5)} "
           "%m = reduce_mean %x {axes = [1], keep_dims = true} %q = squared_difference %x, %m "
           "%v = reduce_mean %q {axes = [1], keep_dims = true} %s = add %v, %e %r = rsqrt %s %k = mul %r, %g %a = mul "
           "%x, %k "
           "%t = mul %m, %k %o = sub %b, %t %y = add %a, %o return %y }",
     .out = "(%x: f32[2, 4], %g: f32[4], %b: f32[4]) -> (%y: f32[2, 4]) { %y = layer_norm %x, %g, %b {epsilon = 0.5, "
            "axis = -1} return %y }"},
};

#undef GELU_CONSTANTS
#undef GELU_OUT

}  // namespace

std::span<const Rule> pattern_rules() { return kPatternRules; }

}  // namespace cairn
