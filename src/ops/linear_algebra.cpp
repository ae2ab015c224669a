// Linear algebra on the matrices in the last two dims: computed in f64, rounded once (engines/cpu computes f32 in f32).
#include "ops/families.h"
#include "ops/gradients.h"
#include "ops/kernels.h"
#include "ops/matrices.h"
#include "ops/rows.h"

namespace cairn {

namespace {

/// All matrices one after the other.
void by_matrices(KernelContext& context) {
  allocate_results(context);
  std::vector<Type> inputs, types;
  std::vector<const void*> from;
  std::vector<void*> to;
  for (size_t i = 0; i < context.input_count(); ++i) {
    inputs.push_back(context.input(i).type());
    from.push_back(context.input(i).data());
  }
  for (size_t i = 0; i < context.op().results.size(); ++i) {
    types.push_back(context.output(i).type());
    to.push_back(context.output(i).mutable_data());
  }
  const MatrixRoutine routine = find_matrix_routine(matrix_routines(), context.op().name);
  CHECK(routine, "{} is linear algebra", context.op().name);
  const MatrixBatch batch(routine, kF64, context.attr, inputs, types);
  if (batch.count() == 0) return;
  std::vector<double> scratch(batch.scratch() / sizeof(double));
  for (const int64_t n : turns(batch.count())) {
    const MatrixFault fault = batch.compute(n, from.data(), to.data(), scratch.data());
    if (fault != MatrixFault::none) context.fail("{}", to_string(fault));
  }
}

/// The shape of input i, checked to be matrices (square ones with `square`).
Shape matrix_shape(InferContext& context, size_t i, bool square) {
  number_type(context, i);
  Shape shape = context.shape(i);
  if (!shape.ranked) return shape;
  if (shape.rank() < 2) context.fail("input {} must be matrices, found {}", i, to_string(context.input(i)));
  Dim &rows = shape.dims[shape.rank() - 2], &columns = shape.dims[shape.rank() - 1];
  if (square) rows = columns = same_size(context, rows, columns, "rows and columns");
  return shape;
}
/// The shape with its last two dims replaced by `sizes`.
Shape with_matrix(Shape shape, std::vector<Dim> sizes) {
  if (!shape.ranked) return shape;
  shape.dims.resize(shape.rank() - 2);
  shape.dims.insert(shape.dims.end(), sizes.begin(), sizes.end());
  return shape;
}

void infer_square(InferContext& context) { context.result(context.dtype(0), matrix_shape(context, 0, true)); }
template <int kResults>
void infer_determinant(InferContext& context) {
  const Shape shape = with_matrix(matrix_shape(context, 0, true), {});
  for (int i = 0; i < kResults; ++i) context.result(context.dtype(0), shape);
}
void infer_solve(InferContext& context) {
  const Shape a = matrix_shape(context, 0, true), b = matrix_shape(context, 1, false);
  const DType dtype = equal_types(context);
  if (!a.ranked || !b.ranked) return context.result(dtype, Shape::unranked());
  const Dim rows = same_size(context, a.dims.back(), b.dims[b.rank() - 2], "rows of the matrices");
  const Shape batch = broadcast(context, with_matrix(a, {}), with_matrix(b, {}));
  Shape result = batch;
  result.dims.insert(result.dims.end(), {rows, b.dims.back()});
  context.result(dtype, std::move(result));
}

Dim smaller(const Dim& a, const Dim& b) {
  if (a.surely_equals(b)) return a;
  return a.known() && b.known() ? Dim(std::min(a.size, b.size)) : Dim();
}
void infer_qr(InferContext& context) {
  const Shape shape = matrix_shape(context, 0, false);
  if (!shape.ranked) return context.result(context.dtype(0), shape), context.result(context.dtype(0), shape);
  const Dim rows = shape.dims[shape.rank() - 2], columns = shape.dims.back();
  const Dim inner = context.attr.boolean("full") ? rows : smaller(rows, columns);
  context.result(context.dtype(0), with_matrix(shape, {rows, inner}));
  context.result(context.dtype(0), with_matrix(shape, {inner, columns}));
}
void infer_svd(InferContext& context) {
  const Shape shape = matrix_shape(context, 0, false);
  const DType dtype = context.dtype(0);
  if (!shape.ranked) return context.result(dtype, shape), context.result(dtype, shape), context.result(dtype, shape);
  const Dim rows = shape.dims[shape.rank() - 2], columns = shape.dims.back(), inner = smaller(rows, columns);
  const bool full = context.attr.boolean("full");
  context.result(dtype, with_matrix(shape, {inner}));
  context.result(dtype, with_matrix(shape, {rows, full ? rows : inner}));
  context.result(dtype, with_matrix(shape, {columns, full ? columns : inner}));
}
void infer_eig(InferContext& context) {
  const Shape shape = matrix_shape(context, 0, true);
  context.result(context.dtype(0), shape.ranked ? with_matrix(shape, {shape.dims.back()}) : shape);
  context.result(context.dtype(0), shape);
}

/// n * n * m for matrices of n columns and m rows.
double cubic_flops(const InferContext& context) {
  const Shape& shape = context.shape(0);
  if (!shape.known() || shape.rank() == 0) return 0;
  return static_cast<double>(known_count(shape).value_or(0)) * static_cast<double>(shape.dims.back().size);
}

const std::vector<const char*> kSquareCases = {"f32[2, 2]=[2, 1, 1, 3]",
                                               "f32[3, 3]=[0, 2, 1, 1, 0, 4, 3, 1, 0]",
                                               "f64[2, 2, 2]=[4, 1, 1, 3, 1, 0.5, 0.5, 2]",
                                               "f32[0, 3, 3]",
                                               "f32[2, 0, 0]",
                                               "f32[1, 1]=[-4]"};

OpDef of_matrices(const char* name, const char* summary, void (*infer)(InferContext&), Oracle oracle,
                  std::vector<const char*> cases) {
  return {.name = name,
          .summary = summary,
          .inputs = {{"x", Accepts::floats}},
          .traits = kReduction,
          .precision = Precision::accumulate_f32,
          .infer = infer,
          .flops = cubic_flops,
          .reference = by_matrices,
          .oracle = oracle,
          .cases = std::move(cases)};
}
OpDef with_rule(OpDef row, void (*gradient)(GradientContext&)) {
  row.gradient = gradient;
  return row;
}
OpDef with_results(OpDef row, std::vector<const char*> results, std::vector<AttrDef> attributes = {}) {
  row.results = std::move(results), row.attributes = std::move(attributes);
  return row;
}
OpDef solver(const char* name, const char* summary, std::vector<AttrDef> attributes, Oracle oracle,
             std::vector<const char*> cases) {
  OpDef row = of_matrices(name, summary, infer_solve, oracle, std::move(cases));
  row.inputs = {{"a", Accepts::floats}, {"b", Accepts::floats}};
  row.attributes = std::move(attributes);
  return row;
}

std::vector<OpDef> make_linear_algebra_rows() {
  OpDef inverse = of_matrices(
      "matrix_inverse", "inverse of square matrices, transposed when adjoint; a singular one is an error", infer_square,
      {"np.swapaxes(np.linalg.inv(x), -1, -2) if adjoint else np.linalg.inv(x)"}, kSquareCases);
  inverse.attributes = {flag("adjoint")};
  inverse.cases.push_back("f32[2, 2]=[2, 5, 1, 3] {adjoint = true}");
  return {
      with_rule(inverse, matrix_inverse_rule),
      with_rule(of_matrices("determinant", "determinant of square matrices, 1 of empty ones", infer_determinant<1>,
                            {"np.linalg.det(x)"}, kSquareCases),
                determinant_rule),
      with_results(
          with_rule(of_matrices("log_determinant",
                                "sign of the determinant of square matrices, 0 of a singular one, and the logarithm of "
                                "its magnitude",
                                infer_determinant<2>, {"tuple(np.linalg.slogdet(x))"}, kSquareCases),
                    log_determinant_rule),
          {"sign", "log"}),
      with_rule(
          of_matrices(
              "cholesky",
              "lower triangular L with x = L L^T, of which the lower triangle alone is read; a matrix that is not "
              "positive definite is an error",
              infer_square, {"np.linalg.cholesky(x)"},
              {"f32[2, 2]=[4, 2, 2, 3]", "f64[2, 2, 2]=[4, 2, 2, 3, 9, 0, 0, 1]", "f32[0, 3, 3]", "f32[1, 1]=[4]",
               "f32[3, 3]=[4, 2, 1, 2, 5, 3, 1, 3, 6]"}),
          cholesky_rule),
      with_rule(
          solver(
              "matrix_solve",
              "y with a y = b, or with a^T y = b when adjoint; leading dims broadcast, a singular matrix is an error",
              {flag("adjoint")}, {"np.linalg.solve(np.swapaxes(a, -1, -2) if adjoint else a, b)"},
              {"f32[2, 2]=[2, 1, 1, 3], f32[2, 3]", "f64[2, 2, 2]=[4, 1, 1, 3, 1, 0.5, 0.5, 2], f64[2, 2, 1]",
               "f32[2, 2]=[2, 5, 1, 3], f32[2, 1] {adjoint = true}", "f32[0, 2, 2], f32[0, 2, 1]",
               "f32[2, 2]=[2, 1, 1, 3], f32[3, 2, 2]"}),
          matrix_solve_rule),
      with_rule(
          solver("triangular_solve",
                 "y with t y = b, or with t^T y = b when adjoint, for the lower or upper triangle t of a; leading dims "
                 "broadcast, a 0 on the diagonal is an error",
                 {flag("lower", true), flag("adjoint")},
                 {"(lambda t: np.linalg.solve(np.swapaxes(t, -1, -2) if adjoint else t, b))((np.tril if lower else "
                  "np.triu)(a))"},
                 {"f32[2, 2]=[2, 1, 1, 3], f32[2, 3]", "f32[2, 2]=[2, 1, 1, 3], f32[2, 3] {lower = false}",
                  "f32[2, 2]=[2, 1, 1, 3], f32[2, 3] {adjoint = true}",
                  "f64[2, 2, 2]=[4, 1, 1, 3, 1, 0.5, 0.5, 2], f64[2, 2, 1] {lower = false, adjoint = true}",
                  "f32[2, 2]=[2, 1, 1, 3], f32[3, 2, 2]", "f32[0, 2, 2], f32[0, 2, 1]"}),
          triangular_solve_rule),
      with_results(
          with_rule(
              of_matrices("qr",
                          "x = q r with orthonormal columns of q (Householder reflections; a diagonal element of r "
                          "has the opposite sign of what it reflects) and an upper triangular r; full: q is square",
                          infer_qr, {"tuple(np.linalg.qr(x, 'complete' if full else 'reduced'))"},
                          {"f32[2, 2]=[2, 1, 1, 3]", "f32[3, 2]=[0, 2, 1, 1, 0, 4] {full = true}",
                           "f32[3, 2]=[1, 2, 1, 1, 0, 4]", "f32[2, 3]=[1, 2, 1, 1, 0, 4]", "f64[2, 2, 1]=[1, 2, 3, 4]",
                           "f32[0, 2, 2]"}),
              qr_rule),
          {"q", "r"}, {flag("full")}),
      with_results(
          with_rule(
              of_matrices("svd",
                          "x = u diag(s) v^T with falling singular values s >= 0 and orthonormal columns of u and "
                          "v, whose common signs are not told; full: u and v are square; NaN of a matrix with NaN",
                          infer_svd,
                          untested("signs are free: linear_algebra_test.cpp multiplies the factors, and "
                                   "make_ops.py compares with TensorFlow's"),
                          {"f32[2, 2]=[2, 1, 1, 3]", "f32[3, 2]=[0, 2, 1, 1, 0, 4] {full = true}",
                           "f64[2, 2, 3]=[0, 2, 1, 1, 0, 4, 3, 3, 3, 1, 1, 1]", "f32[2, 0, 3]"}),
              svd_rule),
          {"s", "u", "v"}, {flag("full")}),
      with_results(
          with_rule(
              of_matrices("self_adjoint_eig",
                          "rising eigenvalues of symmetric matrices, of which the lower triangle alone is read, and "
                          "their eigenvectors of length 1 as columns, whose signs are not told; NaN of a matrix "
                          "with NaN",
                          infer_eig,
                          untested("signs are free: linear_algebra_test.cpp multiplies the factors, and "
                                   "make_ops.py compares with TensorFlow's"),
                          {"f32[2, 2]=[2, 1, 1, 3]", "f64[2, 2, 2]=[4, 1, 1, 3, 1, 0.5, 0.5, 2]", "f32[0, 3, 3]"}),
              self_adjoint_eig_rule),
          {"values", "vectors"}),
  };
}

}  // namespace

std::span<const OpDef> linear_algebra_ops() {
  static const std::vector<OpDef> rows = make_linear_algebra_rows();
  return rows;
}

}  // namespace cairn
