// Removes identities, and brings nodes that can be written in several ways into a normal form.
#include "passes/facts.h"
#include "passes/rules.h"

namespace cairn {

namespace {

Value* the_input(Match& m) { return m["x"]; }

bool adds_nothing(const Match& m) { return keeps_type(m) && is_all(m.constant("c"), 0); }
bool scales_by_one(const Match& m) { return keeps_type(m) && is_all(m.constant("c"), 1); }

bool takes_everything(const Match& m) {
  for (int64_t step : m.root().attr().integers("steps"))
    if (step != 1) return false;
  return keeps_type(m);
}

bool all_ones(const Match& m) { return is_all(m.constant("c"), 1); }

// Whether a cast from `from` to `to` is injective and exact.
bool widens(DType from, DType to) {
  using Kind = DType::Kind;
  if (from == to) return true;
  if (from == kBool) return to.is_integer() || to.is_float();
  if (from.is_float()) return to.kind == Kind::ieee_float && to.bits > from.bits;
  if (to.is_float()) {
    int digits = to == kF64 ? 53 : to == kF32 ? 24 : to == kF16 ? 11 : 8;
    return from.is_integer() && from.bits <= digits;
  }
  if (!from.is_integer() || !to.is_integer()) return false;
  if (from.kind == to.kind) return to.bits >= from.bits;
  return from.kind == Kind::unsigned_int && to.bits > from.bits;
}

// Replaces sum_to by a reduction over the dims that the target shape lacks or has as 1.
Value* sum_over_axes(Match& m) {
  const std::vector<int64_t> shape = m.constant("c").as_i64();
  const size_t rank = m["x"]->type.shape.rank();
  std::vector<int64_t> axes;
  for (size_t i = 0; i < rank; ++i)
    if (i + shape.size() < rank || shape[i + shape.size() - rank] == 1) axes.push_back(static_cast<int64_t>(i));
  if (axes.empty()) return nullptr;
  Value* sum = m.add("reduce_sum", {m["x"]}, {{"axes", axes}, {"keep_dims", false}});
  return axes.size() + shape.size() == rank ? sum : m.add("reshape", {sum, m.constant(Tensor::of_i64(shape))});
}

// The first of two casts can be removed if it widens: the second gives the same result for the original value.
bool first_cast_widens(const Match& m) { return widens(m["x"]->type.dtype, m.node("first").attr().dtype("dtype")); }

Value* cast_once(Match& m) { return m.add("cast", {m["x"]}, {{"dtype", m.type().dtype}}); }

bool condition_is(const Match& m, bool value, const char* taken) {
  return is_all(m.constant("c"), value) && surely_same(m[taken]->type, m.type());
}

constexpr Rule kCanonicalRules[] = {
    {.name = "remove_identity",
     .summary = "an identity hands its input on",
     .pattern = "identity(x)",
     .replace = the_input,
     .removal = Removal::identity,
     .platform = "IdentityPass",
     .in = "(%x: f32[2]) -> (%y: f32[2]) { %a = identity %x %y = relu %a return %y }",
     .out = "(%x: f32[2]) -> (%y: f32[2]) { %y = relu %x return %y }"},
    {.name = "remove_dropout",
     .summary = "dropout acts in training only",
     .pattern = "dropout(x)",
     .replace = the_input,
     .removal = Removal::training,
     .in = "(%x: f32[2]) -> (%y: f32[2]) { %a = dropout %x {rate = 0.5} %y = relu %a return %y }",
     .out = "(%x: f32[2]) -> (%y: f32[2]) { %y = relu %x return %y }"},
    {.name = "identity_cast",
     .summary = "a cast to the type that a value has",
     .pattern = "cast(x)",
     .where = keeps_type,
     .replace = the_input,
     .removal = Removal::identity,
     .platform = "CastRemovePass",
     .in = "(%x: f32[2]) -> (%y: f32[2]) { %a = cast %x {dtype = f32} %y = relu %a return %y }",
     .out = "(%x: f32[2]) -> (%y: f32[2]) { %y = relu %x return %y }"},
    {.name = "cast_of_cast",
     .summary = "two casts, the first of which loses nothing, are one",
     .pattern = "cast(cast(x):first):second",
     .where = first_cast_widens,
     .replace = cast_once,
     .platform = "CastCastFusionPass",
     .in = "(%x: i8[2]) -> (%y: f32[2]) { %a = cast %x {dtype = i32} %y = cast %a {dtype = f32} return %y }",
     .out = "(%x: i8[2]) -> (%y: f32[2]) { %y = cast %x {dtype = f32} return %y }"},
    {.name = "add_zero",
     .summary = "nothing is added",
     .pattern = "add(x, c!)",
     .where = adds_nothing,
     .replace = the_input,
     .removal = Removal::identity,
     .in = "(%x: f32[2]) -> (%y: f32[2]) { %c = constant {value = f32[2] (0.0, 0.0)} %a = add %c, %x %y = relu %a "
           "return %y }",
     .out = "(%x: f32[2]) -> (%y: f32[2]) { %y = relu %x return %y }"},
    {.name = "subtract_zero",
     .summary = "nothing is subtracted",
     .pattern = "sub(x, c!)",
     .where = adds_nothing,
     .replace = the_input,
     .removal = Removal::identity,
     .in = "(%x: i32[2]) -> (%y: i32[2]) { %c = constant {value = i32[] (0)} %a = sub %x, %c %y = abs %a return %y }",
     .out = "(%x: i32[2]) -> (%y: i32[2]) { %y = abs %x return %y }"},
    {.name = "multiply_by_one",
     .summary = "a factor of one",
     .pattern = "mul(x, c!)",
     .where = scales_by_one,
     .replace = the_input,
     .removal = Removal::identity,
     .in =
         "(%x: f32[2]) -> (%y: f32[2]) { %c = constant {value = f32[] (1.0)} %a = mul %x, %c %y = relu %a return %y }",
     .out = "(%x: f32[2]) -> (%y: f32[2]) { %y = relu %x return %y }"},
    {.name = "divide_by_one",
     .summary = "a divisor or an exponent of one",
     .pattern = "div|pow(x, c!)",
     .where = scales_by_one,
     .replace = the_input,
     .removal = Removal::identity,
     .in =
         "(%x: f32[2]) -> (%y: f32[2]) { %c = constant {value = f32[] (1.0)} %a = div %x, %c %y = relu %a return %y }",
     .out = "(%x: f32[2]) -> (%y: f32[2]) { %y = relu %x return %y }"},
    {.name = "identity_slice",
     .summary = "a slice that takes everything",
     .pattern = "slice(x, _, _)",
     .where = takes_everything,
     .replace = the_input,
     .removal = Removal::identity,
     .in = "(%x: f32[2, 3]) -> (%y: f32[2, 3]) { %b = constant {value = i64[2] (0, 0)} %e = constant {value = i64[2] "
           "(2, 3)} "
           "%a = slice %x, %b, %e %y = relu %a return %y }",
     .out = "(%x: f32[2, 3]) -> (%y: f32[2, 3]) { %y = relu %x return %y }"},
    {.name = "identity_pad",
     .summary = "padding by nothing",
     .pattern = "pad(x, c!)",
     .where = [](const Match& m) { return is_all(m.constant("c"), 0); },
     .replace = the_input,
     .removal = Removal::identity,
     .in = "(%x: f32[2]) -> (%y: f32[2]) { %p = constant {value = i64[1, 2] (0, 0)} %a = pad %x, %p %y = relu %a "
           "return %y }",
     .out = "(%x: f32[2]) -> (%y: f32[2]) { %y = relu %x return %y }"},
    {.name = "identity_broadcast",
     .summary = "a broadcast to the dims that a value has",
     .pattern = "broadcast_to(x, _)",
     .where = keeps_type,
     .replace = the_input,
     .removal = Removal::identity,
     .in = "(%x: f32[2, 3]) -> (%y: f32[2, 3]) { %s = constant {value = i64[2] (2, 3)} %a = broadcast_to %x, %s %y = "
           "relu %a return %y }",
     .out = "(%x: f32[2, 3]) -> (%y: f32[2, 3]) { %y = relu %x return %y }"},
    {.name = "identity_sum_to",
     .summary = "a sum over what a broadcast of the value's own dims repeats",
     .pattern = "sum_to(x, _)",
     .where = keeps_type,
     .replace = the_input,
     .removal = Removal::identity,
     .in = "(%x: f32[2, 3]) -> (%y: f32[2, 3]) { %s = constant {value = i64[2] (2, 3)} %a = sum_to %x, %s %y = "
           "relu %a return %y }",
     .out = "(%x: f32[2, 3]) -> (%y: f32[2, 3]) { %y = relu %x return %y }"},
    {.name = "sum_to_axes",
     .summary = "a sum to a known shape is one over axes",
     .pattern = "sum_to(x, c!)",
     .where = [](const Match& m) { return m["x"]->type.shape.ranked; },
     .replace = sum_over_axes,
     .in = "(%x: f32[?n, 4, 3]) -> (%y: f32[1, 3]) { %s = constant {value = i64[2] (1, 3)} %y = sum_to %x, %s return "
           "%y }",
     .out = "(%x: f32[?n, 4, 3]) -> (%y: f32[1, 3]) { %a = reduce_sum %x {axes = [0, 1], keep_dims = false} "
            "%s = constant {value = i64[2] (1, 3)} %y = reshape %a, %s return %y }"},
    {.name = "identity_tile",
     .summary = "one copy along every dim",
     .pattern = "tile(x, c!)",
     .where = all_ones,
     .replace = the_input,
     .removal = Removal::identity,
     .in = "(%x: f32[2, 3]) -> (%y: f32[2, 3]) { %s = constant {value = i64[2] (1, 1)} %a = tile %x, %s %y = relu %a "
           "return %y }",
     .out = "(%x: f32[2, 3]) -> (%y: f32[2, 3]) { %y = relu %x return %y }"},
    {.name = "concat_of_one",
     .summary = "one input is not joined to anything",
     .pattern = "concat(x)",
     .replace = the_input,
     .removal = Removal::identity,
     .platform = "ConcatFusionPass",
     .in = "(%x: f32[2, 3]) -> (%y: f32[2, 3]) { %a = concat %x {axis = 0} %y = relu %a return %y }",
     .out = "(%x: f32[2, 3]) -> (%y: f32[2, 3]) { %y = relu %x return %y }"},
    {.name = "select_always",
     .summary = "a condition that always holds",
     .pattern = "select(c!, x, y)",
     .where = [](const Match& m) { return condition_is(m, true, "x"); },
     .replace = the_input,
     .removal = Removal::identity,
     .in = "(%x: f32[2], %z: f32[2]) -> (%y: f32[2]) { %c = constant {value = bool[2] (true, true)} %a = select %c, "
           "%x, %z "
           "%y = relu %a return %y }",
     .out = "(%x: f32[2], %z: f32[2]) -> (%y: f32[2]) { %y = relu %x return %y }"},
    {.name = "select_never",
     .summary = "a condition that never holds",
     .pattern = "select(c!, x, y)",
     .where = [](const Match& m) { return condition_is(m, false, "y"); },
     .replace = [](Match& m) { return m["y"]; },
     .removal = Removal::identity,
     .in = "(%x: f32[2], %z: f32[2]) -> (%y: f32[2]) { %c = constant {value = bool[] (false)} %a = select %c, %x, %z "
           "%y = relu %a return %y }",
     .out = "(%x: f32[2], %z: f32[2]) -> (%y: f32[2]) { %y = relu %z return %y }"},
    {.name = "select_by_not",
     .summary = "choosing by a negated condition",
     .pattern = "select(not(c), x, y)",
     .replace =
         [](Match& m) {
           return m.add("select", {m["c"], m["y"], m["x"]});
         },
     .in = "(%c: bool[2], %x: f32[2], %z: f32[2]) -> (%y: f32[2]) { %n = not %c %y = select %n, %x, %z return %y }",
     .out = "(%c: bool[2], %x: f32[2], %z: f32[2]) -> (%y: f32[2]) { %y = select %c, %z, %x return %y }"},
    {.name = "not_of_not",
     .summary = "two negations of a condition",
     .pattern = "not(not(x))",
     .replace = the_input,
     .removal = Removal::identity,
     .in = "(%x: bool[2]) -> (%y: bool[2]) { %a = not %x %b = not %a %y = and %b, %b return %y }",
     .out = "(%x: bool[2]) -> (%y: bool[2]) { %y = and %x, %x return %y }"},
};

}  // namespace

std::span<const Rule> canonical_rules() { return kCanonicalRules; }

}  // namespace cairn
