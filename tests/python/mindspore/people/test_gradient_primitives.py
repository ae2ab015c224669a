"""Primitives of mindspore.ops.operations._grad_ops, against arithmetic and against slopes by differences."""
import numpy as np
import pytest
import mindspore as ms
import mindspore.nn as nn
from mindspore import Tensor, context
from mindspore.ops import composite as C
from mindspore.ops import operations as P
from mindspore.ops.operations import _grad_ops as G
from mindspore.ops.operations import nn_ops as NN
from mindspore.ops.operations.math_ops import Cdist, Median

context.set_context(mode=context.GRAPH_MODE, device_target='CPU')
rs = np.random.RandomState(5)


class Net(nn.Cell):
    def __init__(self, op, *constants):
        super().__init__()
        self.op = op
        self.constants = constants

    def construct(self, *inputs):
        return self.op(*inputs, *self.constants)


def run(op, *inputs, constants=()):
    return Net(op, *constants)(*[Tensor(x) if isinstance(x, np.ndarray) else x for x in inputs])


def slope(f, x, dy, eps=1e-2):
    """The gradient of sum(f(x) * dy) by x, by central differences."""
    made = np.zeros(x.shape)
    for i in np.ndindex(*x.shape):
        step = np.zeros(x.shape, np.float32)
        step[i] = eps
        made[i] = ((f(x + step).astype(np.float64) - f(x - step)) * dy).sum() / (2 * eps)
    return made


def of(op, *more):
    def f(x):
        out = run(op, x.astype(np.float32), *more)
        return (out[0] if isinstance(out, tuple) else out).asnumpy()
    return f


@pytest.mark.level0
@pytest.mark.platform_x86_cpu
@pytest.mark.env_onecard
@pytest.mark.parametrize("shape", [(2, 3), (2, 3, 4, 4), (2, 3, 4, 4, 2)])
def test_bias_add_grad(shape):
    out = run(G.BiasAddGrad(), np.ones(shape, np.float32))
    np.testing.assert_array_equal(out.asnumpy(), np.full(3, np.prod(shape) / 3, np.float32))


def test_slice_grad():
    x = np.arange(18).reshape(3, 2, 3).astype(np.float32)
    dy = np.array([[[3., 1., 2.]], [[4., 1., 4.]]], np.float32)
    out = run(G.SliceGrad(), dy, x, constants=((0, 1, 0), (2, 1, 3)))
    expect = np.zeros_like(x)
    expect[0:2, 1:2, 0:3] = dy
    np.testing.assert_array_equal(out.asnumpy(), expect)


def test_strided_slice_grad():
    dy = np.ones((1, 2), np.float32)
    out = run(G.StridedSliceGrad(), dy, constants=((3, 4), (1, 0), (2, 4), (1, 2)))
    expect = np.zeros((3, 4), np.float32)
    expect[1:2, 0:4:2] = 1
    np.testing.assert_array_equal(out.asnumpy(), expect)


def test_gather_d_grad():
    index = np.array([[0, 1, 1, 0, 0], [1, 0, 0, 1, 1]], np.int32)
    grad = rs.rand(2, 5).astype(np.float32)
    out = run(G.GatherDGrad(0, (2, 5)), index, grad).asnumpy()
    expect = np.zeros((2, 5), np.float32)
    for i in range(2):
        for j in range(5):
            expect[index[i, j], j] += grad[i, j]
    np.testing.assert_allclose(out, expect, 1e-6)


def test_gather_d_grad_v2():
    index = np.array([[0, 0], [1, 0]], np.int64)
    x, grad = rs.rand(2, 2).astype(np.float32), rs.rand(2, 2).astype(np.float32)
    out = G.GatherDGradV2()(Tensor(x), 1, Tensor(index), Tensor(grad)).asnumpy()
    expect = np.array([[grad[0].sum(), 0], [grad[1, 1], grad[1, 0]]], np.float32)
    np.testing.assert_allclose(out, expect, 1e-6)


@pytest.mark.parametrize("training", [True, False])
def test_batch_norm_grad(training):
    x, dy = rs.randn(4, 3, 2, 2).astype(np.float32), rs.randn(4, 3, 2, 2).astype(np.float32)
    scale = rs.rand(3).astype(np.float32) + 0.5
    mean, var = (x.mean((0, 2, 3)), x.var((0, 2, 3))) if training else (rs.randn(3).astype(np.float32), rs.rand(3).astype(np.float32) + 0.5)
    dx, dscale, dbias = run(G.BatchNormGrad(training, 1e-5), dy, x, scale, mean, var, var)
    along = lambda v: v.reshape(1, 3, 1, 1)
    inv = 1 / np.sqrt(along(var) + 1e-5)
    xhat = (x - along(mean)) * inv
    g = dy * along(scale)
    expect = g * inv
    if training:
        expect = inv * (g - g.mean((0, 2, 3), keepdims=True) - xhat * (g * xhat).mean((0, 2, 3), keepdims=True))
    np.testing.assert_allclose(dx.asnumpy(), expect, 1e-3, 1e-4)
    np.testing.assert_allclose(dscale.asnumpy(), (dy * xhat).sum((0, 2, 3)), 1e-3, 1e-4)
    np.testing.assert_allclose(dbias.asnumpy(), dy.sum((0, 2, 3)), 1e-3, 1e-4)


def layer_norm_grad(x, dy, gamma, eps=1e-7):
    mean, var = x.mean(1, keepdims=True), x.var(1, keepdims=True)
    inv = 1 / np.sqrt(var + eps)
    xhat = (x - mean) * inv
    g = dy * gamma
    dx = inv * (g - g.mean(1, keepdims=True) - xhat * (g * xhat).mean(1, keepdims=True))
    return dx, (dy * xhat).sum(0), dy.sum(0), mean, var


def test_layer_norm_grad():
    x, dy, gamma = rs.randn(3, 5).astype(np.float32), rs.randn(3, 5).astype(np.float32), rs.randn(5).astype(np.float32)
    dx, dg, db, mean, var = layer_norm_grad(x, dy, gamma)
    out = run(G.LayerNormGrad(1, 1), x, dy, var, mean, gamma)
    for a, b in zip(out, (dx, dg, db)):
        np.testing.assert_allclose(a.asnumpy(), b, 1e-3, 1e-4)


def test_layer_norm_grad_grad():
    x, dy, gamma = rs.randn(2, 4), rs.randn(2, 4), rs.randn(4)
    seeds = rs.randn(2, 4), rs.randn(4), rs.randn(4)
    *_, mean, var = layer_norm_grad(x, dy, gamma)
    f32 = [a.astype(np.float32) for a in (x, dy, var, mean, gamma, *seeds)]
    out = run(G.LayerNormGradGrad(1, 1), *f32)

    def total(x, dy, gamma):
        return sum((a * b).sum() for a, b in zip(layer_norm_grad(x, dy, gamma)[:3], seeds))

    for k, got in enumerate(out):
        given = [x, dy, gamma]
        expect = np.zeros_like(given[k])
        for i in np.ndindex(*expect.shape):
            ends = []
            for sign in (1, -1):
                moved = [v.copy() for v in given]
                moved[k][i] += sign * 1e-5
                ends.append(total(*moved))
            expect[i] = (ends[0] - ends[1]) / 2e-5
        np.testing.assert_allclose(got.asnumpy(), expect, 2e-2, 2e-3)


def test_relu_grad_v2():
    out = run(G.ReluGradV2(), np.array([1., 2., 3.], np.float32), np.array([1, 0, 1], np.uint8))
    np.testing.assert_array_equal(out.asnumpy(), [1, 0, 3])


def test_max_pool_grad_grad():
    x = rs.permutation(16).reshape(1, 1, 4, 4).astype(np.float32)
    y = P.MaxPool(2, 2)(Tensor(x))
    seed = rs.rand(1, 1, 4, 4).astype(np.float32)
    out = G.MaxPoolGradGrad(kernel_size=2, strides=2)(Tensor(x), y, Tensor(seed)).asnumpy()
    for i in range(2):
        for j in range(2):
            window = x[0, 0, 2 * i:2 * i + 2, 2 * j:2 * j + 2].ravel()
            assert out[0, 0, i, j] == seed[0, 0, 2 * i:2 * i + 2, 2 * j:2 * j + 2].ravel()[window.argmax()]


def test_max_pool_grad_with_argmax():
    x = rs.permutation(16).reshape(1, 1, 4, 4).astype(np.float32)
    y, places = P.MaxPoolWithArgmax(kernel_size=2, strides=2)(Tensor(x))
    dy = rs.rand(1, 1, 2, 2).astype(np.float32)
    out = G.MaxPoolGradWithArgmax(kernel_size=2, strides=2)(Tensor(x), Tensor(dy), places).asnumpy()
    assert np.isclose(out.sum(), dy.sum()) and (out != 0).sum() == 4


def test_max_pool3d_grad():
    x = rs.permutation(64).reshape(1, 1, 4, 4, 4).astype(np.float32)
    op = P.MaxPool3D(kernel_size=2, strides=2, pad_mode="VALID")
    dy = rs.rand(1, 1, 2, 2, 2).astype(np.float32)
    out = G.MaxPool3DGrad(kernel_size=2, strides=2, pad_mode="VALID")(Tensor(x), op(Tensor(x)), Tensor(dy)).asnumpy()
    np.testing.assert_allclose(out, slope(of(op), x, dy), 1e-2, 1e-3)


def test_avg_pool3d_grad():
    dy = rs.rand(1, 1, 2, 2, 2).astype(np.float32)
    out = G.AvgPool3DGrad(kernel_size=2, strides=2, pad_mode="valid")((1, 1, 4, 4, 4), Tensor(dy)).asnumpy()
    np.testing.assert_allclose(out, dy.repeat(2, 2).repeat(2, 3).repeat(2, 4) / 8, 1e-5)


@pytest.mark.parametrize("size", [1, 2])
def test_adaptive_avg_pool2d_grad(size):
    dy = rs.rand(1, 2, size, size).astype(np.float32)
    out = G.AdaptiveAvgPool2DGrad()(Tensor(dy), Tensor(np.array([1, 2, 4, 4]), ms.int64)).asnumpy()
    k = 4 // size
    np.testing.assert_allclose(out, dy.repeat(k, 2).repeat(k, 3) / k ** 2, 1e-5)


def test_nll_loss_grad():
    x = rs.randn(2, 3).astype(np.float32)
    target, weight = np.array([0, 1], np.int32), np.array([0.45, -0.32, 1.21], np.float32)
    total = weight[target].sum()
    out = run(G.NLLLossGrad(reduction="mean"), x, np.array(0.7, np.float32), target, weight, np.array(total, np.float32)).asnumpy()
    expect = np.zeros((2, 3))
    expect[[0, 1], target] = -0.7 * weight[target] / total
    np.testing.assert_allclose(out, expect, 1e-4, 1e-6)


def test_nll_loss_grad_none():
    x = rs.randn(2, 3).astype(np.float32)
    target, weight = np.array([2, 1], np.int32), np.ones(3, np.float32)
    out = run(G.NLLLossGrad(reduction="none"), x, np.array([3., -2.], np.float32), target, weight, np.array(0., np.float32)).asnumpy()
    np.testing.assert_allclose(out, [[0, 0, -3], [0, 2, 0]], 1e-5)


def test_masked_select_grad():
    x, mask = rs.rand(2, 3).astype(np.float32), np.array([[True, False, True], [False, True, False]])
    out = G.MaskedSelectGrad()(Tensor(x), Tensor(mask), Tensor(np.array([1., 2., 3.], np.float32))).asnumpy()
    np.testing.assert_array_equal(out, [[1, 0, 2], [0, 3, 0]])


def test_cdist_grad():
    x, y, dy = (rs.rand(*s).astype(np.float32) for s in ((2, 3), (4, 3), (2, 4)))
    op = Cdist(p=2.0)
    out = G.CdistGrad(p=2.0)(Tensor(dy), Tensor(x), Tensor(y), op(Tensor(x), Tensor(y))).asnumpy()
    d = x[:, None] - y[None]
    expect = (dy[..., None] * d / np.sqrt((d ** 2).sum(-1, keepdims=True))).sum(1)
    np.testing.assert_allclose(out, expect, 1e-3, 1e-4)


def test_median_grad():
    x = rs.permutation(15).reshape(3, 5).astype(np.float32)
    y, places = Median(global_median=False, axis=1, keep_dims=False)(Tensor(x))
    out = G.MedianGrad(False, 1, False)(Tensor(np.array([1., 2., 3.], np.float32)), Tensor(x), y, places).asnumpy()
    expect = np.zeros((3, 5))
    expect[np.arange(3), x.argsort(1)[:, 2]] = [1, 2, 3]
    np.testing.assert_array_equal(out, expect)


def test_lrn_grad():
    x, dy = rs.rand(1, 4, 2, 2).astype(np.float32), rs.rand(1, 4, 2, 2).astype(np.float32)
    op = P.LRN(1, 1.0, 0.5, 0.7)
    out = G.LRNGrad(1, 1.0, 0.5, 0.7)(Tensor(dy), Tensor(x), op(Tensor(x))).asnumpy()
    np.testing.assert_allclose(out, slope(of(op), x, dy), 2e-2, 2e-3)


@pytest.mark.parametrize("mode,pads", [("REFLECT", ((0, 0), (1, 1))), ("SYMMETRIC", ((1, 0), (1, 2)))])
def test_mirror_pad_grad(mode, pads):
    x = rs.rand(2, 3).astype(np.float32)
    padded = np.pad(np.arange(6).reshape(2, 3), pads, mode=mode.lower())
    dy = rs.rand(*padded.shape).astype(np.float32)
    expect = np.bincount(padded.ravel(), dy.ravel(), 6).reshape(2, 3)
    out = G.MirrorPadGrad(mode)(Tensor(dy), Tensor(np.array(pads), ms.int32)).asnumpy()
    np.testing.assert_allclose(out, expect, 1e-5)
    assert x.shape == out.shape


def test_conv2d_backprop_filter():
    x, dy = rs.rand(1, 1, 6, 6).astype(np.float32), rs.rand(1, 1, 4, 4).astype(np.float32)
    out = G.Conv2DBackpropFilter(1, 3, pad_mode="valid", pad=0, mode=1, stride=(1, 1), dilation=(1, 1, 1, 1), group=1)(
        Tensor(dy), Tensor(x), (1, 1, 3, 3)).asnumpy()
    expect = [[(x[0, 0, i:i + 4, j:j + 4] * dy[0, 0]).sum() for j in range(3)] for i in range(3)]
    np.testing.assert_allclose(out[0, 0], expect, 1e-4)


def test_conv3d_backprop():
    x, w, dy = (rs.rand(*s).astype(np.float32) for s in ((1, 1, 3, 3, 3), (2, 1, 2, 2, 2), (1, 2, 2, 2, 2)))
    dw = G.Conv3DBackpropFilter(out_channel=2, kernel_size=2)(Tensor(x), Tensor(dy), (2, 1, 2, 2, 2)).asnumpy()
    dx = G.Conv3DBackpropInput(out_channel=2, kernel_size=2)(Tensor(w), Tensor(dy), (1, 1, 3, 3, 3)).asnumpy()
    ew, ex = np.zeros_like(w), np.zeros_like(x)
    for o in range(2):
        for i in np.ndindex(2, 2, 2):
            at = tuple(slice(k, k + 2) for k in i)
            ew[(o, 0, *i)] = (x[(0, 0, *at)] * dy[0, o]).sum()
            ex[(0, 0, *at)] += w[(o, 0, *i)] * dy[0, o]
    np.testing.assert_allclose(dw, ew, 1e-4)
    np.testing.assert_allclose(dx, ex, 1e-4)


@pytest.mark.parametrize("name,f", [("Maximum", np.maximum), ("Minimum", np.minimum)])
def test_maximum_minimum_grad(name, f):
    x, y, dy = (rs.rand(*s).astype(np.float32) for s in ((2, 3), (1, 3), (2, 3)))
    dx, dz = run(getattr(G, name + "Grad")(), x, y, dy)
    take = (f(x, y) == x)
    np.testing.assert_allclose(dx.asnumpy(), dy * take, 1e-5)
    np.testing.assert_allclose(dz.asnumpy(), (dy * ~take).sum(0, keepdims=True), 1e-5)


def test_maximum_grad_grad():
    x, y = np.array([1., 5.], np.float32), np.array([2., 3.], np.float32)
    dx, dy = np.array([10., 20.], np.float32), np.array([30., 40.], np.float32)
    out = run(G.MaximumGradGrad(), x, y, dx, dy)
    np.testing.assert_array_equal(out[2].asnumpy(), [30, 20])


def test_grid_sampler_2d_grad():
    x, grid, dy = rs.rand(1, 1, 3, 3).astype(np.float32), rs.uniform(-0.6, 0.6, (1, 2, 2, 2)).astype(np.float32), rs.rand(1, 1, 2, 2).astype(np.float32)
    op = NN.GridSampler2D()
    dx, dgrid = G.GridSampler2DGrad()(Tensor(dy), Tensor(x), Tensor(grid))
    np.testing.assert_allclose(dx.asnumpy(), slope(lambda v: op(Tensor(v), Tensor(grid)).asnumpy(), x, dy), 1e-2, 1e-3)
    np.testing.assert_allclose(dgrid.asnumpy(), slope(lambda v: op(Tensor(x), Tensor(v)).asnumpy(), grid, dy, 1e-3), 2e-2, 2e-3)


def test_concat_offset():
    out = G.ConcatOffset(3, 0)([Tensor(np.zeros((2, 3), np.float32)), Tensor(np.zeros((4, 3), np.float32)), Tensor(np.zeros((1, 3), np.float32))])
    assert tuple(map(tuple, out)) == ((0, 0), (2, 0), (6, 0))


def test_lu_unpack_grad():
    a = rs.rand(3, 3).astype(np.float32)
    low, up = G.LuUnpackGrad(True, True)(Tensor(a), Tensor(a), Tensor(a))
    np.testing.assert_array_equal(low.asnumpy(), np.tril(a, -1))
    np.testing.assert_array_equal(up.asnumpy(), np.triu(a))


def test_glu_grad():
    x, dy = rs.randn(2, 4).astype(np.float32), rs.rand(2, 2).astype(np.float32)
    out = G.GLUGrad(axis=-1)(Tensor(dy), Tensor(x)).asnumpy()
    a, s = x[:, :2], 1 / (1 + np.exp(-x[:, 2:]))
    np.testing.assert_allclose(out, np.concatenate([dy * s, dy * a * s * (1 - s)], 1), 1e-4)


@pytest.mark.parametrize("name,order,f", [
    ("SigmoidGrad", "ydy", lambda y, d: d * y * (1 - y)), ("TanhGrad", "ydy", lambda y, d: d * (1 - y * y)),
    ("SqrtGrad", "ydy", lambda y, d: d / (2 * y)), ("RsqrtGrad", "ydy", lambda y, d: -0.5 * d * y ** 3),
    ("ReciprocalGrad", "ydy", lambda y, d: -d * y * y), ("AbsGrad", "ydy", lambda y, d: d * np.sign(y)),
    ("AsinGrad", "ydy", lambda x, d: d / np.sqrt(1 - x * x)), ("ACosGrad", "ydy", lambda x, d: -d / np.sqrt(1 - x * x)),
    ("AtanGrad", "ydy", lambda x, d: d / (1 + x * x)), ("ReluGrad", "dyy", lambda y, d: d * (y > 0)),
    ("ReLU6Grad", "dyy", lambda x, d: d * ((x > 0) & (x < 6))), ("SoftplusGrad", "dyy", lambda x, d: d / (1 + np.exp(-x))),
    ("EluGrad", "dyy", lambda y, d: d * np.where(y > 0, 1, y + 1)), ("SiLUGrad", "dyy", lambda x, d: d * (1 + x * (1 - 1 / (1 + np.exp(-x)))) / (1 + np.exp(-x))),
])
def test_elementwise_gradients(name, order, f):
    y, d = rs.uniform(0.1, 0.9, (3, 4)).astype(np.float32), rs.rand(3, 4).astype(np.float32)
    out = run(getattr(G, name)(), *((y, d) if order == "ydy" else (d, y)))
    np.testing.assert_allclose(out.asnumpy(), f(y, d), 1e-4, 1e-6)


def test_asinh_grad_grad():
    y, grad, dout = (rs.rand(2, 3).astype(np.float32) for _ in range(3))
    back = C.GradOperation(get_all=True, sens_param=True)(Net(G.AsinhGrad()))
    dy, dgrad = back(Tensor(y), Tensor(grad), Tensor(dout))
    np.testing.assert_allclose(dy.asnumpy(), -dout * grad * np.sinh(y) / np.cosh(y) ** 2, 1e-4)
    np.testing.assert_allclose(dgrad.asnumpy(), dout / np.cosh(y), 1e-4)


def test_avg_pool_layer_gradient_with_sens():
    class Grad(nn.Cell):
        def __init__(self, network):
            super().__init__()
            self.grad = C.GradOperation(get_all=True, sens_param=True)
            self.network = network

        @ms.ms_function
        def construct(self, x, sens):
            return self.grad(self.network)(x, sens)

    x = np.arange(36).reshape(1, 1, 6, 6).astype(np.float32)
    sens = np.arange(4).reshape(1, 1, 2, 2).astype(np.float32)
    out = Grad(nn.AvgPool2d(kernel_size=3, stride=2, pad_mode='valid'))(Tensor(x), Tensor(sens))
    expect = np.zeros((6, 6))
    for i in range(2):
        for j in range(2):
            expect[2 * i:2 * i + 3, 2 * j:2 * j + 3] += sens[0, 0, i, j] / 9
    np.testing.assert_allclose(out[0].asnumpy()[0, 0], expect, 1e-4, 1e-5)


def test_crop_and_resize_gradients():
    image, boxes = rs.rand(1, 4, 4, 1).astype(np.float32), np.array([[0.1, 0.2, 0.7, 0.9]], np.float32)
    dy, index = rs.rand(1, 2, 2, 1).astype(np.float32), np.array([0], np.int32)

    def forward(image, boxes):
        return run(P.CropAndResize(), image.astype(np.float32), boxes.astype(np.float32), index, constants=((2, 2),)).asnumpy()

    by_image = run(P.CropAndResizeGradImage(T=ms.float32), dy, boxes, index, np.array([1, 4, 4, 1], np.int32))
    np.testing.assert_allclose(by_image.asnumpy(), slope(lambda x: forward(x, boxes), image, dy), 1e-2, 1e-3)
    by_boxes = run(P.CropAndResizeGradBoxes(), dy, image, boxes, index)
    np.testing.assert_allclose(by_boxes.asnumpy(), slope(lambda x: forward(image, x), boxes, dy, 1e-3), 2e-2, 2e-3)


def test_gradients_of_pools_with_places():
    x = rs.permutation(64).reshape(1, 1, 4, 4, 4).astype(np.float32)
    y, places = run(NN.AdaptiveMaxPool3D() if hasattr(NN, "AdaptiveMaxPool3D") else P.AdaptiveMaxPool3D(), x, np.array([2, 2, 2], np.int32))
    dy = rs.rand(*y.shape).astype(np.float32)
    expect = np.zeros(64, np.float32)
    expect[places.asnumpy().ravel()] = dy.ravel()
    for made in (run(G.AdaptiveMaxPool3DGrad(), dy, x, places), run(G.MaxPool3DGradWithArgmax((2, 2, 2), (2, 2, 2), (0, 0, 0)), x, dy, places)):
        np.testing.assert_allclose(made.asnumpy().ravel(), expect)
