"""Measures of images."""

import numpy as np
from cairn.ms import core
from cairn.ms.numerics import basic, images
from mindspore._checkparam import Rel, Validator
from mindspore.common import dtype as mstype
from mindspore.nn.cell import Cell
from mindspore.nn.layer.pooling import AvgPool2d


class ImageGradients(Cell):
    """Differences of neighbours along height and width."""

    def construct(self, x):
        if len(x.shape) != 4:
            raise ValueError(f"For 'ImageGradients', the dimension of 'images' must be 4d, but got {len(x.shape)}.")
        out = []
        for axis in (2, 3):
            size = x.shape[axis]
            apart = core.sub(basic.part(x, axis, 1, size), basic.part(x, axis, 0, size - 1))
            pads = [(0, 0)] * 4
            pads[axis] = (0, 1)
            out.append(images.pad(apart, pads))
        return tuple(out)


def _gaussian(size, sigma):
    line = np.exp(-((np.arange(size) - (size - 1) // 2) ** 2) / (2 * sigma**2))
    line /= line.sum()
    return (line[:, None] * line).astype(np.float32)


def _pair(name, x, y, *types):
    """Both as float32, of one type and shape."""
    for each, which in ((x, "img1"), (y, "img2")):
        if len(each.shape) != 4:
            raise ValueError(f"For '{name}', the dimension of '{which}' must be 4d, but got {len(each.shape)}.")
    if x.shape != y.shape:
        raise ValueError(f"For '{name}', the shapes of 'img1' and 'img2' must be equal, but got {x.shape} and {y.shape}.")
    if x.dtype != y.dtype or types and x.dtype not in types:
        raise TypeError(f"For '{name}', the types of 'img1' and 'img2' must be one floating type, but got {x.dtype} and {y.dtype}.")
    return basic.cast(x, np.float32), basic.cast(y, np.float32)


def _greatest(max_val, name):
    Validator.check_value_type("max_val", max_val, [int, float], name)
    return Validator.check_number(max_val, 0, Rel.GT, "max_val", name)


class SSIM(Cell):
    """Structural similarity of two batches of images."""

    def __init__(self, max_val=1.0, filter_size=11, filter_sigma=1.5, k1=0.01, k2=0.03):
        super().__init__()
        name = type(self).__name__
        self.max_val = _greatest(max_val, name)
        self.filter_size = Validator.check_int(filter_size, 1, Rel.GE, "filter_size", name)
        self.filter_sigma = Validator.check_positive_float(filter_sigma, "filter_sigma", name)
        for each, which in ((k1, "k1"), (k2, "k2")):
            Validator.check_value_type(which, each, [float], name)
            Validator.check_float_range(each, 0.0, 1.0, Rel.INC_NEITHER, which, name)
        self.c1, self.c2 = (k1 * max_val) ** 2, (k2 * max_val) ** 2

    def _parts(self, x, y):
        """(luminance times contrast and structure, contrast and structure), the means of each channel."""
        for size in x.shape[2:]:
            Validator.check_int(size, self.filter_size, Rel.GE, "the size of 'img1'", type(self).__name__)
        channels = x.shape[1]
        kernel = np.broadcast_to(
            _gaussian(self.filter_size, self.filter_sigma), (1, channels, self.filter_size, self.filter_size)
        )
        kernel = core.identity(np.ascontiguousarray(kernel))

        def blurred(z):
            return images.depthwise_conv(z, kernel, "valid", None, (1, 1), (1, 1))

        mx, my = blurred(x), blurred(y)
        both, squares = core.mul(mx, my), core.add(core.square(mx), core.square(my))
        c1, c2, two = (basic.number(each, x) for each in (self.c1, self.c2, 2))
        light = core.div(core.add(core.mul(both, two), c1), core.add(squares, c1))
        cross = core.sub(core.mul(blurred(core.mul(x, y)), two), core.mul(both, two))
        spread = core.sub(blurred(core.add(core.square(x), core.square(y))), squares)
        contrast = core.div(core.add(cross, c2), core.add(spread, c2))
        return tuple(core.reduce_mean(each, axes=[2, 3], keep_dims=False) for each in (core.mul(light, contrast), contrast))

    def construct(self, x, y):
        return core.reduce_mean(self._parts(*_pair("SSIM", x, y, mstype.float32, mstype.float16))[0], axes=[1], keep_dims=False)


class MSSSIM(SSIM):
    """Structural similarity at several scales: contrast and structure of each, luminance of the last."""

    def __init__(
        self, max_val=1.0, power_factors=(0.0448, 0.2856, 0.3001, 0.2363, 0.1333), filter_size=11, filter_sigma=1.5, k1=0.01, k2=0.03
    ):
        super().__init__(max_val, filter_size, filter_sigma, k1, k2)
        self.power_factors = Validator.check_value_type("power_factors", power_factors, [tuple, list], "MSSSIM")
        self.half = AvgPool2d(kernel_size=2, stride=2)

    def construct(self, x, y):
        x, y = _pair("MSSSIM", x, y, mstype.float64, mstype.float32, mstype.float16, mstype.uint8)
        made = None
        for scale, factor in enumerate(self.power_factors, 1):
            whole, part = self._parts(x, y)
            each = core.relu(whole if scale == len(self.power_factors) else part)
            each = core.pow(each, basic.number(factor, each))
            made = each if made is None else core.mul(made, each)
            if scale < len(self.power_factors):
                x, y = self.half(x), self.half(y)
        return core.reduce_mean(made, axes=[1], keep_dims=False)


class PSNR(Cell):
    """Peak signal to noise ratio."""

    def __init__(self, max_val=1.0):
        super().__init__()
        self.max_val = _greatest(max_val, "PSNR")

    def construct(self, x, y):
        x, y = _pair("PSNR", x, y)
        mean = core.reduce_mean(core.squared_difference(x, y), axes=[1, 2, 3], keep_dims=False)
        ratio = core.div(basic.number(self.max_val**2, mean), mean)
        return core.mul(basic.log_base(ratio, 10), basic.number(10, mean))


class CentralCrop(Cell):
    """The middle of images."""

    def __init__(self, central_fraction):
        super().__init__()
        Validator.check_value_type("central_fraction", central_fraction, [float], "CentralCrop")
        self.central_fraction = Validator.check_float_range(
            central_fraction, 0.0, 1.0, Rel.INC_RIGHT, "central_fraction", "CentralCrop"
        )

    def construct(self, image):
        rank = len(image.shape)
        if rank not in (3, 4):
            raise ValueError(f"For 'CentralCrop', the image should have 3 or 4 dims, but got the shape {tuple(image.shape)}.")
        for axis in (rank - 2, rank - 1):
            size = image.shape[axis]
            begin = int((size - size * self.central_fraction) / 2)
            image = basic.part(image, axis, begin, size - begin)
        return image


__all__ = ["ImageGradients", "SSIM", "MSSSIM", "PSNR", "CentralCrop"]
