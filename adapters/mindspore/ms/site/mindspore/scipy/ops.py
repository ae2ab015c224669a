"""Primitives behind mindspore.scipy.linalg."""

import numpy as np
from cairn.ms import core
from cairn.ms.numerics import basic, linear
from mindspore.ops.operations._form import primitive, tensor
from mindspore.ops.operations.linalg_ops import Eig, Eigh

_TURNS = {"N": (False, False), 0: (False, False), "T": (True, False), 1: (True, False), "C": (True, True), 2: (True, True)}


def _turn(trans, name):
    if isinstance(trans, bool) or trans not in _TURNS:
        raise ValueError(f"For '{name}', trans needs to be one of 0, 1, 2, 'N', 'T', 'C', not {trans!r}")
    return _TURNS[trans]


def _check_turn(self):
    _turn(self.trans, self.name)


def _solve_triangular(self, a, b):
    name, (turned, conjugate) = self.name, _turn(self.trans, self.name)
    if tensor(a, name).ndim < 2 or a.shape[-1] != a.shape[-2]:
        raise ValueError(f"For '{name}', a needs to be square, but its shape is {tuple(a.shape)}")
    flat = tensor(b, name).ndim == a.ndim - 1
    if not flat and b.ndim != a.ndim or b.shape[: a.ndim - 1] != a.shape[:-1]:
        raise ValueError(f"For '{name}', the shapes do not fit: {tuple(a.shape)} and {tuple(b.shape)}")
    if basic.nptype(a) != basic.nptype(b):
        raise TypeError(f"For '{name}', a and b need one dtype, not {a.dtype} and {b.dtype}")
    if basic.nptype(a).kind not in "fc":
        raise TypeError(f"For '{name}', a and b need to be floats, not {a.dtype}")
    if turned:
        a = core.conj(a) if conjugate and basic.nptype(a).kind == "c" else a
        a = linear.transposed(a)
    lower = self.lower != turned
    x = linear.solve_triangle(a, basic.expand(b, -1) if flat else b, lower=lower, unit=self.unit_diagonal)
    return basic.at(x, -1, 0) if flat else x


SolveTriangular = primitive(
    "SolveTriangular", _solve_triangular, "x with t x = b of a triangle t of a.", _check_turn, lower=False, unit_diagonal=False,
    trans="N",
)  # fmt: skip


Cholesky = primitive("Cholesky", lambda self, a: core.cholesky(tensor(a, "Cholesky", "float")), "The lower triangle whose product is a.", clean=True)


def exchanges(order):
    """Which row each row was exchanged with, of the order of rows that the exchanges lead to."""
    rows, made = list(range(len(order))), np.zeros(len(order), np.int32)
    for i, row in enumerate(order):
        made[i] = rows.index(row)
        rows[i], rows[made[i]] = rows[made[i]], rows[i]
    return made


def _factors(x):
    packed, order = linear.lu_factors(x)
    return packed, exchanges(order)[: min(x.shape)], order.astype(np.int32)


def _lu(self, x):
    from mindspore.scipy.utils import constant

    return tuple(map(constant, linear.batched(_factors, x.asnumpy())))


LU = primitive("LU", _lu, "Packed triangles, exchanges of rows, and the order of rows that they lead to.")
