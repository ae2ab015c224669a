// Factorisations whose signs are free give back what they were made from; systems without one solution are refused.
#include <gtest/gtest.h>

#include "ir/evaluate.h"
#include "ops/cases.h"

namespace cairn {
namespace {

Tensor matrix(std::vector<int64_t> dims, const std::vector<double>& elements) {
  return Tensor::of<double>(kF64, std::move(dims), elements);
}

std::vector<std::vector<double>> run(const char* op, Tensor x, const Attributes& attributes = {}) {
  std::vector<std::vector<double>> results;
  for (const HostValue& result : run_reference(op_named(op), attributes, {HostValue{std::move(x), nullptr}}))
    results.push_back(result.tensor.as_f64());
  return results;
}

/// u diag(s) v^T, of the first columns of u [rows, u_columns] and v [columns, v_columns].
std::vector<double> product(const std::vector<double>& u, size_t u_columns, const std::vector<double>& s,
                            const std::vector<double>& v, size_t v_columns) {
  std::vector<double> x;
  for (size_t i = 0; i < u.size() / u_columns; ++i)
    for (size_t j = 0; j < v.size() / v_columns; ++j) {
      double sum = 0;
      for (size_t k = 0; k < s.size(); ++k) sum += u[i * u_columns + k] * s[k] * v[j * v_columns + k];
      x.push_back(sum);
    }
  return x;
}

void expect_near(const std::vector<double>& a, const std::vector<double>& b) {
  ASSERT_EQ(a.size(), b.size());
  for (size_t i = 0; i < a.size(); ++i) EXPECT_NEAR(a[i], b[i], 1e-12) << i;
}

const std::vector<double> kTall = {1, 2, 0, -3, 5, 4, 1, 1}, kSymmetric = {4, 1, -2, 1, 2, 0.5, -2, 0.5, 3};

TEST(LinearAlgebra, SingularVectorsAndValuesMultiplyToTheMatrix) {
  for (bool full : {false, true}) {
    auto parts = run("svd", matrix({4, 2}, kTall), {{"full", full}});
    EXPECT_GE(parts[0][0], parts[0][1]);
    EXPECT_GE(parts[0][1], 0);
    expect_near(product(parts[1], full ? 4 : 2, parts[0], parts[2], 2), kTall);
    parts = run("svd", matrix({2, 4}, kTall), {{"full", full}});
    expect_near(product(parts[1], 2, parts[0], parts[2], full ? 4 : 2), kTall);
  }
}

TEST(LinearAlgebra, EigenvectorsAndValuesMultiplyToTheMatrix) {
  auto parts = run("self_adjoint_eig", matrix({3, 3}, kSymmetric));
  EXPECT_TRUE(std::is_sorted(parts[0].begin(), parts[0].end()));
  expect_near(product(parts[1], 3, parts[0], parts[1], 3), kSymmetric);
}

TEST(LinearAlgebra, MatricesWithNanHaveNoFactors) {
  for (const char* op : {"svd", "self_adjoint_eig"})
    for (const auto& part : run(op, matrix({2, 2}, {NAN, 1, 1, 2})))
      for (double element : part) EXPECT_TRUE(std::isnan(element)) << op;
}

TEST(LinearAlgebra, SingularMatricesAreRefused) {
  for (const char* op : {"matrix_inverse", "cholesky"}) {
    try {
      run(op, matrix({2, 2}, {1, 2, 2, 4}));
      FAIL() << op;
    } catch (const Error& error) {
      EXPECT_EQ(std::string(error.what()), std::string(op) == "cholesky"
                                               ? "cholesky: a matrix is not positive definite"
                                               : "matrix_inverse: a matrix is not invertible");
    }
  }
}

}  // namespace
}  // namespace cairn
