#include "export/matrices.h"

#include "ops/gradients.h"

namespace cairn::onnx_export {

namespace {

Var i64(Builder& b, int64_t x) { return {b, b.constant(Tensor::scalar_i64(x))}; }
Var size_at(Var x, int64_t axis) {
  const int64_t from = static_cast<int64_t>(x.shape().rank()) + axis;
  Builder& b = *x.builder;
  const Var size = dims_of(x).apply("slice", {{b, b.ints({from})}, {b, b.ints({from + 1})}});
  return size.apply("reshape", {{b, b.ints({})}});
}
Var count_to(Var size) { return i64(*size.builder, 0).apply("iota", {size, i64(*size.builder, 1)}, {{"dtype", kI64}}); }
/// x with a dim of 1 at the end, or before the last.
Var column(Var x) { return x.apply("reshape", {{*x.builder, x.builder->ints({-1, 1})}}); }
/// Columns first .. last - 1 of matrices.
Var columns(Var x, Var first, Var last) {
  Builder& b = *x.builder;
  const size_t rank = x.shape().rank();
  const auto ends = [&](Var end, int64_t others) {
    const Var lead{b, b.ints(std::vector<int64_t>(rank - 1, others))};
    return lead.apply("concat", {end.apply("reshape", {{b, b.ints({1})}})}, {{"axis", int64_t{0}}});
  };
  return x.apply("slice", {ends(first, 0), ends(last, std::numeric_limits<int64_t>::max())});
}
/// The sum over rows, or columns, of what is marked: one row, or column, of matrices.
Var picked(Var marks, Var x, int64_t axis) {
  const Var kept = select(marks, x, x.number(0));
  return reduce_sum(kept, {static_cast<int64_t>(x.shape().rank()) + axis}, true);
}

/// Runs body(in, column number, state, captures) once for each of `count` columns.
Var for_columns(Var count, Var state, const std::vector<Value*>& taken,
                FunctionRef<Var(Builder&, Var, Var, const std::vector<Value*>&)> body) {
  std::vector<Value*> all = {count.value};
  all.insert(all.end(), taken.begin(), taken.end());
  Builder& b = *state.builder;
  const auto made = b.make_while(
      {i64(b, 0).value, state.value}, all,
      [](Builder& in, const std::vector<Value*>& now) {
        return std::vector<Value*>{(Var(in, now[0]) < Var(in, now[2])).value};
      },
      [&](Builder& in, const std::vector<Value*>& now) {
        const Var j(in, now[0]);
        return std::vector<Value*>{(j + 1).value, body(in, j, Var(in, now[1]), {now.begin() + 3, now.end()}).value};
      });
  return {b, made[1]};
}

/// y with a y = b, by Gauss and Jordan's elimination with the largest pivot of each column. The leading dims are equal.
Var solved(Var a, Var b) {
  const Var n = size_at(a, -1), all = n + size_at(b, -1);
  const Var both = a.apply("concat", {b}, {{"axis", static_cast<int64_t>(a.shape().rank()) - 1}});
  const Var left =
      for_columns(n, both, {n.value, all.value}, [](Builder& in, Var j, Var m, const std::vector<Value*>& with) {
        const Var rows = column(count_to({in, with[0]})), at_row = rows.apply("equal", {j});
        const Var at_column = count_to({in, with[1]}).apply("equal", {j});
        const Var here = picked(at_column, m, -1);  // [.., n, 1]
        const Var size = select(rows < j, here.number(-1), abs(here));
        const Var pivot =
            size.apply("arg_max", {}, {{"axis", static_cast<int64_t>(m.shape().rank()) - 2}, {"keep_dims", true}});
        const Var at_pivot = rows.apply("equal", {cast(pivot, kI64)});
        const Var chosen = picked(at_pivot, m, -2), other = picked(at_row, m, -2);
        const Var swapped = select(at_row, chosen, select(at_pivot, other, m));
        const Var row = chosen / picked(at_column, chosen, -1);
        return select(at_row, row, swapped - picked(at_column, swapped, -1) * row);
      });
  return columns(left, n, all);
}

Var unit_like(Var a) { return select(where_of_matrix(a, "equal"), ones_like(a), zeros_like(a)); }

/// Zeros of the leading dims of x, as matrices of one element.
Var zeros_of_batch(Var x) {
  const Var zeros = zeros_like(x);
  return reduce_sum(zeros, {static_cast<int64_t>(x.shape().rank()) - 2, static_cast<int64_t>(x.shape().rank()) - 1},
                    true);
}

/// Column j of L is (a - L L^T)'s, divided by the root of its diagonal element.
Var cholesky(Var a) {
  const Var n = size_at(a, -1);
  return for_columns(
      n, zeros_like(a), {n.value, a.value}, [](Builder& in, Var j, Var l, const std::vector<Value*>& with) {
        const Var across = count_to({in, with[0]}), down = column(across), x(in, with[1]);
        const Var at_column = across.apply("equal", {j}), at_row = down.apply("equal", {j});
        const Var row = picked(at_row, l, -2);  // row j of L
        const Var rest =
            picked(at_column, x, -1) - reduce_sum(l * row, {static_cast<int64_t>(l.shape().rank()) - 1}, true);
        const Var made = rest / sqrt(picked(at_row, rest, -2));
        return select(at_column.apply("and", {down.apply("greater_equal", {j})}), made, l);
      });
}

}  // namespace

std::vector<Value*> by_elimination(Builder& b, const Node& node) {
  const auto adjoint = [&](Var x) { return node.attr().boolean("adjoint") ? transposed_matrices(x) : x; };
  const auto usable = [](const Value* x) { return x->type.shape.ranked && x->type.dtype.is_float(); };
  for (const Value* input : node.inputs)
    if (!usable(input)) return {};
  if (node.is("matrix_inverse")) {
    const Var a = adjoint({b, node.inputs[0]});
    return {solved(a, unit_like(a)).value};
  }
  if (node.is("cholesky")) return {cholesky(lower_triangle({b, node.inputs[0]})).value};
  if (node.is("log_determinant")) {
    const Var size = Var(b, node.inputs[0]).apply("determinant");
    return {sign(size).value, log(abs(size)).value};
  }
  const bool triangular = node.is("triangular_solve");
  if (!triangular && !node.is("matrix_solve")) return {};
  Var a(b, node.inputs[0]), y(b, node.inputs[1]);
  if (triangular) a = node.attr().boolean("lower") ? lower_triangle(a) : upper_triangle(a);
  a = adjoint(a);
  return {solved(a + zeros_of_batch(y), y + zeros_of_batch(a)).value};
}

}  // namespace cairn::onnx_export
