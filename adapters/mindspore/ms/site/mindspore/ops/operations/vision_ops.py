"""Primitives of images at computed places, colours, boxes, and pools that are undone."""

import numpy as np
from cairn.ms import core
from cairn.ms.numerics import basic, images, sampling
from mindspore.ops.operations._form import REQUIRED, host, primitive, static, tensor


def _size(value, name):
    return tuple(int(each) for each in np.atleast_1d(static(value, name, "size")))


def _check_sampling(self):
    if self.interpolation_mode not in ("bilinear", "nearest"):
        raise ValueError(
            f"For '{self.name}', 'interpolation_mode' must be bilinear or nearest, but got {self.interpolation_mode}."
        )
    if self.padding_mode not in ("zeros", "border", "reflection"):
        raise ValueError(
            f"For '{self.name}', 'padding_mode' must be zeros, border or reflection, but got {self.padding_mode}."
        )
    if not isinstance(self.align_corners, bool):
        raise TypeError(f"For '{self.name}', 'align_corners' must be bool, but got {type(self.align_corners).__name__}.")


def _grid_sampler(name, rank):
    def compute(self, x, grid):
        if len(tensor(x, name, "float").shape) != rank or len(tensor(grid, name, "float").shape) != rank:
            raise ValueError(f"For '{name}', x and grid must have {rank} dimensions, but got {x.shape} and {grid.shape}.")
        return sampling.grid_sample(x, grid, self.interpolation_mode, self.padding_mode, self.align_corners)

    return primitive(name, compute, "Images at the places of a grid.", _check_sampling, interpolation_mode="bilinear",
                     padding_mode="zeros", align_corners=False)  # fmt: skip


GridSampler2D, GridSampler3D = _grid_sampler("GridSampler2D", 4), _grid_sampler("GridSampler3D", 5)
AffineGrid = primitive(
    "AffineGrid", lambda self, theta, size: sampling.affine_grid(theta, _size(size, "AffineGrid"), self.align_corners),
    "Coordinates through affine maps.", align_corners=False,
)  # fmt: skip
RGBToHSV = primitive(
    "RGBToHSV", lambda self, x: sampling.rgb_to_hsv(tensor(x, "RGBToHSV", "float")), "Hue, saturation, value."
)
HSVToRGB = primitive("HSVToRGB", lambda self, x: sampling.hsv_to_rgb(tensor(x, "HSVToRGB", "float")), "Red, green, blue.")
AdjustHue = primitive(
    "AdjustHue", lambda self, x, delta: sampling.adjust_hue(tensor(x, "AdjustHue", "float"), delta), "Hue turned."
)
AdjustSaturation = primitive(
    "AdjustSaturation", lambda self, x, scale: sampling.adjust_saturation(tensor(x, "AdjustSaturation", "float"), scale), "Saturation scaled."
)  # fmt: skip


def _contrast(self, x, factor):
    mean = core.reduce_mean(tensor(x, self.name, "float"), axes=[len(x.shape) - 3, len(x.shape) - 2], keep_dims=True)
    return core.add(core.mul(core.sub(x, mean), basic.cast(factor, basic.nptype(x))), mean)


AdjustContrastv2 = primitive("AdjustContrastv2", _contrast, "Away from the mean of each channel.")
UpsampleNearest3D = primitive(
    "UpsampleNearest3D", lambda self, x: sampling.resize_nearest(x, _sizes_of(self, x), self.scales or None), "Volumes at another size.",
    output_size=None, scales=None,
)  # fmt: skip
UpsampleTrilinear3D = primitive(
    "UpsampleTrilinear3D",
    lambda self, x: sampling.resize_linear(x, _sizes_of(self, x), "align_corners" if self.align_corners else "half_pixel", self.scales or None),
    "Volumes at another size.", output_size=None, scales=None, align_corners=False,
)  # fmt: skip


def _sizes_of(self, x):
    if self.output_size:
        return list(self.output_size)
    return [int(np.floor(size * scale)) for size, scale in zip(x.shape[2:], self.scales)]


def _check_transformation(self):
    if self.coordinate_transformation_mode not in ("align_corners", "half_pixel", "asymmetric"):
        raise ValueError(f"For '{self.name}', unknown coordinate_transformation_mode {self.coordinate_transformation_mode}.")


ResizeLinear1D = primitive(
    "ResizeLinear1D", lambda self, x, size: sampling.resize_linear(x, _size(size, "ResizeLinear1D"), self.coordinate_transformation_mode),
    "Rows at another length.", _check_transformation, coordinate_transformation_mode="align_corners",
)  # fmt: skip


def _resize_area(self, x, size):
    """Means of NHWC pixels under each new pixel."""
    for axis, out in zip((1, 2), np.asarray(size).reshape(-1)):
        have = x.shape[axis]
        scale = (have - 1) / (out - 1) if self.align_corners and out > 1 else have / out
        weights = np.zeros((out, have))
        for i in range(out):
            low, high = i * scale, (i + 1) * scale
            for j in range(int(low), min(int(np.ceil(high)), have)):
                weights[i, j] = max(min(high, j + 1) - max(low, j), 0)
        weights /= weights.sum(1, keepdims=True)
        x = np.moveaxis(np.tensordot(x, weights, (axis, 1)), -1, axis)
    return x.astype(np.float32)


ResizeArea = host("ResizeArea", _resize_area, "Means of areas.", align_corners=False)


def _kept(boxes, scores, overlap, limit, least, most):
    order = [i for i in np.argsort(-scores, kind="stable") if scores[i] > least]
    chosen = []
    for i in order:
        if len(chosen) < most and all(overlap(i, j) <= limit for j in chosen):
            chosen.append(i)
    return np.array(chosen, np.int32)


def _iou(boxes):
    low, high = np.minimum(boxes[:, :2], boxes[:, 2:]), np.maximum(boxes[:, :2], boxes[:, 2:])
    area = (high - low).prod(1)

    def overlap(i, j):
        common = np.clip(np.minimum(high[i], high[j]) - np.maximum(low[i], low[j]), 0, None).prod()
        return common / max(area[i] + area[j] - common, 1e-12)

    return overlap


NonMaxSuppressionV3 = host(
    "NonMaxSuppressionV3",
    lambda self, boxes, scores, most, iou, least: _kept(boxes, scores, _iou(boxes), float(iou), float(least), int(most)),
    "Boxes in falling order of score that do not overlap a better one.",
)
NonMaxSuppressionWithOverlaps = host(
    "NonMaxSuppressionWithOverlaps",
    lambda self, overlaps, scores, most, limit, least: _kept(
        None, scores, lambda i, j: overlaps[i, j], float(limit), float(least), int(most)
    ),
    "The same by given overlaps.",
)


def _combined(self, boxes, scores, per_class, total, iou, least):
    most, all_of, iou, least = (
        np.asarray(each.asnumpy() if hasattr(each, "asnumpy") else each) for each in (per_class, total, iou, least)
    )
    return core.combined_non_max_suppression(
        boxes, scores, most.astype(np.int32), all_of.astype(np.int32), iou.astype(np.float32), least.astype(np.float32),
        pad_per_class=self.pad_per_class, clip_boxes=self.clip_boxes,
    )  # fmt: skip


CombinedNonMaxSuppression = primitive(
    "CombinedNonMaxSuppression", _combined, "Best boxes of all classes.", pad_per_class=False, clip_boxes=True
)


def _dilation(self, x, kernel):
    strides, dilations = (
        list(np.broadcast_to(each, 2)) if np.ndim(each) < 1 or len(each) < 4 else list(each[2:])
        for each in (self.stride, self.dilation)
    )
    out = core.dilation2d(images.channels_last(x), core.transpose(kernel, permutation=[1, 2, 0]), strides=[int(s) for s in strides],
                          dilations=[int(d) for d in dilations], padding=self.pad_mode.lower())  # fmt: skip
    return images.channels_first(out)


Dilation2D = primitive(
    "Dilation2D", _dilation, "Largest sums of pixels and kernel.", stride=REQUIRED, dilation=REQUIRED, pad_mode="SAME", data_format="NCHW"
)  # fmt: skip


def _three(value, count):
    return [int(each) for each in np.broadcast_to(value, count)]


def _max_with_places(name, count):
    def compute(self, x):
        window = _three(self.kernel_size if count == 2 else self.ksize, count)
        strides = _three(window if self.strides is None else self.strides, count)
        pads, dilations = _three(self.pads, count), _three(self.dilation, count)
        sizes = []
        for size, k, s, p, d in zip(x.shape[2:], window, strides, pads, dilations):
            free = size + 2 * p - d * (k - 1) - 1
            sizes.append((free + s - 1 if self.ceil_mode else free) // s + 1)
            if self.ceil_mode and (sizes[-1] - 1) * s >= size + p:
                sizes[-1] -= 1
        values, places = sampling.max_places(x, window, strides, pads, dilations, sizes)
        return values, basic.cast(places, basic.as_np(self.argmax_type))

    first = {"kernel_size": REQUIRED} if count == 2 else {"ksize": REQUIRED}
    last = {
        "strides": None if count == 2 else REQUIRED,
        "pads": 0 if count == 2 else REQUIRED,
        "dilation": 1,
        "ceil_mode": False,
    }
    if count == 3:
        last["data_format"] = "NCDHW"
    return primitive(name, compute, "Largest elements and their places.", **first, **last, argmax_type=np.int64)


MaxPoolWithArgmaxV2 = _max_with_places("MaxPoolWithArgmaxV2", 2)
MaxPool3DWithArgmax = _max_with_places("MaxPool3DWithArgmax", 3)


def _unpool(name, count):
    def compute(self, x, places):
        window = _three(self.ksize if np.ndim(self.ksize) == 0 or len(self.ksize) == count else self.ksize[2:], count)
        strides = (
            window
            if self.strides in (0, None)
            else _three(
                self.strides if np.ndim(self.strides) == 0 or len(self.strides) == count else self.strides[2:], count
            )
        )
        strides = [s or w for s, w in zip(strides, window)]
        pads = _three(self.pads if np.ndim(self.pads) == 0 or len(self.pads) == count else self.pads[2:], count)
        sizes = [(size - 1) * s - 2 * p + k for size, s, p, k in zip(x.shape[2:], strides, pads, window)]
        if self.output_shape:
            sizes = list(self.output_shape)[-count:]
        return sampling.unpool(x, places, sizes)

    return primitive(name, compute, "Elements back at their places.", ksize=REQUIRED, strides=0, pads=0, output_shape=(),
                     data_format="NCHW" if count == 2 else "NCDHW")  # fmt: skip


MaxUnpool2D, MaxUnpool3D = _unpool("MaxUnpool2D", 2), _unpool("MaxUnpool3D", 3)


def _col2im(self, x, size):
    kernel, dilation, padding, stride = (
        _three(each, 2) for each in (self.kernel_size, self.dilation, self.padding, self.stride)
    )
    n, c, window, places = x.shape
    return sampling.fold(basic.reshape(x, (n, c * window, places)), _size(size, "Col2Im"), kernel, dilation, padding, stride)


Col2Im = primitive("Col2Im", _col2im, "Columns added up to images.", kernel_size=REQUIRED, dilation=1, padding=0, stride=1)


def _volume_patches(self, x):
    window, strides = (
        list(each[2:]) if np.ndim(each) and len(each) == 5 else _three(each, 3) for each in (self.kernel_size, self.strides)
    )
    n, c, *sizes = x.shape
    pads = [(0, 0)] * 3
    if self.padding.lower() == "same":
        need = [max((-(-s // t) - 1) * t + k - s, 0) for s, t, k in zip(sizes, strides, window)]
        pads = [(each // 2, each - each // 2) for each in need]
    x = core.pad(x, basic.ints([(0, 0), (0, 0), *pads]))
    out = [(s - k) // t + 1 for s, k, t in zip(x.shape[2:], window, strides)]
    parts = []
    for place in np.ndindex(*window):
        each = x
        for axis, (begin, count, step) in enumerate(zip(place, out, strides), 2):
            each = basic.part(each, axis, begin, begin + (count - 1) * step + 1, step)
        parts.append(each)
    return basic.reshape(basic.stack(parts, 1), (n, len(parts) * c, *out))


ExtractVolumePatches = primitive("ExtractVolumePatches", _volume_patches, "Windows of volumes as channels.", kernel_size=REQUIRED,
                                 strides=REQUIRED, padding=REQUIRED)  # fmt: skip


def _glimpse(self, x, size, offsets):
    """Parts of NHWC images around places."""
    n, height, width, channels = x.shape
    rows, columns = (int(each) for each in np.asarray(size).reshape(-1))
    out = np.zeros((n, rows, columns, channels), np.float32)
    if self.uniform_noise and self.noise == "uniform":
        out = np.random.uniform(x.min(), x.max(), out.shape).astype(np.float32)
    for i, (y, z) in enumerate(offsets):
        if self.normalized:
            y, z = ((y + 1) * height / 2, (z + 1) * width / 2) if self.centered else (y * height, z * width)
        if self.centered:
            y, z = (
                (y - rows / 2, z - columns / 2) if self.normalized else (y + (height - rows) / 2, z + (width - columns) / 2)
            )
        y, z = int(np.floor(y)), int(np.floor(z))
        a, b = max(y, 0), min(y + rows, height)
        c, d = max(z, 0), min(z + columns, width)
        if a < b and c < d:
            out[i, a - y : b - y, c - z : d - z] = x[i, a:b, c:d]
    return out


ExtractGlimpse = host("ExtractGlimpse", _glimpse, "Parts of images around places.", centered=True, normalized=True,
                      uniform_noise=True, noise="uniform")  # fmt: skip
