// Gradient rules of linear algebra. Formulas: Giles, "Collected matrix derivative results for forward and reverse mode
// algorithmic differentiation", 2008; of the orthogonal factors Walter and Lehmann, "Algorithmic differentiation of linear
// algebra functions", 2018.
#include "ops/gradients.h"

namespace cairn {

namespace {

Var tensor_solve(const char* op, Var a, Var b, Attributes attributes) {
  return a.apply(op, {b}, std::move(attributes));
}

Var strictly_lower(Var x) { return keep_where(where_of_matrix(x, "greater"), x); }
// The symmetric matrix that has the lower triangle of x.
Var mirrored(Var x) { return lower_triangle(x) + transposed_matrices(strictly_lower(x)); }

// Reshape to broadcast to the matrices: one number per matrix; a vector per matrix as a column or a row.
Var for_matrices(const GradientContext& g, Var numbers) {
  Sizes sizes = sizes_of(g, numbers);
  sizes.insert(sizes.end(), 2, Size(g.b, 1));
  return reshape(numbers, sizes);
}
Var as_column(const GradientContext& g, Var vector) {
  Sizes sizes = sizes_of(g, vector);
  sizes.push_back(Size(g.b, 1));
  return reshape(vector, sizes);
}
Var as_row(const GradientContext& g, Var vector) {
  Sizes sizes = sizes_of(g, vector);
  sizes.insert(sizes.end() - 1, Size(g.b, 1));
  return reshape(vector, sizes);
}
// The differences row[k] - column[j], 1 on the diagonal.
Var differences(const GradientContext& g, Var vector) {
  const Var all = as_row(g, vector) - as_column(g, vector);
  return select(where_of_matrix(all, "equal"), all.number(1), all);
}
Var diagonal(Var like, Var row) { return keep_where(where_of_matrix(like, "equal"), row); }

// The columns begin .. end - 1.
Var columns(Var x, int64_t begin, int64_t end) {
  Builder& b = *x.builder;
  std::vector<int64_t> begins(x.shape().rank(), 0), ends(begins.size(), std::numeric_limits<int64_t>::max());
  begins.back() = begin, ends.back() = end;
  return x.apply("slice", {{b, b.ints(begins)}, {b, b.ints(ends)}});
}

struct MatrixSizes {
  int64_t rows, columns;
};
MatrixSizes matrix_sizes(const GradientContext& g) {
  const Sizes sizes = sizes_of(g, g.x(0));
  const Dim &rows = sizes[sizes.size() - 2].dim(), &columns = sizes.back().dim();
  if (!rows.known() || !columns.known())
    refuse_gradient(g, "the gradient needs the numbers of rows and columns, which are not known");
  return {rows.size, columns.size};
}

Var inverse_transposed(Var x) { return x.apply("matrix_inverse", {}, {{"adjoint", true}}); }

// The gradient of x = q r for matrices with at least as many rows as columns.
Var of_tall_qr(Var q, Var r, Var dq, Var dr) {
  const Var mixed = matmul(r, dr, false, true) - matmul(dq, q, true);
  const Var right = dq + matmul(q, mirrored(mixed));
  return transposed_matrices(tensor_solve("triangular_solve", r, transposed_matrices(right), {{"lower", false}}));
}

}  // namespace

void matrix_inverse_rule(GradientContext& g) {
  const Var y = g.y(), dy = g.dy();
  if (g.attr.boolean("adjoint"))
    g.set(0, -matmul(matmul(y, dy, false, true), y));
  else
    g.set(0, -matmul(matmul(y, dy, true), y, false, true));
}

void determinant_rule(GradientContext& g) { g.set(0, for_matrices(g, g.dy() * g.y()) * inverse_transposed(g.x(0))); }

void log_determinant_rule(GradientContext& g) {
  if (g.has_dy(1)) g.set(0, for_matrices(g, g.dy(1)) * inverse_transposed(g.x(0)));
}

// The gradient is symmetric: x is taken as symmetric, so that both triangles change together.
void cholesky_rule(GradientContext& g) {
  const Var l = g.y();
  const Var inner = lower_triangle(matmul(l, g.dy(), true));
  const Var halved = select(where_of_matrix(inner, "equal"), inner * 0.5, inner);
  const Attributes adjoint = {{"adjoint", true}};
  const Var left = tensor_solve("triangular_solve", l, halved, adjoint);
  const Var both = tensor_solve("triangular_solve", l, transposed_matrices(left), adjoint);
  g.set(0, (both + transposed_matrices(both)) * 0.5);
}

namespace {

// Gradients by A and b of the solution y of A y = b, or of A^T y = b (adjoint).
void solve_rule(GradientContext& g, const char* op, Attributes attributes, FunctionRef<Var(Var)> part) {
  const bool adjoint = g.attr.boolean("adjoint");
  attributes.set("adjoint", !adjoint);
  const Var db = tensor_solve(op, g.x(0), g.dy(), attributes);
  g.set(1, sum_to_like(db, g.x(1)));
  if (!g.wanted(0)) return;
  const Var da = adjoint ? matmul(g.y(), db, false, true) : matmul(db, g.y(), false, true);
  g.set(0, sum_to_like(-part(da), g.x(0)));
}

}  // namespace

void matrix_solve_rule(GradientContext& g) {
  solve_rule(g, "matrix_solve", {}, [](Var da) { return da; });
}
void triangular_solve_rule(GradientContext& g) {
  const bool lower = g.attr.boolean("lower");
  solve_rule(g, "triangular_solve", {{"lower", lower}},
             [&](Var da) { return lower ? lower_triangle(da) : upper_triangle(da); });
}

// For a wide x = q [u v], the columns of v have the gradient q dv, and dv contributes to the gradient of q as well.
void qr_rule(GradientContext& g) {
  const auto [rows, width] = matrix_sizes(g);
  if (g.attr.boolean("full") && rows > width)
    refuse_gradient(g, "the square q of a matrix with more rows than columns is not determined by it");
  const Var q = g.y(0), r = g.y(1), dq = g.dy(0), dr = g.dy(1);
  if (rows >= width) return g.set(0, of_tall_qr(q, r, dq, dr));
  const Var beside = columns(g.x(0), rows, width), dbeside = columns(dr, rows, width);
  const Var square_part =
      of_tall_qr(q, columns(r, 0, rows), dq + matmul(beside, dbeside, false, true), columns(dr, 0, rows));
  g.set(0, concat({square_part, matmul(q, dbeside)}, -1));
}

// With S = diag(s), E[j, k] = s[k]^2 - s[j]^2 and skew(a) = a - a^T the gradient is u (skew(u^T du) / E S + S skew(v^T dv) / E +
// diag(ds)) v^T, plus the parts of du and dv outside of the spans of u and v.
void svd_rule(GradientContext& g) {
  const auto [rows, width] = matrix_sizes(g);
  const int64_t inner = std::min(rows, width);
  const bool vectors = g.has_dy(1) || g.has_dy(2);
  if (vectors && g.attr.boolean("full") && rows != width)
    refuse_gradient(g, "the square factors of a matrix that is not square are not determined by it");
  const Var s = g.y(0), u = columns(g.y(1), 0, inner), v = columns(g.y(2), 0, inner);
  const Var sizes = as_row(g, s);
  if (!vectors) return g.set(0, matmul(u * as_row(g, g.dy(0)), v, false, true));
  const Var distance = differences(g, square(s));
  const auto skew = [](Var a) { return a - transposed_matrices(a); };
  const auto rotation = [&](Var factor, Var gradient) { return skew(matmul(factor, gradient, true)) / distance; };
  const Var du = g.dy(1), dv = g.dy(2), turned = rotation(u, du) * sizes;
  const Var middle = turned + as_column(g, s) * rotation(v, dv) + diagonal(turned, as_row(g, g.dy(0)));
  Var dx = matmul(matmul(u, middle), v, false, true);
  const auto outside = [&](Var factor, Var gradient) {
    return (gradient - matmul(factor, matmul(factor, gradient, true))) / sizes;
  };
  if (rows > inner) dx = dx + matmul(outside(u, du), v, false, true);
  if (width > inner) dx = dx + matmul(u, outside(v, dv), false, true);
  g.set(0, dx);
}

// The gradient is symmetric: x is taken as symmetric, so that both triangles change together.
void self_adjoint_eig_rule(GradientContext& g) {
  const Var values = g.y(0), vectors = g.y(1);
  std::optional<Var> middle;
  if (g.has_dy(1)) middle = matmul(vectors, g.dy(1), true) / differences(g, values);
  if (g.has_dy(0)) {
    const Var stretch = diagonal(vectors, as_row(g, g.dy(0)));
    middle = middle ? keep_where(where_of_matrix(vectors, "not_equal"), *middle) + stretch : stretch;
  } else {
    middle = keep_where(where_of_matrix(vectors, "not_equal"), *middle);
  }
  const Var dx = matmul(matmul(vectors, *middle), vectors, false, true);
  g.set(0, (dx + transposed_matrices(dx)) * 0.5);
}

}  // namespace cairn
