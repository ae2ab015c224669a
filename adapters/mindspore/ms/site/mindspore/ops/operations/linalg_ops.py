"""Primitives of linear algebra."""

import numpy as np
from cairn.ms import core
from cairn.ms.numerics import basic, linear, reductions
from mindspore.ops.operations._form import REQUIRED, host, primitive, tensor

CholeskyInverse = primitive(
    "CholeskyInverse",
    lambda self, x: linear.cholesky_solve(core.identity(linear.identity_like(tensor(x, "CholeskyInverse", "float"))), x, self.upper),
    "Inverse of a matrix of that Cholesky factor.", upper=False,
)  # fmt: skip
CholeskySolve = primitive(
    "CholeskySolve", lambda self, b, factor: linear.cholesky_solve(b, factor, self.upper), "x with a x = b, of a's Cholesky factor.", upper=False
)  # fmt: skip
MatrixExp = primitive(
    "MatrixExp", lambda self, x: linear.exponential(tensor(x, "MatrixExp", "float")), "Exponential of matrices."
)
MatrixPower = primitive(
    "MatrixPower", lambda self, x: linear.power(tensor(x, "MatrixPower", "float"), self.n), "x to the n.", n=REQUIRED
)
MatrixTriangularSolve = primitive(
    "MatrixTriangularSolve", lambda self, a, b: core.triangular_solve(a, b, lower=self.lower, adjoint=self.adjoint),
    "x with t x = b.", lower=True, adjoint=False,
)  # fmt: skip


def _least_squares(self, matrix, rhs, l2=0.0):
    """x that makes |matrix x - rhs|^2 + l2 |x|^2 least."""
    l2 = float(l2.asnumpy()) if hasattr(l2, "asnumpy") else l2
    flat = len(rhs.shape) == len(matrix.shape) - 1
    rhs = basic.expand(rhs, -1) if flat else rhs
    if l2:
        turned = linear.transposed(matrix)
        square = core.add(core.matmul(turned, matrix), basic.number(np.eye(matrix.shape[-1]) * l2, matrix))
        out = core.matrix_solve(square, core.matmul(turned, rhs))
    else:
        out = core.matmul(linear.pseudo_inverse(matrix), rhs)
    return basic.at(out, -1, 0) if flat and not isinstance(self, Lstsq) else out


MatrixSolveLs = primitive("MatrixSolveLs", _least_squares, "Least squares.", fast=True)
Lstsq = primitive("Lstsq", lambda self, matrix, rhs: _least_squares(self, matrix, rhs, self.l2_regularizer), "Least squares.",
                  fast=True, l2_regularizer=0.0)  # fmt: skip


def _nuclear_norm(self, x):
    rank = len(tensor(x, "NuclearNorm", "float").shape)
    axes = basic.axes_of(self.dim, rank)
    if len(axes) != 2:
        raise ValueError(f"For 'NuclearNorm', the length of 'dim' must be 2, but got {self.dim}.")
    order = [a for a in range(rank) if a not in axes] + axes
    total = reductions.total(core.svd(core.transpose(x, permutation=order), full=False)[0], -1)
    return basic.reshape(total, [1 if a in axes else s for a, s in enumerate(x.shape)]) if self.keepdim else total


NuclearNorm = primitive("NuclearNorm", _nuclear_norm, "Sum of singular values.", dim=None, keepdim=False)


def _lu_solve(self, b, lu, pivots):
    order = linear.permutation(np.asarray(pivots.asnumpy()))
    lower = linear.solve_triangle(lu, core.gather(b, order, axis=0), unit=True)
    return core.triangular_solve(lu, lower, lower=False)


def _lu_unpack(self, lu, pivots):
    lower, upper = linear.lu_parts(lu)

    def matrix(each):
        full = np.concatenate([each, np.arange(len(each) + 1, lu.shape[-2] + 1, dtype=each.dtype)])
        return np.eye(lu.shape[-2], dtype=basic.nptype(lu))[linear.permutation(full)].T

    return core.identity(linear.batched(matrix, pivots.asnumpy(), rank=1)), lower, upper


LuSolve = primitive("LuSolve", _lu_solve, "x with a x = b, of a's packed triangles.")
LuUnpack = primitive(
    "LuUnpack", _lu_unpack, "(permutation, lower, upper) of packed triangles.", unpack_data=True, unpack_pivots=True
)
Lu = host(
    "Lu", lambda self, x: (lambda lu, order: (lu, order.astype(basic.as_np(self.output_idx_type))))(*linear.batched(linear.lu_factors, x)),
    "Packed triangles and the order of the rows.", output_idx_type=np.int32,
)  # fmt: skip
Geqrf = host("Geqrf", lambda self, x: linear.batched(linear.householder, x), "Reflections of a QR factorisation.")
Orgqr = host(
    "Orgqr", lambda self, x, tau: linear.batched(lambda a, t: linear.reflections(a, t)[:, : a.shape[1]], x, tau, rank=(2, 1)),
    "Orthonormal columns of reflections.",
)  # fmt: skip


def _ormqr(self, x, tau, other):
    def product(a, t, b):
        q = linear.reflections(a, t)
        q = q.T if self.transpose else q
        return q @ b if self.left else b @ q

    return linear.batched(product, x, tau, other, rank=(2, 1, 2))


Ormqr = host("Ormqr", _ormqr, "Reflections times a matrix.", left=True, transpose=False)


def _complex(x):
    return x.astype(
        np.complex128 if x.dtype.itemsize == 8 and x.dtype.kind == "f" or x.dtype == np.complex128 else np.complex64
    )


def _eig(self, x):
    values, vectors = np.linalg.eig(x)
    return (
        (_complex(values), _complex(vectors))
        if self.compute_v
        else (_complex(values), np.zeros(x.shape[:-2], _complex(values).dtype))
    )


def _self_adjoint(self, x):
    lower = getattr(self, "lower", True)
    if basic.nptype(tensor(x, self.name, "float")).kind == "c":
        values, vectors = map(core.identity, np.linalg.eigh(x.asnumpy(), "L" if lower else "U"))
    else:
        values, vectors = core.self_adjoint_eig(x if lower else linear.transposed(x))
    return (values, vectors) if getattr(self, "compute_v", getattr(self, "compute_eigenvectors", True)) else values


Eig = host("Eig", _eig, "Eigenvalues and eigenvectors.", compute_v=False)
Eigh = primitive(
    "Eigh", _self_adjoint, "Eigenvalues and eigenvectors of symmetric matrices.", compute_eigenvectors=True, lower=True
)
SelfAdjointEig = primitive(
    "SelfAdjointEig", _self_adjoint, "Eigenvalues and eigenvectors of symmetric matrices.", compute_v=True
)


def _logarithm(self, x):
    values, vectors = np.linalg.eig(x)
    return (vectors * np.log(values.astype(np.complex128))[..., None, :] @ np.linalg.inv(vectors)).astype(x.dtype)


MatrixLogarithm = host("MatrixLogarithm", _logarithm, "Logarithm of complex matrices.")


def _tridiagonal_product(self, above, main, below, rhs):
    """The diagonals [..., 1, n] of a matrix times rhs."""
    lines = [basic.expand(basic.at(each, -2, 0), -1) for each in (above, main, below)]
    rank = len(rhs.shape)
    zeros = [(0, 0)] * (rank - 2)
    count = rhs.shape[-2]
    up = core.pad(basic.part(rhs, -2, 1, count), basic.ints([*zeros, (0, 1), (0, 0)]))
    down = core.pad(basic.part(rhs, -2, 0, count - 1), basic.ints([*zeros, (1, 0), (0, 0)]))
    return core.add(core.add(core.mul(lines[0], up), core.mul(lines[1], rhs)), core.mul(lines[2], down))


def _tridiagonal_solve(self, diagonals, rhs):
    above, main, below = np.moveaxis(diagonals, -2, 0)
    matrix = np.zeros((*main.shape, main.shape[-1]), main.dtype)
    at = np.arange(main.shape[-1])
    matrix[..., at, at] = main
    matrix[..., at[:-1], at[1:]] = above[..., :-1]
    matrix[..., at[1:], at[:-1]] = below[..., 1:]
    return np.linalg.solve(matrix, rhs).astype(rhs.dtype)


TridiagonalMatMul = primitive("TridiagonalMatMul", _tridiagonal_product, "Three diagonals times a matrix.")
TridiagonalSolve = host("TridiagonalSolve", _tridiagonal_solve, "x with a x = b of three diagonals.", partial_pivoting=True)


class Einsum(primitive("Einsum", lambda self, inputs: linear.einsum(self.equation, inputs), "", equation=REQUIRED)):
    """Sum of products by the labels of axes."""


def _constant(x):
    value = x.asnumpy() if hasattr(x, "asnumpy") else np.asarray(x)
    return (
        int(value)
        if value.ndim == 0
        else tuple(value.reshape(-1).tolist()) if value.size > 1 else int(value.reshape(())[()])
    )


def _diagonals(self, x, k=0, rows=-1, columns=-1, padding=None):
    k, rows, columns = (_constant(each) for each in (k, rows, columns))
    low, high = (k, k) if isinstance(k, int) else (k[0], k[-1])
    x = x if low != high else basic.expand(x, -2)
    longest = x.shape[-1]
    least_rows, least_columns = longest - min(high, 0), longest + max(low, 0)
    if rows <= 0 and columns <= 0:
        rows = columns = max(least_rows, least_columns)
    rows, columns = rows if rows > 0 else least_rows, columns if columns > 0 else least_columns
    fill = basic.number(0, x) if padding is None else padding
    base = core.broadcast_to(fill, basic.ints((*x.shape[:-2], rows, columns)))
    return linear.set_diagonal(base, x, (low, high), self.align)


def _check_align(self):
    if self.align not in ("LEFT_RIGHT", "RIGHT_LEFT", "LEFT_LEFT", "RIGHT_RIGHT"):
        raise ValueError(f"For '{self.name}', the attr of 'align' must be in [LEFT_RIGHT, RIGHT_LEFT, LEFT_LEFT, RIGHT_RIGHT], "
                         f"but got {self.align}.")  # fmt: skip


MatrixDiagV3 = primitive("MatrixDiagV3", _diagonals, "Matrices of packed diagonals.", _check_align, align="RIGHT_LEFT")
MatrixDiagPartV3 = primitive(
    "MatrixDiagPartV3", lambda self, x, k=0, padding=None: linear.diagonal_part(x, _constant(k), self.align, padding),
    "Packed diagonals of matrices.", _check_align, align="RIGHT_LEFT",
)  # fmt: skip
MatrixSetDiagV3 = primitive(
    "MatrixSetDiagV3", lambda self, x, diagonal, k=0: linear.set_diagonal(x, diagonal, _constant(k), self.align),
    "Matrices with other diagonals.", _check_align, align="RIGHT_LEFT",
)  # fmt: skip


def _renorm(self, x):
    """Parts along dim whose norm is above maxnorm, scaled down to it."""
    axis = self.dim % len(x.shape)
    size = reductions.norm(x, [a for a in range(len(x.shape)) if a != axis], self.p, True)
    most = basic.number(self.maxnorm, x)
    scale = core.div(most, core.add(size, basic.number(1e-7, x)))
    return core.mul(x, core.select(core.greater(size, most), scale, basic.number(1, x)))


Renorm = primitive("Renorm", _renorm, "Parts of a norm of at most maxnorm.", p=REQUIRED, dim=REQUIRED, maxnorm=REQUIRED)


def _quantile(self, x, q):
    """Between the two nearest of the sorted elements."""
    axis = 0 if self.dim is None else self.dim
    x = basic.reshape(x, (-1,)) if self.dim is None else x
    ordered = basic.moved(reductions.sort(x, axis)[0], axis, 0)
    q = np.asarray(q.asnumpy() if hasattr(q, "asnumpy") else q, np.float64)
    if ((q < 0) | (q > 1)).any():
        raise ValueError("For 'Quantile', q must be in [0, 1].")
    places = q.reshape(-1) * (ordered.shape[0] - 1)
    low = np.floor(places).astype(np.int64)
    share = basic.number((places - low).reshape(-1, *[1] * (len(ordered.shape) - 1)), x)
    first, second = (core.gather(ordered, at, axis=0) for at in (low, np.minimum(low + 1, ordered.shape[0] - 1)))
    made = core.add(first, core.mul(core.sub(second, first), share))
    made = made if q.ndim else basic.at(made, 0, 0)
    return basic.expand(made, axis + q.ndim) if self.keep_dims else made


Quantile = primitive("Quantile", _quantile, "Quantiles along an axis.", dim=None, keep_dims=False, ignore_nan=False)
