"""Windows at places that are computed: pools of fractional steps, and samples moved by offsets."""

import numpy as np
from cairn.ms import core
from cairn.ms.numerics.basic import at, cast, expand, ints, nptype, number, part, reshape, split, stack
from cairn.ms.numerics.sampling import grid_sample


def fractional_edges(size, count, generator, pseudo_random):
    """count + 1 edges of pieces of `size` elements whose lengths are the two nearest to size / count. Graham, 2014."""
    alpha = size / count
    if not pseudo_random:
        short = size // count
        lengths = np.full(count, short)
        lengths[: size - short * count] += 1
        return np.concatenate([[0], np.cumsum(generator.permutation(lengths))])
    whole = int(alpha)
    most = min((whole + 2) / alpha - 1, (size + 1 - whole) / alpha - (count - 1))
    shift = generator.random_sample() * most
    edges = np.ceil(alpha * (np.arange(1, count) + shift)).astype(int) - 1
    return np.concatenate([[0], edges, [size]])


def pool_pieces(x, axis, edges, overlapping, row):
    """The row ("reduce_max", "reduce_sum") over each piece of one axis; overlapping pieces take the edge of the next."""
    made = []
    for begin, end in zip(edges[:-1], edges[1:]):
        end = min(int(end) + overlapping, x.shape[axis])
        made.append(getattr(core, row)(part(x, axis, int(begin), end), axes=[axis], keep_dims=True))
    return core.concat(*made, axis=axis)


def _starts(samples, size, count, window):
    """First elements [n, c, count] of windows for samples [n, c] in [0, 1)."""
    if count == 1:
        return cast(core.add(core.mul(expand(samples, -1), number(0, samples)), number(size - window, samples)), np.int64)
    alpha = number((size - window) / (count - 1), samples)
    steps = np.arange(count - 1, dtype=nptype(samples))
    places = core.sub(core.floor(core.mul(core.add(expand(samples, -1), steps), alpha)), core.floor(core.mul(expand(samples, -1), alpha)))
    last = core.add(core.mul(part(places, -1, 0, 1), number(0, samples)), number(size - window, samples))
    return cast(core.concat(places, last, axis=2), np.int64)


def fractional_max_pool(x, samples, window, counts):
    """(largest, their places in the image) of windows whose first elements the samples [n, c, dims] shift; samples of two dimensions
    begin with the last axis, those of three with the first."""
    n, c, *sizes = x.shape
    dims = len(sizes)
    order = range(dims - 1, -1, -1) if dims == 2 else range(dims)
    places = None
    for axis, sample in zip(range(dims), order):
        starts = _starts(at(samples, -1, sample), sizes[axis], counts[axis], window[axis])
        each = core.add(expand(starts, -1), np.arange(window[axis], dtype=np.int64))  # [n, c, count, window]
        shape = [1] * (2 * dims)
        shape[axis], shape[dims + axis] = counts[axis], window[axis]
        each = reshape(each, (n, c, *shape))
        places = each if places is None else core.add(core.mul(places, np.int64(sizes[axis])), each)
    places = reshape(places, (n, c, int(np.prod(counts)), int(np.prod(window))))
    values = core.gather(reshape(x, (n, c, -1)), places, axis=2, batch_dims=2)
    best = core.arg_max(values, axis=3, keep_dims=True)
    largest, where = (reshape(core.gather(each, best, axis=3, batch_dims=3), (n, c, *counts)) for each in (values, places))
    return largest, where


def deformable_offsets(x, offsets, strides, pads, window, dilations, groups, modulated):
    """NCHW images at the elements of each window, moved by offsets: [n, c, rows * kernel height, columns * kernel width].
    Channels of the offsets are the ones along x, those along y, then factors, each of groups * kernel elements. Dai and others, 2017."""
    n, c, height, width = x.shape
    rows, columns = offsets.shape[2:]
    count = window[0] * window[1]
    pieces = split(offsets, 1, [groups * count] * (3 if modulated else 2))
    shape = (n * groups, *window, rows, columns)
    along_x, along_y = (reshape(each, shape) for each in pieces[:2])
    grid_y = (np.arange(rows) * strides[0] - pads[0])[None, None, :, None] + (np.arange(window[0]) * dilations[0])[:, None, None, None]
    grid_x = (np.arange(columns) * strides[1] - pads[2])[None, None, None, :] + (np.arange(window[1]) * dilations[1])[None, :, None, None]
    y, x_places = core.add(along_y, number(grid_y, offsets)), core.add(along_x, number(grid_x, offsets))
    scaled = [  # as grids have them: the middles of the outermost elements are at -1 and 1
        core.sub(core.mul(each, number(2 / max(size - 1, 1), each)), number(1, each)) for each, size in ((x_places, width), (y, height))
    ]
    grid = reshape(stack(scaled, -1), (n * groups, window[0] * window[1] * rows, columns, 2))
    images = reshape(x, (n * groups, c // groups, height, width))
    if 1 in (height, width):  # grids know no middle distance on an axis of one element
        images = core.pad(images, ints([(0, 0), (0, 0), (0, int(height == 1)), (0, int(width == 1))]))
        scaled = [core.sub(core.mul(each, number(2 / max(size - 1, 1), each)), number(1, each))
                  for each, size in ((x_places, images.shape[3]), (y, images.shape[2]))]  # fmt: skip
        grid = reshape(stack(scaled, -1), (n * groups, window[0] * window[1] * rows, columns, 2))
    taken = grid_sample(images, grid, align_corners=True)
    taken = reshape(taken, (n * groups, c // groups, *window, rows, columns))
    if modulated:
        taken = core.mul(taken, expand(reshape(pieces[2], shape), 1))
    taken = core.transpose(taken, permutation=[0, 1, 4, 2, 5, 3])
    return reshape(taken, (n, c, rows * window[0], columns * window[1]))
