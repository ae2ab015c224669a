"""Indexing, scattering, triangles, segments."""

import numpy as np
from cairn.ms import core
from cairn.ms.numerics.basic import at, cast, expand, filled, ints, nptype, number, part, reshape


def one_hot(indices, depth, on, off, axis=-1):
    return core.one_hot(indices, np.asarray(depth, np.int64), on, off, axis=axis)


def strided_slice(x, begin, end, steps, begin_mask=0, end_mask=0, ellipsis_mask=0, new_axis_mask=0, shrink_axis_mask=0):
    """x[begin:end:steps] with the masks of TensorFlow and MindSpore; all arguments are Python's."""
    index, rank = [], len(x.shape)
    count = len(begin)
    given = sum(not (new_axis_mask >> i & 1) for i in range(count) if not ellipsis_mask >> i & 1)
    for i in range(count):
        if ellipsis_mask >> i & 1:
            index += [slice(None)] * (rank - given)
        elif new_axis_mask >> i & 1:
            index.append(None)
        elif shrink_axis_mask >> i & 1:
            index.append(int(begin[i]))
        else:
            low = None if begin_mask >> i & 1 else int(begin[i])
            high = None if end_mask >> i & 1 else int(end[i])
            index.append(slice(low, high, int(steps[i])))
    return sliced(x, index)


def sliced(x, index):
    """x[index] for slices, integers and None."""
    begins, ends, steps, shape, axis = [], [], [], [], 0
    for each in [*index, *[slice(None)] * (len(x.shape) - sum(each is not None for each in index))]:
        if each is None:
            shape.append(1)
            continue
        size = x.shape[axis]
        axis += 1
        if isinstance(each, slice):
            low, high, step = each.indices(size)
            length = len(range(low, high, step))
            shape.append(length)
        else:
            if not -size <= each < size:
                raise IndexError(f"index {each} is out of range for an axis of size {size}")
            low, high, step = each % size, each % size + 1, 1
        begins.append(low)
        ends.append(high if high >= 0 else np.iinfo(np.int64).min)
        steps.append(step)
    whole = all(b == 0 and e >= s and t == 1 for b, e, s, t in zip(begins, ends, x.shape, steps))
    if not whole:
        x = core.slice(x, ints(begins), ints(ends), **({} if set(steps) <= {1} else {"steps": steps}))
    return x if tuple(shape) == tuple(x.shape) else reshape(x, tuple(shape))


def wide(indices):
    return indices if nptype(indices) in (np.int32, np.int64) else cast(indices, np.int32)


def gather(x, indices, axis=0, batch_dims=0):
    return core.gather(x, wide(indices), axis=axis % max(len(x.shape), 1), batch_dims=batch_dims)


def gather_nd(x, indices):
    return core.gather_nd(x, wide(indices))


def scatter_rows(x, indices, updates, mode):
    """x with rows of updates put at ("update") or combined into ("add", "sub", "mul", "div", "max", "min") rows of x."""
    indices = wide(indices)
    if mode == "update":
        return core.scatter_update(x, expand(indices, -1), updates)
    count = int(np.prod(indices.shape))
    rows = reshape(updates, (count, *x.shape[1:]))
    return core.scatter_reduce(x, reshape(indices, (count,)), rows, mode=mode)


def scatter_nd(x, indices, updates, mode):
    """The same at index vectors, the last dim of the indices."""
    indices = wide(indices)
    if mode == "update":
        return core.scatter_update(x, indices, updates)
    depth = indices.shape[-1]
    count = int(np.prod(indices.shape[:-1]))
    sizes = x.shape[:depth]
    strides = np.array([int(np.prod(sizes[i + 1 :])) for i in range(depth)], nptype(indices))
    places = core.reduce_sum(core.mul(reshape(indices, (count, depth)), strides), axes=[1], keep_dims=False)
    flat = reshape(x, (int(np.prod(sizes)), *x.shape[depth:]))
    rows = reshape(updates, (count, *x.shape[depth:]))
    return reshape(core.scatter_reduce(flat, places, rows, mode=mode), x.shape)


def scatter_new(indices, updates, shape):
    if nptype(updates).kind == "b":
        return cast(core.scatter_nd(wide(indices), cast(updates, np.int32), ints(shape)), bool)
    return core.scatter_nd(wide(indices), updates, ints(shape))


def scatter_elements(x, indices, updates, axis, mode="update"):
    return core.scatter_elements(x, wide(indices), updates, axis=axis, mode=mode)


def band(x, lower, upper):
    """x with zeros outside of `lower` diagonals below and `upper` above the main one; negative keeps all."""
    rows, columns = x.shape[-2:]
    i, j = np.arange(rows)[:, None], np.arange(columns)
    keep = np.ones((rows, columns), bool)
    if lower is not None:
        keep &= i - j <= lower
    if upper is not None:
        keep &= j - i <= upper
    return core.select(keep, x, number(0, x))


def diagonal(x, offset=0, dim1=0, dim2=1):
    """Diagonals of two axes along a new last one."""
    rank = len(x.shape)
    dim1, dim2 = dim1 % rank, dim2 % rank
    order = [a for a in range(rank) if a not in (dim1, dim2)] + [dim1, dim2]
    x = core.transpose(x, permutation=order)
    rows, columns = x.shape[-2:]
    first = (max(-offset, 0), max(offset, 0))
    count = max(min(rows - first[0], columns - first[1]), 0)
    places = [(first[0] + i) * columns + first[1] + i for i in range(count)]
    flat = reshape(x, (*x.shape[:-2], rows * columns))
    return core.gather(flat, ints(places), axis=rank - 2)


def diagonal_matrix(x):
    """x on the diagonal of a tensor of twice its rank, zeros elsewhere."""
    count = int(np.prod(x.shape))
    flat = reshape(x, (count, 1))
    return reshape(core.mul(flat, np.eye(count, dtype=nptype(x))), (*x.shape, *x.shape))


def segment(x, segments, count, mode):
    return core.segment_reduce(x, wide(segments), np.asarray(count, np.int64), mode=mode)


def unsorted_segment(x, segments, count, mode):
    """Rows of x of equal segment combined; segments may have several dims."""
    dims = len(segments.shape)
    total = int(np.prod(segments.shape))
    rows = reshape(x, (total, *x.shape[dims:]))
    return segment(rows, reshape(segments, (total,)), count, mode)


def unstack(x, axis=0):
    return tuple(at(x, axis, i) for i in range(x.shape[axis % len(x.shape)]))


def reverse_sequence(x, lengths, seq_dim, batch_dim):
    """The first lengths[i] elements along seq_dim of each batch turned round."""
    rank, size, batch = len(x.shape), x.shape[seq_dim], x.shape[batch_dim]
    lengths = reshape(cast(lengths, np.int64), (batch, 1))
    places = np.arange(size, dtype=np.int64)[None]
    source = core.select(core.less(places, lengths), core.sub(core.sub(lengths, np.int64(1)), places), places)
    order = [batch_dim, seq_dim, *[a for a in range(rank) if a not in (batch_dim, seq_dim)]]
    lined = core.transpose(x, permutation=order)
    out = core.gather(lined, source, axis=1, batch_dims=1)
    return core.transpose(out, permutation=[order.index(a) for a in range(rank)])


def linspace(start, stop, count):
    """`count` numbers from start to stop, which are tensors of one element."""
    steps = np.linspace(0, 1, count).astype(nptype(start))
    return core.add(core.mul(core.sub(stop, start), steps), start)


def roll(x, shift, axis):
    size = x.shape[axis]
    shift %= max(size, 1)
    if not shift:
        return x
    return core.concat(part(x, axis, size - shift, size), part(x, axis, 0, size - shift), axis=axis % len(x.shape))


def repeat_each(x, count, axis):
    """Each element `count` times along the axis."""
    axis %= len(x.shape)
    wide_shape = (*x.shape[: axis + 1], count, *x.shape[axis + 1 :])
    x = core.broadcast_to(expand(x, axis + 1), ints(wide_shape))
    return reshape(x, (*wide_shape[:axis], wide_shape[axis] * count, *wide_shape[axis + 2 :]))


def meshgrid(parts, indexing="xy"):
    sizes = [part.shape[0] for part in parts]
    order = list(range(len(parts)))
    if indexing == "xy" and len(parts) > 1:
        order[0], order[1] = 1, 0
    shape = tuple(sizes[i] for i in order)
    out = []
    for i, x in enumerate(parts):
        place = [1] * len(parts)
        place[order.index(i)] = sizes[i]
        out.append(core.broadcast_to(reshape(x, tuple(place)), ints(shape)))
    return tuple(out)


def eye(rows, columns, dtype):
    return core.identity(np.eye(rows, columns, dtype=dtype))


def zeros(shape, dtype):
    return filled(shape, 0, dtype)
