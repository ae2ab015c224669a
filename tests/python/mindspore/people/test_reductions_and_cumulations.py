"""Reductions, cumulations, norms and places of extremes, with their gradients and refusals."""

import numpy as np
import pytest
import mindspore as ms
import mindspore.nn as nn
import mindspore.ops as ops
from mindspore import Tensor, context
from mindspore.ops import operations as P
from mindspore.ops import composite as C

context.set_context(mode=context.PYNATIVE_MODE, device_target="CPU")
X = np.random.RandomState(3).randn(2, 3, 4, 2).astype(np.float32)
AXES = [(), 0, -1, 2, (0, 1), (1, -1), (0, 1, 2, 3)]


class Reduce(nn.Cell):

    def __init__(self, op, axis):
        super().__init__()
        self.op, self.axis = (op, axis)

    def construct(self, x):
        return self.op(x, self.axis)


def axis_of(axis):
    return None if axis == () else axis


@pytest.mark.parametrize("axis", AXES)
@pytest.mark.parametrize("keep", [True, False])
@pytest.mark.parametrize(
    "name, expect", [("ReduceSum", np.sum), ("ReduceMean", np.mean), ("ReduceMax", np.max), ("ReduceMin", np.min), ("ReduceProd", np.prod)]
)
def test_reduce(name, expect, axis, keep):
    for mode in (context.GRAPH_MODE, context.PYNATIVE_MODE):
        context.set_context(mode=mode)
        out = Reduce(getattr(P, name)(keep_dims=keep), axis)(Tensor(X))
        np.testing.assert_allclose(out.asnumpy(), expect(X, axis_of(axis), keepdims=keep), 0.0001, 1e-05)


@pytest.mark.parametrize("axis", AXES)
@pytest.mark.parametrize("name, expect", [("ReduceAll", np.all), ("ReduceAny", np.any)])
def test_reduce_bool(name, expect, axis):
    x = X > -0.5
    out = Reduce(getattr(P, name)(keep_dims=True), axis)(Tensor(x))
    np.testing.assert_array_equal(out.asnumpy(), expect(x, axis_of(axis), keepdims=True))


def test_reduce_std_and_norms():
    x = Tensor(X[0, 0])
    std, mean = ops.operations.ReduceStd(axis=1, unbiased=True, keep_dims=False)(x)
    np.testing.assert_allclose(std.asnumpy(), X[0, 0].std(1, ddof=1), 0.0001)
    np.testing.assert_allclose(mean.asnumpy(), X[0, 0].mean(1), 0.0001)
    np.testing.assert_allclose(P.LpNorm(axis=[0, 1], p=2, keep_dims=False)(x).asnumpy(), np.sqrt((X[0, 0] ** 2).sum()), 1e-05)
    np.testing.assert_allclose(P.L2Loss()(x).asnumpy(), (X[0, 0] ** 2).sum() / 2, 1e-05)
    np.testing.assert_allclose(P.L2Normalize(axis=1)(x).asnumpy(), X[0, 0] / np.sqrt((X[0, 0] ** 2).sum(1, keepdims=True)), 1e-05)
    np.testing.assert_allclose(
        ops.operations.math_ops.EuclideanNorm(keep_dims=True)(x, Tensor([1])).asnumpy(), np.sqrt((X[0, 0] ** 2).sum(1, keepdims=True)), 1e-05
    )
    np.testing.assert_allclose(ops.norm(x, 0).asnumpy(), np.sqrt((X[0, 0] ** 2).sum(0)), 1e-05)


@pytest.mark.parametrize("axis", [0, 1, 2, 3, -1, -2])
def test_cumulative(axis):
    for op, expect in ((P.CumSum(), np.cumsum), (P.CumProd(), np.cumprod)):
        np.testing.assert_allclose(op(Tensor(X), axis).asnumpy(), expect(X, axis), 0.0001, 1e-05)
    flipped = np.flip(np.cumsum(np.flip(X, axis), axis), axis)
    np.testing.assert_allclose(P.CumSum(reverse=True)(Tensor(X), axis).asnumpy(), flipped, 0.0001, 1e-05)
    np.testing.assert_allclose(P.CumSum(exclusive=True)(Tensor(X), axis).asnumpy(), np.cumsum(X, axis) - X, 0.0001, 0.0001)
    values, indices = ops.cummax(Tensor(X), axis)
    np.testing.assert_allclose(values.asnumpy(), np.maximum.accumulate(X, axis))
    values, indices = P.Cummin(axis)(Tensor(X))
    np.testing.assert_allclose(values.asnumpy(), np.minimum.accumulate(X, axis))
    assert indices.dtype in (ms.int32, ms.int64)
    np.testing.assert_allclose(
        ops.operations.math_ops.CumulativeLogsumexp()(Tensor(X), Tensor(axis)).asnumpy(), np.log(np.cumsum(np.exp(X), axis)), 0.0001, 0.0001
    )


@pytest.mark.parametrize("axis", [0, 1, -1])
def test_arg_reductions(axis):
    x = X[0, :, :, 0]
    np.testing.assert_array_equal(P.Argmax(axis=axis, output_type=ms.int32)(Tensor(x)).asnumpy(), x.argmax(axis))
    np.testing.assert_array_equal(P.Argmin(axis=axis)(Tensor(x)).asnumpy(), x.argmin(axis))
    index, value = P.ArgMaxWithValue(axis, keep_dims=True)(Tensor(x))
    np.testing.assert_allclose(value.asnumpy(), x.max(axis, keepdims=True))
    index, value = P.ArgMinWithValue(axis)(Tensor(x))
    np.testing.assert_allclose(value.asnumpy(), x.min(axis))
    np.testing.assert_array_equal(index.asnumpy(), x.argmin(axis))
    assert index.dtype == ms.int32


def test_arg_max_with_value_gradient():

    class Net(nn.Cell):

        def __init__(self):
            super().__init__()
            self.op = P.ArgMaxWithValue(axis=1)

        def construct(self, x):
            return self.op(x)[1]

    x = np.array([[1, 5, 2], [7, 0, 3]], np.float32)
    dx = C.GradOperation()(Net())(Tensor(x))
    np.testing.assert_array_equal(dx.asnumpy(), [[0, 1, 0], [1, 0, 0]])


def test_median_mode_quantile():
    x = np.array([[9, 1, 5, 3], [2, 8, 4, 6]], np.float32)
    y, index = ops.operations.math_ops.Median(global_median=False, axis=1, keep_dims=False)(Tensor(x))
    np.testing.assert_array_equal(y.asnumpy(), [3, 4])
    y, index = ops.median(Tensor(x), axis=0)
    out = ops.operations.math_ops.Quantile(dim=1)(Tensor(x), Tensor(np.array([0.5], np.float32)))
    np.testing.assert_allclose(out.asnumpy().reshape(-1), [4, 5])


@pytest.mark.parametrize(
    "call, error",
    [
        (lambda: P.ReduceSum()(Tensor(X), 4), ValueError),
        (lambda: P.ReduceSum()(Tensor(X), "0"), TypeError),
        (lambda: P.ReduceSum(keep_dims=1), TypeError),
        (lambda: P.ReduceAll()(Tensor(X), 0), TypeError),
        (lambda: P.ReduceMax()("x", 0), TypeError),
        (lambda: P.CumSum()(Tensor(X), 4), ValueError),
        (lambda: P.CumSum()(Tensor(X), 1.0), TypeError),
        (lambda: P.CumProd()(Tensor(X), 5), ValueError),
        (lambda: P.Argmax(axis=4)(Tensor(X)), ValueError),
        (lambda: P.Argmax(axis="0"), TypeError),
        (lambda: P.Argmax(output_type=ms.float32), TypeError),
        (lambda: P.ArgMaxWithValue(axis=9)(Tensor(X)), ValueError),
        (lambda: P.ArgMaxWithValue(keep_dims=1), TypeError),
        (lambda: P.LpNorm(axis=0.5), TypeError),
        (lambda: P.L2Normalize(axis=[0, 1]), TypeError),
    ],
)
def test_refusals(call, error):
    with pytest.raises(error):
        call()


def test_gradient_of_reductions():
    x = Tensor(X)
    g = C.GradOperation()
    np.testing.assert_allclose(g(Reduce(P.ReduceSum(), (0, 2)))(x).asnumpy(), np.ones_like(X))
    np.testing.assert_allclose(g(Reduce(P.ReduceMean(), 1))(x).asnumpy(), np.full_like(X, 1 / 3), 1e-06)
    np.testing.assert_allclose(g(Reduce(P.ReduceProd(), 1))(x).asnumpy(), np.prod(X, 1, keepdims=True) / X, 0.001)
    np.testing.assert_allclose(g(Reduce(P.ReduceMax(), 3))(x).asnumpy(), (X == X.max(3, keepdims=True)).astype(np.float32))
    half = np.ones((2, 2), np.float32)
    np.testing.assert_allclose(g(Reduce(P.ReduceMax(), 1))(Tensor(half)).asnumpy(), half / 2)
