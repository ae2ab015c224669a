"""Arithmetic, comparisons, reductions, products."""

import numpy as np
from cairn.ms import core, promote
from cairn.ms.numerics import basic, reductions
from mindspore.common.tensor import Tensor
from mindspore.numpy.creation import as_tensor
from mindspore.ops import functional as F


def _typed(x, dtype):
    return x if dtype is None else basic.cast(x, dtype)


def _floats(x):
    return x if basic.is_float(x) else basic.cast(x, np.float32)


def _unary(function, floats):
    def apply(x, dtype=None):
        x = as_tensor(x)
        return _typed(function(_floats(x) if floats else x), dtype)

    return apply


def negative(a, dtype=None):
    """-a"""
    return _typed(core.neg(as_tensor(a)), dtype)


def positive(a, dtype=None):
    """a"""
    return _typed(core.identity(as_tensor(a)), dtype)


def _pair(x1, x2):
    if isinstance(x1, Tensor) or isinstance(x2, Tensor):
        x1, x2 = (each if isinstance(each, (Tensor, int, float, bool)) else as_tensor(each) for each in (x1, x2))
    else:
        x1, x2 = as_tensor(x1), as_tensor(x2)
    return [each if isinstance(each, Tensor) else Tensor(each) for each in promote.promote(x1, x2)]


def _binary(function, floats=False):
    def apply(x1, x2, dtype=None):
        x1, x2 = _pair(x1, x2)
        if floats and basic.nptype(x1).kind != "f":
            x1, x2 = (core.cast(each, dtype=np.dtype(np.float32)) for each in (x1, x2))
        return _typed(function(x1, x2), dtype)

    return apply


def _degrees(scale):
    return lambda x: core.mul(x, basic.number(scale, x))


_FLOATS = {
    "exp": core.exp, "expm1": core.expm1, "exp2": lambda x: core.exp(core.mul(x, basic.number(np.log(2), x))), "log": core.log,
    "log1p": core.log1p, "log2": lambda x: basic.log_base(x, 2), "log10": lambda x: basic.log_base(x, 10), "sqrt": core.sqrt,
    "cbrt": lambda x: core.mul(core.sign(x), core.pow(core.abs(x), basic.number(1 / 3, x))), "reciprocal": core.reciprocal,
    "sin": core.sin, "cos": core.cos, "tan": core.tan, "arcsin": core.asin, "arccos": core.acos, "arctan": core.atan,
    "sinh": core.sinh, "cosh": core.cosh, "tanh": core.tanh, "arcsinh": core.asinh, "arccosh": core.acosh, "arctanh": core.atanh,
    "deg2rad": _degrees(np.pi / 180), "radians": _degrees(np.pi / 180), "rad2deg": _degrees(180 / np.pi), "degrees": _degrees(180 / np.pi),
    "floor": core.floor, "ceil": core.ceil, "rint": core.round, "isnan": core.is_nan, "isinf": core.is_inf, "isfinite": core.is_finite,
    "fix": F.trunc, "trunc": F.trunc, "sinc": F.sinc,
}  # fmt: skip
_ANY = {
    "abs": core.abs,
    "absolute": core.abs,
    "square": core.square,
    "sign": core.sign,
}
for _name, _function in _FLOATS.items():
    globals()[_name] = _unary(_function, True)
for _name, _function in _ANY.items():
    globals()[_name] = _unary(_function, False)
_PAIRS = {
    "add": (F.add, False), "subtract": (core.sub, False), "multiply": (F.mul, False), "divide": (core.div, True), "true_divide": (core.div, True),
    "power": (core.pow, False), "float_power": (core.pow, True), "floor_divide": (core.floor_div, False), "remainder": (core.mod, False),
    "mod": (core.mod, False), "fmod": (core.truncate_mod, False), "maximum": (core.maximum, False), "minimum": (core.minimum, False),
    "fmax": (core.maximum, False), "fmin": (core.minimum, False), "hypot": (basic.hypot, True), "arctan2": (core.atan2, True),
    "logaddexp": (basic.log_add_exp, True), "logaddexp2": (lambda x, y: basic.log_add_exp(x, y, 2), True),
    "heaviside": (F.heaviside, True), "equal": (core.equal, False), "not_equal": (core.not_equal, False), "less": (core.less, False),
    "less_equal": (core.less_equal, False), "greater": (core.greater, False), "greater_equal": (core.greater_equal, False),
    "gcd": (F.gcd, False), "lcm": (F.lcm, False), "bitwise_and": (core.bit_and, False), "bitwise_or": (core.bit_or, False), "bitwise_xor": (core.bit_xor, False),
}  # fmt: skip
for _name, (_function, _whether) in _PAIRS.items():
    globals()[_name] = _binary(_function, _whether)


def _logical(row):
    def apply(x1, x2, dtype=None):
        return _typed(row(*(basic.cast(as_tensor(each), np.bool_) for each in (x1, x2))), dtype)

    return apply


logical_and, logical_or, logical_xor = _logical(core.and_), _logical(core.or_), _logical(core.xor)


def logical_not(a, dtype=None):
    """True where a is 0."""
    return _typed(core.not_(basic.cast(as_tensor(a), np.bool_)), dtype)


def _reduction(function, floats=False, counts=False):
    def apply(a, axis=None, dtype=None, keepdims=False, **others):
        a = as_tensor(a)
        a = _floats(a) if floats else a
        if counts and basic.nptype(a).kind == "b":
            a = basic.cast(a, np.int32)
        return _typed(function(a, () if axis is None else axis, keep_dims=bool(keepdims), **others), dtype)

    return apply


def _summed(function, combine):
    reduce = _reduction(function, counts=True)

    def apply(a, axis=None, dtype=None, keepdims=False, initial=None):
        made = reduce(a, axis, dtype, keepdims)
        return made if initial is None else combine(*_pair(made, initial))

    return apply


def _extreme(function, combine):
    def apply(a, axis=None, keepdims=False, initial=None, where=True):
        a = as_tensor(a)
        if where is not True:
            if initial is None:
                raise ValueError("initial value must be provided for where masks")
            a = core.select(basic.cast(as_tensor(where), np.bool_), a, basic.number(initial, a))
        if not isinstance(initial, (int, float, Tensor, type(None))):
            raise TypeError(f"initial should be a scalar, but got {type(initial).__name__}")
        made = function(a, () if axis is None else axis, keep_dims=bool(keepdims))
        return made if initial is None else combine(*_pair(made, initial))

    return apply


def mean(a, axis=None, keepdims=False, dtype=None):
    """Mean along axes."""
    return _reduction(reductions.mean)(a, axis, dtype, keepdims)


sum, prod = _summed(reductions.total, core.add), _summed(reductions.product, core.mul)  # noqa: A001
amax, amin = _extreme(reductions.maximum, core.maximum), _extreme(reductions.minimum, core.minimum)
max, min = amax, amin  # noqa: A001
all, any = _reduction(reductions.all_of), _reduction(reductions.any_of)  # noqa: A001


def std(x, axis=None, ddof=0, keepdims=False):
    """Standard deviation."""
    return reductions.std(_floats(as_tensor(x)), () if axis is None else axis, ddof, keepdims)


def var(x, axis=None, ddof=0, keepdims=False):
    """Variance."""
    return reductions.variance(_floats(as_tensor(x)), () if axis is None else axis, ddof, keepdims)


def average(x, axis=None, weights=None, returned=False):
    """Mean with weights."""
    x = _floats(as_tensor(x))
    if weights is None:
        out, scale = mean(x, axis), None
    else:
        weights = basic.cast(as_tensor(weights), basic.nptype(x))
        if tuple(weights.shape) != tuple(x.shape):
            shape = [1] * len(x.shape)
            shape[axis] = weights.shape[0]
            weights = core.broadcast_to(basic.reshape(weights, tuple(shape)), basic.ints(x.shape))
        scale = sum(weights, axis)
        out = core.div(sum(core.mul(x, weights), axis), scale)
    if not returned:
        return out
    return out, scale if scale is not None else basic.like(out, x.size // out.size)


def ptp(x, axis=None, keepdims=False):
    """Largest less smallest."""
    return core.sub(amax(x, axis, keepdims=keepdims), amin(x, axis, keepdims=keepdims))


def argmax(a, axis=None):
    """Index of the largest."""
    return reductions.arg("arg_max", as_tensor(a), axis, np.int32)


def argmin(a, axis=None):
    """Index of the smallest."""
    return reductions.arg("arg_min", as_tensor(a), axis, np.int32)


def _running(function):
    def apply(a, axis=None, dtype=None):
        a = _typed(as_tensor(a), dtype)
        if dtype is None and (basic.nptype(a).kind == "b" or basic.nptype(a).kind in "iu" and basic.nptype(a).itemsize < 4):
            a = basic.cast(a, np.int32)  # as NumPy counts small integers in its own
        return function(basic.reshape(a, (-1,)), 0) if axis is None else function(a, axis)

    return apply


cumsum, cumprod = _running(reductions.cumsum), _running(reductions.cumprod)


def count_nonzero(x, axis=None, keepdims=False):
    """How many are not 0."""
    return reductions.count_nonzero(as_tensor(x), () if axis is None else axis, keepdims)


def clip(x, xmin, xmax, dtype=None):
    """x inside of bounds."""
    if xmin is None and xmax is None:
        raise ValueError("One of max or min must be given.")
    x = as_tensor(x)
    x = x if xmin is None else maximum(x, xmin)  # noqa: F821
    return _typed(x if xmax is None else minimum(x, xmax), dtype)  # noqa: F821


def around(a, decimals=0):
    """Rounded to decimals."""
    a = _floats(as_tensor(a))
    scale = basic.number(10.0**decimals, a)
    return core.div(core.round(core.mul(a, scale)), scale)


round = around  # noqa: A001


def matmul(x1, x2, dtype=None):
    """Product of matrices."""
    return _typed(basic.matmul(*_pair(x1, x2)), dtype)


def dot(a, b):
    """Product over the last axis of a and the last but one of b."""
    a, b = _pair(a, b)
    if not len(a.shape) or not len(b.shape):
        return core.mul(a, b)
    return F.dot(a, b) if len(a.shape) > 2 or len(b.shape) > 2 else basic.matmul(a, b)


def tensordot(a, b, axes=2):
    """Product over some axes."""
    return F.tensor_dot(*_pair(a, b), axes)


def outer(a, b):
    """Outer product."""
    a, b = (basic.reshape(each, (-1,)) for each in _pair(a, b))
    return core.mul(basic.expand(a, 1), basic.expand(b, 0))


def inner(a, b):
    """Product over the last axes."""
    a, b = _pair(a, b)
    if not len(a.shape) or not len(b.shape):
        return core.mul(a, b)
    return F.tensor_dot(a, b, ((len(a.shape) - 1,), (len(b.shape) - 1,)))


def kron(a, b):
    """Each element of a times b."""
    a, b = _pair(a, b)
    rank = len(a.shape) if len(a.shape) > len(b.shape) else len(b.shape)
    wide = [basic.reshape(x, (1,) * (rank - len(x.shape)) + tuple(x.shape)) for x in (a, b)]
    left = basic.reshape(wide[0], [s for size in wide[0].shape for s in (size, 1)])
    right = basic.reshape(wide[1], [s for size in wide[1].shape for s in (1, size)])
    return basic.reshape(core.mul(left, right), [m * n for m, n in zip(wide[0].shape, wide[1].shape)])


def cross(a, b, axisa=-1, axisb=-1, axisc=-1, axis=None):
    """Vector product of vectors of 2 or 3 elements; of two of 2 the third element alone."""
    if axis is not None:
        axisa = axisb = axisc = axis
    a, b = (basic.moved(x, from_ % len(x.shape), len(x.shape) - 1) for x, from_ in zip(_pair(a, b), (axisa, axisb)))
    if {a.shape[-1], b.shape[-1]} - {2, 3}:
        raise ValueError("incompatible dimensions for cross product (dimension must be 2 or 3)")
    flat = a.shape[-1] == b.shape[-1] == 2
    (a1, a2, a3), (b1, b2, b3) = ([basic.at(x, -1, i) if i < x.shape[-1] else None for i in range(3)] for x in (a, b))
    parts = [_minus(p, q, r, s) for p, q, r, s in ((a2, b3, a3, b2), (a3, b1, a1, b3), (a1, b2, a2, b1))]
    if flat:
        return parts[2]
    made = basic.stack([core.broadcast_to(each, parts[2].shape) for each in parts], -1)
    return basic.moved(made, len(made.shape) - 1, axisc % len(made.shape))


def _minus(a, b, c, d):
    """a * b - c * d, where None is 0."""
    left, right = (None if x is None or y is None else core.mul(x, y) for x, y in ((a, b), (c, d)))
    if left is None:
        return right if right is None else core.neg(right)
    return left if right is None else core.sub(left, right)


def diff(a, n=1, axis=-1, prepend=None, append=None):
    """Differences of neighbours, also of what stands before and behind."""
    a = as_tensor(a)
    ends = []
    for each in (prepend, append):
        each = None if each is None else basic.cast(as_tensor(each), basic.nptype(a))
        if each is not None and not each.shape:
            each = core.broadcast_to(each, [1 if i == axis % len(a.shape) else size for i, size in enumerate(a.shape)])
        ends.append([] if each is None else [each])
    if ends != [[], []]:
        a = core.concat(*ends[0], a, *ends[1], axis=axis % len(a.shape))
    for _ in range(n):
        size = a.shape[axis]
        a = core.sub(basic.part(a, axis, 1, size), basic.part(a, axis, 0, size - 1))
    return a


def trapz(y, x=None, dx=1.0, axis=-1):
    """Integral by trapezoids."""
    return F.trapz(_floats(as_tensor(y)), None if x is None else _floats(as_tensor(x)), dx=dx, dim=axis)


def isclose(a, b, rtol=1e-05, atol=1e-08, equal_nan=False):
    """True where both are near."""
    return basic.is_close(*_pair(a, b), rtol, atol, equal_nan)


def norm(x, ord=None, axis=None, keepdims=False):  # noqa: A002
    """The norm of vectors, or of matrices where two axes are given."""
    x = _floats(as_tensor(x))
    if ord in (None, "fro"):
        return reductions.norm(x, () if axis is None else axis, 2, keepdims)
    pair = axis if isinstance(axis, (tuple, list)) else (0, 1) if axis is None and len(x.shape) == 2 else (axis,)
    if len(pair) == 1:
        return reductions.norm(x, () if axis is None else axis, ord, keepdims)
    if abs(ord) not in (1, float("inf")):
        raise ValueError(f"ord of matrices should be None, 'fro', 1, -1, inf or -inf, but got {ord}")
    summed, rest = (pair[0], pair[1]) if abs(ord) == 1 else (pair[1], pair[0])
    made = (reductions.maximum if ord > 0 else reductions.minimum)(reductions.total(core.abs(x), summed, True), rest, True)
    return made if keepdims else reductions.squeezed(made, tuple(pair))


def bincount(x, weights=None, minlength=0, length=None):
    """How often each number is there."""
    if len(as_tensor(x).shape) != 1:
        raise ValueError("`x` should be one-dimensional")
    return F.bincount(as_tensor(x), weights, length or minlength)


def sort(a, axis=-1):
    """In rising order."""
    return reductions.sort(as_tensor(a), axis)[0]


def argsort(a, axis=-1):
    """Indices that sort."""
    return reductions.sort(as_tensor(a), axis)[1]


def median(a, axis=None):
    """The middle, or the mean of the two middle ones."""
    a = _floats(as_tensor(a))
    if axis is None:
        a, axis = basic.reshape(a, (-1,)), 0
    size = a.shape[axis]
    ordered = reductions.sort(a, axis)[0]
    return reductions.mean(basic.part(ordered, axis, (size - 1) // 2, size // 2 + 1), axis)


__all__ = [
    *_FLOATS, *_ANY, *_PAIRS, "negative", "positive", "logical_and", "logical_or", "logical_xor", "logical_not", "sum", "prod", "mean", "amax", "amin", "max", "min", "all",
    "any", "std", "var", "average", "ptp", "argmax", "argmin", "cumsum", "cumprod", "count_nonzero", "clip", "around", "round", "matmul", "dot",
    "tensordot", "outer", "inner", "kron", "cross", "diff", "trapz", "isclose", "norm", "bincount", "sort", "argsort", "median",
]  # fmt: skip
del _name, _function, _whether
