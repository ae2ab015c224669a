"""Rows of complex numbers, which the engine moves at most: what is linear runs on pairs (real, imaginary) along a last dim, what is
not is NumPy's. Such a call ends a captured graph. Gradients are those of Wirtinger's calculus as MindSpore has them: the gradient of the
result times the conjugate of the derivative."""

import numpy as np
from cairn.ms.refusal import refuse
from cairn.ms.tensor import Tensor, wrap


def are_among(inputs):
    """Whether one of the inputs is a complex tensor or array."""
    return any(_dtype(each).kind == "c" for each in inputs if isinstance(each, (Tensor, np.ndarray, np.generic)))


def _dtype(x):
    return (x.dtype.numpy or x._array.dtype) if isinstance(x, Tensor) else x.dtype  # texts have no type of numbers


def has_rule(name):
    return name in _LINEAR or name in _NUMPY


def computed(row, inputs, attributes):
    """The result of the row, or None where it has no rule for complex numbers."""
    arrays = [each.asnumpy() if isinstance(each, Tensor) else np.asarray(each) if each is not None else None for each in inputs]
    if row.name in _LINEAR:
        return wrap(_on_pairs(row, arrays, dict(attributes)))
    rule = _NUMPY.get(row.name)
    if rule is None:
        return None
    with np.errstate(all="ignore"):
        made = rule(*arrays, **attributes)
    return tuple(wrap(np.asarray(each, order="C")) for each in made) if isinstance(made, tuple) else wrap(np.asarray(made, order="C"))


def gradients(row, inputs, attributes, results, slopes):
    """The gradients by each of the inputs; None for those that are no complex or floating numbers."""
    rule = _SLOPES.get(row.name)
    if rule is None:
        refuse(f"the gradient of {row.name} of complex numbers", "is not known", "real and imaginary parts")
    arrays = [each.asnumpy() if isinstance(each, Tensor) else each for each in inputs]
    with np.errstate(all="ignore"):
        made = rule(*arrays, y=results[0].asnumpy(), dy=slopes[0].asnumpy(), **attributes)
    made = made if isinstance(made, tuple) else (made,)
    return [None if slope is None else wrap(_fitting(slope, x)) for slope, x in zip(made + (None,) * len(arrays), arrays)]


def _fitting(slope, x):
    """The slope summed where x was broadcast, with elements of x's type."""
    slope = np.asarray(slope)
    slope = slope.sum(tuple(range(slope.ndim - x.ndim)))
    slope = slope.sum(tuple(i for i, size in enumerate(x.shape) if size != slope.shape[i]), keepdims=True)
    return np.ascontiguousarray(slope.real if x.dtype.kind == "f" else slope).astype(x.dtype).reshape(x.shape)


def _pairs(x):
    """x with its real and imaginary parts along a last dim."""
    part = np.float64 if x.dtype == np.complex128 else np.float32
    return np.ascontiguousarray(x).reshape(x.shape).view(part).reshape(*x.shape, 2) if x.ndim else np.array([x.real, x.imag], part)


def _on_pairs(row, arrays, attributes):
    kind = np.result_type(*[each.dtype for each in arrays if each is not None and each.dtype.kind in "fc"])
    given = []
    rank = max(each.ndim for each in arrays if each is not None and each.dtype.kind == "c")
    for index, each in enumerate(arrays):
        role, last = row.role(index), _LINEAR[row.name].get(row.role(index))
        if each is not None and role not in ("shape", "index") and each.dtype.kind in "fc":
            each = _pairs(each.astype(kind))
        elif last is not None:
            each = np.append(each, np.asarray(last, each.dtype))
        given.append(each)
    if "permutation" in attributes:
        attributes["permutation"] = [*attributes["permutation"], rank]
    if attributes.get("steps"):
        attributes["steps"] = [*attributes["steps"], 1]
    if "axis" in attributes:
        attributes["axis"] %= rank
    if "axes" in attributes:
        attributes["axes"] = [each % rank for each in attributes["axes"]]
    made = row.run(*given, **attributes)
    made = made.asnumpy() if isinstance(made, Tensor) else made
    return np.ascontiguousarray(made).view(kind).reshape(made.shape[:-1])


# Of each linear row what an input of a role gets for the last dim.
_SIZES = {"shape": 2}
_LINEAR = {
    **dict.fromkeys(("add", "sub", "neg", "reduce_sum", "reduce_mean", "cumsum", "transpose", "concat", "reverse", "gather", "gather_nd",
                     "scatter_update", "identity", "stop_gradient"), {}),
    **dict.fromkeys(("reshape", "broadcast_to", "sum_to", "scatter_nd"), _SIZES),
}  # fmt: skip


def _slice(x, begin, end, steps=(), within=False):
    steps = steps or [1] * x.ndim
    return x[tuple(slice(int(a), int(b) if int(c) > 0 or int(b) >= 0 else None, int(c)) for a, b, c in zip(begin, end, steps))]


def _pad(x, pads, mode="constant", value=0.0):
    pads = np.asarray(pads).reshape(-1, 2)
    return np.pad(x, pads, **({"constant_values": value} if mode == "constant" else {"mode": mode}))


def _scatter(x, indices, updates, axis=0, mode="update", **more):
    made, places = x.copy(), list(np.indices(indices.shape, sparse=True))
    places[axis] = indices
    if mode == "update":
        made[tuple(places)] = updates
    else:
        {"add": np.add, "mul": np.multiply}[mode].at(made, tuple(places), updates)
    return made


def _scatter_rows(x, indices, updates, mode="add", padded=False):
    made = x.copy()
    {"add": np.add, "sub": np.subtract, "mul": np.multiply, "div": np.divide}[mode].at(made, tuple(np.moveaxis(indices, -1, 0)), updates)
    return made


def _matmul(a, b, transpose_a=False, transpose_b=False):
    return (np.swapaxes(a, -1, -2) if transpose_a else a) @ (np.swapaxes(b, -1, -2) if transpose_b else b)


def _cast(x, dtype):
    wanted = np.dtype({"f": "float", "c": "complex", "i": "int", "u": "uint"}[dtype[0]] + dtype[1:] if isinstance(dtype, str) and dtype != "bool" else dtype)
    return (x.real if x.dtype.kind == "c" and wanted.kind not in "cb" else x).astype(wanted)


def _sign(x):
    size = np.abs(x)
    return np.where(size == 0, 0, x / np.where(size == 0, 1, size)).astype(x.dtype)


def _solve(a, b, adjoint=False):
    return np.linalg.solve(np.conj(np.swapaxes(a, -1, -2)) if adjoint else a, b)


def _svd(x, full=False):
    u, s, v = np.linalg.svd(x, full_matrices=full)
    return s, u, np.conj(np.swapaxes(v, -1, -2))


_NUMPY = {
    "abs": np.abs, "sign": _sign, "square": np.square, "exp": np.exp, "expm1": np.expm1, "log": np.log, "log1p": np.log1p, "sqrt": np.sqrt,
    "rsqrt": lambda x: 1 / np.sqrt(x), "reciprocal": np.reciprocal, "tanh": np.tanh, "sigmoid": lambda x: 1 / (1 + np.exp(-x)),
    "sin": np.sin, "cos": np.cos, "tan": np.tan, "asin": np.arcsin, "acos": np.arccos, "atan": np.arctan, "sinh": np.sinh,
    "cosh": np.cosh, "asinh": np.arcsinh, "acosh": np.arccosh, "atanh": np.arctanh, "is_nan": np.isnan, "is_inf": np.isinf,
    "is_finite": np.isfinite, "round": np.round, "mul": np.multiply, "div": np.divide, "pow": np.power, "equal": np.equal,
    "not_equal": np.not_equal, "squared_difference": lambda x, y: (x - y) * np.conj(x - y), "select": np.where, "cast": _cast,
    "tile": lambda x, multiples: np.tile(x, [int(each) for each in multiples]), "slice": _slice, "pad": _pad,
    "reduce_prod": lambda x, axes, keep_dims=False: np.prod(x, axis=tuple(axes), keepdims=keep_dims), "scatter_elements": _scatter,
    "scatter_reduce": _scatter_rows, "matmul": _matmul, "matrix_inverse": lambda x, adjoint=False: np.linalg.inv(_adjoint(x) if adjoint else x),
    "determinant": np.linalg.det, "cholesky": np.linalg.cholesky, "matrix_solve": _solve, "qr": lambda x, full=False: tuple(
        np.linalg.qr(x, mode="complete" if full else "reduced")), "svd": _svd,
}  # fmt: skip


def _adjoint(x):
    return np.conj(np.swapaxes(x, -1, -2))


def _of(derivative):
    """The rule of a function of one number from its derivative by x and y."""
    return lambda x, y, dy: dy * np.conj(derivative(x, y))


def _sum_slope(x, axes, y, dy, keep_dims=False):
    return np.broadcast_to(dy if keep_dims else np.expand_dims(dy, tuple(axes)), x.shape)


def _product_slopes(a, b, y, dy, transpose_a=False, transpose_b=False):
    a, b = (np.swapaxes(each, -1, -2) if turned else each for each, turned in ((a, transpose_a), (b, transpose_b)))
    by_a, by_b = dy @ _adjoint(b), _adjoint(a) @ dy
    return (np.swapaxes(by_a, -1, -2) if transpose_a else by_a), (np.swapaxes(by_b, -1, -2) if transpose_b else by_b)


_SLOPES = {
    "neg": lambda x, y, dy: -dy, "identity": lambda x, y, dy: dy, "abs": lambda x, y, dy: dy * _sign(x),
    "cast": lambda x, y, dy, dtype: dy, "square": _of(lambda x, y: 2 * x), "exp": _of(lambda x, y: y), "expm1": _of(lambda x, y: y + 1),
    "log": _of(lambda x, y: 1 / x), "log1p": _of(lambda x, y: 1 / (1 + x)), "sqrt": _of(lambda x, y: 0.5 / y),
    "rsqrt": _of(lambda x, y: -0.5 * y**3), "reciprocal": _of(lambda x, y: -y * y), "tanh": _of(lambda x, y: 1 - y * y),
    "sigmoid": _of(lambda x, y: y * (1 - y)), "sin": _of(lambda x, y: np.cos(x)), "cos": _of(lambda x, y: -np.sin(x)),
    "tan": _of(lambda x, y: 1 + y * y), "asin": _of(lambda x, y: 1 / np.sqrt(1 - x * x)), "acos": _of(lambda x, y: -1 / np.sqrt(1 - x * x)),
    "atan": _of(lambda x, y: 1 / (1 + x * x)), "sinh": _of(lambda x, y: np.cosh(x)), "cosh": _of(lambda x, y: np.sinh(x)),
    "asinh": _of(lambda x, y: 1 / np.cosh(y)), "acosh": _of(lambda x, y: 1 / np.sinh(y)), "atanh": _of(lambda x, y: 1 / (1 - x * x)),
    "add": lambda a, b, y, dy: (dy, dy), "sub": lambda a, b, y, dy: (dy, -dy), "mul": lambda a, b, y, dy: (dy * np.conj(b), dy * np.conj(a)),
    "div": lambda a, b, y, dy: (dy / np.conj(b), -dy * np.conj(y / b)),
    "pow": lambda a, b, y, dy: (dy * np.conj(b * a ** (b - 1)), dy * np.conj(y * np.log(a))),
    "reshape": lambda x, shape, y, dy: dy.reshape(x.shape), "broadcast_to": lambda x, shape, y, dy: dy,
    "transpose": lambda x, y, dy, permutation: np.transpose(dy, np.argsort(permutation)), "reduce_sum": _sum_slope,
    "reduce_mean": lambda x, axes, y, dy, keep_dims=False: _sum_slope(x, axes, y, dy, keep_dims) * (y.size / x.size), "matmul": _product_slopes,
}  # fmt: skip
