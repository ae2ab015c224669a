"""Sums, products and conversions of tensors that are places and values."""

import numpy as np
from cairn.ms import core
from cairn.ms.numerics import arrays, basic
from cairn.ms.numerics.basic import cast, nptype
from cairn.ms.tensor import Tensor


def dense(indices, values, shape):
    return arrays.scatter_new(indices, values, shape)


def rows_dense(indices, values, shape):
    return arrays.scatter_new(basic.reshape(indices, (-1, 1)), values, shape)


def rows_of(indptr, count):
    """The row of each of `count` elements."""
    ends = core.slice(indptr, [1], [indptr.shape[0]])
    passed = core.greater_equal(np.arange(count, dtype=nptype(indptr))[:, None], basic.expand(ends, 0))
    return core.reduce_sum(cast(passed, nptype(indptr)), axes=[1], keep_dims=False)


def paired(rows, columns):
    return basic.stack([rows, cast(columns, nptype(rows))], 1)


def product(rows, columns, values, shape, other):
    """The matrix of elements times a dense matrix or vector."""
    picked = core.gather(other, arrays.wide(columns), axis=0)
    terms = core.mul(picked, basic.reshape(values, (values.shape[0], *[1] * (len(picked.shape) - 1))))
    return arrays.segment(terms, rows, shape[0], "sum")


def summed(rows, columns, values, shape, axis):
    """Sums of the elements along an axis."""
    made = arrays.unsorted_segment(values, rows if axis == 1 else columns, shape[1 - axis], "sum")
    return basic.expand(made, axis)


def at(other, places, shape, values_shape=None):
    """Elements of a dense tensor, which broadcasts to the shape, at the places."""
    rank = len(places.shape) and places.shape[1]
    lead = shape[:rank]
    if len(other.shape) < len(shape) or tuple(other.shape[:rank]) != tuple(lead):
        other = core.broadcast_to(other, basic.ints(np.broadcast_shapes(other.shape, shape)))
    return core.gather_nd(other, arrays.wide(places))


def elements_of(x):
    """(places, values) of the elements that are not 0."""
    places = core.non_zero(x)
    return places, core.gather_nd(x, places)


def _flat(indices, shape):
    return np.ravel_multi_index(tuple(indices.asnumpy().T), shape)


def coalesced(indices, values, shape):
    """(places, values) with each place once, in order; which there are is known when it runs."""
    kinds, numbers = np.unique(_flat(indices, shape), return_inverse=True)
    made = arrays.unsorted_segment(values, Tensor(numbers.reshape(-1)), len(kinds), "sum")
    return Tensor(np.stack(np.unravel_index(kinds, shape), 1).astype(nptype(indices))), made


def added(first, second, shape, least):
    """(places, values) of the sum of two."""
    indices = core.concat(first[0], cast(second[0], nptype(first[0])), axis=0)
    indices, values = coalesced(indices, core.concat(first[1], cast(second[1], nptype(first[1])), axis=0), shape)
    if least is None:
        return indices, values
    kept = np.nonzero(np.abs(values.asnumpy()) > np.asarray(least.asnumpy() if isinstance(least, Tensor) else least))[0]
    return tuple(core.gather(each, kept, axis=0) for each in (indices, values))


def by_rows(indices, values, shape, dtype=None):
    """(ends of rows, columns, values) in order of rows."""
    places = indices.asnumpy()
    order = np.lexsort((places[:, 1], places[:, 0]))
    dtype = nptype(indices) if dtype is None else basic.as_np(dtype)
    ends = np.concatenate([[0], np.cumsum(np.bincount(places[:, 0], minlength=shape[0]))]).astype(dtype)
    return Tensor(ends), Tensor(places[order, 1].astype(dtype)), core.gather(values, order.astype(np.int64), axis=0)
