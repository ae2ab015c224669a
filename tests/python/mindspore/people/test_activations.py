"""Activations as primitives, layers and functions: values, gradients, refusals."""

import numpy as np
import pytest
import mindspore.nn as nn
import mindspore.ops as ops
from mindspore import Tensor, context
from mindspore.common.api import ms_function
from mindspore.ops import operations as P
from mindspore.ops import composite as C

context.set_context(mode=context.GRAPH_MODE, device_target="CPU")


class Net(nn.Cell):

    def __init__(self, op):
        super().__init__()
        self.op = op

    def construct(self, *args):
        return self.op(*args)


class Grad(nn.Cell):

    def __init__(self, net):
        super().__init__()
        self.net = net
        self.grad = C.GradOperation(get_all=True, sens_param=True)

    @ms_function
    def construct(self, x, dy):
        return self.grad(self.net)(x, dy)


X = np.array([[-4.0, -2.5, -1.0, -0.3], [0.0, 0.4, 2.0, 7.0]], np.float32)


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


CASES = [
    (P.ReLU(), lambda x: np.maximum(x, 0)),
    (P.ReLU6(), lambda x: np.clip(x, 0, 6)),
    (P.Elu(), lambda x: np.where(x > 0, x, np.exp(x) - 1)),
    (P.CeLU(alpha=2.0), lambda x: np.maximum(0, x) + np.minimum(0, 2 * (np.exp(x / 2) - 1))),
    (P.SeLU(), lambda x: 1.05070098 * np.where(x > 0, x, 1.67326324 * (np.exp(x) - 1))),
    (P.HShrink(lambd=0.5), lambda x: np.where(np.abs(x) > 0.5, x, 0)),
    (P.SoftShrink(lambd=0.5), lambda x: np.sign(x) * np.maximum(np.abs(x) - 0.5, 0)),
    (P.HSwish(), lambda x: x * np.clip(x + 3, 0, 6) / 6),
    (P.HSigmoid(), lambda x: np.clip(x + 3, 0, 6) / 6),
    (P.Mish(), lambda x: x * np.tanh(np.log1p(np.exp(x)))),
    (P.Softplus(), lambda x: np.log1p(np.exp(x))),
    (P.Softsign(), lambda x: x / (1 + np.abs(x))),
    (P.Sigmoid(), sigmoid),
    (P.Tanh(), np.tanh),
    (P.GeLU(), lambda x: 0.5 * x * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3)))),
    (P.FastGeLU(), lambda x: x * np.exp(0.851 * (x - np.abs(x))) / (1 + np.exp(-1.702 * np.abs(x)))),
    (nn.LogSigmoid(), lambda x: np.log(sigmoid(x))),
    (nn.SiLU(), lambda x: x * sigmoid(x)),
    (nn.Tanhshrink(), lambda x: x - np.tanh(x)),
    (nn.Hardtanh(), lambda x: np.clip(x, -1, 1)),
    (nn.Threshold(0.1, 20), lambda x: np.where(x > 0.1, x, 20)),
    (nn.RReLU(0.25, 0.25), lambda x: np.where(x >= 0, x, 0.25 * x)),
    (nn.LeakyReLU(), lambda x: np.where(x >= 0, x, 0.2 * x)),
    (nn.ReLU6(), lambda x: np.clip(x, 0, 6)),
    (nn.FastGelu(), lambda x: x * np.exp(0.851 * (x - np.abs(x))) / (1 + np.exp(-1.702 * np.abs(x)))),
    (nn.GELU(approximate=True), lambda x: 0.5 * x * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3)))),
    (nn.Softmax2d(), lambda x: None),
]


@pytest.mark.parametrize("mode", [context.GRAPH_MODE, context.PYNATIVE_MODE])
@pytest.mark.parametrize("index", range(len(CASES) - 1))
def test_values(index, mode):
    context.set_context(mode=mode)
    op, expect = CASES[index]
    out = Net(op)(Tensor(X))
    np.testing.assert_allclose(out.asnumpy(), expect(X), rtol=0.002, atol=0.002)
    assert out.shape == X.shape and out.dtype == Tensor(X).dtype


@pytest.mark.parametrize("index", [i for i in range(len(CASES) - 1) if i not in (20,)])
def test_gradients(index):
    context.set_context(mode=context.GRAPH_MODE)
    op, expect = CASES[index]
    x = X + 0.05
    dy = np.arange(8).reshape(2, 4).astype(np.float32)
    dx = Grad(Net(op))(Tensor(x), Tensor(dy))[0].asnumpy()
    h = 0.001
    slope = (expect(x.astype(np.float64) + h) - expect(x.astype(np.float64) - h)) / (2 * h)
    np.testing.assert_allclose(dx, slope * dy, rtol=0.02, atol=0.02)


def test_softmax_and_log_softmax_grads():
    x = Tensor(np.array([[-0.08082921, -0.13706027, -0.4711177], [-0.05606057, -0.46082982, 1.1761844]], np.float32))
    dy = Tensor(np.array([[1.0, 2.0, 3.0], [0.5, 0.0, -1.0]], np.float32))
    for op in (P.Softmax(-1), P.LogSoftmax(-1), P.Softmax(0), P.LogSoftmax(0)):
        axis = -1 if op in () else op.axis[0] if isinstance(op.axis, tuple) else op.axis
        y = np.exp(x.asnumpy()) / np.exp(x.asnumpy()).sum(axis, keepdims=True)
        d = dy.asnumpy()
        if "Log" in op.name:
            expect = d - y * d.sum(axis, keepdims=True)
        else:
            expect = y * (d - (d * y).sum(axis, keepdims=True))
        np.testing.assert_allclose(Grad(Net(op))(x, dy)[0].asnumpy(), expect, 0.0001, 1e-05)


def test_prelu_net():

    class PNet(nn.Cell):

        def __init__(self):
            super().__init__()
            self.prelu = P.PReLU()

        def construct(self, x, w):
            return self.prelu(x, w)

    x = np.arange(-6, 6).reshape((2, 3, 2)).astype(np.float32)
    w = np.array([0.1, 0.6, -0.3], np.float32)
    out = PNet()(Tensor(x), Tensor(w))
    np.testing.assert_allclose(out.asnumpy(), np.where(x > 0, x, x * w[None, :, None]), 1e-06)
    grads = C.GradOperation(get_all=True)(PNet())(Tensor(x), Tensor(w))
    np.testing.assert_allclose(grads[1].asnumpy(), np.where(x > 0, 0, x).sum((0, 2)), 1e-06)
    with pytest.raises(ValueError):
        PNet()(Tensor(x), Tensor(np.ones(2, np.float32)))
    with pytest.raises(TypeError):
        PNet()(Tensor(x.astype(np.int32)), Tensor(w))


def test_activation_by_name():
    for name in (
        "softmax",
        "logsoftmax",
        "relu",
        "relu6",
        "tanh",
        "gelu",
        "elu",
        "sigmoid",
        "prelu",
        "leakyrelu",
        "hswish",
        "hsigmoid",
        "logsigmoid",
        "softshrink",
        "hshrink",
    ):
        assert isinstance(nn.get_activation(name), nn.Cell)
    with pytest.raises(KeyError):
        nn.get_activation("no_such")
    assert nn.get_activation("") is None or nn.get_activation(None) is None


@pytest.mark.parametrize(
    "name",
    [
        "relu",
        "relu6",
        "elu",
        "selu",
        "celu",
        "hardswish",
        "hardsigmoid",
        "mish",
        "softsign",
        "sigmoid",
        "tanh",
        "gelu",
        "fast_gelu",
        "softmax",
        "log_softmax",
        "hardshrink",
        "soft_shrink",
        "leaky_relu",
        "silu",
        "logsigmoid",
        "hardtanh",
    ],
)
def test_functions(name):
    out = getattr(ops, name)(Tensor(X))
    assert out.shape == X.shape and np.isfinite(out.asnumpy()).all()


def test_functions_with_attributes():
    np.testing.assert_allclose(ops.elu(Tensor(X), 1.0).asnumpy(), np.where(X > 0, X, np.exp(X) - 1), 0.0001, 1e-05)
    np.testing.assert_allclose(ops.hardshrink(Tensor(X), lambd=1.5).asnumpy(), np.where(np.abs(X) > 1.5, X, 0))
    np.testing.assert_allclose(ops.softmax(Tensor(X), axis=0).asnumpy().sum(0), 1, 1e-05)
    np.testing.assert_allclose(ops.glu(Tensor(X)).asnumpy(), X[:, :2] * sigmoid(X[:, 2:]), 0.0001)
    with pytest.raises(ValueError):
        ops.elu(Tensor(X), 2.0)
    with pytest.raises(ValueError):
        ops.glu(Tensor(X[:, :3]))
    with pytest.raises(TypeError):
        ops.hardshrink(Tensor(X), lambd="1")
    with pytest.raises(ValueError):
        ops.celu(Tensor(X), 0.0)
    with pytest.raises(TypeError):
        ops.celu(Tensor(X), "a")


@pytest.mark.parametrize(
    "make, error",
    [
        (lambda: nn.Softmax(axis="1"), TypeError),
        (lambda: nn.LogSoftmax(axis=1.5), TypeError),
        (lambda: nn.GELU(approximate=3), TypeError),
        (lambda: nn.PReLU(channel=-1), ValueError),
        (lambda: nn.PReLU(channel=2, w=[0.1, 0.2, 0.3]), ValueError),
        (lambda: nn.HShrink("x"), TypeError),
        (lambda: nn.SoftShrink("x"), TypeError),
        (lambda: nn.Threshold("a", 1.0), TypeError),
        (lambda: nn.RReLU(0.5, 0.1), ValueError),
        (lambda: nn.Hardtanh(1.0, -1.0), ValueError),
        (lambda: nn.CELU(alpha=0), ValueError),
    ],
)
def test_layers_refuse(make, error):
    with pytest.raises(error):
        make()
