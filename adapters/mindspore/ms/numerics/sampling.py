"""Images at places that are computed: grids, affine maps, volumes at other sizes, pools that are undone, columns put back."""

import numpy as np
from cairn.ms import core
from cairn.ms.numerics import basic, images
from cairn.ms.numerics.basic import number, reshape


def affine_grid(theta, size, align_corners=False):
    """Coordinates in [-1, 1] of a result of that NCHW or NCDHW size, through affine maps."""
    sides = []
    for count in size[2:]:
        line = np.linspace(-1, 1, count) if count > 1 else np.zeros(1)
        sides.append(line if align_corners else line * (count - 1) / count)
    grid = np.stack([*np.meshgrid(*sides, indexing="ij")[::-1], np.ones(size[2:])], -1).reshape(-1, len(sides) + 1)
    out = core.matmul(basic.number(grid, theta), core.transpose(theta, permutation=[0, 2, 1]))
    return reshape(out, (size[0], *size[2:], len(sides)))


def _unnormalised(x, size, align_corners):
    one = number(1, x)
    if align_corners:
        return core.mul(core.add(x, one), number((size - 1) / 2, x))
    return core.sub(core.mul(core.add(x, one), number(size / 2, x)), number(0.5, x))


def _reflected(x, size, align_corners):
    low, span = (0.0, size - 1.0) if align_corners else (-0.5, float(size))
    if span == 0:
        return core.mul(x, number(0, x))
    x = core.abs(core.sub(x, number(low, x)))
    turns = core.floor(core.div(x, number(span, x)))
    rest = core.sub(x, core.mul(turns, number(span, x)))
    even = core.equal(core.mod(turns, number(2, x)), number(0, x))
    return core.add(core.select(even, rest, core.sub(number(span, x), rest)), number(low, x))


def grid_sample(x, grid, mode="bilinear", padding_mode="zeros", align_corners=False):
    """NCHW or NCDHW images at the places of a grid, whose last axis begins with the last axis of the image."""
    dims = len(x.shape) - 2
    n, channels, *sizes = x.shape
    places = [basic.at(grid, -1, dims - 1 - i) for i in range(dims)]
    places = [_unnormalised(p, size, align_corners) for p, size in zip(places, sizes)]
    if padding_mode == "reflection":
        places = [_reflected(p, size, align_corners) for p, size in zip(places, sizes)]
    if padding_mode != "zeros":
        places = [core.clip(p, low=0.0, high=float(size - 1)) for p, size in zip(places, sizes)]
    flat = reshape(core.transpose(x, permutation=[0, *range(2, dims + 2), 1]), (n * int(np.prod(sizes)), channels))
    first = np.arange(n, dtype=np.int64).reshape(n, *[1] * dims) * int(np.prod(sizes))

    def taken(at):
        inside, index = None, None
        for each, size in zip(at, sizes):
            ok = core.and_(core.greater_equal(each, number(0, each)), core.less_equal(each, number(size - 1, each)))
            inside = ok if inside is None else core.and_(inside, ok)
            whole = basic.cast(core.clip(each, low=0.0, high=float(size - 1)), np.int64)
            index = whole if index is None else core.add(core.mul(index, np.int64(size)), whole)
        values = core.gather(flat, core.add(index, first), axis=0)
        return core.select(basic.expand(inside, -1), values, number(0, values))

    if mode == "nearest":
        out = taken([core.round(p) for p in places])
    else:
        lows = [core.floor(p) for p in places]
        shares = [core.sub(p, low) for p, low in zip(places, lows)]
        out = None
        for corner in range(2**dims):
            bits = [corner >> i & 1 for i in range(dims)]
            at = [core.add(low, number(bit, low)) for low, bit in zip(lows, bits)]
            weight = None
            for share, bit in zip(shares, bits):
                each = share if bit else core.sub(number(1, share), share)
                weight = each if weight is None else core.mul(weight, each)
            term = core.mul(taken(at), basic.expand(weight, -1))
            out = term if out is None else core.add(out, term)
    return core.transpose(out, permutation=[0, dims + 1, *range(1, dims + 1)])


def lines(x, axis, size, places):
    """x read linearly along one axis at places, which are constants."""
    low = np.clip(np.floor(places), 0, size - 1).astype(np.int64)
    high = np.minimum(low + 1, size - 1)
    shape = [1] * len(x.shape)
    shape[axis] = len(places)
    share = number(np.clip(places - low, 0, 1).reshape(shape), x)
    first, second = (core.gather(x, at, axis=axis) for at in (low, high))
    return core.add(first, core.mul(core.sub(second, first), share))


def resize_linear(x, sizes, coordinates="align_corners", scales=None):
    """The last axes at other sizes, linearly."""
    for i, out in enumerate(sizes):
        axis = len(x.shape) - len(sizes) + i
        size = x.shape[axis]
        at = np.arange(out)
        if coordinates == "align_corners":
            places = at * ((size - 1) / (out - 1) if out > 1 else 0)
        else:
            scale = 1 / scales[i] if scales and scales[i] else size / out
            places = np.maximum((at + 0.5) * scale - 0.5, 0) if coordinates == "half_pixel" else at * scale
        x = lines(x, axis, size, places)
    return x


def resize_nearest(x, sizes, scales=None):
    """The last axes at other sizes by the element below."""
    for i, out in enumerate(sizes):
        axis = len(x.shape) - len(sizes) + i
        size = x.shape[axis]
        scale = 1 / scales[i] if scales and scales[i] else size / out
        x = core.gather(x, np.minimum(np.floor(np.arange(out) * scale), size - 1).astype(np.int64), axis=axis)
    return x


def unpool(x, places, sizes):
    """Zeros with the elements of x at their places, counted inside each plane or volume."""
    n, c = x.shape[:2]
    planes, whole = n * c, int(np.prod(sizes))
    index = core.add(reshape(basic.cast(places, np.int64), (planes, -1)), np.arange(planes, dtype=np.int64)[:, None] * whole)
    zeros = basic.filled((planes * whole,), 0, basic.nptype(x))
    out = core.scatter_update(zeros, reshape(index, (-1, 1)), reshape(x, (-1,)))
    return reshape(out, (n, c, *sizes))


def fold(x, size, window, dilations, pads, strides):
    """Columns [n, c * window, places] added up where they came from: an image [n, c, *size], pads (top, left)."""
    n = x.shape[0]
    c = x.shape[1] // (window[0] * window[1])
    padded = [s + 2 * p for s, p in zip(size, pads)]
    out = [(s - d * (k - 1) - 1) // t + 1 for s, d, k, t in zip(padded, dilations, window, strides)]
    x = reshape(x, (n, c, window[0], window[1], out[0], out[1]))
    rows, columns = (np.arange(k)[:, None] * d + np.arange(o) * t for k, d, o, t in zip(window, dilations, out, strides))
    places = rows[:, None, :, None] * padded[1] + columns[None, :, None, :]
    flat = reshape(core.transpose(x, permutation=[2, 3, 4, 5, 0, 1]), (-1, n * c))
    zeros = basic.filled((padded[0] * padded[1], n * c), 0, basic.nptype(x))
    summed = core.scatter_reduce(zeros, places.reshape(-1).astype(np.int64), flat, mode="add")
    image = reshape(core.transpose(summed, permutation=[1, 0]), (n, c, *padded))
    image = basic.part(image, 2, pads[0], pads[0] + size[0])
    return basic.part(image, 3, pads[1], pads[1] + size[1])


def max_places(x, window, strides, pads, dilations, sizes):
    """(largest elements, their places) of windows of images or volumes."""
    return _largest(x, [np.arange(o)[:, None] * t - p + np.arange(k) * d for k, d, o, t, p in zip(window, dilations, sizes, strides, pads)])


def adaptive_max_places(x, sizes):
    """(largest elements, their places) of windows that cover the last axes in `sizes` parts; None keeps an axis."""
    grids = []
    for size, out in zip(x.shape[-len(sizes) :], sizes):
        edges = np.array(images.adaptive_edges(size, size if out is None else out))
        grid = edges[:, :1] + np.arange((edges[:, 1] - edges[:, 0]).max())
        grids.append(np.where(grid < edges[:, 1:], grid, -1))
    lead = x.shape[: -len(sizes)]
    made = _largest(reshape(x, (1, -1, *x.shape[len(lead) :])), grids)
    return tuple(reshape(each, (*lead, *each.shape[2:])) for each in made)


def _largest(x, grids):
    """The same of NC... by a constant grid for each axis: which elements a window holds; those outside count for nothing."""
    n, c = x.shape[:2]
    lowest = np.finfo(basic.nptype(x)).min if basic.is_float(x) else np.iinfo(basic.nptype(x)).min
    dims, sizes = len(grids), [len(grid) for grid in grids]
    index, inside = 0, True
    for i, (grid, size) in enumerate(zip(grids, x.shape[2:])):
        shape = [1] * (2 * dims)
        shape[i], shape[dims + i] = grid.shape
        at = grid.reshape(shape)
        index, inside = index * size + np.clip(at, 0, size - 1), inside & (at >= 0) & (at < size)
    full = np.broadcast_shapes(np.shape(index), np.shape(inside))
    index = np.broadcast_to(index, full).reshape(int(np.prod(sizes)), -1)
    inside = np.broadcast_to(inside, full).reshape(int(np.prod(sizes)), -1)
    flat = reshape(x, (n, c, -1))
    taken = core.select(inside, core.gather(flat, index.astype(np.int64), axis=2), number(lowest, x))
    best = core.arg_max(taken, axis=3, keep_dims=False)
    places = core.gather(
        reshape(core.identity(index.astype(np.int64)), (-1,)),
        core.add(basic.cast(best, np.int64), np.arange(index.shape[0], dtype=np.int64) * index.shape[1]),
        axis=0,
    )
    shape = (n, c, *sizes)
    return reshape(core.reduce_max(taken, axes=[3], keep_dims=False), shape), reshape(places, shape)


def rgb_to_hsv(x):
    """Of colours in the last axis, within [0, 1]."""
    r, g, b = (basic.at(x, -1, i) for i in range(3))
    top, low = core.maximum(core.maximum(r, g), b), core.minimum(core.minimum(r, g), b)
    span, zero, one = core.sub(top, low), number(0, x), number(1, x)
    safe = core.select(core.greater(span, zero), span, one)
    red = core.div(core.sub(g, b), safe)
    green = core.add(core.div(core.sub(b, r), safe), number(2, x))
    blue = core.add(core.div(core.sub(r, g), safe), number(4, x))
    hue = core.select(core.equal(top, r), red, core.select(core.equal(top, g), green, blue))
    hue = core.mod(core.div(hue, number(6, x)), one)
    hue = core.select(core.greater(span, zero), hue, zero)
    saturation = core.select(core.greater(top, zero), core.div(span, core.select(core.greater(top, zero), top, one)), zero)
    return basic.stack([hue, saturation, top], -1)


def hsv_to_rgb(x):
    """Of hue, saturation and value in the last axis."""
    h, s, v = (basic.at(x, -1, i) for i in range(3))
    one = number(1, x)
    parts = []
    for shift in (5, 3, 1):
        k = core.mod(core.add(core.mul(h, number(6, x)), number(shift, x)), number(6, x))
        k = core.clip(core.minimum(k, core.sub(number(4, x), k)), low=0.0, high=1.0)
        parts.append(core.mul(v, core.sub(one, core.mul(s, k))))
    return basic.stack(parts, -1)


def adjust_hue(x, delta):
    """Colours with the hue turned, delta in [-1, 1]."""
    hsv = rgb_to_hsv(x)
    hue = core.mod(core.add(basic.part(hsv, -1, 0, 1), basic.cast(delta, basic.nptype(x))), number(1, x))
    return hsv_to_rgb(core.concat(hue, basic.part(hsv, -1, 1, 3), axis=len(x.shape) - 1))


def adjust_saturation(x, scale):
    """Colours with the saturation times scale, at most 1."""
    hsv = rgb_to_hsv(x)
    s = core.clip(core.mul(basic.part(hsv, -1, 1, 2), basic.cast(scale, basic.nptype(x))), low=0.0, high=1.0)
    return hsv_to_rgb(core.concat(basic.part(hsv, -1, 0, 1), s, basic.part(hsv, -1, 2, 3), axis=len(x.shape) - 1))
