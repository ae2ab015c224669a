"""What a condition on a tensor chooses: Parameters, which are assigned and read as the one that it is, and functions."""

import numpy as np
import pytest

import mindspore as ms
import mindspore.nn as nn
import mindspore.ops as ops
from mindspore import Parameter, Tensor, context, ms_function
from mindspore.ops import GradOperation


@pytest.fixture(params=[context.GRAPH_MODE, context.PYNATIVE_MODE], ids=["graph", "eager"], autouse=True)
def mode(request):
    context.set_context(mode=request.param)
    yield request.param
    context.set_context(mode=context.GRAPH_MODE)


def t(value):
    return Tensor(value, ms.float32)


class Pair(nn.Cell):
    def __init__(self):
        super().__init__()
        self.left, self.right = Parameter(t([1.0]), name="left"), Parameter(t([2.0]), name="right")


class Order(Pair):
    def construct(self, x):
        if x > 0:
            return self.left, self.right
        return self.right, self.left


class Writes(nn.Cell):
    def __init__(self):
        super().__init__()
        self.order = Order()

    def construct(self, x, y):
        first, second = self.order(x)
        before = first * 10 + second
        ops.assign(first, y)
        middle = first * 10 + second
        ops.assign(second, y + 1)
        return before, middle, first * 10 + second


@pytest.mark.parametrize("x, expected, held", [(3.0, (12, 72, 78), (7, 8)), (-3.0, (21, 71, 78), (8, 7))])
def test_a_chosen_parameter_is_assigned_and_read(x, expected, held):
    net = Writes()
    made = net(t(x), t([7.0]))
    assert tuple(float(each.asnumpy()[0]) for each in made) == expected
    assert (float(net.order.left.asnumpy()[0]), float(net.order.right.asnumpy()[0])) == held


class Named(Pair):
    """Binds a name in both branches."""

    def construct(self, x):
        if x > 0:
            chosen = self.left
        else:
            chosen = self.right
        ops.assign_add(chosen, x)
        return chosen + 0


@pytest.mark.parametrize("x, expected", [(3.0, 4), (-3.0, -1)])
def test_a_name_that_branches_bind_stands_for_its_parameter(x, expected):
    net = Named()
    assert net(t([x])) == expected
    assert (net.left.asnumpy()[0], net.right.asnumpy()[0]) == ((expected, 2) if x > 0 else (1, expected))


def test_gradients_reach_the_chosen_parameter_alone():
    class Net(Pair):
        def construct(self, x):
            chosen = self.left if x > 0 else self.right
            return chosen * x * x

    net = Net()
    for x, expected in ((3.0, (9, 0)), (-3.0, (0, 9))):
        made = GradOperation(get_by_list=True)(net, net.trainable_params())(t([x]))
        assert tuple(float(each.asnumpy()[0]) for each in made) == expected


class Counts(nn.Cell):
    """A name that is bound before a loop sees what the loop assigns."""

    def __init__(self):
        super().__init__()
        self.count = Parameter(Tensor(0, ms.int32), name="count")

    def construct(self, n):
        named, total = self.count, n * 0
        while named < n:
            ops.assign_add(self.count, 2)
            total = total + named
        return total, named + 0


def test_a_name_bound_before_a_loop_is_read_in_each_turn():
    total, last = Counts()(Tensor(5, ms.int32))
    assert (int(total.asnumpy()), int(last.asnumpy())) == (2 + 4 + 6, 6)


def test_a_name_bound_before_a_branch_sees_its_assignments():
    class Net(Pair):
        def construct(self, x):
            named = self.left
            if x > 0:
                ops.assign(self.left, x)
            return named * 2

    assert Net()(t([5.0])) == 10 and Net()(t([-5.0])) == 2


def double(x):
    return x * 2


def square(x):
    return x * x


@ms_function
def by_sign(x, y):
    def pick(z):
        if z > 0:
            return double
        return square

    return pick(x)(y) + pick(y)(x)


def test_a_function_that_a_condition_returns():
    assert by_sign(t(3.0), t(5.0)) == 10 + 6 and by_sign(t(-3.0), t(5.0)) == 25 - 6


def test_functions_that_branches_bind():
    @ms_function
    def run(x):
        shift = 10
        if x > 1:
            change = lambda z: z + shift  # noqa: E731
        else:
            change = double
        return change(x) + change(change(x))

    assert run(t(2.0)) == 12 + 22 and run(t(1.0)) == 2 + 4


def test_cells_that_a_condition_chooses_and_their_gradient():
    class Net(nn.Cell):
        def __init__(self):
            super().__init__()
            self.one, self.two = nn.ReLU(), nn.Tanh()

        def construct(self, x):
            act = self.one if x.sum() > 0 else self.two
            return act(x)

    x = np.array([1.0, -0.5], np.float32)
    np.testing.assert_allclose(GradOperation()(Net())(Tensor(x)).asnumpy(), [1, 0])
    np.testing.assert_allclose(GradOperation()(Net())(Tensor(-x)).asnumpy(), 1 - np.tanh(x) ** 2, 1e-5)


def test_gradients_by_dictionaries_are_tuples():
    class Net(nn.Cell):
        def construct(self, of):
            return of["a"] * of["b"][0]

    made = GradOperation()(Net())(ms.mutable({"a": t([2.0]), "b": [t([3.0]), t([4.0])]}))
    assert isinstance(made, tuple) and made[0] == 3 and isinstance(made[1], tuple) and made[1][0] == 2 and made[1][1] == 0


def test_a_number_that_a_gradient_function_returns():
    clip = ops.InsertGradientOf(lambda dx: 0.25)
    assert GradOperation()(lambda x: clip(x) * 8)(t(3.0)) == 0.25
