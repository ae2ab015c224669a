"""Dense, Dropout, Flatten, and small layers."""

import numpy as np
from cairn.ms import core
from cairn.ms.numerics import arrays, basic, images, random, reductions
from mindspore._checkparam import Rel, Validator
from mindspore.common import dtype as mstype
from mindspore.common.initializer import initializer
from mindspore.common.parameter import Parameter
from mindspore.common.tensor import Tensor
from mindspore.nn.cell import Cell
from mindspore.nn.layer.activation import get_activation
from mindspore.ops import functional as F
from mindspore.ops import operations as P
from mindspore.ops.primitive import Primitive


def checked_init(init, shape, name, owner):
    """An initializer, or a Tensor that must have the shape."""
    if isinstance(init, Tensor) and init.init is None and tuple(init.shape) != tuple(shape):
        raise ValueError(
            f"For '{owner}', the '{name}' must have the shape {tuple(shape)}, but got {tuple(init.shape)}."
        )
    return Parameter(initializer(init, list(shape)), name=name.replace("_init", ""))


def activation_of(activation, owner):
    """An activation by name, or the Cell or primitive itself."""
    made = get_activation(activation, owner) if isinstance(activation, str) else activation
    if made is not None and not isinstance(made, (Cell, Primitive)):
        raise TypeError(
            f"For '{owner}', the 'activation' must be str, Cell or Primitive, but got {type(activation).__name__}."
        )
    return made


class Dense(Cell):
    """activation(x @ weight^T + bias)"""

    _held = {"matmul": lambda self: P.MatMul(transpose_b=True), "bias_add": lambda self: P.BiasAdd(), "cast": lambda self: P.Cast(),
             "reshape": lambda self: P.Reshape(), "shape_op": lambda self: P.Shape()}  # fmt: skip

    def __init__(
        self, in_channels, out_channels, weight_init="normal", bias_init="zeros", has_bias=True, activation=None
    ):
        super().__init__()
        self.in_channels = Validator.check_positive_int(in_channels, "in_channels", "Dense")
        self.out_channels = Validator.check_positive_int(out_channels, "out_channels", "Dense")
        self.has_bias = Validator.check_bool(has_bias, "has_bias", "Dense")
        self.weight = checked_init(weight_init, (out_channels, in_channels), "weight_init", "Dense")
        self.bias = checked_init(bias_init, (out_channels,), "bias_init", "Dense") if has_bias else None
        self.activation = activation_of(activation, "Dense")
        self.activation_flag = self.activation is not None

    def construct(self, x):
        shape = x.shape
        if not shape or shape[-1] != self.in_channels:
            raise ValueError(
                f"For 'Dense', the last size of x must be {self.in_channels}, but got shape {tuple(shape)}."
            )
        rows = len(shape) == 2 or (len(shape) > 2 and core.here.recorder is None)  # recorded, its gradient is one product
        if not rows:
            x = basic.reshape(x, (-1, shape[-1]))
        x = core.matmul(x, self.weight, transpose_b=True)
        if self.has_bias:
            x = core.add(x, self.bias)
        if self.activation_flag:
            x = self.activation(x)
        return x if rows else basic.reshape(x, (*shape[:-1], self.out_channels))

    def extend_repr(self):
        text = f"input_channels={self.in_channels}, output_channels={self.out_channels}"
        text += f", has_bias={self.has_bias}" if self.has_bias else ""
        return text + (f", activation={self.activation}" if self.activation_flag else "")


class BiDense(Cell):
    """x1^T weight x2 + bias"""

    def __init__(self, in1_channels, in2_channels, out_channels, weight_init=None, bias_init=None, has_bias=True):
        super().__init__()
        from mindspore.common.initializer import Uniform

        default = Uniform(1 / np.sqrt(in1_channels))
        shape = (out_channels, in1_channels, in2_channels)
        self.weight = checked_init(default if weight_init is None else weight_init, shape, "weight_init", "BiDense")
        self.has_bias = has_bias
        self.bias = (
            checked_init(default if bias_init is None else bias_init, (out_channels,), "bias_init", "BiDense")
            if has_bias
            else None
        )

    def construct(self, input1, input2):
        rows = basic.reshape(input1, (-1, 1, 1, input1.shape[-1]))
        y = core.matmul(core.matmul(rows, self.weight), basic.reshape(input2, (-1, 1, input2.shape[-1], 1)))
        y = basic.reshape(y, (*input1.shape[:-1], self.weight.shape[0]))
        return core.add(y, self.bias) if self.has_bias else y


class Dropout(Cell):
    """x while it does not train; else elements kept with keep_prob and divided by it. Older releases also take seed0, seed1."""

    draws = True  # random numbers, while it trains: their state is part of checkpoints
    _held = {"dropout": lambda self: P.Dropout(self.keep_prob)}

    def __init__(self, keep_prob=0.5, *others, seed0=0, seed1=0, dtype=mstype.float32, p=None):
        super().__init__()
        if len(others) == 1:
            dtype = others[0]
        if p is not None:
            keep_prob = 1.0 - Validator.check_float_range(p, 0, 1, Rel.INC_LEFT, "p", "Dropout")
        Validator.check_value_type("keep_prob", keep_prob, [float], "Dropout")
        Validator.check_number_range(keep_prob, 0, 1, Rel.INC_RIGHT, "keep_prob", "Dropout")
        self.keep_prob, self.dtype = keep_prob, dtype

    def construct(self, x):
        if not self.training or self.keep_prob == 1:
            return x
        return random.dropped(x, self.keep_prob)[0]

    def extend_repr(self):
        return f"keep_prob={self.keep_prob}"


class _DropoutOfChannels(Cell):
    draws = True

    def __init__(self, p=0.5):
        super().__init__()
        self.p = Validator.check_number_range(p, 0, 1, Rel.INC_BOTH, "p", type(self).__name__)

    def construct(self, x):
        if not self.training or not self.p:
            return x
        return random.dropped(x, 1 - self.p, tuple(range(2, len(x.shape))))[0]


class Dropout2d(_DropoutOfChannels):
    """Drops whole planes."""


class Dropout3d(_DropoutOfChannels):
    """Drops whole volumes."""


class Dropout1d(_DropoutOfChannels):
    """Drops whole rows."""


class Flatten(Cell):
    """Each part along the first axis as one row."""

    def __init__(self):
        super().__init__()

    def construct(self, x):
        if not x.shape:
            raise ValueError("For 'Flatten', the input must have at least 1 dimension, but got a scalar.")
        return basic.reshape(x, (x.shape[0], int(np.prod(x.shape[1:]))))


class Identity(Cell):
    """x itself."""

    def __init__(self):
        super().__init__()

    def construct(self, x):
        return x


class ClipByNorm(Cell):
    """x scaled down to clip_norm along the axes where its norm is larger."""

    def __init__(self, axis=None):
        super().__init__()
        if axis is not None:
            Validator.check_value_type("axis", axis, [int, tuple], "ClipByNorm")
        self.axis = axis

    def construct(self, x, clip_norm):
        axes = basic.axes_of(() if self.axis is None else self.axis, len(x.shape))
        square = core.reduce_sum(core.square(x), axes=axes, keep_dims=True)
        positive = core.greater(square, basic.number(0, square))
        size = core.select(positive, core.sqrt(core.select(positive, square, basic.number(1, square))), square)
        bound = basic.cast(clip_norm, basic.nptype(x)) if isinstance(clip_norm, Tensor) else basic.number(clip_norm, x)
        return core.div(core.mul(x, bound), core.maximum(size, bound))


class Norm(Cell):
    """Euclidean norm along the axes."""

    def __init__(self, axis=(), keep_dims=False):
        super().__init__()
        Validator.check_value_type("keep_dims", keep_dims, [bool], "Norm")
        self.axis, self.keep_dims = axis, keep_dims

    def construct(self, x):
        return reductions.norm(x, self.axis, 2, self.keep_dims)

    def extend_repr(self):
        return f"axis={self.axis}, keep_dims={self.keep_dims}"


class OneHot(Cell):
    """A new axis of size depth with on_value at each index."""

    def __init__(self, axis=-1, depth=1, on_value=1.0, off_value=0.0, dtype=mstype.float32):
        super().__init__()
        self.onehot, self.depth, self.dtype = P.OneHot(axis), depth, dtype
        self.on_value, self.off_value = Tensor(on_value, dtype), Tensor(off_value, dtype)

    def construct(self, indices):
        return self.onehot(indices, self.depth, self.on_value, self.off_value)


class Pad(Cell):
    """x with zeros, or itself mirrored, around."""

    def __init__(self, paddings, mode="CONSTANT"):
        super().__init__()
        Validator.check_string(mode, ["CONSTANT", "REFLECT", "SYMMETRIC"], "mode", "Pad")
        if not isinstance(paddings, tuple):
            raise TypeError(f"For 'Pad', the 'paddings' must be a tuple, but got {type(paddings).__name__}.")
        for each in paddings:
            if len(each) != 2:
                raise ValueError(f"For 'Pad', the 'paddings' must be pairs, but got {paddings}.")
        if len(paddings) > 4 and mode != "CONSTANT":
            raise ValueError(f"For 'Pad', only 4 axes can be padded by '{mode}', but got {len(paddings)}.")
        self.paddings, self.mode = paddings, mode

    def construct(self, x):
        if self.mode == "CONSTANT":
            return images.pad(x, self.paddings)
        return images.mirror(x, self.paddings, self.mode)


class Unfold(Cell):
    """Windows of images as columns: [n, channels * kernel, height, width]."""

    def __init__(self, ksizes, strides, rates, padding="valid"):
        super().__init__()
        self.sizes = [tuple(each[1:3]) if len(each) == 4 else (each[2], each[3]) for each in (ksizes, strides, rates)]
        self.padding = Validator.check_string(padding.lower(), ["valid", "same"], "padding", "Unfold")

    def construct(self, x):
        pads, out = [], []
        for size, k, stride, rate in zip(x.shape[2:], *self.sizes):
            reach = rate * (k - 1) + 1
            length = -(-size // stride) if self.padding == "same" else (size - reach) // stride + 1
            both = max((length - 1) * stride + reach - size, 0) if self.padding == "same" else 0
            pads += [both // 2, both - both // 2]
            out.append(length)
        columns = images.patches(x, *self.sizes, pads)
        columns = core.transpose(columns, permutation=[0, 2, 1, 3])
        return basic.reshape(columns, (x.shape[0], -1, *out))


class ResizeBilinear(Cell):
    """Images at another size, or scaled."""

    def __init__(self, half_pixel_centers=False):
        super().__init__()
        self.half_pixel_centers = half_pixel_centers

    def construct(self, x, size=None, scale_factor=None, align_corners=False):
        if (size is None) == (scale_factor is None):
            raise ValueError("For 'ResizeBilinear', one of 'size' and 'scale_factor' must be given.")
        if size is None:
            size = tuple(each * scale_factor for each in x.shape[2:])
        return images.resize(x, size, "bilinear", align_corners, self.half_pixel_centers)


class Range(Cell):
    """start, start + delta, ... below limit."""

    def __init__(self, start, limit=None, delta=1):
        super().__init__()
        if delta == 0:
            raise ValueError("For 'Range', the 'delta' cannot be 0.")
        start, limit = (0, start) if limit is None else (start, limit)
        values = np.arange(start, limit, delta)
        self.result = Tensor(values.astype(np.float32 if values.dtype.kind == "f" else np.int32))

    def construct(self):
        return self.result


class Tril(Cell):
    """Lower triangle."""

    def __init__(self):
        super().__init__()

    def construct(self, x, k=0):
        return arrays.band(x, None, k)


class Triu(Cell):
    """Upper triangle."""

    def __init__(self):
        super().__init__()

    def construct(self, x, k=0):
        return arrays.band(x, -k, None)


class L1Regularizer(Cell):
    """scale * sum of |weights|"""

    def __init__(self, scale):
        super().__init__()
        Validator.check_value_type("scale", scale, [int, float], "L1Regularizer")
        if scale <= 0 or np.isinf(scale) or np.isnan(scale):
            raise ValueError(f"For 'L1Regularizer', the 'scale' must be a finite number above 0, but got {scale}.")
        self.scale = scale

    def construct(self, weights):
        return core.mul(reductions.total(core.abs(weights)), basic.number(self.scale, weights))


class MatrixDiag(Cell):
    """x on the diagonal of matrices."""

    def construct(self, x):
        return core.mul(basic.expand(x, -1), np.eye(x.shape[-1], dtype=basic.nptype(x)))


class MatrixDiagPart(Cell):
    """The diagonals of matrices."""

    def construct(self, x):
        return arrays.diagonal(x, 0, -2, -1)


class MatrixSetDiag(Cell):
    """Matrices with another diagonal."""

    def construct(self, x, diagonal):
        on = np.eye(*x.shape[-2:], dtype=bool)
        short = x.shape[-1] - diagonal.shape[-1]
        if short > 0:
            diagonal = images.pad(diagonal, [(0, 0)] * (len(diagonal.shape) - 1) + [(0, short)])
        return core.select(on, basic.expand(diagonal, -2), x)


class Roll(Cell):
    """Elements moved along axes."""

    def __init__(self, shift, axis):
        super().__init__()
        self.roll = P.Roll(shift, axis)

    def construct(self, x):
        return self.roll(x)


class Moments(Cell):
    """Mean and variance along the axes."""

    def __init__(self, axis=None, keep_dims=None):
        super().__init__()
        self.axis, self.keep_dims = () if axis is None else axis, bool(keep_dims)

    def construct(self, x):
        return reductions.mean(x, self.axis, self.keep_dims), reductions.variance(x, self.axis, 0, self.keep_dims)


class ReduceLogSumExp(Cell):
    """log(sum(exp(x))) along the axes."""

    def __init__(self, axis, keep_dims=False):
        super().__init__()
        Validator.check_value_type("axis", axis, [int, list, tuple], "ReduceLogSumExp")
        self.axis, self.keep_dims = axis, keep_dims

    def construct(self, x):
        return reductions.log_sum_exp(x, self.axis, self.keep_dims)


class MatMul(Cell):
    """Product of matrices by NumPy's rules."""

    def __init__(self, transpose_x1=False, transpose_x2=False):
        super().__init__()
        self.transpose = (transpose_x1, transpose_x2)

    def construct(self, x1, x2):
        return basic.matmul(x1, x2, *self.transpose)


class BatchMatMul(MatMul):
    """Product of stacks of matrices."""


class TimeDistributed(Cell):
    """A layer over each step along an axis."""

    def __init__(self, layer, time_axis, reshape_with_axis=None):
        super().__init__()
        self.layer, self.time_axis = layer, time_axis

    def construct(self, inputs):
        return F.stack([self.layer(each) for each in arrays.unstack(inputs, self.time_axis)], self.time_axis)


class DenseBnAct(Cell):
    """Dense, batch norm and activation."""

    def __init__(self, in_channels, out_channels, weight_init="normal", bias_init="zeros", has_bias=True, has_bn=False,
                 momentum=0.9, eps=1e-5, activation=None, alpha=0.2, after_fake=True):  # fmt: skip
        super().__init__()
        from mindspore.nn.layer.normalization import BatchNorm1d

        self.dense = Dense(in_channels, out_channels, weight_init, bias_init, has_bias)
        self.has_bn, self.has_act = has_bn, activation is not None
        if has_bn:
            self.batchnorm = BatchNorm1d(out_channels, eps, momentum)
        self.activation = activation_with_slope(activation, alpha, "DenseBnAct")

    def construct(self, x):
        x = self.dense(x)
        if self.has_bn:
            x = self.batchnorm(x)
        return self.activation(x) if self.has_act else x


def activation_with_slope(activation, alpha, owner):
    from mindspore.nn.layer.activation import LeakyReLU

    return LeakyReLU(alpha) if activation == "leakyrelu" else activation_of(activation, owner)


__all__ = [
    "Dense", "BiDense", "Dropout", "Dropout1d", "Dropout2d", "Dropout3d", "Flatten", "Identity", "ClipByNorm", "Norm", "OneHot",
    "Pad", "Unfold", "ResizeBilinear", "Range", "Tril", "Triu", "L1Regularizer", "MatrixDiag", "MatrixDiagPart",
    "MatrixSetDiag", "Roll", "Moments", "ReduceLogSumExp", "MatMul", "BatchMatMul", "TimeDistributed", "DenseBnAct",
]  # fmt: skip
