"""Linear algebra in the manner of scipy.linalg."""

import numpy as np
from cairn.ms import core
from cairn.ms.numerics import basic, linear
from mindspore import Tensor
from mindspore.common import dtype as mstype
from mindspore.scipy.ops import LU, Eigh, SolveTriangular
from mindspore.scipy.utils import FLOATS, bools, constant, float_tensor, square

__all__ = ["block_diag", "cho_factor", "cho_solve", "cholesky", "det", "eigh", "inv", "lu", "lu_factor", "lu_solve", "solve_triangular"]


def block_diag(*arrs):
    """A matrix with the given ones along its diagonal."""
    if not arrs:
        return constant(np.zeros((1, 0), np.float32))
    blocks = []
    for each in arrs:
        if not isinstance(each, Tensor):
            raise TypeError(f"For 'block_diag', the inputs need to be Tensors, not {type(each).__name__}")
        if each.ndim > 2:
            raise ValueError(f"For 'block_diag', the inputs have at most two dimensions, not {each.ndim}")
        blocks.append(basic.reshape(each, (1, -1)) if each.ndim < 2 else each)
    kind = np.result_type(*map(basic.nptype, blocks))
    width, left, rows = sum(each.shape[1] for each in blocks), 0, []
    for each in blocks:
        height, own = each.shape
        parts = [basic.filled((height, left), 0, kind), basic.cast(each, kind), basic.filled((height, width - left - own), 0, kind)]
        parts = [part for part in parts if part.shape[1]]
        rows.append(core.concat(parts, axis=1) if len(parts) > 1 else parts[0])
        left += own
    return core.concat(rows, axis=0) if len(rows) > 1 else rows[0]


def solve_triangular(A, b, trans=0, lower=False, unit_diagonal=False, overwrite_b=False, debug=None, check_finite=False):
    """x with t x = b of a triangle t of A."""
    name = "solve_triangular"
    bools(name, lower=lower, unit_diagonal=unit_diagonal, overwrite_b=overwrite_b, check_finite=check_finite)
    if isinstance(trans, bool) or not isinstance(trans, (int, str)):
        raise TypeError(f"For '{name}', trans needs to be an int or a str, not {type(trans).__name__}")
    return SolveTriangular(lower, unit_diagonal, trans)(float_tensor(A, name), float_tensor(b, name))


def inv(a, overwrite_a=False, check_finite=True):
    """The inverse."""
    bools("inv", overwrite_a=overwrite_a, check_finite=check_finite)
    return core.matrix_inverse(square(float_tensor(a, "inv"), "inv", batched=True))


def cholesky(a, lower=False, overwrite_a=False, check_finite=True):
    """The triangle whose product with its transpose is a."""
    bools("cholesky", lower=lower, overwrite_a=overwrite_a, check_finite=check_finite)
    made = core.cholesky(square(float_tensor(a, "cholesky"), "cholesky", batched=True))
    return made if lower else linear.transposed(made)


def cho_factor(a, lower=False, overwrite_a=False, check_finite=True):
    """(cholesky(a, lower), lower)."""
    return cholesky(a, lower, overwrite_a, check_finite), lower


def cho_solve(c_and_lower, b, overwrite_b=False, check_finite=True):
    """x with a x = b, of what cho_factor(a) returns."""
    bools("cho_solve", overwrite_b=overwrite_b, check_finite=check_finite)
    factor, lower = c_and_lower
    factor, b = square(float_tensor(factor, "cho_solve"), "cho_solve"), float_tensor(b, "cho_solve")
    flat = b.ndim == 1
    made = linear.cholesky_solve(basic.expand(b, -1) if flat else b, factor, upper=not lower)
    return basic.at(made, -1, 0) if flat else made


def eigh(a, b=None, lower=True, eigvals_only=False, overwrite_a=False, overwrite_b=False, turbo=True, eigvals=None, _type=1,
         check_finite=True):  # fmt: skip
    """Eigenvalues in rising order, and eigenvectors, of a matrix that one of its triangles tells."""
    bools("eigh", lower=lower, eigvals_only=eigvals_only, overwrite_a=overwrite_a, overwrite_b=overwrite_b, turbo=turbo,
          check_finite=check_finite)  # fmt: skip
    if b is not None or eigvals is not None or _type != 1:
        raise ValueError("For 'eigh', b, eigvals and other types of problem are not supported")
    a = square(float_tensor(a, "eigh", (*FLOATS, mstype.complex64, mstype.complex128)), "eigh")
    return Eigh(not eigvals_only, lower)(a)


def _permuted(order, kind):
    return np.eye(len(order), dtype=kind)[:, order]


def lu(a, permute_l=False, overwrite_a=False, check_finite=True):
    """(permutation, lower triangle, upper triangle) whose product is a."""
    bools("lu", permute_l=permute_l, overwrite_a=overwrite_a, check_finite=check_finite)
    packed, _, order = LU()(float_tensor(a, "lu"))
    lower, upper = linear.lu_parts(packed)
    matrix = constant(linear.batched(lambda each: _permuted(each, basic.nptype(packed)), order.asnumpy(), rank=1))
    return (core.matmul(matrix, lower), upper) if permute_l else (matrix, lower, upper)


def lu_factor(a, overwrite_a=False, check_finite=True):
    """(both triangles in one matrix, the row with which each row was exchanged)."""
    bools("lu_factor", overwrite_a=overwrite_a, check_finite=check_finite)
    return LU()(square(float_tensor(a, "lu_factor"), "lu_factor", batched=True))[:2]


def lu_solve(lu_and_piv, b, trans=0, overwrite_b=False, check_finite=True):
    """x with a x = b, of what lu_factor(a) returns."""
    bools("lu_solve", overwrite_b=overwrite_b, check_finite=check_finite)
    packed, pivots = lu_and_piv
    packed, b = square(float_tensor(packed, "lu_solve"), "lu_solve"), float_tensor(b, "lu_solve")
    order = linear.permutation(pivots.asnumpy() + 1)
    flat = b.ndim == 1
    b = basic.expand(b, -1) if flat else b
    if trans in (0, "N"):
        made = linear.solve_triangle(packed, core.gather(b, order, axis=0), unit=True)
        made = core.triangular_solve(packed, made, lower=False)
    else:
        turned = linear.transposed(packed)
        made = core.triangular_solve(turned, b, lower=True)
        made = core.gather(linear.solve_triangle(turned, made, lower=False, unit=True), np.argsort(order), axis=0)
    return basic.at(made, -1, 0) if flat else made


def det(a, overwrite_a=False, check_finite=True):
    """The determinant."""
    bools("det", overwrite_a=overwrite_a, check_finite=check_finite)
    return core.determinant(square(float_tensor(a, "det"), "det", batched=True))
