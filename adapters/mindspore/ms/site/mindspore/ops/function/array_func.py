"""Functions of shapes, indexing, joining, scattering."""

import builtins

import numpy as np
from cairn.ms import core
from cairn.ms.numerics import arrays, basic, images, reductions
from mindspore.common import dtype as mstype
from mindspore.common.tensor import Tensor
from mindspore.ops import operations as P
from mindspore.ops.operations._form import static

_INSTANCES = {
    "cast": "Cast", "diag": "Diag", "dtype": "DType", "expand_dims": "ExpandDims", "fill": "Fill", "gather": "Gather",
    "gather_d": "GatherD", "gather_nd": "GatherNd", "masked_fill": "MaskedFill", "masked_select": "MaskedSelect", "ones": "Ones",
    "ones_like": "OnesLike", "rank": "Rank", "reshape": "Reshape", "scatter_nd": "ScatterNd", "select": "Select", "shape": "Shape",
    "shape_": "Shape", "dyn_shape": "TensorShape", "size": "Size", "slice": "Slice", "tensor_scatter_add": "TensorScatterAdd",
    "tensor_scatter_div": "TensorScatterDiv", "tensor_scatter_max": "TensorScatterMax", "tensor_scatter_min": "TensorScatterMin",
    "tensor_scatter_mul": "TensorScatterMul", "tensor_scatter_sub": "TensorScatterSub",
    "tensor_scatter_update": "TensorScatterUpdate", "tile": "Tile", "transpose": "Transpose", "tuple_to_array": "TupleToArray",
    "scalar_cast": "ScalarCast", "scalar_to_array": "ScalarToArray", "scalar_to_tensor": "ScalarToTensor",
    "unsorted_segment_max": "UnsortedSegmentMax", "unsorted_segment_min": "UnsortedSegmentMin",
    "unsorted_segment_prod": "UnsortedSegmentProd", "unsorted_segment_sum": "UnsortedSegmentSum", "zeros": "Zeros",
    "zeros_like": "ZerosLike", "nonzero": "NonZero", "scatter_update": "ScatterUpdate", "scatter_add": "ScatterAdd",
    "scatter_sub": "ScatterSub", "scatter_mul": "ScatterMul", "scatter_div": "ScatterDiv", "scatter_max": "ScatterMax",
    "scatter_min": "ScatterMin", "scatter_nd_update": "ScatterNdUpdate", "same_type_shape": "SameTypeShape",
    "issubclass_": "IsSubClass", "isinstance_": "IsInstance", "invert_permutation": "InvertPermutation", "unique_with_pad": "UniqueWithPad",
    "diag_part": "DiagPart", "tensor_range": "Range", "mixed_precision_cast": "MixedPrecisionCast",
    "check_bprop": "CheckBprop",
}  # fmt: skip
for _name, _primitive in _INSTANCES.items():
    globals()[_name] = getattr(P, _primitive)()


def identity(x):
    """x itself, or each element of a tuple: steps pass their gradients through it where no ranks reduce them."""
    return type(x)(map(identity, x)) if isinstance(x, (tuple, list)) else P.Identity()(x)


def _scatter_nd(primitive):
    def function(input_x, indices, updates, use_locking=False):
        return primitive(use_locking)(input_x, indices, updates)

    function.__doc__ = primitive.__doc__
    return function


scatter_nd_add, scatter_nd_sub, scatter_nd_mul = map(_scatter_nd, (P.ScatterNdAdd, P.ScatterNdSub, P.ScatterNdMul))
scatter_nd_div, scatter_nd_max, scatter_nd_min = map(_scatter_nd, (P.ScatterNdDiv, P.ScatterNdMax, P.ScatterNdMin))


def broadcast_to(x, shape):
    """x repeated to a shape; -1 keeps a size."""
    return P.BroadcastTo(tuple(shape))(x)


def concat(input_x, axis=0):
    """Tensors one after the other along an axis."""
    return P.Concat(axis)(tuple(input_x))


cat = concat


def stack(input_x, axis=0):
    """Tensors along a new axis."""
    return P.Stack(axis)(tuple(input_x))


def unstack(input_x, axis=0):
    """The parts along an axis, which goes."""
    return P.Unstack(axis)(input_x)


unbind = unstack


def split(input_x, axis=0, output_num=1):
    """Equal parts along an axis."""
    return P.Split(axis, output_num)(input_x)


def chunk(x, chunks, axis=0):
    """At most `chunks` parts of one size, the last may be smaller."""
    size = x.shape[axis]
    each = -(-size // chunks)
    return basic.split(x, axis, [min(each, size - begin) for begin in builtins.range(0, size, each)])


def squeeze(input_x, axis=()):
    """x without axes of size 1."""
    return P.Squeeze(axis)(input_x)


def unsqueeze(input_x, dim):
    """x with a new axis of size 1."""
    return P.ExpandDims()(input_x, dim)


def flatten(input_x, order="C", *, start_dim=1, end_dim=-1):
    """Some axes as one."""
    rank = len(input_x.shape)
    if rank < 2:
        return basic.reshape(input_x, (-1,))
    first, last = start_dim % rank, end_dim % rank
    return basic.reshape(input_x, (*input_x.shape[:first], -1, *input_x.shape[last + 1 :]))


def ravel(x):
    """All elements in one row."""
    return basic.reshape(x, (-1,))


def swapaxes(x, axis1, axis2):
    """Two axes exchanged."""
    first, second = (_placed(axis, len(x.shape)) for axis in (axis1, axis2))
    return basic.swapped(x, first, second)


def _placed(axis, rank):
    """An axis counted from 0."""
    if not -rank <= axis < rank:
        raise ValueError(f"axis {axis} is out of bounds for array of dimension {rank}")
    return axis % rank


swapdims = swapaxes


def moveaxis(x, source, destination):
    """Axes at other places."""
    rank = len(x.shape)
    source, destination = ([a] if isinstance(a, int) else list(a) for a in (source, destination))
    source, destination = ([_placed(each, rank) for each in axes] for axes in (source, destination))
    order = [a for a in builtins.range(rank) if a not in source]
    for place, axis in sorted(zip(destination, source)):
        order.insert(place, axis)
    return core.transpose(x, permutation=order)


movedim = moveaxis


def permute(x, dims):
    """Axes in another order."""
    return P.Transpose()(x, tuple(dims))


def strided_slice(
    data, begin_strides, end_strides, step_strides, begin_mask=0, end_mask=0, ellipsis_mask=0, new_axis_mask=0, shrink_axis_mask=0
):
    """data[begin:end:step]"""
    return P.StridedSlice(begin_mask, end_mask, ellipsis_mask, new_axis_mask, shrink_axis_mask)(
        data, begin_strides, end_strides, step_strides
    )


def narrow(inputs, axis, start, length):
    """A range of one axis."""
    return basic.part(inputs, axis, start, start + length)


def where(condition, x, y):
    """x where the condition holds, else y."""
    from cairn.ms import promote

    if isinstance(x, Tensor) or isinstance(y, Tensor):
        x, y = promote.promote(x, y)
    else:
        x, y = Tensor(x), Tensor(y)
    return core.select(basic.cast(condition, np.bool_), x, y)


def one_hot(indices, depth, on_value=1, off_value=0, axis=-1):
    """A new axis with on_value at each index."""
    return P.OneHot(axis)(
        indices,
        depth,
        *(each if isinstance(each, Tensor) else Tensor(each, mstype.float32) for each in (on_value, off_value)),
    )


def full(size, fill_value, *, dtype=None):
    """A tensor of one value."""
    return basic.filled(size, fill_value, dtype or (mstype.int64 if isinstance(fill_value, int) else mstype.float32))


def full_like(x, fill_value, *, dtype=None):
    """A tensor of one value with the shape of x."""
    return basic.filled(x.shape, fill_value, dtype or x.dtype)


def eye(n, m=None, t=mstype.float32):
    """Ones on the diagonal."""
    return P.Eye()(n, n if m is None else m, t)


def range(start, limit, delta):  # noqa: A001
    """start, start + delta, ... below limit."""
    return P.Range()(*(each if isinstance(each, Tensor) else Tensor(each) for each in (start, limit, delta)))


def arange(start=0, stop=None, step=1, rtype=None, *, end=None, dtype=None):
    """start, start + step, ... below stop."""
    stop, dtype = (end if stop is None else stop), rtype or dtype
    start, end = (0, start) if stop is None else (start, stop)
    if step == 0:
        raise ValueError("For 'arange', the argument 'step' must not be 0.")
    values = np.arange(start, end, step)
    values = values.astype(basic.as_np(dtype) if dtype else np.float32 if values.dtype.kind == "f" else np.int64)
    return Tensor(values)


def make_range(start, end=None, step=1):
    """A tuple of numbers."""
    return tuple(builtins.range(start) if end is None else builtins.range(start, end, step))


def topk(input_x, k, sorted=True):  # noqa: A002
    """The k largest along the last axis and their indices."""
    return reductions.top_k(input_x, static(k, "TopK", "k"), sorted)


top_k = topk


def sort(input_x, axis=-1, descending=False):
    """Sorted values and their indices."""
    return P.Sort(axis, descending)(input_x)


def argsort(input, axis=-1, descending=False):  # noqa: A002
    """Indices that sort."""
    return P.Sort(axis, descending)(input)[1]


def gather_elements(x, dim, index):
    """Elements along an axis by an index of x's rank."""
    return P.GatherD()(x, dim, index)


def index_select(x, axis, index):
    """Parts of x along an axis."""
    return arrays.gather(x, index, axis)


def tensor_scatter_elements(input_x, indices, updates, axis=0, reduction="none"):
    """x with updates by an index of its rank."""
    return P.TensorScatterElements(axis, reduction)(input_x, indices, updates)


def scatter(x, axis, index, src):
    """x with src put by an index of its rank."""
    return P.TensorScatterElements(axis)(x, index, src)


def index_add(x, indices, y, axis, use_lock=True, check_index_bound=True):
    """Adds parts of y into a Parameter; as a method of later releases the axis comes first."""
    if isinstance(indices, int):
        indices, y, axis = y, axis, indices
    return P.IndexAdd(axis)(x, indices, y)


def inplace_index_add(var, indices, updates, axis):
    """Adds parts of updates into a Parameter."""
    return P.InplaceIndexAdd(axis)(var, indices, updates)


def index_fill(x, dim, index, value):
    """x with a value in the parts that the index names."""
    return P.IndexFill()(x, dim, index, value)


def reverse(x, axis):
    """Elements in reverse order along axes."""
    return P.ReverseV2(axis)(x)


flip = reverse


def fliplr(input):  # noqa: A002
    """Columns in reverse order."""
    return reverse(input, (1,))


def flipud(input):  # noqa: A002
    """Rows in reverse order."""
    return reverse(input, (0,))


def reverse_sequence(x, seq_lengths, seq_dim, batch_dim=0):
    """The first elements of each sequence in reverse order."""
    return arrays.reverse_sequence(x, seq_lengths, seq_dim, batch_dim)


def roll(input, shifts, dims=None):  # noqa: A002
    """Elements moved along axes."""
    if dims is None:
        return basic.reshape(P.Roll(shifts, 0)(basic.reshape(input, (-1,))), input.shape)
    return P.Roll(shifts, dims)(input)


def repeat_elements(x, rep, axis=0):
    """Each part `rep` times."""
    return arrays.repeat_each(x, rep, axis)


def repeat_interleave(x, repeats, axis=None):
    """Each part `repeats` times."""
    return (
        arrays.repeat_each(basic.reshape(x, (-1,)), repeats, 0)
        if axis is None
        else arrays.repeat_each(x, repeats, axis)
    )


def meshgrid(*inputs, indexing="xy"):
    """Coordinates of a grid, of a tuple of vectors or of several."""
    if len(inputs) == 2 and isinstance(inputs[1], str):
        inputs, indexing = inputs[:1], inputs[1]
    return P.Meshgrid(indexing)(inputs[0] if len(inputs) == 1 and isinstance(inputs[0], (tuple, list)) else inputs)


def tril(input_x, diagonal=0):
    """Lower triangle."""
    return P.Tril(diagonal)(input_x)


def triu(input_x, diagonal=0):
    """Upper triangle."""
    return P.Triu(diagonal)(input_x)


def diagonal(input, offset=0, dim1=0, dim2=1):  # noqa: A002
    """Diagonals along a new last axis."""
    return arrays.diagonal(input, offset, dim1, dim2)


def atleast_1d(inputs):
    """x with at least one axis."""
    return basic.reshape(inputs, (1,)) if not inputs.shape else inputs


def expand(input_x, size):
    """x repeated to a shape."""
    return P.BroadcastTo(tuple(static(size, "expand", "size")))(input_x)


def searchsorted(sorted_sequence, values, *, out_int32=False, right=False):
    """Places at which values keep a sequence sorted."""
    return P.SearchSorted(mstype.int32 if out_int32 else mstype.int64, right)(sorted_sequence, values)


def space_to_batch_nd(input_x, block_size, paddings):
    """Blocks as batch."""
    return P.SpaceToBatchND(block_size, paddings)(input_x)


def batch_to_space_nd(input_x, block_shape, crops):
    """Batch as blocks."""
    return P.BatchToSpaceND(block_shape, crops)(input_x)


def matrix_band_part(x, lower, upper):
    """x with zeros outside of a band of diagonals."""
    lower, upper = (static(each, "MatrixBandPart", "lower") for each in (lower, upper))
    return arrays.band(x, None if lower < 0 else lower, None if upper < 0 else upper)


def unfold(input, kernel_size, dilation=1, padding=0, stride=1):  # noqa: A002
    """Windows of images as columns [n, channels * kernel, places]."""
    pair = [[each] * 2 if isinstance(each, int) else list(each) for each in (kernel_size, stride, dilation, padding)]
    pads = (pair[3][0], pair[3][0], pair[3][1], pair[3][1])
    columns = images.patches(input, *pair[:3], pads)
    return basic.reshape(columns, (columns.shape[0], -1, columns.shape[-1]))


def is_tensor(obj):
    """Whether it is a Tensor."""
    return isinstance(obj, Tensor)


def numel(x):
    """Number of elements."""
    return int(np.prod(x.shape))


del _name, _primitive
