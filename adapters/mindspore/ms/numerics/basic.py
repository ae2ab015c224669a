"""Constants, casts, axes and elementwise functions that take more than one row."""

import functools
import math

import numpy as np
from cairn.ms import core, dtypes, promote


def ints(values):
    """A constant vector of sizes, indices or a permutation."""
    return np.asarray(values, np.int64)


def nptype(x):
    """NumPy's dtype of a tensor or of a constant."""
    return x.dtype if isinstance(x, np.ndarray) else promote.nptype(x)


def number(value, like):
    """A constant of the tensor's dtype."""
    return np.asarray(value, nptype(like))


def as_np(dtype):
    """NumPy's dtype of any statement of one: MindSpore's, NumPy's, Python's, a name."""
    return np.dtype("bool") if dtype is bool else dtypes.numpy_of(dtype)


def cast(x, dtype):
    """x with the dtype, x itself where it has it."""
    wanted = as_np(dtype)
    return x if nptype(x) == wanted else core.cast(x, dtype=wanted)


def is_float(x):
    """Whether the elements are floating, or complex, numbers."""
    return nptype(x).kind in "fc"


def filled(shape, value, dtype):
    """A tensor of one value."""
    return core.broadcast_to(np.asarray(value, as_np(dtype)), ints(shape))


def like(x, value):
    """A tensor of one value with shape and dtype of x."""
    return filled(x.shape, value, nptype(x))


def axes_of(axis, rank):
    """Axes as a sorted list of counts from 0; none given means all."""
    if axis is None or axis == () or axis == []:
        return list(range(rank))
    axes = [axis] if isinstance(axis, (int, np.integer)) else list(axis)
    for each in axes:
        if not -max(rank, 1) <= each < max(rank, 1):
            raise ValueError(f"axis must be in [{-rank}, {rank}), found {each}")
    made = sorted({int(each) % max(rank, 1) for each in axes})
    if len(made) != len(axes):
        raise ValueError(f"duplicate value in axis: {axis}")
    return made if rank else []


@functools.lru_cache(1024)
@functools.lru_cache(4096)
def permutation(order, rank):
    """The tuple of axes as counts from 0; None where it is no permutation of `rank` axes."""
    made = tuple(each % rank for each in order if -rank <= each < rank)
    return made if len(made) == len(order) and sorted(made) == list(range(rank)) else None


def swapped(x, a, b):
    """x with two axes exchanged."""
    order = list(range(len(x.shape)))
    order[a], order[b] = order[b], order[a]
    return core.transpose(x, permutation=order)


def moved(x, source, target):
    """x with one axis at another place."""
    order = list(range(len(x.shape)))
    order.insert(target % len(order), order.pop(source % len(order)))
    return core.transpose(x, permutation=order) if order != list(range(len(order))) else x


@functools.lru_cache(4096)
def _held(sizes):
    made = ints(sizes)
    made.setflags(write=False)
    return made


def reshape(x, shape):
    return core.reshape(x, _held(shape) if type(shape) is tuple else ints(shape))


def expand(x, axis):
    rank = len(x.shape) + 1
    at = axis % rank
    return reshape(x, x.shape[:at] + (1,) + x.shape[at:])


def part(x, axis, begin, end, step=1):
    """x[begin:end:step] along one axis."""
    rank = len(x.shape)
    axis %= rank
    begins = [0] * rank
    ends = list(x.shape)
    steps = [1] * rank
    begins[axis], ends[axis], steps[axis] = begin, end, step
    return core.slice(x, ints(begins), ints(ends), **({"steps": steps} if step != 1 else {}))


def at(x, axis, index):
    """x[index] along one axis, which goes."""
    axis %= len(x.shape)
    index %= x.shape[axis]
    return reshape(part(x, axis, index, index + 1), x.shape[:axis] + x.shape[axis + 1 :])


def split(x, axis, lengths):
    """The parts of x of these lengths along one axis."""
    begin, parts = 0, []
    for length in lengths:
        parts.append(part(x, axis, begin, begin + length))
        begin += length
    return tuple(parts)


def stack(parts, axis=0):
    return core.concat(*[expand(each, axis) for each in parts], axis=axis % (len(parts[0].shape) + 1))


def where_positive(x, yes, no):
    return core.select(core.greater(x, number(0, x)), yes, no)


def relu6(x):
    return core.clip(x, low=0.0, high=6.0)


def hard_sigmoid(x):
    return core.clip(core.div(core.add(x, number(3, x)), number(6, x)), low=0.0, high=1.0)


def hard_swish(x):
    return core.mul(x, hard_sigmoid(x))


def fast_gelu(x):
    return core.mul(x, core.sigmoid(core.mul(x, number(1.702, x))))


def silu(x):
    return core.mul(x, core.sigmoid(x))


def selu(x):
    scale, alpha = 1.0507009873554805, 1.6732632423543772
    return core.mul(core.elu(x, alpha=alpha), number(scale, x))


def celu(x, alpha):
    """max(0, x) + min(0, alpha * (exp(x / alpha) - 1))"""
    slope = core.mul(core.expm1(core.div(core.minimum(x, number(0, x)), number(alpha, x))), number(alpha, x))
    return core.add(core.relu(x), slope)


def softsign(x):
    return core.div(x, core.add(core.abs(x), number(1, x)))


def log_sigmoid(x):
    return core.neg(core.softplus(core.neg(x)))


def hard_shrink(x, bound):
    inside = core.less_equal(core.abs(x), number(bound, x))
    return core.select(inside, number(0, x), x)


def soft_shrink(x, bound):
    return core.sub(x, core.clip(x, low=-float(bound), high=float(bound)))


def prelu(x, weight):
    """x above 0, else weight * x; one weight for all, or one for each channel (axis 1)."""
    if len(weight.shape) and weight.shape[0] != 1 and len(x.shape) > 2:
        weight = reshape(weight, (1, -1) + (1,) * (len(x.shape) - 2))
    return where_positive(x, x, core.mul(x, weight))


def log_base(x, base):
    return core.div(core.log(x), number(math.log(base), x))


def xlogy(x, y):
    """x * log(y), 0 where x is 0."""
    zero = core.equal(x, number(0, x))
    return core.select(zero, number(0, x), core.mul(x, core.log(core.select(zero, number(1, y), y))))


def xdivy(x, y):
    return core.select(core.equal(x, number(0, x)), number(0, x), core.div(x, y))


def div_no_nan(x, y):
    """x / y, 0 where y is 0; the gradient there is 0 too."""
    zero = core.equal(y, number(0, y))
    quotient = core.div if is_float(x) else core.truncate_div
    return core.select(zero, number(0, x), quotient(x, core.select(zero, number(1, y), y)))


def mul_no_nan(x, y):
    """x * y, 0 where y is 0."""
    return core.select(core.equal(y, number(0, y)), number(0, x), core.mul(x, y))


def divide(x, y):
    """x / y; of integers rounded towards 0."""
    return core.div(x, y) if is_float(x) else core.truncate_div(x, y)


def pow(x, y):
    """x ** y. Integers to negative powers are truncated, as MindSpore computes them in floats: 0, but for 1 and -1."""
    known = y._array if isinstance(y, core.Tensor) else np.asarray(y)
    if nptype(x).kind != "i" or known is not None and not (known < 0).any():
        return core.pow(x, y)
    whole = core.pow(x, core.maximum(y, number(0, y)))
    unit = core.pow(x, core.bit_and(y, number(1, y)))
    fraction = core.select(core.equal(core.abs(x), number(1, x)), unit, number(0, x))
    return core.select(core.less(y, number(0, y)), fraction, whole)


def hypot(x, y):
    return core.sqrt(core.add(core.square(x), core.square(y)))


def log_add_exp(x, y, base=math.e):
    scale = math.log(base)
    top = core.maximum(x, y)
    low = core.mul(core.neg(core.abs(core.sub(x, y))), number(scale, x))
    return core.add(top, core.div(core.log1p(core.exp(low)), number(scale, x)))


def is_close(x, y, rtol, atol, equal_nan):
    if not is_float(x):
        x, y = cast(x, np.float32), cast(y, np.float32)
    bound = core.add(number(atol, x), core.mul(core.abs(y), number(rtol, x)))
    near = core.and_(core.less_equal(core.abs(core.sub(x, y)), bound), core.is_finite(y))
    near = core.or_(near, core.equal(x, y))
    if equal_nan:
        near = core.or_(near, core.and_(core.is_nan(x), core.is_nan(y)))
    return near


def matmul(x, y, transpose_x=False, transpose_y=False):
    """The product of matrices, or with vectors, by NumPy's rules."""
    squeeze = []
    if len(x.shape) == 1:
        x = reshape(x, (1,) + x.shape)
        squeeze.append(-2)
    if len(y.shape) == 1:
        y = reshape(y, y.shape + (1,))
        squeeze.append(-1)
    out = core.matmul(x, y, transpose_a=transpose_x, transpose_b=transpose_y)
    for axis in squeeze:
        shape = list(out.shape)
        del shape[axis]
        out = reshape(out, tuple(shape))
    return out


def bias_add(x, bias, data_format="NCHW"):
    if data_format.startswith("NC") and len(x.shape) > 2:
        bias = reshape(bias, (1, -1) + (1,) * (len(x.shape) - 2))
    return core.add(x, bias)
