"""Measures of images."""

import numpy as np
from cairn.ms import core
from cairn.ms.numerics import basic, images
from mindspore._checkparam import Rel, Validator
from mindspore.nn.cell import Cell


class ImageGradients(Cell):
    """Differences of neighbours along height and width."""

    def construct(self, x):
        out = []
        for axis in (2, 3):
            size = x.shape[axis]
            apart = core.sub(basic.part(x, axis, 1, size), basic.part(x, axis, 0, size - 1))
            pads = [(0, 0)] * 4
            pads[axis] = (0, 1)
            out.append(images.pad(apart, pads))
        return tuple(out)


def _gaussian(size, sigma):
    line = np.exp(-((np.arange(size) - (size - 1) / 2) ** 2) / (2 * sigma**2))
    line /= line.sum()
    return (line[:, None] * line).astype(np.float32)


class SSIM(Cell):
    """Structural similarity of two batches of images."""

    def __init__(self, max_val=1.0, filter_size=11, filter_sigma=1.5, k1=0.01, k2=0.03):
        super().__init__()
        Validator.check_number(max_val, 0, Rel.GT, "max_val", "SSIM")
        self.max_val = max_val
        self.filter_size = Validator.check_int(filter_size, 1, Rel.GE, "filter_size", "SSIM")
        self.filter_sigma = Validator.check_positive_float(filter_sigma, "filter_sigma", "SSIM")
        self.c1, self.c2 = (k1 * max_val) ** 2, (k2 * max_val) ** 2

    def _parts(self, x, y):
        """(luminance, contrast and structure) of each channel."""
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
        return light, contrast

    def construct(self, x, y):
        light, contrast = self._parts(x, y)
        of_channels = core.reduce_mean(core.mul(light, contrast), axes=[2, 3], keep_dims=False)
        return core.reduce_mean(of_channels, axes=[1], keep_dims=False)


class PSNR(Cell):
    """Peak signal to noise ratio."""

    def __init__(self, max_val=1.0):
        super().__init__()
        self.max_val = Validator.check_number(max_val, 0, Rel.GT, "max_val", "PSNR")

    def construct(self, x, y):
        mean = core.reduce_mean(core.squared_difference(x, y), axes=[1, 2, 3], keep_dims=False)
        ratio = core.div(basic.number(self.max_val**2, mean), mean)
        return basic.expand(core.mul(basic.log_base(ratio, 10), basic.number(10, mean)), -1)


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
        for axis in (rank - 2, rank - 1):
            size = image.shape[axis]
            begin = int((size - size * self.central_fraction) / 2)
            image = basic.part(image, axis, begin, size - begin)
        return image


__all__ = ["ImageGradients", "SSIM", "PSNR", "CentralCrop"]
