"""Graph mode: gradients taken inside captured functions equal those of eager mode and finite differences."""

import numpy as np
import pytest
from cairn.ms import capture, core, gradient
from graphs import Function, both, captured, same, tensor, total
from mindspore import Parameter, ParameterTuple, Tensor
from mindspore.nn import Cell
from mindspore.ops import composite as C

X = tensor(0.5, -1.5, 2)


def slope(function, *positions):
    """A function that returns the gradients of the sum of function."""

    def run(*inputs):
        value, made, _ = gradient.differentiate(lambda *given: total(function(*given)), inputs, {}, positions or (0,))
        return (value, *made)

    return run


def close_to_differences(function, x, step=1e-3):
    made = captured(Function(slope(function)), x)[1]
    wanted = np.zeros(x.shape)
    for index in np.ndindex(*x.shape):
        ends = []
        for sign in (1, -1):
            moved = x.asnumpy().astype(np.float64)
            moved[index] += sign * step
            ends.append(total(function(Tensor(moved))).asnumpy().item())
        wanted[index] = (ends[0] - ends[1]) / (2 * step)
    np.testing.assert_allclose(made, wanted, rtol=1e-3, atol=1e-3)


def branches(x):
    if total(x) > 0:
        y = x * x
    else:
        y = -x
    return y * 3


def loops(x):
    i = 0
    while total(x) < 50:
        x = x * x + 1
        i += 1
    return x * i


def unrolled(x):
    for i in range(3):
        if x[0] > 0:
            x = x * (i + 2)
        x = x + 1
    return x


@pytest.mark.parametrize("function", [branches, loops, unrolled])
def test_gradients_through_control_flow(function):
    for x in (X, X * -3):
        both(slope(function), x)
        close_to_differences(function, x)


def test_several_arguments():
    both(slope(lambda x, y: x * y + core.exp(y), 0, 1), (X, X * 2))


def test_second_and_third_order():
    def f(x):
        return x * x * x * x

    def first(x):
        return slope(f)(x)[1]

    def second(x):
        return slope(first)(x)[1]

    both(first, X)
    both(second, X)
    made = captured(Function(slope(second)), X)[1]
    np.testing.assert_allclose(made, 24 * X.asnumpy(), rtol=1e-6)


def test_gradients_inside_branches_and_loops():
    def f(x, n):
        i = n * 0
        while i < n:
            if x[0] > 0:
                x = x - slope(lambda z: z * z)(x)[1] * 0.1
            else:
                x = x + slope(lambda z: z * z * z)(x)[1] * 0.1
            i = i + 1
        return x

    both(f, (X, tensor(3, dtype=np.int32)), (X * -1, tensor(3, dtype=np.int32)))


def test_stop_gradient():
    both(slope(lambda x: x * core.stop_gradient(x * x)), X)


class Scaled(Cell):
    """Three times the input, with a gradient of its own."""

    def __init__(self):
        super().__init__()
        self.w = Parameter(tensor(3.0), name="w")

    def construct(self, x):
        return x * self.w

    def bprop(self, x, out, dout):
        return (dout * 10 + out * self.w,)


def test_bprop():
    net = Scaled()
    both(slope(lambda x: net(x * 2)), X)


def test_bprop_in_a_branch():
    net = Scaled()

    def f(x):
        if x[0] > 0:
            x = net(x)
        return x

    both(slope(f), X, X * -1)


class Dense(Cell):
    def __init__(self):
        super().__init__()
        self.w = Parameter(tensor([[1, 2], [3, 4], [5, 6]]), name="w")
        self.b = Parameter(tensor(1, -1), name="b")

    def construct(self, x):
        y = core.matmul(x, self.w) + self.b
        if y[0, 0] > 5:
            y = core.relu(y)
        return y


class Step(Cell):
    """Forward, backward and update in one function."""

    def __init__(self, net, rate):
        super().__init__(auto_prefix=False)
        self.net, self.rate = net, rate
        self.weights = ParameterTuple(net.trainable_params())
        self.velocities = self.weights.clone("velocity")
        self.grad = C.GradOperation(get_by_list=True)

    def loss(self, x):
        return total(self.net(x) * self.net(x))

    def construct(self, x):
        loss = self.loss(x)
        slopes = self.grad(self.loss, self.weights)(x)
        for weight, velocity, each in zip(self.weights, self.velocities, slopes):
            core.assign(velocity, velocity * 0.9 + each)
            core.assign(weight, weight - velocity * self.rate)
        return loss


def test_a_training_step_is_one_run():
    step = Step(Dense(), 1e-3)
    before = dict(capture.statistics)
    losses = both(step, *[tensor([[1, 2, 3], [0.5, 0, 1]])] * 5, rtol=1e-5)
    assert losses == sorted(losses, reverse=True)
    assert capture.statistics["compiled"] == before["compiled"] + 1
    assert capture.statistics["runs"] == before["runs"] + 5


def test_grad_operation_outside(graph_mode):
    net = Dense()
    x = tensor([[1, 2, 3]])
    compiled = capture.statistics["compiled"]
    for _ in range(3):
        both_, weights = C.GradOperation(get_all=True, get_by_list=True)(net, ParameterTuple(net.trainable_params()))(x)
        assert both_[0].shape == (1, 3) and [each.shape for each in weights] == [(3, 2), (2,)]
    assert capture.statistics["compiled"] == compiled + 1


def test_parameters_of_other_dtype_have_no_gradient():
    def f(x, n):
        return x * core.cast(n, dtype=np.dtype("float32"))

    made = captured(Function(slope(f)), X, tensor(2, dtype=np.int32))
    assert same(made[1], np.full(3, 2, np.float32))
