// The routines of matrices.h by Eigen. A file that is compiled for more than every processor has gives Eigen's namespace another
// name, so that the linker takes nothing of it for others, and uses no templates of the standard library that are no inline code.
#pragma once

#define EIGEN_MPL2_ONLY
#include <string_view>

#include "support/stop.h"

namespace cairn {

/// Eigen asserts the place of each block that a step of its algorithms makes: there the work may end early. It asserts each
/// element's place too, which is no place to count at.
consteval bool is_of_block(std::string_view assertion) {
  return assertion.starts_with("startRow >= 0") || assertion.starts_with("(i>=0)");
}

}  // namespace cairn

#define eigen_assert(condition) \
  ((void)sizeof(condition), ::cairn::is_of_block(#condition) ? ::cairn::stop_point_after(64) : (void)0)
#include <eigen3/Eigen/Dense>

#include "ops/matrices.h"

namespace cairn {

namespace {

/// Of an a with at least one element.
template <class M>
M orthonormal(const Eigen::HouseholderQR<M>& qr, int64_t columns) {
  return qr.householderQ() * M::Identity(qr.rows(), columns);
}

struct Svd {
  Eigen::MatrixXd u, v;  // orthonormal columns
  Eigen::VectorXd s;     // falling
};

/// Rotates pairs of columns of y, and those of v alike, until y's are orthogonal to the last bits.
void make_orthogonal(Eigen::MatrixXd& y, Eigen::MatrixXd& v, double zero) {
  const double close = std::sqrt(static_cast<double>(y.rows())) * std::numeric_limits<double>::epsilon();
  bool changed = true;
  for (int sweep = 0; sweep < 40 && changed; ++sweep) {
    changed = false;
    for (int64_t i = 0; i + 1 < y.cols(); ++i)
      for (int64_t j = i + 1; j < y.cols(); ++j) {
        const double a = y.col(i).squaredNorm(), b = y.col(j).squaredNorm(), product = y.col(i).dot(y.col(j));
        if (std::abs(product) <= close * std::sqrt(a) * std::sqrt(b) + 1e-20 * zero * zero) continue;
        changed = true;
        const double cotangent = (b - a) / (2 * product);  // of twice the angle
        const double tangent = std::copysign(1 / (std::abs(cotangent) + std::hypot(1, cotangent)), cotangent);
        const Eigen::JacobiRotation<double> turn(1 / std::hypot(1, tangent), tangent / std::hypot(1, tangent));
        y.applyOnTheRight(i, j, turn);
        v.applyOnTheRight(i, j, turn);
      }
  }
}

/// x = u diag(s) v^T of a finite matrix with at least as many rows as columns: the eigenvectors of x^T x make the columns
/// of x v nearly orthogonal, rotations of pairs (one-sided Jacobi, Hestenes 1958) make them so to the last bits, which the
/// square would lose. u has `columns` columns.
Svd svd_of_tall(Eigen::MatrixXd x, int64_t columns) {
  const double scale = x.cwiseAbs().maxCoeff();
  const int64_t n = x.cols();
  if (scale > 0) x /= scale;
  Eigen::MatrixXd v =
      Eigen::SelfAdjointEigenSolver<Eigen::MatrixXd>(x.transpose() * x).eigenvectors().rowwise().reverse();
  Eigen::MatrixXd y = x * v;
  constexpr double kZero = 1e-140;  // a norm; the largest is 1 at least
  make_orthogonal(y, v, kZero);
  const Eigen::VectorXd norms = y.colwise().norm();
  Eigen::Matrix<int64_t, Eigen::Dynamic, 1> order(n);
  for (int64_t i = 0; i < n; ++i) order[i] = i;
  std::sort(order.data(), order.data() + n,
            [&](int64_t a, int64_t b) { return norms[a] != norms[b] ? norms[a] > norms[b] : a < b; });
  Svd made{Eigen::MatrixXd::Zero(x.rows(), columns), Eigen::MatrixXd(n, n), Eigen::VectorXd(n)};
  int64_t rank = 0;
  for (int64_t i = 0; i < n; ++i) {
    const int64_t from = order[i];
    made.v.col(i) = v.col(from);
    made.s[i] = norms[from] * scale;
    if (norms[from] > kZero) made.u.col(rank++) = y.col(from) / norms[from];
  }
  if (rank < columns) {
    const Eigen::MatrixXd all =
        orthonormal(Eigen::HouseholderQR<Eigen::MatrixXd>(Eigen::MatrixXd(made.u.leftCols(rank))), columns);
    made.u.rightCols(columns - rank) = all.rightCols(columns - rank);
  }
  return made;
}

/// The routines on elements T.
template <class T>
struct Routines {
  using Matrix = Eigen::Matrix<T, Eigen::Dynamic, Eigen::Dynamic>;
  using Map = Eigen::Map<Matrix>;

  static Map map(const MatrixSpan& span) { return {static_cast<T*>(span.data), span.rows, span.columns}; }

  static bool has_zero_pivot(const Matrix& a) { return a.diagonal().cwiseAbs().minCoeff() == 0; }

  static MatrixFault matrix_inverse(MatrixFlags flags, const MatrixSpan* in, const MatrixSpan* out) {
    const Map a = map(in[0]);
    if (a.size() == 0) return MatrixFault::none;
    const Eigen::PartialPivLU<Matrix> lu(a);
    if (has_zero_pivot(lu.matrixLU())) return MatrixFault::singular;
    map(out[0]) = flags.adjoint ? Matrix(lu.inverse().transpose()) : Matrix(lu.inverse());
    return MatrixFault::none;
  }

  static MatrixFault determinant(MatrixFlags, const MatrixSpan* in, const MatrixSpan* out) {
    const Map a = map(in[0]);
    map(out[0]).setConstant(a.size() == 0 ? T(1) : Eigen::PartialPivLU<Matrix>(a).determinant());
    return MatrixFault::none;
  }

  static MatrixFault log_determinant(MatrixFlags, const MatrixSpan* in, const MatrixSpan* out) {
    const Map a = map(in[0]);
    T sign = 1, log = 0;
    if (a.size() > 0) {
      const Eigen::PartialPivLU<Matrix> lu(a);
      sign = static_cast<T>(lu.permutationP().determinant());
      for (int64_t i = 0; i < a.rows(); ++i) {
        const T pivot = lu.matrixLU()(i, i);
        sign *= pivot > 0 ? 1 : pivot < 0 ? -1 : pivot;
        log += std::log(std::abs(pivot));
      }
    }
    map(out[0]).setConstant(sign), map(out[1]).setConstant(log);
    return MatrixFault::none;
  }

  static MatrixFault cholesky(MatrixFlags, const MatrixSpan* in, const MatrixSpan* out) {
    Map a = map(in[0]);
    if (a.size() == 0) return MatrixFault::none;
    const Eigen::LLT<Eigen::Ref<Matrix>> llt(a);  // in place
    if (llt.info() != Eigen::Success) return MatrixFault::not_positive;
    map(out[0]) = llt.matrixL();
    return MatrixFault::none;
  }

  static MatrixFault matrix_solve(MatrixFlags flags, const MatrixSpan* in, const MatrixSpan* out) {
    Map a = map(in[0]), b = map(in[1]);
    if (b.size() == 0) return MatrixFault::none;
    if (flags.adjoint) a.transposeInPlace();
    const Eigen::PartialPivLU<Matrix> lu(a);
    if (has_zero_pivot(lu.matrixLU())) return MatrixFault::singular;
    map(out[0]) = lu.solve(b);
    return MatrixFault::none;
  }

  static MatrixFault triangular_solve(MatrixFlags flags, const MatrixSpan* in, const MatrixSpan* out) {
    const Map a = map(in[0]);
    Map b = map(in[1]);
    if (a.size() > 0 && a.diagonal().cwiseAbs().minCoeff() == 0) return MatrixFault::singular;
    if (b.size() > 0) {
      if (flags.lower && flags.adjoint)
        a.template triangularView<Eigen::Lower>().transpose().solveInPlace(b);
      else if (flags.lower)
        a.template triangularView<Eigen::Lower>().solveInPlace(b);
      else if (flags.adjoint)
        a.template triangularView<Eigen::Upper>().transpose().solveInPlace(b);
      else
        a.template triangularView<Eigen::Upper>().solveInPlace(b);
    }
    map(out[0]) = b;
    return MatrixFault::none;
  }

  static MatrixFault qr(MatrixFlags, const MatrixSpan* in, const MatrixSpan* out) {
    const Map a = map(in[0]);
    Map q = map(out[0]), r = map(out[1]);
    q.setIdentity(), r.setZero();
    if (a.size() == 0) return MatrixFault::none;
    const Eigen::HouseholderQR<Matrix> made(a);
    q = orthonormal(made, q.cols());
    const int64_t rows = std::min(r.rows(), a.rows());
    r.topRows(rows) = Matrix(made.matrixQR().template triangularView<Eigen::Upper>()).topRows(rows);
    return MatrixFault::none;
  }

  /// In f64, since the square of the matrix loses half of the digits.
  static MatrixFault svd(MatrixFlags, const MatrixSpan* in, const MatrixSpan* out) {
    const Eigen::MatrixXd a = map(in[0]).template cast<double>();
    Map s = map(out[0]), u = map(out[1]), v = map(out[2]);
    s.setConstant(NAN), u.setConstant(NAN), v.setConstant(NAN);
    if (a.size() == 0) {
      u.setIdentity(), v.setIdentity();
    } else if (a.allFinite()) {
      const bool wide = a.rows() < a.cols();
      Svd made = svd_of_tall(wide ? Eigen::MatrixXd(a.transpose()) : a, wide ? v.cols() : u.cols());
      if (wide) made.u.swap(made.v);
      s = made.s.cast<T>(), u = made.u.cast<T>(), v = made.v.cast<T>();
    }
    return MatrixFault::none;
  }

  static MatrixFault self_adjoint_eig(MatrixFlags, const MatrixSpan* in, const MatrixSpan* out) {
    const Map a = map(in[0]);
    Map values = map(out[0]), vectors = map(out[1]);
    values.setConstant(NAN), vectors.setConstant(NAN);
    if (a.size() == 0 || !Matrix(a.template triangularView<Eigen::Lower>()).allFinite()) return MatrixFault::none;
    const Eigen::SelfAdjointEigenSolver<Matrix> made(a);
    if (made.info() != Eigen::Success) return MatrixFault::no_eigenvalues;
    values = made.eigenvalues(), vectors = made.eigenvectors();
    return MatrixFault::none;
  }
};

template <class T>
constexpr NamedMatrixRoutine kMatrixRoutines[] = {
    {"matrix_inverse", Routines<T>::matrix_inverse},
    {"determinant", Routines<T>::determinant},
    {"log_determinant", Routines<T>::log_determinant},
    {"cholesky", Routines<T>::cholesky},
    {"matrix_solve", Routines<T>::matrix_solve},
    {"triangular_solve", Routines<T>::triangular_solve},
    {"qr", Routines<T>::qr},
    {"svd", Routines<T>::svd},
    {"self_adjoint_eig", Routines<T>::self_adjoint_eig},
};

}  // namespace

}  // namespace cairn
