"""Primitives of mindspore.ops.operations._quant_ops, against arithmetic."""
import numpy as np
import pytest
import mindspore as ms
import mindspore.nn as nn
from mindspore import Parameter, Tensor, context
from mindspore.ops import composite as C
from mindspore.ops.operations import _quant_ops as Q

context.set_context(mode=context.PYNATIVE_MODE, device_target='CPU')
rs = np.random.RandomState(11)


def tensor(*numbers):
    return Tensor(np.array(numbers, np.float32))


def quantised(x, low, high, bits=8, narrow=False, symmetric=False):
    """x in the steps of a range that holds zero, moved so that zero is one of them."""
    low, high = np.minimum(low, 0), np.maximum(high, 0)
    first, last = int(narrow), 2 ** bits - 1
    if symmetric:
        high = np.maximum(-low, high)
        low, first, last = -high, int(narrow) - 2 ** (bits - 1), 2 ** (bits - 1) - 1
    step = (high - low) / (last - first)
    zero = np.floor(np.clip(first - low / step, first, last) + 0.5)
    low, high = (first - zero) * step, (last - zero) * step
    return np.floor((np.clip(x, low, high) - low) / step + 0.5) * step + low, (x >= low) & (x <= high)


class Net(nn.Cell):
    def __init__(self, op):
        super().__init__()
        self.op = op

    def construct(self, *inputs):
        return self.op(*inputs)


@pytest.mark.level0
@pytest.mark.platform_x86_cpu
@pytest.mark.env_onecard
@pytest.mark.parametrize("bits", [4, 8])
@pytest.mark.parametrize("narrow", [False, True])
@pytest.mark.parametrize("symmetric", [False, True])
def test_fake_quant_per_layer(bits, narrow, symmetric):
    x = rs.uniform(-3, 4, (5, 7)).astype(np.float32)
    low, high = np.float32(-1.7), np.float32(2.9)
    net = Net(Q.FakeQuantPerLayer(num_bits=bits, symmetric=symmetric, narrow_range=narrow))
    expect, inside = quantised(x, low, high, bits, narrow, symmetric)
    np.testing.assert_allclose(net(Tensor(x), tensor(low), tensor(high)).asnumpy(), expect, atol=1e-5)
    dy = rs.standard_normal(x.shape).astype(np.float32)
    slope = Q.FakeQuantPerLayerGrad(num_bits=bits, symmetric=symmetric, narrow_range=narrow)
    np.testing.assert_allclose(slope(Tensor(dy), Tensor(x), tensor(low), tensor(high)).asnumpy(), dy * inside)


def test_a_range_without_zero_is_widened_and_one_without_width_gives_zeros():
    x = np.array([[0.2, 0.9, 1.8]], np.float32)
    made = Q.FakeQuantPerLayer()(Tensor(x), tensor(0.5), tensor(1.5)).asnumpy()
    np.testing.assert_allclose(made, quantised(x, 0.5, 1.5)[0], atol=1e-6)
    np.testing.assert_array_equal(Q.FakeQuantPerLayer()(Tensor(x * 0), tensor(0), tensor(0)).asnumpy(), x * 0)


def test_fake_quant_per_channel_and_its_gradient():
    x = rs.uniform(-2, 2, (2, 3, 4, 4)).astype(np.float32)
    low, high = np.array([-1, -0.5, -1.9], np.float32), np.array([1, 1.5, 0.2], np.float32)
    net = Q.FakeQuantPerChannel(channel_axis=1)
    along = low.reshape(1, 3, 1, 1), high.reshape(1, 3, 1, 1)
    expect, inside = quantised(x, *along)
    np.testing.assert_allclose(net(Tensor(x), Tensor(low), Tensor(high)).asnumpy(), expect, atol=1e-5)
    slope = C.GradOperation()(Net(net))(Tensor(x), Tensor(low), Tensor(high))
    np.testing.assert_array_equal(slope.asnumpy(), inside.astype(np.float32))


@pytest.mark.parametrize("mode", [context.GRAPH_MODE, context.PYNATIVE_MODE])
def test_the_first_calls_of_a_delay_leave_numbers_as_they_are(mode):
    context.set_context(mode=mode)
    net = Net(Q.FakeQuantPerLayer(num_bits=4, quant_delay=2))
    x = tensor(0.1, 0.33, 0.71)
    made = [net(x, tensor(-1), tensor(1)).asnumpy() for _ in range(3)]
    context.set_context(mode=context.PYNATIVE_MODE)
    np.testing.assert_array_equal(made[0], x.asnumpy())
    np.testing.assert_array_equal(made[1], x.asnumpy())
    assert np.abs(made[2] - x.asnumpy()).max() > 1e-3


def test_gradients_of_a_range():
    x = tensor(-3, -0.5, 0.5, 3)
    dy = tensor(1, 2, 3, 4)
    dx, low, high = Q.FakeQuantWithMinMaxVarsGradient()(dy, x, tensor(-1), tensor(1))
    np.testing.assert_array_equal(dx.asnumpy(), [0, 2, 3, 0])
    assert low.asnumpy().sum() == 1 and high.asnumpy().sum() == 4


@pytest.mark.parametrize("ema", [False, True])
def test_ranges_follow_what_passes(ema):
    x = rs.uniform(-4, 3, (3, 2, 5)).astype(np.float32)
    low, high = np.array([-1, -2], np.float32), np.array([1, 2], np.float32)

    def moved(new, old):
        return 0.9 * old + 0.1 * new if ema else new

    made = Q.MinMaxUpdatePerChannel(ema=ema, ema_decay=0.9, channel_axis=1)(Tensor(x), Tensor(low), Tensor(high))
    np.testing.assert_allclose(made[0].asnumpy(), np.minimum(moved(x.min((0, 2)), low), 0), rtol=1e-5)
    np.testing.assert_allclose(made[1].asnumpy(), np.maximum(moved(x.max((0, 2)), high), 0), rtol=1e-5)
    made = Q.MinMaxUpdatePerLayer(ema=ema, ema_decay=0.9)(Tensor(x), tensor(-1), tensor(1))
    np.testing.assert_allclose(made[0].asnumpy(), [moved(x.min(), -1)], rtol=1e-5)


def test_learned_scale():
    x = tensor(-3, -0.6, 0.26, 5)
    made = Q.FakeLearnedScaleQuantPerLayer()(x, tensor(2), tensor(4)).asnumpy()
    np.testing.assert_allclose(made, np.floor(np.clip(x.asnumpy() / 2, -1, 1) * 4 + 0.5) / 4 * 2)
    made = Q.FakeLearnedScaleQuantPerLayer(neg_trunc=True)(x, tensor(2), tensor(4)).asnumpy()
    assert made.min() == 0


@pytest.mark.parametrize("step", [0, 10])
def test_batch_norm_fold_moves_the_running_statistics(step):
    x = rs.uniform(1, 10, (3, 4, 6, 6)).astype(np.float32)
    mean, variance = (rs.uniform(1, 10, 4).astype(np.float32) for _ in range(2))
    own, spread = Parameter(Tensor(mean), name="mean"), Parameter(Tensor(variance), name="variance")
    made = Q.BatchNormFold(momentum=0.9, epsilon=1e-12, freeze_bn=10)(Tensor(x), own, spread, Tensor([step], ms.int32))
    of_batch, count = (x.mean((0, 2, 3)), x.var((0, 2, 3))), x.size / 4
    expect = (np.zeros(4), np.ones(4)) if step else (of_batch[0], np.sqrt(of_batch[1]))
    for a, b in zip(made, (*expect, mean, np.sqrt(variance))):
        np.testing.assert_allclose(a.asnumpy(), b, rtol=1e-4, atol=1e-5)
    after = (mean, variance) if step else (0.9 * mean + 0.1 * of_batch[0], 0.9 * variance + 0.1 * of_batch[1] * count / (count - 1))
    np.testing.assert_allclose(own.asnumpy(), after[0], rtol=1e-4)
    np.testing.assert_allclose(spread.asnumpy(), after[1], rtol=1e-4)


def test_corrections_of_weights_by_deviations():
    w, dy = (rs.standard_normal((4, 2, 3, 3)).astype(np.float32) for _ in range(2))
    batch, running = (rs.uniform(1, 3, 4).astype(np.float32) for _ in range(2))
    ratio = (batch / running).reshape(4, 1, 1, 1)
    np.testing.assert_allclose(Q.CorrectionMul()(Tensor(w), Tensor(batch), Tensor(running)).asnumpy(), w * ratio, rtol=1e-5)
    dx, of_batch = Q.CorrectionMulGrad()(Tensor(dy), Tensor(w), Tensor(batch), Tensor(running))
    np.testing.assert_allclose(dx.asnumpy(), dy * ratio, rtol=1e-5)
    np.testing.assert_allclose(of_batch.asnumpy(), (dy * w).sum((1, 2, 3)) / running, rtol=1e-4, atol=1e-5)


MODES = pytest.mark.parametrize("mode", [context.PYNATIVE_MODE, context.GRAPH_MODE])


@pytest.fixture(autouse=True)
def eager():
    yield
    context.set_context(mode=context.PYNATIVE_MODE)


def slopes(op, *inputs):
    return [each.asnumpy() for each in C.GradOperation(get_all=True)(Net(op))(*inputs)]


@MODES
def test_gradients_outside_of_a_range_belong_to_its_ends(mode):
    context.set_context(mode=mode)
    x = np.array([[-9, -0.5, 0.3], [1.1, 8, 7]], np.float32)
    dx, low, high = slopes(Q.FakeQuantWithMinMaxVars(), Tensor(x), tensor(-1), tensor(2))
    np.testing.assert_array_equal(dx, [[0, 1, 1], [1, 0, 0]])
    np.testing.assert_array_equal((low, high), [[1], [2]])
    _, low, high = slopes(Q.FakeQuantWithMinMaxVarsPerChannel(), Tensor(x), tensor(-1, -1, -1), tensor(2, 2, 2))
    np.testing.assert_array_equal((low, high), [[1, 0, 0], [0, 1, 1]])


@MODES
def test_running_statistics_have_no_gradient(mode):
    context.set_context(mode=mode)
    x, channels = Tensor(rs.standard_normal((2, 3, 4, 4)).astype(np.float32)), [Tensor(rs.uniform(1, 2, 3).astype(np.float32)) for _ in range(6)]
    dx, beta, gamma, deviation, mean, *running = slopes(Q.BatchNormFold2(), x, *channels, Tensor([1], ms.int32))
    _, of_gamma, of_deviation, of_mean, of_running, _ = (each.asnumpy() for each in channels)
    np.testing.assert_allclose(dx[0, :, 0, 0], of_running / of_deviation, rtol=1e-5)
    np.testing.assert_allclose((beta, gamma), (np.full(3, 32), -32 * of_mean / of_deviation), rtol=1e-5)
    np.testing.assert_allclose(mean, -32 * of_gamma / of_deviation, rtol=1e-5)
    folded = 32 * of_gamma * of_mean - (x.asnumpy() * of_running.reshape(3, 1, 1)).sum((0, 2, 3))
    np.testing.assert_allclose(deviation, folded / of_deviation**2, rtol=1e-4, atol=1e-4)
    assert not np.any(running[:2])
    w = Tensor(rs.standard_normal((3, 2, 2, 2)).astype(np.float32))
    assert not np.any(slopes(Q.CorrectionMul(), w, *channels[:2])[2])
