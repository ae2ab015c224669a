"""Functions that look for elements, hold windows, or are special: Bessel's, complex numbers."""

import numpy as np
from cairn.ms import core
from cairn.ms.numerics import arrays, basic, reductions
from mindspore.common import dtype as mstype
from mindspore.common.tensor import Tensor
from mindspore.ops import operations as P
from mindspore.ops.operations import _inner_ops

for _name in ("bessel_j0", "bessel_j1", "bessel_k0", "bessel_k0e", "bessel_k1", "bessel_k1e", "bessel_y0", "bessel_y1"):
    globals()[_name] = getattr(P, "Bessel" + _name[7:].upper().replace("E", "e"))()
angle, conj, real, imag, polar, nextafter, eps, fills = (
    getattr(P, name)() for name in ("Angle", "Conj", "Real", "Imag", "Polar", "NextAfter", "Eps", "Fills")
)
bitwise_left_shift, bitwise_right_shift = P.LeftShift(), P.RightShift()


def view_as_real(input):
    """Real and imaginary parts along a new last axis."""
    return Tensor(np.stack([input.asnumpy().real, input.asnumpy().imag], -1))


def sequence_mask(lengths, maxlen=None):
    """True at the first places of each row, as many as its length says."""
    return _inner_ops._sequence_mask(lengths, maxlen)


def argwhere(input):
    """Coordinates of elements that are not 0."""
    return P.NonZero()(input)


def bucketize(input, boundaries, *, right=False):
    """Number of bounds below each element, or not above it."""
    x = basic.expand(basic.cast(input, np.float32), -1)
    row = core.greater_equal if right else core.greater
    return basic.cast(reductions.total(basic.cast(row(x, np.asarray(boundaries, np.float32)), np.int32), -1), np.int32)


def ctc_greedy_decoder(inputs, sequence_length, merge_repeated=True):
    """The most probable labels of each step, without blanks."""
    return P.CTCGreedyDecoder(merge_repeated)(inputs, sequence_length)


def unique(x):
    """The different elements, and for each element of x the place of its value among them."""
    values, places = P.Unique()(basic.reshape(x, (-1,)))
    return values, basic.reshape(places, tuple(x.shape))


def unique_consecutive(x, return_idx=False, return_counts=False, axis=None):
    """Runs of equal elements."""
    if not isinstance(return_idx, bool) or not isinstance(return_counts, bool):
        raise TypeError("For 'unique_consecutive', 'return_idx' and 'return_counts' must be bool.")
    values, places, counts = P.UniqueConsecutive(return_idx, return_counts, axis)(x)
    more = ([places] if return_idx else []) + ([counts] if return_counts else [])
    return (values, *more) if more else values


def coalesce(x_indices, x_values, x_shape):
    """Sparse elements of one place added."""
    return P.Coalesce()(x_indices, x_values, x_shape)


def histc(input, bins=100, min=0.0, max=0.0):
    """Counts in bins of equal width."""
    return P.Histogram(bins, float(min), float(max))(input)


def logspace(start, end, steps, base=10, *, dtype=mstype.float32):
    """Powers of the base at equal steps."""
    start, end = (each if isinstance(each, Tensor) else Tensor(each, mstype.float32) for each in (start, end))
    return P.LogSpace(steps, base, dtype)(start, end)


def hamming_window(window_length, periodic=True, alpha=0.54, beta=0.46, *, dtype=None):
    """A window of weights."""
    return P.HammingWindow(periodic, alpha, beta, dtype or mstype.float32)(window_length)


def hann_window(window_length, periodic=True, *, dtype=None):
    """A window of weights."""
    return P.HannWindow(periodic, dtype or mstype.float32)(window_length)


def blackman_window(window_length, periodic=True, *, dtype=None):
    """A window of weights."""
    return P.BlackmanWindow(periodic, dtype or mstype.float32)(window_length)


def bartlett_window(window_length, periodic=True, *, dtype=None):
    """A window of weights."""
    return P.BartlettWindow(periodic, dtype or mstype.float32)(window_length)


def kaiser_window(window_length, periodic=True, beta=12.0, *, dtype=None):
    """A window of weights."""
    count = int(window_length)
    made = np.kaiser(count + 1, float(beta))[:-1] if periodic and count > 1 else np.kaiser(count, float(beta))
    return Tensor(made.astype(basic.as_np(dtype or mstype.float32)))


def copysign(x, other):
    """The magnitude of x with the sign of another number."""
    size = core.abs(x if basic.is_float(x) else basic.cast(x, np.float32))
    other = (
        basic.cast(other, basic.nptype(size)) if isinstance(other, Tensor) else Tensor(np.asarray(other, basic.nptype(size)))
    )
    negative = core.less(other, basic.number(0, other))
    return core.select(negative, core.neg(size), size)


def sgn(input):
    """Signs."""
    return core.sign(input)


def _whether(function, doc):
    def test(input):
        if not isinstance(input, Tensor):
            raise TypeError(f"the input must be a Tensor, but got {type(input).__name__}.")
        return function(input)

    test.__doc__ = doc
    return test


is_complex = _whether(lambda x: basic.nptype(x).kind == "c", "Whether the elements are complex.")
is_floating_point = _whether(lambda x: basic.nptype(x).kind == "f", "Whether the elements are floats.")
is_nonzero = _whether(lambda x: bool(x.asnumpy().reshape(-1)[0]), "Whether the one element is not 0.")
isneginf = _whether(lambda x: core.and_(core.is_inf(x), core.less(x, basic.number(0, x))), "Where -inf is.")
isposinf = _whether(lambda x: core.and_(core.is_inf(x), core.greater(x, basic.number(0, x))), "Where inf is.")


def expand_as(input, other):
    """input repeated to the shape of another tensor."""
    return input.broadcast_to(other.shape)


def type_as(input, other):
    """input with the dtype of another tensor."""
    return basic.cast(input, other.dtype)


def intopk(x1, x2, k):
    """Whether each target is among the k largest."""
    return P.InTopK(k)(x1, x2)


def tril_indices(row, col, offset=0, *, dtype=mstype.int64):
    """Places of a lower triangle."""
    return P.TrilIndices(row, col, offset, dtype)()


def triu_indices(row, col, offset=0, *, dtype=mstype.int64):
    """Places of an upper triangle."""
    return P.TriuIndices(row, col, offset, dtype)()


def t(input):
    """The transposed matrix."""
    if len(input.shape) > 2:
        raise ValueError(f"For 't', the rank of input must be at most 2, but got {len(input.shape)}.")
    return basic.swapped(input, 0, 1) if len(input.shape) == 2 else input


def vander(x, N=None):
    """Falling powers of the elements as columns."""
    count = x.shape[0] if N is None else N
    return core.pow(basic.expand(x, 1), basic.number(np.arange(count)[::-1], x))


def diag_embed(input, offset=0, dim1=-2, dim2=-1):
    """Elements of the last axis on diagonals."""
    size, rank = input.shape[-1] + abs(offset), len(input.shape) + 1
    place = np.zeros((size, size), bool)
    at = np.arange(input.shape[-1])
    place[at + max(-offset, 0), at + max(offset, 0)] = True
    source = np.broadcast_to(np.clip(np.arange(size)[:, None] - max(-offset, 0), 0, input.shape[-1] - 1), (size, size))
    made = core.select(place, core.gather(input, source.astype(np.int64), axis=rank - 2), basic.number(0, input))
    first, second = dim1 % rank, dim2 % rank
    order = [a for a in range(rank - 2)]
    for axis, own in sorted(((first, rank - 2), (second, rank - 1))):
        order.insert(axis, own)
    return core.transpose(made, permutation=order)


def nansum(input, axis=None, keepdims=False, *, dtype=None):
    """Sum without NaN."""
    x = core.select(core.is_nan(input), basic.number(0, input), input)
    made = reductions.total(x, () if axis is None else axis, keepdims)
    return made if dtype is None else basic.cast(made, dtype)


def aminmax(input, *, axis=0, keepdims=False):
    """(smallest, largest) along an axis."""
    axis = () if axis is None else axis
    return reductions.minimum(input, axis, keepdims), reductions.maximum(input, axis, keepdims)


def embedding(input, weight, padding_idx=None, max_norm=None, norm_type=2.0, scale_grad_by_freq=False):
    """Rows of a table."""
    return arrays.gather(weight, input)


def float_power(input, exponent):
    """Powers in float64."""
    x, y = (basic.cast(each, np.float64) if isinstance(each, Tensor) else np.float64(each) for each in (input, exponent))
    return core.pow(x, y)


del _name
