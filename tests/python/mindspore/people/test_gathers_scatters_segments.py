"""Gathers, scatters in place and not, segments, sorting and searching."""

import numpy as np
import pytest
import mindspore as ms
import mindspore.nn as nn
import mindspore.ops as ops
from mindspore import Tensor, Parameter, context
from mindspore.ops import operations as P
from mindspore.ops import composite as C
from mindspore.ops.operations import array_ops

context.set_context(mode=context.GRAPH_MODE, device_target="CPU")


def f(*x):
    return np.array(x, np.float32)


X = np.arange(12).reshape(4, 3).astype(np.float32)


class Net(nn.Cell):

    def __init__(self, op):
        super().__init__()
        self.op = op

    def construct(self, *args):
        return self.op(*args)


@pytest.mark.parametrize("axis", [0, 1, -1])
@pytest.mark.parametrize("index_type", [np.int32, np.int64])
def test_gather(axis, index_type):

    class G(nn.Cell):

        def __init__(self):
            super().__init__()
            self.op = P.Gather()

        def construct(self, x, i):
            return self.op(x, i, axis)

    i = np.array([[0, 2], [1, 1]], index_type)
    np.testing.assert_array_equal(G()(Tensor(X), Tensor(i)).asnumpy(), np.take(X, i, axis))
    dx = C.GradOperation()(G())(Tensor(X), Tensor(i)).asnumpy()
    expect = np.zeros_like(X)
    for each in i.reshape(-1):
        expect[each if axis == 0 else (slice(None), each)] += 1
    np.testing.assert_array_equal(dx, expect)


def test_gather_with_batch_dims_and_out_of_range():
    x = np.arange(12).reshape(2, 2, 3).astype(np.float32)
    i = np.array([[0, 1], [1, 0]], np.int32)
    out = P.Gather(batch_dims=1)(Tensor(x), Tensor(i), 1)
    np.testing.assert_array_equal(out.asnumpy(), np.stack([x[k][i[k]] for k in range(2)]))
    with pytest.raises((RuntimeError, IndexError)):
        P.Gather()(Tensor(X), Tensor(np.array([0, 100], np.int32)), 0)


def test_gather_d_nd():
    i = np.array([[0, 2, 1], [1, 1, 0]], np.int32)
    np.testing.assert_array_equal(P.GatherD()(Tensor(X[:2]), 1, Tensor(i)).asnumpy(), np.take_along_axis(X[:2], i, 1))
    np.testing.assert_array_equal(Tensor(X[:2]).gather_elements(1, Tensor(i)).asnumpy(), np.take_along_axis(X[:2], i, 1))
    j = np.array([[0, 0], [3, 2]], np.int32)
    np.testing.assert_array_equal(Net(P.GatherNd())(Tensor(X), Tensor(j)).asnumpy(), [0, 11])
    dx = C.GradOperation()(Net(P.GatherNd()))(Tensor(X), Tensor(j)).asnumpy()
    assert dx.sum() == 2 and dx[3, 2] == 1


UPDATES = [
    ("ScatterAdd", lambda a, b: a + b),
    ("ScatterSub", lambda a, b: a - b),
    ("ScatterMul", lambda a, b: a * b),
    ("ScatterDiv", lambda a, b: a / b),
    ("ScatterMax", np.maximum),
    ("ScatterMin", np.minimum),
    ("ScatterUpdate", lambda a, b: b),
]


@pytest.mark.parametrize("name, rule", UPDATES)
@pytest.mark.parametrize("lock", [True, False])
def test_scatter_rows(name, rule, lock):

    class S(nn.Cell):

        def __init__(self):
            super().__init__()
            self.op = getattr(P, name)(use_locking=lock)
            self.x = Parameter(Tensor(X + 1), name="x")

        def construct(self, i, u):
            return self.op(self.x, i, u)

    i = np.array([[0, 2]], np.int32)
    u = np.array([[[2, 3, 4], [5, 6, 8]]], np.float32)
    net = S()
    out = net(Tensor(i), Tensor(u))
    expect = X + 1
    expect[[0, 2]] = rule(expect[[0, 2]], u[0])
    np.testing.assert_allclose(out.asnumpy(), expect)
    np.testing.assert_allclose(net.x.asnumpy(), expect)


@pytest.mark.parametrize(
    "name, rule",
    [
        ("ScatterNdAdd", np.add),
        ("ScatterNdSub", np.subtract),
        ("ScatterNdMul", np.multiply),
        ("ScatterNdDiv", np.divide),
        ("ScatterNdMax", np.maximum),
        ("ScatterNdMin", np.minimum),
        ("ScatterNdUpdate", lambda a, b: b),
    ],
)
def test_scatter_nd_into(name, rule):

    class S(nn.Cell):

        def __init__(self):
            super().__init__()
            self.op = getattr(P, name)()
            self.x = Parameter(Tensor(f(1, 2, 3, 4, 5, 6, 7, 8)), name="x")

        def construct(self, i, u):
            return self.op(self.x, i, u)

    net = S()
    net(Tensor(np.array([[2], [4], [1], [7]], np.int32)), Tensor(f(6, 7, 8, 9)))
    expect = f(1, 2, 3, 4, 5, 6, 7, 8)
    for i, u in zip([2, 4, 1, 7], [6, 7, 8, 9]):
        expect[i] = rule(expect[i], np.float32(u))
    np.testing.assert_allclose(net.x.asnumpy(), expect, 1e-06)


@pytest.mark.parametrize(
    "name, rule",
    [
        ("TensorScatterUpdate", lambda a, b: b),
        ("TensorScatterAdd", np.add),
        ("TensorScatterSub", np.subtract),
        ("TensorScatterMul", np.multiply),
        ("TensorScatterDiv", np.divide),
        ("TensorScatterMax", np.maximum),
        ("TensorScatterMin", np.minimum),
    ],
)
def test_tensor_scatter(name, rule):
    op = getattr(P, name)()
    x = np.array([[-0.1, 0.3, 3.6], [0.4, 0.5, -3.2]], np.float32)
    i, u = (np.array([[0, 0], [1, 2]], np.int32), f(1.0, 2.2))
    out = Net(op)(Tensor(x), Tensor(i), Tensor(u))
    expect = x.copy()
    for (a, b), v in zip(i, u):
        expect[a, b] = rule(expect[a, b], v)
    np.testing.assert_allclose(out.asnumpy(), expect, 1e-06)
    with pytest.raises(ValueError):
        op(Tensor(x), Tensor(np.array([[0, 0, 0]], np.int32)), Tensor(f(1.0)))
    with pytest.raises((RuntimeError, IndexError, ValueError)):
        Net(op)(Tensor(x), Tensor(np.array([[5, 0], [0, 0]], np.int32)), Tensor(u)).asnumpy()


def test_scatter_elements_forms():
    x = np.zeros((3, 3), np.float32)
    i = np.array([[0, 1, 2], [2, 0, 1]], np.int64)
    u = np.ones((2, 3), np.float32)
    out = array_ops.TensorScatterElements(axis=0, reduction="add")(Tensor(x), Tensor(i), Tensor(u))
    expect = np.zeros((3, 3))
    np.add.at(expect, (i, np.broadcast_to(np.arange(3), (2, 3))), 1)
    np.testing.assert_array_equal(out.asnumpy(), expect)
    out = P.ScatterNd()(Tensor(np.array([[0], [2]], np.int32)), Tensor(f(1, 2)), (4,))
    np.testing.assert_array_equal(out.asnumpy(), [1, 0, 2, 0])
    np.testing.assert_array_equal(ops.scatter_nd(Tensor(np.array([[1], [1]], np.int32)), Tensor(f(1, 2)), (3,)).asnumpy(), [0, 3, 0])


def test_index_add_fill_put_select():
    x = Parameter(Tensor(X), name="x")
    out = P.IndexAdd(axis=1)(x, Tensor(np.array([0, 2], np.int32)), Tensor(np.ones((4, 2), np.float32)))
    expect = X.copy()
    expect[:, [0, 2]] += 1
    np.testing.assert_array_equal(out.asnumpy(), expect)
    out = ops.index_fill(Tensor(X), 1, Tensor([1], ms.int32), Tensor(9.0, ms.float32))
    expect = X.copy()
    expect[:, 1] = 9
    np.testing.assert_array_equal(out.asnumpy(), expect)
    out = ops.masked_fill(Tensor(X), Tensor(X > 5), 0.0)
    np.testing.assert_array_equal(out.asnumpy(), np.where(X > 5, 0, X))
    np.testing.assert_array_equal(ops.masked_select(Tensor(X), Tensor(X > 8)).asnumpy(), [9, 10, 11])
    np.testing.assert_array_equal(P.Select()(Tensor(X > 5), Tensor(X), Tensor(-X)).asnumpy(), np.where(X > 5, X, -X))


def test_inplace_ops():
    v = np.full((2, 3), 10, np.float32)
    expect = X.copy()
    expect[[0, 2]] = 10
    np.testing.assert_array_equal(P.InplaceUpdate(indices=(0, 2))(Tensor(X), Tensor(v)).asnumpy(), expect)
    expect = X.copy()
    expect[[0, 2]] += 10
    np.testing.assert_array_equal(P.InplaceAdd(indices=(0, 2))(Tensor(X), Tensor(v)).asnumpy(), expect)
    expect = X.copy()
    expect[[0, 2]] -= 10
    np.testing.assert_array_equal(P.InplaceSub(indices=(0, 2))(Tensor(X), Tensor(v)).asnumpy(), expect)
    with pytest.raises(TypeError):
        P.InplaceAdd(indices="a")
    with pytest.raises(ValueError):
        P.InplaceAdd(indices=(0, 9))(Tensor(X), Tensor(v))
    with pytest.raises((TypeError, ValueError)):
        P.InplaceAdd(indices=(0, 1))(Tensor(X), Tensor(v[:, :2]))


@pytest.mark.parametrize(
    "name, expect",
    [
        ("UnsortedSegmentSum", [[0, 4, 8], [15, 17, 19]]),
        ("UnsortedSegmentMax", [[3, 4, 5], [9, 10, 11]]),
        ("UnsortedSegmentMin", [[0, 1, 2], [6, 7, 8]]),
    ],
)
def test_segments(name, expect):
    ids = Tensor(np.array([0, 0, 1, 1], np.int32))
    out = getattr(P, name)()(Tensor(X), ids, 2)
    if name == "UnsortedSegmentSum":
        expect = [[3, 5, 7], [15, 17, 19]]
    np.testing.assert_array_equal(out.asnumpy(), expect)
    with pytest.raises(ValueError):
        getattr(P, name)()(Tensor(X), Tensor(np.array([[0, 0, 1]], np.int32)), 2)
    with pytest.raises((ValueError, TypeError)):
        getattr(P, name)()(Tensor(X), ids, -1)


def test_sorted_segments():
    from mindspore.ops.operations import math_ops

    ids = Tensor(np.array([0, 0, 1, 3], np.int32))
    for name, empty in (("SegmentSum", 0), ("SegmentMean", 0), ("SegmentProd", 1), ("SegmentMax", 0), ("SegmentMin", 0)):
        op = (getattr(array_ops, name, None) or getattr(math_ops, name))()
        out = op(Tensor(X), ids).asnumpy()
        assert out.shape == (4, 3)
        np.testing.assert_array_equal(out[2], np.full(3, empty))
        np.testing.assert_array_equal(out[3], X[3])


def test_one_hot_unique_topk_sort():
    out = P.OneHot(axis=0)(Tensor(np.array([0, 2, 5], np.int32)), 3, Tensor(2.0, ms.float32), Tensor(-1.0, ms.float32))
    np.testing.assert_array_equal(out.asnumpy(), [[2, -1, -1], [-1, -1, -1], [-1, 2, -1]])
    y, i = P.Unique()(Tensor(np.array([1, 2, 5, 2], np.int32)))
    np.testing.assert_array_equal(y.asnumpy(), [1, 2, 5])
    np.testing.assert_array_equal(i.asnumpy(), [0, 1, 2, 1])
    y, i, c = ops.unique_consecutive(Tensor(np.array([1, 1, 2, 2, 3, 1], np.int32)), True, True, None)
    np.testing.assert_array_equal(c.asnumpy(), [2, 2, 1, 1])
    y, i = P.UniqueWithPad()(Tensor(np.array([1, 1, 5, 2], np.int32)), 0)
    assert y.shape == (4,) and y.asnumpy()[-1] == 0
    v, i = P.TopK(sorted=True)(Tensor(f(3, 9, 1, 7)), 3)
    np.testing.assert_array_equal(v.asnumpy(), [9, 7, 3])
    np.testing.assert_array_equal(i.asnumpy(), [1, 3, 0])
    v, i = P.Sort(axis=0, descending=True)(Tensor(X))
    np.testing.assert_array_equal(v.asnumpy(), X[::-1])
    v, i = P.Sort()(Tensor(np.array([[3, 1, 2]], np.float16)))
    np.testing.assert_array_equal(i.asnumpy(), [[1, 2, 0]])
    with pytest.raises(TypeError):
        P.TopK()(Tensor(f(1, 2)), 1.0)
    with pytest.raises(TypeError):
        P.Sort(axis="0")
    with pytest.raises(ValueError):
        P.Sort(axis=3)(Tensor(f(1, 2)))


def test_bincount_histogram_search():
    np.testing.assert_array_equal(ops.searchsorted(Tensor([[0, 1, 3, 5, 7]]), Tensor([[3, 6, 9]])).asnumpy(), [[2, 4, 5]])
    np.testing.assert_array_equal(array_ops.SearchSorted(right=True)(Tensor(f(1, 3, 5)), Tensor(f(3, 4))).asnumpy(), [2, 2])
    np.testing.assert_array_equal(
        array_ops.LowerBound()(Tensor(np.array([[0, 3, 9, 9, 10]], np.int8)), Tensor(np.array([[2, 4, 9]], np.int8))).asnumpy(), [[1, 2, 2]]
    )
    np.testing.assert_array_equal(
        array_ops.UpperBound()(Tensor(np.array([[0, 3, 9, 9, 10]], np.int8)), Tensor(np.array([[2, 4, 9]], np.int8))).asnumpy(), [[1, 2, 4]]
    )
    from mindspore.ops.operations import math_ops, nn_ops

    np.testing.assert_array_equal(
        math_ops.Bincount()(Tensor(np.array([1, 2, 2, 3, 3, 3], np.int32)), Tensor(4, ms.int32), Tensor(np.ones(6, np.float32))).asnumpy(),
        [0, 1, 2, 3],
    )
    np.testing.assert_array_equal(P.HistogramFixedWidth(5)(Tensor(f(-1.0, 0.0, 1.5, 2.0, 5.0, 15)), Tensor(f(0.0, 5.0))).asnumpy(), [2, 1, 1, 0, 2])
    np.testing.assert_array_equal(array_ops.Histogram(bins=4, min=0.0, max=3.0)(Tensor(f(1, 2, 1))).asnumpy(), [0, 2, 1, 0])
    np.testing.assert_array_equal(array_ops.ListDiff()(Tensor(f(1, 2, 3, 4)), Tensor(f(2, 4)))[0].asnumpy(), [1, 3])
    out = ops.nonzero(Tensor(X[:2] > 1))
    np.testing.assert_array_equal(out.asnumpy(), np.argwhere(X[:2] > 1))
    np.testing.assert_array_equal(P.Range()(Tensor(1, ms.float32), Tensor(2, ms.float32), Tensor(0.5, ms.float32)).asnumpy(), [1, 1.5])
