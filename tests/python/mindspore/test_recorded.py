"""cairn.ms.recorded: gradients of recorded eager calls, as PyTorch takes them."""

import mindspore as ms
import numpy as np
import pytest
from cairn.ms import core, recorded
from mindspore import nn, ops


@pytest.fixture(autouse=True)
def recording():
    ms.set_context(mode=ms.PYNATIVE_MODE)
    recorded.start()
    yield
    core.here.recorder = None


def tensor(*values):
    return recorded.watched(ms.Tensor(np.array(values, np.float32)))


def test_gradients_add_up_beside_what_was_watched():
    x = tensor(1.0, 2.0)
    for _ in range(2):
        recorded.backward((x * x).sum())
    np.testing.assert_allclose(x.grad.asnumpy(), [4.0, 8.0])


def test_a_gradient_can_be_differentiated_again():
    x = tensor(2.0, 3.0)
    (first,) = recorded.grad((x**3).sum(), x, create_graph=True)
    (second,) = recorded.grad(first.sum(), x)
    np.testing.assert_allclose(second.asnumpy(), [12.0, 18.0], rtol=1e-6)


def test_nothing_goes_through_what_was_cut_off():
    x = tensor(2.0)
    with recorded.no_grad():
        y = x * 3
    recorded.backward((x * y + x * ops.stop_gradient(x)).sum())
    np.testing.assert_allclose(x.grad.asnumpy(), [8.0])


def test_a_step_leaves_parameters_without_a_gradient():
    net = nn.Dense(2, 1)
    bias, other = net.bias.asnumpy().copy(), nn.Dense(1, 1)
    other.weight.name = "other"
    optimizer = nn.SGD([net.weight, other.weight], learning_rate=0.1, weight_decay=0.5)
    before = other.weight.asnumpy().copy()
    recorded.backward(net(ms.Tensor(np.ones((3, 2), np.float32))).sum())
    recorded.step(optimizer)
    np.testing.assert_array_equal(other.weight.asnumpy(), before)
    np.testing.assert_array_equal(net.bias.asnumpy(), bias)


def test_a_second_backward_of_the_same_calls_is_refused():
    x = tensor(1.0)
    loss = (x * x).sum()
    recorded.backward(loss, retain_graph=True)
    recorded.backward(loss)
    with pytest.raises(RuntimeError, match="retain_graph=True"):
        recorded.backward(loss)


def test_what_was_not_made_of_parameters_has_no_gradient():
    with pytest.raises(RuntimeError, match="since recording began"):
        recorded.backward(ms.Tensor(np.ones((), np.float32)) * 2)
    with pytest.raises(RuntimeError, match="one element"):
        recorded.backward(tensor(1.0, 2.0) * 2)
    with pytest.raises(RuntimeError, match="allow_unused"):
        recorded.grad((tensor(1.0) * 2).sum(), tensor(3.0))
    with pytest.raises(NotImplementedError, match="no_grad"):
        ops.grad(lambda x: x * x)(tensor(1.0))


def test_unused_tensors_are_not_kept():
    x, seen = tensor(1.0), core.here.recorder
    assert (ms.Tensor(np.ones(2, np.float32)) * 2)._mark is None
    assert len(seen.records) == 0 or seen.records.count > 0
    with recorded.set_grad_enabled(False):
        assert (x * 2)._mark is None
    assert core.here.recorder is seen
