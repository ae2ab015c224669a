"""Primitives of networks: activations, convolutions, pools, normalisations, dropout."""

import numpy as np
from cairn.ms import core
from cairn.ms.numerics import basic, images, norms, random, reductions, sampling
from mindspore._checkparam import Rel, Validator, sizes
from mindspore.common.parameter import Parameter
from mindspore.common.tensor import Tensor
from mindspore.ops.operations._form import REQUIRED, Operator, primitive, same_type, tensor, unary

_ACTIVATIONS = {
    "ReLU": (core.relu, "number"), "ReLU6": (basic.relu6, "float"), "Sigmoid": (core.sigmoid, "float"),
    "Tanh": (core.tanh, "float"), "GeLU": (lambda x: core.gelu(x, approximate=True), "float"),
    "FastGeLU": (basic.fast_gelu, "float"), "HSwish": (basic.hard_swish, "float"), "HSigmoid": (basic.hard_sigmoid, "float"),
    "SeLU": (basic.selu, "float"), "SiLU": (basic.silu, "float"), "Softplus": (core.softplus, "float"),
    "Softsign": (basic.softsign, "float"), "Mish": (core.mish, "float"),
    "L2Loss": (lambda x: core.mul(core.reduce_sum(core.square(x), axes=list(range(len(x.shape))), keep_dims=False), basic.number(0.5, x)), "float"),
}  # fmt: skip
for _name, (_function, _kinds) in _ACTIVATIONS.items():
    globals()[_name] = unary(_name, _function, _kinds)
Gelu, FastGelu = GeLU, FastGeLU  # noqa: F821
ReLUV2 = primitive(
    "ReLUV2",
    lambda self, x: (core.relu(x), basic.cast(core.greater(x, basic.number(0, x)), np.uint8)),
    "relu and its mask.",
)


ReLUV3 = unary("ReLUV3", core.relu, "number", "max(0, x)")


def _with_number(name, function, argument, default, nonzero=False):
    def compute(self, x):
        return function(tensor(x, name, "float"), getattr(self, argument))

    def check(self):
        Validator.check_value_type(argument, getattr(self, argument), [float, int], name)
        if nonzero and not getattr(self, argument):
            raise ValueError(f"For '{name}', the '{argument}' must not be 0.")

    return primitive(name, compute, f"{name} of each element.", check, **{argument: default})


HShrink, SoftShrink = (
    _with_number("HShrink", basic.hard_shrink, "lambd", 0.5),
    _with_number("SoftShrink", basic.soft_shrink, "lambd", 0.5),
)
CeLU = _with_number("CeLU", basic.celu, "alpha", 1.0, nonzero=True)


def _only_one(self):
    if self.alpha != 1.0:
        raise ValueError(f"For 'Elu', the 'alpha' must be 1.0, but got {self.alpha}.")


Elu = primitive(
    "Elu",
    lambda self, x: core.elu(tensor(x, "Elu", "float"), alpha=1.0),
    "x above 0, else exp(x) - 1.",
    _only_one,
    alpha=1.0,
)
PReLU = primitive(
    "PReLU",
    lambda self, x, weight: basic.prelu(tensor(x, "PReLU", "float"), tensor(weight, "PReLU", "float", "weight")),
    "x above 0, else weight * x.",
)


def _softmax(name, row):
    def compute(self, x):
        axis = self.axis[0] if isinstance(self.axis, tuple) and len(self.axis) == 1 else self.axis
        if isinstance(axis, tuple):
            if not axis:
                raise ValueError(f"For '{name}', the length of 'axis' must be at least 1, but got 0.")
            shifted = core.exp(core.sub(x, core.stop_gradient(reductions.maximum(x, axis, True))))
            return core.div(shifted, reductions.total(shifted, axis, True))
        Validator.check_axis_in_range(axis, len(tensor(x, name, "float").shape))
        return row(x, axis=axis)

    def check(self):
        Validator.check_value_type("axis", self.axis, [int, tuple], name)

    return primitive(name, compute, f"{name} along the axis.", check, axis=-1)


Softmax, LogSoftmax = _softmax("Softmax", core.softmax), _softmax("LogSoftmax", core.log_softmax)


def _bias_add(self, x, bias):
    kind, shape, of_bias = basic.nptype(tensor(x, "BiasAdd")), x.shape, tensor(bias, "BiasAdd").shape
    if kind.kind == "b" or basic.nptype(bias) != kind:
        raise TypeError(f"For 'BiasAdd', x and the bias need numbers of one dtype, but got {x.dtype} and {bias.dtype}.")
    if len(shape) < 2 or len(of_bias) != 1:
        raise ValueError(f"For 'BiasAdd', x needs 2 or more dimensions and the bias 1, but got {shape} and {of_bias}.")
    channel = shape[1 if self.data_format.startswith("NC") else -1]
    if channel != of_bias[0]:
        raise ValueError(f"For 'BiasAdd', the bias must have {channel} elements, but got {of_bias[0]}.")
    return basic.bias_add(x, bias, self.data_format)


def _check_format(self, formats=("NCHW", "NHWC", "NCDHW", "NDHWC")):
    Validator.check_string(self.data_format, formats, "data_format", self.name)


BiasAdd = primitive("BiasAdd", _bias_add, "x plus one number for each channel.", _check_format, data_format="NCHW")

_PAD_MODES = ("valid", "same", "pad")


def _window(self, axes):
    """Checks and completes the attributes of a convolution over `axes` axes."""
    name = self.name
    self.add_prim_attr("kernel_size", sizes(self.kernel_size, axes, "kernel_size", name))
    self.add_prim_attr("stride", sizes(self.stride, axes, "stride", name, batched=True))
    self.add_prim_attr("dilation", sizes(self.dilation, axes, "dilation", name, batched=True))
    mode = self.pad_mode.lower() if isinstance(self.pad_mode, str) else self.pad_mode
    Validator.check_string(mode, _PAD_MODES, "pad_mode", name)
    pad = self.pad if isinstance(self.pad, (tuple, list)) else (self.pad,) * (2 * axes)
    Validator.check_value_type("pad", self.pad, [int, tuple, list], name)
    if len(pad) != 2 * axes:
        raise ValueError(f"For '{name}', the 'pad' must be an int or a tuple of {2 * axes} ints, but got {pad}.")
    for each in pad:
        Validator.check_non_negative_int(each, "pad", name)
    if mode != "pad" and any(pad):
        raise ValueError(f"For '{name}', the 'pad' must be zero when 'pad_mode' is '{mode}', but got {pad}.")
    self.add_prim_attr("pad_mode", mode)
    self.add_prim_attr("pad_list", tuple(pad))
    Validator.check_positive_int(self.group, "group", name)


def _conv_inputs(self, x, w, rank):
    for each, argument in ((x, "x"), (w, "weight")):
        tensor(each, self.name, "number", argument)
    if basic.nptype(x) != basic.nptype(w):
        raise TypeError(f"For '{self.name}', x and weight must have one dtype, but got {x.dtype} and {w.dtype}.")
    for each, argument in ((x, "x"), (w, "weight")):
        if len(each.shape) != rank:
            raise ValueError(
                f"For '{self.name}', the '{argument}' must have {rank} dimensions, but got shape {tuple(each.shape)}."
            )
    return getattr(self, "data_format", "NCHW")


def _conv(self, x, w):
    rank = len(self.kernel_size) + 2
    layout = _conv_inputs(self, x, w, rank)
    last = layout in ("NHWC", "NDHWC")
    channels = x.shape[-1] if last else x.shape[1]
    expected = (
        self.out_channel,
        *([*self.kernel_size, channels // self.group] if last else [channels // self.group, *self.kernel_size]),
    )
    if channels % self.group or tuple(w.shape) != expected:
        raise ValueError(
            f"For '{self.name}', the weight must have the shape {expected} for x of {tuple(x.shape)} and 'group' {self.group}, "
            f"but got {tuple(w.shape)}."
        )
    return images.conv(x, w, self.pad_mode, self.pad_list, self.stride, self.dilation, self.group, layout)


def _check_conv(axes):
    def check(self):
        Validator.check_positive_int(self.out_channel, "out_channel", self.name)
        if self.mode != 1:
            raise ValueError(f"For '{self.name}', the 'mode' must be 1, but got {self.mode}.")
        _window(self, axes)
        _check_format(self)

    return check


Conv2D = primitive(
    "Conv2D", _conv, "2-D convolution; weight [out, in/group, height, width].", _check_conv(2), out_channel=REQUIRED,
    kernel_size=REQUIRED, mode=1, pad_mode="valid", pad=0, stride=1, dilation=1, group=1, data_format="NCHW",
)  # fmt: skip
Conv3D = primitive(
    "Conv3D", _conv, "3-D convolution.", _check_conv(3), out_channel=REQUIRED, kernel_size=REQUIRED, mode=1,
    pad_mode="valid", pad=0, stride=1, dilation=1, group=1, data_format="NCDHW",
)  # fmt: skip


def _conv_input_gradient(self, dy, w, shape):
    for each in (dy, w):
        tensor(each, self.name, "number")
    return images.conv_transposed(
        dy, w, tuple(shape), self.pad_mode, self.pad_list, self.stride, self.dilation, self.group
    )


_TRANSPOSED = {
    "out_channel": REQUIRED, "kernel_size": REQUIRED, "pad_mode": "valid", "pad": 0, "pad_list": None, "mode": 1,
    "stride": 1, "dilation": 1, "group": 1, "data_format": "NCHW",
}  # fmt: skip
Conv2DBackpropInput, Conv2DTranspose = (
    primitive(
        _name,
        _conv_input_gradient,
        "Gradient of Conv2D by its image, also the transposed convolution.",
        lambda self: _window(self, 2),
        **_TRANSPOSED,
    )
    for _name in ("Conv2DBackpropInput", "Conv2DTranspose")
)
Conv2DBackpropFilter = primitive(
    "Conv2DBackpropFilter",
    lambda self, dy, x, shape: images.conv_kernel_gradient(
        x, dy, tuple(shape), self.pad_mode, self.pad_list, self.stride, self.dilation, self.group
    ),
    "Gradient of Conv2D by its weight.", lambda self: _window(self, 2), **_TRANSPOSED,
)  # fmt: skip


def _conv3d_transposed(self, dy, w):
    shape = [dy.shape[0], w.shape[1] * self.group]
    for i, size in enumerate(dy.shape[2:]):
        both = self.pad_list[2 * i] + self.pad_list[2 * i + 1]
        shape.append(
            images.transposed_size(size, self.kernel_size[i], self.stride[i], self.dilation[i], self.pad_mode, both)
            + sizes(self.output_padding, 3, "output_padding", self.name, True)[i]
        )
    return images.conv_transposed(dy, w, shape, self.pad_mode, self.pad_list, self.stride, self.dilation, self.group)


Conv3DTranspose = primitive(
    "Conv3DTranspose", _conv3d_transposed, "Transposed 3-D convolution.", lambda self: _window(self, 3), in_channel=REQUIRED,
    out_channel=REQUIRED, kernel_size=REQUIRED, mode=1, pad_mode="valid", pad=0, stride=1, dilation=1, group=1,
    output_padding=0, data_format="NCDHW",
)  # fmt: skip


def _depthwise(self, x, w):
    _conv_inputs(self, x, w, 4)
    if w.shape[1] != x.shape[1] or w.shape[0] != self.channel_multiplier:
        raise ValueError(
            f"For '{self.name}', the weight must be [{self.channel_multiplier}, {x.shape[1]}, ...], but got {tuple(w.shape)}."
        )
    if tuple(w.shape[2:]) != tuple(self.kernel_size):
        raise ValueError(f"For '{self.name}', the kernel_size is {self.kernel_size}, but the weight is {tuple(w.shape)}.")
    return images.depthwise_conv(x, w, self.pad_mode, self.pad_list, self.stride, self.dilation)


DepthwiseConv2dNative = primitive(
    "DepthwiseConv2dNative", _depthwise, "Depthwise convolution; weight [multiplier, channels, height, width].", lambda self: _window(self, 2),
    channel_multiplier=REQUIRED, kernel_size=REQUIRED, mode=3, pad_mode="valid", pad=0, stride=1, dilation=1, group=1,
)  # fmt: skip


class _Pool(Operator):
    """A pool; ksize and padding are the names of 0.5 for kernel_size and pad_mode."""

    kind, axes = "max", 2

    def __init__(self, kernel_size=1, strides=1, pad_mode="valid", data_format=None, ksize=None, padding=None, **more):
        super().__init__(type(self).__name__)
        data_format = data_format or ("NCHW" if self.axes == 2 else "NCDHW")
        mode = pad_mode if padding is None else padding
        if not isinstance(mode, str):
            raise TypeError(f"For '{self.name}', the 'pad_mode' must be a string, but got {type(mode).__name__}.")
        Validator.check_string(mode.upper(), ("VALID", "SAME", "PAD"), "pad_mode", self.name)
        size = sizes(kernel_size if ksize is None else ksize, self.axes, "kernel_size", self.name, batched=True)
        step = sizes(strides, self.axes, "strides", self.name, batched=True)
        for key, value in (
            ("kernel_size", size),
            ("strides", step),
            ("pad_mode", mode.lower()),
            ("data_format", data_format),
        ):
            self.add_prim_attr(key, value)
        _check_format(self)
        for key, value in more.items():
            self.add_prim_attr(key, value)

    def options(self):
        """Attributes of the row besides the window."""
        return {}

    def compute(self, x):
        if len(tensor(x, self.name, "number").shape) != self.axes + 2:
            raise ValueError(
                f"For '{self.name}', x must have {self.axes + 2} dimensions, but got shape {tuple(x.shape)}."
            )
        self.fits(x)
        return images.pool(
            self.kind,
            x,
            self.kernel_size,
            self.strides,
            self.pad_mode,
            self.data_format,
            getattr(self, "pads", None),
            **self.options(),
        )

    def fits(self, x):
        inner = x.shape[1:-1] if self.data_format in ("NHWC", "NDHWC") else x.shape[2:]
        if self.pad_mode == "valid" and any(size < k for size, k in zip(inner, self.kernel_size)):
            raise ValueError(
                f"For '{self.name}', the window {self.kernel_size} is larger than the image {tuple(inner)}."
            )


class MaxPool(_Pool):
    """Largest element of each window."""


class AvgPool(_Pool):
    """Mean of each window over the elements inside the image."""

    kind = "avg"


class MaxPoolV1(MaxPool):
    """MaxPool."""


class AvgPoolV1(AvgPool):
    """AvgPool."""


class MaxPoolWithArgmax(_Pool):
    """MaxPool and the places of the largest elements in each plane."""

    def compute(self, x):
        return super().compute(x), images.max_pool_places(x, self.kernel_size, self.strides, self.pad_mode)


def _pads(pad_list):
    return sizes(pad_list, 6, "pad_list", "MaxPool3D", True)


class MaxPool3D(_Pool):
    """Largest element of each window of a volume."""

    axes = 3

    def __init__(self, kernel_size=1, strides=1, pad_mode="VALID", pad_list=0, ceil_mode=None, data_format="NCDHW"):
        super().__init__(kernel_size, strides, pad_mode, data_format, pads=_pads(pad_list), ceil_mode=bool(ceil_mode))

    def options(self):
        return {"ceil_mode": self.ceil_mode}


class AvgPool3D(_Pool):
    """Mean of each window of a volume."""

    kind, axes = "avg", 3

    def __init__(self, kernel_size=1, strides=1, pad_mode="valid", pad=0, ceil_mode=False, count_include_pad=True,
                 divisor_override=0, data_format="NCDHW"):  # fmt: skip
        super().__init__(kernel_size, strides, pad_mode, data_format, pads=_pads(pad), ceil_mode=ceil_mode)
        self.count_include_pad, self.divisor_override = count_include_pad, divisor_override

    def options(self):
        return {"ceil_mode": self.ceil_mode, "count_padding": self.count_include_pad and self.pad_mode == "pad"}

    def compute(self, x):
        y = super().compute(x)
        if self.divisor_override:
            y = core.mul(y, basic.number(np.prod(self.kernel_size) / self.divisor_override, y))
        return y


def _adaptive(kind):
    def compute(self, x):
        sizes = [self.output_size] * 2 if isinstance(self.output_size, int) else self.output_size
        tensor(x, self.name, "float")
        return sampling.adaptive_max_places(x, sizes) if getattr(self, "return_indices", False) else images.adaptive_pool(kind, x, sizes)

    return compute, "Windows that cover the image in output_size parts."


AdaptiveAvgPool2D = primitive("AdaptiveAvgPool2D", *_adaptive("avg"), output_size=REQUIRED)
AdaptiveMaxPool2D = primitive("AdaptiveMaxPool2D", *_adaptive("max"), output_size=REQUIRED, return_indices=False)
AdaptiveAvgPool3D = primitive(
    "AdaptiveAvgPool3D",
    lambda self, x: images.adaptive_pool("avg", x, [self.output_size] * 3 if isinstance(self.output_size, int) else self.output_size),
    "Windows that cover the volume in output_size parts.", output_size=REQUIRED,
)  # fmt: skip


def _batch_norm(self, x, scale, bias, mean, variance):
    for each in (x, scale, bias) if self.is_training else (x, scale, bias, mean, variance):
        tensor(each, self.name, "float")
    if isinstance(mean, Tensor) and isinstance(variance, Tensor) and basic.nptype(mean) != basic.nptype(variance):
        raise TypeError(f"For '{self.name}', mean and variance must have one dtype, but got {mean.dtype} and {variance.dtype}.")
    if not self.is_training:
        return (
            norms.batch_norm(x, scale, bias, mean, variance, self.epsilon, self.data_format),
            mean,
            variance,
            mean,
            variance,
        )
    y, new_mean, new_variance = norms.batch_norm_training(x, scale, bias, self.epsilon, self.data_format)
    norms.follow([pair for pair in ((mean, new_mean), (variance, new_variance)) if isinstance(pair[0], Parameter)], self.momentum)
    return y, new_mean, new_variance, new_mean, new_variance


def _check_norm(self):
    Validator.check_bool(self.is_training, "is_training", self.name)
    Validator.check_float_range(self.epsilon, 0, 1, Rel.INC_RIGHT, "epsilon", self.name)
    Validator.check_float_range(self.momentum, 0, 1, Rel.INC_BOTH, "momentum", self.name)
    _check_format(self)


BatchNorm = primitive(
    "BatchNorm", _batch_norm, "(y, mean, variance, reserved, reserved); training moves the running statistics.", _check_norm,
    is_training=False, epsilon=1e-5, momentum=0.1, data_format="NCHW",
)  # fmt: skip


def _fused_batch_norm(name):
    def compute(self, x, scale, bias, mean, variance):
        self.is_training, self.data_format = self.mode == 1, "NCHW"
        return _batch_norm(self, x, scale, bias, mean, variance)

    return primitive(name, compute, "BatchNorm of 0.5; mode 1 trains.", mode=0, epsilon=1e-5, momentum=0.1)


FusedBatchNorm = _fused_batch_norm("FusedBatchNorm")


class FusedBatchNormEx(FusedBatchNorm):
    """BatchNorm of 0.5 that trains."""

    def __init__(self, mode=1, epsilon=1e-5, momentum=0.1, data_format="NCHW"):
        super().__init__(mode, epsilon, momentum)


def _instance_norm(self, x, gamma, beta, mean, variance):
    axes = list(range(2, len(x.shape)))
    new = [basic.reshape(each, (x.shape[0] * x.shape[1],)) for each in norms.moments(x, axes)]
    return norms.by_groups(x, x.shape[1], gamma, beta, self.epsilon), *new


InstanceNorm = primitive("InstanceNorm", _instance_norm, "Normalises each plane.", epsilon=1e-5, momentum=0.1)


def _layer_norm(self, x, gamma, beta):
    rank = len(tensor(x, "LayerNorm", "float").shape)
    begin = Validator.check_axis_in_range(self.begin_norm_axis, rank)
    first = Validator.check_axis_in_range(self.begin_params_axis, rank)
    expected = tuple(x.shape[first:])
    if tuple(gamma.shape) != expected or tuple(beta.shape) != expected:
        raise ValueError(
            f"For 'LayerNorm', gamma and beta must have the shape {expected}, but got {tuple(gamma.shape)} and {tuple(beta.shape)}."
        )
    mean, variance = norms.moments(core.stop_gradient(x), list(range(begin, rank)))
    return norms.layer_norm(x, gamma, beta, begin, self.epsilon), mean, variance


def _check_axes(self):
    for each in ("begin_norm_axis", "begin_params_axis"):
        Validator.check_is_int(getattr(self, each), each, "LayerNorm")
    Validator.check_value_type("epsilon", self.epsilon, (float, int), "LayerNorm")


LayerNorm = primitive(
    "LayerNorm", _layer_norm, "(y, mean, variance)", _check_axes, begin_norm_axis=1, begin_params_axis=1, epsilon=1e-7
)


def _l2_normalize(self, x):
    axis = self.axis[0] if isinstance(self.axis, (tuple, list)) else self.axis
    return reductions.l2_normalize(tensor(x, "L2Normalize", "float"), axis, self.epsilon)


def _check_l2_normalize(self):
    axis = Validator.check_value_type("axis", self.axis, (int, tuple, list), "L2Normalize")
    Validator.check_value_type("epsilon", self.epsilon, (float, int), "L2Normalize")
    if not isinstance(axis, int) and len(axis) != 1:
        raise TypeError(f"For 'L2Normalize', the length of 'axis' must be 1, but got {len(axis)}.")


L2Normalize = primitive(
    "L2Normalize", _l2_normalize, "x / sqrt(max(sum(x^2), epsilon)) along the axis.", _check_l2_normalize, axis=0, epsilon=1e-4
)


def _check_response(self):
    Validator.check_non_negative_int(self.depth_radius, "depth_radius", "LRN")
    Validator.check_string(self.norm_region, ("ACROSS_CHANNELS",), "norm_region", "LRN")


LRN = primitive(
    "LRN", lambda self, x: images.local_response(tensor(x, "LRN", "float"), self.depth_radius, self.bias, self.alpha, self.beta),
    "Local response normalisation.", lambda self: _check_response(self), depth_radius=5, bias=1.0, alpha=1.0, beta=0.5, norm_region="ACROSS_CHANNELS",
)  # fmt: skip


# Dropout


def _keep(self):
    Validator.check_float_range(self.keep_prob, 0, 1, Rel.INC_RIGHT, "keep_prob", self.name)


def _dropout(shared):
    def compute(self, x):
        axes = range(2, len(x.shape)) if shared else ()
        y, mask = random.dropped(tensor(x, self.name, "float"), self.keep_prob, tuple(axes))
        if shared:
            mask = basic.cast(core.broadcast_to(mask, basic.ints(x.shape)), np.bool_)
        return y, mask

    return compute


Dropout = primitive(
    "Dropout", _dropout(False), "(x with elements dropped, mask)", _keep, keep_prob=0.5, Seed0=0, Seed1=0
)
Dropout2D = primitive("Dropout2D", _dropout(True), "(x with planes dropped, mask)", keep_prob=0.5)
Dropout3D = primitive("Dropout3D", _dropout(True), "(x with volumes dropped, mask)", keep_prob=0.5)
DropoutGenMask = primitive(
    "DropoutGenMask", lambda self, shape, keep: basic.cast(core.less(random.uniform(shape), same_type(keep, Tensor(np.float32(0)))), np.uint8),
    "What a dropout keeps.", Seed0=0, Seed1=0,
)  # fmt: skip
DropoutDoMask = primitive(
    "DropoutDoMask", lambda self, x, mask, keep: core.div(core.mul(x, basic.cast(mask, basic.nptype(x))), same_type(keep, x)),
    "x where the mask keeps it, divided by keep.",
)  # fmt: skip


del _name, _function, _kinds
