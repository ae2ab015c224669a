"""GridSample, RoiAlign and DeformConv with open and with fixed sizes equal torch, or a statement in NumPy. Runs in .venv-peers."""

import itertools

import numpy as np
import onnx
import pytest
import torch
from onnx import TensorProto, helper

import cairn


def run(folder, op, feeds, dims, weights=None, opset=22, **attributes):
    """The node over these inputs, declared with these dims (None: any), and constant weights."""
    weights = weights or {}
    infos = [helper.make_tensor_value_info(name, TensorProto.INT64 if x.dtype == np.int64 else TensorProto.FLOAT, dims(x))
             for name, x in feeds.items()]  # fmt: skip
    names = [*feeds, *weights]
    names.sort(key=lambda name: "xwgoribm".index(name[0]))
    graph = helper.make_graph(
        [helper.make_node(op, names, ["y"], **attributes)], "g", infos, [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)],
        [onnx.numpy_helper.from_array(x, name) for name, x in weights.items()])  # fmt: skip
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)]), folder / "m.onnx")
    return cairn.load(folder / "m.onnx").run(feeds)["y"]


fixed = pytest.mark.parametrize("dims", [lambda x: x.shape, lambda x: [None] * x.ndim], ids=["fixed", "open"])
random = np.random.default_rng(7)


def floats(*shape):
    return random.standard_normal(shape).astype(np.float32)


@fixed
@pytest.mark.parametrize("channels", [2, 19])
@pytest.mark.parametrize("volume", [False, True])
def test_grid_sample_in_all_modes_equals_torch(dims, channels, volume, tmp_path):
    x = floats(2, channels, *([4] if volume else []), 6, 5)
    grid = 1.3 * floats(2, *([3] if volume else []), 11, 7, x.ndim - 2)  # more points than a block
    modes = ("bilinear", "nearest") if volume else ("bilinear", "nearest", "bicubic")
    for mode, padding, corners in itertools.product(modes, ("zeros", "border", "reflection"), (False, True)):
        wanted = torch.nn.functional.grid_sample(torch.tensor(x), torch.tensor(grid), mode, padding, align_corners=corners)
        name = {"bilinear": "linear", "bicubic": "cubic"}.get(mode, mode)
        found = run(tmp_path, "GridSample", {"x": x, "grid": grid}, dims, mode=name, padding_mode=padding, align_corners=int(corners))
        np.testing.assert_allclose(found, wanted.numpy(), atol=2e-5, err_msg=f"{mode} {padding} {corners}")


def at(image, y, x):
    """The image [c, h, w] between its pixels, which are 0 outside."""
    top, left, total = int(np.floor(y)), int(np.floor(x)), 0.0
    for i, j in itertools.product((top, top + 1), (left, left + 1)):
        if 0 <= i < image.shape[1] and 0 <= j < image.shape[2]:
            total = total + image[:, i, j].astype(np.float64) * (1 - abs(y - i)) * (1 - abs(x - j))
    return total


def aligned(x, rois, index, height, width, samples, scale, half):
    y = np.zeros((len(rois), x.shape[1], height, width))
    for n, (roi, image) in enumerate(zip(rois * scale, x[index], strict=True)):
        left, top, right, bottom = (float(edge) for edge in roi - (0.5 if half else 0))
        sizes = [size if half else max(size, 1.0) for size in (bottom - top, right - left)]
        bins = sizes[0] / height, sizes[1] / width
        counts = [samples or int(np.ceil(size)) for size in bins]
        for i, j, k, m in itertools.product(range(height), range(width), range(counts[0]), range(counts[1])):
            row = top + (i + (k + 0.5) / counts[0]) * bins[0]
            column = left + (j + (m + 0.5) / counts[1]) * bins[1]
            if -1 <= row <= x.shape[2] and -1 <= column <= x.shape[3]:
                inside = np.clip(row, 0, x.shape[2] - 1), np.clip(column, 0, x.shape[3] - 1)
                y[n, :, i, j] += at(image, *inside) / (counts[0] * counts[1])
    return y


@fixed
@pytest.mark.parametrize(("samples", "half"), [(2, True), (0, True), (0, False), (3, False)])
def test_roi_align_equals_its_statement(dims, samples, half, tmp_path):
    x, index = floats(2, 19, 11, 13), np.array([1, 0, 0, 1], np.int64)
    rois = np.array([[1.1, 2.3, 15.2, 17.7], [-4, -3, 9, 4], [20, 18, 31, 30], [3, 3, 3.4, 3.3]], np.float32)
    found = run(tmp_path, "RoiAlign", {"x": x, "rois": rois, "index": index}, dims, output_height=3, output_width=4,
                sampling_ratio=samples, spatial_scale=0.5,
                coordinate_transformation_mode="half_pixel" if half else "output_half_pixel")  # fmt: skip
    np.testing.assert_allclose(found, aligned(x, rois, index, 3, 4, samples, 0.5, half), atol=2e-5)


def deformed(x, weight, offset, bias, mask, strides, pads, dilations, groups, sets):
    count, channels = x.shape[:2]
    outputs, _, height, width = weight.shape
    y = np.zeros((count, outputs, *offset.shape[2:])) + bias[:, None, None]
    for n, set_, i, j in np.ndindex(count, sets, height, width):
        tap = (set_ * height + i) * width + j
        part = slice(set_ * channels // sets, (set_ + 1) * channels // sets)
        for r, c in np.ndindex(*offset.shape[2:]):
            row = r * strides[0] - pads[0] + i * dilations[0] + offset[n, 2 * tap, r, c]
            column = c * strides[1] - pads[1] + j * dilations[1] + offset[n, 2 * tap + 1, r, c]
            pixel = np.zeros(channels)
            pixel[part] = at(x[n, part], row, column) * mask[n, tap, r, c]
            for k in range(outputs):
                group = k * groups // outputs * (channels // groups)
                y[n, k, r, c] += weight[k, :, i, j] @ pixel[group : group + channels // groups]
    return y


@fixed
@pytest.mark.parametrize(("groups", "sets"), [(1, 1), (2, 1), (1, 2), (2, 4)])
def test_deform_conv_equals_its_statement(dims, groups, sets, tmp_path):
    x, weight, bias = floats(2, 8, 7, 6), floats(4, 8 // groups, 3, 2), floats(4)
    offset, mask = 1.5 * floats(2, sets * 12, 4, 5), floats(2, sets * 6, 4, 5)
    steps = {"strides": [2, 1], "pads": [1, 0, 2, 1], "dilations": [1, 2]}
    channels_known = lambda x: x.shape if dims(x)[0] is not None else [None, x.shape[1], None, None]  # noqa: E731
    found = run(tmp_path, "DeformConv", {"x": x, "offset": offset, "mask": mask}, channels_known, {"weight": weight, "bias": bias},
                group=groups, offset_group=sets, **steps)  # fmt: skip
    wanted = deformed(x, weight, offset, bias, mask, steps["strides"], steps["pads"], steps["dilations"], groups, sets)
    np.testing.assert_allclose(found, wanted, atol=1e-4)
