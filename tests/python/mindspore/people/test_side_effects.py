"""The order of assignments, in graph mode."""
import numpy as np
import pytest
import mindspore as ms
import mindspore.nn as nn
import mindspore.ops as ops
import mindspore.ops.operations as P
from mindspore import Tensor, Parameter, context, ParameterTuple
from mindspore.common import dtype as mstype
from mindspore.common.initializer import initializer
from mindspore.ops import functional as F

context.set_context(mode=context.GRAPH_MODE)


class TwoAssigns(nn.Cell):
    def __init__(self):
        super().__init__()
        self.p1 = Parameter(Tensor([1.0], mstype.float32), name="p1")
        self.p2 = Parameter(Tensor([3.0], mstype.float32), name="p2")
        self.assign = P.Assign()
        self.addn = P.AddN()

    def construct(self, inputs):
        self.assign(self.p1, inputs)
        out = self.addn((inputs, self.p1, self.p2))
        self.assign(self.p2, inputs)
        out = self.addn((out, self.p1, self.p2))
        return out


def test_two_assigns_two_adds():
    assert TwoAssigns()(Tensor([9.0], mstype.float32)).asnumpy()[0] == 9 + 9 + 3 + 9 + 9


def test_value_before_an_assignment():
    class Net(nn.Cell):
        def __init__(self):
            super().__init__()
            self.assign = P.Assign()
            self.variable = Parameter(Tensor(0, mstype.float32), name="global")

        def construct(self, x):
            out = self.variable
            self.assign(self.variable, 0)
            out = x ** 2 + self.variable + out
            self.assign(self.variable, 1)
            out = self.variable + out
            return out

    assert Net()(Tensor([2], mstype.float32)) == 5


def test_assign_through_a_tuple():
    class Net(nn.Cell):
        def __init__(self):
            super().__init__()
            self.assign = P.Assign()
            self.param1 = Parameter(Tensor(0), name="param1")
            self.param2 = Parameter(Tensor(0), name="param2")

        def construct(self, x):
            params = (self.param1, self.param2)
            self.assign(params[0], x)
            return params[0], params[1]

    out = Net()(Tensor(2))
    assert out[0] == 2
    assert out[1] == 0


def test_add_n_of_a_tuple_of_parameters():
    class Net(nn.Cell):
        def __init__(self):
            super().__init__()
            self.assign = P.Assign()
            self.addn = P.AddN()
            self.param1 = Parameter(Tensor(1), name="param1")
            self.param2 = Parameter(Tensor(2), name="param2")

        def construct(self, x):
            params = (self.param1, self.param2)
            res1 = self.addn(params)
            self.assign(params[0], x)
            res2 = self.addn(params)
            self.assign(params[1], x * 2)
            res3 = self.addn(params)
            res4 = params[0] + params[1]
            return res1, res2, res3, res4

    assert Net()(Tensor(3)) == (3, 5, 9, 9)


def test_parameters_out_of_an_inner_cell():
    class Inner(nn.Cell):
        def __init__(self):
            super().__init__()
            self.assign = P.Assign()
            self.addn = P.AddN()
            self.param1 = Parameter(Tensor(1), name="param1")
            self.param2 = Parameter(Tensor(2), name="param2")

        def construct(self, x):
            params = (self.param1, self.param2)
            res1 = self.addn(params)
            self.assign(params[0], x)
            res2 = self.addn(params)
            return res1, res2, self.param1, self.param2

    class Net(nn.Cell):
        def __init__(self):
            super().__init__()
            self.inner = Inner()
            self.addn = P.AddN()
            self.assign = P.Assign()

        def construct(self, x, y):
            res = self.inner(x)
            params = (res[2], res[3])
            a = self.addn(params)
            self.assign(res[2], y)
            b = self.addn(params)
            self.assign(res[3], 2 * y)
            return a + b, res[2] + res[3]

    assert Net()(Tensor(3), Tensor(5)) == (12, 15)


_X = np.array([[1., 2., 3.], [4., 5., 6.]], np.float32)
_SCATTER = {
    "ScatterAdd": lambda a, b: a + b, "ScatterSub": lambda a, b: a - b, "ScatterMul": lambda a, b: a * b,
    "ScatterDiv": lambda a, b: a / b, "ScatterMax": np.maximum, "ScatterMin": np.minimum, "ScatterUpdate": lambda a, b: b,
}


@pytest.mark.parametrize("name", sorted(_SCATTER))
def test_scatter_into_a_parameter(name):
    class Net(nn.Cell):
        def __init__(self):
            super().__init__()
            self.para = Parameter(Tensor(_X), name="para")
            self.op = getattr(P, name)()

        def construct(self, indices, updates):
            self.op(self.para, indices, updates)
            return self.para

    updates = np.array([[[2., 2., 2.], [4., 4., 4.]]], np.float32)
    out = Net()(Tensor(np.array([[0, 1]]), mstype.int32), Tensor(updates))
    np.testing.assert_allclose(out.asnumpy(), _SCATTER[name](_X, updates[0]), 1e-6)


@pytest.mark.parametrize("name,sign", [("ScatterNdAdd", 1), ("ScatterNdSub", -1)])
def test_scatter_nd_into_a_parameter(name, sign):
    class Net(nn.Cell):
        def __init__(self):
            super().__init__()
            self.para = Parameter(Tensor(np.arange(1, 9), mstype.float32), name="para")
            self.op = getattr(P, name)()

        def construct(self, indices, updates):
            self.op(self.para, indices, updates)
            return self.para

    out = Net()(Tensor(np.array([[2], [4], [1], [7]]), mstype.int32), Tensor(np.array([6, 7, 8, 9]), mstype.float32))
    expect = np.arange(1, 9).astype(np.float32)
    expect[[2, 4, 1, 7]] += sign * np.array([6, 7, 8, 9])
    np.testing.assert_array_equal(out.asnumpy(), expect)


def test_scatter_nd_update():
    class Net(nn.Cell):
        def __init__(self):
            super().__init__()
            self.b = Parameter(initializer('ones', [2, 3]), name='b')
            self.scatter = P.ScatterNdUpdate()

        def construct(self, idx, x):
            self.scatter(self.b, idx, x)
            return self.b

    out = Net()(Tensor(np.array([[0, 0], [1, 1]]), mstype.int32), Tensor([5.0, 2.2], mstype.float32))
    np.testing.assert_allclose(out.asnumpy(), [[5, 1, 1], [1, 2.2, 1]], 1e-6)


@pytest.mark.parametrize("name,expect", [("AssignAdd", 5), ("AssignSub", 1)])
def test_assign_add_sub(name, expect):
    class Net(nn.Cell):
        def __init__(self):
            super().__init__()
            self.para = Parameter(Tensor(3, mstype.int32), name="para")
            self.op = getattr(P, name)()

        def construct(self, value):
            self.op(self.para, value)
            return self.para

    net = Net()
    out = net(Tensor(2, mstype.int32))
    np.testing.assert_array_equal(out.asnumpy(), expect)
    np.testing.assert_array_equal(net.para.asnumpy(), expect)


def test_augmented_assignment_of_a_parameter():
    class Net(nn.Cell):
        def __init__(self):
            super().__init__()
            self.count = Parameter(Tensor([0], mstype.int32), name="count")

        def construct(self, x):
            self.count += 1
            return x * self.count

    net = Net()
    for i in range(3):
        assert net(Tensor([2], mstype.int32)).asnumpy()[0] == 2 * (i + 1)
    assert net.count.asnumpy()[0] == 3


def test_branches_assign_parameters():
    class Net(nn.Cell):
        def __init__(self):
            super().__init__()
            self.p = Parameter(Tensor(1, mstype.int32), name="p")

        def construct(self, x):
            if x > 0:
                self.p = self.p + x
            else:
                self.p = self.p - 10
            return self.p

    net = Net()
    assert net(Tensor(4, mstype.int32)) == 5
    assert net(Tensor(-4, mstype.int32)) == -5


def test_depend_gives_its_first_input():
    class Net(nn.Cell):
        def __init__(self):
            super().__init__()
            self.p = Parameter(Tensor([1.], mstype.float32), name="p")

        def construct(self, x):
            done = F.assign(self.p, x)
            y = F.depend(x * 2, done)
            return y + self.p

    assert Net()(Tensor([3.], mstype.float32)).asnumpy()[0] == 9


@pytest.mark.parametrize("mode", [context.GRAPH_MODE, context.PYNATIVE_MODE])
def test_adam_primitive_equals_in_both_modes(mode):
    context.set_context(mode=mode)
    rs = np.random.RandomState(3)
    var, m, v, g = (rs.rand(3, 3).astype(np.float32) for _ in range(4))

    class Net(nn.Cell):
        def __init__(self):
            super().__init__()
            self.apply_adam = P.Adam()
            self.var = Parameter(Tensor(var), name="var")
            self.m = Parameter(Tensor(m), name="m")
            self.v = Parameter(Tensor(v), name="v")
            self.addn = P.AddN()

        def construct(self, b1p, b2p, lr, b1, b2, eps, grad):
            out = self.addn((self.var, self.m, self.v))
            self.apply_adam(self.var, self.m, self.v, b1p, b2p, lr, b1, b2, eps, grad)
            return out, self.var, self.m, self.v

    out = Net()(*[Tensor(x, mstype.float32) for x in (0.9, 0.999, 0.1, 0.9, 0.999, 1e-8)], Tensor(g))
    em, ev = m + 0.1 * (g - m), v + 0.001 * (g * g - v)
    lr = 0.1 * np.sqrt(1 - 0.999) / (1 - 0.9)
    np.testing.assert_allclose(out[0].asnumpy(), var + m + v, 1e-5)
    np.testing.assert_allclose(out[1].asnumpy(), var - lr * em / (np.sqrt(ev) + 1e-8), 1e-4)
    np.testing.assert_allclose(out[2].asnumpy(), em, 1e-5)
    np.testing.assert_allclose(out[3].asnumpy(), ev, 1e-5)
    context.set_context(mode=context.GRAPH_MODE)


def test_print_keeps_going(capfd):
    class Net(nn.Cell):
        def __init__(self):
            super().__init__()
            self.print = P.Print()

        def construct(self, x):
            self.print("value:", x)
            return x + 1

    assert Net()(Tensor(4, mstype.int32)) == 5
    shown = capfd.readouterr().out
    assert "value:" in shown and "4" in shown


def test_assign_value_of_another_dtype_is_cast():
    class Net(nn.Cell):
        def __init__(self):
            super().__init__()
            self.b = Parameter(initializer('ones', [5]), name='b')
            self.assign = P.Assign()

        def construct(self, value):
            self.assign(self.b, value)
            return self.b

    out = Net()(Tensor(np.full([5], 3).astype(np.float16)))
    assert out.dtype == mstype.float32
    np.testing.assert_array_equal(out.asnumpy(), np.full(5, 3, np.float32))


def test_parameter_value_method():
    class Net(nn.Cell):
        def __init__(self):
            super().__init__()
            self.param1 = Parameter(Tensor([1]), name="param1")
            self.param2 = Parameter(Tensor([2]), name="param2")

        def construct(self, x):
            if x > 0:
                return self.param1.value()
            return self.param2.value()

    assert Net()(Tensor([3])) == 1
    assert Net()(Tensor([-3])) == 2
