"""Gradients of gradients, of pools at places and of images as primitives, integers differentiated twice, and what errors are raised."""
import numpy as np
import pytest
import mindspore as ms
import mindspore.nn as nn
from mindspore import Parameter, ParameterTuple, Tensor, context, ops
from mindspore.ops import composite as C
from mindspore.ops import operations as P
from mindspore.ops.operations import _grad_ops as G
from mindspore.ops.operations import image_ops, math_ops

context.set_context(mode=context.GRAPH_MODE, device_target='CPU')
rs = np.random.RandomState(3)


def random(*shape, dtype=np.float32):
    return rs.standard_normal(shape).astype(dtype)


class Net(nn.Cell):
    def __init__(self, op):
        super().__init__()
        self.op = op

    def construct(self, *inputs):
        return self.op(*inputs)


def slope(f, x, eps=1e-4):
    """Central differences of a number that follows from x, in f64."""
    made = np.zeros(x.shape)
    for i in np.ndindex(*x.shape):
        step = np.zeros(x.shape)
        step[i] = eps
        made[i] = (f(x + step) - f(x - step)) / (2 * eps)
    return made


def of_batch_norm(dy, x, scale, axis, mean=None, variance=None, eps=1e-5):
    axes = tuple(i for i in range(x.ndim) if i != axis)
    shape = [-1 if i == axis else 1 for i in range(x.ndim)]
    training = mean is None
    mean = x.mean(axes) if training else mean
    variance = x.var(axes) if training else variance
    inverse = 1 / np.sqrt(variance + eps)
    normal = (x - mean.reshape(shape)) * inverse.reshape(shape)
    of_scale, of_bias = (dy * normal).sum(axes), dy.sum(axes)
    if training:
        dy = dy - (of_bias.reshape(shape) + normal * of_scale.reshape(shape)) * x.shape[axis] / x.size
    return dy * (scale * inverse).reshape(shape), of_scale, of_bias


@pytest.mark.level1
@pytest.mark.platform_x86_cpu
@pytest.mark.env_onecard
@pytest.mark.parametrize("training", [False, True])
@pytest.mark.parametrize("layout", ["NCHW", "NHWC"])
def test_batch_norm_grad_grad(training, layout):
    axis = 1 if layout == "NCHW" else 3
    x, dy, of_dx = (random(2, 3, 2, 3, dtype=np.float64) for _ in range(3))
    scale, of_scale, of_bias = (random(x.shape[axis], dtype=np.float64) for _ in range(3))
    fixed = None if training else (random(x.shape[axis], dtype=np.float64), rs.uniform(0.5, 2, x.shape[axis]))

    def whole(x, dy, scale):
        made = of_batch_norm(dy, x, scale, axis, *(fixed or ()))
        return sum((a * b).sum() for a, b in zip(made, (of_dx, of_scale, of_bias)))

    axes = tuple(i for i in range(4) if i != axis)
    mean, variance = fixed or (x.mean(axes), x.var(axes))
    given = [Tensor(each.astype(np.float32)) for each in (x, dy, scale, mean, variance, of_dx, of_scale, of_bias)]
    made = Net(G.BatchNormGradGrad(is_training=training, epsilon=1e-5, data_format=layout))(*given)
    expect = (slope(lambda v: whole(v, dy, scale), x), slope(lambda v: whole(x, v, scale), dy), slope(lambda v: whole(x, dy, v), scale))
    for a, b in zip(made, expect):
        np.testing.assert_allclose(a.asnumpy(), b, rtol=2e-3, atol=2e-3)


def test_igamma_grad_a():
    a, x = np.array([0.7, 1.5, 4.0]), np.array([0.5, 2.0, 3.0])
    op = math_ops.Igamma()
    f = lambda v: op(Tensor(v), Tensor(x)).asnumpy().sum()
    made = G.IgammaGradA()(Tensor(a.astype(np.float32)), Tensor(x.astype(np.float32)))
    np.testing.assert_allclose(made.asnumpy(), slope(f, a), rtol=1e-3, atol=1e-4)


def test_cholesky_grad():
    root = random(3, 3, dtype=np.float64)
    a, dy = root @ root.T + 3 * np.eye(3), np.tril(random(3, 3, dtype=np.float64))
    made = G.CholeskyGrad()(Tensor(np.linalg.cholesky(a)), Tensor(dy)).asnumpy()
    # a change that keeps the matrix symmetric changes the factor as the gradient says
    change = random(3, 3, dtype=np.float64)
    change = change + change.T
    moved = [(np.linalg.cholesky(a + s * change) * dy).sum() for s in (1e-5, -1e-5)]
    np.testing.assert_allclose((made * change).sum(), (moved[0] - moved[1]) / 2e-5, rtol=1e-4, atol=1e-6)


def test_einsum_grad():
    a, b, dy = random(2, 3), random(3, 4), random(2, 4)
    of_a, of_b = G.EinsumGrad("ij,jk->ik")((Tensor(a), Tensor(b)), Tensor(dy))
    np.testing.assert_allclose(of_a.asnumpy(), dy @ b.T, rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(of_b.asnumpy(), a.T @ dy, rtol=1e-5, atol=1e-5)


def put(shape, dy, places, rank):
    made = np.zeros(shape, np.float32).reshape(*shape[:-rank], -1)
    rows = made.reshape(-1, made.shape[-1])
    for row, values, at in zip(rows, dy.reshape(len(rows), -1), places.reshape(len(rows), -1)):
        np.add.at(row, at, values)
    return made.reshape(shape)


def test_pools_at_places():
    x = random(2, 3, 6, 6)
    y, places = P.MaxPoolWithArgmaxV2(2, 2)(Tensor(x))
    dy = random(*y.shape)
    made = Net(G.MaxPoolGradWithArgmaxV2(2, 2))(Tensor(x), Tensor(dy), places)
    np.testing.assert_allclose(made.asnumpy(), put(x.shape, dy, places.asnumpy(), 2))
    in_image = Tensor(places.asnumpy() + 36 * np.arange(3).reshape(1, 3, 1, 1))
    again = Net(G.MaxPoolGradGradWithArgmax(2, 2))(Tensor(x), Tensor(x), in_image)
    np.testing.assert_allclose(again.asnumpy(), y.asnumpy())


def test_fractional_pools_at_places():
    x, samples = random(1, 2, 7, 7), Tensor(rs.uniform(0, 1, (1, 2, 2)).astype(np.float32))
    y, places = P.FractionalMaxPoolWithFixedKsize((2, 2), (3, 3))(Tensor(x), samples)
    dy = random(*y.shape)
    made = G.FractionalMaxPoolGradWithFixedKsize()(Tensor(x), Tensor(dy), places)
    np.testing.assert_allclose(made.asnumpy(), put(x.shape, dy, places.asnumpy(), 2))


def test_fractional_pools_in_pieces():
    x = random(1, 6, 6, 2)
    y, rows, columns = P.FractionalMaxPool([1.0, 1.5, 1.5, 1.0])(Tensor(x))
    made = G.FractionalMaxPoolGrad()(Tensor(x), y, y, rows, columns).asnumpy()
    np.testing.assert_allclose(made.sum(), y.asnumpy().sum(), rtol=1e-5)
    assert set(made[made != 0]) <= set(x.ravel())
    y, rows, columns = P.FractionalAvgPool([1.0, 1.5, 1.5, 1.0])(Tensor(x))
    made = G.FractionalAvgPoolGrad()(Tensor(np.array(x.shape)), Tensor(np.ones(y.shape, np.float32)), rows, columns)
    np.testing.assert_allclose(made.asnumpy().sum(), y.size, rtol=1e-5)


def test_fractional_pools_as_layers():
    x = Tensor(random(1, 2, 5, 5))
    samples = Tensor(np.zeros((1, 2, 2), np.float32))
    y, places = nn.FractionalMaxPool2d(2, output_size=(2, 2), return_indices=True, _random_samples=samples)(x)
    np.testing.assert_array_equal(np.take_along_axis(x.asnumpy().reshape(1, 2, 25), places.asnumpy().reshape(1, 2, 4), 2), y.asnumpy().reshape(1, 2, 4))
    assert nn.FractionalMaxPool3d(1, output_ratio=0.5)(Tensor(random(1, 1, 4, 4, 4))).shape == (1, 1, 2, 2, 2)
    with pytest.raises(ValueError):
        nn.FractionalMaxPool2d(2)(x)


def test_affine_grid_and_nearest_neighbours():
    dy = random(2, 4, 5, 2)
    made = G.AffineGridGrad()(Tensor(dy), (2, 1, 4, 5)).asnumpy()
    x, y = (np.arange(5) * 2 + 1) / 5 - 1, (np.arange(4) * 2 + 1) / 4 - 1
    base = np.stack([*np.meshgrid(x, y), np.ones((4, 5))], -1)
    np.testing.assert_allclose(made, np.einsum("nhwk,hwc->nkc", dy, base), rtol=1e-4, atol=1e-5)
    made = Net(G.ResizeNearestNeighborV2Grad())(Tensor(np.ones((1, 1, 4, 4), np.float32)), (2, 2))
    np.testing.assert_array_equal(made.asnumpy(), np.full((1, 1, 2, 2), 4))


def test_sparse_rows():
    dy = np.array([1, 2, 3, 4], np.float32)
    values, default = G.SparseFillEmptyRowsGrad()(Tensor(np.array([0, 2, 3])), Tensor(dy))
    np.testing.assert_array_equal(values.asnumpy(), [1, 3, 4])
    assert default.asnumpy() == 2
    indices = Tensor(np.array([[0, 1], [1, 2], [2, 0]]))
    made = G.SparseSliceGrad()(Tensor(np.array([5], np.float32)), indices, Tensor(np.array([1, 0])), Tensor(np.array([[0, 2]])))
    np.testing.assert_array_equal(made.asnumpy(), [0, 5, 0])


@pytest.mark.parametrize("kernel", ["lanczos1", "lanczos3", "lanczos5", "gaussian", "box", "triangle", "keyscubic", "mitchellcubic"])
def test_scale_and_translate(kernel):
    op = image_ops.ScaleAndTranslate(kernel, True)
    numbers = [Tensor(np.array(each, np.float32)) for each in ((1, 1), (0, 0))]
    x = random(1, 6, 5, 2)
    flat = np.full((1, 6, 5, 2), 3, np.float32)
    size = Tensor(np.array([6, 5], np.int32))
    np.testing.assert_allclose(op(Tensor(flat), size, *numbers).asnumpy(), flat, rtol=1e-5)
    if kernel in ("lanczos3", "triangle", "box", "keyscubic"):  # those that read nothing but the pixel at its own place
        np.testing.assert_allclose(op(Tensor(x), size, *numbers).asnumpy(), x, atol=1e-5)
    larger = Tensor(np.array([2, 2], np.float32)), Tensor(np.array([0, 0], np.float32))
    y = op(Tensor(x), Tensor(np.array([12, 10], np.int32)), *larger)
    dy = random(*y.shape)
    made = G.ScaleAndTranslateGrad(kernel, True)(Tensor(dy), Tensor(x), *larger)
    np.testing.assert_allclose((made.asnumpy() * x).sum(), (y.asnumpy() * dy).sum(), rtol=1e-3, atol=1e-3)


class Power(nn.Cell):
    def __init__(self):
        super().__init__()
        self.weight = Parameter(Tensor([2], ms.int32), name="weight")

    def construct(self, x):
        r = x * self.weight
        return r * r * r


class All(nn.Cell):
    def __init__(self, net):
        super().__init__()
        self.net = net
        self.grad = C.GradOperation(get_all=True)

    def construct(self, x):
        return self.grad(self.net)(x)


class ByWeights(nn.Cell):
    def __init__(self, net):
        super().__init__()
        self.net = net
        self.grad = C.GradOperation(get_by_list=True)
        self.weights = ParameterTuple(net.trainable_params())

    def construct(self, x):
        return self.grad(self.net, self.weights)(x)


@pytest.mark.parametrize("mode", [context.GRAPH_MODE, context.PYNATIVE_MODE])
def test_integers_differentiated_twice(mode):
    context.set_context(mode=mode)
    assert All(Power())(Tensor([5], ms.int32))[0].asnumpy() == 3 * 25 * 8
    assert ByWeights(All(Power()))(Tensor([5], ms.int32))[0].asnumpy() == 9 * 25 * 4
    context.set_context(mode=context.GRAPH_MODE)


def test_ctc_loss_of_numbers_that_are_no_probabilities():
    x = random(6, 2, 4)
    targets, lengths, counts = Tensor(np.array([[1, 2], [3, 1]], np.int32)), Tensor([6, 5], ms.int32), Tensor([2, 1], ms.int32)
    whole = np.log(np.exp(x).sum(2, keepdims=True))
    f = nn.CTCLoss(reduction="none")
    normed = f(Tensor(x - whole), targets, lengths, counts).asnumpy()
    expect = normed - np.array([whole[:6, 0].sum(), whole[:5, 1].sum()])
    np.testing.assert_allclose(f(Tensor(x), targets, lengths, counts).asnumpy(), expect, rtol=1e-4)
    one = f(Tensor(x[:, 0]), Tensor(np.array([1, 2], np.int32)), 6, 2)
    np.testing.assert_allclose(one.asnumpy(), expect[0], rtol=1e-4)


@pytest.mark.parametrize("index, error", [((1, 2), ValueError), ((1, 2, 3, 0), ValueError), ((3, 4, 4), IndexError), (60, IndexError), (1.0, TypeError)])
def test_item_checks_its_place(index, error):
    with pytest.raises(error):
        Tensor(np.zeros((3, 4, 5), np.float32)).item(index)


def test_shapes_and_types_that_do_not_fit():
    one = lambda *shape, dtype=np.float32: Tensor(np.ones(shape).astype(dtype))
    with pytest.raises(ValueError):
        P.Multinomial()(Tensor(1), 1)
    with pytest.raises(ValueError):
        P.DepthwiseConv2dNative(2, (5, 5))(one(1, 1, 9, 9), one(2, 1, 5, 6))
    with pytest.raises(TypeError):
        P.BatchNorm(is_training=True)(one(5, 3), one(3), one(3), one(3, dtype=np.float16), one(3))
    with pytest.raises(TypeError):
        P.SameTypeShape()(5.0, one(3, 4))


def test_unique_rises_on_gpu():
    x = Tensor(np.array([4, 5, 1, 2, 3, 3, 4, 5], np.int32))
    context.set_context(device_target="GPU")
    values, places = Net(P.Unique())(x)
    context.set_context(device_target="CPU")
    np.testing.assert_array_equal(values.asnumpy(), [1, 2, 3, 4, 5])
    np.testing.assert_array_equal(places.asnumpy(), [3, 4, 0, 1, 2, 2, 3, 4])


def test_cross_entropy_with_weights_of_another_type():
    x, labels, weights = Tensor(random(3, 5, dtype=np.float64)), Tensor([1, 0, 4], ms.int32), Tensor(rs.uniform(1, 2, 5), ms.float32)
    assert ops.cross_entropy(x, labels, weights).dtype == ms.float64
