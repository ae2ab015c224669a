"""Batches of matrices give NumPy's factors and solutions in f64, and matrices without any give a sentence."""

import cairn
import numpy as np
import pytest

RANDOM = np.random.default_rng(0)
ANY = RANDOM.standard_normal((5, 1, 130, 130))
POSITIVE = ANY @ ANY.swapaxes(-1, -2) + np.eye(130)
RIGHT = RANDOM.standard_normal((2, 130, 7))
TALL = RANDOM.standard_normal((3, 140, 40))


def close(made, expected):
    made = made if isinstance(made, (tuple, list)) else [made]
    for a, b in zip(made, expected if isinstance(expected, (tuple, list)) else [expected], strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-10 * np.abs(b).max())


def test_systems_and_factors():
    lower = np.linalg.cholesky(POSITIVE)
    close(cairn.ops.cholesky(POSITIVE), lower)
    close(cairn.ops.matrix_inverse(ANY), np.linalg.inv(ANY))
    close(cairn.ops.matrix_solve(ANY, RIGHT), np.linalg.solve(ANY, RIGHT[None]))
    close(cairn.ops.matrix_solve(ANY, RIGHT, adjoint=True), np.linalg.solve(ANY.swapaxes(-1, -2), RIGHT[None]))
    close(cairn.ops.triangular_solve(POSITIVE, RIGHT), np.linalg.solve(np.tril(POSITIVE), RIGHT[None]))
    close(cairn.ops.triangular_solve(lower, RIGHT, adjoint=True), np.linalg.solve(lower.swapaxes(-1, -2), RIGHT[None]))
    close(cairn.ops.determinant(ANY / 10), np.linalg.det(ANY / 10))
    close(cairn.ops.log_determinant(ANY), tuple(np.linalg.slogdet(ANY)))
    close(cairn.ops.qr(TALL), tuple(np.linalg.qr(TALL)))


def test_factors_with_free_signs():
    s, u, v = cairn.ops.svd(TALL)
    close(s, np.linalg.svd(TALL, compute_uv=False))
    close(u * s[:, None] @ v.swapaxes(-1, -2), TALL)
    values, vectors = cairn.ops.self_adjoint_eig(POSITIVE)
    close(values, np.linalg.eigvalsh(POSITIVE))
    close(vectors * values[..., None, :] @ vectors.swapaxes(-1, -2), POSITIVE)


@pytest.mark.parametrize("op, sentence", [("matrix_inverse", "not invertible"), ("cholesky", "not positive definite")])
def test_one_bad_matrix_of_a_batch_gives_a_sentence(op, sentence):
    matrices = POSITIVE.copy()
    matrices[3] = -np.ones((130, 130))
    with pytest.raises(cairn.Error, match=sentence):
        getattr(cairn.ops, op)(matrices)
