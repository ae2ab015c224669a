"""mindspore.scipy: factors multiply back, solutions fit, and solvers converge, in graphs and outside."""

import numpy as np
import pytest
import mindspore as ms
import mindspore.nn as nn
import mindspore.scipy as msp
from mindspore import Tensor
from mindspore.scipy.ops import SolveTriangular

RANDOM = np.random.default_rng(5)


@pytest.fixture(params=["graph", "pynative"])
def mode(request):
    ms.set_context(mode=ms.GRAPH_MODE if request.param == "graph" else ms.PYNATIVE_MODE)
    yield request.param
    ms.set_context(mode=ms.PYNATIVE_MODE)


class Net(nn.Cell):
    def __init__(self, function):
        super().__init__()
        self.function = function

    def construct(self, *inputs):
        return self.function(*inputs)


def run(function, *arrays):
    made = Net(function)(*map(Tensor, arrays))
    return [each.asnumpy() for each in made] if isinstance(made, tuple) else made.asnumpy()


def positive(n, kind=np.float64):
    half = RANDOM.random((n, n))
    return (half @ half.T + np.eye(n)).astype(kind)


@pytest.mark.parametrize("kind, close", [(np.float32, 1e-3), (np.float64, 1e-9)])
def test_factors_multiply_back(kind, close, mode):
    a, x = positive(5, kind), (RANDOM.random((5, 5)) + np.eye(5)).astype(kind)
    lower, upper = (run(lambda a, lower=lower: msp.linalg.cholesky(a, lower=lower), a) for lower in (True, False))
    assert np.allclose(lower @ lower.T, a, atol=close) and np.allclose(upper, lower.T)
    assert np.allclose(run(msp.linalg.inv, x) @ x, np.eye(5), atol=close * 10)
    assert np.allclose(run(msp.linalg.det, x), np.linalg.det(x), atol=close)
    for each in (x, x[:3], x[:, :3]):
        permutation, low, up = run(msp.linalg.lu, each)
        assert np.allclose(permutation @ low @ up, each, atol=close) and np.allclose(low, np.tril(low)) and np.allclose(up, np.triu(up))
        low, up = run(lambda a: msp.linalg.lu(a, permute_l=True), each)
        assert np.allclose(low @ up, each, atol=close)


@pytest.mark.parametrize("lower", [True, False])
def test_eigenvectors_of_either_triangle(lower, mode):
    x = RANDOM.random((4, 4))
    whole = np.tril(x) + np.tril(x, -1).T if lower else np.triu(x) + np.triu(x, 1).T
    values, vectors = run(lambda a: msp.linalg.eigh(a, lower=lower), x)
    assert np.allclose(whole @ vectors, vectors * values) and np.all(np.diff(values) > 0)
    assert np.allclose(run(lambda a: msp.linalg.eigh(a, lower=lower, eigvals_only=True), x), values)
    x = x + 1j * np.triu(RANDOM.random((4, 4)), 1)
    x = np.triu(x) + np.triu(x, 1).conj().T
    values, vectors = (each.asnumpy() for each in msp.linalg.eigh(Tensor(x), lower=lower))
    assert np.allclose(x @ vectors, vectors * values)


@pytest.mark.parametrize("trans", [0, "T", "C"])
@pytest.mark.parametrize("lower, unit", [(True, False), (False, True)])
def test_triangles(trans, lower, unit, mode):
    a = RANDOM.random((4, 4)) + 2 * np.eye(4)
    triangle = np.tril(a) if lower else np.triu(a)
    if unit:
        np.fill_diagonal(triangle, 1)
    triangle = triangle if trans == 0 else triangle.T
    for b in (RANDOM.random(4), RANDOM.random((4, 2))):
        x = run(lambda a, b: msp.linalg.solve_triangular(a, b, trans, lower, unit), a, b)
        assert np.allclose(triangle @ x, b)
    slope = ms.ops.grad(lambda b: SolveTriangular(lower, unit, "N" if trans == 0 else trans)(Tensor(a), b).sum())(Tensor(np.ones(4)))
    assert np.allclose(slope.asnumpy(), np.linalg.inv(triangle).sum(0))


def test_solutions_by_factors(mode):
    a, b = positive(4), RANDOM.random((4, 2))
    for lower in (True, False):
        assert np.allclose(a @ run(lambda a, b: msp.linalg.cho_solve(msp.linalg.cho_factor(a, lower), b), a, b), b)
    for trans, each in ((0, a), (1, a.T)):
        found = msp.linalg.lu_solve(msp.linalg.lu_factor(Tensor(a)), Tensor(b), trans)
        assert np.allclose(each @ found.asnumpy(), b)
    assert msp.linalg.lu_factor(Tensor([[0.0, 1], [2, 3]]))[1].asnumpy().tolist() == [1, 1]


def test_blocks(mode):
    made = run(lambda *arrays: msp.linalg.block_diag(*arrays), np.ones((2, 3), np.float32), np.float32(5), np.ones((1, 2), np.float32))
    assert made.shape == (4, 6) and made.sum() == 13 and made[2, 3] == 5 and made[3].tolist() == [0, 0, 0, 0, 1, 1]
    assert msp.linalg.block_diag().shape == (1, 0)


@pytest.mark.parametrize("solver", ["cg", "bicgstab", "gmres"])
def test_solvers_converge(solver, mode):
    a, b = positive(6), RANDOM.random(6)
    solve = getattr(msp.sparse.linalg, solver)
    x = run(lambda a, b: solve(a, b, tol=1e-9)[0], a, b)
    assert np.allclose(a @ x, b, atol=1e-6)
    x, state = solve(lambda v: ms.ops.matmul(Tensor(a), v), Tensor(b), Tensor(np.ones(6)), tol=1e-9, M=Tensor(np.diag(1 / np.diag(a))))
    assert state.asnumpy() == 0 and np.allclose(a @ x.asnumpy(), b, atol=1e-6)
    assert solve(Tensor(a), Tensor(b), tol=1e-12, maxiter=1)[1].asnumpy() == (1 if solver != "gmres" else 0)


@pytest.mark.parametrize("sparse", [False, True])
def test_the_gradient_of_a_solution(sparse, mode):
    a, b = positive(4), RANDOM.random(4)
    matrix = ms.CSRTensor(Tensor([0, 4, 8, 12, 16]), Tensor([0, 1, 2, 3] * 4), Tensor(a.ravel()), (4, 4)) if sparse else Tensor(a)
    by_a, by_b = ms.ops.grad(lambda a, b: msp.sparse.linalg.cg(a, b, tol=1e-10)[0].sum(), (0, 1))(matrix, Tensor(b))
    wanted = np.linalg.solve(a.T, np.ones(4))
    assert np.allclose(by_b.asnumpy(), wanted)
    by_a = by_a.values.asnumpy().reshape(4, 4) if sparse else by_a.asnumpy()
    assert np.allclose(by_a, -np.outer(wanted, np.linalg.solve(a, b)))


def test_lengths(mode):
    from mindspore.scipy.utils import _safe_normalize

    unit, length = run(_safe_normalize, np.array([3.0, 4.0]))
    assert np.allclose(unit, [0.6, 0.8]) and length == 5
    assert np.array_equal(run(_safe_normalize, np.zeros(2))[0], [0, 0])


@pytest.mark.parametrize(
    "error, make",
    [
        (TypeError, lambda a: msp.linalg.eigh(a, lower=1.0)),
        (TypeError, lambda a: msp.linalg.inv(a.astype(ms.float16))),
        (TypeError, lambda a: msp.linalg.solve_triangular(a, a.astype(ms.float32))),
        (ValueError, lambda a: msp.linalg.eigh(a, a)),
        (ValueError, lambda a: msp.linalg.det(a[:2])),
        (ValueError, lambda a: msp.linalg.solve_triangular(a, a, trans="X")),
        (ValueError, lambda a: msp.sparse.linalg.cg(a[:2], a[0])),
        (TypeError, lambda a: msp.sparse.linalg.cg(a, a[0], tol="small")),
    ],
)
def test_refusals(error, make):
    with pytest.raises(error):
        make(Tensor(np.eye(3)))
