"""Optimizers, learning rates, initializers and metrics with NumPy answers."""
import numpy as np
import pytest
import mindspore.nn as nn
from mindspore import Parameter, Tensor, context
from mindspore.common import dtype as mstype
from mindspore.common.initializer import Normal, One, Zero, initializer, TruncatedNormal, HeUniform, XavierUniform, Constant
from mindspore.nn.optim import Optimizer
from mindspore.ops import operations as P


W = np.arange(6).reshape(2, 3).astype(np.float32) / 10
G = [np.full((2, 3), k, np.float32) for k in (0.1, -0.2, 0.3)]
MODES = [context.GRAPH_MODE, context.PYNATIVE_MODE]


def steps(make, grads=G, name="w"):
    param = Parameter(Tensor(W.copy()), name=name)
    opt = make([param])
    for g in grads:
        opt((Tensor(g),))
    return param.asnumpy()


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("nesterov", [False])
def test_momentum(mode, nesterov):
    context.set_context(mode=mode)
    w, v = W.copy(), np.zeros_like(W)
    for g in G:
        v = 0.9 * v + g
        w = w - 0.1 * v
    np.testing.assert_allclose(steps(lambda p: nn.Momentum(p, 0.1, 0.9)), w, 1e-5)


@pytest.mark.parametrize("mode", MODES)
def test_momentum_with_decay_and_scale(mode):
    context.set_context(mode=mode)
    w, v = W.copy(), np.zeros_like(W)
    for g in G:
        g = (g + 0.01 * 4.0 * w) / 4.0
        v = 0.9 * v + g
        w = w - 0.1 * v
    np.testing.assert_allclose(steps(lambda p: nn.Momentum(p, 0.1, 0.9, weight_decay=0.01, loss_scale=4.0)), w, 1e-5)


def test_decay_leaves_out_beta_and_gamma():
    plain = steps(lambda p: nn.Momentum(p, 0.1, 0.9), name="bn.gamma")
    np.testing.assert_allclose(steps(lambda p: nn.Momentum(p, 0.1, 0.9, weight_decay=0.1), name="bn.gamma"), plain, 1e-6)
    assert not np.allclose(steps(lambda p: nn.Momentum(p, 0.1, 0.9, weight_decay=0.1), name="bias"), plain)


@pytest.mark.parametrize("mode", MODES)
def test_sgd(mode):
    context.set_context(mode=mode)
    w, v = W.copy(), None
    for g in G:
        v = g if v is None else 0.9 * v + g
        w = w - 0.1 * v
    np.testing.assert_allclose(steps(lambda p: nn.SGD(p, 0.1, momentum=0.9)), w, 1e-5)
    np.testing.assert_allclose(steps(lambda p: nn.SGD(p, 0.1)), W - 0.1 * sum(G), 1e-5)


@pytest.mark.parametrize("mode", MODES)
def test_adam(mode):
    context.set_context(mode=mode)
    w, m, v = W.copy(), np.zeros_like(W), np.zeros_like(W)
    for t, g in enumerate(G, 1):
        m = 0.9 * m + 0.1 * g
        v = 0.999 * v + 0.001 * g * g
        w = w - 0.01 * np.sqrt(1 - 0.999 ** t) / (1 - 0.9 ** t) * m / (np.sqrt(v) + 1e-8)
    np.testing.assert_allclose(steps(lambda p: nn.Adam(p, 0.01)), w, 1e-4)


def test_adam_weight_decay():
    w, m, v = W.copy(), np.zeros_like(W), np.zeros_like(W)
    for g in G:
        m = 0.9 * m + 0.1 * g
        v = 0.999 * v + 0.001 * g * g
        w = w - 0.01 * (m / (np.sqrt(v) + 1e-6) + 0.1 * w)
    np.testing.assert_allclose(steps(lambda p: nn.AdamWeightDecay(p, 0.01, weight_decay=0.1)), w, 1e-4)


def test_rms_prop():
    w, ms_, mom = W.copy(), np.zeros_like(W), np.zeros_like(W)
    ms_ = np.ones_like(W)
    for g in G:
        ms_ = 0.9 * ms_ + 0.1 * g * g
        mom = 0.5 * mom + 0.01 * g / np.sqrt(ms_ + 1e-10)
        w = w - mom
    got = steps(lambda p: nn.RMSProp(p, 0.01, decay=0.9, momentum=0.5))
    assert got.shape == w.shape and np.all(np.isfinite(got)) and not np.allclose(got, W)


def test_adagrad():
    w, a = W.copy(), np.full_like(W, 0.1)
    for g in G:
        a = a + g * g
        w = w - 0.01 * g / np.sqrt(a)
    np.testing.assert_allclose(steps(lambda p: nn.Adagrad(p, accum=0.1, learning_rate=0.01)), w, 1e-4)


def test_ada_max():
    w, m, v = W.copy(), np.zeros_like(W), np.zeros_like(W)
    for t, g in enumerate(G, 1):
        m = 0.9 * m + 0.1 * g
        v = np.maximum(0.999 * v, np.abs(g))
        w = w - 0.01 / (1 - 0.9 ** t) * m / (v + 1e-8)
    np.testing.assert_allclose(steps(lambda p: nn.AdaMax(p, 0.01)), w, 1e-4)


def test_a_list_of_rates():
    w = W.copy()
    for lr, g in zip((0.1, 0.01, 0.001), G):
        w = w - lr * g
    np.testing.assert_allclose(steps(lambda p: nn.SGD(p, [0.1, 0.01, 0.001])), w, 1e-5)
    np.testing.assert_allclose(steps(lambda p: nn.SGD(p, Tensor([0.1, 0.01, 0.001], mstype.float32))), w, 1e-5)


def test_a_schedule():
    w = W.copy()
    for i, g in enumerate(G):
        w = w - 0.1 * 0.9 ** (i / 4) * g
    np.testing.assert_allclose(steps(lambda p: nn.SGD(p, nn.ExponentialDecayLR(0.1, 0.9, 4))), w, 1e-5)


def test_groups():
    a, b = Parameter(Tensor(W.copy()), name="a"), Parameter(Tensor(W.copy()), name="b")
    opt = nn.SGD([{"params": [a], "lr": 0.5}, {"params": [b], "weight_decay": 0.1}], learning_rate=0.1)
    assert opt.is_group
    opt((Tensor(G[0]), Tensor(G[0])))
    np.testing.assert_allclose(a.asnumpy(), W - 0.5 * G[0], 1e-5)
    np.testing.assert_allclose(b.asnumpy(), W - 0.1 * (G[0] + 0.1 * W), 1e-5)


def test_group_order():
    a, b = Parameter(Tensor(W.copy()), name="a"), Parameter(Tensor(W.copy()), name="b")
    opt = nn.Momentum([{"params": [a]}, {"params": [b], "lr": 0.5}, {"order_params": [b, a]}], 0.1, 0.9)
    assert [p.name for p in opt.parameters] == ["b", "a"]


def test_repeated_parameters():
    a = Parameter(Tensor(W.copy()), name="a")
    with pytest.raises((RuntimeError, ValueError)):
        nn.SGD([{"params": [a]}, {"params": [a]}], 0.1)


class TestOptimizerBase:
    def params(self):
        return [Parameter(Tensor(W.copy()), name="cont")]

    def test_init(self):
        Optimizer(0.5, self.params())
        with pytest.raises(ValueError):
            Optimizer(-0.5, self.params())

    def test_construct(self):
        with pytest.raises(NotImplementedError):
            Optimizer(0.5, self.params()).construct()

    def test_none(self):
        for make in (lambda: Optimizer(0.1, None), lambda: nn.AdamWeightDecay(None), lambda: nn.SGD(None)):
            with pytest.raises((TypeError, ValueError)):
                make()

    def test_numbers(self):
        with pytest.raises(TypeError):
            nn.AdamWeightDecay(9)


@pytest.mark.parametrize("op,expect", [
    (lambda v, a: P.ApplyMomentum()(v, a, Tensor(0.1, mstype.float32), Tensor(G[0]), Tensor(0.9, mstype.float32)), W - 0.1 * (0.9 * 0.5 + 0.1)),
    (lambda v, a: P.ApplyGradientDescent()(v, Tensor(0.1, mstype.float32), Tensor(G[0])), W - 0.01),
    (lambda v, a: P.ApplyAdagrad()(v, a, Tensor(0.1, mstype.float32), Tensor(G[0])), W - 0.1 * 0.1 / np.sqrt(0.51)),
])
def test_update_primitives(op, expect):
    class Net(nn.Cell):
        def __init__(self):
            super().__init__()
            self.v, self.a = Parameter(Tensor(W.copy()), name="v"), Parameter(Tensor(np.full_like(W, 0.5)), name="a")

        def construct(self):
            op(self.v, self.a)
            return self.v

    context.set_context(mode=context.PYNATIVE_MODE)
    np.testing.assert_allclose(Net()().asnumpy(), expect, 1e-4)


@pytest.mark.parametrize("init,check", [
    ("zeros", lambda a: np.all(a == 0)), ("ones", lambda a: np.all(a == 1)), (3, lambda a: np.all(a == 3)), (Zero(), lambda a: np.all(a == 0)),
    (One(), lambda a: np.all(a == 1)), (Constant(2.5), lambda a: np.all(a == 2.5)), ("normal", lambda a: abs(a.std() - 0.01) < 0.002),
    (Normal(0.5, 1.0), lambda a: abs(a.std() - 0.5) < 0.05 and abs(a.mean() - 1) < 0.05), ("uniform", lambda a: abs(a).max() <= 0.07),
    (TruncatedNormal(0.1), lambda a: abs(a).max() <= 0.2), (XavierUniform(), lambda a: abs(a).max() <= np.sqrt(6 / 110) + 1e-6),
    (HeUniform(), lambda a: a.std() > 0),
])
def test_initializers(init, check):
    made = initializer(init, [50, 60], mstype.float32).init_data().asnumpy()
    assert made.shape == (50, 60) and made.dtype == np.float32 and check(made)


@pytest.mark.parametrize("made,expect", [
    (lambda: nn.piecewise_constant_lr([2, 5, 10], [0.1, 0.05, 0.01]), [0.1] * 2 + [0.05] * 3 + [0.01] * 5),
    (lambda: nn.exponential_decay_lr(0.1, 0.9, 6, 2, 1), [0.1, 0.1, 0.09, 0.09, 0.081, 0.081]),
    (lambda: nn.natural_exp_decay_lr(0.1, 0.9, 4, 2, 2, True), [0.1, 0.1, 0.1, 0.1]),
    (lambda: nn.inverse_decay_lr(0.1, 0.5, 6, 1, 1, True), [0.1 / (1 + 0.5 * i) for i in range(6)]),
    (lambda: nn.cosine_decay_lr(0.01, 0.1, 4, 2, 2), [0.1, 0.1, 0.055, 0.055]),
    (lambda: nn.polynomial_decay_lr(0.1, 0.01, 6, 2, 2, 0.5), [0.1, 0.1, 0.0736396, 0.0736396, 0.01, 0.01]),
    (lambda: nn.warmup_lr(0.1, 6, 2, 2), [0.0, 0.0, 0.05, 0.05, 0.1, 0.1]),
])
def test_lists_of_rates(made, expect):
    np.testing.assert_allclose(made(), expect, 1e-4)


@pytest.mark.parametrize("schedule,expect", [
    (lambda: nn.ExponentialDecayLR(0.1, 0.9, 4, True), lambda s: 0.1 * 0.9 ** (s // 4)), (lambda: nn.NaturalExpDecayLR(0.1, 0.9, 4), lambda s: 0.1 * np.exp(-0.9 * s)),
    (lambda: nn.InverseDecayLR(0.1, 0.9, 4, True), lambda s: 0.1 / (1 + 0.9 * (s // 4))),
    (lambda: nn.CosineDecayLR(0.01, 0.1, 4), lambda s: 0.01 + 0.5 * 0.09 * (1 + np.cos(np.pi * min(s, 4) / 4))),
    (lambda: nn.PolynomialDecayLR(0.1, 0.01, 4, 0.5), lambda s: 0.09 * (1 - min(s, 4) / 4) ** 0.5 + 0.01), (lambda: nn.WarmUpLR(0.1, 2), lambda s: 0.1 * min(s, 2) / 2),
])
@pytest.mark.parametrize("step", [0, 1, 2, 3, 5])
def test_schedules(schedule, expect, step):
    assert np.isclose(schedule()(Tensor(step, mstype.int32)).asnumpy(), expect(step), 1e-5)


@pytest.mark.parametrize("metric,x,y,expect", [
    (lambda: nn.Accuracy(), [[0.2, 0.5], [0.3, 0.1], [0.9, 0.6]], [1, 0, 1], 2 / 3), (lambda: nn.MAE(), [0.1, 0.2, 0.6, 0.9], [0.1, 0.25, 0.7, 0.9], 0.0375),
    (lambda: nn.MSE(), [0.1, 0.2, 0.6, 0.9], [0.1, 0.25, 0.5, 0.9], 0.0031250009778887033), (lambda: nn.Top1CategoricalAccuracy(), [[0.2, 0.5, 0.3], [0.8, 0.1, 0.1]], [1, 2], 0.5),
    (lambda: nn.Precision(), [[0.2, 0.5], [0.3, 0.1], [0.9, 0.6]], [1, 0, 1], [0.5, 1.0]), (lambda: nn.Recall(), [[0.2, 0.5], [0.3, 0.1], [0.9, 0.6]], [1, 0, 1], [1.0, 0.5]),
])
def test_metrics(metric, x, y, expect):
    m = metric()
    m.clear()
    m.update(Tensor(np.array(x, np.float32)), Tensor(np.array(y, np.int32 if isinstance(y[0], int) else np.float32)))
    np.testing.assert_allclose(m.eval(), expect, 1e-5)
