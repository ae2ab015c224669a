"""Primitives that look for elements, count them, or hold constants: windows, ranges, places, lists."""

import math

import numpy as np
from cairn.ms import core
from cairn.ms.numerics import arrays, basic, losses, reductions
from mindspore._checkparam import Validator
from mindspore.common import dtype as mstype
from mindspore.common.tensor import Tensor
from mindspore.ops.operations._form import REQUIRED, host, parameter, primitive, same_type, static, tensor, unary


def _bound(name, side):
    def compute(self, x, values):
        rows, columns = x.shape
        y = basic.reshape(values, (rows, 1, -1))
        row = core.less if side == "left" else core.less_equal
        below = row(basic.reshape(x, (rows, columns, 1)), y)
        return basic.cast(
            core.reduce_sum(basic.cast(below, np.int32), axes=[1], keep_dims=False), basic.as_np(self.out_type)
        )

    return primitive(name, compute, "Where each value belongs in sorted rows.", out_type=mstype.int32)


LowerBound, UpperBound = _bound("LowerBound", "left"), _bound("UpperBound", "right")


def _unravel(self, indices, dims):
    dims = dims.asnumpy().tolist() if isinstance(dims, Tensor) else list(dims)
    out, scale = [], 1
    for size in reversed(dims):
        out.append(core.mod(core.floor_div(indices, basic.number(scale, indices)), basic.number(size, indices)))
        scale *= size
    return basic.stack(out[::-1], 0)


UnravelIndex = primitive("UnravelIndex", _unravel, "Indices as coordinates, one row for each dim.")


def _list_difference(self, x, y):
    keep = ~np.isin(x, y)
    return x[keep], np.nonzero(keep)[0].astype(basic.as_np(self.out_idx))


ListDiff = host("ListDiff", _list_difference, "Elements of x that y lacks, and their places.", out_idx=mstype.int32)


def consecutive(x, with_index=False, with_counts=False, axis=None):
    """(values, places, counts) of runs of equal elements."""
    lined = x.reshape(-1) if axis is None else np.moveaxis(x, axis, 0)
    rows = lined.reshape(len(lined), -1)
    first = np.concatenate([[True], (rows[1:] != rows[:-1]).any(1)])
    starts = np.nonzero(first)[0]
    values = lined[starts] if axis is None else np.moveaxis(lined[starts], 0, axis)
    places = np.cumsum(first) - 1
    counts = np.diff(np.append(starts, len(lined)))
    return values, places.reshape(x.shape if axis is None else -1).astype(np.int32), counts.astype(np.int32)


UniqueConsecutive = host(
    "UniqueConsecutive", lambda self, x: consecutive(x, axis=self.axis if self.axis not in (1000,) else None), "Runs of equal elements.",
    return_idx=False, return_counts=False, axis=None,
)  # fmt: skip
Fills = primitive(
    "Fills",
    lambda self, x, value: core.broadcast_to(same_type(value, x), basic.ints(x.shape)),
    "A tensor like x of one value.",
)
CheckNumerics = host("CheckNumerics", lambda self, x: _finite(x), "x, which holds no NaN and no infinity.")


def _finite(x):
    if not np.isfinite(x).all():
        raise RuntimeError("For 'CheckNumerics', input data contains NaN or Inf.")
    return x


def _fill_diagonal(self, x):
    rank = len(tensor(x, "FillDiagonal").shape)
    if rank < 2:
        raise ValueError(f"For 'FillDiagonal', x must have at least 2 dimensions, but got {rank}.")
    if rank > 2 and len(set(x.shape)) != 1:
        raise ValueError("For 'FillDiagonal', each dim of x must be of equal size while its rank is above 2.")
    on = np.zeros(x.shape, np.float32)
    np.fill_diagonal(on, 1, self.wrap)
    return core.select(on > 0, basic.number(self.fill_value, x), x)


FillDiagonal = primitive("FillDiagonal", _fill_diagonal, "x with a value on its diagonal.", fill_value=REQUIRED, wrap=False)


def _nth(self, x, n):
    n = static(n, "NthElement", "n")
    n = n[0] if isinstance(n, tuple) else n
    if not 0 <= n < x.shape[-1]:
        raise ValueError(f"For 'NthElement', n must be in [0, {x.shape[-1]}), but got {n}.")
    return basic.at(reductions.sort(x, -1, self.reverse)[0], -1, n)


NthElement = primitive("NthElement", _nth, "The n-th smallest along the last axis.", reverse=False)


def _equal_count(self, x, y):
    if basic.nptype(tensor(x, "EqualCount")) != basic.nptype(tensor(y, "EqualCount", argument="y")):
        raise TypeError(f"For 'EqualCount', the dtypes of the inputs must be equal, but got {x.dtype} and {y.dtype}.")
    return basic.reshape(reductions.count_nonzero(core.equal(x, y), dtype=basic.nptype(x)), (1,))


EqualCount = primitive("EqualCount", _equal_count, "How many are equal.")
Histogram = host(
    "Histogram", lambda self, x: np.histogram(x, self.bins, (x.min(), x.max()) if self.min == self.max else (self.min, self.max))[0].astype(np.int32),
    "Counts in bins of equal width.", bins=100, min=0.0, max=0.0,
)  # fmt: skip
NextAfter = host("NextAfter", lambda self, x, y: np.nextafter(x, y), "The next number towards another.")
Coalesce = host(
    "Coalesce",
    lambda self, indices, values, shape: _coalesced(indices, values, shape),
    "Sparse elements of one place added.",
)


def _coalesced(indices, values, shape):
    flat = np.ravel_multi_index(indices, shape)
    keys, places = np.unique(flat, return_inverse=True)
    made = np.zeros(len(keys), values.dtype)
    np.add.at(made, places, values)
    return np.stack(np.unravel_index(keys, shape)).astype(indices.dtype), made, shape


def _log_space(self, start, end):
    count = self.steps
    Validator.check_non_negative_int(count, "steps", "LogSpace")
    steps = np.linspace(0, 1, count) if count != 1 else np.zeros(1)
    at = [start + (end - start) * step for step in steps]
    made = np.power(float(self.base), np.array([float(each.asnumpy()) for each in at]))
    return Tensor(made.astype(basic.as_np(self.dtype)))


LogSpace = primitive("LogSpace", _log_space, "Powers of the base at equal steps.", steps=10, base=10, dtype=mstype.float32)


def _window(name, function, **attributes):
    def make(self, length):
        count = int(np.asarray(length.asnumpy() if hasattr(length, "asnumpy") else length))
        if count < 0:
            raise ValueError(f"For '{name}', the window length must not be negative, but got {count}.")
        if count < 2:
            return Tensor(np.ones(count, basic.as_np(self.dtype)))
        made = function(self, np.arange(count), count if self.periodic else count - 1)
        return Tensor(made.astype(basic.as_np(self.dtype)))

    return primitive(name, make, "A window of weights.", periodic=True, **attributes, dtype=mstype.float32)


HammingWindow = _window(
    "HammingWindow", lambda self, n, m: self.alpha - self.beta * np.cos(2 * math.pi * n / m), alpha=0.54, beta=0.46
)
HannWindow = _window("HannWindow", lambda self, n, m: 0.5 - 0.5 * np.cos(2 * math.pi * n / m))
BlackmanWindow = _window(
    "BlackmanWindow", lambda self, n, m: 0.42 - 0.5 * np.cos(2 * math.pi * n / m) + 0.08 * np.cos(4 * math.pi * n / m)
)
BartlettWindow = _window("BartlettWindow", lambda self, n, m: 1 - np.abs(2 * n / m - 1))


def _ragged(self, starts, limits, deltas):
    rows = [np.arange(*each, dtype=starts.dtype) for each in np.broadcast(starts, limits, deltas)]
    ends = np.cumsum([0, *map(len, rows)])
    return ends.astype(basic.as_np(self.Tsplits)), np.concatenate(rows)


RaggedRange = host("RaggedRange", _ragged, "Ranges one after the other, and where each begins.", Tsplits=mstype.int64)


def edit_distance(a, b, normalised=True):
    """Insertions, deletions and exchanges that lead from a to b."""
    last = np.arange(len(b) + 1)
    for i, x in enumerate(a, 1):
        row = [i]
        for j, y in enumerate(b, 1):
            row.append(min(last[j] + 1, row[j - 1] + 1, last[j - 1] + (x != y)))
        last = row
    if not normalised:
        return float(last[-1])
    return last[-1] / len(b) if len(b) else float(bool(len(a)))


def _edit_distances(self, at_a, a, shape_a, at_b, b, shape_b):
    lead = tuple(np.maximum(shape_a, shape_b)[:-1])
    made = np.zeros(lead, np.float32)
    for place in np.ndindex(*lead):
        rows = [values[(at[:, :-1] == place).all(1)] for at, values in ((at_a, a), (at_b, b))]
        made[place] = edit_distance(*rows, self.normalize)
    return made


EditDistance = host("EditDistance", _edit_distances, "Edits between sparse rows.", normalize=True)
MaskedScatter = host(
    "MaskedScatter", lambda self, x, mask, values: _masked(x, mask, values), "x with values where a mask is true, in order."
)


def _masked(x, mask, values):
    made, mask = np.array(x), np.broadcast_to(mask, x.shape)
    made[mask] = values.reshape(-1)[: int(mask.sum())]
    return made


def _scatter_along(self, x, indices, updates):
    return arrays.scatter_elements(x, indices, updates, self.axis % len(x.shape), "add")


ScatterAddWithAxis = primitive(
    "ScatterAddWithAxis", _scatter_along, "x with elements added at places along an axis.", axis=0
)


def _no_repeat(self, state, log_probabilities):
    made, n = np.array(log_probabilities), self.ngram_size
    for place in np.ndindex(*state.shape[:-1]):
        row = state[place]
        last = row[len(row) - n + 1 :]
        for i in range(len(row) - n + 1):
            if (row[i : i + n - 1] == last).all():
                made[place][row[i + n - 1]] = -np.finfo(np.float32).max
    return made


NoRepeatNGram = host("NoRepeatNGram", _no_repeat, "Scores without words that would repeat an n-gram.", ngram_size=1)


def _sub_and_filter(self, x, most, offset):
    moved = x - offset
    keep = (moved >= 0) & (moved < most)
    return moved[keep], np.nonzero(keep)[0].astype(x.dtype)


SubAndFilter = host("SubAndFilter", _sub_and_filter, "Elements within a range, and their places.")


def _accidental(self, true_classes, sampled):
    at = np.argwhere(true_classes[:, :, None] == sampled).astype(np.int32)
    return at[:, 0], at[:, 2], np.full(len(at), -np.finfo(np.float32).max, np.float32)


CompareAndBitpack = host(
    "CompareAndBitpack", lambda self, x, threshold: np.packbits(x > threshold, axis=-1), "Whether elements are above a bound, 8 in a byte."
)


def _update_cache(self, x, indices, updates, most):
    at = indices.asnumpy().reshape(-1)
    rows = np.flatnonzero((at >= 0) & (at < int(most)))
    core.assign(parameter(x, "UpdateCache"), arrays.scatter_rows(x, Tensor(at[rows]), core.gather(updates, rows.astype(np.int64), axis=0), "update"))
    return Tensor(np.zeros(1, np.int32))


UpdateCache = primitive("UpdateCache", _update_cache, "Rows of a Parameter replaced, where their index is within bounds.")
ComputeAccidentalHits = host("ComputeAccidentalHits", _accidental, "Where sampled classes are true ones.", num_true=1)
DataFormatDimMap = primitive(
    "DataFormatDimMap", lambda self, x: core.gather(np.array([self.src_format.index(c) for c in self.dst_format], basic.nptype(x)),
                                                    core.select(core.less(x, basic.number(0, x)), core.add(x, basic.number(len(self.src_format), x)), x), axis=0),
    "Axes of one layout in another.", src_format="NHWC", dst_format="NCHW",
)  # fmt: skip
DataFormatVecPermute = primitive(
    "DataFormatVecPermute",
    lambda self, x: core.gather(x, basic.ints([[c for c in self.src_format if len(x.shape) == 2 or x.shape[0] == 4 or c in "HW"].index(c)
                                               for c in self.dst_format if x.shape[0] == 4 or c in "HW"]), axis=0),
    "Sizes of one layout in another.", src_format="NHWC", dst_format="NCHW",
)  # fmt: skip

# Complex numbers
Complex = host(
    "Complex",
    lambda self, re, im: re + np.array(1j, np.complex64 if re.dtype == np.float32 else np.complex128) * im,
    "re + i im",
)
ComplexAbs = host("ComplexAbs", lambda self, x: np.abs(x), "Magnitude of complex numbers.")
Polar = host("Polar", lambda self, size, angle: (size * np.exp(1j * angle.astype(np.complex128))).astype(
    np.complex64 if size.dtype == np.float32 else np.complex128), "Complex numbers of magnitude and angle.")  # fmt: skip
ConjugateTranspose = host(
    "ConjugateTranspose", lambda self, x, order: np.conj(np.transpose(x, order)), "Conjugates in another order of axes."
)


def _part(name, part, of_reals, doc):
    def compute(self, x):
        if basic.nptype(tensor(x, name)).kind == "c":
            return Tensor(np.ascontiguousarray(part(x.asnumpy())))
        return of_reals(x)

    return primitive(name, compute, doc)


Real = _part("Real", np.real, core.identity, "Real parts.")
Imag = _part("Imag", np.imag, lambda x: basic.like(x, 0), "Imaginary parts.")
Conj = _part("Conj", np.conj, core.identity, "Conjugates.")
Angle = _part(
    "Angle",
    np.angle,
    lambda x: core.select(core.less(x, basic.number(0, x)), basic.like(x, math.pi), basic.like(x, 0)),
    "Angles.",
)


# Bessel's functions, by Gauss' quadrature of their integrals
def _nodes(low, high, count=96):
    at, weights = np.polynomial.legendre.leggauss(count)
    return (high - low) / 2 * at + (high + low) / 2, (high - low) / 2 * weights


def _integral(x, values, low, high):
    at, weights = _nodes(low, high)
    wide = basic.expand(basic.cast(x, np.float64), -1)
    terms = core.mul(values(wide, at), weights)
    return core.reduce_sum(terms, axes=[len(x.shape)], keep_dims=False)


def _first_kind(order):
    def function(x):
        made = _integral(x, lambda z, t: core.cos(core.sub(order * t, core.mul(z, np.sin(t)))), 0, math.pi)
        return basic.cast(core.div(made, np.float64(math.pi)), basic.nptype(x))

    return function


def _second_kind(order):
    def function(x):
        turning = _integral(x, lambda z, t: core.sin(core.sub(core.mul(z, np.sin(t)), order * t)), 0, math.pi)
        grown = lambda t: np.exp(order * t) + (-1) ** order * np.exp(-order * t)  # noqa: E731
        falling = _integral(x, lambda z, t: core.mul(core.exp(core.neg(core.mul(z, np.sinh(t)))), grown(t)), 0, 4)
        falling = core.add(
            falling, _integral(x, lambda z, t: core.mul(core.exp(core.neg(core.mul(z, np.sinh(t)))), grown(t)), 4, 12)
        )
        return basic.cast(core.div(core.sub(turning, falling), np.float64(math.pi)), basic.nptype(x))

    return function


def _modified(order, scaled):
    def function(x):
        made = _integral(
            x, lambda z, t: core.mul(core.exp(core.neg(core.mul(z, np.cosh(t) - scaled))), np.cosh(order * t)), 0, 4
        )
        made = core.add(
            made,
            _integral(
                x, lambda z, t: core.mul(core.exp(core.neg(core.mul(z, np.cosh(t) - scaled))), np.cosh(order * t)), 4, 12
            ),
        )
        return basic.cast(made, basic.nptype(x))

    return function


BesselJ0, BesselJ1 = unary("BesselJ0", _first_kind(0)), unary("BesselJ1", _first_kind(1))
BesselY0, BesselY1 = unary("BesselY0", _second_kind(0)), unary("BesselY1", _second_kind(1))
BesselK0, BesselK1 = unary("BesselK0", _modified(0, 0)), unary("BesselK1", _modified(1, 0))
BesselK0e, BesselK1e = unary("BesselK0e", _modified(0, 1)), unary("BesselK1e", _modified(1, 1))


# Connectionist temporal classification
def _greedy(self, logits, lengths):
    steps, batch, classes = logits.shape
    if len(lengths) and lengths.max() > steps:
        raise RuntimeError(
            f"For 'CTCGreedyDecoder', each of 'sequence_length' should be less than {steps + 1}, but got {lengths.max()}."
        )
    rows, scores = [], np.zeros((batch, 1), logits.dtype)
    for b in range(batch):
        best = logits[: lengths[b], b].argmax(-1)
        scores[b] = -logits[: lengths[b], b].max(-1).sum()
        if self.merge_repeated and len(best):
            best = best[np.concatenate([[True], best[1:] != best[:-1]])]
        rows.append(best[best != classes - 1])
    places = [(b, i) for b, row in enumerate(rows) for i in range(len(row))]
    shape = np.array([batch, max([len(row) for row in rows], default=0)], np.int64)
    return np.array(places, np.int64).reshape(-1, 2), np.concatenate(rows).astype(np.int64), shape, scores


CTCGreedyDecoder = host(
    "CTCGreedyDecoder", _greedy, "The most probable labels of each step, without blanks.", merge_repeated=True
)


def _glu(self, x):
    axis = self.axis % len(x.shape)
    first, second = basic.split(x, axis, [x.shape[axis] // 2] * 2)
    return core.mul(first, core.sigmoid(second))


GLU = primitive("GLU", _glu, "One half times the sigmoid of the other.", axis=-1)


def multilabel_margin(x, target):
    """(loss of each row, which classes are targets) where targets stand before the first -1."""
    flat = len(x.shape) == 1
    x, target = (basic.expand(each, 0) if flat else each for each in (x, target))
    rows, classes = x.shape
    ended = core.less_equal(
        core.cumsum(basic.cast(core.less(target, basic.number(0, target)), np.int32), axis=1), np.int32(0)
    )
    hot = core.one_hot(core.select(ended, arrays.wide(target), basic.number(-1, target)), np.int64(classes), basic.number(1, x),
                       basic.number(0, x), axis=-1)  # fmt: skip
    is_target = core.reduce_max(hot, axes=[1], keep_dims=False)
    own = core.reduce_sum(core.mul(hot, basic.expand(x, 1)), axes=[2], keep_dims=False)
    terms = core.relu(core.add(core.sub(basic.number(1, x), basic.expand(own, 2)), basic.expand(x, 1)))
    terms = core.mul(
        terms,
        core.mul(
            basic.expand(basic.cast(ended, basic.nptype(x)), 2), basic.expand(core.sub(basic.number(1, x), is_target), 1)
        ),
    )
    loss = core.div(core.reduce_sum(terms, axes=[1, 2], keep_dims=False), basic.number(classes, x))
    hits = basic.cast(is_target, np.int32)
    return (basic.at(loss, 0, 0), basic.at(hits, 0, 0)) if flat else (loss, hits)


def _multilabel(self, x, target):
    loss, hits = multilabel_margin(x, target)
    return losses.reduced(loss, self.reduction), hits


MultilabelMarginLoss = primitive("MultilabelMarginLoss", _multilabel, "Hinge loss of several labels.", reduction="mean")
