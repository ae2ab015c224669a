// TensorFlow's inverses, factorisations and solutions of systems, on the matrices in the last two dims.
#include <algorithm>

#include "frontends/reshape.h"
#include "frontends/tensorflow/training.h"

namespace cairn::tensorflow {
namespace {

void of_one_matrix(OpContext& c) {
  c.expect_inputs(1);
  const OpDef& op = op_named(c.target);
  Attributes attributes;
  if (op.find_attribute("adjoint")) attributes.set("adjoint", c.boolean("adjoint", false));
  auto* made = c.b.add_node(op, {c.in[0]}, attributes);
  for (size_t i = 0; i < made->results.size(); ++i) c.out.push_back(made->result(i));
}

void solve(OpContext& c) {
  c.expect_inputs(2);
  Attributes attributes{{"adjoint", c.boolean("adjoint", false)}};
  if (op_named(c.target).find_attribute("lower")) attributes.set("lower", c.boolean("lower", true));
  c.out = {c.b.add(c.target, c.in, attributes)};
}

/// x with its last two dims exchanged.
Value* turned(OpContext& c, Value* x) {
  std::vector<int64_t> permutation(x->type.shape.rank());
  for (size_t i = 0; i < permutation.size(); ++i) permutation[i] = static_cast<int64_t>(i);
  std::swap(permutation[permutation.size() - 1], permutation[permutation.size() - 2]);
  return transposed(x, permutation, c.b);
}

/// The gradient by a of L in a = L L^T: half of S + S^T for S = L^-T P(L^T dL) L^-1, where P keeps the lower triangle
/// and halves its diagonal (Murray, "Differentiation of the Cholesky decomposition", 2016).
void cholesky_gradient(OpContext& c) {
  c.expect_inputs(2);
  Value *lower = c.in[0], *dy = c.in[1];
  const size_t rank = c.rank(0);
  if (rank < 2) fail(ErrorKind::invalid_model, "", "takes matrices, found {} dims", rank);
  auto places = [&](size_t axis) { return counted(scalar_dim(lower, axis, c.b), c.b); };
  const Var row(c.b, expand_dims(places(rank - 2), {1}, c.b)), column(c.b, places(rank - 1));
  auto number = [&](double value) { return Var(c.b, c.b.scalar_like(lower, value)); };
  const Var below = select(column < row, number(1), number(0)),
            share = select(column.apply("equal", {row}), number(0.5), below);
  const Var kept = select(column.apply("less_equal", {row}), {c.b, dy}, number(0));
  const Var inner = Var(c.b, c.b.add("matmul", {lower, kept.value}, {{"transpose_a", true}})) * share;
  const Attributes adjoint{{"adjoint", true}};
  Value* left = c.b.add("triangular_solve", {lower, inner.value}, adjoint);                 // L^-T P
  Value* both = turned(c, c.b.add("triangular_solve", {lower, turned(c, left)}, adjoint));  // L^-T P L^-1
  c.out = {((Var(c.b, both) + Var(c.b, turned(c, both))) * 0.5).value};
}

/// Least squares by the normal equations, with l2 on their diagonal; of systems with fewer rows than columns the smallest solution.
void least_squares(OpContext& c) {
  c.expect_inputs(3);
  if (!c.boolean("fast", true)) c.refuse("`fast` must be set: solutions by orthogonal factors are not supported");
  Value *a = c.in[0], *b = c.in[1];
  const size_t rank = c.rank(0);
  if (rank < 2 || c.rank(1) != rank) fail(ErrorKind::invalid_model, "", "takes matrices and as many right sides");
  const Dim rows = a->type.shape.dims[rank - 2], columns = a->type.shape.dims[rank - 1];
  if (!rows.known() || !columns.known()) c.refuse("the sizes of the matrices must be known while importing");
  const bool tall = rows.size >= columns.size;
  const int64_t size = std::min(rows.size, columns.size);
  Value* square = c.b.add("matmul", {a, a}, {{tall ? "transpose_a" : "transpose_b", true}});
  std::vector<double> ones(static_cast<size_t>(size * size), 0);
  for (int64_t i = 0; i < size; ++i) ones[static_cast<size_t>(i * (size + 1))] = 1;
  Value* unit = cast_to(c.b.constant(Tensor::of<double>(kF64, {size, size}, ones)), a->type.dtype, c.b);
  Value* ridge = c.b.add("mul", {unit, cast_to(c.in[2], a->type.dtype, c.b)});
  Value* lower = c.b.add("cholesky", {c.b.add("add", {square, ridge})});
  const auto solved = [&](Value* right) {
    Value* half = c.b.add("triangular_solve", {lower, right});
    return c.b.add("triangular_solve", {lower, half}, {{"adjoint", true}});
  };
  const auto turned = [&](Value* right) { return c.b.add("matmul", {a, right}, {{"transpose_a", true}}); };
  c.out = {tall ? solved(turned(b)) : turned(solved(b))};
}

/// Three diagonals, each as long as the matrix, times a matrix; the last element above and the first below are unused.
void tridiagonal_product(OpContext& c) {
  c.expect_inputs(4);
  const size_t rank = c.rank(3);
  for (size_t i : {0, 1, 2})
    if (c.rank(i) != rank)
      fail(ErrorKind::invalid_model, "", "diagonal {} has {} dims, expected {}", i, c.rank(i), rank);
  const auto axis = static_cast<int64_t>(rank) - 2;
  const auto column = [&](size_t i) { return Var(c.b, turned(c, c.in[i])); };  // [.., 1, m] to [.., m, 1]
  const auto part = [&](Var x, int64_t from, int64_t to) {
    std::vector<int64_t> begin(rank, 0), end(rank, kToTheEnd);
    begin[static_cast<size_t>(axis)] = from, end[static_cast<size_t>(axis)] = to;
    return Var(c.b, c.b.add("slice", {x.value, c.b.ints(begin), c.b.ints(end)}));
  };
  const auto moved = [&](Var x, bool down) {
    std::vector<int64_t> pads(2 * rank, 0);
    pads[2 * static_cast<size_t>(axis) + (down ? 0 : 1)] = 1;
    return x.apply("pad", {{c.b, c.b.constant(Tensor::of<int64_t>(kI64, {static_cast<int64_t>(rank), 2}, pads))}});
  };
  const Var x(c.b, c.in[3]);
  const Var above = moved(part(column(0), 0, -1) * part(x, 1, kToTheEnd), false);
  const Var below = moved(part(column(2), 1, kToTheEnd) * part(x, 0, -1), true);
  c.out = {(column(1) * x + above + below).value};
}

void qr(OpContext& c) {
  c.expect_inputs(1);
  auto* made = c.b.add_node(op_named("qr"), {c.in[0]}, {{"full", c.boolean("full_matrices", false)}});
  c.out = {made->result(0), made->result(1)};
}

void svd(OpContext& c) {
  c.expect_inputs(1);
  auto* made = c.b.add_node(op_named("svd"), {c.in[0]}, {{"full", c.boolean("full_matrices", false)}});
  c.out = {made->result(0), made->result(1), made->result(2)};
  if (c.boolean("compute_uv", true)) return;
  for (size_t i : {1, 2}) c.out[i] = c.b.constant(Tensor::zeros(c.in[0]->type.dtype, {0}));
}

/// The first version gives one matrix: the values above the vectors.
void self_adjoint_eig(OpContext& c) {
  c.expect_inputs(1);
  auto* made = c.b.add_node(op_named("self_adjoint_eig"), {c.in[0]});
  c.out = {made->result(0), made->result(1)};
  if (c.node().op.ends_with("V2")) {
    if (!c.boolean("compute_v", true)) c.out[1] = c.b.constant(Tensor::zeros(c.in[0]->type.dtype, {0}));
    return;
  }
  const auto above = static_cast<int64_t>(c.rank(0)) - 2;
  c.out = {c.b.add("concat", {expand_dims(c.out[0], {above}, c.b), c.out[1]}, {{"axis", above}})};
}

constexpr Row kLinearAlgebraRows[] = {
    {"BatchCholesky", of_one_matrix, "cholesky", Trait::rivalled},
    {"BatchMatrixDeterminant", of_one_matrix, "determinant", Trait::rivalled},
    {"BatchMatrixInverse", of_one_matrix, "matrix_inverse", Trait::rivalled},
    {"BatchMatrixSolve", solve, "matrix_solve", Trait::rivalled},
    {"BatchMatrixTriangularSolve", solve, "triangular_solve", Trait::rivalled},
    {"BatchSelfAdjointEigV2", self_adjoint_eig, Trait::rivalled},
    {"BatchSvd", svd, Trait::rivalled},
    {"Cholesky", of_one_matrix, "cholesky", Trait::rivalled},
    {"CholeskyGrad", cholesky_gradient, Trait::rivalled},
    {"LogMatrixDeterminant", of_one_matrix, "log_determinant", Trait::rivalled},
    {"MatrixDeterminant", of_one_matrix, "determinant", Trait::rivalled},
    {"MatrixInverse", of_one_matrix, "matrix_inverse", Trait::rivalled},
    {"MatrixSolve", solve, "matrix_solve", Trait::rivalled},
    {"MatrixSolveLs", least_squares, Trait::rivalled},
    {"MatrixTriangularSolve", solve, "triangular_solve", Trait::rivalled},
    {"Qr", qr, Trait::rivalled},
    {"SelfAdjointEig", self_adjoint_eig, Trait::rivalled},
    {"SelfAdjointEigV2", self_adjoint_eig, Trait::rivalled},
    {"Svd", svd, Trait::rivalled},
    {"TridiagonalMatMul", tridiagonal_product},
};

}  // namespace

std::span<const Row> linear_algebra_rows() { return kLinearAlgebraRows; }

}  // namespace cairn::tensorflow
