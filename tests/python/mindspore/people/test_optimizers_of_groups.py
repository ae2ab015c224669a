"""What optimizers tell of their groups, and optimizers of one's own built on what the base gives."""
import numpy as np
import pytest
import mindspore.nn as nn
from mindspore import Parameter, ParameterTuple, Tensor, context
from mindspore.ops import composite as C
from mindspore.ops import functional as F

MODES = [context.GRAPH_MODE, context.PYNATIVE_MODE]


def weights():
    """Two to be turned slowly and one of another shape."""
    slow = [Parameter(Tensor(np.full(shape, 2, np.float32)), name=f"slow.w{i}") for i, shape in enumerate([(2, 3), (4,)])]
    return slow, [Parameter(Tensor(np.full((5, 2), 2, np.float32)), name="fast.w")]


def ones(parameters):
    return tuple(Tensor(np.ones(each.shape, np.float32)) for each in parameters)


def test_a_parameter_is_looked_for_among_those_of_other_shapes():
    slow, fast = weights()
    assert slow[1] in slow and fast[0] not in slow
    assert (slow[0] == slow[0]).asnumpy().all()


def test_a_tuple_of_parameters_keeps_repeated_ones():
    slow, _ = weights()
    assert len(ParameterTuple([slow[0], slow[1], slow[0]])) == 3


@pytest.mark.parametrize("mode", MODES)
def test_a_rate_for_each_parameter(mode):
    context.set_context(mode=mode)
    slow, fast = weights()
    optimizer = nn.Momentum([{"params": slow, "lr": 0.25}, {"params": fast}], learning_rate=0.5, momentum=0.0)
    assert optimizer.is_group and optimizer.is_group_lr and not optimizer.dynamic_lr and not optimizer.is_group_params_ordered
    assert isinstance(optimizer.learning_rate, ParameterTuple) and len(optimizer.learning_rate) == 3
    for rate, each in zip(optimizer.learning_rate, optimizer.parameters):
        assert rate.asnumpy() == (0.25 if each in slow else 0.5)
        assert rate.name == optimizer.get_lr_parameter(each).name == ("learning_rate_group_0" if each in slow else "learning_rate")
    optimizer(ones(optimizer.parameters))
    assert (slow[1].asnumpy() == 1.75).all() and (fast[0].asnumpy() == 1.5).all()


@pytest.mark.parametrize("mode", MODES)
def test_lists_of_rates_beside_numbers(mode):
    context.set_context(mode=mode)
    slow, fast = weights()
    optimizer = nn.SGD([{"params": slow, "lr": (0.25, 0.5, 1.0)}, {"params": fast}], learning_rate=0.5)
    assert optimizer.dynamic_lr and isinstance(optimizer.learning_rate, nn.CellList)
    held = [each.learning_rate.asnumpy() for each in optimizer.learning_rate]
    np.testing.assert_array_equal(held[0], np.float32([0.25, 0.5, 1]))
    assert held[2] == 0.5
    for _ in range(2):
        optimizer(ones(optimizer.parameters))
    assert (slow[0].asnumpy() == 1.25).all() and (fast[0].asnumpy() == 1).all()
    assert optimizer.global_step.asnumpy() == 2


def test_lists_of_two_sizes():
    slow, fast = weights()
    with pytest.raises(ValueError):
        nn.Momentum([{"params": slow, "lr": (0.1, 0.2, 0.3)}, {"params": fast}], learning_rate=(0.1, 0.2), momentum=0.9)


def test_arrays_are_no_rates():
    slow, fast = weights()
    with pytest.raises(TypeError):
        nn.Momentum([{"params": slow, "lr": np.array(1)}, {"params": fast}], learning_rate=0.3, momentum=0.9)
    with pytest.raises(TypeError):
        nn.Momentum([{"params": slow, "weight_decay": np.array(1)}, {"params": fast}], learning_rate=0.3, momentum=0.9)


def test_decays_in_an_order_of_ones_own():
    slow, fast = weights()
    groups = [{"params": fast}, {"params": slow, "weight_decay": 0.5}, {"order_params": slow + fast}]
    optimizer = nn.SGD(groups, learning_rate=0.1, weight_decay=0.0)
    assert optimizer.is_group_params_ordered and not optimizer.is_group_lr
    assert [each.name for each in optimizer.parameters] == ["slow.w0", "slow.w1", "fast.w"]
    assert [float(each) for each in optimizer.weight_decay] == [0.5, 0.5, 0.0]
    assert optimizer.decay_flags == (True, True, False)
    assert [float(each) for each in optimizer.get_weight_decay()] == [0.5, 0.5, 0.0]


def test_a_decay_for_all_times_the_loss_scale():
    gamma = Parameter(Tensor(np.ones(2, np.float32)), name="norm.gamma")
    slow, _ = weights()
    optimizer = nn.Momentum([*slow, gamma], 0.1, 0.9, weight_decay=0.25, loss_scale=8.0)
    assert isinstance(optimizer.weight_decay, Tensor) and float(optimizer.get_weight_decay()) == 2.0
    assert optimizer.decay_flags == (True, True, False) and optimizer.exec_weight_decay
    assert float(optimizer.reciprocal_scale) == 0.125 and optimizer.need_scale


move = C.MultitypeFuncGraph("move")


@move.register("Tensor", "Tensor", "Tensor", "Tensor")
def _move(rate, decay, parameter, gradient):
    return F.assign_sub(parameter, (gradient + parameter * decay) * rate)


class Own(nn.Optimizer):
    def construct(self, gradients):
        rate, decay = self.get_lr(), self.get_weight_decay()
        gradients = self.scale_grad(gradients)
        if self.is_group_lr:
            return self.hyper_map(F.partial(move), rate, decay, self.parameters, gradients)
        return self.map_(F.partial(move, rate, decay), self.parameters, gradients)


@pytest.mark.parametrize("mode", MODES)
def test_an_optimizer_of_ones_own(mode):
    context.set_context(mode=mode)
    slow, fast = weights()
    Own(0.5, slow + fast, weight_decay=0.25)(ones(slow + fast))
    assert (slow[0].asnumpy() == 1.25).all() and (fast[0].asnumpy() == 1.25).all()


@pytest.mark.parametrize("mode", MODES)
def test_an_optimizer_of_ones_own_with_groups(mode):
    context.set_context(mode=mode)
    slow, fast = weights()
    optimizer = Own(0.5, [{"params": slow, "lr": 0.25}, {"params": fast, "weight_decay": 0.5}])
    optimizer(ones(optimizer.parameters))
    assert (slow[0].asnumpy() == 1.75).all() and (fast[0].asnumpy() == 1).all()
