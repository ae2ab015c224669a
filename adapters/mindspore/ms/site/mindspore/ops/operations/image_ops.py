"""Primitives that resample images."""

import numpy as np
from cairn.ms import core
from cairn.ms.numerics import basic, images, spans
from mindspore._checkparam import Validator
from mindspore.ops.operations._form import REQUIRED, primitive, static, tensor


def _check(self):
    Validator.check_bool(self.align_corners, "align_corners", self.name)
    for each in self.size:
        Validator.check_positive_int(each, "size", self.name)
    if len(self.size) != 2:
        raise ValueError(f"For '{self.name}', the 'size' must be (height, width), but got {self.size}.")
    if self.align_corners and getattr(self, "half_pixel_centers", False):
        raise ValueError(f"For '{self.name}', align_corners and half_pixel_centers cannot both be True.")


def _resize(name, mode, **attributes):
    def compute(self, x):
        if len(tensor(x, name, "number").shape) != 4:
            raise ValueError(f"For '{name}', x must have 4 dimensions, but got shape {tuple(x.shape)}.")
        return images.resize(x, self.size, mode, self.align_corners, getattr(self, "half_pixel_centers", False))

    return primitive(
        name, compute, "NCHW images at another size.", _check, size=REQUIRED, align_corners=False, **attributes
    )


ResizeBilinear = _resize("ResizeBilinear", "bilinear", half_pixel_centers=False)
ResizeNearestNeighbor = _resize("ResizeNearestNeighbor", "nearest")


def _crop_and_resize(self, x, boxes, index, size):
    return images.crop_and_resize(
        x, boxes, index, static(size, "CropAndResize", "crop_size"), self.method, self.extrapolation_value
    )


CropAndResize = primitive(
    "CropAndResize", _crop_and_resize, "Parts of NHWC images at one size.", method="bilinear", extrapolation_value=0.0
)


def _roi_align(self, features, rois):
    """Mean of bilinear samples in each bin of a region; as many as there are pixels where their number is not given."""
    if self.sample_num > 0:
        return _aligned(self, features, rois, (self.sample_num, self.sample_num))
    made = []
    for i, (_, left, top, right, bottom) in enumerate(rois.asnumpy().astype(np.float32)):
        ends = ((bottom - top, self.pooled_height), (right - left, self.pooled_width))
        sizes = [((each + bool(self.roi_end_mode)) * self.spatial_scale, parts) for each, parts in ends]
        sizes = [(each if self.roi_end_mode else max(each, 1.0), parts) for each, parts in sizes]
        samples = tuple(max(1, int(np.ceil(each / parts))) for each, parts in sizes)
        made.append(_aligned(self, features, basic.part(rois, 0, i, i + 1), samples))
    return core.concat(made, axis=0) if len(made) > 1 else made[0]


def _aligned(self, features, rois, counts):
    n, channels, height, width = features.shape
    count = rois.shape[0]
    scale, shift = basic.number(self.spatial_scale, rois), basic.number(1.0 if self.roi_end_mode else 0.0, rois)
    batch = basic.cast(basic.at(rois, 1, 0), np.int32)
    lows = [core.mul(basic.at(rois, 1, i), scale) for i in (2, 1)]
    highs = [core.mul(core.add(basic.at(rois, 1, i), shift), scale) for i in (4, 3)]
    out = (self.pooled_height, self.pooled_width)
    places = []
    for low, high, parts, samples in zip(lows, highs, out, counts):
        size = core.sub(high, low) if self.roi_end_mode else core.maximum(core.sub(high, low), basic.number(1, rois))
        steps = ((np.arange(parts * samples) + 0.5) / (parts * samples)).astype(basic.nptype(rois))
        places.append(core.add(basic.expand(low, 1), core.mul(basic.expand(size, 1), steps)))
    image = images.channels_last(features)

    def line(at, size):
        inside = core.and_(core.greater_equal(at, np.float32(-1).astype(basic.nptype(at))), core.less_equal(at, np.float32(size).astype(basic.nptype(at))))
        at = core.clip(at, low=0.0, high=float(size - 1))
        floor = core.floor(at)
        first = basic.cast(floor, np.int32)
        second = core.minimum(core.add(first, np.int32(1)), np.int32(size - 1))
        return first, second, core.sub(at, floor), basic.cast(inside, basic.nptype(features))

    y0, y1, fy, in_y = line(places[0], height)
    x0, x1, fx, in_x = line(places[1], width)
    flat = basic.reshape(image, (n * height * width, channels))

    def taken(y, x):
        row = core.add(core.mul(basic.reshape(batch, (count, 1, 1)), np.int32(height)), basic.expand(y, 2))
        return core.gather(flat, core.add(core.mul(row, np.int32(width)), basic.expand(x, 1)), axis=0)

    fy, fx = basic.reshape(fy, (count, -1, 1, 1)), basic.reshape(fx, (count, 1, -1, 1))
    one = basic.number(1, features)

    def between(a, b, f):
        return core.add(core.mul(a, core.sub(one, f)), core.mul(b, f))

    y = between(between(taken(y0, x0), taken(y0, x1), fx), between(taken(y1, x0), taken(y1, x1), fx), fy)
    y = core.mul(y, core.mul(basic.reshape(in_y, (count, -1, 1, 1)), basic.reshape(in_x, (count, 1, -1, 1))))
    y = basic.reshape(y, (count, out[0], counts[0], out[1], counts[1], channels))
    return images.channels_first(core.reduce_mean(y, axes=[2, 4], keep_dims=False))


ROIAlign = primitive(
    "ROIAlign",
    _roi_align,
    "Pooled samples of regions.",
    lambda self: [Validator.check_is_int(getattr(self, each), each, "ROIAlign") for each in ("pooled_height", "pooled_width", "sample_num")],
    pooled_height=REQUIRED,
    pooled_width=REQUIRED,
    spatial_scale=REQUIRED,
    sample_num=2,
    roi_end_mode=1,
)


def _check_kernel(self):
    Validator.check_string(self.kernel_type, list(spans.KERNELS), "kernel_type", self.name)


def _scaled(self, x, size, scale, translation):
    if len(tensor(x, "ScaleAndTranslate", "number", "images").shape) != 4:
        raise ValueError(f"For 'ScaleAndTranslate', images must have 4 dimensions, but got shape {tuple(x.shape)}.")
    numbers = [tensor(each, self.name, "number", name).asnumpy() for each, name in ((size, "size"), (scale, "scale"), (translation, "translation"))]
    if any(each.shape != (2,) for each in numbers) or min(numbers[0].min(), numbers[1].min()) <= 0:
        raise ValueError("For 'ScaleAndTranslate', size and scale must be two positive numbers each, and translation two numbers.")
    size, scale, translation = (each.tolist() for each in numbers)
    return spans.scale_and_translate(basic.cast(x, np.float32), size, scale, translation, self.kernel_type, self.antialias)


ScaleAndTranslate = primitive(
    "ScaleAndTranslate", _scaled, "NHWC images scaled and moved.", _check_kernel, kernel_type="lanczos3", antialias=True
)
