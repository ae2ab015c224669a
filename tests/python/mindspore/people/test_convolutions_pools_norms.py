"""Convolutions, pools, norms, dropouts and resizing, as primitives and layers."""

import numpy as np
import pytest
import mindspore as ms
import mindspore.nn as nn
import mindspore.ops as ops
from mindspore import Tensor, Parameter, context
from mindspore.common.initializer import initializer
from mindspore.ops import operations as P
from mindspore.ops import composite as C
from mindspore.ops.operations import _grad_ops as G
from mindspore.ops.operations import nn_ops, image_ops

context.set_context(mode=context.GRAPH_MODE, device_target="CPU")


class NetConv2d(nn.Cell):

    def __init__(self):
        super().__init__()
        self.conv = P.Conv2D(out_channel=2, kernel_size=1, mode=1, pad_mode="valid", pad=0, stride=1, dilation=1, group=1)
        self.w = Parameter(initializer(Tensor(np.arange(2 * 3 * 1 * 1).reshape(2, 3, 1, 1).astype(np.float32)), [2, 3, 1, 1]), name="w")
        self.x = Parameter(initializer(Tensor(np.arange(1 * 3 * 3 * 3).reshape(1, 3, 3, 3).astype(np.float32)), [1, 3, 3, 3]), name="x")

    def construct(self):
        return self.conv(self.x, self.w)


@pytest.mark.parametrize("mode", [context.GRAPH_MODE, context.PYNATIVE_MODE])
def test_conv2d(mode):
    context.set_context(mode=mode)
    out = NetConv2d()()
    expect = np.array([[[[45, 48, 51], [54, 57, 60], [63, 66, 69]], [[126, 138, 150], [162, 174, 186], [198, 210, 222]]]], np.float32)
    np.testing.assert_allclose(out.asnumpy(), expect)
    context.set_context(mode=context.GRAPH_MODE)


@pytest.mark.parametrize(
    "pad_mode, stride, shape", [("valid", 1, (4, 4)), ("same", 1, (6, 6)), ("same", 2, (3, 3)), ("pad", 1, (6, 6)), ("pad", 3, (2, 2))]
)
def test_conv2d_layers(pad_mode, stride, shape):
    conv = nn.Conv2d(
        3, 4, 3, stride=stride, pad_mode=pad_mode, padding=1 if pad_mode == "pad" else 0, has_bias=True, weight_init="ones", bias_init="ones"
    )
    out = conv(Tensor(np.ones((2, 3, 6, 6), np.float32)))
    assert out.shape == (2, 4, *shape)
    assert out.asnumpy().max() == 28


def test_conv_gradients_by_weights():
    net = nn.Conv2d(1, 1, 2, pad_mode="valid", weight_init="ones")
    x = Tensor(np.arange(9).reshape(1, 1, 3, 3).astype(np.float32))
    grads = C.GradOperation(get_all=True, get_by_list=True)(net, net.trainable_params())(x)
    np.testing.assert_array_equal(grads[0][0].asnumpy()[0, 0], [[1, 2, 1], [2, 4, 2], [1, 2, 1]])
    np.testing.assert_array_equal(grads[1][0].asnumpy()[0, 0], [[8, 12], [20, 24]])


def test_depthwise_transpose_and_1d_3d():
    out = nn.Conv2d(4, 8, 3, group=4, pad_mode="same")(Tensor(np.ones((1, 4, 5, 5), np.float32)))
    assert out.shape == (1, 8, 5, 5)
    assert nn.Conv2dTranspose(3, 64, 4, has_bias=False, weight_init="normal", pad_mode="pad")(Tensor(np.ones((1, 3, 16, 50), np.float32))).shape == (
        1,
        64,
        19,
        53,
    )
    assert nn.Conv1d(120, 240, 4, has_bias=False)(Tensor(np.ones((1, 120, 640), np.float32))).shape == (1, 240, 640)
    assert nn.Conv1dTranspose(3, 64, 4, has_bias=False, pad_mode="pad")(Tensor(np.ones((1, 3, 50), np.float32))).shape == (1, 64, 53)
    assert nn.Conv3d(3, 32, (4, 3, 3))(Tensor(np.ones((2, 3, 10, 8, 8), np.float32))).shape == (2, 32, 10, 8, 8)
    assert nn.Conv3dTranspose(2, 3, (4, 6, 2), pad_mode="pad")(Tensor(np.ones((2, 2, 4, 5, 3), np.float32))).shape == (2, 3, 7, 10, 4)
    assert P.Conv2DTranspose(1, (2, 2))(Tensor(np.ones((1, 2, 3, 3), np.float32)), Tensor(np.ones((2, 1, 2, 2), np.float32)), (1, 1, 4, 4)).shape == (
        1,
        1,
        4,
        4,
    )


@pytest.mark.parametrize(
    "make, error",
    [
        (lambda: nn.Conv2d("3", 4, 3), TypeError),
        (lambda: nn.Conv2d(3, 4, 0), ValueError),
        (lambda: nn.Conv2d(3, 4, 3, stride=0), ValueError),
        (lambda: nn.Conv2d(3, 4, 3, pad_mode="x"), ValueError),
        (lambda: nn.Conv2d(3, 4, 3, padding=-1, pad_mode="pad"), ValueError),
        (lambda: nn.Conv2d(3, 4, 3, padding=(1, 1), pad_mode="pad"), ValueError),
        (lambda: nn.Conv2d(3, 4, 3, dilation=0), ValueError),
        (lambda: nn.Conv2d(3, 4, 3, group=0), ValueError),
        (lambda: nn.Conv2d(3, 4, 3, group=2), ValueError),
        (lambda: nn.Conv2d(3, 4, 3, data_format="NCDHW"), ValueError),
        (lambda: nn.Conv2d(3, 4, 3, has_bias=1), TypeError),
        (lambda: nn.Conv1d(3, 4, (3, 3)), (TypeError, ValueError)),
        (lambda: nn.Conv3d(3, 4, 3, group=2), ValueError),
        (lambda: nn.Conv2d(3, 0, 3), ValueError),
        (lambda: nn.Conv2d(3, 4, (3, 3, 3)), ValueError),
        (lambda: nn.MaxPool2d(0), ValueError),
        (lambda: nn.MaxPool2d(2, pad_mode="pad"), ValueError),
        (lambda: nn.AvgPool2d(2, stride=-1), ValueError),
        (lambda: nn.AvgPool2d("2"), TypeError),
        (lambda: nn.AvgPool1d(-1), ValueError),
        (lambda: nn.BatchNorm2d(0), ValueError),
        (lambda: nn.BatchNorm2d(3, momentum=-0.1), ValueError),
        (lambda: nn.BatchNorm2d(3, eps="a"), (TypeError, ValueError)),
        (lambda: nn.BatchNorm2d("3"), TypeError),
        (lambda: nn.LayerNorm(3), TypeError),
        (lambda: nn.GroupNorm(2, 3), ValueError),
        (lambda: nn.GroupNorm(-2, 4), ValueError),
        (lambda: nn.InstanceNorm2d(-1), ValueError),
        (lambda: nn.InstanceNorm2d(2.5), TypeError),
        (lambda: nn.LayerNorm((3,), begin_norm_axis="1"), TypeError),
        (lambda: nn.BatchNorm2d(3)(Tensor(np.ones((1, 3), np.float32))), ValueError),
        (lambda: nn.BatchNorm1d(3)(Tensor(np.ones((1, 3, 2, 2), np.float32))), ValueError),
        (lambda: nn.GroupNorm(2, 4)(Tensor(np.ones((1, 3, 2, 2), np.float32))), ValueError),
        (lambda: nn.InstanceNorm2d(3)(Tensor(np.ones((1, 3), np.float32))), ValueError),
        (lambda: nn.Conv2d(3, 4, 3)(Tensor(np.ones((1, 2, 5, 5), np.float32))), ValueError),
    ],
)
def test_layers_refuse(make, error):
    with pytest.raises(error):
        make()


@pytest.mark.parametrize(
    "op, expect",
    [
        (P.MaxPool(2, 2, "valid"), [[[[7, 9, 11], [19, 21, 23], [31, 33, 35]]]]),
        (P.MaxPool(3, 2, "same"), [[[[14, 16, 17], [26, 28, 29], [32, 34, 35]]]]),
        (P.AvgPool(2, 2, "valid"), [[[[3.5, 5.5, 7.5], [15.5, 17.5, 19.5], [27.5, 29.5, 31.5]]]]),
        (P.AvgPool(3, 2, "same"), [[[[7, 9, 10.5], [19, 21, 22.5], [28, 30, 31.5]]]]),
    ],
)
def test_pooling(op, expect):
    x = np.arange(36).reshape(1, 1, 6, 6).astype(np.float32)
    np.testing.assert_allclose(op(Tensor(x)).asnumpy(), expect)


def test_pool_gradients():
    x = np.array([[[[0, 1, 2, 3], [18, 19, 20, 21], [6, 7, 8, 9], [12, 13, 14, 15]]]], np.float32)
    op = P.MaxPool(2, 2)
    y = op(Tensor(x))
    dy = np.array([[[[1, 2], [3, 4]]]], np.float32)
    dx = G.MaxPoolGrad(kernel_size=2, strides=2, pad_mode="VALID")(Tensor(x), y, Tensor(dy))
    np.testing.assert_array_equal(dx.asnumpy()[0, 0], [[0, 0, 0, 0], [0, 1, 0, 2], [0, 0, 0, 0], [0, 3, 0, 4]])
    g = C.GradOperation(sens_param=True)(P.AvgPool(2, 2))(Tensor(x), Tensor(dy))
    np.testing.assert_array_equal(g.asnumpy()[0, 0], np.kron(dy[0, 0], np.full((2, 2), 0.25)))


def test_more_pools():
    x = np.arange(1 * 2 * 4 * 4 * 4).reshape(1, 2, 4, 4, 4).astype(np.float32)
    assert P.MaxPool3D(2, 2)(Tensor(x)).shape == (1, 2, 2, 2, 2)
    assert P.AvgPool3D(2, 2)(Tensor(x)).shape == (1, 2, 2, 2, 2)
    np.testing.assert_allclose(P.AdaptiveAvgPool2D((2, 2))(Tensor(x[0])).asnumpy(), x[0].reshape(2, 4, 2, 2, 2, 2).mean((3, 5)))
    y, mask = P.MaxPoolWithArgmax(2, 2)(Tensor(x[0]))
    assert y.shape == (2, 4, 2, 2) and mask.shape == (2, 4, 2, 2)
    assert nn.AdaptiveAvgPool1d(2)(Tensor(x[0, 0])).shape == (4, 4, 2)
    assert nn.AdaptiveMaxPool1d(2)(Tensor(x[0, 0])).shape == (4, 4, 2)
    assert nn.AdaptiveAvgPool3d((1, 2, 2))(Tensor(x)).shape == (1, 2, 1, 2, 2)
    assert nn.AdaptiveMaxPool2d((None, 2))(Tensor(x[0])).shape == (2, 4, 4, 2)
    assert nn.MaxPool1d(2, 2)(Tensor(x[0, 0])).shape == (4, 4, 2)
    assert nn.AvgPool1d(2, 2)(Tensor(x[0, 0])).shape == (4, 4, 2)
    out = ops.max_pool3d(Tensor(x), 2, 2)
    assert (out[0] if isinstance(out, tuple) else out).shape == (1, 2, 2, 2, 2)
    indices = Tensor(np.array([[[[5, 7], [13, 15]]]], np.int64))
    out = nn.MaxUnpool2d(2, 2)(Tensor(np.array([[[[6, 8], [14, 16]]]], np.float32)), indices)
    assert out.shape == (1, 1, 4, 4) and out.asnumpy()[0, 0, 3, 3] == 16


def test_batch_norm_train_and_eval():
    x = np.array([[[[1, 3, 3, 5], [2, 4, 6, 8], [3, 6, 7, 7], [4, 3, 8, 2]], [[5, 7, 6, 3], [3, 5, 6, 7], [9, 4, 2, 5], [7, 5, 8, 1]]]], np.float32)
    bn = nn.BatchNorm2d(
        2,
        gamma_init=Tensor(np.ones(2, np.float32)),
        beta_init=Tensor(np.zeros(2, np.float32)),
        moving_mean_init=Tensor(np.full(2, 0.1, np.float32)),
        moving_var_init=Tensor(np.full(2, 0.1, np.float32)),
    )
    bn.set_train()
    out = bn(Tensor(x)).asnumpy()
    mean, var = (x.mean((0, 2, 3), keepdims=True), x.var((0, 2, 3), keepdims=True))
    np.testing.assert_allclose(out, (x - mean) / np.sqrt(var + 1e-05), 0.001, 0.0001)
    np.testing.assert_allclose(bn.moving_mean.asnumpy(), 0.1 * 0.9 + 0.1 * mean.reshape(-1), 1e-05)
    bn.set_train(False)
    out = bn(Tensor(x)).asnumpy()
    m, v = (bn.moving_mean.asnumpy().reshape(1, 2, 1, 1), bn.moving_variance.asnumpy().reshape(1, 2, 1, 1))
    np.testing.assert_allclose(out, (x - m) / np.sqrt(v + 1e-05), 0.001, 0.0001)


def test_other_norms():
    x = np.random.RandomState(0).randn(2, 4, 3, 3).astype(np.float32)
    out = nn.GroupNorm(2, 4)(Tensor(x)).asnumpy()
    r = x.reshape(2, 2, -1)
    np.testing.assert_allclose(out, ((r - r.mean(2, keepdims=True)) / np.sqrt(r.var(2, keepdims=True) + 1e-05)).reshape(x.shape), 0.001, 0.0001)
    out = nn.LayerNorm((3, 3), begin_norm_axis=2, begin_params_axis=2)(Tensor(x)).asnumpy()
    np.testing.assert_allclose(out, (x - x.mean((2, 3), keepdims=True)) / np.sqrt(x.var((2, 3), keepdims=True) + 1e-07), 0.001, 0.0001)
    y, mean, var = P.LayerNorm(1, 1)(Tensor(x.reshape(2, 36)), Tensor(np.ones(36, np.float32)), Tensor(np.zeros(36, np.float32)))
    assert y.shape == (2, 36) and mean.shape == (2, 1)
    out = P.LRN(depth_radius=2)(Tensor(x))
    assert out.shape == x.shape
    for net in (nn.InstanceNorm1d(4), nn.InstanceNorm2d(4), nn.InstanceNorm3d(4)):
        assert [p.name for p in net.get_parameters()] == ["gamma", "beta"] or len(list(net.get_parameters())) >= 2
    np.testing.assert_allclose(P.L2Normalize(axis=1, epsilon=0.0001)(Tensor(x)).asnumpy(), x / np.sqrt((x**2).sum(1, keepdims=True)), 0.001)
    rn = ops.renorm(Tensor(x[0, 0]), 1, 0, 1.0)
    assert (np.abs(rn.asnumpy()).sum(1) < 1.001).all()


def test_dropouts():
    x = Tensor(np.ones((20, 16, 50), np.float32))
    for net in (nn.Dropout(0.5), nn.Dropout1d(p=0.5), nn.Dropout(keep_prob=0.8)):
        net.set_train(False)
        assert (net(x).asnumpy() == 1).all()
        net.set_train()
        out = net(x).asnumpy()
        assert 0.3 < (out != 0).mean() < 0.95
    out, mask = P.Dropout2D(keep_prob=0.5)(Tensor(np.ones((2, 1, 2, 3), np.float32)))
    assert out.shape == (2, 1, 2, 3) and mask.dtype == ms.bool_
    out, mask = P.Dropout3D(keep_prob=0.5)(Tensor(np.ones((2, 1, 2, 3, 3), np.float32)))
    assert out.shape == (2, 1, 2, 3, 3)
    for bad, error in ((0.0, ValueError), (1, TypeError), (1.5, ValueError), ("1", (TypeError, ValueError))):
        with pytest.raises(error):
            nn.Dropout(keep_prob=bad)


def test_resizes():
    x = np.array([[[[1, 2], [3, 4]]]], np.float32)
    np.testing.assert_allclose(P.ResizeBilinear((4, 4))(Tensor(x)).asnumpy()[0, 0, 0], [1, 1.5, 2, 2])
    np.testing.assert_allclose(P.ResizeNearestNeighbor((4, 4))(Tensor(x)).asnumpy()[0, 0, 0], [1, 1, 2, 2])
    np.testing.assert_allclose(nn.ResizeBilinear()(Tensor(x), size=(3, 3)).asnumpy().shape, (1, 1, 3, 3))
    np.testing.assert_allclose(nn.ResizeBilinear()(Tensor(x), scale_factor=2).shape, (1, 1, 4, 4))
    np.testing.assert_allclose(P.ResizeBilinear((2, 4), align_corners=True)(Tensor(x)).asnumpy()[0, 0, 0], [1, 4 / 3, 5 / 3, 2], 1e-05)
    out = ops.interpolate(
        Tensor(np.array([[[1, 2, 3], [4, 5, 6]]], np.float32)), sizes=(6,), mode="linear", coordinate_transformation_mode="align_corners"
    )
    np.testing.assert_allclose(out.asnumpy()[0, 0], [1, 1.4, 1.8, 2.2, 2.6, 3], 1e-05)
    np.testing.assert_allclose(
        P.CropAndResize()(
            Tensor(np.ones((1, 8, 8, 3), np.float32)), Tensor(np.array([[0, 0, 1, 1]], np.float32)), Tensor(np.array([0], np.int32)), (4, 4)
        ).shape,
        (1, 4, 4, 3),
    )
    with pytest.raises(ValueError):
        P.ResizeNearestNeighbor((1, 2, 3))
    with pytest.raises(ValueError):
        nn.ResizeBilinear()(Tensor(x), size=(2, 2), scale_factor=2)
    with pytest.raises(ValueError):
        nn.ResizeBilinear()(Tensor(x))
