// TensorFlow's inverses, factorisations and solutions of systems, on the matrices in the last two dims.
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
  auto places = [&](size_t axis) {
    Value* size = folded(c.b.add("reshape", {dim_of(lower, axis, c.b), c.b.ints({})}), c.b);
    Value *zero = c.b.constant(Tensor::scalar_i64(0)), *one = c.b.constant(Tensor::scalar_i64(1));
    return c.b.add("iota", {zero, size, one}, {{"dtype", kI64}});
  };
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
    {"MatrixTriangularSolve", solve, "triangular_solve", Trait::rivalled},
    {"Qr", qr, Trait::rivalled},
    {"SelfAdjointEig", self_adjoint_eig, Trait::rivalled},
    {"SelfAdjointEigV2", self_adjoint_eig, Trait::rivalled},
    {"Svd", svd, Trait::rivalled},
};

}  // namespace

std::span<const Row> linear_algebra_rows() { return kLinearAlgebraRows; }

}  // namespace cairn::tensorflow
