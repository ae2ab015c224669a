"""Primitives that tests and layers of one's own take from mindspore.ops.operations._inner_ops."""

import operator

import numpy as np
from cairn.ms import core
from cairn.ms.numerics import arrays, basic, reductions
from mindspore.common.tensor import Tensor
from mindspore.ops.operations._form import REQUIRED, host, primitive, same_type, static, tensor

# Shapes are those of the inputs when a function is compiled: what makes them unknown changes nothing.
ConvertToDynamic = primitive(
    "ConvertToDynamic", lambda self, x: x, "x itself.", lambda self: _not_unknown(self), is_dynamic_rank=False
)
GpuConvertToDynamicShape = primitive("GpuConvertToDynamicShape", lambda self, x: x, "x itself.")
ErrorOnDynamicShapeInput = primitive("ErrorOnDynamicShapeInput", lambda self, x: x, "x itself, whose shape is known.")
CellBackwardHook = primitive("CellBackwardHook", lambda self, *x: x[0] if len(x) == 1 else x, "What it is given.", cell_id="")
bit_and, bit_or, bit_xor, bit_left_shift, bit_right_shift = operator.and_, operator.or_, operator.xor, operator.lshift, operator.rshift
string_lt, string_gt, string_le, string_ge, string_not = operator.lt, operator.gt, operator.le, operator.ge, operator.not_
string_in, string_mul, string_getitem = (lambda x, y: x in y), operator.mul, operator.getitem


def _not_unknown(self):
    if not isinstance(self.is_dynamic_rank, bool):
        raise TypeError(f"For '{self.name}', the type of 'is_dynamic_rank' must be bool, but got {type(self.is_dynamic_rank).__name__}.")


def _sequence_mask(lengths, maxlen=None):
    """True at the first places of each row, as many as its length says."""
    size = int(lengths.asnumpy().max()) if maxlen is None else static(maxlen, "SequenceMask", "maxlen")
    size = size[0] if isinstance(size, tuple) else size
    return core.greater(basic.expand(arrays.wide(lengths), -1), np.arange(size, dtype=np.int64))


SequenceMask = primitive("SequenceMask", lambda self, lengths, maxlen: _sequence_mask(lengths, maxlen), "True before the end of each sequence.")
Centralization = primitive(
    "Centralization", lambda self, x, axis: core.sub(x, reductions.mean(x, static(axis, "Centralization", "axis"), True)), "x less its mean."
)


def _dynamic_stitch(self, indices, data):
    rows = core.concat(*[basic.reshape(arrays.wide(each), (-1,)) for each in indices], axis=0)
    rest = tuple(data[0].shape[len(indices[0].shape) :])
    parts = core.concat(*[basic.reshape(each, (-1, *rest)) for each in data], axis=0)
    count = max(int(each.asnumpy().max()) for each in indices if each.size) + 1
    return arrays.scatter_rows(basic.filled((count, *rest), 0, basic.nptype(parts)), rows, parts, "update")


DynamicStitch = primitive("DynamicStitch", _dynamic_stitch, "Rows of several tensors at their places, later ones last.")


def _gradient_args(self, x, y):
    from mindspore.ops.function.more_func import broadcast_gradient_args

    shapes = (static(each, "DynamicBroadcastGradientArgs", "shape") for each in (x, y))
    return tuple(Tensor(np.array(each, np.int64)) for each in broadcast_gradient_args(*shapes))


DynamicBroadcastGradientArgs = primitive("DynamicBroadcastGradientArgs", _gradient_args, "Axes over which gradients of both are summed.")


def _copy_slices(self, x, value, begin, end, strides):
    where = tuple(slice(*each) for each in zip(*(static(each, "TensorCopySlices", "begin") for each in (begin, end, strides))))
    made = core.identity(x)
    made[where] = value
    return made


TensorCopySlices = primitive("TensorCopySlices", _copy_slices, "x with a value in the part from begin to end.")


def _non_zero(self, x):
    places = np.stack(np.nonzero(x)) if not self.transpose else np.argwhere(x)
    return x[np.nonzero(x)], places.astype(np.int32), np.array(np.count_nonzero(x), np.int32)


NonZeroWithValue = host("NonZeroWithValue", _non_zero, "(elements that are not 0, their places, how many).", transpose=False)
NonZeroWithValueShape = primitive("NonZeroWithValueShape", lambda self, value, index, count: (value, index), "(value, index)")


def _flatten_concat(self, tensors):
    made = {}
    for each in tensors:
        made.setdefault(basic.nptype(each), []).append(basic.reshape(each, (-1,)))
    return tuple(core.concat(*parts, axis=0) for parts in made.values())


FlattenConcat = primitive("FlattenConcat", _flatten_concat, "The elements of tensors in one row for each dtype.", fusion_size=0)


def _clip_by_norm(self, x, clip_norm):
    axes = () if self.axis is None else self.axis
    size = core.sqrt(reductions.total(core.square(tensor(x, "ClipByNorm", "float")), axes, True))
    return core.div(core.mul(x, same_type(clip_norm, x)), core.maximum(size, same_type(clip_norm, x)))


ClipByNorm = primitive("ClipByNorm", _clip_by_norm, "x, scaled down to that norm along the axes if it is larger.", axis=None)


def _mixed(dtype, value):
    if isinstance(value, (tuple, list)):
        return type(value)(_mixed(dtype, each) for each in value)
    return basic.cast(value, basic.as_np(dtype)) if isinstance(value, Tensor) and basic.is_float(value) else value


def _image_patches(self, x):
    from mindspore.nn import Unfold

    return Unfold(self.ksizes, self.strides, self.rates, self.padding)(x)


ExtractImagePatches = primitive(
    "ExtractImagePatches", _image_patches, "Windows of images as channels.", ksizes=REQUIRED, strides=REQUIRED, rates=REQUIRED, padding="valid"
)
MixedPrecisionCast = primitive("MixedPrecisionCast", lambda self, dtype, value: _mixed(dtype, value), "Floats among nested tensors in a dtype.")
DynamicBroadcastTo = primitive(
    "DynamicBroadcastTo", lambda self, x, shape: core.broadcast_to(x, list(static(shape, "DynamicBroadcastTo", "shape"))), "x repeated to a shape."
)


def _set_diagonal(x, diagonal):
    rows, columns = x.shape[-2:]
    across = basic.expand(diagonal, -1) if rows <= columns else basic.expand(diagonal, -2)
    return core.select(np.broadcast_to(np.eye(rows, columns, dtype=bool), x.shape), core.broadcast_to(across, list(x.shape)), x)


MatrixDiag = primitive("MatrixDiag", lambda self, x, assist: core.mul(basic.expand(x, -1), assist), "The last axis times the rows of assist.")
MatrixDiagPart = primitive("MatrixDiagPart", lambda self, x, assist: reductions.total(core.mul(x, assist), -1), "The sum of each row of x * assist.")
MatrixSetDiag = primitive("MatrixSetDiag", lambda self, x, diagonal, assist=None: _set_diagonal(x, diagonal), "x with another diagonal.")
ConfusionMulGrad = primitive(
    "ConfusionMulGrad",
    lambda self, x, y, z: (core.mul(x, y), reductions.total(core.mul(x, z), self.axis, self.keep_dims)),
    "(x * y, sum of x * z along the axes)", axis=(), keep_dims=False,
)  # fmt: skip
Format = primitive("Format", lambda self, text, values, keys=(), names=(): text.format(*values, **dict(zip(keys, names))), "Text with values in it.")


def _slice_item(self, value, name):
    return getattr(value, name)


SliceGetItem = primitive("SliceGetItem", _slice_item, "start, stop or step of a slice.")
DynamicResizeNearestNeighbor = primitive(
    "DynamicResizeNearestNeighbor", lambda self, x, size: _nearest(self, x, static(size, "DynamicResizeNearestNeighbor", "size")),
    "NCHW images at another size.", align_corners=False,
)  # fmt: skip


def _nearest(self, x, size):
    from mindspore.ops.operations.image_ops import ResizeNearestNeighbor

    return ResizeNearestNeighbor(size, self.align_corners)(x)

TopTypeof = primitive("TopTypeof", lambda self, x: type(x).__name__, "The name of a value's type.")
