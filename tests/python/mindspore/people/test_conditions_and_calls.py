"""`and` and `or` of tensors, names without a value, and calls that are made in other ways than usual."""
import numpy as np
import pytest
import mindspore.nn as nn
from mindspore import Tensor, context, ms_function
from mindspore import dtype as mstype
from mindspore.ops import composite as C
from mindspore.ops import operations as P
from mindspore.train.callback import SummaryCollector


def setup_module():
    context.set_context(mode=context.GRAPH_MODE)


@ms_function
def both(x, y):
    return x and y


@ms_function
def either(x, y):
    return x or y


@pytest.mark.parametrize("x, y", [(3, 5), (0, 5), (3, 0), (0, 0)])
@pytest.mark.parametrize("dtype", [np.int32, np.float32])
@pytest.mark.parametrize("shape", [(), (1,)])
def test_and_or_is_one_of_them(x, y, dtype, shape):
    a, b = (Tensor(np.full(shape, each, dtype)) for each in (x, y))
    for made, wanted in ((both(a, b), x and y), (either(a, b), x or y)):
        assert made.asnumpy() == wanted and made.dtype == a.dtype and made.shape == shape


def test_and_or_of_truths_keeps_their_shape():
    yes, no = Tensor([True]), Tensor([False])
    assert both(yes, no).asnumpy().tolist() == [False] and either(no, yes).asnumpy().tolist() == [True]


def test_a_tensor_beside_a_constant():
    @ms_function
    def constant(x):
        y = Tensor([2])
        return x and y

    assert constant(Tensor([1])).asnumpy().tolist() == [2] and constant(Tensor([0])).asnumpy().tolist() == [0]


def test_several_elements_have_no_truth():
    with pytest.raises(ValueError, match="can be converted to bool, but"):
        bool(Tensor([1, 2]))

    @ms_function
    def f(x):
        if x:
            x = x + 1
        return x

    with pytest.raises(ValueError, match="can be converted to bool, but"):
        f(Tensor([1, 2]))


@pytest.mark.parametrize("mode", [context.PYNATIVE_MODE, context.GRAPH_MODE])
def test_only_truths_are_inverted(mode):
    class Net(nn.Cell):
        def construct(self, x):
            return ~x

    context.set_context(mode=mode)
    assert Net()(Tensor([True, False])).asnumpy().tolist() == [False, True]
    for x in (np.int32([1, 2]), np.float32([1, 2])):
        with pytest.raises(TypeError, match="LogicalNot"):
            Net()(Tensor(x))
    context.set_context(mode=context.GRAPH_MODE)


def test_a_name_of_one_branch():
    class Net(nn.Cell):
        def construct(self, x):
            if x < 0:
                y = x
            return y

    with pytest.raises(UnboundLocalError, match="'y' is not defined in false branch"):
        Net()(Tensor([1], mstype.float32))


def test_a_metric_is_called():
    metric = nn.Accuracy("classification")
    metric.update(Tensor([[0.9, 0.1]]), Tensor([1]))
    assert metric(Tensor([[0.2, 0.8], [0.7, 0.3]]), Tensor([1, 0])) == 1.0


@pytest.mark.parametrize("p", [1, 2, 9, 20, 40])
def test_norms_of_small_and_large_numbers(p):
    x = np.float32([[1e-3, 2e-3, -3e-3], [100, -200, 300]])
    made = P.LpNorm(1, p, keep_dims=True)(Tensor(x)).asnumpy()
    np.testing.assert_allclose(made, np.power((np.abs(x.astype(float)) ** p).sum(1, keepdims=True), 1 / p), rtol=1e-4)


def test_seeds_that_are_numbers():
    class Net(nn.Cell):
        def construct(self, x):
            return x * x

    made = C.GradOperation(sens_param=True)(Net())(Tensor([3.0, 4.0]), 0.5)
    assert made.asnumpy().tolist() == [3, 4]


def test_construct_without_self():
    class Net(nn.Cell):
        def construct(x):
            return x

    with pytest.raises(TypeError, match="should have 'self' as its first argument"):
        Net()(Tensor(1.0))


def test_the_greedy_decoder():
    decoder = P.CTCGreedyDecoder()
    logits = np.random.default_rng(3).normal(size=(2, 2, 3))
    scores = decoder(Tensor(logits), Tensor(np.int32([2, 2])))[3]
    assert scores.dtype == mstype.float64
    np.testing.assert_allclose(scores.asnumpy()[:, 0], -logits.max(-1).sum(0))
    with pytest.raises(RuntimeError, match="should be less than"):
        decoder(Tensor(logits), Tensor(np.int32([3, 3])))


@pytest.mark.parametrize("given, error", [
    ({"summary_dir": 1}, TypeError), ({"collect_freq": 0}, ValueError), ({"collect_freq": True}, TypeError),
    ({"keep_default_action": 1}, TypeError), ({"collect_specified_data": []}, TypeError),
    ({"collect_specified_data": {"unknown": 1}}, ValueError), ({"collect_specified_data": {"collect_metric": 1}}, TypeError),
    ({"custom_lineage_data": {1: 2}}, TypeError),
])  # fmt: skip
def test_what_a_collector_of_summaries_refuses(given, error, tmp_path):
    with pytest.raises(error):
        SummaryCollector(**{"summary_dir": str(tmp_path), **given})


@ms_function
def shift(x, y):
    z = x
    z <<= y
    return x << y, x >> y, z


@pytest.mark.parametrize("x, y", [(5, 2), (-16, 5), (2147483647, 5), (-1, 63)])
def test_numbers_are_shifted(x, y):
    assert shift(x, y) == (x << y, x >> y, x << y)


@pytest.mark.parametrize("x, y, error, words", [
    (1, 63, RuntimeError, "int64 integer overflow"), (-3, 62, RuntimeError, "int64 integer overflow"),
    (16, -2, ValueError, "shift count must be a non-negative integer"), (10.0, 1, TypeError, "only integer types are supported, but got"),
    ((10,), 2, RuntimeError, "operation does not support the type"),
])  # fmt: skip
def test_what_is_not_shifted(x, y, error, words):
    with pytest.raises(error, match=words):
        shift(x, y)
