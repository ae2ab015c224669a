"""Layers that came late: pads, shuffles, pools of volumes, special functions."""

from cairn.ms import core
from cairn.ms.numerics import basic, images, random
from mindspore._checkparam import Validator, sizes
from mindspore.nn.cell import Cell
from mindspore.ops import functional as F
from mindspore.ops import operations as P


class _PadNd(Cell):
    """Pads of the last `axes` axes, the last one first; one number for all."""

    axes, mode = 2, "constant"

    def __init__(self, padding, value=0.0):
        super().__init__()
        if isinstance(padding, int):
            padding = (padding,) * (2 * self.axes)
        constant = self.mode == "constant"  # which takes pairs of fewer or more axes, and takes elements away as well
        whole = isinstance(padding, tuple) and all(isinstance(each, int) and not isinstance(each, bool) for each in padding)
        if not whole or len(padding) % 2 or not constant and (len(padding) != 2 * self.axes or min(padding) < 0):
            raise (ValueError if whole else TypeError)(
                f"For '{type(self).__name__}', the 'padding' must be an int or a tuple of {2 * self.axes} ints, but got {padding}."
            )
        self.padding, self.value = padding, value

    def construct(self, x):
        pairs = [self.padding[i : i + 2] for i in range(0, len(self.padding), 2)][::-1]
        if len(pairs) > len(x.shape):
            raise ValueError(f"For '{type(self).__name__}', {len(pairs)} axes are padded, but the shape is {tuple(x.shape)}.")
        pads = [(0, 0)] * (len(x.shape) - len(pairs)) + pairs
        return images.pad(x, pads, self.value) if self.mode == "constant" else images.mirror(x, pads, self.mode)


class ZeroPad2d(_PadNd):
    """Zeros around images."""

    def __init__(self, padding):
        super().__init__(padding, 0.0)


def _pads(name, axes, mode):
    return type(
        name, (_PadNd,), {"axes": axes, "mode": mode, "__doc__": f"{mode} around {axes} axes.", "__module__": __name__}
    )


ConstantPad1d, ConstantPad2d, ConstantPad3d = (_pads(f"ConstantPad{n}d", n, "constant") for n in (1, 2, 3))
ReflectionPad1d, ReflectionPad2d, ReflectionPad3d = (_pads(f"ReflectionPad{n}d", n, "reflect") for n in (1, 2, 3))
ReplicationPad1d, ReplicationPad2d, ReplicationPad3d = (_pads(f"ReplicationPad{n}d", n, "edge") for n in (1, 2, 3))


class ChannelShuffle(Cell):
    """Channels of groups in turn."""

    def __init__(self, groups):
        super().__init__()
        self.groups = Validator.check_positive_int(groups, "groups", "ChannelShuffle")

    def construct(self, x):
        return F.channel_shuffle(x, self.groups)


class PixelShuffle(Cell):
    """Channels as blocks of pixels."""

    def __init__(self, upscale_factor):
        super().__init__()
        self.upscale_factor = Validator.check_positive_int(upscale_factor, "upscale_factor", "PixelShuffle")

    def construct(self, x):
        return F.pixel_shuffle(x, self.upscale_factor)


class PixelUnshuffle(Cell):
    """Blocks of pixels as channels."""

    def __init__(self, downscale_factor):
        super().__init__()
        self.downscale_factor = Validator.check_positive_int(downscale_factor, "downscale_factor", "PixelUnshuffle")

    def construct(self, x):
        return F.pixel_unshuffle(x, self.downscale_factor)


class Unflatten(Cell):
    """One axis as several."""

    def __init__(self, axis, unflattened_size):
        super().__init__()
        self.axis, self.size = axis, tuple(unflattened_size)

    def construct(self, x):
        axis = self.axis % len(x.shape)
        return basic.reshape(x, (*x.shape[:axis], *self.size, *x.shape[axis + 1 :]))


class Softmax2d(Cell):
    """Softmax over the channels of images."""

    def construct(self, x):
        return core.softmax(x, axis=1)


class Threshold(Cell):
    """x above a threshold, else a value."""

    def __init__(self, threshold, value):
        super().__init__()
        for name, each in (("threshold", threshold), ("value", value)):
            Validator.check_value_type(name, each, [float, int], "Threshold")
        self.threshold, self.value = threshold, value

    def construct(self, x):
        return F.threshold(x, self.threshold, self.value)


class RReLU(Cell):
    """x above 0, else a slope times x: drawn for each element while it trains, the mean of both bounds else."""

    def __init__(self, lower=1.0 / 8, upper=1.0 / 3):
        super().__init__()
        if not 0 <= lower <= upper:
            raise ValueError(f"For 'RReLU', the bounds must rise from 0, but got {lower} and {upper}.")
        self.lower, self.upper = float(lower), float(upper)

    def construct(self, x):
        if not self.training:
            return core.leaky_relu(x, alpha=(self.lower + self.upper) / 2)
        slope = core.add(
            core.mul(random.uniform(x.shape, basic.nptype(x)), basic.number(self.upper - self.lower, x)),
            basic.number(self.lower, x),
        )
        return basic.where_positive(x, x, core.mul(x, slope))


class LRN(Cell):
    """Local response normalisation."""

    def __init__(self, depth_radius=5, bias=1.0, alpha=1.0, beta=0.5, norm_region="ACROSS_CHANNELS"):
        super().__init__()
        self.lrn = P.LRN(depth_radius, bias, alpha, beta, norm_region)

    def construct(self, x):
        return self.lrn(x)


class _Pool3d(Cell):
    kind = "max"

    def __init__(self, kernel_size=1, stride=1, pad_mode="valid", padding=0, ceil_mode=False, count_include_pad=True):
        super().__init__()
        owner = type(self).__name__
        self.window, self.stride = sizes(kernel_size, 3, "kernel_size", owner), sizes(stride, 3, "stride", owner)
        self.pad_mode = Validator.check_string(pad_mode.lower(), ("valid", "same", "pad"), "pad_mode", owner)
        self.pads = [each for each in sizes(padding, 3, "padding", owner, True) for _ in (0, 1)]
        self.options = {
            "ceil_mode": ceil_mode,
            **({"count_padding": count_include_pad and pad_mode == "pad"} if self.kind == "avg" else {}),
        }

    def construct(self, x):
        return images.pool(self.kind, x, self.window, self.stride, self.pad_mode, "NCDHW", self.pads, **self.options)


class MaxPool3d(_Pool3d):
    """Largest element of each window of a volume."""


class AvgPool3d(_Pool3d):
    """Mean of each window of a volume."""

    kind = "avg"


class Upsample(Cell):
    """Images at another size, or scaled."""

    def __init__(self, size=None, scale_factor=None, mode="nearest", align_corners=False):
        super().__init__()
        if (size is None) == (scale_factor is None):
            raise ValueError("For 'Upsample', one of 'size' and 'scale_factor' must be given.")
        self.size, self.scale_factor, self.mode, self.align_corners = size, scale_factor, mode, bool(align_corners)

    def construct(self, x):
        scale = self.scale_factor if isinstance(self.scale_factor, (tuple, list)) else (self.scale_factor,) * 2
        size = self.size if self.size is not None else [int(n * f) for n, f in zip(x.shape[2:], scale)]
        return F.upsample(x, size, self.mode, self.align_corners)


def _of_row(name, function, doc):
    return type(
        name, (Cell,), {"construct": lambda self, *inputs: function(*inputs), "__doc__": doc, "__module__": __name__}
    )


LGamma = _of_row("LGamma", core.log_gamma, "Logarithm of the gamma function.")
DiGamma = _of_row("DiGamma", core.digamma, "Derivative of LGamma.")
IGamma = _of_row("IGamma", core.incomplete_gamma, "Lower incomplete gamma function.")
LBeta = _of_row(
    "LBeta",
    lambda x, y: core.sub(core.add(core.log_gamma(x), core.log_gamma(y)), core.log_gamma(core.add(x, y))),
    "Logarithm of the beta function.",
)
MatInverse = _of_row("MatInverse", core.matrix_inverse, "Inverse of square matrices.")
MatDet = _of_row("MatDet", core.determinant, "Determinant of square matrices.")


class _Unpool(Cell):
    """Elements of a pool back at their places, zeros elsewhere."""

    function = None

    def __init__(self, kernel_size, stride=None, padding=0):
        super().__init__()
        self.kernel_size, self.stride, self.padding = kernel_size, stride, padding

    def construct(self, x, indices, output_size=None):
        if not isinstance(output_size, (tuple, type(None))):
            raise TypeError(f"For '{type(self).__name__}', the 'output_size' must be a tuple, but got {type(output_size).__name__}.")
        return getattr(F, self.function)(x, indices, self.kernel_size, self.stride, self.padding, output_size)


MaxUnpool1d, MaxUnpool2d, MaxUnpool3d = (
    type(f"MaxUnpool{n}d", (_Unpool,), {"function": f"max_unpool{n}d", "__module__": __name__, "__doc__": _Unpool.__doc__}) for n in (1, 2, 3)
)


class _FractionalMaxPool(Cell):
    """The largest of windows at places that random numbers choose; output_size, or output_ratio of the image's sizes, says how many."""

    row, axes = None, 2

    def __init__(self, kernel_size, output_size=None, output_ratio=None, return_indices=False, _random_samples=None):
        super().__init__()
        name = type(self).__name__
        ratio = (output_ratio,) * self.axes if isinstance(output_ratio, float) else output_ratio
        if ratio is not None and (len(ratio) != self.axes or not all(0 < each < 1 for each in ratio)):
            raise ValueError(f"For '{name}', the 'output_ratio' must be {self.axes} numbers in (0, 1), but got {output_ratio}.")
        self.kernel_size = sizes(kernel_size, self.axes, "kernel_size", name)
        self.output_size = None if output_size is None else sizes(output_size, self.axes, "output_size", name)
        self.output_ratio, self.return_indices, self.samples = ratio, Validator.check_bool(return_indices, "return_indices", name), _random_samples

    def construct(self, x):
        size = self.output_size
        if (size is None) == (self.output_ratio is None):
            raise ValueError(f"For '{type(self).__name__}', one of 'output_size' and 'output_ratio' must be given.")
        if size is None:
            size = tuple(int(n * f) for n, f in zip(x.shape[-self.axes :], self.output_ratio))
        samples = self.samples
        if samples is None:
            whole = x.shape if len(x.shape) == self.axes + 2 else (1, *x.shape)
            samples = F.rand(whole[0], whole[1], self.axes)
        made = self.row(self.kernel_size, size)(x, samples)
        return made if self.return_indices else made[0]


class FractionalMaxPool2d(_FractionalMaxPool):
    __doc__, row = _FractionalMaxPool.__doc__, P.FractionalMaxPoolWithFixedKsize


class FractionalMaxPool3d(_FractionalMaxPool):
    __doc__, row, axes = _FractionalMaxPool.__doc__, P.FractionalMaxPool3DWithFixedKsize, 3


__all__ = [
    "FractionalMaxPool2d", "FractionalMaxPool3d", "MaxUnpool1d", "MaxUnpool2d", "MaxUnpool3d",
    "ZeroPad2d", *(f"{kind}Pad{n}d" for kind in ("Constant", "Reflection", "Replication") for n in (1, 2, 3)), "ChannelShuffle", "PixelShuffle",
    "PixelUnshuffle", "Unflatten", "Softmax2d", "Threshold", "RReLU", "LRN", "MaxPool3d", "AvgPool3d", "Upsample", "LGamma", "DiGamma", "IGamma",
    "LBeta", "MatInverse", "MatDet",
]  # fmt: skip
