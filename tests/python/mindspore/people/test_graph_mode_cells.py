"""Graph mode: operators and parts of tensors, attributes and methods of cells, what is refused, gradients."""
import numpy as np
import pytest
import mindspore as ms
import mindspore.nn as nn
import mindspore.ops as ops
import mindspore.ops.operations as P
from mindspore import Tensor, Parameter, context, ms_function, ms_class, mutable
from mindspore import dtype as mstype
from mindspore.nn import Cell
from mindspore.ops import composite as C

context.set_context(mode=context.GRAPH_MODE)


def test_tensor_operators():
    x, y = np.array([7, -8, 9]), np.array([2, 3, -4])

    class Net(Cell):
        def construct(self, x, y):
            return x + y, x - y, x * y, x / y, x // y, x % y, x ** 2, -x, +x, x > y, x >= y, x < y, x <= y, x == y, x != y

    out = Net()(Tensor(x, mstype.float32), Tensor(y, mstype.float32))
    x, y = x.astype(np.float32), y.astype(np.float32)
    expect = (x + y, x - y, x * y, x / y, x // y, x % y, x ** 2, -x, +x, x > y, x >= y, x < y, x <= y, x == y, x != y)
    for a, b in zip(out, expect):
        np.testing.assert_allclose(a.asnumpy(), b, 1e-5)


def test_bitwise_and_invert():
    x, y = np.array([7, 8, 9], np.int32), np.array([2, 3, 4], np.int32)

    class Net(Cell):
        def construct(self, x, y):
            return x & y, x | y, x ^ y, ~(x > y)

    out = Net()(Tensor(x), Tensor(y))
    for a, b in zip(out, (x & y, x | y, x ^ y, ~(x > y))):
        np.testing.assert_array_equal(a.asnumpy(), b)


_A = np.arange(60).reshape(3, 4, 5).astype(np.float32)
INDICES = [
    np.s_[0], np.s_[-1], np.s_[1, 2], np.s_[1:], np.s_[:, 1:3], np.s_[..., 0], np.s_[::2, :, ::-1], np.s_[None, 0], np.s_[:, None, 1],
    np.s_[0:2, -1, 1:4:2], np.s_[..., None], np.s_[True], np.s_[:, :, 2],
]


@pytest.mark.parametrize("index", INDICES, ids=str)
def test_reading_by_index(index):
    class Net(Cell):
        def construct(self, x):
            return x[index]

    if index == np.s_[::2, :, ::-1]:
        index = np.s_[::2, :, 4:0:-1]
    np.testing.assert_array_equal(Net()(Tensor(_A)).asnumpy(), _A[index])


@pytest.mark.parametrize("index", [np.s_[0], np.s_[1, 2], np.s_[1:], np.s_[:, 1:3], np.s_[..., 0], np.s_[0, 1, 2], np.s_[...]], ids=str)
@pytest.mark.parametrize("value", [2.5, "tensor"])
def test_writing_by_index(index, value):
    expect = _A.copy()
    given = np.full(expect[index].shape, 7, np.float32) if value == "tensor" else value
    expect[index] = given
    u = Tensor(given) if value == "tensor" else value

    class Net(Cell):
        def __init__(self):
            super().__init__()
            self.relu = nn.ReLU()
            self.u = u

        def construct(self, x):
            x = self.relu(x)
            x[index] = self.u
            return x

    np.testing.assert_array_equal(Net()(Tensor(_A)).asnumpy(), expect)


def test_index_by_tensors():
    class Net(Cell):
        def construct(self, x, i, mask):
            a = x[i]
            b = x[i, 1]
            x[mask] = 0.0
            return a, b, x

    i, mask = np.array([2, 0]), _A > 30
    a, b, c = Net()(Tensor(_A), Tensor(i, mstype.int32), Tensor(mask))
    np.testing.assert_array_equal(a.asnumpy(), _A[i])
    np.testing.assert_array_equal(b.asnumpy(), _A[i, 1])
    np.testing.assert_array_equal(c.asnumpy(), np.where(mask, 0, _A))


def test_attributes_of_inner_cells():
    class Inner(Cell):
        def __init__(self):
            super().__init__()
            self.factor = 3
            self.p = Parameter(Tensor([2.], mstype.float32), name="p")

        def scale(self, x):
            return x * self.factor

        def construct(self, x):
            return self.scale(x)

    class Net(Cell):
        def __init__(self):
            super().__init__()
            self.inner = Inner()

        def construct(self, x):
            return self.inner(x) + self.inner.scale(x) + self.inner.factor + self.inner.p

    assert Net()(Tensor([1.], mstype.float32)) == 3 + 3 + 3 + 2


def test_inheritance_and_super():
    class Father(Cell):
        def __init__(self, x):
            super().__init__()
            self.x = x

        def construct(self, a):
            return self.x * a

        def add(self, x, y):
            return x + y

    class Single(Father):
        def __init__(self, x, z):
            super().__init__(x=x)
            self.z = z

        def construct(self, a):
            ret = super().construct(a)
            return super().add(ret, a) + self.z

    assert Single(3, 4)(Tensor(2)) == 12


def test_ms_class_inside():
    @ms_class
    class Inner:
        def __init__(self, k):
            self.k = k

        def act(self, x):
            return x * self.k

    class Net(Cell):
        def __init__(self):
            super().__init__()
            self.inner = Inner(3)

        def construct(self, x):
            return self.inner.act(x) + self.inner.k

    assert Net()(Tensor(2)) == 9


def test_ms_function_with_scalars_and_methods():
    @ms_function
    def f(x, k, flag=True):
        if flag:
            return x * k
        return x

    assert f(Tensor(2), 3) == 6
    assert f(Tensor(2), 3, flag=False) == 2

    class Holder:
        def __init__(self):
            self.k = Tensor(4)

        @ms_function
        def run(self, x):
            return x * self.k

    assert Holder().run(Tensor(2)) == 8


def test_mutable_inputs():
    class Net(Cell):
        def construct(self, t):
            return t[0] * t[1]

    assert Net()(mutable((Tensor(2), Tensor(3)))) == 6


def test_return_none():
    class Net(Cell):
        def construct(self, x):
            x = x + 1

    assert Net()(Tensor(1)) is None


def test_undefined_name():
    class Net(Cell):
        def construct(self, x):
            return x + not_defined_anywhere

    with pytest.raises(NameError) as err:
        Net()(Tensor([1, 2, 3], mstype.float32))
    assert "not_defined_anywhere" in str(err.value)


def test_missing_construct():
    class Net(Cell):
        def construct1(self, x):
            return 5

    with pytest.raises(AttributeError) as info:
        Net()(Tensor([1]))
    assert "construct" in str(info.value)
    assert "not defined" in str(info.value)


def test_branches_of_two_types():
    class Net(Cell):
        def construct(self, x, y):
            if x > 0:
                out = y
            else:
                out = P.Cast()(y, mstype.int32)
            return out

    with pytest.raises(TypeError) as info:
        Net()(Tensor(1), Tensor([1.], mstype.float32))
    assert "Type Join Failed" in str(info.value)


def test_branches_of_two_shapes():
    class Net(Cell):
        def construct(self, x, y):
            if x > 0:
                out = y
            else:
                out = P.Concat()((y, y))
            return out

    with pytest.raises((TypeError, ValueError)) as info:
        Net()(Tensor(1), Tensor([1.], mstype.float32))
    assert "Shape Join Failed" in str(info.value)


def test_recursion_without_an_end():
    class Net(Cell):
        def f(self, x):
            return self.f(x) + 1

        def construct(self, x):
            return self.f(x)

    with pytest.raises(RuntimeError) as info:
        Net()(Tensor(1))
    assert "Exceed function call depth limit" in str(info.value)


def test_yield_is_refused():
    class Net(Cell):
        def construct(self, x):
            yield x

    with pytest.raises((RuntimeError, ValueError)) as info:
        Net()(Tensor(1))
    assert "Yield" in str(info.value)


def test_wrong_number_of_arguments():
    class Net(Cell):
        def construct(self, x, y):
            return x + y

    with pytest.raises((TypeError, ValueError)):
        Net()(Tensor(1))
    with pytest.raises((TypeError, ValueError)):
        Net()(Tensor(1), Tensor(1), Tensor(1))


@pytest.mark.parametrize("mode", [context.GRAPH_MODE, context.PYNATIVE_MODE])
def test_switching_modes(mode):
    context.set_context(mode=mode)

    class Net(Cell):
        def __init__(self):
            super().__init__()
            self.w = Parameter(Tensor([2.], mstype.float32), name="w")

        def construct(self, x):
            return x * self.w if x > 0 else x - self.w

    assert context.get_context("mode") == mode
    assert Net()(Tensor([3.], mstype.float32)) == 6
    assert Net()(Tensor([-3.], mstype.float32)) == -5
    context.set_context(mode=context.GRAPH_MODE)


def test_get_by_list_and_position():
    class Net(Cell):
        def __init__(self):
            super().__init__()
            self.a = Parameter(Tensor([2.], mstype.float32), name="a")
            self.b = Parameter(Tensor([3.], mstype.float32), name="b")

        def construct(self, x, y):
            return x * self.a + y * self.b * x

    net = Net()
    x, y = Tensor([5.], mstype.float32), Tensor([7.], mstype.float32)
    got = C.GradOperation(get_all=True, get_by_list=True)(net, ms.ParameterTuple(net.trainable_params()))(x, y)
    assert got[0] == (2 + 21, 15) and got[1] == (5, 35)
    assert ops.grad(net)(x, y) == 23
    assert ops.grad(net, (0, 1))(x, y) == (23, 15)
    value, grads = ops.value_and_grad(net, 0, net.trainable_params())(x, y)
    assert value == 10 + 105 and grads[0] == 23 and grads[1] == (5, 35)


def test_second_order():
    class Net(Cell):
        def construct(self, x):
            return P.Sin()(x)

    class Grad(Cell):
        def __init__(self, net):
            super().__init__()
            self.grad = C.GradOperation()
            self.net = net

        def construct(self, x):
            return self.grad(self.net)(x)

    x = np.array([0.3, 1.2], np.float32)
    np.testing.assert_allclose(Grad(Grad(Net()))(Tensor(x)).asnumpy(), -np.sin(x), 1e-5)
