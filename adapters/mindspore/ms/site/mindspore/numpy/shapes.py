"""Functions of shapes, joining, choosing."""

import numpy as np
from cairn.ms import core, promote
from cairn.ms.numerics import arrays, basic, reductions
from mindspore._checkparam import Validator
from mindspore.common.tensor import Tensor
from mindspore.numpy.creation import as_tensor
from mindspore.ops import functional as F


def _of_one(function):
    """A function whose first argument becomes a Tensor."""

    def apply(a, *args, **kwargs):
        return function(as_tensor(a), *args, **kwargs)

    apply.__doc__ = function.__doc__
    return apply


def _axes(axis):
    return (axis,) if isinstance(axis, int) else tuple(axis)


def transpose(a, axes=None):
    """Axes in another order, in reverse order without one."""
    a = as_tensor(a)
    rank = len(a.shape)
    return core.transpose(a, permutation=[each % rank for each in axes] if axes else list(range(rank))[::-1])


def expand_dims(a, axis):
    """New axes of size 1."""
    a = as_tensor(a)
    rank = len(a.shape) + len(_axes(axis))
    for each in _axes(axis):
        if not -rank <= each < rank:
            raise ValueError(f"axis {each} is out of bounds for array of dimension {rank}")
    for each in sorted(each % rank for each in _axes(axis)):
        a = basic.expand(a, each)
    return a


def squeeze(a, axis=None):
    """x without axes of size 1."""
    return reductions.squeezed(as_tensor(a), () if axis is None else axis)


reshape = _of_one(lambda x, new_shape: F.reshape(x, (new_shape,) if isinstance(new_shape, int) else tuple(new_shape)))
ravel = _of_one(lambda x: basic.reshape(x, (-1,)))
moveaxis, swapaxes = _of_one(F.moveaxis), _of_one(F.swapaxes)


def rollaxis(x, axis, start=0):
    """An axis moved before another."""
    axis %= len(x.shape)
    return basic.moved(x, axis, start - 1 if start > axis else start)


def _joined(parts):
    return promote.common(*[as_tensor(each) for each in parts])


def concatenate(arrays, axis=0):
    """Tensors one after the other."""
    if not isinstance(arrays, Tensor) and not len(arrays):
        raise ValueError("need at least one tensor to concatenate.")
    parts = _joined(arrays)
    if axis is None:
        parts, axis = [basic.reshape(each, (-1,)) for each in parts], 0
    return core.concat(*parts, axis=axis % len(parts[0].shape))


def append(arr, values, axis=None):
    """Values behind a tensor."""
    return concatenate((arr, values), axis)


def stack(arrays, axis=0):
    """Tensors along a new axis."""
    if not isinstance(arrays, Tensor) and not len(arrays):
        raise ValueError("need at least one tensor to stack.")
    return basic.stack(_joined(arrays), axis)


def _wide(x, count):
    x = as_tensor(x)
    if len(x.shape) >= count:
        return x
    if count == 3 and len(x.shape) == 2:
        return basic.expand(x, 2)
    return basic.reshape(x, {2: (1, -1), 1: (-1,), 3: (1, -1, 1)}[count])


def atleast_1d(*tensors):
    """One axis or more."""
    made = [_wide(each, 1) for each in tensors]
    return made[0] if len(made) == 1 else made


def atleast_2d(*tensors):
    """Two axes or more."""
    made = [_wide(each, 2) for each in tensors]
    return made[0] if len(made) == 1 else made


def atleast_3d(*tensors):
    """Three axes or more."""
    made = [_wide(each, 3) for each in tensors]
    return made[0] if len(made) == 1 else made


def vstack(tup):
    """Rows below each other."""
    return concatenate([_wide(each, 2) for each in tup], 0)


def hstack(tup):
    """Columns beside each other."""
    parts = [_wide(each, 1) for each in tup]
    return concatenate(parts, 0 if len(parts[0].shape) == 1 else 1)


def dstack(tup):
    """Along the third axis."""
    return concatenate([_wide(each, 3) for each in tup], 2)


def column_stack(tup):
    """Vectors as columns."""
    return concatenate(
        [basic.expand(as_tensor(x), 1) if len(as_tensor(x).shape) == 1 else as_tensor(x) for x in tup], 1
    )


def array_split(x, indices_or_sections, axis=0):
    """Parts of nearly one size, or cut at indices."""
    x = as_tensor(x)
    size = x.shape[axis]
    if isinstance(indices_or_sections, int):
        n = indices_or_sections
        lengths = [size // n + (i < size % n) for i in range(n)]
    else:
        cuts = [0, *indices_or_sections, size]
        lengths = [b - a for a, b in zip(cuts, cuts[1:])]
    return basic.split(x, axis, lengths)


def split(x, indices_or_sections, axis=0):
    """Equal parts, or cut at indices."""
    x = as_tensor(x)
    if isinstance(indices_or_sections, int) and indices_or_sections <= 0:
        raise ValueError(f"the number of parts must be greater than 0, but got {indices_or_sections}")
    if isinstance(indices_or_sections, int) and x.shape[axis] % indices_or_sections:
        raise ValueError(f"a size of {x.shape[axis]} cannot be split in {indices_or_sections} equal parts")
    return array_split(x, indices_or_sections, axis)


def vsplit(x, indices_or_sections):
    return split(x, indices_or_sections, 0)


def hsplit(x, indices_or_sections):
    return split(x, indices_or_sections, 1 if len(as_tensor(x).shape) > 1 else 0)


def dsplit(x, indices_or_sections):
    return split(x, indices_or_sections, 2)


def flip(m, axis=None):
    """Elements in reverse order."""
    m = as_tensor(m)
    return core.reverse(m, axes=basic.axes_of(() if axis is None else axis, len(m.shape)))


def fliplr(m):
    return flip(m, 1)


def flipud(m):
    return flip(m, 0)


def rot90(a, k=1, axes=(0, 1)):
    """A quarter turn, k times."""
    k %= 4
    if k == 2:
        return flip(flip(a, axes[0]), axes[1])
    if k == 0:
        return as_tensor(a)
    return F.swapaxes(flip(a, axes[1]), *axes) if k == 1 else flip(F.swapaxes(as_tensor(a), *axes), axes[1])


def roll(a, shift, axis=None):
    """Elements moved along axes."""
    return F.roll(as_tensor(a), shift, axis)


def tile(a, reps):
    """a repeated."""
    a, reps = as_tensor(a), _axes(reps)
    return F.tile(a, (1,) * (len(a.shape) - len(reps)) + reps)


def repeat(a, repeats, axis=None):
    """Each element repeated."""
    a = as_tensor(a)
    if axis is None:
        a, axis = basic.reshape(a, (-1,)), 0
    if isinstance(repeats, int):
        return arrays.repeat_each(a, repeats, axis)
    return core.gather(a, basic.ints(np.repeat(np.arange(a.shape[axis]), repeats)), axis=axis % len(a.shape))


def broadcast_to(array, shape):
    """array repeated to a shape."""
    return F.broadcast_to(as_tensor(array), shape)


def broadcast_arrays(*args, subok=False):
    """Tensors of their common shape."""
    args = [as_tensor(each) for each in args]
    shape = np.broadcast_shapes(*(tuple(each.shape) for each in args))
    return [core.broadcast_to(each, basic.ints(shape)) for each in args]


def where(condition, x=None, y=None):
    """x where the condition holds, else y."""
    return F.where(as_tensor(condition), *(each if isinstance(each, Tensor) else as_tensor(each) for each in (x, y)))


def take(a, indices, axis=None, mode="clip"):
    """Parts by index; mode clip or wrap for those outside."""
    a, indices = as_tensor(a), arrays.wide(as_tensor(indices))
    if axis is None:
        a, axis = basic.reshape(a, (-1,)), 0
    Validator.check_axis_in_range(axis, len(a.shape))
    size = a.shape[axis]
    if mode == "wrap":
        indices = core.mod(indices, basic.number(size, indices))
    else:
        indices = core.clip(indices, low=0.0 if mode == "clip" else -float(size), high=float(size - 1))
    return core.gather(a, indices, axis=axis % len(a.shape))


def take_along_axis(arr, indices, axis):
    """Elements by an index of the same rank."""
    arr, indices = as_tensor(arr), arrays.wide(as_tensor(indices))
    if axis is None:
        arr, axis = basic.reshape(arr, (-1,)), 0
    if len(arr.shape) != len(indices.shape):
        raise ValueError("`indices` and `arr` must have the same number of dimensions")
    axis %= len(arr.shape)
    shared = np.broadcast_shapes(*(tuple(each.shape[:axis]) + (1,) + tuple(each.shape[axis + 1 :]) for each in (arr, indices)))
    wide = [core.broadcast_to(each, [*shared[:axis], each.shape[axis], *shared[axis + 1 :]]) for each in (arr, indices)]
    return reductions.take_along(*wide, axis)


def unique(x, return_inverse=False):
    """Different elements as they first occur."""
    values, inverse = F.unique(basic.reshape(as_tensor(x), (-1,)))
    return (values, inverse) if return_inverse else values


def select(condlist, choicelist, default=0):
    """The choice of the first condition that holds."""
    out = as_tensor(default)
    for condition, choice in reversed(list(zip(condlist, choicelist))):
        out = where(condition, choice, out)
    return out


__all__ = [
    "transpose", "expand_dims", "squeeze", "reshape", "ravel", "moveaxis", "swapaxes", "rollaxis", "concatenate", "append", "stack", "atleast_1d",
    "atleast_2d", "atleast_3d", "vstack", "hstack", "dstack", "column_stack", "array_split", "split", "vsplit", "hsplit", "dsplit", "flip",
    "fliplr", "flipud", "rot90", "roll", "tile", "repeat", "broadcast_to", "broadcast_arrays", "where", "take", "take_along_axis", "unique", "select",
]  # fmt: skip
