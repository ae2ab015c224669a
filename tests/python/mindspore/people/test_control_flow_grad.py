"""Loops and branches that depend on tensors, with gradients by inputs and by parameters, in graph mode."""
import numpy as np
import pytest
import mindspore as ms
import mindspore.nn as nn
from mindspore import Tensor, context
from mindspore import dtype as mstype
from mindspore.common.parameter import Parameter, ParameterTuple
from mindspore.ops import composite as C
from mindspore.ops import functional as F
from mindspore.ops import operations as P

grad_all = C.GradOperation(get_all=True)
grad_by_list = C.GradOperation(get_by_list=True)


def setup_module():
    context.set_context(mode=context.GRAPH_MODE, device_target="CPU")


class Backward(nn.Cell):
    def __init__(self, forward):
        super(Backward, self).__init__(auto_prefix=False)
        self.forward = forward
        self.grad = C.GradOperation(get_all=True)

    def construct(self, *inputs):
        return self.grad(self.forward)(*inputs)


class BackwardByList(nn.Cell):
    def __init__(self, forward):
        super().__init__(auto_prefix=False)
        self.forward = forward
        self.weights = ParameterTuple(forward.trainable_params())

    def construct(self, *inputs):
        return grad_by_list(self.forward, self.weights)(*inputs)


class Count(nn.Cell):
    def construct(self, x, y):
        out = x
        while x < y:
            out = out + x
            x = x + 1
        return out


@pytest.mark.level0
@pytest.mark.platform_x86_cpu
@pytest.mark.env_onecard
def test_while_int_forward():
    out = Count()(Tensor(np.array(1), mstype.int32), Tensor(np.array(4), mstype.int32))
    assert out.asnumpy() == 7


@pytest.mark.level0
@pytest.mark.platform_x86_cpu
@pytest.mark.env_onecard
def test_while_int_gradient():
    grads = Backward(Count())(Tensor(np.array(1), mstype.int32), Tensor(np.array(4), mstype.int32))
    assert grads[0].asnumpy() == 4
    assert grads[1].asnumpy() == 0


def test_while_int_gradient_compares_with_tuple_of_tensors():
    grads = Backward(Count())(Tensor(np.array(1), mstype.int32), Tensor(np.array(4), mstype.int32))
    assert grads == (Tensor(np.array(4), mstype.int32), Tensor(np.array(0), mstype.int32))


def test_while_float_gradient():
    grads = Backward(Count())(Tensor([1.5], mstype.float32), Tensor([4.0], mstype.float32))
    np.testing.assert_allclose(grads[0].asnumpy(), [4.0])
    np.testing.assert_allclose(grads[1].asnumpy(), [0.0])


class Squares(nn.Cell):
    def __init__(self):
        super().__init__()
        self.mul = P.Mul()
        self.add = P.Add()

    def construct(self, x, y):
        while x < y:
            z = self.mul(x, x)
            x = self.add(z, y)
        return x


def test_while_with_a_variable_added():
    grads = Backward(Squares())(Tensor([1.2], mstype.float32), Tensor([9.0], mstype.float32))
    np.testing.assert_allclose(grads[0].asnumpy(), [2.4], 1e-5)
    np.testing.assert_allclose(grads[1].asnumpy(), [1.0], 1e-5)


class Assigns(nn.Cell):
    def __init__(self):
        super().__init__()
        self.max = P.ReduceMax()

    def construct(self, idx, end, x):
        while idx < end:
            part = x[idx, :, :]
            top = self.max(part)
            x[idx, :, 0:2] = top
            idx = idx + 1
        return x


def test_while_assigns_slices_of_the_input():
    x = np.array([[[4, 0], [0, 0]], [[0, 4], [0, 0]]]).astype(np.float32)
    idx, end = Tensor(np.array(0), mstype.int32), Tensor(np.array(2), mstype.int32)
    out = Assigns()(idx, end, Tensor(x))
    np.testing.assert_array_equal(out.asnumpy(), np.full((2, 2, 2), 4, np.float32))


def test_while_assigns_slices_gradient():
    x = np.array([[[4, 0], [0, 0]], [[0, 4], [0, 0]]]).astype(np.float32)
    idx, end = Tensor(np.array(0), mstype.int32), Tensor(np.array(2), mstype.int32)
    grads = Backward(Assigns())(idx, end, Tensor(x))
    assert np.allclose(grads[0].asnumpy(), 0) and np.allclose(grads[1].asnumpy(), 0)
    np.testing.assert_allclose(grads[2].asnumpy(), x)


class WithParameter(nn.Cell):
    def __init__(self):
        super().__init__()
        self.param = Parameter(Tensor(np.arange(8).reshape(2, 2, 2), mstype.float32), name="weight")
        self.zero = Tensor(np.zeros((2, 2, 2)), mstype.float32)

    def construct(self, idx, end, x):
        out = self.zero
        while idx < end:
            if 2 > 1:
                out = out + self.param * x
            else:
                out = out + idx
            idx = idx + 1
        return out


def test_while_gradient_by_parameter():
    x = np.random.RandomState(1).rand(2, 2, 2).astype(np.float32)
    grads = BackwardByList(WithParameter())(Tensor(0, mstype.int32), Tensor(3, mstype.int32), Tensor(x))
    np.testing.assert_allclose(grads[0].asnumpy(), 3 * x, 1e-5)


class ForThenWhile(nn.Cell):
    def __init__(self):
        super().__init__()
        self.start = Tensor(np.array(0), mstype.int32)
        self.param = Parameter(Tensor([2.0], mstype.float32), name="w")

    def construct(self, idx, end, x):
        out = x
        for _ in range(2):
            idx = self.start
            while idx < end:
                out = out + self.param
                idx = idx + 1
        return out


def test_for_over_while_forward():
    out = ForThenWhile()(Tensor(0, mstype.int32), Tensor(4, mstype.int32), Tensor([1.0], mstype.float32))
    assert out.asnumpy()[0] == 17


def test_for_over_while_gradient():
    grads = BackwardByList(ForThenWhile())(Tensor(0, mstype.int32), Tensor(4, mstype.int32), Tensor([1.0], mstype.float32))
    assert grads[0].asnumpy()[0] == 8


class IfInWhile(nn.Cell):
    def __init__(self):
        super().__init__()
        self.param_a = Parameter(Tensor(5, mstype.int32), name="a")
        self.param_b = Parameter(Tensor(4, mstype.int32), name="b")

    def construct(self, x):
        out = self.param_a
        while self.param_a > self.param_b:
            x += 1
            self.param_b = self.param_b + 1
        if x < self.param_a:
            out = out + x
        out += x
        return out


def test_parameter_changes_in_while():
    out = IfInWhile()(Tensor(2, mstype.int32))
    assert out.asnumpy() == 5 + 3 + 3


def test_parameter_changes_in_while_gradient():
    grads = Backward(IfInWhile())(Tensor(2, mstype.int32))
    assert grads == (Tensor(2, mstype.int32),)


class BreakNet(nn.Cell):
    def construct(self, x, y):
        while x < 20:
            if x > y:
                break
            x = x + 3
        else_value = x * 2
        return else_value


def test_break_in_while():
    assert BreakNet()(Tensor(1, mstype.int32), Tensor(6, mstype.int32)) == 14


class ContinueNet(nn.Cell):
    def construct(self, x):
        total = x * 0
        i = 0
        while i < 5:
            i += 1
            if i == 3:
                continue
            total = total + x * i
        return total


def test_continue_in_while():
    assert ContinueNet()(Tensor(2, mstype.int32)) == 24


def test_continue_in_while_gradient():
    assert Backward(ContinueNet())(Tensor(2, mstype.int32))[0] == 12


class NestedIf(nn.Cell):
    def construct(self, x, y):
        if x > 0:
            if y > 0:
                out = x * y
            else:
                out = x - y
        else:
            out = x + y
        return out


@pytest.mark.parametrize("x,y,expect,gx,gy", [(2., 3., 6., 3., 2.), (2., -3., 5., 1., -1.), (-2., 3., 1., 1., 1.)])
def test_nested_if(x, y, expect, gx, gy):
    x, y = Tensor(x, mstype.float32), Tensor(y, mstype.float32)
    assert NestedIf()(x, y).asnumpy() == expect
    grads = Backward(NestedIf())(x, y)
    assert grads[0].asnumpy() == gx and grads[1].asnumpy() == gy


class Elifs(nn.Cell):
    def construct(self, x):
        if x > 10:
            return x
        elif x > 5:
            return x * 2
        elif x > 0:
            return x * 3
        return x * 4


@pytest.mark.parametrize("x,factor", [(11, 1), (6, 2), (1, 3), (-1, 4)])
def test_returns_in_branches(x, factor):
    assert Elifs()(Tensor(x, mstype.int32)) == x * factor
    assert Backward(Elifs())(Tensor(x, mstype.int32))[0] == factor


class ForList(nn.Cell):
    def __init__(self):
        super().__init__()
        self.layers = nn.CellList([nn.ReLU(), nn.Tanh(), nn.Sigmoid()])

    def construct(self, x):
        for layer in self.layers:
            x = layer(x)
        return x


def test_for_over_cell_list():
    x = np.array([-1., 0.5, 2.], np.float32)
    out = ForList()(Tensor(x))
    expect = 1 / (1 + np.exp(-np.tanh(np.maximum(x, 0))))
    np.testing.assert_allclose(out.asnumpy(), expect, 1e-5)


class WhileInFor(nn.Cell):
    def construct(self, x, y):
        for i in range(3):
            while x < y:
                x = x + i + 1
            y = y + 1
        return x


def test_while_in_for():
    x, y = 0, 5
    for i in range(3):
        while x < y:
            x += i + 1
        y += 1
    assert WhileInFor()(Tensor(0, mstype.int32), Tensor(5, mstype.int32)) == x


class Recursion(nn.Cell):
    def f(self, x, n):
        if n <= 0:
            return x
        return self.f(x, n - 1) * 2

    def construct(self, x):
        return self.f(x, 5)


def test_recursion_over_constant():
    assert Recursion()(Tensor(3, mstype.int32)) == 96


class Factorial(nn.Cell):
    def construct(self, n):
        out = Tensor(1, mstype.int32)
        while n > 1:
            out = out * n
            n = n - 1
        return out


def test_factorial():
    assert Factorial()(Tensor(5, mstype.int32)) == 120


class SwitchLayer(nn.Cell):
    def __init__(self):
        super().__init__()
        self.layers = (nn.ReLU(), nn.Softmax(), nn.Tanh())

    def construct(self, i, x):
        return self.layers[i](x)


@pytest.mark.parametrize("i", [0, 1, 2])
def test_layer_chosen_by_tensor(i):
    x = np.array([-1., 0.5, 2.], np.float32)
    out = SwitchLayer()(Tensor(i, mstype.int32), Tensor(x))
    expect = [np.maximum(x, 0), np.exp(x) / np.exp(x).sum(), np.tanh(x)][i]
    np.testing.assert_allclose(out.asnumpy(), expect, 1e-5)


class LoopWithBool(nn.Cell):
    def construct(self, x):
        go = True
        i = 0
        while go and i < 4:
            x = x + 1
            i += 1
            if i == 3:
                go = False
        return x


def test_loop_with_constant_bool():
    assert LoopWithBool()(Tensor(1, mstype.int32)) == 4


class AndOr(nn.Cell):
    def construct(self, x, y):
        if x > 0 and y > 0:
            x = x + y
        if x < 0 or y < 0:
            x = x - y
        if not x > 3:
            x = x * 10
        return x


@pytest.mark.parametrize("x,y", [(1, 1), (3, 4), (-1, 2), (2, -1)])
def test_and_or_not_of_tensors(x, y):
    z = x + y if x > 0 and y > 0 else x
    z = z - y if z < 0 or y < 0 else z
    z = z * 10 if not z > 3 else z
    assert AndOr()(Tensor(x, mstype.int32), Tensor(y, mstype.int32)) == z


class TernaryNet(nn.Cell):
    def construct(self, x, y):
        z = x + y if x > y else x - y
        return z


def test_ternary_of_tensors():
    assert TernaryNet()(Tensor(3, mstype.int32), Tensor(2, mstype.int32)) == 5
    assert TernaryNet()(Tensor(1, mstype.int32), Tensor(2, mstype.int32)) == -1


class HighOrder(nn.Cell):
    def construct(self, x):
        while x < 4:
            x = x * x
        return x


def test_second_order_through_while():
    first = Backward(HighOrder())
    out = Backward(first)(Tensor([1.5], mstype.float32))
    # x -> x**2 -> x**4 : 1.5 -> 2.25 -> 5.06; derivative 4x^3, second 12x^2
    np.testing.assert_allclose(out[0].asnumpy(), [12 * 1.5 ** 2], 1e-5)


def test_sens_param_through_if():
    net = NestedIf()
    grad = C.GradOperation(get_all=True, sens_param=True)
    out = grad(net)(Tensor(2., mstype.float32), Tensor(3., mstype.float32), Tensor(10., mstype.float32))
    assert out[0].asnumpy() == 30 and out[1].asnumpy() == 20


class ForwardAssign(nn.Cell):
    def __init__(self):
        super().__init__()
        self.weight = Parameter(Tensor(np.array(0), mstype.int32), name="param")

    def construct(self, x):
        out = 0
        i = 0
        while i < 3:
            F.assign(self.weight, i)
            out = x * self.weight + out
            i = i + 1
        return out


def test_assign_in_loop_gradient():
    grads = Backward(ForwardAssign())(Tensor(np.array(1), mstype.int32))
    assert np.all(grads == (Tensor(np.array(3), mstype.int32),))
