"""Open sizes: set_inputs, and results whose size the elements tell."""

import numpy as np
import pytest
import mindspore as ms
import mindspore.nn as nn
import mindspore.ops as ops
from mindspore import Tensor, context, Parameter
from mindspore.ops import operations as P
from mindspore.ops import composite as C

context.set_context(mode=context.GRAPH_MODE, device_target="CPU")


def r(*shape):
    return np.random.RandomState(1).randn(*shape).astype(np.float32)


class Net(nn.Cell):

    def __init__(self, op, *more):
        super().__init__()
        self.op, self.more = (op, more)

    def construct(self, *xs):
        return self.op(*xs)


CASES = [
    ("relu", P.ReLU(), [(None, 3)], [[(2, 3)], [(5, 3)]], lambda x: np.maximum(x, 0)),
    ("add", P.Add(), [(None, 3), (None, 3)], [[(2, 3), (2, 3)], [(4, 3), (4, 3)]], np.add),
    ("matmul", P.MatMul(), [(None, 4), (4, 5)], [[(2, 4), (4, 5)], [(7, 4), (4, 5)]], np.matmul),
    ("softmax", P.Softmax(), [(None, None)], [[(2, 3)], [(4, 6)]], lambda x: np.exp(x) / np.exp(x).sum(-1, keepdims=True)),
    ("reducesum", P.ReduceSum(), [(None, 4)], [[(2, 4)], [(6, 4)]], np.sum),
    ("concat", None, [(None, 2), (None, 2)], [[(1, 2), (3, 2)], [(2, 2), (2, 2)]], lambda a, b: np.concatenate([a, b])),
    ("conv", P.Conv2D(3, 2), [(None, 2, None, None), (3, 2, 2, 2)], [[(1, 2, 5, 5), (3, 2, 2, 2)], [(2, 2, 4, 6), (3, 2, 2, 2)]], None),
    ("maxpool", P.MaxPool(2, 2), [(None, 2, None, 4)], [[(1, 2, 4, 4)], [(3, 2, 6, 4)]], None),
    ("layer", nn.Dense(4, 2), [(None, 4)], [[(1, 4)], [(8, 4)]], None),
    ("transpose", None, [(None, 4)], [[(2, 4)], [(3, 4)]], lambda a: a.T),
    ("batchmatmul", P.BatchMatMul(), [(None, 2, 3), (None, 3, 2)], [[(2, 2, 3), (2, 3, 2)], [(5, 2, 3), (5, 3, 2)]], np.matmul),
    ("flatten", P.Flatten(), [(None, 2, 3)], [[(2, 2, 3)], [(4, 2, 3)]], lambda a: a.reshape(len(a), -1)),
]


@pytest.mark.parametrize("name, op, signature, shapes, expect", CASES, ids=[c[0] for c in CASES])
def test_open_sizes(name, op, signature, shapes, expect):
    if name == "concat":
        op = lambda a, b: P.Concat(0)((a, b))
    if name == "transpose":
        op = lambda a: P.Transpose()(a, (1, 0))
    net = Net(op)
    net.set_inputs(*[Tensor(shape=list(s), dtype=ms.float32) for s in signature])
    for each in shapes:
        xs = [r(*s) for s in each]
        out = net(*map(Tensor, xs))
        if expect is not None:
            np.testing.assert_allclose(out.asnumpy(), expect(*xs), 0.0001, 1e-05)


def test_gradient_with_open_sizes():

    class Grad(nn.Cell):

        def __init__(self, net):
            super().__init__()
            self.net, self.grad = (net, C.GradOperation(get_all=True))

        def construct(self, x):
            return self.grad(self.net)(x)

    net = Grad(Net(P.Square()))
    net.set_inputs(Tensor(shape=[None, 2], dtype=ms.float32))
    for n in (2, 5):
        x = r(n, 2)
        np.testing.assert_allclose(net(Tensor(x))[0].asnumpy(), 2 * x, 1e-05)


class UniqueNet(nn.Cell):

    def __init__(self):
        super().__init__()
        self.unique, self.shape, self.reshape = (P.Unique(), P.DynamicShape(), P.Reshape())

    def construct(self, x, y):
        u, _ = self.unique(x)
        s = self.shape(u)
        return self.reshape(y, s)


def test_unique_then_reshape():
    out = UniqueNet()(Tensor(np.array([1, 2, 2, 3], np.int32)), Tensor(np.array([[4.0], [5.0], [6.0]], np.float32)))
    np.testing.assert_allclose(out.asnumpy(), [4, 5, 6])


class MaskNet(nn.Cell):

    def construct(self, x, m):
        y = ops.masked_select(x, m)
        return (y * 2, y.sum())


def test_masked_select_in_graph():
    x = np.array([1, 2, 3, 4], np.float32)
    a, b = MaskNet()(Tensor(x), Tensor(x > 2))
    np.testing.assert_allclose(a.asnumpy(), [6, 8])
    assert b == 7


class NonZeroNet(nn.Cell):

    def __init__(self):
        super().__init__()
        self.nz = ops.operations.array_ops.NonZero()
        self.gather = P.GatherNd()

    def construct(self, x):
        i = self.nz(x)
        return (i, self.gather(x, i))


def test_nonzero_in_graph():
    x = np.array([[0, 2], [3, 0]], np.float32)
    i, v = NonZeroNet()(Tensor(x))
    np.testing.assert_array_equal(i.asnumpy(), [[0, 1], [1, 0]])
    np.testing.assert_array_equal(v.asnumpy(), [2, 3])


def test_unsorted_segment_of_unique():

    class S(nn.Cell):

        def construct(self, ids, x):
            u, i = P.Unique()(ids)
            return (u, P.UnsortedSegmentSum()(x, i, 3))

    u, s = S()(Tensor(np.array([5, 7, 5, 9], np.int32)), Tensor(np.array([[1.0], [2.0], [3.0], [4.0]], np.float32)))
    np.testing.assert_array_equal(s.asnumpy(), [[4], [2], [4]])


def test_set_inputs_refuses():
    net = Net(P.ReLU())
    with pytest.raises((ValueError, TypeError)):
        net.set_inputs(3)
        net(Tensor(r(2, 2)))
    net = Net(P.ReLU())
    net.set_inputs(Tensor(shape=[None, 2], dtype=ms.float32))
    for bad in (Tensor(r(2, 3)), Tensor(r(2, 2).astype(np.float16)), Tensor(r(2))):
        with pytest.raises((ValueError, TypeError)):
            net(bad)
    with pytest.raises((ValueError, TypeError)):
        net(Tensor(r(2, 2)), Tensor(r(2, 2)))


def test_dynamic_shape_tensor():
    x = Tensor(shape=[None, 3], dtype=ms.float32)
    assert tuple(x.shape) == (-1, 3) and x.dtype == ms.float32
    with pytest.raises((ValueError, TypeError)):
        Tensor(shape=[None, 3])
    with pytest.raises((ValueError, TypeError)):
        Tensor(shape="a", dtype=ms.float32)
