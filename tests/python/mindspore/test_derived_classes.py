"""Classes of scripts that derive from the framework's own, and call in construct() what those hold; what older releases name otherwise."""

import numpy as np
import pytest
from cairn.ms import level

import mindspore as ms
from mindspore import Parameter, ParameterTuple, Tensor, nn
from mindspore.nn.loss.loss import _Loss
from mindspore.ops import composite as C
from mindspore.ops import functional as F
from mindspore.ops import operations as P


class Dense(nn.Dense):
    def construct(self, x):
        return self.activation(self.bias_add(self.matmul(x, self.weight), self.bias))


class Conv(nn.Conv2d):
    def construct(self, x):
        mean = P.ReduceMean(True)(self.weight, (1, 2, 3))
        return self.bias_add(self.conv2d(x, self.weight - mean), self.bias)


class Loss(_Loss):
    def construct(self, logits, labels):
        return self.mul(self.reduce_mean(self.cast(P.Square()(logits - labels), ms.float32), (0, 1)), 2.0)


class SummedLoss(nn.SoftmaxCrossEntropyWithLogits):
    def construct(self, logits, labels):
        hot = self.one_hot(labels, F.shape(logits)[-1], self.on_value, self.off_value)
        return self.reduce_sum(self.softmax_cross_entropy(logits, hot)[0])


class Pool(nn.MaxPool2d):
    def construct(self, x):
        return self.max_pool(x)


_apply = C.MultitypeFuncGraph("apply")


@_apply.register("Function", "Tensor", "Tensor", "Tensor", "Tensor", "Tensor")
def _apply_momentum(opt, momentum, rate, gradient, weight, moment):
    return F.depend(True, opt(weight, moment, rate, gradient, momentum))


class Momentum(nn.Momentum):
    """One hyper_map over all."""

    def construct(self, gradients):
        gradients = self.scale_grad(self.decay_weight(gradients))
        return self.hyper_map(F.partial(_apply, self.opt, self.momentum, self.get_lr()), gradients, self.params, self.moments)


@pytest.fixture(params=[0, 1], ids=["graph", "pynative"])
def mode(request):
    ms.set_context(mode=request.param)


def close(found, expected):
    np.testing.assert_allclose(found.asnumpy(), expected, rtol=1e-5, atol=1e-6)


def test_layers(mode):
    rng = np.random.RandomState(0)
    x = Tensor(rng.randn(4, 5).astype(np.float32))
    net = Dense(5, 3, activation="relu")
    close(net(x), np.maximum(x.asnumpy() @ net.weight.asnumpy().T + net.bias.asnumpy(), 0))
    image = Tensor(rng.randn(2, 3, 8, 8).astype(np.float32))
    own = Conv(3, 4, 3, stride=2, pad_mode="pad", padding=1, has_bias=True)
    plain = nn.Conv2d(3, 4, 3, stride=2, pad_mode="pad", padding=1, has_bias=True)
    weight = own.weight.asnumpy()
    plain.weight.set_data(Tensor(weight - weight.mean((1, 2, 3), keepdims=True)))
    close(own(image), plain(image).asnumpy())
    close(Pool(2, 2)(image), nn.MaxPool2d(2, 2)(image).asnumpy())


def test_losses(mode):
    x, y = np.ones((2, 3), np.float32), np.zeros((2, 3), np.float32)
    close(Loss()(Tensor(x), Tensor(y)), 2.0)
    labels = Tensor([0, 2], ms.int32)
    close(SummedLoss(sparse=True, reduction="none")(Tensor(x), labels), 2 * np.log(3.0))


def test_an_optimizer(mode):
    made = []
    for kind in (Momentum, nn.Momentum):
        w = Parameter(Tensor(np.array([1.0, -2.0, 3.0], np.float32)), name="w")
        optimizer = kind([w], nn.exponential_decay_lr(0.1, 0.5, 3, 1, 1), 0.9, weight_decay=0.01, loss_scale=2.0)
        for _ in range(3):
            optimizer((Tensor(np.array([0.5, 0.25, -1.0], np.float32)),))
        made.append(w.asnumpy())
        assert int(optimizer.global_step.asnumpy()[0]) == 3
    np.testing.assert_allclose(made[0], made[1], rtol=1e-6)


def test_what_a_base_holds_gives_way_to_what_a_script_assigns():
    class Doubled(nn.Dense):
        def __init__(self):
            super().__init__(2, 2, weight_init="ones", has_bias=False)
            self.matmul = nn.MatMul()

        def construct(self, x):
            return self.matmul(x, self.weight) * 2

    close(Doubled()(Tensor(np.ones((1, 2), np.float32))), [[4, 4]])
    assert not hasattr(nn.ReLU(), "matmul")


def test_one_number_is_the_gradient_of_a_result_of_one_element(mode):
    """BERT's loss has the shape (1,), the scale that it is seeded with ()."""

    class Net(nn.Cell):
        def __init__(self):
            super().__init__()
            self.w = Parameter(Tensor(np.array([3.0], np.float32)), name="w")

        def construct(self, x):
            return self.w * x

    net, x = Net(), Tensor(np.array([2.0], np.float32))
    gradient = C.GradOperation(get_by_list=True, sens_param=True)(net, ParameterTuple(net.trainable_params()))
    close(gradient(x, Tensor(4.0, ms.float32))[0], [8.0])
    with pytest.raises(TypeError):
        gradient(x, Tensor(np.ones(2, np.float32)))


@pytest.fixture
def of_old(monkeypatch):
    monkeypatch.setattr(level, "now", "0.5")


def test_a_condition_of_the_time_when_size_was_a_method(mode, of_old):
    class Net(nn.Cell):
        def construct(self, x, flag):
            if flag:
                x = x * 2
            return x

    close(Net()(Tensor(np.ones(2, np.float32)), Tensor(np.array([True]))), [2, 2])


def test_parameters_took_data_by_another_name():
    w = Parameter(Tensor(np.zeros(2, np.float32)), name="w")
    w.set_parameter_data(Tensor(np.ones(2, np.float32)))
    close(w, [1, 1])
