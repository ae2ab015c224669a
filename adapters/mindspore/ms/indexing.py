"""Reading and writing parts of tensors by NumPy's rules, with operators of the core alone."""

import functools

import numpy

from cairn.ms import core, promote
from cairn.ms.tensor import Tensor

_MOST = numpy.iinfo(numpy.int64).max


def _expanded(shape, index):
    """The index as a list with one entry for each dim, None for each new one: integers, slices, arrays and tensors."""
    parts = list(index) if isinstance(index, tuple) else [index]
    parts = [_part(each) for each in parts]
    taken = sum(_dims_of(each) for each in parts)
    dots = [i for i, each in enumerate(parts) if each is Ellipsis]
    if len(dots) > 1:
        raise IndexError("an index can only have a single ellipsis ('...')")
    if taken > len(shape):
        raise IndexError(f"too many indices for tensor: tensor is {len(shape)}-dimensional, but {taken} were indexed")
    rest = [slice(None)] * (len(shape) - taken)
    at = dots[0] if dots else len(parts)
    parts[at : at + 1] = rest
    made, axis = [], 0
    for each in parts:
        if _is_mask(each):
            made += _places(each, shape[axis : axis + len(each.shape)])
            axis += len(each.shape)
            continue
        if type(each) is int:
            if not -shape[axis] <= each < shape[axis]:
                raise IndexError(f"index {each} is out of bounds for dimension {axis} with size {shape[axis]}")
        made.append(each)
        axis += each is not None
    return made


def _part(each):
    if each is None or each is Ellipsis or isinstance(each, Tensor):
        return each
    if isinstance(each, slice):
        return slice(*(None if bound is None else _integer(bound) for bound in (each.start, each.stop, each.step)))
    if isinstance(each, (bool, numpy.bool_)):
        if each:
            return None
        raise IndexError("False is no index here")
    if isinstance(each, (int, numpy.integer)):
        return int(each)
    if isinstance(each, (list, tuple, range, numpy.ndarray)):
        return Tensor(numpy.array(each))
    raise IndexError(
        f"only integers, slices(`:`), ellipsis(`...`), None, bool, tensors, lists and tuples are valid indices, but got {type(each).__name__}"
    )


def _integer(bound):
    if isinstance(bound, float):
        raise TypeError(f"Slice indices must be integers or bool. But got a Float64 number, {bound}.")
    if not isinstance(bound, Tensor):
        return bound.__index__()
    return int(bound)


def _is_mask(each):
    return isinstance(each, Tensor) and promote.nptype(each).kind == "b"


def _dims_of(each):
    if each is None or each is Ellipsis:
        return 0
    return len(each.shape) if _is_mask(each) else 1


def _places(mask, dims):
    """A mask as one index for each of its dims."""
    if mask.shape != dims:
        raise IndexError(f"the shape of the mask {mask.shape} does not match the tensor's {dims}")
    if not mask.shape:
        raise IndexError("a bool tensor alone is no index here")
    rows = core.transpose(core.non_zero(mask), permutation=[1, 0])
    return [core.reshape(core.slice(rows, [i, 0], [i + 1, _MOST]), [-1]) for i in range(len(mask.shape))]


def get(x, index):
    """x[index]."""
    shape, key = x.shape, _key(index)
    if key is not None:
        begin, end, steps, dims, _ = _window_of(tuple(shape), key)
        advanced = False
    else:
        parts = _expanded(shape, index)
        advanced = any(isinstance(each, Tensor) for each in parts)
        begin, end, steps, dims, plan = _window(shape, parts, advanced)
    made = x if begin is None else core.slice(x, begin, end, steps=steps)
    if tuple(made.shape) != dims:
        made = core.reshape(made, list(dims))
    return _gathered(made, plan) if advanced else made


_BOUNDS = frozenset((int, type(None)))


def _key(index):
    """An index of numbers, slices of numbers, None and "..." as something that has a hash; None for any other."""
    made = []
    for each in index if type(index) is tuple else (index,):
        if type(each) is slice:
            made.append((each.start, each.stop, each.step))
            if not _BOUNDS.issuperset(map(type, made[-1])):
                return None
        elif type(each) is int or each is None or each is Ellipsis:
            made.append(each)
        else:
            return None
    return tuple(made)


@functools.lru_cache(1024)
def _window_of(shape, key):
    return _window(shape, _expanded(shape, tuple([slice(*each) if type(each) is tuple else each for each in key])), False)


def _window(shape, parts, advanced):
    """(begin, end, steps) of the slice that is read, Nones for all of it; the dims of what it gives, and by what each is gathered."""
    begin, end, steps, dims, plan = [], [], [], [], []
    axis = 0
    for each in parts:
        if each is None:
            dims.append(1)
            plan.append(None)
            continue
        size = shape[axis]
        axis += 1
        if isinstance(each, slice):
            start, stop, step = each.indices(size)
            count = len(range(start, stop, step))
            begin.append(start if count else 0)
            end.append((stop if stop >= 0 else -_MOST - 1) if count else 0)
            steps.append(step if count else 1)
            dims.append(count)
            plan.append(None)
        elif isinstance(each, int) and not advanced:
            begin.append(each % size)
            end.append(each % size + 1)
            steps.append(1)
        else:
            begin.append(0)
            end.append(size)
            steps.append(1)
            dims.append(size)
            plan.append(Tensor(numpy.array(each)) if isinstance(each, int) else each)
    if begin == [0] * len(begin) and end == list(shape) and all(step == 1 for step in steps):
        begin = end = steps = None
    return begin, end, steps, tuple(dims), plan


def _gathered(x, plan):
    axes = [axis for axis, each in enumerate(plan) if each is not None]
    indices = [_whole(plan[axis]) for axis in axes]
    if len(axes) == 1:
        return core.gather(x, indices[0], axis=axes[0])
    try:
        dims = numpy.broadcast_shapes(*(each.shape for each in indices))
    except ValueError:
        told = " ".join(str(each.shape) for each in indices)
        raise IndexError(f"shape mismatch: indexing tensors could not be broadcast together with shapes {told}") from None
    indices = [each if each.shape == dims else core.broadcast_to(each, dims) for each in indices]
    stacked = core.concat([core.reshape(each, [*dims, 1]) for each in indices], axis=len(dims))
    others = [axis for axis in range(len(plan)) if axis not in axes]
    made = core.gather_nd(core.transpose(x, permutation=axes + others), stacked)
    if axes == list(range(axes[0], axes[0] + len(axes))) and axes[0]:  # neighbours: their dims stay where they were
        front, rank = axes[0], len(dims)
        order = [*range(rank, rank + front), *range(rank), *range(rank + front, rank + len(others))]
        made = core.transpose(made, permutation=order)
    return made


def _whole(index):
    kind = promote.nptype(index).kind
    if kind not in "iu":
        raise IndexError(f"tensors used as indices must hold integers or bools, but got {index.dtype}")
    return promote.cast(index, numpy.dtype("int64"))


def put(x, index, value):
    """x with value at x[index], as a new tensor."""
    dtype, shape = promote.nptype(x), x.shape
    if not isinstance(value, Tensor):
        value = Tensor(numpy.array(_plain(value), dtype))
    value = promote.cast(value, dtype)
    if _is_mask(index) and not value.shape and index.shape == shape[: len(index.shape)]:
        mask = core.reshape(index, [*index.shape, *[1] * (len(shape) - len(index.shape))])
        return core.select(mask, value, x)
    count = int(numpy.prod(shape))
    places = get(Tensor(numpy.arange(count).reshape(shape)), index)
    if value.shape != places.shape:
        extra = len(value.shape) - len(places.shape)
        if extra > 0 and all(size == 1 for size in value.shape[:extra]):
            value = core.reshape(value, value.shape[extra:])
        try:
            numpy.broadcast_shapes(value.shape, places.shape)
        except ValueError:
            raise ValueError(
                f"a value of shape {value.shape} cannot be broadcast to the shape {places.shape} of the part"
            ) from None
        value = core.broadcast_to(value, places.shape)
    flat = core.scatter_update(
        core.reshape(x, [count]), core.reshape(places, [-1, 1]), core.reshape(value, [-1])
    )
    return core.reshape(flat, shape)


def _plain(value):
    if isinstance(value, (list, tuple)):
        return [_plain(each) for each in value]
    return value.asnumpy() if isinstance(value, Tensor) else value
