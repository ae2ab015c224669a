// Linear algebra on the matrices in the last two dims, by Eigen: computed in f64, rounded once.
#define EIGEN_MPL2_ONLY
#include <eigen3/Eigen/Dense>
#include <numeric>

#include "ops/families.h"
#include "ops/gradients.h"
#include "ops/kernels.h"
#include "ops/rows.h"

namespace cairn {

namespace {

using Matrix = Eigen::MatrixXd;  // by columns, as Eigen's own temporaries are: half the templates to compile

int64_t height_of(const Tensor& x) { return x.dims()[x.rank() - 2]; }
int64_t width_of(const Tensor& x) { return x.dims()[x.rank() - 1]; }
/// The dims before those of the matrices.
Dims batch_of(const Tensor& x) { return {x.dims().begin(), x.dims().end() - 2}; }

Matrix read_matrix(const Tensor& x, int64_t number) {
  Matrix matrix(height_of(x), width_of(x));
  with_floats(x.dtype(), [&](auto tag) {
    using T = decltype(tag);
    const T* from = data<T>(x) + number * matrix.size();
    for (int64_t i = 0; i < matrix.rows(); ++i)
      for (int64_t j = 0; j < matrix.cols(); ++j) matrix(i, j) = static_cast<double>(*from++);
  });
  return matrix;
}

/// Writes the matrix as number `number` of the batch in y; a vector is a matrix with one column.
void write_matrix(const Matrix& matrix, Tensor& y, int64_t number) {
  with_floats(y.dtype(), [&](auto tag) {
    using T = decltype(tag);
    T* to = data<T>(y) + number * matrix.size();
    for (int64_t i = 0; i < matrix.rows(); ++i)
      for (int64_t j = 0; j < matrix.cols(); ++j) *to++ = T(static_cast<Compute<T>>(matrix(i, j)));
  });
}

/// Calls visit(number, matrix) for every matrix of input 0, unless all results are empty.
template <class Visit>
void for_each_matrix(KernelContext& context, size_t results, Visit&& visit) {
  allocate_results(context);
  const Tensor& x = context.input(0);
  bool empty = true;
  for (size_t i = 0; i < results; ++i) empty = empty && context.output(i).count() == 0;
  const int64_t count = empty ? 0 : count_of(batch_of(x));
  for (int64_t n = 0; n < count; ++n) visit(n, read_matrix(x, n));
}

Eigen::PartialPivLU<Matrix> factorised(const KernelContext& context, const Matrix& a) {
  Eigen::PartialPivLU<Matrix> lu(a);
  if (a.size() > 0 && lu.matrixLU().diagonal().cwiseAbs().minCoeff() == 0) context.fail("a matrix is not invertible");
  return lu;
}

void matrix_inverse(KernelContext& context) {
  for_each_matrix(context, 1, [&](int64_t n, const Matrix& a) {
    const Matrix inverse = a.size() == 0 ? a : Matrix(factorised(context, a).inverse());
    write_matrix(context.attr.boolean("adjoint") ? Matrix(inverse.transpose()) : inverse, context.output(0), n);
  });
}

void determinant(KernelContext& context) {
  for_each_matrix(context, 1, [&](int64_t n, const Matrix& a) {
    const double value = a.size() == 0 ? 1.0 : Eigen::PartialPivLU<Matrix>(a).determinant();
    write_matrix(Matrix::Constant(1, 1, value), context.output(0), n);
  });
}

void log_determinant(KernelContext& context) {
  for_each_matrix(context, 2, [&](int64_t n, const Matrix& a) {
    double sign = 1, log = 0;
    if (a.size() > 0) {
      const Eigen::PartialPivLU<Matrix> lu(a);
      sign = static_cast<double>(lu.permutationP().determinant());
      for (int64_t i = 0; i < a.rows(); ++i) {
        const double pivot = lu.matrixLU()(i, i);
        sign *= pivot > 0 ? 1 : pivot < 0 ? -1 : pivot;
        log += std::log(std::abs(pivot));
      }
    }
    write_matrix(Matrix::Constant(1, 1, sign), context.output(0), n);
    write_matrix(Matrix::Constant(1, 1, log), context.output(1), n);
  });
}

void cholesky(KernelContext& context) {
  for_each_matrix(context, 1, [&](int64_t n, const Matrix& a) {
    Eigen::LLT<Matrix> llt(a);
    if (a.size() > 0 && llt.info() != Eigen::Success) context.fail("a matrix is not positive definite");
    write_matrix(a.size() == 0 ? a : Matrix(llt.matrixL()), context.output(0), n);
  });
}

/// Calls visit(result number, a, b) for the pairs of matrices by broadcasting the batch dims.
template <class Visit>
void for_each_pair(KernelContext& context, Visit&& visit) {
  allocate_results(context);
  const Tensor &a = context.input(0), &b = context.input(1);
  if (context.output(0).count() == 0) return;
  const Dims batch = batch_of(context.output(0));
  walk<2>(batch, {broadcast_strides(batch_of(a), batch), broadcast_strides(batch_of(b), batch)},
          [&](int64_t n, auto& at) { visit(n, read_matrix(a, at[0]), read_matrix(b, at[1])); });
}

void matrix_solve(KernelContext& context) {
  for_each_pair(context, [&](int64_t n, Matrix a, const Matrix& b) {
    if (context.attr.boolean("adjoint")) a.transposeInPlace();
    write_matrix(b.size() == 0 ? b : Matrix(factorised(context, a).solve(b)), context.output(0), n);
  });
}

void triangular_solve(KernelContext& context) {
  const bool lower = context.attr.boolean("lower"), adjoint = context.attr.boolean("adjoint");
  for_each_pair(context, [&](int64_t n, Matrix a, Matrix b) {
    if (a.size() > 0 && a.diagonal().cwiseAbs().minCoeff() == 0) context.fail("a matrix is not invertible");
    if (adjoint) a.transposeInPlace();
    if (b.size() > 0) {
      if (lower != adjoint)
        a.triangularView<Eigen::Lower>().solveInPlace(b);
      else
        a.triangularView<Eigen::Upper>().solveInPlace(b);
    }
    write_matrix(b, context.output(0), n);
  });
}

void qr(KernelContext& context) {
  for_each_matrix(context, 2, [&](int64_t n, const Matrix& a) {
    const int64_t inner = width_of(context.output(0));
    Matrix q = Matrix::Identity(a.rows(), inner), r = Matrix::Zero(inner, a.cols());
    if (a.size() > 0) {
      const Eigen::HouseholderQR<Matrix> made(a);
      q = made.householderQ() * q;
      r.topRows(std::min(inner, a.rows())) =
          Matrix(made.matrixQR().triangularView<Eigen::Upper>()).topRows(std::min(inner, a.rows()));
    }
    write_matrix(q, context.output(0), n);
    write_matrix(r, context.output(1), n);
  });
}

struct Svd {
  Matrix u, v;        // orthonormal columns
  Eigen::VectorXd s;  // falling
};

/// x = u diag(s) v^T of a finite matrix with at least as many rows as columns: the eigenvectors of x^T x make the columns
/// of x v nearly orthogonal, rotations of pairs (one-sided Jacobi, Hestenes 1958) make them so to the last bits, which the
/// square would lose. u has `columns` columns.
Svd svd_of_tall(Matrix x, int64_t columns) {
  const double scale = x.cwiseAbs().maxCoeff();
  const int64_t n = x.cols();
  if (scale > 0) x /= scale;
  Matrix v = Eigen::SelfAdjointEigenSolver<Matrix>(x.transpose() * x).eigenvectors().rowwise().reverse();
  Matrix y = x * v;
  constexpr double kZero = 1e-140;  // a norm; the largest is 1 at least
  const double close = std::sqrt(static_cast<double>(x.rows())) * std::numeric_limits<double>::epsilon();
  bool changed = true;
  for (int sweep = 0; sweep < 40 && changed; ++sweep) {
    changed = false;
    for (int64_t i = 0; i + 1 < n; ++i)
      for (int64_t j = i + 1; j < n; ++j) {
        const double a = y.col(i).squaredNorm(), b = y.col(j).squaredNorm(), product = y.col(i).dot(y.col(j));
        if (std::abs(product) <= close * std::sqrt(a) * std::sqrt(b) + 1e-20 * kZero * kZero) continue;
        changed = true;
        const double cotangent = (b - a) / (2 * product);  // of twice the angle
        const double tangent = std::copysign(1 / (std::abs(cotangent) + std::hypot(1, cotangent)), cotangent);
        const Eigen::JacobiRotation<double> turn(1 / std::hypot(1, tangent), tangent / std::hypot(1, tangent));
        y.applyOnTheRight(i, j, turn);
        v.applyOnTheRight(i, j, turn);
      }
  }
  const Eigen::VectorXd norms = y.colwise().norm();
  std::vector<int64_t> order(static_cast<size_t>(n));
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](int64_t a, int64_t b) { return norms[a] > norms[b]; });
  Svd made{Matrix::Zero(x.rows(), columns), Matrix(n, n), Eigen::VectorXd(n)};
  int64_t rank = 0;
  for (int64_t i = 0; i < n; ++i) {
    const int64_t from = order[static_cast<size_t>(i)];
    made.v.col(i) = v.col(from);
    made.s[i] = norms[from] * scale;
    if (norms[from] > kZero) made.u.col(rank++) = y.col(from) / norms[from];
  }
  if (rank < columns) {
    const Matrix known = made.u.leftCols(rank);
    const Matrix all = Eigen::HouseholderQR<Matrix>(known).householderQ() * Matrix::Identity(x.rows(), columns);
    made.u.rightCols(columns - rank) = all.rightCols(columns - rank);
  }
  return made;
}

void svd(KernelContext& context) {
  for_each_matrix(context, 3, [&](int64_t n, const Matrix& a) {
    const int64_t inner = std::min(a.rows(), a.cols());
    Matrix s = Matrix::Constant(inner, 1, NAN), u = Matrix::Constant(a.rows(), width_of(context.output(1)), NAN),
           v = Matrix::Constant(a.cols(), width_of(context.output(2)), NAN);
    if (a.size() == 0) {
      u.setIdentity(), v.setIdentity();
    } else if (a.allFinite()) {
      const bool wide = a.rows() < a.cols();
      Svd made = svd_of_tall(wide ? Matrix(a.transpose()) : a, wide ? v.cols() : u.cols());
      if (wide) made.u.swap(made.v);
      s = made.s, u = made.u, v = made.v;
    }
    write_matrix(s, context.output(0), n);
    write_matrix(u, context.output(1), n);
    write_matrix(v, context.output(2), n);
  });
}

void self_adjoint_eig(KernelContext& context) {
  for_each_matrix(context, 2, [&](int64_t n, const Matrix& a) {
    Matrix values = Matrix::Constant(a.rows(), 1, NAN), vectors = Matrix::Constant(a.rows(), a.cols(), NAN);
    if (a.size() > 0 && Matrix(a.triangularView<Eigen::Lower>()).allFinite()) {
      const Eigen::SelfAdjointEigenSolver<Matrix> made(a);
      if (made.info() != Eigen::Success) context.fail("the eigenvalues of a matrix were not found");
      values = made.eigenvalues(), vectors = made.eigenvectors();
    }
    write_matrix(values, context.output(0), n);
    write_matrix(vectors, context.output(1), n);
  });
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

OpDef of_matrices(const char* name, const char* summary, void (*infer)(InferContext&),
                  void (*reference)(KernelContext&), Oracle oracle, std::vector<const char*> cases) {
  return {.name = name,
          .summary = summary,
          .inputs = {{"x", Accepts::floats}},
          .traits = kReduction,
          .precision = Precision::accumulate_f32,
          .infer = infer,
          .flops = cubic_flops,
          .reference = reference,
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
OpDef solver(const char* name, const char* summary, std::vector<AttrDef> attributes, void (*reference)(KernelContext&),
             Oracle oracle, std::vector<const char*> cases) {
  OpDef row = of_matrices(name, summary, infer_solve, reference, oracle, std::move(cases));
  row.inputs = {{"a", Accepts::floats}, {"b", Accepts::floats}};
  row.attributes = std::move(attributes);
  return row;
}

std::vector<OpDef> make_linear_algebra_rows() {
  OpDef inverse = of_matrices(
      "matrix_inverse", "inverse of square matrices, transposed when adjoint; a singular one is an error", infer_square,
      matrix_inverse, {"np.swapaxes(np.linalg.inv(x), -1, -2) if adjoint else np.linalg.inv(x)"}, kSquareCases);
  inverse.attributes = {flag("adjoint")};
  inverse.cases.push_back("f32[2, 2]=[2, 5, 1, 3] {adjoint = true}");
  return {
      with_rule(inverse, matrix_inverse_rule),
      with_rule(of_matrices("determinant", "determinant of square matrices, 1 of empty ones", infer_determinant<1>,
                            determinant, {"np.linalg.det(x)"}, kSquareCases),
                determinant_rule),
      with_results(
          with_rule(of_matrices("log_determinant",
                                "sign of the determinant of square matrices, 0 of a singular one, and the logarithm of "
                                "its magnitude",
                                infer_determinant<2>, log_determinant, {"tuple(np.linalg.slogdet(x))"}, kSquareCases),
                    log_determinant_rule),
          {"sign", "log"}),
      with_rule(
          of_matrices(
              "cholesky",
              "lower triangular L with x = L L^T, of which the lower triangle alone is read; a matrix that is not "
              "positive definite is an error",
              infer_square, cholesky, {"np.linalg.cholesky(x)"},
              {"f32[2, 2]=[4, 2, 2, 3]", "f64[2, 2, 2]=[4, 2, 2, 3, 9, 0, 0, 1]", "f32[0, 3, 3]", "f32[1, 1]=[4]",
               "f32[3, 3]=[4, 2, 1, 2, 5, 3, 1, 3, 6]"}),
          cholesky_rule),
      with_rule(
          solver(
              "matrix_solve",
              "y with a y = b, or with a^T y = b when adjoint; leading dims broadcast, a singular matrix is an error",
              {flag("adjoint")}, matrix_solve, {"np.linalg.solve(np.swapaxes(a, -1, -2) if adjoint else a, b)"},
              {"f32[2, 2]=[2, 1, 1, 3], f32[2, 3]", "f64[2, 2, 2]=[4, 1, 1, 3, 1, 0.5, 0.5, 2], f64[2, 2, 1]",
               "f32[2, 2]=[2, 5, 1, 3], f32[2, 1] {adjoint = true}", "f32[0, 2, 2], f32[0, 2, 1]",
               "f32[2, 2]=[2, 1, 1, 3], f32[3, 2, 2]"}),
          matrix_solve_rule),
      with_rule(
          solver("triangular_solve",
                 "y with t y = b, or with t^T y = b when adjoint, for the lower or upper triangle t of a; leading dims "
                 "broadcast, a 0 on the diagonal is an error",
                 {flag("lower", true), flag("adjoint")}, triangular_solve,
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
                          infer_qr, qr, {"tuple(np.linalg.qr(x, 'complete' if full else 'reduced'))"},
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
                          infer_svd, svd,
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
                          infer_eig, self_adjoint_eig,
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
