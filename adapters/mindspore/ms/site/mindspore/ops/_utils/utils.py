"""Shapes of results."""

from mindspore._checkparam import Rel, Validator
from mindspore.common._utils import is_dim_unknown, is_shape_unknown  # noqa: F401
from mindspore.common.tensor import Tensor
from mindspore.ops.primitive import constexpr


def get_broadcast_shape(x_shape, y_shape, prim_name, shape_type="", arg_name1="x", arg_name2="y"):
    """The shape of two operands together; -1 is unknown."""
    if is_dim_unknown(x_shape) or is_dim_unknown(y_shape):
        return [-2]
    rank = max(len(x_shape), len(y_shape))
    dims = []
    for i, (m, n) in enumerate(zip(*([1] * (rank - len(shape)) + list(shape) for shape in (x_shape, y_shape)))):
        if m != n and 1 not in (m, n) and -1 not in (m, n):
            raise ValueError(
                f"For '{prim_name}', {arg_name1}.shape and {arg_name2}.shape need to broadcast. The value of {arg_name1}.shape[{i - rank}] or "
                f"{arg_name2}.shape[{i - rank}] must be 1 or -1 when they are not the same, but got {arg_name1}.shape = {x_shape} and "
                f"{arg_name2}.shape = {y_shape}."
            )
        dims.append(n if m == 1 else m if n == 1 else max(m, n))
    return dims


def get_concat_offset(x_shp, x_type, axis, prim_name):
    """(where each part begins, size of all, axis from 0) along the axis of a concat."""
    first = list(x_shp[0])
    Validator.check_int_range(axis, -len(first), len(first) - 1, Rel.INC_BOTH, "axis", prim_name)
    axis %= len(first)
    begins, end = [], 0
    for i, shape in enumerate(x_shp):
        if len(shape) != len(first) or any(m != n for a, (m, n) in enumerate(zip(shape, first)) if a != axis):
            raise ValueError(f"For '{prim_name}', the shapes of the inputs must be equal but for axis {axis}, but got {x_shp[0]} and {shape}.")
        begins.append(end)
        end += shape[axis]
    return begins, end, axis


@constexpr
def range_op(start, limit, delta, dtype):
    """start, start + delta, ... below limit, as a tensor."""
    return Tensor(list(range(start, limit, delta)), dtype)


@constexpr
def get_1d_shape(in_shape):
    """The number of elements, as a shape."""
    size = 1
    for each in in_shape:
        size *= each
    return (size,)


@constexpr
def generate_shape_index(out_shape, indices_shape, axis):
    """The order of axes that puts those of the indices of a gather first."""
    rank, inserted = len(out_shape), len(indices_shape)
    if axis < 0:
        axis += rank - inserted + 1
    places = tuple(range(axis, axis + inserted))
    return places + tuple(i for i in range(rank) if i not in places)
