"""Updates of the rows that indices name, against NumPy: rows that no index names stay, equal ones are added."""

import numpy as np
import pytest

import mindspore.nn as nn
from mindspore import Parameter, Tensor, context, ops
from mindspore.ops.operations import nn_ops as NN

MODES = pytest.mark.parametrize("mode", [context.GRAPH_MODE, context.PYNATIVE_MODE])
INDICES = np.array([2, 0], np.int32)


class Net(nn.Cell):
    def __init__(self, operator, slots):
        super().__init__()
        self.operator = operator
        self.count = len(slots)
        self.a, self.b, self.c, self.d = [Parameter(Tensor(each), name=f"s{i}") for i, each in enumerate((*slots, *[slots[0]] * (4 - len(slots))))]

    def construct(self, *others):
        return self.operator(*(self.a, self.b, self.c, self.d)[: self.count], *others)


def checked(operator, slots, others, rule, mode, indices=INDICES):
    """The Parameters after the operator, and what the rule gives for the named rows."""
    context.set_context(mode=mode)
    net = Net(operator, slots)
    net(*others)
    got = [each.asnumpy() for each in (net.a, net.b, net.c, net.d)[: len(slots)]]
    rows = rule(*[each[indices] for each in slots])
    for made, before, row in zip(got, slots, rows):
        expected = before.copy()
        expected[indices] = row
        assert np.allclose(made, expected, atol=1e-5)


def slots(count, rows=2):
    random = np.random.RandomState(0)
    return [random.rand(4, 3).astype(np.float32) + 1 for _ in range(count)], random.rand(rows, 3).astype(np.float32)


@MODES
@pytest.mark.parametrize("nesterov", [False, True])
def test_momentum(mode, nesterov):
    own, g = slots(2)

    def rule(p, v):
        v = v * 0.9 + g
        return p - 0.1 * (g + 0.9 * v if nesterov else v), v

    checked(NN.SparseApplyMomentum(use_nesterov=nesterov), own, (0.1, Tensor(g), Tensor(INDICES), 0.9), rule, mode)


@MODES
def test_rms_prop(mode):
    """Its gradient has a row for each of the Parameter."""
    own, g = slots(3, 4)
    indices = np.array([2, 0, 3, 1], np.int32)

    def rule(p, square, moment):
        square = square * 0.8 + g * g * 0.2
        moment = moment * 0.9 + 0.1 * g / np.sqrt(square + 1e-3)
        return p - moment, square, moment

    checked(NN.SparseApplyRMSProp(0.8, 0.9, 1e-3), own, (0.1, Tensor(g), Tensor(indices)), rule, mode, indices)


@MODES
def test_centered_rms_prop(mode):
    own, g = slots(4)
    own[2] += 3

    def rule(p, mean, square, moment):
        mean, square = mean * 0.8 + g * 0.2, square * 0.8 + g * g * 0.2
        moment = moment * 0.9 + 0.1 * g / np.sqrt(square - mean * mean + 1e-3)
        return p - moment, mean, square, moment

    checked(NN.SparseApplyCenteredRMSProp(), own, (0.1, 0.8, 0.9, 1e-3, Tensor(g), Tensor(INDICES)), rule, mode)


@MODES
def test_proximal_gradient_descent(mode):
    own, g = slots(1)

    def rule(p):
        p = p - 0.5 * g
        return (np.sign(p) * np.maximum(np.abs(p) - 0.5 * 0.1, 0) / (1 + 0.5 * 0.2),)

    checked(NN.SparseApplyProximalGradientDescent(), own, (0.5, 0.1, 0.2, Tensor(g), Tensor(INDICES)), rule, mode)


@MODES
def test_adagrad_of_dual_averages(mode):
    own, g = slots(3)

    def rule(p, total, squares):
        total, squares = total + g, squares + g * g
        shrunk = np.sign(total) * np.maximum(np.abs(total) - 0.01 * 2, 0)
        return -0.1 * shrunk / (0.2 * 2 * 0.1 + np.sqrt(squares)), total, squares

    checked(NN.SparseApplyAdagradDA(), own, (Tensor(g), Tensor(INDICES), 0.1, 0.01, 0.2, 2), rule, mode)


@MODES
def test_index_add_in_place(mode):
    context.set_context(mode=mode)

    class Net(nn.Cell):
        def __init__(self):
            super().__init__()
            self.var = Parameter(Tensor(np.ones((3, 2), np.float32)), name="var")

        def construct(self, indices, updates):
            return ops.inplace_index_add(self.var, indices, updates, 0)

    net = Net()
    made = net(Tensor(np.array([0, 2], np.int32)), Tensor(np.array([[1, 2], [3, 4]], np.float32)))
    assert made.asnumpy().tolist() == [[2, 3], [1, 1], [4, 5]] == net.var.asnumpy().tolist()
