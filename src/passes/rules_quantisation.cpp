// Products of numbers that were dequantised become products of their integers, and what only moves or compares quantised
// numbers takes the integers themselves.
#include <algorithm>
#include <numeric>

#include "ir/evaluate.h"
#include "passes/facts.h"
#include "passes/passes.h"
#include "passes/rewriter.h"
#include "passes/rules.h"

namespace cairn {

namespace {

bool is_one(const Value* value) {
  const Shape& shape = value->type.shape;
  return shape.ranked &&
         std::all_of(shape.dims.begin(), shape.dims.end(), [](const Dim& dim) { return dim == Dim(1); });
}

bool is_depthwise(const Node& conv, const Shape& kernel) {
  return kernel.known() && kernel.dims[2] == Dim(1) && kernel.dims[3] == Dim(conv.attr().integer("groups"));
}

bool of_integers(const Match& m) {
  const Node& product = m.root();
  const Shape &x = m["x"]->type.shape, &w = m["w"]->type.shape;
  if (m.type().dtype != kF32 || !x.ranked || !w.ranked) return false;
  if (m["x"]->type.dtype.bits != 8 || m["w"]->type.dtype.bits != 8) return false;
  const bool conv = product.is("conv2d");
  if (conv && product.attr().integer("groups") != 1 && !is_depthwise(product, w)) return false;
  const size_t channels = w.rank() - (!conv && product.attr().boolean("transpose_b") ? 2 : 1);
  return is_one(m["sx"]) && is_one(m["zx"]) && varies_along(m["sw"], channels, w.rank()) &&
         varies_along(m["zw"], channels, w.rank());
}

Value* zero(Match& m, DType dtype) { return m.constant(Tensor::zeros(dtype, {})); }
Value* as_list(Match& m, Value* x) { return m.add("reshape", {x, m.constant(Tensor::of_i64({-1}))}); }

Value* with_rows_as_columns(Match& m, Value* x) {
  Permutation turn(x->type.shape.rank());
  std::iota(turn.begin(), turn.end(), 0);
  std::swap(turn[turn.size() - 1], turn[turn.size() - 2]);
  return m.add("transpose", {x}, {{"permutation", turn}});
}

Value* product_of_integers(Match& m) {
  const Node& product = m.root();
  const char* op = product.is("conv2d") ? "conv2d_integer" : "matmul_integer";
  Value *x = m["x"], *zero_of_weights = is_one(m["zw"]) ? m["zw"] : as_list(m, m["zw"]);
  Attributes attributes = product.attributes;
  if (product.is("matmul") && product.attr().boolean("transpose_a")) {
    x = with_rows_as_columns(m, x);
    attributes = {{"transpose_b", product.attr().boolean("transpose_b")}};
  }
  Value* sum = m.add(op, {x, m["w"], m["zx"], zero_of_weights}, std::move(attributes));
  Value* scale = m.add("mul", {as_list(m, m["sx"]), as_list(m, m["sw"])});
  return m.add("dequantize_linear", {sum, scale, zero(m, kI32)});
}

/// Whether the factor of a product of integers is one number or one for each column.
bool scales_columns(const Match& m) {
  const Shape& sum = m.node("sum").result()->type.shape;
  return m.node("sum").result()->type.dtype == kI32 && m.type().dtype == kF32 && sum.ranked &&
         varies_along(m["s"], sum.rank() - 1, sum.rank());
}

bool same_number(const Value* a, const Value* b) {
  if (a == b) return true;
  const Tensor *x = constant_of(a), *y = constant_of(b);
  return x && y && x->type() == y->type() && splat(*x) && splat(*x) == splat(*y);
}

bool quantises_back(const Match& m) {
  return m["x"]->type.dtype == m.type().dtype && same_number(m["s"], m["t"]) && same_number(m["z"], m["u"]) &&
         surely_same(m["x"]->type, m.type());
}

bool one_scale(const Match& m) { return is_one(m["s"]) && is_one(m["z"]); }

/// Maxima of wider integers have no kernel of their own; those of floats have.
bool moves_below_scale(const Match& m) {
  const DType dtype = m["x"]->type.dtype;
  return one_scale(m) && (!m.root().is("max_pool2d") || dtype == kU8 || dtype == kI8);
}

Value* transpose_integers(Match& m) {
  const auto moved = [&](const char* name) { return is_one(m[name]) ? m[name] : m.like(m.root(), {m[name]}); };
  return m.add("dequantize_linear", {m.like(m.root(), {m["x"]}), moved("s"), moved("z")});
}

bool scales_move(const Match& m) {
  const auto moves = [&](const char* name) {
    return is_one(m[name]) || m[name]->type.shape.rank() == m.type().shape.rank();
  };
  return m.type().shape.ranked && m["s"]->type.shape.ranked && m["z"]->type.shape.ranked && moves("s") && moves("z");
}

/// For each dim after a reshape the dim before it, or none; nothing where it does more than insert and drop dims of one.
std::optional<std::vector<std::optional<size_t>>> dims_kept(const Type& from, const Type& to) {
  if (!from.is_static() || !to.is_static()) return std::nullopt;
  const auto before = from.shape.sizes(), after = to.shape.sizes();
  std::vector<std::optional<size_t>> kept;
  size_t next = 0;
  for (int64_t size : after) {
    while (next < before.size() && before[next] != size && before[next] == 1) ++next;
    const bool same = next < before.size() && before[next] == size;
    if (!same && size != 1) return std::nullopt;
    kept.push_back(same ? std::optional(next++) : std::nullopt);
  }
  const bool all = std::all_of(before.begin() + static_cast<std::ptrdiff_t>(next), before.end(),
                               [](int64_t size) { return size == 1; });
  return all ? std::optional(kept) : std::nullopt;
}

bool scales_keep_dims(const Match& m) {
  const auto same_rank = [&](const char* name) {
    const Shape& shape = m[name]->type.shape;
    return is_one(m[name]) || (shape.known() && shape.rank() == m["x"]->type.shape.rank());
  };
  return dims_kept(m["x"]->type, m.type()) && same_rank("s") && same_rank("z");
}

Value* reshape_integers(Match& m) {
  const auto kept = *dims_kept(m["x"]->type, m.type());
  const auto moved = [&](const char* name) {
    if (is_one(m[name])) return m[name];
    std::vector<int64_t> dims;
    for (const auto& dim : kept) dims.push_back(dim ? m[name]->type.shape.sizes()[*dim] : 1);
    return m.add("reshape", {m[name], m.constant(Tensor::of_i64(dims))});
  };
  return m.add("dequantize_linear", {m.like(m.root(), {m["x"], m.root().inputs[1]}), moved("s"), moved("z")});
}

/// The same on integers: one scale and zero point hold for all of them.
Value* on_integers(Match& m) {
  std::vector<Value*> inputs = m.root().inputs;
  inputs[0] = m["x"];
  return m.add("dequantize_linear", {m.like(m.root(), inputs), m["s"], m["z"]});
}

Value* moved_integers(Match& m) {
  std::vector<Value*> inputs = m.node("move").inputs;
  inputs[0] = m.add("quantize_linear", {m["x"], m["s"], m["z"]});
  return m.like(m.node("move"), inputs);
}

/// Whether the right operand's rows are the last dim before a transpose, so that its matrices are better read transposed.
bool is_turned(const Match& m) {
  const Permutation p = permutation_of(m.node("turn"));
  const auto last = static_cast<int64_t>(p.size()) - 1;
  return p.size() >= 2 && is_one(m["zb"]) && p[p.size() - 2] == last;
}

Value* product_of_turned(Match& m) {
  Permutation p = permutation_of(m.node("turn"));
  std::swap(p[p.size() - 1], p[p.size() - 2]);
  Value* b = is_identity(p) ? m["b"] : m.like(m.node("turn"), {m["b"]}, {{"permutation", p}});
  const bool turned = m.root().attr().boolean("transpose_b");
  return m.like(m.root(), {m["a"], b, m["za"], m["zb"]}, {{"transpose_b", !turned}});
}

Value* dequantised_constant(Match& m) {
  return m.add("mul", {m.add("cast", {m.add("sub", {m["x"], m["z"]})}, {{"dtype", m["s"]->type.dtype}}), m["s"]});
}

const Rule kQuantisationRules[] = {
    {.name = "product_of_dequantised",
     .summary = "a product of dequantised numbers is one of integers, whose sums are dequantised",
     .pattern = "matmul|conv2d(dequantize_linear(x, sx, zx), dequantize_linear(w, sw, zw))",
     .where = of_integers,
     .replace = product_of_integers,
     .in =
         "(%x: u8[2, 3], %w: i8[3, 4]) -> (%y: f32[2, 4]) { %zx = constant {value = u8[] (5)} %zw = constant {value = "
         "i8[] (0)} %s = constant {value = f32[] (0.5)} %t = constant {value = f32[4] (1.0, 2.0, 0.25, 4.0)} "
         "%a = dequantize_linear %x, %s, %zx %b = dequantize_linear %w, %t, %zw %y = matmul %a, %b return %y }",
     .out =
         "(%x: u8[2, 3], %w: i8[3, 4]) -> (%y: f32[2, 4]) { %zx = constant {value = u8[] (5)} %zw = constant {value = "
         "i8[] (0)} %sum = matmul_integer %x, %w, %zx, %zw %s = constant {value = f32[4] (0.5, 1.0, 0.125, 2.0)} "
         "%zero = constant {value = i32[] (0)} %y = dequantize_linear %sum, %s, %zero return %y }"},
    {.name = "scaled_sums",
     .summary = "sums of integers that are cast and scaled are dequantised",
     .pattern = "mul(cast(matmul_integer|conv2d_integer(...):sum), s)",
     .where = scales_columns,
     .replace =
         [](Match& m) {
           return m.add("dequantize_linear", {m.node("sum").result(), m["s"], zero(m, kI32)});
         },
     .in =
         "(%x: u8[2, 3], %w: i8[3, 4]) -> (%y: f32[2, 4]) { %zx = constant {value = u8[] (5)} %zw = constant {value = "
         "i8[] (0)} %s = constant {value = f32[] (0.5)} %a = matmul_integer %x, %w, %zx, %zw %b = cast %a {dtype = "
         "f32} "
         "%y = mul %b, %s return %y }",
     .out =
         "(%x: u8[2, 3], %w: i8[3, 4]) -> (%y: f32[2, 4]) { %zx = constant {value = u8[] (5)} %zw = constant {value = "
         "i8[] (0)} %s = constant {value = f32[] (0.5)} %a = matmul_integer %x, %w, %zx, %zw "
         "%zero = constant {value = i32[] (0)} %y = dequantize_linear %a, %s, %zero return %y }"},
    {.name = "quantize_of_dequantize",
     .summary = "integers that are dequantised and quantised by the same scale and zero point",
     .pattern = "quantize_linear(dequantize_linear(x, s, z), t, u)",
     .where = quantises_back,
     .replace = [](Match& m) { return m["x"]; },
     .removal = Removal::identity,
     .in = "(%x: u8[3]) -> (%y: u8[3]) { %s = constant {value = f32[] (0.3)} %z = constant {value = u8[] (7)} "
           "%a = dequantize_linear %x, %s, %z %y = quantize_linear %a, %s, %z return %y }",
     .out = "(%x: u8[3]) -> (%y: u8[3]) { return %x }"},
    {.name = "transpose_of_dequantised",
     .summary = "integers are transposed instead of the floats made of them",
     .pattern = "transpose(dequantize_linear(x, s, z))",
     .where = scales_move,
     .replace = transpose_integers,
     .in =
         "(%x: u8[2, 3]) -> (%y: f32[3, 2]) { %s = constant {value = f32[2, 1] (0.5, 2.0)} %z = constant {value = u8[] "
         "(7)} %a = dequantize_linear %x, %s, %z %y = transpose %a {permutation = [1, 0]} return %y }",
     .out = "(%x: u8[2, 3]) -> (%y: f32[3, 2]) { %z = constant {value = u8[] (7)} %a = transpose %x {permutation = [1, "
            "0]} "
            "%s = constant {value = f32[1, 2] (0.5, 2.0)} %y = dequantize_linear %a, %s, %z return %y }"},
    {.name = "part_of_dequantised",
     .summary = "integers are reshaped, cut or pooled instead of the floats made of them",
     .pattern = "reshape|slice|max_pool2d(dequantize_linear(x, s, z), ...)",
     .where = moves_below_scale,
     .replace = on_integers,
     .in = "(%x: u8[1, 2, 2, 1]) -> (%y: f32[1, 1, 1, 1]) { %s = constant {value = f32[] (0.5)} %z = constant {value = "
           "u8[] "
           "(7)} %a = dequantize_linear %x, %s, %z %y = max_pool2d %a {window = [2, 2]} return %y }",
     .out = "(%x: u8[1, 2, 2, 1]) -> (%y: f32[1, 1, 1, 1]) { %s = constant {value = f32[] (0.5)} %z = constant {value "
            "= u8[] "
            "(7)} %a = max_pool2d %x {window = [2, 2]} %y = dequantize_linear %a, %s, %z return %y }"},
    {.name = "widened_dequantised",
     .summary = "integers get or lose dims of one instead of the floats made of them",
     .pattern = "reshape(dequantize_linear(x, s, z), to)",
     .where = scales_keep_dims,
     .replace = reshape_integers,
     .in = "(%x: i8[2, 3]) -> (%y: f32[2, 1, 3]) { %s = constant {value = f32[2, 1] (0.5, 2.0)} %z = constant {value = "
           "i8[] (0)} %a = dequantize_linear %x, %s, %z %to = constant {value = i64[3] (2, 1, 3)} %y = reshape %a, %to "
           "return %y }",
     .out = "(%x: i8[2, 3]) -> (%y: f32[2, 1, 3]) { %z = constant {value = i8[] (0)} %to = constant {value = i64[3] "
            "(2, 1, 3)} %a = reshape %x, %to %s = constant {value = f32[2, 1, 1] (0.5, 2.0)} %y = dequantize_linear "
            "%a, %s, %z return %y }"},
    {.name = "quantize_of_moved",
     .summary = "floats are quantised before they are transposed or reshaped",
     .pattern = "quantize_linear(transpose|reshape(x, ...)~:move, s, z)",
     .where = one_scale,
     .replace = moved_integers,
     .in = "(%x: f32[2, 3]) -> (%y: u8[3, 2]) { %s = constant {value = f32[] (0.5)} %z = constant {value = u8[] (7)} "
           "%a = transpose %x {permutation = [1, 0]} %y = quantize_linear %a, %s, %z return %y }",
     .out = "(%x: f32[2, 3]) -> (%y: u8[3, 2]) { %s = constant {value = f32[] (0.5)} %z = constant {value = u8[] (7)} "
            "%a = quantize_linear %x, %s, %z %y = transpose %a {permutation = [1, 0]} return %y }"},
    {.name = "matmul_integer_of_transpose",
     .summary = "a product of integers takes its right operand transposed where that keeps its rows together",
     .pattern = "matmul_integer(a, transpose(b):turn, za, zb)",
     .where = is_turned,
     .replace = product_of_turned,
     .in =
         "(%a: u8[2, 5, 3], %b: i8[4, 2, 3]) -> (%y: i32[2, 5, 4]) { %za = constant {value = u8[] (7)} %zb = constant "
         "{value = i8[] (1)} %t = transpose %b {permutation = [1, 2, 0]} %y = matmul_integer %a, %t, %za, %zb return "
         "%y }",
     .out =
         "(%a: u8[2, 5, 3], %b: i8[4, 2, 3]) -> (%y: i32[2, 5, 4]) { %za = constant {value = u8[] (7)} %zb = constant "
         "{value = i8[] (1)} %t = transpose %b {permutation = [1, 0, 2]} %y = matmul_integer %a, %t, %za, %zb "
         "{transpose_b = true} return %y }"},
    {.name = "dequantised_constant",
     .summary = "constants of more than 8 bits are dequantised (smaller ones when no product takes their integers)",
     .pattern = "dequantize_linear(x!, s!, z!)",
     .where = [](const Match& m) { return m["x"]->type.dtype == kI32; },
     .replace = dequantised_constant,
     .in = "(%b: f32[2]) -> (%y: f32[2]) { %x = constant {value = i32[2] (7, 9)} %s = constant {value = f32[] (0.5)} "
           "%z = "
           "constant {value = i32[] (1)} %a = dequantize_linear %x, %s, %z %y = add %a, %b return %y }",
     .out = "(%b: f32[2]) -> (%y: f32[2]) { %a = constant {value = f32[2] (3.0, 4.0)} %y = add %a, %b return %y }"},
};

}  // namespace

std::span<const Rule> quantisation_rules() { return kQuantisationRules; }

size_t dequantize_constants(Block& block, Module& module) {
  const auto expanded = expanded_operands(block, false);
  Rewriter rewriter(block, &module);
  return rewriter.run([&](Node& node) -> std::optional<std::vector<Value*>> {
    if (!node.is("dequantize_linear") && !node.is("dequantize_blocks")) return {};
    if (expanded.count(&node) || !std::all_of(node.inputs.begin(), node.inputs.end(), constant_of)) return {};
    std::vector<Tensor> inputs;
    for (const Value* input : node.inputs) inputs.push_back(*constant_of(input));
    return std::vector<Value*>{rewriter.constant(evaluate(node.op->name, inputs, node.attributes))};
  });
}

}  // namespace cairn
