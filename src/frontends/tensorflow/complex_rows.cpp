// TensorFlow's arithmetic on complex numbers, by that of their parts.
#include <algorithm>
#include <optional>

#include "frontends/einsum.h"
#include "frontends/reshape.h"
#include "frontends/tensorflow/complex.h"

namespace cairn::tensorflow {

Value* pairs_of(OpContext& c, Value* z) {
  if (!is_complex(z)) fail(ErrorKind::invalid_model, "", "takes complex numbers, found {}", to_string(z->type));
  return c.b.add("bitcast", {z}, {{"dtype", z->type.dtype == kC64 ? kF32 : kF64}});
}

Value* from_pairs(OpContext& c, Value* pairs) {
  return c.b.add("bitcast", {pairs}, {{"dtype", pairs->type.dtype == kF32 ? kC64 : kC128}});
}

namespace {

/// x, where the value is x with a last dim of 1; else null.
Value* without_last_dim(const Value* value) {
  if (value->producer == nullptr || !value->producer->is("reshape")) return nullptr;
  Value* x = value->producer->inputs[0];
  const Shape &from = x->type.shape, &to = value->type.shape;
  if (!from.ranked || !to.ranked || to.rank() != from.rank() + 1 || to.dims.back() != Dim(1)) return nullptr;
  size_t open = 0;  // one dim follows from the others, as the number of elements is the same
  for (size_t i = 0; i < from.rank(); ++i) {
    if (from.dims[i].surely_equals(to.dims[i])) continue;
    if (from.dims[i].known() || to.dims[i].known() || ++open > 1) return nullptr;
  }
  return x;
}

/// The parts that joined_parts() made z of, so that chains of arithmetic compute on parts alone.
std::optional<Parts> told_parts(OpContext& c, const Value* z) {
  const cairn::Node* pairs =
      z->producer != nullptr && z->producer->is("bitcast") ? z->producer->inputs[0]->producer : nullptr;
  if (pairs == nullptr || !pairs->is("concat") || pairs->inputs.size() != 2 || !is_complex(z)) return std::nullopt;
  Value *re = without_last_dim(pairs->inputs[0]), *im = without_last_dim(pairs->inputs[1]);
  if (re == nullptr || im == nullptr || re->type.shape.rank() != z->type.shape.rank()) return std::nullopt;
  return Parts{Var(c.b, re), Var(c.b, im)};
}

}  // namespace

Parts parts_of(OpContext& c, Value* z) {
  if (!is_complex(z)) return {Var(c.b, z), Var(c.b, c.b.scalar_like(z, 0))};
  if (const auto told = told_parts(c, z)) return *told;
  Value* pairs = pairs_of(c, z);
  auto part = [&](int64_t index) {
    return Var(c.b, c.b.add("gather", {pairs, c.b.constant(Tensor::scalar_i64(index))}, {{"axis", int64_t{-1}}}));
  };
  return {part(0), part(1)};
}

Value* joined_parts(OpContext& c, const Parts& parts) {
  Value* both[] = {parts.re.value, parts.im.value};
  const Shape &a = both[0]->type.shape, &b = both[1]->type.shape;
  bool equal = a.ranked && b.ranked && a.rank() == b.rank();
  for (size_t i = 0; equal && i < a.rank(); ++i) equal = a.dims[i].surely_equals(b.dims[i]);
  if (!equal) {
    Value* yes = c.b.constant(Tensor::of<uint8_t>(kBool, {}, {1}));
    Value *re = c.b.add("select", {yes, both[0], both[1]}), *im = c.b.add("select", {yes, both[1], both[0]});
    both[0] = re, both[1] = im;
  }
  if (!both[0]->type.shape.ranked) c.refuse("the rank of a complex number's part is not known");
  const auto rank = static_cast<int64_t>(both[0]->type.shape.rank());
  for (Value*& part : both) part = expand_dims(part, {rank}, c.b);
  return from_pairs(c, c.b.add("concat", {both[0], both[1]}, {{"axis", rank}}));
}

Parts product(const Parts& a, const Parts& b) { return {a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re}; }

/// sqrt(re^2 + im^2) without overflow.
Var magnitude(const Parts& z) {
  const Var re = abs(z.re), im = abs(z.im);
  const Var larger = maximum(re, im), smaller = minimum(re, im);
  const Var safe = select(by_number(larger, "equal", 0), larger.number(1), larger);
  const Var size = larger * sqrt((smaller / safe).apply("square") + 1);
  return select(larger.apply("is_inf"), larger, size);
}

void cast_complex(OpContext& c) {
  c.expect_inputs(1);
  const DType to = c.dtype("DstT");
  Value* x = c.in[0];
  const DType part = to == kC64 ? kF32 : kF64;
  if (to == x->type.dtype)
    c.out = c.in;
  else if (to.kind != DType::Kind::complex_float)
    c.out = {cast_to(parts_of(c, x).re.value, to, c.b)};
  else if (is_complex(x))
    c.out = {from_pairs(c, cast_to(pairs_of(c, x), part, c.b))};
  else
    c.out = {joined_parts(c, parts_of(c, cast_to(x, part, c.b)))};
}

namespace {

Parts quotient(const Parts& a, const Parts& b) {
  const Parts by_conjugate = product(a, {b.re, -b.im});
  const Var square = b.re * b.re + b.im * b.im;
  return {by_conjugate.re / square, by_conjugate.im / square};
}

/// The quotient; 0 if the divisor is 0.
Parts quotient_or_zero(const Parts& a, const Parts& b) {
  const Parts whole = quotient(a, b);
  const Var defined = by_number(b.re * b.re + b.im * b.im, "not_equal", 0), zero = b.re.number(0);
  return {select(defined, whole.re, zero), select(defined, whole.im, zero)};
}

template <Parts (*kFormula)(const Parts& z)>
void of_one(OpContext& c) {
  c.expect_inputs(1);
  c.out = {joined_parts(c, kFormula(parts_of(c, c.in[0])))};
}
template <Parts (*kFormula)(const Parts& a, const Parts& b)>
void of_two(OpContext& c) {
  c.expect_inputs(2);
  c.out = {joined_parts(c, kFormula(parts_of(c, c.in[0]), parts_of(c, c.in[1])))};
}

Parts complex_square(const Parts& z) { return product(z, z); }
Parts inverse(const Parts& z) { return quotient({z.re.number(1), z.re.number(0)}, z); }
Parts exponential(const Parts& z) {
  const Var size = exp(z.re);
  return {size * z.im.apply("cos"), size * z.im.apply("sin")};
}
Parts logarithm(const Parts& z) { return {log(magnitude(z)), z.im.apply("atan2", {z.re})}; }
Parts squared_distance(const Parts& a, const Parts& b) {
  const Var re = a.re - b.re, im = a.im - b.im;
  return {re * re + im * im, re.number(0)};
}
/// The principal square root, with a non-negative real part.
Parts square_root(const Parts& z) {
  const Var size = magnitude(z);
  const Var re = sqrt(by_number((size + z.re) * 0.5, "maximum", 0));
  const Var im = sqrt(by_number((size - z.re) * 0.5, "maximum", 0));
  return {re, select(z.im < 0, -im, im)};
}

/// Gradients: of the result y and its gradient dy, as TensorFlow's kernels conjugate.
Parts conjugate(const Parts& z) { return {z.re, -z.im}; }
Parts times(const Parts& z, double number) { return {z.re * number, z.im * number}; }
Parts root_gradient(const Parts& y, const Parts& dy) { return quotient(times(dy, 0.5), conjugate(y)); }
Parts inverse_gradient(const Parts& y, const Parts& dy) { return times(product(conjugate(complex_square(y)), dy), -1); }

/// Ops that do the same to both parts: on the pairs, unless all parts are told.
void on_pairs(OpContext& c) {
  if (c.in.empty()) c.expect_inputs(1);
  const auto combined = [&](const std::vector<Value*>& operands) {
    Value* result = operands[0];
    if (operands.size() == 1) result = c.b.add(c.target, operands);
    for (size_t i = 1; i < operands.size(); ++i) result = c.b.add(c.target, {result, operands[i]});
    return result;
  };
  std::vector<Value*> re, im, pairs;
  for (Value* value : c.in)
    if (const auto told = is_complex(value) ? told_parts(c, value) : std::nullopt)
      re.push_back(told->re.value), im.push_back(told->im.value);
  if (re.size() == c.in.size()) {
    c.out = {joined_parts(c, {Var(c.b, combined(re)), Var(c.b, combined(im))})};
    return;
  }
  for (Value* value : c.in) pairs.push_back(pairs_of(c, value));
  c.out = {from_pairs(c, combined(pairs))};
}

/// Applies the row for real operands to each part of one operand.
template <size_t kOperand = 0>
void by_parts(OpContext& c) {
  if (c.in.size() <= kOperand) c.expect_inputs(kOperand + 1);
  const Row& row = *find_row(c.node().op);
  const Parts z = parts_of(c, c.in[kOperand]);
  c.target = row.target;
  std::vector<Value*> operands(c.in.begin(), c.in.end());
  auto of = [&](const Var& part) {
    operands[kOperand] = part.value;
    c.in = operands;
    row.build(c);
    return Var(c.b, std::exchange(c.out, {}).at(0));
  };
  const Var re = of(z.re), im = of(z.im);
  c.out = {joined_parts(c, {re, im})};
}

template <bool kEqual>
void compare_complex(OpContext& c) {
  c.expect_inputs(2);
  const char* op = kEqual ? "equal" : "not_equal";
  Value* each = c.b.add(op, {pairs_of(c, c.in[0]), pairs_of(c, c.in[1])});
  c.out = {c.b.add(kEqual ? "reduce_all" : "reduce_any", {each}, {{"axes", std::vector<int64_t>{-1}}})};
}

/// Sums of products of the parts, which `multiply` makes.
template <class Multiply>
Value* contracted(OpContext& c, const Parts& x, const Parts& y, Multiply&& multiply) {
  auto times = [&](const Var& a, const Var& b) { return Var(c.b, multiply(a.value, b.value)); };
  return joined_parts(c, {times(x.re, y.re) - times(x.im, y.im), times(x.re, y.im) + times(x.im, y.re)});
}

/// adj_ conjugates as well, transpose_ does not.
void complex_matmul(OpContext& c) {
  c.expect_inputs(2);
  const bool batch = c.node().op.starts_with("Batch");
  const bool first = c.boolean(batch ? "adj_x" : "transpose_a", false),
             second = c.boolean(batch ? "adj_y" : "transpose_b", false);
  Parts x = parts_of(c, c.in[0]), y = parts_of(c, c.in[1]);
  if (batch && first) x.im = -x.im;
  if (batch && second) y.im = -y.im;
  c.out = {contracted(c, x, y, [&](Value* a, Value* b) {
    return c.b.add("matmul", {a, b}, {{"transpose_a", first}, {"transpose_b", second}});
  })};
}

void complex_einsum(OpContext& c) {
  const std::string equation = c.text("equation", "");
  if (c.in.size() == 1) {
    const Parts z = parts_of(c, c.in[0]);
    c.out = {joined_parts(
        c, {Var(c.b, einsum(equation, {z.re.value}, c.b)), Var(c.b, einsum(equation, {z.im.value}, c.b))})};
    return;
  }
  c.expect_inputs(2);
  c.out = {contracted(c, parts_of(c, c.in[0]), parts_of(c, c.in[1]), [&](Value* a, Value* b) {
    return einsum(equation, {a, b}, c.b);
  })};
}

void complex_like(OpContext& c) {
  c.expect_inputs(1);
  const Var zero = parts_of(c, c.in[0]).re * 0.0;  // of finite numbers; others are replaced
  const Var clean = select(by_number(zero, "equal", 0), zero, zero.number(0));
  c.out = {joined_parts(c, {c.node().op == "OnesLike" ? clean + 1.0 : clean, clean})};
}

void complex_pad(OpContext& c) {
  c.expect_inputs(2);
  std::vector<int64_t> pads = c.constant_integers(1, "the paddings");
  pads.insert(pads.end(), {0, 0});
  const auto rank = static_cast<int64_t>(pads.size() / 2);
  Value* table = c.b.constant(Tensor::of<int64_t>(kI64, {rank, 2}, pads));
  c.out = {from_pairs(c, c.b.add("pad", {pairs_of(c, c.in[0]), table}))};
}

void choose_complex(OpContext& c) {
  c.expect_inputs(3);
  Value* condition = c.in[0];
  const size_t rank = c.rank(0);
  std::vector<int64_t> behind{static_cast<int64_t>(rank)};
  if (c.node().op == "Select" && rank == 1)  // a vector chooses rows
    for (size_t i = rank; i < c.rank(1); ++i) behind.push_back(static_cast<int64_t>(i) + 1);
  c.out = {from_pairs(
      c, c.b.add("select", {expand_dims(condition, behind, c.b), pairs_of(c, c.in[1]), pairs_of(c, c.in[2])}))};
}

constexpr Row kComplexRows[] = {
    {"Add", on_pairs, "add"},
    {"AddN", on_pairs, "add"},
    {"AddV2", on_pairs, "add"},
    {"BatchMatMul", complex_matmul},
    {"BatchMatMulV2", complex_matmul},
    {"BatchMatMulV3", complex_matmul},
    {"Cast", cast_complex},
    {"Cumsum", by_parts<>},
    {"Div", of_two<quotient>},
    {"DivNoNan", of_two<quotient_or_zero>},
    {"Einsum", complex_einsum},
    {"Equal", compare_complex<true>},
    {"Exp", of_one<exponential>},
    {"Inv", of_one<inverse>},
    {"InvGrad", of_two<inverse_gradient>},
    {"Log", of_one<logarithm>},
    {"MatMul", complex_matmul},
    {"Mean", by_parts<>},
    {"Mul", of_two<product>},
    {"Neg", on_pairs, "neg"},
    {"NotEqual", compare_complex<false>},
    {"OnesLike", complex_like},
    {"Pad", complex_pad},
    {"RealDiv", of_two<quotient>},
    {"Reciprocal", of_one<inverse>},
    {"ReciprocalGrad", of_two<inverse_gradient>},
    {"Select", choose_complex},
    {"SelectV2", choose_complex},
    {"Sqrt", of_one<square_root>},
    {"SqrtGrad", of_two<root_gradient>},
    {"Square", of_one<complex_square>},
    {"SquaredDifference", of_two<squared_distance>},
    {"StridedSliceGrad", by_parts<4>},
    {"Sub", on_pairs, "sub"},
    {"Sum", by_parts<>},
    {"ZerosLike", complex_like},
};

}  // namespace

const Row* find_complex_row(std::string_view op) {
  const auto* row =
      std::find_if(std::begin(kComplexRows), std::end(kComplexRows), [&](const Row& each) { return each.op == op; });
  return row == std::end(kComplexRows) ? nullptr : row;
}

}  // namespace cairn::tensorflow
