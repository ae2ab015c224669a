"""Primitives of shapes, types, indexing, joining, scattering."""

import functools
import math

import numpy as np
from cairn import Error
from cairn.ms import core, level, promote, refusal
from cairn.ms.numerics import arrays, basic, reductions
from mindspore import context
from mindspore._checkparam import Rel, Validator
from mindspore.common import dtype as mstype
from mindspore.common.tensor import Tensor
from mindspore.ops.operations._form import REQUIRED, Operator, primitive, same_type, static, tensor, unary


def _shape_of(x, name):
    return tuple(tensor(x, name).shape)


@functools.lru_cache(4096)
def _check_reshape(given, shape):
    known, count = math.prod(s for s in shape if s != -1), math.prod(given)
    if shape.count(-1) > 1:
        raise ValueError(f"For 'Reshape', at most one size can be -1, but got {shape}.")
    if (known == 0 or count % known) if -1 in shape else known != count:
        raise ValueError(f"For 'Reshape', the shape {given} of the input cannot become {shape}.")


def _reshape(self, x, shape):
    shape = static(shape, "Reshape", "shape")
    if isinstance(shape, int):
        raise TypeError(f"For 'Reshape', the 'shape' must be a tuple, but got {shape}.")
    for each in shape:
        if type(each) is not int:
            Validator.check_is_int(each, "shape", "Reshape")
    _check_reshape(_shape_of(x, "Reshape"), shape)
    return basic.reshape(x, shape)


def _transpose(self, x, order):
    order, rank = static(order, "Transpose", "input_perm"), len(tensor(x, "Transpose").shape)
    for each in order:
        if type(each) is not int:
            Validator.check_is_int(each, "input_perm", "Transpose")
    made = basic.permutation(tuple(order), rank)
    if made is None:
        raise ValueError(f"For 'Transpose', 'input_perm' must be a permutation of {rank} axes, but got {tuple(order)}.")
    return core.transpose(x, permutation=made)


def _type_only(dtype, name):
    if isinstance(dtype, str):
        raise TypeError(f"For '{name}', the 'type' must be a type of mindspore, but got the str '{dtype}'.")
    return dtype


def _cast(self, x, dtype):
    if isinstance(x, (int, float, bool)):
        x = Tensor(x)
    return promote.converted(tensor(x, "Cast"), basic.as_np(_type_only(dtype, "Cast")))


Reshape = primitive("Reshape", _reshape, "The elements under another shape, in which one size may be -1.")
Transpose = primitive("Transpose", _transpose, "Axes in another order.")
Cast = primitive("Cast", _cast, "x with another dtype.")


def _flat(inputs):
    return inputs[0] if len(inputs) == 1 and isinstance(inputs[0], (tuple, list)) else inputs


def _joined(name, inputs):
    inputs = _flat(inputs)
    if not inputs:
        raise ValueError(f"For '{name}', at least one input is needed.")
    kind = basic.nptype(tensor(inputs[0], name))
    for each in inputs:
        if basic.nptype(tensor(each, name)) != kind:
            raise TypeError(f"For '{name}', the dtypes of all inputs must be equal, but got {[str(x.dtype) for x in inputs]}.")
    return inputs


def _concat(self, *inputs):
    if len(inputs) == 1 and isinstance(inputs[0], Tensor):
        raise TypeError("For 'Concat', the input must be a tuple or list of Tensors, but got a Tensor.")
    inputs = _joined("Concat", inputs)
    first = inputs[0].shape
    axis = Validator.check_axis_in_range(self.axis, len(first))
    for each in inputs:
        shape = each.shape
        if shape != first and (len(shape) != len(first) or shape[:axis] != first[:axis] or shape[axis + 1 :] != first[axis + 1 :]):
            shapes = [tuple(each.shape) for each in inputs]
            raise ValueError(f"For 'Concat', the shapes must be equal except along axis {axis}, but got {shapes}.")
    return core.concat(*inputs, axis=axis)


def _stack(self, *inputs):
    inputs = _joined("Stack", inputs)
    if len({tuple(each.shape) for each in inputs}) > 1:
        shapes = [tuple(each.shape) for each in inputs]
        raise ValueError(f"For 'Stack', all shapes must be equal, but got {shapes}.")
    rank = len(inputs[0].shape) + 1
    return basic.stack(inputs, Validator.check_axis_in_range(self.axis, rank))


def _split(self, x):
    axis = Validator.check_axis_in_range(self.axis, len(_shape_of(x, "Split")))
    if x.shape[axis] % self.output_num:
        raise ValueError(
            f"For 'Split', the size {x.shape[axis]} of axis {axis} must be divisible by 'output_num' {self.output_num}."
        )
    return basic.split(x, axis, [x.shape[axis] // self.output_num] * self.output_num)


def _split_v(self, x):
    return basic.split(x, self.split_dim, _open(self.size_splits, x.shape[self.split_dim]))


def _open(sizes, total):
    left = total - sum(each for each in sizes if each != -1)
    return [left if each == -1 else each for each in sizes]


def _axis_is_int(self):
    Validator.check_is_int(self.axis, "axis", self.name)


def _check_split(self):
    _axis_is_int(self)
    Validator.check_positive_int(self.output_num, "output_num", "Split")


Concat = primitive("Concat", _concat, "Tensors one after the other along an axis.", _axis_is_int, axis=0)
Stack = Pack = primitive("Stack", _stack, "Tensors along a new axis.", _axis_is_int, axis=0)
Split = primitive("Split", _split, "output_num equal parts along an axis.", _check_split, axis=0, output_num=1)
SplitV = primitive(
    "SplitV", _split_v, "Parts of given sizes.", size_splits=REQUIRED, split_dim=REQUIRED, num_split=REQUIRED
)
Unstack = Unpack = primitive(
    "Unstack", lambda self, x: arrays.unstack(x, Validator.check_axis_in_range(self.axis, len(tensor(x, "Unstack").shape))),
    "The parts along an axis, which goes.", _axis_is_int, axis=0, num=None,
)  # fmt: skip
ParallelConcat = primitive(
    "ParallelConcat", lambda self, *inputs: core.concat(*_flat(inputs), axis=0), "Tensors along the first axis."
)


def _check_axes(axis, name):
    for each in axis if isinstance(axis, (tuple, list)) else (axis,):
        Validator.check_is_int(each, "axis", name)


def _squeeze(self, x):
    return reductions.squeezed(tensor(x, "Squeeze"), self.axis)


def _expand_dims(self, x, axis):
    axis = static(axis, "ExpandDims", "axis")
    rank = len(_shape_of(x, "ExpandDims"))
    Validator.check_int_range(axis, -rank - 1, rank, Rel.INC_BOTH, "axis", "ExpandDims")
    return basic.expand(x, axis)


Squeeze = primitive(
    "Squeeze", _squeeze, "x without axes of size 1.", lambda self: _check_axes(self.axis, "Squeeze"), axis=()
)
ExpandDims = primitive("ExpandDims", _expand_dims, "x with a new axis of size 1.")


def _flatten(self, x):
    shape = _shape_of(x, "Flatten")
    if not shape:
        raise ValueError("For 'Flatten', the input must have at least one dimension.")
    return basic.reshape(x, (shape[0], int(np.prod(shape[1:]))))


Flatten = primitive("Flatten", _flatten, "Each part along the first axis as one row.")


def _tile(self, x, multiples):
    multiples = Validator.check_value_type("multiples", static(multiples, "Tile", "multiples"), [tuple], "Tile")
    for each in multiples:
        Validator.check_positive_int(each, "multiples", "Tile")
    rank = len(_shape_of(x, "Tile"))
    if len(multiples) < rank:
        raise ValueError(f"For 'Tile', 'multiples' {multiples} must have at least {rank} numbers.")
    x = basic.reshape(x, (1,) * (len(multiples) - rank) + tuple(x.shape))
    return core.tile(x, basic.ints(multiples))


def _check_shape(shape, name):
    if not isinstance(shape, tuple):
        raise TypeError(f"For '{name}', the type of 'shape' must be tuple, but got {type(shape).__name__}.")
    for each in shape:
        Validator.check_is_int(each, "shape", name)


def _broadcast_to(self, x):
    shape = list(self.shape)
    have = (None,) * (len(shape) - len(x.shape)) + tuple(x.shape)
    shape = [old if new == -1 else new for new, old in zip(shape, have)]
    if None in shape:
        raise ValueError(f"For 'BroadcastTo', -1 must stand for an axis of x, but got shape {self.shape} for x of {tuple(x.shape)}.")
    return core.broadcast_to(x, basic.ints(shape))


Tile = primitive("Tile", _tile, "x repeated along each axis.")
BroadcastTo = primitive(
    "BroadcastTo", _broadcast_to, "x repeated to a shape; -1 keeps a size.", lambda self: _check_shape(self.shape, "BroadcastTo"), shape=REQUIRED
)  # fmt: skip


def _gather(self, x, indices, axis):
    axis = static(axis, "Gather", "axis")
    rank = len(_shape_of(x, "Gather"))
    Validator.check_int_range(axis, -rank, rank, Rel.INC_LEFT, "axis", "Gather")
    indices = tensor(indices, "Gather", "int", "input_indices")
    try:
        return arrays.gather(x, indices, axis, getattr(self, "batch_dims", 0))
    except Error as error:
        raise refusal.of_index(error) from None


Gather = GatherV2 = primitive("Gather", _gather, "Parts of x along an axis by index.", batch_dims=0)
SparseGatherV2 = primitive("SparseGatherV2", _gather, "Parts of x along an axis by index.")
GatherNd = primitive(
    "GatherNd",
    lambda self, x, indices: arrays.gather_nd(tensor(x, "GatherNd"), tensor(indices, "GatherNd", "int")),
    "Parts of x at index vectors.",
)
GatherD = primitive(
    "GatherD",
    lambda self, x, dim, index: reductions.take_along(x, arrays.wide(index), dim),
    "Elements along an axis by an index of x's rank.",
)
GatherDGradV2 = primitive(
    "GatherDGradV2", lambda self, x, index, grad: arrays.scatter_elements(basic.like(x, 0), index, grad, self.dim, "add"),
    "Gradient of GatherD.", dim=0,
)  # fmt: skip


def _strided_slice(self, x, begin, end, strides):
    begin, end, strides = (
        static(each, "StridedSlice", n) for each, n in ((begin, "begin"), (end, "end"), (strides, "strides"))
    )
    for each in (begin, end, strides):
        if not isinstance(each, tuple):
            raise TypeError(
                f"For 'StridedSlice', begin, end and strides must be tuples, but got {type(each).__name__}."
            )
    if not len(begin) == len(end) == len(strides):
        raise ValueError(
            f"For 'StridedSlice', begin, end and strides must have one length, but got {begin}, {end}, {strides}."
        )
    if 0 in strides:
        raise ValueError(f"For 'StridedSlice', 'strides' cannot contain 0, but got {strides}.")
    masks = (self.begin_mask, self.end_mask, self.ellipsis_mask, self.new_axis_mask, self.shrink_axis_mask)
    return arrays.strided_slice(tensor(x, "StridedSlice"), begin, end, strides, *masks)


def _masks(self):
    for each in ("begin_mask", "end_mask", "ellipsis_mask", "new_axis_mask", "shrink_axis_mask"):
        Validator.check_non_negative_int(getattr(self, each), each, "StridedSlice")
    if self.ellipsis_mask & (self.ellipsis_mask - 1):
        raise ValueError(
            f"For 'StridedSlice', only one ellipsis is supported, but 'ellipsis_mask' is {self.ellipsis_mask}."
        )


StridedSlice = primitive(
    "StridedSlice", _strided_slice, "x[begin:end:strides]", _masks,
    begin_mask=0, end_mask=0, ellipsis_mask=0, new_axis_mask=0, shrink_axis_mask=0,
)  # fmt: skip


def _slice(self, x, begin, size):
    begin, size = static(begin, "Slice", "begin"), static(size, "Slice", "size")
    shape = _shape_of(x, "Slice")
    size = [length - low if n == -1 else n for n, low, length in zip(size, begin, shape)]
    for low, n, length in zip(begin, size, shape):
        if low < 0 or low + n > length:
            raise ValueError(f"For 'Slice', begin {begin} and size {tuple(size)} do not fit the shape {shape}.")
    return core.slice(x, basic.ints(begin), basic.ints([low + n for low, n in zip(begin, size)]))


Slice = primitive("Slice", _slice, "The part of x of that begin and size.")


def _select(self, condition, x, y):
    tensor(condition, "Select", "bool", "condition")
    for number, other in ((x, y), (y, x)):
        if type(number) in (int, float) and tensor(other, "Select").dtype != (mstype.int32 if type(number) is int else mstype.float32):
            raise TypeError(f"For 'Select', beside the {type(number).__name__} {number} stands no Tensor of {other.dtype}.")
    if not isinstance(x, Tensor):
        x = same_type(x, tensor(y, "Select"))
    y = same_type(y, x) if not isinstance(y, Tensor) else y
    return core.select(condition, x, y)


Select = primitive("Select", _select, "x where the condition holds, else y.")


def _one_hot(self, indices, depth, on_value, off_value):
    tensor(indices, "OneHot", "int", "indices")
    Validator.check_non_negative_int(static(depth, "OneHot", "depth"), "depth", "OneHot")
    for each in (on_value, off_value):
        tensor(each, "OneHot", argument="on_value and off_value")
    return arrays.one_hot(arrays.wide(indices), static(depth, "OneHot", "depth"), on_value, off_value, self.axis)


OneHot = primitive(
    "OneHot", _one_hot, "A new axis with on_value at each index, off_value elsewhere.", _axis_is_int, axis=-1
)


def _fill(self, dtype, shape, value):
    if isinstance(shape, int):
        shape = (shape,)
    if isinstance(value, Tensor):
        return core.broadcast_to(basic.cast(value, dtype), basic.ints(shape))
    return basic.filled(shape, value, _type_only(dtype, "Fill"))


def _filled_with(name, value):
    def compute(self, shape, dtype=mstype.float32):
        shape = static(shape, name, "shape")
        shape = (shape,) if isinstance(shape, int) else shape
        for each in shape:
            Validator.check_non_negative_int(each, "shape", name)
        return basic.filled(shape, value, dtype)

    return primitive(name, compute, f"A tensor of {value}s.")


Fill = primitive("Fill", _fill, "A tensor of one value: (type, shape, value).")
Zeros, Ones = _filled_with("Zeros", 0), _filled_with("Ones", 1)
ZerosLike, OnesLike = (
    unary("ZerosLike", lambda x: basic.like(x, 0), "any"),
    unary("OnesLike", lambda x: basic.like(x, 1), "any"),
)
FillV2 = primitive(
    "FillV2",
    lambda self, shape, value: core.broadcast_to(value, basic.ints(static(shape, "FillV2", "shape"))),
    "A tensor of one value.",
)


def _eye(self, n, m, t):
    for name, each in (("n", n), ("m", m)):
        Validator.check_positive_int(each, name, "Eye")
    return arrays.eye(n, m, basic.as_np(t))


Eye = primitive("Eye", _eye, "Ones on the diagonal.")
Identity = unary("Identity", core.identity, "any")


class _Fact(Operator):
    """What is known of a tensor before it is computed."""

    def __init__(self):
        super().__init__(type(self).__name__)


class Shape(_Fact):
    """The sizes as a tuple."""

    def compute(self, x):
        return _shape_of(x, "Shape")


class DType(_Fact):
    """The dtype."""

    def compute(self, x):
        return x.dtype if hasattr(type(x), "of_parts") else tensor(x, "DType").dtype


class Rank(_Fact):
    """The number of axes."""

    def compute(self, x):
        return len(_shape_of(x, "Rank"))


class Size(_Fact):
    """The number of elements."""

    def compute(self, x):
        return int(np.prod(_shape_of(x, "Size")))


class SameTypeShape(_Fact):
    """x, if it has dtype and shape of y."""

    def compute(self, x, y):
        if basic.nptype(tensor(x, "SameTypeShape")) != basic.nptype(tensor(y, "SameTypeShape", argument="y")):
            raise TypeError(f"For 'SameTypeShape', the dtypes must be equal, but got {x.dtype} and {y.dtype}.")
        if tuple(x.shape) != tuple(y.shape):
            raise ValueError(f"For 'SameTypeShape', the shapes must be equal, but got {x.shape} and {y.shape}.")
        return x


class IsSubClass(_Fact):
    """Whether one type is part of another."""

    def compute(self, sub_type, type_):
        if not isinstance(sub_type, type(mstype.float32)) and not isinstance(sub_type, type):
            raise TypeError(f"For 'IsSubClass', 'sub_type' must be a type, but got {type(sub_type).__name__}.")
        if type_ is None:
            raise TypeError("For 'IsSubClass', 'type_' must be a type, but got None.")
        return mstype.issubclass_(sub_type, type_)


class IsInstance(_Fact):
    """Whether a value has a type."""

    def compute(self, value, type_):
        kinds = {bool: mstype.bool_, int: mstype.int_, float: mstype.float_, list: mstype.list_, tuple: mstype.tuple_}
        python = kinds.get(type(value))
        if python is None and isinstance(value, Tensor):
            python = mstype.tensor_type(value.dtype) if type_ is not mstype.tensor else mstype.tensor
        return python == type_ or mstype.issubclass_(python, type_)


TensorShape = DynamicShape = primitive(
    "TensorShape", lambda self, x: core.shape_of(tensor(x, "TensorShape")), "The sizes as a tensor.", dtype=9
)


def _top_k(self, x, k):
    k = static(k, "TopK", "k")
    Validator.check_is_int(k, "k", "TopK")
    return reductions.top_k(tensor(x, "TopK", "number"), k, self.sorted)


def _check_top_k(self):
    """Sorted unless told otherwise since 1.10, not sorted before."""
    if self.sorted is None:
        self.add_prim_attr("sorted", level.at_least("1.10"))
    Validator.check_bool(self.sorted, "sorted", "TopK")


TopK = primitive("TopK", _top_k, "The k largest along the last axis and their indices.", _check_top_k, sorted=None)
Sort = primitive(
    "Sort", lambda self, x: reductions.sort(tensor(x, "Sort", "number"), self.axis, self.descending), "Sorted values and their indices.",
    _axis_is_int, axis=-1, descending=False,
)  # fmt: skip


def _unique(self, x):
    values, index = core.unique(tensor(x, "Unique"))
    if context.get_context("device_target") == "GPU":  # where they rise
        values, order = reductions.sort(values, 0, False)
        index = core.gather(reductions.sort(order, 0, False)[1], index, axis=0)
    return values, basic.cast(index, np.int32 if basic.nptype(x) != np.int64 else np.int64)


def _unique_with_pad(self, x, pad):
    values, index = core.unique(x)
    return core.concat(values, basic.filled((x.shape[0] - values.shape[0],), pad, basic.nptype(x)), axis=0), basic.cast(
        index, np.int32
    )


Unique = primitive("Unique", _unique, "Different elements in order of appearance (on GPU rising), and each one's place among them.")
UniqueWithPad = primitive("UniqueWithPad", _unique_with_pad, "The same, filled up to the length of x.")


def _reverse(self, x):
    axes = [self.axis] if isinstance(self.axis, int) else list(self.axis)
    return core.reverse(x, axes=list(Validator.check_axis_in_range(axes, len(_shape_of(x, self.name)))))


ReverseV2 = primitive("ReverseV2", _reverse, "Elements in reverse order along the axes.", axis=REQUIRED)
ReverseSequence = primitive(
    "ReverseSequence", lambda self, x, lengths: arrays.reverse_sequence(x, lengths, self.seq_dim, self.batch_dim),
    "The first elements of each sequence in reverse order.", seq_dim=REQUIRED, batch_dim=0,
)  # fmt: skip
Range = primitive(
    "Range",
    lambda self, start, limit, delta: core.iota(start, limit, delta, dtype=basic.nptype(start)),
    "start, start + delta, ... below limit.",
    maxlen=1000000,
)
Diag = unary("Diag", arrays.diagonal_matrix, "any")


def _diag_part(x):
    half = tuple(x.shape[: len(x.shape) // 2])
    count = int(np.prod(half))
    return basic.reshape(arrays.diagonal(basic.reshape(x, (count, count))), half)


DiagPart = unary("DiagPart", _diag_part, "any")
Meshgrid = primitive(
    "Meshgrid", lambda self, inputs: arrays.meshgrid(Validator.check_value_type("inputs", inputs, [tuple], "Meshgrid"), self.indexing), "Coordinates of a grid.",
    lambda self: Validator.check_string(self.indexing, ("xy", "ij"), "indexing", "Meshgrid"), indexing="xy",
)  # fmt: skip


def _check_diagonal(self):
    Validator.check_is_int(self.diagonal, "diagonal", self.name)


Tril = primitive("Tril", lambda self, x: arrays.band(x, None, self.diagonal), "Lower triangle.", _check_diagonal, diagonal=0)
Triu = primitive("Triu", lambda self, x: arrays.band(x, -self.diagonal, None), "Upper triangle.", _check_diagonal, diagonal=0)


def _segment(name, mode):
    def compute(self, x, segments, count):
        count = static(count, name, "num_segments")
        Validator.check_positive_int(count, "num_segments", name)
        return arrays.unsorted_segment(x, tensor(segments, name, "int"), count, mode)

    return primitive(name, compute, f"Rows of equal segment combined by {mode}.")


for _name, _mode in {"Sum": "sum", "Max": "max", "Min": "min", "Prod": "prod"}.items():
    globals()["UnsortedSegment" + _name] = _segment("UnsortedSegment" + _name, _mode)


def _masked_fill(self, x, mask, value):
    return core.select(tensor(mask, "MaskedFill", "bool", "mask"), same_type(value, x), tensor(x, "MaskedFill"))


def _masked_select(self, x, mask):
    shape = np.broadcast_shapes(tuple(x.shape), tuple(mask.shape))
    x, mask = (core.broadcast_to(each, basic.ints(shape)) for each in (x, mask))
    return core.gather_nd(x, core.non_zero(mask))


MaskedFill = primitive("MaskedFill", _masked_fill, "x with a value where the mask holds.")
MaskedSelect = primitive("MaskedSelect", _masked_select, "The elements where the mask holds, in one row.")
NonZero = primitive(
    "NonZero", lambda self, x: core.non_zero(tensor(x, "NonZero")), "Index vectors of elements that are not 0."
)


def _inverted(order):
    if not isinstance(order, (tuple, list)) or any(isinstance(each, bool) or not isinstance(each, int) for each in order):
        raise TypeError(f"For 'InvertPermutation', the input must be a tuple of int, but got {order}.")
    if sorted(order) != list(range(len(order))):
        raise ValueError(f"For 'InvertPermutation', the input must be a permutation, but got {tuple(order)}.")
    return tuple(int(each) for each in np.argsort(order))


InvertPermutation = primitive(
    "InvertPermutation",
    lambda self, order: _inverted(order),
    "The permutation that undoes another.",
)
ScalarToArray = primitive("ScalarToArray", lambda self, value: Tensor(value), "A number as a tensor.")
ScalarToTensor = primitive(
    "ScalarToTensor", lambda self, value, dtype=mstype.float32: Tensor(value, dtype), "A number as a tensor."
)
ScalarCast = primitive(
    "ScalarCast", lambda self, value, dtype: basic.as_np(dtype).type(value).item(), "A number as another type."
)
TupleToArray = primitive(
    "TupleToArray", lambda self, values: _tuple_to_array(values), "A tuple of numbers as a tensor."
)
TransShape = primitive("TransShape", lambda self, x, shape: basic.reshape(x, shape), "x under another shape.")


def _tuple_to_array(values):
    if not values or len({type(each) for each in values}) > 1:
        raise TypeError(f"For 'TupleToArray', all numbers must have one type, but got {values}.")
    if not isinstance(values, (tuple, range)):
        raise TypeError(f"For 'TupleToArray', the input must be a tuple, but got {type(values).__name__}.")
    return Tensor(list(values), mstype.int32 if isinstance(values[0], int) else mstype.float32)


Roll = primitive(
    "Roll",
    lambda self, x: _rolled(x, self.shift, self.axis),
    "Elements moved along axes.",
    lambda self: (_check_axes(self.shift, "Roll"), _check_axes(self.axis, "Roll")),
    shift=REQUIRED,
    axis=REQUIRED,
)


def _rolled(x, shift, axis):
    shift, axis = ([each] if isinstance(each, int) else list(each) for each in (shift, axis))
    for by, along in zip(shift, axis):
        x = arrays.roll(x, by, along)
    return x


def _search_sorted(self, sorted_sequence, values):
    compare = core.less_equal if self.right else core.less
    flags = compare(basic.expand(sorted_sequence, -2), basic.expand(values, -1))
    return basic.cast(
        core.reduce_sum(basic.cast(flags, np.int32), axes=[len(flags.shape) - 1], keep_dims=False), self.dtype
    )


SearchSorted = primitive(
    "SearchSorted", _search_sorted, "Places at which values keep a sequence sorted.", dtype=mstype.int64, right=False
)
del _name, _mode
