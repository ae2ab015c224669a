"""Functions of linear algebra."""

import numpy as np
from cairn.ms import core
from cairn.ms.numerics import basic, linear, reductions
from mindspore.ops import operations as P


def cholesky_inverse(input_x, upper=False):
    """Inverse of a matrix of that Cholesky factor."""
    return P.CholeskyInverse(upper)(input_x)


def cholesky_solve(input, input2, upper=False):
    """x with a x = input, of a's Cholesky factor."""
    return P.CholeskySolve(upper)(input, input2)


def matrix_exp(x):
    """Exponential of matrices."""
    return P.MatrixExp()(x)


def matrix_power(input, n):
    """input to the n."""
    return P.MatrixPower(n)(input)


def matrix_solve(matrix, rhs, adjoint=False):
    """x with matrix x = rhs."""
    return P.MatrixSolve(adjoint)(matrix, rhs)


def lstsq(input, A):
    """Least squares."""
    return P.Lstsq()(input, A)


def lu_solve(b, LU_data, LU_pivots):
    """x with a x = b, of a's packed triangles."""
    return P.LuSolve()(b, LU_data, LU_pivots)


def lu_unpack(LU_data, LU_pivots, unpack_data=True, unpack_pivots=True):
    """(permutation, lower, upper) of packed triangles."""
    return P.LuUnpack(unpack_data, unpack_pivots)(LU_data, LU_pivots)


def geqrf(input):
    """Reflections of a QR factorisation."""
    return P.Geqrf()(input)


def orgqr(x, tau):
    """Orthonormal columns of reflections."""
    return P.Orgqr()(x, tau)


def ormqr(input, tau, other, left=True, transpose=False):
    """Reflections times a matrix."""
    return P.Ormqr(left, transpose)(input, tau, other)


def eig(A):
    """Eigenvalues and eigenvectors."""
    return P.Eig(compute_v=True)(A)


def eigvals(A):
    """Eigenvalues."""
    return P.Eig()(A)[0]


def qr(input, mode="reduced"):
    """Orthonormal columns and a triangle."""
    if mode not in ("reduced", "complete"):
        raise TypeError(f"For 'qr', the argument 'mode' must be 'reduced' or 'complete', but got {mode}.")
    return P.Qr(mode == "complete")(input)


def pinv(x, *, atol=None, rtol=None, hermitian=False):
    """Pseudo-inverse."""
    return linear.pseudo_inverse(x)


def logdet(input):
    """Logarithm of determinants."""
    return core.log(P.MatrixDeterminant()(input))


def slogdet(input):
    """(sign, logarithm) of determinants."""
    return P.LogMatrixDeterminant()(input)


def renorm(input_x, p, dim, maxnorm):
    """Parts of a norm of at most maxnorm."""
    return P.Renorm(p, dim, maxnorm)(input_x)


def einsum(equation, *operands):
    """Sum of products by the labels of axes."""
    if not isinstance(equation, str):
        raise TypeError(f"For 'einsum', equation must be a str, but got {type(equation).__name__}.")
    if len(operands) == 1 and isinstance(operands[0], (tuple, list)):
        operands = operands[0]
    return linear.einsum(equation, operands)


def quantile(input, q, axis=None, keepdims=False):
    """Quantiles along an axis."""
    return P.Quantile(axis, keepdims)(input, q)


def batch_dot(x1, x2, axes=None):
    """Dot products of samples along one axis of each."""
    if axes is None:
        axes = (len(x1.shape) - 1, len(x2.shape) - 2 if len(x2.shape) > 2 else len(x2.shape) - 1)
    first, second = (axes, axes) if isinstance(axes, int) else axes
    first, second = first % len(x1.shape), second % len(x2.shape)
    a, b = basic.moved(x1, first, -1), basic.moved(x2, second, 1)
    rest = a.shape[1:-1] + b.shape[2:]
    a = basic.reshape(a, (a.shape[0], -1, a.shape[-1]))
    b = basic.reshape(b, (b.shape[0], b.shape[1], -1))
    return basic.reshape(core.matmul(a, b), (a.shape[0], *(rest or (1,))))


def vecdot(x, y, *, axis=-1):
    """Dot products along an axis."""
    return reductions.total(core.mul(x, y), axis)


def block_diag(*inputs):
    """Matrices along one diagonal."""
    parts = [basic.reshape(x, (1,) * (2 - len(x.shape)) + tuple(x.shape)) for x in inputs]
    width, before, rows = sum(x.shape[1] for x in parts), 0, []
    for x in parts:
        rows.append(core.pad(x, basic.ints([(0, 0), (before, width - before - x.shape[1])])))
        before += x.shape[1]
    return core.concat(*rows, axis=0)


def matrix_diag(x, k=0, num_rows=-1, num_cols=-1, padding_value=0, align="RIGHT_LEFT"):
    """Matrices of packed diagonals."""
    fill = padding_value if hasattr(padding_value, "shape") else basic.number(padding_value, x)
    return P.MatrixDiagV3(align)(x, k, num_rows, num_cols, fill)


def matrix_diag_part(x, k=0, padding_value=0, align="RIGHT_LEFT"):
    """Packed diagonals of matrices."""
    fill = padding_value if hasattr(padding_value, "shape") else basic.number(padding_value, x)
    return P.MatrixDiagPartV3(align)(x, k, fill)


def matrix_set_diag(x, diagonal, k=0, align="RIGHT_LEFT"):
    """Matrices with other diagonals."""
    return P.MatrixSetDiagV3(align)(x, diagonal, k)


def cov(input, *, correction=1, fweights=None, aweights=None):
    """Covariances of the rows, whose columns are observations."""
    x = basic.reshape(input, (1, -1)) if len(input.shape) < 2 else input
    x = basic.cast(x, np.float32) if not basic.is_float(x) else x
    weights = np.ones(x.shape[1])
    for each in (fweights, aweights):
        weights = weights * (np.ones(1) if each is None else each.asnumpy())
    total = weights.sum()
    norm = total - correction * (1 if aweights is None else (weights * aweights.asnumpy()).sum() / total)
    weights = basic.number(weights, x)
    mean = core.div(reductions.total(core.mul(x, weights), 1, True), basic.number(total, x))
    apart = core.sub(x, mean)
    made = core.div(core.matmul(core.mul(apart, weights), linear.transposed(apart)), basic.number(max(norm, 0), x))
    return basic.reshape(made, ()) if len(input.shape) < 2 else made
