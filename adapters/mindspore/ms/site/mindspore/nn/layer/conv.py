"""Convolutions."""

from cairn.ms.numerics import basic, images, reductions
from cairn.ms.refusal import WrongValue
from mindspore._checkparam import Validator, sizes
from mindspore.common.tensor import Tensor
from mindspore.nn.cell import Cell
from mindspore.nn.layer.basic import activation_with_slope, checked_init
from mindspore.ops import operations as P


class _Conv(Cell):
    """What all convolutions have in common; `axes` spatial axes."""

    axes, transposed = 2, False

    def _prepare(
        self,
        in_channels,
        out_channels,
        kernel_size,
        stride,
        pad_mode,
        padding,
        dilation,
        group,
        has_bias,
        weight_init,
        bias_init,
        data_format,
    ):
        owner = type(self).__name__
        self.in_channels = Validator.check_positive_int(in_channels, "in_channels", owner)
        self.out_channels = Validator.check_positive_int(out_channels, "out_channels", owner)
        self.kernel_size = sizes(kernel_size, self.axes, "kernel_size", owner)
        self.stride = sizes(stride, self.axes, "stride", owner)
        self.dilation = sizes(dilation, self.axes, "dilation", owner)
        self.pad_mode = Validator.check_string(pad_mode, ("valid", "same", "pad"), "pad_mode", owner)
        Validator.check_value_type("padding", padding, [int, tuple], owner)
        pads = (padding,) * (2 * self.axes) if isinstance(padding, int) else padding
        if len(pads) != 2 * self.axes:
            raise ValueError(
                f"For '{owner}', the 'padding' must be an int or a tuple of {2 * self.axes} ints, but got {padding}."
            )
        for each in pads:
            Validator.check_non_negative_int(each, "padding", owner)
        if pad_mode != "pad" and any(pads):
            raise ValueError(
                f"For '{owner}', the 'padding' must be zero when 'pad_mode' is '{pad_mode}', but got {padding}."
            )
        self.padding, self.pads = padding, tuple(pads)
        self.group = Validator.check_positive_int(group, "group", owner)
        for channels, name in ((in_channels, "in_channels"), (out_channels, "out_channels")):
            if channels % group:
                raise ValueError(f"For '{owner}', the '{name}' {channels} must be divisible by 'group' {group}.")
        self.has_bias = Validator.check_bool(has_bias, "has_bias", owner)
        formats = {1: ("NCW",), 2: ("NCHW", "NHWC"), 3: ("NCDHW",)}[self.axes]
        self.data_format = Validator.check_string(data_format, formats, "data_format", owner)
        kernel = (1, *self.kernel_size) if self.axes == 1 else self.kernel_size
        pair = (in_channels, out_channels // group) if self.transposed else (out_channels, in_channels // group)
        shape = (pair[0], *kernel, pair[1]) if data_format == "NHWC" else (*pair, *kernel)
        if self.axes == 1 and isinstance(weight_init, Tensor) and len(weight_init.shape) == 3:
            weight_init = basic.expand(weight_init, 2)
        self.weight = checked_init(weight_init, shape, "weight_init", owner)
        if self.axes == 2 and group == 1 and not self.transposed:
            self.weight.lay((1, 2, 3, 0) if data_format == "NHWC" else (2, 3, 1, 0))  # as kernels read it
        self.bias = checked_init(bias_init, (out_channels,), "bias_init", owner) if has_bias else None

    def _window(self):
        """Kernel's pads, strides and dilations over two or three axes."""
        one = (1,) if self.axes == 1 else ()
        return (0, 0) * len(one) + self.pads, one + self.stride, one + self.dilation

    def _check(self, x):
        rank = self.axes + 2
        axis = rank - 1 if self.data_format == "NHWC" else 1
        if len(x.shape) == rank and x.shape[axis] != self.in_channels:
            raise WrongValue(
                f"For '{type(self).__name__}', 'C_in' of input 'x' shape divide by parameter 'group' should be equal to 'C_in' of input 'weight' "
                f"shape, that is {self.in_channels} channels in all, but got {x.shape[axis]} in shape {tuple(x.shape)}."
            )
        if len(x.shape) != rank:
            raise ValueError(f"For '{type(self).__name__}', x must have {rank} dimensions, but got shape {tuple(x.shape)}.")

    def _with_bias(self, x):
        return basic.bias_add(x, self.bias, self.data_format) if self.has_bias else x

    def construct(self, x):
        self._check(x)
        if self.axes == 1:
            x = basic.expand(x, 2)
        pads, stride, dilation = self._window()
        y = images.conv(x, self.weight, self.pad_mode, pads, stride, dilation, self.group, self.data_format)
        return self._with_bias(reductions.squeezed(y, 2) if self.axes == 1 else y)

    def extend_repr(self):
        return (
            f"input_channels={self.in_channels}, output_channels={self.out_channels}, kernel_size={self.kernel_size}, "
            f"stride={self.stride}, pad_mode={self.pad_mode}, padding={self.padding}, dilation={self.dilation}, "
            f"group={self.group}, has_bias={self.has_bias}"
        )


class Conv2d(_Conv):
    """2-D convolution; weight [out, in/group, height, width]."""

    _held = {"conv2d": lambda self: P.Conv2D(self.out_channels, self.kernel_size, 1, self.pad_mode, self.pads, self.stride, self.dilation,
                                             self.group, self.data_format),
             "bias_add": lambda self: P.BiasAdd(self.data_format)}  # fmt: skip

    def __init__(self, in_channels, out_channels, kernel_size, stride=1, pad_mode="same", padding=0, dilation=1, group=1,
                 has_bias=False, weight_init="normal", bias_init="zeros", data_format="NCHW"):  # fmt: skip
        super().__init__()
        self._prepare(in_channels, out_channels, kernel_size, stride, pad_mode, padding, dilation, group, has_bias,
                      weight_init, bias_init, data_format)  # fmt: skip


class Conv1d(_Conv):
    """1-D convolution; weight [out, in/group, 1, width]."""

    axes = 1

    def __init__(self, in_channels, out_channels, kernel_size, stride=1, pad_mode="same", padding=0, dilation=1, group=1,
                 has_bias=False, weight_init="normal", bias_init="zeros"):  # fmt: skip
        super().__init__()
        for value, name in (
            (kernel_size, "kernel_size"),
            (stride, "stride"),
            (padding, "padding"),
            (dilation, "dilation"),
        ):
            Validator.check_is_int(value, name, type(self).__name__)
        self._prepare(in_channels, out_channels, kernel_size, stride, pad_mode, padding, dilation, group, has_bias,
                      weight_init, bias_init, "NCW")  # fmt: skip


class Conv3d(_Conv):
    """3-D convolution; weight [out, in/group, depth, height, width]."""

    axes = 3

    def __init__(self, in_channels, out_channels, kernel_size, stride=1, pad_mode="same", padding=0, dilation=1, group=1,
                 has_bias=False, weight_init="normal", bias_init="zeros", data_format="NCDHW"):  # fmt: skip
        super().__init__()
        self._prepare(in_channels, out_channels, kernel_size, stride, pad_mode, padding, dilation, group, has_bias,
                      weight_init, bias_init, data_format)  # fmt: skip


class _Transposed:
    """Convolutions whose gradient by the image is a convolution; weight [in, out/group, ...]."""

    transposed = True
    output_padding = 0

    def construct(self, x):
        self._check(x)
        pads, stride, dilation = self._window()
        shape = [x.shape[0], self.out_channels]
        for i, size in enumerate(x.shape[2:]):
            both = self.pads[2 * i] + self.pads[2 * i + 1]
            length = images.transposed_size(
                size, self.kernel_size[i], self.stride[i], self.dilation[i], self.pad_mode, both
            )
            shape.append(length + self.extra[i])
        if self.axes == 1:
            x, shape = basic.expand(x, 2), [*shape[:2], 1, shape[2]]
        y = images.conv_transposed(x, self.weight, shape, self.pad_mode, pads, stride, dilation, self.group)
        return self._with_bias(reductions.squeezed(y, 2) if self.axes == 1 else y)

    @property
    def extra(self):
        value = self.output_padding
        return value if isinstance(value, tuple) else (value,) * self.axes


class Conv2dTranspose(_Transposed, Conv2d):
    """Transposed 2-D convolution; weight [in, out/group, height, width]."""

    def __init__(self, in_channels, out_channels, kernel_size, stride=1, pad_mode="same", padding=0, dilation=1, group=1,
                 has_bias=False, weight_init="normal", bias_init="zeros", output_padding=0):  # fmt: skip
        Cell.__init__(self)
        self.output_padding = output_padding
        self._prepare(in_channels, out_channels, kernel_size, stride, pad_mode, padding, dilation, group, has_bias,
                      weight_init, bias_init, "NCHW")  # fmt: skip


class Conv1dTranspose(_Transposed, _Conv):
    """Transposed 1-D convolution; weight [in, out/group, 1, width]."""

    axes = 1

    def __init__(self, in_channels, out_channels, kernel_size, stride=1, pad_mode="same", padding=0, dilation=1, group=1,
                 has_bias=False, weight_init="normal", bias_init="zeros"):  # fmt: skip
        super().__init__()
        self._prepare(in_channels, out_channels, kernel_size, stride, pad_mode, padding, dilation, group, has_bias,
                      weight_init, bias_init, "NCW")  # fmt: skip


class Conv3dTranspose(_Transposed, _Conv):
    """Transposed 3-D convolution; weight [in, out/group, depth, height, width]."""

    axes = 3

    def __init__(self, in_channels, out_channels, kernel_size, stride=1, pad_mode="same", padding=0, dilation=1, group=1,
                 output_padding=0, has_bias=False, weight_init="normal", bias_init="zeros", data_format="NCDHW"):  # fmt: skip
        super().__init__()
        self.output_padding = output_padding
        self._prepare(in_channels, out_channels, kernel_size, stride, pad_mode, padding, dilation, group, has_bias,
                      weight_init, bias_init, data_format)  # fmt: skip


class DepthwiseConv2d(Cell):
    """Depthwise convolution of 0.5; weight [multiplier, channels, height, width]."""

    def __init__(self, in_channels, out_channels, kernel_size, stride=1, pad_mode="same", padding=0, dilation=1, group=1,
                 has_bias=False, weight_init="normal", bias_init="zeros"):  # fmt: skip
        super().__init__()
        if in_channels != out_channels or group != in_channels:
            raise ValueError(
                f"For 'DepthwiseConv2d', in_channels, out_channels and group must be equal, but got {in_channels}, {out_channels}, {group}."
            )
        self.kernel_size, self.stride, self.dilation = (
            sizes(each, 2, name, "DepthwiseConv2d")
            for each, name in ((kernel_size, "kernel_size"), (stride, "stride"), (dilation, "dilation"))
        )
        self.pad_mode, self.has_bias = pad_mode, has_bias
        self.pads = (padding,) * 4 if isinstance(padding, int) else tuple(padding)
        self.weight = checked_init(weight_init, (1, in_channels, *self.kernel_size), "weight_init", "DepthwiseConv2d")
        self.bias = checked_init(bias_init, (out_channels,), "bias_init", "DepthwiseConv2d") if has_bias else None

    def construct(self, x):
        y = images.depthwise_conv(x, self.weight, self.pad_mode, self.pads, self.stride, self.dilation)
        return basic.bias_add(y, self.bias) if self.has_bias else y


class Conv2dBnAct(Cell):
    """Convolution, batch norm and activation."""

    def __init__(self, in_channels, out_channels, kernel_size, stride=1, pad_mode="same", padding=0, dilation=1, group=1,
                 has_bias=False, weight_init="normal", bias_init="zeros", has_bn=False, momentum=0.997, eps=1e-5,
                 activation=None, alpha=0.2, after_fake=True):  # fmt: skip
        super().__init__()
        from mindspore.nn.layer.normalization import BatchNorm2d

        self.conv = Conv2d(in_channels, out_channels, kernel_size, stride, pad_mode, padding, dilation, group, has_bias,
                           weight_init, bias_init)  # fmt: skip
        self.has_bn, self.has_act = Validator.check_bool(has_bn, "has_bn", "Conv2dBnAct"), activation is not None
        if has_bn:
            self.batchnorm = BatchNorm2d(out_channels, eps, momentum)
        self.activation = activation_with_slope(activation, alpha, "Conv2dBnAct")

    def construct(self, x):
        x = self.conv(x)
        if self.has_bn:
            x = self.batchnorm(x)
        return self.activation(x) if self.has_act else x


__all__ = [
    "Conv1d", "Conv2d", "Conv3d", "Conv1dTranspose", "Conv2dTranspose", "Conv3dTranspose", "DepthwiseConv2d", "Conv2dBnAct",
]  # fmt: skip
