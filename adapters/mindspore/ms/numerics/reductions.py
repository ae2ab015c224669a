"""Reductions, norms, running sums, sorting."""

import numpy as np
from cairn.ms import core
from cairn.ms.numerics.basic import axes_of, cast, expand, ints, is_float, moved, nptype, number, part, reshape


def _reduction(row):
    def reduce(x, axis=(), keep_dims=False):
        rank = len(x.shape)
        axes = axes_of(axis, rank)
        return getattr(core, row)(x, axes=axes, keep_dims=keep_dims) if rank else x

    return reduce


maximum, minimum = _reduction("reduce_max"), _reduction("reduce_min")
product = _reduction("reduce_prod")
_sum, _mean = _reduction("reduce_sum"), _reduction("reduce_mean")
_all, _any = _reduction("reduce_all"), _reduction("reduce_any")


def total(x, axis=(), keep_dims=False):
    """Sum; of bools the number of true ones... as bool: any."""
    return _any(x, axis, keep_dims) if nptype(x).kind == "b" else _sum(x, axis, keep_dims)


def mean(x, axis=(), keep_dims=False):
    """Mean; of integers rounded towards 0."""
    if is_float(x):
        return _mean(x, axis, keep_dims)
    return cast(_mean(cast(x, np.float32), axis, keep_dims), nptype(x))


def all_of(x, axis=(), keep_dims=False):
    return _all(cast(x, np.bool_), axis, keep_dims)


def any_of(x, axis=(), keep_dims=False):
    return _any(cast(x, np.bool_), axis, keep_dims)


def variance(x, axis=(), ddof=0, keep_dims=False):
    axes = axes_of(axis, len(x.shape))
    count = int(np.prod([x.shape[a] for a in axes])) - ddof
    spread = core.square(core.sub(x, _mean(x, axes, True)))
    return core.div(_sum(spread, axes, keep_dims), number(count, x))


def std(x, axis=(), ddof=0, keep_dims=False):
    return core.sqrt(variance(x, axis, ddof, keep_dims))


def norm(x, axis=(), p=2, keep_dims=False, least=0.0):
    """(sum |x|^p)^(1/p), of which the sum is at least `least`."""
    if p == 2:
        powers = _sum(core.square(x), axis, keep_dims)
        return core.sqrt(core.maximum(powers, number(least, x)) if least else powers)
    size = core.abs(x)
    if p == 1:
        return _sum(size, axis, keep_dims)
    if np.isinf(p):
        return (maximum if p > 0 else minimum)(size, axis, keep_dims)
    if p > 8:  # powers of small numbers would vanish: those of shares of the largest do not
        top = core.stop_gradient(core.maximum(maximum(size, axis, True), number(np.finfo(nptype(x)).tiny, x)))
        share = core.pow(_sum(core.pow(core.div(size, top), number(p, x)), axis, True), number(1.0 / p, x))
        made = core.mul(top, share)
        return made if keep_dims else reshape(made, [size for axis_, size in enumerate(made.shape) if axis_ not in axes_of(axis, len(x.shape))])
    powers = _sum(core.pow(size, number(p, x)), axis, keep_dims)
    return core.pow(core.maximum(powers, number(least, x)) if least else powers, number(1.0 / p, x))


def l2_normalize(x, axis, epsilon):
    return core.div(x, norm(x, axis, keep_dims=True, least=epsilon))


def log_sum_exp(x, axis=(), keep_dims=False):
    top = core.stop_gradient(maximum(x, axis, True))
    top = core.select(core.is_finite(top), top, number(0, x))
    logarithm = core.log(_sum(core.exp(core.sub(x, top)), axis, True))
    out = core.add(logarithm, top)
    return out if keep_dims else squeezed(out, axis)


def squeezed(x, axis=()):
    rank = len(x.shape)
    gone = [a for a in range(rank) if x.shape[a] == 1] if axis in ((), None) else axes_of(axis, rank)
    for a in gone:
        if x.shape[a] != 1:
            raise ValueError(f"cannot squeeze axis {a} of size {x.shape[a]}, it must be 1")
    return reshape(x, tuple(size for a, size in enumerate(x.shape) if a not in gone))


def arg(row, x, axis=-1, dtype=np.int32, keep_dims=False):
    """Index of the largest or smallest element ("arg_max", "arg_min"); axis None counts in all elements."""
    if axis is None:
        x, axis = reshape(x, (-1,)), 0
    rank = max(len(x.shape), 1)
    if not -rank <= axis < rank:
        raise ValueError(f"axis must be in [{-rank}, {rank}), found {axis}")
    wide = getattr(core, row)(x, axis=axis % rank, keep_dims=keep_dims)
    return cast(wide, dtype)


def arg_with_value(row, x, axis=0, keep_dims=False):
    rank = len(x.shape)
    if not rank:
        return cast(core.mul(x, number(0, x)), np.int32), x
    index = arg(row, x, axis, np.int32, keep_dims)
    value = (maximum if row == "arg_max" else minimum)(x, axis, keep_dims)
    return index, value


def cumsum(x, axis, exclusive=False, reverse=False):
    axis = axes_of(axis, len(x.shape))[0]
    return core.cumsum(x, axis=axis, exclusive=exclusive, reverse=reverse)


def cumulative(combine, x, axis, first=None):
    """Running product, maximum or minimum: log2(n) passes, each combining elements twice as far apart."""
    axis = axes_of(axis, len(x.shape))[0]
    step, size = 1, x.shape[axis]
    while step < size:
        rest = combine(part(x, axis, step, size), part(x, axis, 0, size - step))
        x = core.concat(part(x, axis, 0, step), rest, axis=axis)
        step *= 2
    return x


def cumprod(x, axis, exclusive=False, reverse=False):
    axis = axes_of(axis, len(x.shape))[0]
    if reverse:
        x = core.reverse(x, axes=[axis])
    out = cumulative(core.mul, x, axis)
    if exclusive:
        ones = core.broadcast_to(number(1, x), ints(x.shape[:axis] + (1,) + x.shape[axis + 1 :]))
        out = core.concat(ones, part(out, axis, 0, x.shape[axis] - 1), axis=axis)
    return core.reverse(out, axes=[axis]) if reverse else out


def top_k(x, k, is_sorted=True):
    """Values and i32 indices of the k largest along the last axis."""
    if not is_sorted and k == x.shape[-1]:  # all of them, as they are
        return x, core.broadcast_to(np.arange(k, dtype=np.int32), ints(x.shape))
    values, indices = core.top_k(x, np.asarray(k, np.int64), sorted=is_sorted)
    return values, cast(indices, np.int32)


def sort(x, axis=-1, descending=False):
    """Sorted values and their i32 indices; equal ones keep their order."""
    rank = len(x.shape)
    axis = axes_of(axis, rank)[0]
    lined = moved(x, axis, -1)
    if descending:
        values, indices = core.top_k(lined, np.asarray(x.shape[axis], np.int64))
    else:
        key = core.neg(lined) if nptype(x).kind in "fi" else core.bit_not(lined)
        _, indices = core.top_k(key, np.asarray(x.shape[axis], np.int64))
        values = take_along(lined, indices, -1)
    return moved(values, -1, axis), cast(moved(indices, -1, axis), np.int32)


def take_along(x, indices, axis):
    """Elements of x along one axis by an index of the same rank."""
    rank = len(x.shape)
    axis %= rank
    lined, order = moved(x, axis, -1), moved(indices, axis, -1)
    if tuple(lined.shape[:-1]) != tuple(order.shape[:-1]):
        for a in range(rank - 1):
            lined = part(lined, a, 0, order.shape[a])
    out = core.gather(lined, order, axis=rank - 1, batch_dims=rank - 1)
    return moved(out, -1, axis)


def median(x, axis=-1, keep_dims=False):
    """Lower median along the axis and its index."""
    values, indices = sort(x, axis)
    axis = axis % len(x.shape)
    middle = (x.shape[axis] - 1) // 2
    pair = [part(each, axis, middle, middle + 1) for each in (values, indices)]
    return tuple(each if keep_dims else squeezed(each, axis) for each in pair)


def count_nonzero(x, axis=(), keep_dims=False, dtype=np.int32):
    flags = cast(core.not_equal(x, number(0, x)), np.int32)
    return cast(_sum(flags, axis, keep_dims), dtype)


def expand_to(x, rank):
    while len(x.shape) < rank:
        x = expand(x, -1)
    return x
