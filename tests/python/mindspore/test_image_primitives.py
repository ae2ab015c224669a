"""Primitives of images against published examples."""

import numpy as np
import pytest
import mindspore as ms
from mindspore import Tensor, nn, ops
from mindspore.ops import operations as P
from mindspore.ops.operations.nn_ops import GridSampler2D, GridSampler3D, MaxPoolWithArgmaxV2, MaxUnpool2D
from mindspore.ops.operations.image_ops import RGBToHSV, HSVToRGB, AdjustHue, AdjustSaturation, AdjustContrastv2
import colorsys


def test_grid_sampler_identity():
    x = np.arange(32).reshape(2, 2, 2, 4).astype(np.float32)
    theta = Tensor(np.tile(np.array([[1.0, 0, 0], [0, 1, 0]], np.float32), (2, 1, 1)))
    for align in (True, False):
        grid = ops.affine_grid(theta, (2, 2, 2, 4), align)
        out = GridSampler2D("bilinear", "zeros", align)(Tensor(x), grid)
        assert np.allclose(out.asnumpy(), x, atol=1e-3)
        out = ops.grid_sample(Tensor(x), grid, "nearest", "border", align)
        assert np.allclose(out.asnumpy(), x)


def test_doc_example():
    input_x = Tensor(np.arange(16).reshape((2, 2, 2, 2)).astype(np.float32))
    grid = Tensor(np.arange(0.2, 1, 0.1).reshape((2, 2, 1, 2)).astype(np.float32))
    out = ops.grid_sample(input_x, grid, interpolation_mode="bilinear", padding_mode="zeros", align_corners=True)
    assert np.allclose(
        out.asnumpy(), [[[[1.9], [2.1999998]], [[5.9], [6.2]]], [[[10.5], [10.8]], [[14.5], [14.8]]]], atol=1e-4
    )
    with pytest.raises(ValueError):
        GridSampler2D("foo")
    with pytest.raises(TypeError):
        GridSampler2D(align_corners=1)
    with pytest.raises(ValueError):
        GridSampler2D()(Tensor(np.ones((2, 2, 2), np.float32)), grid)


def test_grid3d():
    x = Tensor(np.arange(32).reshape((2, 2, 2, 2, 2)).astype(np.float32))
    grid = Tensor(np.arange(-0.2, 1, 0.1).reshape((2, 2, 1, 1, 3)).astype(np.float32))
    out = GridSampler3D("bilinear", "zeros", True)(x, grid)
    assert np.allclose(out.asnumpy().ravel(), [3.3, 4.35, 11.3, 12.349999, 21.4, 22.449999, 29.4, 30.449999], atol=1e-3)


def test_unpool():
    x = Tensor(np.arange(20 * 16).reshape((1, 2, 10, 16)).astype(np.float32))
    out, arg = MaxPoolWithArgmaxV2(kernel_size=(2, 2), strides=(2, 2))(x)
    assert out.shape == (1, 2, 5, 8) and arg.dtype == ms.int64
    assert np.allclose(out.asnumpy(), x.asnumpy().reshape(1, 2, 5, 2, 8, 2).max((3, 5)))
    assert arg.asnumpy()[0, 0, 0, 0] == 17
    back = MaxUnpool2D(ksize=2)(out, arg).asnumpy()
    assert back.shape == x.shape and back[0, 0, 1, 1] == 17 and back[0, 0, 0, 0] == 0
    y = nn.MaxUnpool2d(kernel_size=1, stride=1, padding=0)(
        Tensor(np.array([[[[0, 1], [8, 9]]]]).astype(np.float32)), Tensor(np.array([[[[0, 1], [2, 3]]]]).astype(np.int64))
    )
    assert y.asnumpy().tolist() == [[[[0, 1], [8, 9]]]]


def test_colours():
    x = np.random.RandomState(0).rand(2, 4, 5, 3).astype(np.float32)
    hsv = RGBToHSV()(Tensor(x)).asnumpy()
    want = np.array([colorsys.rgb_to_hsv(*p) for p in x.reshape(-1, 3)]).reshape(x.shape)
    assert np.allclose(hsv, want, atol=1e-4)
    assert np.allclose(HSVToRGB()(Tensor(hsv)).asnumpy(), x, atol=1e-4)
    assert np.allclose(AdjustHue()(Tensor(x), Tensor(0.0, ms.float32)).asnumpy(), x, atol=1e-4)
    assert AdjustSaturation()(Tensor(x), Tensor(0.5, ms.float32)).shape == x.shape
    assert AdjustContrastv2()(Tensor(x), Tensor(2.0, ms.float32)).shape == x.shape


def test_upsample3d_fold():
    x = Tensor(np.arange(8).reshape(1, 1, 2, 2, 2).astype(np.float32))
    y = P.UpsampleNearest3D(output_size=[4, 4, 4])(x)
    assert np.allclose(y.asnumpy(), x.asnumpy().repeat(2, 2).repeat(2, 3).repeat(2, 4))
    y = P.UpsampleTrilinear3D(output_size=[3, 3, 3], align_corners=True)(x)
    assert np.isclose(y.asnumpy()[0, 0, 1, 1, 1], 3.5)
    col = Tensor(np.ones((1, 4, 4, 9), np.float32))
    out = ops.col2im(col, Tensor([4, 4], ms.int32), [2, 2], [1, 1], [0, 0], [1, 1])
    assert out.shape == (1, 4, 4, 4) and out.asnumpy()[0, 0, 1, 1] == 4


def test_boxes_and_dilation():
    boxes = Tensor(np.array([[1, 2, 3, 4], [1, 3, 3, 4], [1, 3, 4, 4], [1, 1, 4, 4], [1, 1, 3, 4]]).astype(np.float32))
    scores = Tensor(np.array([0.4, 0.5, 0.72, 0.9, 0.45]).astype(np.float32))
    out = P.NonMaxSuppressionV3()(boxes, scores, Tensor(5, ms.int32), Tensor(0.5, ms.float32), Tensor(0.0, ms.float32))
    assert out.asnumpy().tolist() == [3, 2, 0]
    x = Tensor(np.ones([10, 5, 12, 12]), ms.float32)
    f = Tensor(np.ones([5, 3, 2]), ms.float32)
    assert P.Dilation2D(stride=1, dilation=1, pad_mode="VALID")(x, f).shape == (10, 5, 10, 11)
    g = P.ExtractGlimpse(centered=False, normalized=False, uniform_noise=False, noise="uniform")
    out = g(
        Tensor([[[[0.0], [1.0], [2.0]], [[3.0], [4.0], [5.0]], [[6.0], [7.0], [8.0]]]], ms.float32),
        Tensor((2, 2), ms.int32),
        Tensor([[1, 1]], ms.float32),
    )
    assert out.asnumpy().ravel().tolist() == [4, 5, 7, 8]


def test_regions_beyond_the_image_count_as_zeros():
    image = ms.Tensor(np.arange(16, dtype=np.float32).reshape(1, 1, 4, 4))
    region = ms.Tensor([[0, 0.0, 0.0, 8.0, 8.0]], ms.float32)
    made = P.ROIAlign(2, 2, 1.0, -1, 0)(image, region).asnumpy()[0, 0]  # 4 x 4 samples at the middles of pixels
    at = np.minimum(np.arange(4) + 0.5, 3)
    assert made[0, 0] == pytest.approx(np.mean(4 * at[:, None] + at)) and made[1].tolist() == [0, 0] and made[0, 1] == 0


def test_numbers_beside_tensors_of_their_own_type():
    mask = ms.Tensor([True, False])
    assert ms.ops.select(mask, ms.Tensor([4, 5], ms.int32), 2).asnumpy().tolist() == [4, 2]
    for x, number in ((ms.Tensor([4, 5], ms.int32), 2.0), (ms.Tensor([4, 5], ms.float32), 2)):
        with pytest.raises(TypeError):
            ms.ops.select(mask, x, number)
