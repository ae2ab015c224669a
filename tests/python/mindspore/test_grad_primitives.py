"""Gradients that are primitives of their own, against NumPy."""

import numpy as np
import pytest
from mindspore import Tensor, nn
from mindspore.ops.operations import _grad_ops as G
from mindspore.ops import operations as P

rng = np.random.RandomState(0)
X = rng.uniform(0.1, 0.9, (3, 4)).astype(np.float32)
D = rng.rand(3, 4).astype(np.float32)

CASES = {
    "ReluGrad": (lambda: (D, X), D * (X > 0)),
    "SigmoidGrad": (lambda: (X, D), D * X * (1 - X)),
    "TanhGrad": (lambda: (X, D), D * (1 - X**2)),
    "SqrtGrad": (lambda: (X, D), 0.5 * D / X),
    "AbsGrad": (lambda: (X, D), D * np.sign(X)),
    "ReLU6Grad": (lambda: (D, X), D * ((X > 0) & (X < 6))),
    "AsinGrad": (lambda: (X, D), D / np.sqrt(1 - X**2)),
    "ACosGrad": (lambda: (X, D), -D / np.sqrt(1 - X**2)),
    "AtanGrad": (lambda: (X, D), D / (1 + X**2)),
    "AsinhGrad": (lambda: (X, D), D / np.cosh(X)),
    "RsqrtGrad": (lambda: (X, D), -0.5 * D * X**3),
    "ReciprocalGrad": (lambda: (X, D), -D * X * X),
    "SoftplusGrad": (lambda: (D, X), D / (1 + np.exp(-X))),
    "EluGrad": (lambda: (D, X), D * np.where(X > 0, 1, X + 1)),
    "HSwishGrad": (lambda: (D, X), D * (2 * X + 3) / 6),
    "HSigmoidGrad": (lambda: (D, X), D / 6),
    "InvGrad": (lambda: (X, D), -D * X * X),
}


class Net(nn.Cell):
    def __init__(self, op):
        super().__init__()
        self.op = op

    def construct(self, *a):
        return self.op(*a)


@pytest.mark.parametrize("name", list(CASES))
def test_elementwise(name):
    args, want = CASES[name]
    out = Net(getattr(G, name)())(*[Tensor(a) for a in args()])
    assert np.allclose(out.asnumpy(), want, rtol=1e-3, atol=1e-4)


def test_pools_and_more():
    x = rng.rand(1, 1, 4, 4).astype(np.float32)
    y = P.MaxPool(2, 2)(Tensor(x))
    dx = G.MaxPoolGrad(kernel_size=2, strides=2, pad_mode="VALID")(
        Tensor(x), y, Tensor(np.ones((1, 1, 2, 2), np.float32))
    )
    assert dx.asnumpy().sum() == 4
    dx = G.AvgPoolGrad(kernel_size=2, strides=2, pad_mode="VALID")(
        Tensor(x), P.AvgPool(2, 2)(Tensor(x)), Tensor(np.ones((1, 1, 2, 2), np.float32))
    )
    assert np.allclose(dx.asnumpy(), 0.25)
    assert G.BiasAddGrad()(Tensor(D)).asnumpy().shape == (4,)
    assert np.allclose(
        G.LogSoftmaxGrad(-1)(Tensor(np.log(X / X.sum(1, keepdims=True))), Tensor(D)).asnumpy(),
        D - X / X.sum(1, keepdims=True) * D.sum(1, keepdims=True),
        atol=1e-4,
    )
    a, b = G.MaximumGrad()(Tensor(X), Tensor(X[::-1].copy()), Tensor(D))
    assert np.allclose((a + b).asnumpy(), D, atol=1e-5)
    assert (
        G.StridedSliceGrad()(Tensor(np.ones((2, 2), np.float32)), (3, 4), (0, 0), (2, 2), (1, 1)).asnumpy().sum() == 4
    )
    assert G.ResizeBilinearGrad()(
        Tensor(np.ones((1, 1, 4, 4), np.float32)), Tensor(np.ones((1, 1, 2, 2), np.float32))
    ).shape == (1, 1, 2, 2)
    assert G.SmoothL1LossGrad()(Tensor(X), Tensor(D), Tensor(D)).shape == (3, 4)
    assert G.DropoutGrad(0.5)(Tensor(D), Tensor(np.ones((3, 4), np.float32))).shape == (3, 4)
    assert (
        G.L2NormalizeGrad(axis=0)(Tensor(X), Tensor(X), Tensor(D)).shape == (3, 4)
        if hasattr(G, "L2NormalizeGrad")
        else True
    )
