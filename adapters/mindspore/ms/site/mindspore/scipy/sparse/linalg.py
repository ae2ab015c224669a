"""Krylov solvers in the manner of scipy.sparse.linalg; each returns (x, 0 or how many steps did not suffice)."""

import functools

import numpy as np
from cairn.ms import core
from cairn.ms.numerics import linear, sparse
from mindspore import CSRTensor, Tensor
from mindspore.common import dtype as mstype
from mindspore.ops import operations as P
from mindspore.scipy.utils import float_tensor, number

__all__ = ["bicgstab", "cg", "gmres"]


def _product(A, name):
    """v -> A v of a matrix, a CSRTensor or a function; None is the identity."""
    if A is None:
        return lambda v: v
    if isinstance(A, CSRTensor):
        return lambda v: P.Reshape()(A.mv(P.Reshape()(v, (-1, 1))), tuple(v.shape))
    if isinstance(A, Tensor):
        matrix = float_tensor(A, name)
        if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1]:
            raise ValueError(f"For '{name}', the matrix needs to be square, but its shape is {tuple(matrix.shape)}")
        return lambda v: P.Reshape()(P.MatMul()(matrix, P.Reshape()(v, (-1, 1))), tuple(v.shape))
    if not callable(A):
        raise TypeError(f"For '{name}', the matrix needs to be a Tensor, a CSRTensor or a function, not {type(A).__name__}")
    return A


def _start(name, A, b, x0, tol, atol, maxiter, M):
    b = float_tensor(b, name)
    if b.ndim not in (1, 2) or b.ndim == 2 and b.shape[1] != 1:
        raise ValueError(f"For '{name}', b needs the shape (n,) or (n, 1), not {tuple(b.shape)}")
    for each, value in (("tol", tol), ("atol", atol)):
        if isinstance(value, bool) or not isinstance(value, (int, float)):
            raise TypeError(f"For '{name}', {each} needs to be a number, not {type(value).__name__}")
    if maxiter is not None and (isinstance(maxiter, bool) or not isinstance(maxiter, int)):
        raise TypeError(f"For '{name}', maxiter needs to be an int, not {type(maxiter).__name__}")
    x = P.ZerosLike()(b) if x0 is None else float_tensor(x0, name)
    if x.shape != b.shape or x.dtype != b.dtype:
        raise ValueError(f"For '{name}', x0 needs the shape and dtype of b, not {tuple(x.shape)} {x.dtype}")
    size = int(np.prod(b.shape))
    return _product(A, name), _product(M, name), b, x, 10 * size if maxiter is None else maxiter, max(tol * _norm(b), atol)


def _state(r, least, steps):
    """0 where the residual is small, else the number of steps."""
    return Tensor(steps if _norm(r) > least else 0, mstype.int32)


def _implicit(solver):
    """The solver with the gradient that the system itself gives: by b the solution of the transposed one."""

    @functools.wraps(solver)
    def solve(A, b, x0=None, **options):
        if not isinstance(A, (Tensor, CSRTensor)) or not isinstance(b, Tensor):
            return solver(A, b, x0, **options)

        def again(values):
            return CSRTensor(A.indptr, A.indices, values, A.shape) if isinstance(A, CSRTensor) else values

        def slopes(given, results, slopes):
            matrix = given[0] if isinstance(A, Tensor) else again(given[0]).to_coo().to_dense()
            by_b, x = solver(linear.transposed(matrix), slopes[0], **options)[0], results[0]
            column, row = P.Reshape()(by_b, (-1, 1)), P.Reshape()(x, (1, -1))
            by_a = -P.MatMul()(column, row)
            if isinstance(A, CSRTensor):
                by_a = core.gather_nd(by_a, sparse.paired(sparse.rows_of(A.indptr, A.indices.shape[0]), A.indices))
            return by_a, by_b

        values = A.values if isinstance(A, CSRTensor) else A
        return core.custom(lambda values, b: solver(again(values), b, x0, **options), slopes, (values, b))

    return solve


def _dot(x, y):
    return P.ReduceSum()(x * y)


def _norm(x):
    return number(P.Sqrt()(_dot(x, x)))


@_implicit
def cg(A, b, x0=None, *, tol=1e-5, atol=0.0, maxiter=None, M=None):
    """Conjugate gradients, for symmetric positive definite matrices."""
    apply, precondition, b, x, steps, least = _start("cg", A, b, x0, tol, atol, maxiter, M)
    r = b - apply(x)
    z = p = precondition(r)
    gamma = _dot(r, z)
    for _ in range(steps):
        if _norm(r) <= least:
            break
        product = apply(p)
        alpha = gamma / _dot(p, product)
        x, r = x + alpha * p, r - alpha * product
        z = precondition(r)
        gamma, before = _dot(r, z), gamma
        p = z + (gamma / before) * p
    return x, _state(r, least, steps)


@_implicit
def bicgstab(A, b, x0=None, *, tol=1e-5, atol=0.0, maxiter=None, M=None):
    """The stabilised method of biconjugate gradients."""
    apply, precondition, b, x, steps, least = _start("bicgstab", A, b, x0, tol, atol, maxiter, M)
    r = shadow = p = b - apply(x)
    rho = _dot(shadow, r)
    for _ in range(steps):
        if _norm(r) <= least:
            break
        direction = precondition(p)
        v = apply(direction)
        alpha = rho / _dot(shadow, v)
        s = r - alpha * v
        if _norm(s) <= least:
            x, r = x + alpha * direction, s
            break
        turned = precondition(s)
        t = apply(turned)
        omega = _dot(t, s) / _dot(t, t)
        x, r = x + alpha * direction + omega * turned, s - omega * t
        rho, before = _dot(shadow, r), rho
        p = r + (rho / before) * (alpha / omega) * (p - omega * v)
    return x, _state(r, least, steps)


@_implicit
def gmres(A, b, x0=None, *, tol=1e-5, atol=0.0, restart=20, maxiter=None, M=None, solve_method="batched"):
    """The method of least residuals, started again after `restart` directions."""
    if solve_method not in ("batched", "incremental"):
        raise ValueError(f"For 'gmres', solve_method needs to be 'batched' or 'incremental', not {solve_method!r}")
    apply, precondition, b, x, steps, least = _start("gmres", A, b, x0, tol, atol, maxiter, M)
    restart = min(restart, int(np.prod(b.shape)))
    for _ in range(steps):
        r = precondition(b - apply(x))
        length = _norm(r)
        if _norm(b - apply(x)) <= least or length == 0:
            break
        basis, h = [r / length], np.zeros((restart + 1, restart))
        count = restart
        for k in range(restart):
            v = precondition(apply(basis[k]))
            for _ in range(2):  # a second time against rounding
                for i, each in enumerate(basis):
                    part = _dot(each, v)
                    h[i, k] += number(part)
                    v = v - part * each
            h[k + 1, k] = _norm(v)
            if h[k + 1, k] <= 1e-14 * length:
                count = k + 1
                break
            basis.append(v / float(h[k + 1, k]))
        target = np.zeros(count + 1)
        target[0] = length
        weights = np.linalg.lstsq(h[: count + 1, :count], target, rcond=None)[0]
        for weight, each in zip(weights, basis):
            x = x + float(weight) * each
    return x, _state(b - apply(x), least, steps)
