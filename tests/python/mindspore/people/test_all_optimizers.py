"""All optimizers train; groups, states, schedules, refusals."""

import numpy as np
import pytest
import mindspore as ms
import mindspore.nn as nn
from mindspore import Tensor, Parameter, ParameterTuple, context
from mindspore.nn import optim
from mindspore.nn.optim import Optimizer
from mindspore.ops import operations as P

context.set_context(mode=context.GRAPH_MODE, device_target="CPU")


class Net(nn.Cell):

    def __init__(self):
        super().__init__()
        self.w = Parameter(Tensor(np.ones([4, 2], np.float32)), name="weight")
        self.b = Parameter(Tensor(np.ones([4], np.float32)), name="bias")
        self.matmul, self.add = (P.MatMul(transpose_b=True), P.BiasAdd())

    def construct(self, x):
        return self.add(self.matmul(x, self.w), self.b)


X = Tensor(np.ones([3, 2], np.float32))
LABEL = Tensor(np.eye(4, dtype=np.float32)[:3])


def train(make, steps=2):
    net = Net()
    opt = make(net)
    step = nn.TrainOneStepCell(nn.WithLossCell(net, nn.SoftmaxCrossEntropyWithLogits()), opt)
    step.set_train()
    for _ in range(steps):
        step(X, LABEL)
    return (net, opt)


OPTS = [
    lambda n: nn.SGD(n.trainable_params(), 0.1, momentum=0.9, nesterov=True),
    lambda n: nn.SGD(n.trainable_params(), 0.1, dampening=0.5, momentum=0.5, weight_decay=0.1),
    lambda n: nn.Momentum(n.trainable_params(), 0.1, 0.9, use_nesterov=True),
    lambda n: nn.Adam(n.trainable_params(), 0.1, use_nesterov=True),
    lambda n: nn.Adam(n.trainable_params(), 0.1, use_amsgrad=True),
    lambda n: nn.Adam(n.trainable_params(), 0.1, loss_scale=128.0, weight_decay=0.1),
    lambda n: nn.AdamWeightDecay(n.trainable_params(), 0.1, weight_decay=0.9),
    lambda n: nn.AdamOffload(n.trainable_params(), 0.1),
    lambda n: nn.LazyAdam(n.trainable_params(), 0.1),
    lambda n: nn.FTRL(n.trainable_params(), l1=0.1, l2=0.1),
    lambda n: nn.RMSProp(n.trainable_params(), 0.1, momentum=0.5),
    lambda n: nn.RMSProp(n.trainable_params(), 0.1, centered=True),
    lambda n: nn.Adagrad(n.trainable_params(), 0.1),
    lambda n: nn.ProximalAdagrad(n.trainable_params()),
    lambda n: nn.Lamb(n.trainable_params(), 0.1, weight_decay=0.01),
    lambda n: nn.LARS(nn.Momentum(n.trainable_params(), 0.1, 0.9)),
    lambda n: nn.AdaMax(n.trainable_params(), 0.1),
    lambda n: nn.ASGD(n.trainable_params(), 0.1),
    lambda n: nn.Rprop(n.trainable_params(), 0.1),
    lambda n: nn.AdaFactor(n.trainable_params(), learning_rate=0.1, relative_step=False, warmup_init=False),
    lambda n: nn.Adadelta(n.trainable_params(), 0.1),
]


@pytest.mark.parametrize("index", range(len(OPTS)))
@pytest.mark.parametrize("mode", [context.GRAPH_MODE, context.PYNATIVE_MODE])
def test_trains(index, mode):
    context.set_context(mode=mode)
    net, opt = train(OPTS[index])
    assert np.isfinite(net.w.asnumpy()).all() and (not (net.b.asnumpy() == 1).all())


def test_group_parameters():
    net = Net()
    groups = [{"params": [net.w], "lr": 0.01, "weight_decay": 0.02}, {"params": [net.b]}, {"order_params": [net.b, net.w]}]
    opt = nn.Momentum(groups, 0.1, 0.9, weight_decay=0.0)
    assert opt.is_group and opt.is_group_lr and opt.is_group_params_ordered
    assert [p.name for p in opt.parameters] == ["bias", "weight"]
    assert [round(float(each.data.asnumpy()), 4) for each in opt.learning_rate] == [0.1, 0.01]
    assert list(opt.weight_decay) == [0.0, 0.02]
    assert float(opt.get_lr_parameter(net.w).asnumpy()) == pytest.approx(0.01)
    assert len(opt.get_lr_parameter([net.w, net.b])) == 2


def test_group_dynamic_lr():
    net = Net()
    groups = [{"params": [net.w], "lr": np.array([0.3, 0.2, 0.1]).astype(np.float32)}, {"params": [net.b]}]
    opt = nn.SGD(groups, learning_rate=Tensor(np.array([0.1, 0.2, 0.3]).astype(np.float32)))
    assert opt.is_group_lr and opt.dynamic_lr
    for param, lr in zip(opt.parameters, opt.learning_rate):
        np.testing.assert_allclose(lr.learning_rate.asnumpy(), [0.3, 0.2, 0.1] if param is net.w else [0.1, 0.2, 0.3])


def test_grad_centralization():
    net = Net()
    opt = nn.Momentum([{"params": [net.w], "grad_centralization": True}, {"params": [net.b]}], 0.1, 0.9)
    assert opt.is_group and tuple(opt.grad_centralization_flags) == (True, False)


def test_dynamic_weight_decay():

    class Decay(nn.Cell):

        def __init__(self):
            super().__init__()

        def construct(self, step):
            return P.Cast()(step, ms.float32) * 0.1

    net = Net()
    opt = nn.Momentum(net.trainable_params(), 0.1, 0.0, weight_decay=Decay())
    assert opt.dynamic_weight_decay
    zeros = (Tensor(np.zeros([4, 2], np.float32)), Tensor(np.zeros(4, np.float32)))
    opt(zeros)
    opt(zeros)
    np.testing.assert_allclose(net.w.asnumpy(), np.full((4, 2), 1 - 0.1 * 0.1), 1e-05)


def test_state_names():
    net = Net()
    assert sorted((p.name for p in nn.Adam(net.trainable_params()).get_parameters()))[:2] == ["beta1_power", "beta2_power"]
    names = [p.name for p in nn.Momentum(net.trainable_params(), 0.1, 0.9).get_parameters()]
    assert {"learning_rate", "momentum", "moments.weight", "moments.bias"} <= set(names)
    names = [p.name for p in nn.Momentum(net.trainable_params(), [0.1, 0.2], 0.9).get_parameters()]
    assert "global_step" in names
    names = [p.name for p in nn.SGD(net.trainable_params(), 0.1).get_parameters()]
    assert {"accum.weight", "stat.weight"} <= set(names)
    names = [p.name for p in nn.RMSProp(net.trainable_params(), 0.1).get_parameters()]
    assert {"mean_square.weight", "moment.weight"} <= set(names) or {"mean_square.weight", "moments.weight"} <= set(names)


@pytest.mark.parametrize(
    "make, error",
    [
        (lambda p: nn.Adam([], 0.1), ValueError),
        (lambda p: nn.Adam(None, 0.1), (TypeError, ValueError)),
        (lambda p: nn.Adam("a", 0.1), (TypeError, ValueError)),
        (lambda p: nn.Adam([1, 2]), TypeError),
        (lambda p: nn.Adam(p, "0.1"), TypeError),
        (lambda p: nn.Adam(p, -0.1), ValueError),
        (lambda p: nn.Adam(p, beta1=1.0), ValueError),
        (lambda p: nn.Adam(p, beta1="a"), TypeError),
        (lambda p: nn.Adam(p, eps=-1e-08), ValueError),
        (lambda p: nn.Adam(p, eps=0.0), ValueError),
        (lambda p: nn.Adam(p, use_locking=1), TypeError),
        (lambda p: nn.Adam(p, weight_decay=-1.0), ValueError),
        (lambda p: nn.Adam(p, weight_decay="a"), TypeError),
        (lambda p: nn.Adam(p, loss_scale=0.0), ValueError),
        (lambda p: nn.Adam(p, loss_scale="a"), TypeError),
        (lambda p: nn.Momentum(p, 0.1, -0.9), ValueError),
        (lambda p: nn.Momentum(p, 0.1, 0.9, use_nesterov="x"), TypeError),
        (lambda p: nn.SGD(p, 0.1, dampening=-1.0), ValueError),
        (lambda p: nn.SGD(p, 0.1, momentum=0.0, nesterov=True), ValueError),
        (lambda p: nn.SGD(p, 0.1, momentum=0.9, dampening=0.1, nesterov=True), ValueError),
        (lambda p: nn.SGD(p, 0.1, nesterov=1), TypeError),
        (lambda p: nn.FTRL(p, initial_accum=-0.1), ValueError),
        (lambda p: nn.FTRL(p, lr_power=0.5), ValueError),
        (lambda p: nn.FTRL(p, learning_rate=[0.1, 0.2]), ValueError),
        (lambda p: nn.RMSProp(p, decay=-0.1), ValueError),
        (lambda p: nn.RMSProp(p, centered="a"), TypeError),
        (lambda p: nn.RMSProp(p, epsilon="a"), TypeError),
        (lambda p: nn.Lamb(p, 0.1, eps=-1.0), ValueError),
        (lambda p: nn.Lamb(p, 0.1, beta2=2.0), ValueError),
        (lambda p: nn.LARS(3), TypeError),
        (lambda p: nn.ProximalAdagrad(p, accum=-0.1), ValueError),
        (lambda p: nn.ProximalAdagrad(p, l1="a"), TypeError),
        (lambda p: nn.Adagrad(p, accum=-1.0), ValueError),
        (lambda p: nn.Adagrad(p, update_slots="x"), TypeError),
        (lambda p: nn.AdaFactor(p, learning_rate=0.1, relative_step=True), ValueError),
        (lambda p: nn.AdaFactor(p, beta1="x"), TypeError),
        (lambda p: nn.AdaMax(p, eps=0.0), ValueError),
        (lambda p: nn.Rprop(p, etas=(1.0,)), (TypeError, ValueError)),
        (lambda p: nn.ASGD(p, lambd="x"), TypeError),
        (lambda p: nn.Adam([{"params": p}, {"params": p}]), (RuntimeError, ValueError)),
        (lambda p: nn.Adam([{"lr": 0.1}]), (KeyError, ValueError)),
        (lambda p: nn.Adam([{"params": p, "what": 1}]), (KeyError, ValueError)),
        (lambda p: nn.Adam([{"params": p[:1]}, {"order_params": p}]), ValueError),
        (lambda p: nn.Adam([{"params": []}]), ValueError),
        (lambda p: nn.Momentum(p, [], 0.9), (ValueError, TypeError)),
        (lambda p: nn.Momentum(p, Tensor(np.ones((2, 2), np.float32)), 0.9), ValueError),
    ],
)
def test_refusals(make, error):
    with pytest.raises(error):
        make(Net().trainable_params())


def test_base_optimizer():
    net = Net()

    class Own(Optimizer):

        def __init__(self, params, lr):
            super().__init__(lr, params)

        def construct(self, grads):
            lr = self.get_lr()
            for p, g in zip(self.parameters, grads):
                P.AssignSub()(p, g * lr)
            return True

    opt = Own(net.trainable_params(), 0.5)
    opt((Tensor(np.ones([4, 2], np.float32)), Tensor(np.ones(4, np.float32))))
    assert (net.w.asnumpy() == 0.5).all()
    assert isinstance(opt.get_lr(), Tensor) and opt.target in ("CPU", "Ascend", "GPU")
    assert opt.unique is True
    with pytest.raises((TypeError, ValueError)):
        Own(net.trainable_params(), None)


def test_schedules():
    step = Tensor(2, ms.int32)
    c = nn.ExponentialDecayLR(0.1, 0.9, 4)
    assert float(c(step).asnumpy()) == pytest.approx(0.1 * 0.9**0.5, rel=1e-05)
    assert float(nn.ExponentialDecayLR(0.1, 0.9, 4, True)(step).asnumpy()) == pytest.approx(0.1)
    assert float(nn.NaturalExpDecayLR(0.1, 0.9, 4, True)(step).asnumpy()) == pytest.approx(0.1 * np.exp(-0.9 * 0), rel=1e-05)
    assert float(nn.InverseDecayLR(0.1, 0.9, 4, True)(step).asnumpy()) == pytest.approx(0.1)
    assert float(nn.CosineDecayLR(0.01, 0.1, 4)(step).asnumpy()) == pytest.approx(0.055, rel=1e-05)
    assert float(nn.PolynomialDecayLR(0.1, 0.01, 4, 0.5)(step).asnumpy()) == pytest.approx((0.1 - 0.01) * 0.5**0.5 + 0.01, rel=1e-05)
    assert float(nn.WarmUpLR(0.1, 4)(step).asnumpy()) == pytest.approx(0.05, rel=1e-05)
    for make, error in (
        (lambda: nn.ExponentialDecayLR(-0.1, 0.9, 4), ValueError),
        (lambda: nn.ExponentialDecayLR("a", 0.9, 4), TypeError),
        (lambda: nn.ExponentialDecayLR(0.1, 0.9, 4.5), TypeError),
        (lambda: nn.CosineDecayLR(0.1, 0.01, 4), ValueError),
        (lambda: nn.CosineDecayLR(0.1, 0.2, -4), ValueError),
        (lambda: nn.PolynomialDecayLR(0.1, 0.01, 4, 0), (TypeError, ValueError)),
        (lambda: nn.PolynomialDecayLR(0.1, 0.01, 4, -0.5), ValueError),
        (lambda: nn.WarmUpLR(0.1, 0), ValueError),
        (lambda: nn.ExponentialDecayLR(0.1, 0.9, 4, 1), TypeError),
    ):
        with pytest.raises(error):
            make()


def test_lists_of_rates():
    np.testing.assert_allclose(nn.piecewise_constant_lr([2, 5, 10], [0.1, 0.05, 0.01]), [0.1] * 2 + [0.05] * 3 + [0.01] * 5)
    assert len(nn.exponential_decay_lr(0.1, 0.9, 6, 2, 1)) == 6
    np.testing.assert_allclose(nn.exponential_decay_lr(0.1, 0.9, 6, 2, 1), [0.1, 0.1, 0.09, 0.09, 0.081, 0.081])
    np.testing.assert_allclose(nn.warmup_lr(0.1, 6, 2, 2), [0.0, 0.0, 0.05, 0.05, 0.1, 0.1])
    np.testing.assert_allclose(nn.cosine_decay_lr(0.01, 0.1, 6, 2, 2), [0.1, 0.1, 0.055, 0.055, 0.01, 0.01], 1e-05)
    np.testing.assert_allclose(nn.polynomial_decay_lr(0.1, 0.01, 6, 2, 2, 0.5), [0.1, 0.1, 0.07363961, 0.07363961, 0.01, 0.01], 1e-05)
    np.testing.assert_allclose(nn.inverse_decay_lr(0.1, 0.5, 6, 1, 1, True), [0.1 / (1 + 0.5 * i) for i in range(6)], 1e-05)
    np.testing.assert_allclose(
        nn.natural_exp_decay_lr(0.1, 0.9, 6, 2, 2),
        [0.1, 0.1, nn.natural_exp_decay_lr(0.1, 0.9, 6, 2, 2)[2]] + nn.natural_exp_decay_lr(0.1, 0.9, 6, 2, 2)[3:],
        1e-05,
    )
    for make, error in (
        (lambda: nn.piecewise_constant_lr([2, 1], [0.1, 0.2]), ValueError),
        (lambda: nn.piecewise_constant_lr([2], [0.1, 0.2]), ValueError),
        (lambda: nn.piecewise_constant_lr([2], [1]), TypeError),
        (lambda: nn.piecewise_constant_lr(2, [0.1]), TypeError),
        (lambda: nn.exponential_decay_lr(0.1, "a", 6, 2, 1), TypeError),
        (lambda: nn.exponential_decay_lr(0.1, 0.9, -6, 2, 1), ValueError),
        (lambda: nn.exponential_decay_lr(0.1, 0.9, 6, 2, 1, 3), TypeError),
        (lambda: nn.cosine_decay_lr(0.1, 0.01, 6, 2, 2), ValueError),
        (lambda: nn.warmup_lr("a", 6, 2, 2), TypeError),
    ):
        with pytest.raises(error):
            make()
