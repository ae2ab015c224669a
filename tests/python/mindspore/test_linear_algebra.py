"""Primitives of linear algebra against NumPy and published examples."""

import numpy as np
import pytest
import mindspore as ms
from mindspore import Tensor, ops
import mindspore.ops.operations as P
from mindspore.ops.operations.math_ops import MatrixPower, MatrixExp, LuSolve
from mindspore.ops.operations.array_ops import MatrixDiagV3, MatrixDiagPartV3, MatrixSetDiagV3

rng = np.random.RandomState(0)
A = rng.randn(4, 4).astype(np.float32)
S = (A @ A.T + 4 * np.eye(4)).astype(np.float32)
B = rng.randn(4, 2).astype(np.float32)


def test_cholesky_family():
    l = P.Cholesky()(Tensor(S))
    assert np.allclose(l.asnumpy(), np.linalg.cholesky(S), atol=1e-4)
    assert np.allclose(P.CholeskyInverse()(l).asnumpy(), np.linalg.inv(S), atol=1e-4)
    assert np.allclose(P.CholeskySolve()(Tensor(B), l).asnumpy(), np.linalg.solve(S, B), atol=1e-4)
    assert np.allclose(
        ops.cholesky_solve(Tensor(B), Tensor(np.linalg.cholesky(S).T.copy()), True).asnumpy(),
        np.linalg.solve(S, B),
        atol=1e-4,
    )


@pytest.mark.parametrize("n", [0, 1, 2, 3, 5, -1, -2])
def test_power(n):
    assert np.allclose(MatrixPower(n)(Tensor(S / 5)).asnumpy(), np.linalg.matrix_power(S / 5, n), rtol=1e-2, atol=1e-3)


def test_exp():
    x = Tensor([[0.0, 1.0], [-1.0, 0.0]], ms.float32)
    assert np.allclose(MatrixExp()(x).asnumpy(), [[np.cos(1), np.sin(1)], [-np.sin(1), np.cos(1)]], atol=1e-4)


def test_lu():
    x = Tensor([[2.5, 3.1, 3.5], [4.7, 1.9, 0.2], [1.1, 3.6, 2.0]], ms.float32)
    lu, piv = P.Lu()(x)
    l = np.tril(lu.asnumpy(), -1) + np.eye(3)
    u = np.triu(lu.asnumpy())
    assert np.allclose((l @ u), x.asnumpy()[piv.asnumpy()], atol=1e-4)
    LU_data = Tensor(np.array([[0.3806, 0.4872, 0.5536], [0.1287, 0.6508, -0.2396], [0.2583, 0.5239, 0.6902]]), ms.float32)
    LU_pivots = Tensor(np.array([1, 3, 3]), ms.int32)
    p, L, U = ops.lu_unpack(LU_data, LU_pivots)
    assert np.allclose(p.asnumpy(), [[1, 0, 0], [0, 0, 1], [0, 1, 0]])
    assert np.allclose(L.asnumpy(), [[1, 0, 0], [0.1287, 1, 0], [0.2583, 0.5239, 1]])
    b = Tensor([[1.0], [3.0], [3.0]], ms.float32)
    lud = Tensor([[2.0, 1.0, 1.0], [0.5, 1.0, 1.5], [0.5, 0.0, 2.5]], ms.float32)
    pivots = Tensor([2, 2, 3], ms.int32)
    y = LuSolve()(b, lud, pivots)
    assert np.allclose(y.asnumpy(), [[1.9000001], [-1.4000001], [0.6]], atol=1e-4)


def test_geqrf_orgqr_ormqr():
    x = Tensor([[-2.0, -1.0], [1.0, 2.0]], ms.float32)
    y, tau = P.Geqrf()(x)
    assert np.allclose(y.asnumpy(), [[2.236068, 1.7888544], [-0.236068, 1.3416407]], atol=1e-4)
    assert np.allclose(tau.asnumpy(), [1.8944271, 0.0], atol=1e-4)
    x = Tensor(np.array([[-114.6, 10.9, 1.1], [-0.304, 38.07, 69.38], [-0.45, -0.17, 62.0]]), ms.float32)
    tau = Tensor(np.array([1.55, 1.94, 0.0]), ms.float32)
    q = ops.orgqr(x, tau)
    assert np.allclose(
        q.asnumpy(),
        [[-0.54999995, -0.2128925, 0.8137956], [0.47119996, -0.8752807, 0.08240613], [0.69749993, 0.42560163, 0.57772595]],
        atol=1e-3,
    )


def test_svd_eigh_eig():
    w, v = P.SelfAdjointEig()(Tensor(S))
    assert np.allclose(w.asnumpy(), np.linalg.eigvalsh(S), rtol=1e-3)
    s, u, v = ops.svd(Tensor(A))
    assert np.allclose((u.asnumpy() * s.asnumpy()) @ v.asnumpy().T, A, atol=1e-4)
    q, r = P.Qr()(Tensor(A))
    assert np.allclose(q.asnumpy() @ r.asnumpy(), A, atol=1e-4)
    val, vec = P.Eig(compute_v=True)(Tensor(np.array([[1.0, 0.0], [0.0, 2.0]]), ms.float32))
    assert val.dtype == ms.complex64


def test_triangular_ls():
    t = np.tril(S)
    out = P.MatrixTriangularSolve(lower=True, adjoint=False)(Tensor(t), Tensor(B))
    assert np.allclose(out.asnumpy(), np.linalg.solve(t, B), atol=1e-4)
    m, b = rng.randn(6, 3).astype(np.float32), rng.randn(6, 2).astype(np.float32)
    out = P.Lstsq()(Tensor(m), Tensor(b))
    assert np.allclose(out.asnumpy(), np.linalg.lstsq(m, b, rcond=None)[0], atol=1e-3)
    out = P.MatrixSolve()(Tensor(S), Tensor(B))
    assert np.allclose(out.asnumpy(), np.linalg.solve(S, B), atol=1e-4)
    d = Tensor(np.stack([np.r_[np.diag(S, 1), 0], np.diag(S), np.r_[0, np.diag(S, -1)]]).astype(np.float32))
    tri = np.diag(np.diag(S)) + np.diag(np.diag(S, 1), 1) + np.diag(np.diag(S, -1), -1)
    assert np.allclose(P.TridiagonalSolve()(d, Tensor(B)).asnumpy(), np.linalg.solve(tri, B), atol=1e-3)
    out = P.TridiagonalMatMul()(
        Tensor(d.asnumpy()[0][None]), Tensor(d.asnumpy()[1][None]), Tensor(d.asnumpy()[2][None]), Tensor(B)
    )
    assert np.allclose(out.asnumpy(), tri @ B, atol=1e-3)


def test_matrix_diag():
    x = Tensor(np.array([[8, 9, 0], [1, 2, 3], [0, 4, 5]]), ms.float32)
    out = MatrixDiagV3(align="LEFT_RIGHT")(
        x, Tensor(np.array([-1, 1]), ms.int32), Tensor(3, ms.int32), Tensor(3, ms.int32), Tensor(11, ms.float32)
    )
    assert out.asnumpy().tolist() == [[1, 8, 11], [4, 2, 9], [11, 5, 3]]
    x = Tensor(
        np.array([[[1, 2, 3, 4], [5, 6, 7, 8], [9, 8, 7, 6]], [[5, 4, 3, 2], [1, 2, 3, 4], [5, 6, 7, 8]]]), ms.float32
    )
    out = MatrixDiagPartV3(align="RIGHT_LEFT")(x, Tensor(np.array([0, 2]), ms.int32), Tensor(0, ms.float32))
    assert out.asnumpy().tolist() == [[[0, 3, 8], [2, 7, 6], [1, 6, 7]], [[0, 3, 4], [4, 3, 8], [5, 2, 7]]]
    x = Tensor(np.full((2, 3, 4), 7.0), ms.float32)
    d = Tensor(
        np.array([[[0, 9, 1], [6, 5, 8], [1, 2, 3], [4, 5, 0]], [[0, 1, 2], [5, 6, 4], [6, 1, 2], [3, 4, 0]]]), ms.float32
    )
    out = MatrixSetDiagV3(align="RIGHT_LEFT")(x, d, Tensor(np.array([-1, 2]), ms.int32))
    assert out.asnumpy().tolist() == [[[1, 6, 9, 7], [4, 2, 5, 1], [7, 5, 3, 8]], [[6, 5, 1, 7], [3, 1, 6, 2], [7, 4, 2, 4]]]
    with pytest.raises(ValueError):
        MatrixDiagV3(align="UP")


def test_renorm_nuclear_quantile():
    x = Tensor([[1, 1, 1], [2, 2, 2], [3, 3, 3]], ms.float32)
    y = ops.renorm(x, p=1, dim=0, maxnorm=5.0)
    assert np.allclose(y.asnumpy(), [[1, 1, 1], [1.6666, 1.6666, 1.6666], [1.6667, 1.6667, 1.6667]], atol=1e-3)
    assert np.allclose(P.NuclearNorm()(Tensor(A)).asnumpy(), np.linalg.norm(A, "nuc"), rtol=1e-3)
    q = P.Quantile(dim=0)(Tensor(A), Tensor(0.3, ms.float32))
    assert np.allclose(q.asnumpy(), np.quantile(A, 0.3, 0), atol=1e-4)


@pytest.mark.parametrize(
    "eq,shapes",
    [
        ("ij,jk->ik", [(2, 3), (3, 4)]),
        ("bij,bjk->bik", [(2, 3, 4), (2, 4, 5)]),
        ("ii->i", [(3, 3)]),
        ("ij->ji", [(2, 3)]),
        ("ij->", [(2, 3)]),
        ("i,j->ij", [(2,), (3,)]),
        ("...ij,...jk->...ik", [(2, 3, 4), (2, 4, 5)]),
        ("ij,jk,kl->il", [(2, 3), (3, 4), (4, 2)]),
        ("bhid,bhjd->bhij", [(2, 2, 3, 4), (2, 2, 5, 4)]),
        ("ij,ij->i", [(2, 3), (2, 3)]),
    ],
)
def test_einsum(eq, shapes):
    xs = [rng.randn(*s).astype(np.float32) for s in shapes]
    assert np.allclose(P.Einsum(eq)([Tensor(x) for x in xs]).asnumpy(), np.einsum(eq, *xs), atol=1e-4)
    assert np.allclose(ops.einsum(eq, *[Tensor(x) for x in xs]).asnumpy(), np.einsum(eq, *xs), atol=1e-4)
    g = ops.grad(lambda x: ops.einsum(eq, x, *[Tensor(y) for y in xs[1:]]))(Tensor(xs[0]))
    assert g.shape == xs[0].shape
