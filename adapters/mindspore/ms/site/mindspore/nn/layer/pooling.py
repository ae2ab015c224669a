"""Pools."""

from cairn.ms.numerics import basic, images, reductions, sampling
from mindspore._checkparam import Validator, sizes
from mindspore.nn.cell import Cell
from mindspore.ops import operations as P


class _Pool(Cell):
    kind, axes = "max", 2

    def __init__(self, kernel_size=1, stride=1, pad_mode="valid", data_format="NCHW"):
        super().__init__()
        owner = type(self).__name__
        self.kernel_size, self.stride = kernel_size, stride
        self._window, self._steps = sizes(kernel_size, self.axes, "kernel_size", owner), sizes(stride, self.axes, "stride", owner)
        Validator.check_value_type("pad_mode", pad_mode, [str], owner)
        self.pad_mode = Validator.check_string(pad_mode.lower(), ("valid", "same"), "pad_mode", owner)
        self.data_format = Validator.check_string(data_format, ("NCHW", "NHWC"), "data_format", owner)

    def construct(self, x):
        rank = self.axes + 2
        if len(x.shape) != rank:
            raise ValueError(
                f"For '{type(self).__name__}', x must have {rank} dimensions, but got shape {tuple(x.shape)}."
            )
        if self.axes == 1:
            y = images.pool(self.kind, basic.expand(x, 2), (1, *self._window), (1, *self._steps), self.pad_mode)
            return reductions.squeezed(y, 2)
        return images.pool(self.kind, x, self._window, self._steps, self.pad_mode, self.data_format)

    def extend_repr(self):
        return f"kernel_size={self.kernel_size}, stride={self.stride}, pad_mode={self.pad_mode}"


class MaxPool2d(_Pool):
    """Largest element of each window."""

    _held = {"max_pool": lambda self: P.MaxPool(self.kernel_size, self.stride, self.pad_mode, self.data_format)}


class AvgPool2d(_Pool):
    """Mean of each window over the elements inside the image."""

    kind = "avg"
    _held = {"avg_pool": lambda self: P.AvgPool(self.kernel_size, self.stride, self.pad_mode, self.data_format)}


class _Pool1d(_Pool):
    axes = 1

    def __init__(self, kernel_size=1, stride=1, pad_mode="valid"):
        for name, value in (("kernel_size", kernel_size), ("stride", stride)):
            Validator.check_value_type(name, value, [int], type(self).__name__)
        super().__init__(kernel_size, stride, pad_mode)


class MaxPool1d(_Pool1d):
    """Largest element of each window."""


class AvgPool1d(_Pool1d):
    """Mean of each window."""

    kind = "avg"


class _AdaptivePool(Cell):
    """Windows that cover the last axes in output_size parts."""

    kind, axes = "avg", 2

    def __init__(self, output_size, return_indices=False):
        super().__init__()
        Validator.check_bool(return_indices, "return_indices", type(self).__name__)
        self.return_indices = return_indices
        Validator.check_value_type("output_size", output_size, [int, tuple], type(self).__name__)
        self.output_size = (output_size,) * self.axes if isinstance(output_size, int) else output_size

    def construct(self, x):
        return sampling.adaptive_max_places(x, self.output_size) if self.return_indices else images.adaptive_pool(self.kind, x, self.output_size)


_NAMES = [
    (f"Adaptive{kind.title()}Pool{axes}d", kind, axes) for kind in ("avg", "max") for axes in (1, 2, 3)
]  # fmt: skip
for _name, _kind, _axes in _NAMES:
    globals()[_name] = type(
        _name,
        (_AdaptivePool,),
        {"kind": _kind, "axes": _axes, "__doc__": _AdaptivePool.__doc__, "__module__": __name__},
    )

__all__ = ["MaxPool1d", "MaxPool2d", "AvgPool1d", "AvgPool2d", *(name for name, *_ in _NAMES)]
del _name, _kind, _axes
