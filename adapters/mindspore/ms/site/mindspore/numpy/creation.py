"""Functions that make tensors."""

import numpy as np
from cairn.ms import core
from cairn.ms.numerics import arrays, basic
from mindspore.common import dtype as mstype
from mindspore.common.tensor import Tensor


def as_tensor(x):
    """A Tensor of a Tensor, number, list or tuple; floats are float32."""
    if isinstance(x, Tensor):
        return x
    if not isinstance(x, (int, float, bool, list, tuple, np.ndarray)):
        raise TypeError(f"an array, number, list or tuple is needed, but got {type(x).__name__}")
    made = np.asarray(_plain(x))
    if made.dtype == np.float64 and not isinstance(x, np.ndarray):
        made = made.astype(np.float32)
    elif made.dtype == np.int64 and not isinstance(x, np.ndarray):
        made = made.astype(np.int32)
    return Tensor(made)


def _plain(x):
    return [_plain(each) for each in x] if isinstance(x, (list, tuple)) else x.asnumpy() if isinstance(x, Tensor) else x


def _typed(x, dtype):
    return x if dtype is None else basic.cast(x, dtype)


def array(obj, dtype=None, copy=True, ndmin=0):
    """A Tensor of numbers, with ndmin axes or more."""
    made = _typed(as_tensor(obj), dtype)
    if len(made.shape) < ndmin:
        made = basic.reshape(made, (1,) * (ndmin - len(made.shape)) + tuple(made.shape))
    return core.identity(made) if copy else made


def asarray(a, dtype=None):
    """A Tensor of numbers."""
    return _typed(as_tensor(a), dtype)


def asfarray(a, dtype=mstype.float32):
    """A Tensor of floats; of another dtype it makes float32."""
    made = mstype.float32 if dtype is None or basic.as_np(dtype).kind != "f" else dtype
    return _typed(as_tensor(a), made)


def _shape(shape):
    if not isinstance(shape, (int, tuple, list, Tensor)):
        raise TypeError(f"only int, tuple and list are allowed for shape, but got {type(shape)}")
    return (shape,) if isinstance(shape, int) else tuple(int(each) for each in shape)


def full(shape, fill_value, dtype=None):
    """One value."""
    value = _typed(as_tensor(fill_value), dtype)
    return core.broadcast_to(value, basic.ints(_shape(shape)))


def zeros(shape, dtype=mstype.float32):
    """Zeros."""
    return basic.filled(_shape(shape), 0, dtype)


def ones(shape, dtype=mstype.float32):
    """Ones."""
    return basic.filled(_shape(shape), 1, dtype)


empty = zeros


def _like(value):
    def function(a, dtype=None, shape=None):
        a = as_tensor(a)
        return basic.filled(a.shape if shape is None else _shape(shape), value, dtype or a.dtype)

    return function


zeros_like, ones_like, empty_like = _like(0), _like(1), _like(0)


def full_like(a, fill_value, dtype=None, shape=None):
    """One value with the shape of a."""
    a = as_tensor(a)
    return full(a.shape if shape is None else shape, fill_value, dtype or a.dtype)


def arange(start, stop=None, step=None, dtype=None):
    """start, start + step, ... below stop."""
    start, stop = (0, start) if stop is None else (start, stop)
    made = np.arange(start, stop, 1 if step is None else step)
    return _typed(Tensor(made.astype(np.float32 if made.dtype.kind == "f" else np.int32)), dtype)


def linspace(start, stop, num=50, endpoint=True, retstep=False, dtype=None, axis=0):
    """num numbers from start to stop."""
    start, stop = (basic.cast(as_tensor(each), np.float32) for each in (start, stop))
    steps = np.linspace(0, 1, num, endpoint=endpoint).astype(np.float32)
    shape = np.broadcast_shapes(tuple(start.shape), tuple(stop.shape))
    steps = steps.reshape((num,) + (1,) * len(shape))
    out = core.add(core.mul(core.sub(stop, start), steps), start)
    out = _typed(basic.moved(out, 0, axis) if axis else out, dtype)
    return (out, core.div(core.sub(stop, start), np.asarray(num - bool(endpoint), np.float32))) if retstep else out


def logspace(start, stop, num=50, endpoint=True, base=10.0, dtype=None, axis=0):
    """Powers of the base."""
    return _typed(core.pow(np.asarray(base, np.float32), linspace(start, stop, num, endpoint, axis=axis)), dtype)


def geomspace(start, stop, num=50, endpoint=True, dtype=None, axis=0):
    """num numbers in one ratio."""
    start, stop = (core.log(basic.cast(as_tensor(each), np.float32)) for each in (start, stop))
    return _typed(core.exp(linspace(start, stop, num, endpoint, axis=axis)), dtype)


def eye(N, M=None, k=0, dtype=mstype.float32):
    """Ones on a diagonal."""
    return Tensor(np.eye(N, M, k, dtype=basic.as_np(dtype)))


def identity(n, dtype=mstype.float32):
    """Ones on the diagonal."""
    return eye(n, dtype=dtype)


def tri(N, M=None, k=0, dtype=mstype.float32):
    """Ones at and below a diagonal."""
    return Tensor(np.tri(N, M, k, basic.as_np(dtype)))


def tril(m, k=0):
    """Lower triangle."""
    return arrays.band(as_tensor(m), None, k)


def triu(m, k=0):
    """Upper triangle."""
    return arrays.band(as_tensor(m), -k, None)


def diag(v, k=0):
    """A diagonal as matrix, or the diagonal of a matrix."""
    v = as_tensor(v)
    if len(v.shape) == 2:
        return arrays.diagonal(v, k)
    size = v.shape[0] + abs(k)
    at = np.zeros((v.shape[0], size, size), basic.nptype(v))
    at[np.arange(v.shape[0]), np.arange(v.shape[0]) + max(-k, 0), np.arange(v.shape[0]) + max(k, 0)] = 1
    return core.reduce_sum(core.mul(basic.reshape(v, (-1, 1, 1)), at), axes=[0], keep_dims=False)


def diagonal(a, offset=0, axis1=0, axis2=1):
    """Diagonals along a new last axis."""
    return arrays.diagonal(as_tensor(a), offset, axis1, axis2)


def trace(a, offset=0, axis1=0, axis2=1, dtype=None):
    """Sum of diagonals."""
    lined = arrays.diagonal(as_tensor(a), offset, axis1, axis2)
    return _typed(core.reduce_sum(lined, axes=[len(lined.shape) - 1], keep_dims=False), dtype)


def meshgrid(*xi, sparse=False, indexing="xy"):
    """Coordinates of a grid."""
    if indexing not in ("xy", "ij"):
        raise TypeError("Valid values for `indexing` are 'xy' and 'ij'.")
    given = [basic.reshape(as_tensor(each), (-1,)) for each in xi]
    if not sparse:
        return list(arrays.meshgrid(given, indexing))
    places = list(range(len(given)))
    if indexing == "xy" and len(given) > 1:
        places[:2] = 1, 0
    return [basic.reshape(x, [-1 if i == place else 1 for i in range(len(given))]) for x, place in zip(given, places)]


def _sizes(shape):
    for each in shape if len(shape) != 1 else ():
        if not isinstance(each, int):
            raise TypeError(f"only int is allowed for sizes, but got {type(each)}")
    return _shape(shape[0]) if len(shape) == 1 else shape


def _of_kind(dtype, kinds):
    """dtype as NumPy's, which must be of the kinds."""
    dtype = basic.as_np(dtype)
    if dtype.kind not in kinds:
        raise ValueError(f"dtype should be {'a float' if 'f' in kinds else 'an integer'}, but got {dtype}")
    return dtype


def rand(*shape, dtype=mstype.float32):
    """Numbers in [0, 1)."""
    from cairn.ms.numerics import random

    return random.uniform(_sizes(shape), _of_kind(dtype, "f"))


def randn(*shape, dtype=mstype.float32):
    """Normal numbers."""
    from cairn.ms.numerics import random

    return random.normal(_sizes(shape), _of_kind(dtype, "f"))


def randint(minval, maxval=None, shape=None, dtype=mstype.int32):
    """Whole numbers in [minval, maxval)."""
    from cairn.ms.numerics import random

    low, high = (0, minval) if maxval is None else (minval, maxval)
    if not isinstance(low, int) or not isinstance(high, int):
        raise TypeError(f"minval and maxval should be int, but got {type(minval)} and {type(maxval)}")
    if low >= high:
        raise ValueError(f"maxval should be more than minval, but they are {high} and {low}")
    return random.integers(_shape(shape or (1,)), np.int32(low), np.int32(high), _of_kind(dtype, "iu"))


__all__ = [
    "array", "asarray", "asfarray", "full", "zeros", "ones", "empty", "zeros_like", "ones_like", "empty_like", "full_like", "arange",
    "linspace", "logspace", "geomspace", "eye", "identity", "tri", "tril", "triu", "diag", "diagonal", "trace", "meshgrid", "rand",
    "randn", "randint",
]  # fmt: skip
