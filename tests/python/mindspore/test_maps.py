"""HyperMap, MultitypeFuncGraph, clipping."""

import mindspore as ms
import numpy as np
import pytest
from mindspore import Tensor, ops
from mindspore.ops import HyperMap, Map, MultitypeFuncGraph

add = MultitypeFuncGraph("add")


@add.register("Tensor", "Tensor")
def _tensors(a, b):
    return a + b


@add.register("Number", "Number")
def _numbers(a, b):
    return a * b


def test_forms_by_type():
    assert add(2, 3) == 6 and add(Tensor([2.0]), Tensor([3.0])).asnumpy() == 5
    with pytest.raises(TypeError, match="add"):
        add("a", 1)


def test_hyper_map_goes_into_tuples():
    made = HyperMap(add)(((2, Tensor([1.0])), 5), ((3, Tensor([2.0])), 6))
    assert made[0][0] == 6 and made[0][1].asnumpy() == 3 and made[1] == 30
    assert HyperMap()(add, (1, 2), (3, 4)) == (3, 8)
    assert HyperMap(lambda x: x + 1)([1, (2, 3)]) == [2, (3, 4)]
    with pytest.raises(ValueError):
        HyperMap(add)((1, 2), (1,))
    with pytest.raises(TypeError):
        HyperMap(3)


def test_map_stays_on_one_level():
    assert Map(len)(((1, 2), (3,))) == (2, 1)


def test_clip_by_value():
    x = Tensor(np.array([-2.0, 0.5, 3.0], np.float32))
    assert ops.clip_by_value(x, -1, 1).asnumpy().tolist() == [-1, 0.5, 1]
    assert ops.clip_by_value(x, clip_value_min=0.0).asnumpy().tolist() == [0, 0.5, 3]
    assert ops.clip_by_value((x,), None, Tensor(np.float32(1)))[0].asnumpy().tolist() == [-2, 0.5, 1]
    with pytest.raises(ValueError):
        ops.clip_by_value(x)
    with pytest.raises(TypeError):
        ops.clip_by_value(3, 1, 2)


@pytest.mark.parametrize("norm", [1.0, 100.0])
def test_clip_by_global_norm(norm):
    a, b = np.array([3.0, 4.0], np.float32), np.array([[12.0]], np.float32)
    made = ops.clip_by_global_norm((Tensor(a), Tensor(b)), norm)
    scale = min(1, norm / 13)
    np.testing.assert_allclose(made[0].asnumpy(), a * scale, rtol=1e-6)
    np.testing.assert_allclose(made[1].asnumpy(), b * scale, rtol=1e-6)


@pytest.mark.parametrize("arguments, error", [((3,), TypeError), (((), 0.0), ValueError), (((), "a"), TypeError)])
def test_bad_arguments_of_clipping(arguments, error):
    with pytest.raises(error):
        ops.clip_by_global_norm(*arguments)


def test_a_map_over_an_axis_captures_one_position():
    ms.set_context(mode=ms.GRAPH_MODE)
    seen = []

    def row(x, y):
        seen.append(1)
        return ops.ReduceSum()(x * y, 0), x

    x, y = np.arange(12, dtype=np.float32).reshape(4, 3), np.array([1, 2, 3], np.float32)
    totals, rows = ops.vmap(row, in_axes=(0, None))(Tensor(x), Tensor(y))
    assert np.array_equal(totals.asnumpy(), x @ y) and np.array_equal(rows.asnumpy(), x)
    assert len(seen) < 4
    ms.set_context(mode=ms.PYNATIVE_MODE)
