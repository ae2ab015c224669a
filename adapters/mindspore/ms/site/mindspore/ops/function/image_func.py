"""Functions of images, grids, boxes and pools that are undone."""

import numpy as np
from cairn.ms import core
from cairn.ms.numerics import basic, images, reductions, sampling
from mindspore.ops import operations as P


def _many(value, count):
    return tuple(int(each) for each in np.broadcast_to(value, count))


def affine_grid(theta, output_size, align_corners=False):
    """Coordinates through affine maps."""
    return P.AffineGrid(align_corners)(theta, tuple(output_size))


def grid_sample(input_x, grid, interpolation_mode="bilinear", padding_mode="zeros", align_corners=False):
    """Images at the places of a grid."""
    kind = P.GridSampler2D if len(input_x.shape) == 4 else P.GridSampler3D
    return kind(interpolation_mode, padding_mode, align_corners)(input_x, grid)


def bounding_box_encode(anchor_box, groundtruth_box, means=(0.0, 0.0, 0.0, 0.0), stds=(1.0, 1.0, 1.0, 1.0)):
    """Boxes as differences from anchors."""
    return P.BoundingBoxEncode(means, stds)(anchor_box, groundtruth_box)


def bounding_box_decode(
    anchor_box, deltas, max_shape, means=(0.0, 0.0, 0.0, 0.0), stds=(1.0, 1.0, 1.0, 1.0), wh_ratio_clip=0.016
):
    """Boxes of differences from anchors."""
    return P.BoundingBoxDecode(max_shape, means, stds, wh_ratio_clip)(anchor_box, deltas)


def check_valid(bboxes, img_metas):
    """Whether boxes lie inside an image."""
    return P.CheckValid()(bboxes, img_metas)


def iou(anchor_boxes, gt_boxes, mode="iou"):
    """Overlaps of boxes."""
    return P.IOU(mode)(anchor_boxes, gt_boxes)


def col2im(input_x, output_size, kernel_size, dilation, padding_value, stride):
    """Columns added up to images."""
    return P.Col2Im(kernel_size, dilation, padding_value, stride)(input_x, output_size)


def fold(input, output_size, kernel_size, dilation=1, padding=0, stride=1):
    """Columns [n, c * window, places] added up to images."""
    size = output_size.asnumpy().tolist() if hasattr(output_size, "asnumpy") else output_size
    kernel, dilation, padding, stride = (_many(each, 2) for each in (kernel_size, dilation, padding, stride))
    n, c, places = input.shape
    columns = basic.reshape(input, (n, -1, places))
    return sampling.fold(columns, _many(size, 2), kernel, dilation, padding, stride)


def _unpool(rank):
    def function(x, indices, kernel_size, stride=None, padding=0, output_size=None):
        window = _many(kernel_size, rank)
        strides, pads = _many(window if stride is None else stride, rank), _many(padding, rank)
        lead = len(x.shape) == rank + 1
        x, indices = (basic.expand(each, 0) if lead else each for each in (x, indices))
        sizes = [(size - 1) * s - 2 * p + k for size, s, p, k in zip(x.shape[2:], strides, pads, window)]
        made = sampling.unpool(x, indices, list(output_size)[-rank:] if output_size else sizes)
        return basic.at(made, 0, 0) if lead else made

    function.__name__ = function.__qualname__ = f"max_unpool{rank}d"
    function.__doc__ = "Elements back at their places."
    return function


max_unpool1d, max_unpool2d, max_unpool3d = (_unpool(rank) for rank in (1, 2, 3))


def adaptive_max_pool3d(x, output_size, return_indices=False):
    """Largest of windows that cover a volume, and their places with return_indices."""
    made = P.AdaptiveMaxPool3D()(x, _many(output_size, 3))
    return made if return_indices else made[0]


def _power_pool(rank):
    def function(x, norm_type, kernel_size, stride=None, ceil_mode=False):
        window = _many(kernel_size, rank)
        strides = _many(window if stride is None else stride, rank)
        powers = core.pow(x, basic.number(norm_type, x))
        for axis, (k, s) in enumerate(zip(window, strides), len(x.shape) - rank):
            count = (x.shape[axis] - k) // s + 1
            parts = [basic.part(powers, axis, i, i + (count - 1) * s + 1, s) for i in range(k)]
            powers = parts[0]
            for each in parts[1:]:
                powers = core.add(powers, each)
        return core.pow(powers, basic.number(1.0 / norm_type, x))

    function.__name__ = function.__qualname__ = f"lp_pool{rank}d"
    function.__doc__ = "Norms of windows."
    return function


lp_pool1d, lp_pool2d = _power_pool(1), _power_pool(2)


def conv1d(input, weight, bias=None, stride=1, pad_mode="valid", padding=0, dilation=1, groups=1):
    """1-D convolution."""
    x, w = basic.expand(input, 2), basic.expand(weight, 2)
    pads = (0, 0, *_many(padding, 2)) if pad_mode == "pad" else (0, 0, 0, 0)
    out = images.conv(x, w, pad_mode, pads, (1, *_many(stride, 1)), (1, *_many(dilation, 1)), groups)
    out = basic.at(out, 2, 0)
    return out if bias is None else core.add(out, basic.reshape(bias, (1, -1, 1)))


def nms_with_mask(bboxes, iou_threshold=0.5):
    """Boxes in falling order of score, and which do not overlap a better one."""
    return P.NMSWithMask(iou_threshold)(bboxes)


def msort(input):
    """Rows in rising order."""
    return reductions.sort(input, 0)[0]


def deformable_conv2d(x, weight, offsets, kernel_size, strides, padding, bias=None, dilations=(1, 1, 1, 1), groups=1, deformable_groups=1,
                      modulated=True):  # fmt: skip
    """A convolution whose elements are moved by offsets."""
    for name, value in {"kernel_size": kernel_size, "strides": strides, "padding": padding, "dilations": dilations}.items():
        if not isinstance(value, tuple):
            raise TypeError(f"For 'deformable_conv2d', the type of '{name}' must be tuple, but got {type(value).__name__}.")
    moved = P.DeformableOffsets(strides, padding, kernel_size, dilations, "NCHW", deformable_groups, modulated)(x, offsets)
    out = P.Conv2D(weight.shape[0], kernel_size, 1, "valid", 0, (1, 1, *kernel_size), 1, groups)(moved, weight)
    return out if bias is None else P.BiasAdd()(out, bias)
