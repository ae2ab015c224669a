"""What the functions of mindspore.scipy share."""

import numpy as np
from cairn.ms.numerics import basic
from cairn.ms.tensor import wrap
from mindspore import Tensor
from mindspore.common import dtype as mstype
from mindspore.ops import operations as P

FLOATS = (mstype.float32, mstype.float64)


def _nd_transpose(x):
    """x with its last two axes exchanged."""
    return basic.swapped(x, -1, -2)


def float_tensor(x, name, kinds=FLOATS):
    """x of one of the kinds; integers become float64."""
    if not isinstance(x, Tensor):
        raise TypeError(f"For '{name}', the input needs to be a Tensor, not {type(x).__name__}")
    if x.dtype in (mstype.int32, mstype.int64):
        return P.Cast()(x, mstype.float64)
    if x.dtype not in kinds:
        raise TypeError(f"For '{name}', the dtype needs to be one of {', '.join(map(str, kinds))}, not {x.dtype}")
    return x


def square(x, name, batched=False):
    """x, which is one square matrix, or several."""
    if x.ndim < 2 or not batched and x.ndim != 2 or x.shape[-1] != x.shape[-2]:
        raise ValueError(f"For '{name}', the input needs to be a square matrix, but its shape is {tuple(x.shape)}")
    return x


def bools(name, **values):
    for each, value in values.items():
        if not isinstance(value, bool):
            raise TypeError(f"For '{name}', {each} needs to be a bool, not {type(value).__name__}")


def number(x):
    """The number that a tensor holds."""
    return float(x.asnumpy()) if isinstance(x, Tensor) else float(x)


def _safe_normalize(x, threshold=None):
    """(x of length 1, its length), both 0 where x is no longer than the threshold."""
    length = P.Sqrt()(P.ReduceSum()(x * x))
    least = float(np.finfo(basic.nptype(x)).eps) if threshold is None else threshold
    long = length > least
    safe = P.Select()(long, length, P.OnesLike()(length))
    length = P.Select()(long, length, P.ZerosLike()(length))
    return P.Cast()(long, x.dtype) * (x / safe), length


def constant(array):
    return wrap(np.ascontiguousarray(array)) if np.ndim(array) else Tensor(array)
