"""Linear algebra that takes more than one row: powers, exponentials, factors, diagonals, sums of products."""

import numpy as np
from cairn.ms import core
from cairn.ms.numerics import arrays, basic, reductions


def transposed(x):
    return basic.swapped(x, -1, -2)


def identity_like(x):
    return np.eye(x.shape[-1], dtype=basic.nptype(x))


def solve_triangle(a, b, lower=True, adjoint=False, unit=False):
    """x with t x = b for a triangle t of a, whose diagonal counts as ones where it is `unit`."""
    if unit:
        a = core.add(core.sub(a, core.mul(a, identity_like(a))), identity_like(a))
    return core.triangular_solve(a, b, lower=lower, adjoint=adjoint)


def cholesky_solve(b, factor, upper=False):
    """x with a x = b, of the Cholesky factor of a."""
    first = core.triangular_solve(factor, b, lower=not upper, adjoint=upper)
    return core.triangular_solve(factor, first, lower=not upper, adjoint=not upper)


def power(x, n):
    """x times itself n times; of the inverse for negative n."""
    if n < 0:
        x, n = core.matrix_inverse(x), -n
    out = None
    while n:
        if n & 1:
            out = x if out is None else core.matmul(out, x)
        x, n = core.matmul(x, x) if n > 1 else x, n >> 1
    return core.broadcast_to(identity_like(x), basic.ints(x.shape)) if out is None else out


def exponential(x):
    """Taylor's series of x / 64, squared six times."""
    x = core.div(x, basic.number(64, x))
    out = term = core.broadcast_to(identity_like(x), basic.ints(x.shape))
    for k in range(1, 15):
        term = core.div(core.matmul(term, x), basic.number(k, x))
        out = core.add(out, term)
    for _ in range(6):
        out = core.matmul(out, out)
    return out


def pseudo_inverse(x, least=1e-6):
    """By singular values, of which those below `least` times the largest count as 0."""
    s, u, v = core.svd(x, full=False)
    bound = core.mul(reductions.maximum(s, -1, True), basic.number(least, s))
    one = basic.number(1, s)
    kept = core.greater(s, bound)
    inverse = core.select(kept, core.div(one, core.select(kept, s, one)), basic.number(0, s))
    return core.matmul(core.mul(v, basic.expand(inverse, -2)), transposed(u))


def permutation(pivots):
    """Rows in the order that exchanges by pivots, counted from 1, lead to (a constant)."""
    order = np.arange(pivots.shape[-1])
    for i, each in enumerate(pivots):
        order[[i, each - 1]] = order[[each - 1, i]]
    return order


def lu_parts(lu):
    """The triangles (l with ones on the diagonal, u)."""
    rows, columns = lu.shape[-2:]
    least = min(rows, columns)
    below = np.tril(np.ones((rows, columns), bool), -1)
    lower = core.select(below, lu, basic.number(0, lu))
    lower = core.add(lower, np.eye(rows, columns, dtype=basic.nptype(lu)))
    return basic.part(lower, -1, 0, least), basic.part(arrays.band(lu, 0, None), -2, 0, least)


def _diagonals(k):
    return (k, k) if isinstance(k, (int, np.integer)) else (k[0], k[-1])


def _places(shape, k, align):
    """For each element of diagonals packed as rows: (row, column) in a matrix of that shape, or -1 where it is padding."""
    rows, columns = shape
    low, high = _diagonals(k)
    longest = max(min(rows + min(d, 0), columns - max(d, 0)) for d in range(low, high + 1))
    out = np.full((high - low + 1, longest, 2), -1, np.int64)
    for place, d in enumerate(range(high, low - 1, -1)):
        count = min(rows + min(d, 0), columns - max(d, 0))
        side = align.split("_")[0 if d >= 0 else 1]
        shift = longest - count if side == "RIGHT" else 0
        for i in range(count):
            out[place, shift + i] = (i + max(-d, 0), i + max(d, 0))
    return out


def diagonal_part(x, k, align, padding):
    """Diagonals k = (lowest, highest) of matrices, packed as rows."""
    rows, columns = x.shape[-2:]
    places = _places((rows, columns), k, align)
    inside = places[..., 0] >= 0
    flat = basic.reshape(x, (*x.shape[:-2], rows * columns))
    taken = core.gather(flat, np.where(inside, places[..., 0] * columns + places[..., 1], 0), axis=len(x.shape) - 2)
    made = core.select(inside, taken, basic.number(0, x) if padding is None else padding)
    return basic.at(made, len(made.shape) - 2, 0) if _diagonals(k)[0] == _diagonals(k)[1] else made


def set_diagonal(x, diagonal, k, align):
    """Matrices with packed diagonals in the place of theirs."""
    rows, columns = x.shape[-2:]
    places = _places((rows, columns), k, align).reshape(-1, 2)
    source = np.zeros((rows, columns), np.int64)
    hit = np.zeros((rows, columns), bool)
    for index, (i, j) in enumerate(places):
        if i >= 0:
            source[i, j], hit[i, j] = index, True
    flat = basic.reshape(diagonal, (*x.shape[:-2], len(places)))
    return core.select(hit, core.gather(flat, source, axis=len(x.shape) - 2), x)


def einsum(equation, operands):
    """Sum of products by the labels of axes; "..." stands for axes that are broadcast."""
    given, arrow, wanted = equation.replace(" ", "").partition("->")
    terms = given.split(",")
    if len(terms) != len(operands):
        raise ValueError(f"the equation '{equation}' has {len(terms)} terms, but there are {len(operands)} operands")
    spread = max(len(x.shape) - len(t.replace("...", "")) if "..." in t else 0 for t, x in zip(terms, operands))
    more = "".join(chr(0x3B1 + i) for i in range(spread))
    labels = []
    for term, x in zip(terms, operands):
        own = len(x.shape) - len(term.replace("...", ""))
        labels.append(term.replace("...", more[spread - own :] if own else ""))
        if len(labels[-1]) != len(x.shape):
            raise ValueError(f"the term '{term}' of '{equation}' does not fit {len(x.shape)} dims")
    if not arrow:
        once = sorted(c for c in set("".join(labels)) - set(more) if "".join(labels).count(c) == 1)
        wanted = "..." + "".join(once)
    wanted = wanted.replace("...", more)
    parts = [_without_repeats(x, term) for x, term in zip(operands, labels)]
    x, own = parts[0]
    for i, (y, term) in enumerate(parts[1:], 1):
        later = set(wanted).union(*(set(t) for _, t in parts[i + 1 :]))
        x, own = _product(x, own, y, term, later)
    gone = [axis for axis, label in enumerate(own) if label not in wanted]
    if gone:
        x = core.reduce_sum(x, axes=gone, keep_dims=False)
        own = "".join(label for label in own if label in wanted)
    return core.transpose(x, permutation=[own.index(label) for label in wanted]) if own != wanted else x


def _without_repeats(x, term):
    for label in sorted(set(term)):
        while term.count(label) > 1:
            a, b = term.index(label), term.rindex(label)
            x = arrays.diagonal(x, 0, a, b)
            term = "".join(c for i, c in enumerate(term) if i not in (a, b)) + label
    return x, term


def _product(x, own, y, term, later):
    """The product of two operands, summed over the labels that nobody wants later."""
    every = list(dict.fromkeys(own + term))
    x, y = (_lined(each, labels, every) for each, labels in ((x, own), (y, term)))
    both = [label for label in every if label in own and label in term]
    gone = [label for label in both if label not in later]
    if not gone:
        return core.mul(x, y), "".join(every)
    batch = [label for label in both if label in later]
    left, right = ([label for label in labels if label not in both] for labels in (own, term))

    def ordered(z, groups):
        order = [every.index(label) for group in groups for label in group]
        rest = [axis for axis in range(len(every)) if axis not in order]
        z = core.transpose(z, permutation=[*order, *rest])
        sizes = [z.shape[i] for i in range(len(order))]
        at, shape = len(groups[0]), sizes[: len(groups[0])]
        for group in groups[1:]:
            shape.append(int(np.prod(sizes[at : at + len(group)])))
            at += len(group)
        return basic.reshape(z, shape), sizes

    a, a_sizes = ordered(x, (batch, left, gone))
    b, b_sizes = ordered(y, (batch, gone, right))
    made = core.matmul(a, b)
    sizes = [max(p, q) for p, q in zip(a_sizes, b_sizes)][: len(batch)]
    sizes += a_sizes[len(batch) : len(batch) + len(left)] + b_sizes[len(batch) + len(gone) :]
    return basic.reshape(made, sizes), "".join([*batch, *left, *right])


def _lined(x, labels, every):
    """x with one axis for each label, of size 1 where it has none."""
    x = core.transpose(x, permutation=[labels.index(label) for label in every if label in labels])
    sizes = iter(x.shape)
    return basic.reshape(x, [next(sizes) if label in labels else 1 for label in every])


def householder(x):
    """(matrix whose upper triangle is r and whose columns below hold the vectors, tau) of one matrix, as LAPACK's geqrf."""
    r = x.astype(np.float64)
    taus = np.zeros(min(x.shape))
    for i in range(min(x.shape)):
        v = r[i:, i].copy()
        length = np.linalg.norm(v)
        if len(v) > 1 and np.any(v[1:]):
            beta = -np.copysign(length, v[0])
            taus[i] = (beta - v[0]) / beta
            v = v / (v[0] - beta)
            v[0] = 1
            r[i:, i:] -= taus[i] * np.outer(v, v @ r[i:, i:])
            r[i + 1 :, i] = v[1:]
    return r.astype(x.dtype), taus.astype(x.dtype)


def reflections(x, tau):
    """The product of the reflections that geqrf's columns hold, a square matrix."""
    rows = x.shape[-2]
    q = np.eye(rows)
    for i in range(tau.shape[-1]):
        v = np.concatenate([np.zeros(i), [1.0], x[i + 1 :, i]])
        q = q - tau[i] * np.outer(q @ v, v)
    return q.astype(x.dtype)


def lu_factors(x):
    """(packed triangles, order of the rows) of one matrix, with partial pivoting."""
    a, order = x.astype(np.float64), np.arange(x.shape[0])
    for i in range(min(a.shape)):
        best = i + int(np.argmax(np.abs(a[i:, i])))
        a[[i, best]], order[[i, best]] = a[[best, i]], order[[best, i]]
        if a[i, i]:
            a[i + 1 :, i] /= a[i, i]
            a[i + 1 :, i + 1 :] -= np.outer(a[i + 1 :, i], a[i, i + 1 :])
    return a.astype(x.dtype), order


def batched(function, *inputs, rank=2):
    """The function of single matrices (vectors for a rank of 1) over leading dims; results are stacked."""
    ranks = rank if isinstance(rank, tuple) else (rank,) * len(inputs)
    lead = inputs[0].shape[: inputs[0].ndim - ranks[0]]
    flat = [x.reshape((-1, *x.shape[x.ndim - r :])) for x, r in zip(inputs, ranks)]
    made = [function(*each) for each in zip(*flat)]
    if isinstance(made[0], tuple):
        return tuple(np.stack(each).reshape((*lead, *each[0].shape)) for each in zip(*made))
    return np.stack(made).reshape((*lead, *made[0].shape))
