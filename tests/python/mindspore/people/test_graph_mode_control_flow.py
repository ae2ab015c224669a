"""Loops, conditions, closures, signatures and order of effects in graph mode."""

import numpy as np
import pytest
import mindspore as ms
import mindspore.nn as nn
import mindspore.ops as ops
from mindspore import Tensor, context, ms_function, Parameter
from mindspore.ops import operations as P
from mindspore.ops import functional as F
from mindspore.ops import composite as C

context.set_context(mode=context.GRAPH_MODE)
grad_all = C.GradOperation(get_all=True)


def t(x, dtype=np.int32):
    return Tensor(np.array(x, dtype))


def test_while_if_for_nests():

    class Net(nn.Cell):

        def construct(self, x, y, z):
            out = z
            while x < y:
                for _ in range(2):
                    if 2 * x < y:
                        out = out + x
                    else:
                        out = out - 1
                x = x + 1
            if out > 5:
                out = out * 2
            return out

    def expect(x, y, z):
        while x < y:
            for _ in range(2):
                z = z + x if 2 * x < y else z - 1
            x += 1
        return z * 2 if z > 5 else z

    for args in ((1, 6, 0), (5, 2, 9), (0, 3, 3)):
        assert int(Net()(*map(t, args)).asnumpy()) == expect(*args)


def test_if_after_if_in_while_grad():

    class Net(nn.Cell):

        def __init__(self):
            super().__init__()
            self.a = Parameter(Tensor(5, ms.int32), name="a")
            self.b = Parameter(Tensor(4, ms.int32), name="b")

        def construct(self, x):
            out = self.a * 1
            while self.a > 1:
                self.b = self.b - 1
                self.a = self.a - 2
                if self.b > self.a:
                    out = out * x
            return out + self.b

    net = Net()
    out = net(t(2))
    a, b, o = (5, 4, 5)
    while a > 1:
        b, a = (b - 1, a - 2)
        if b > a:
            o *= 2
    assert int(out.asnumpy()) == o + b and int(net.a.asnumpy()) == a and (int(net.b.asnumpy()) == b)


def test_ternary():

    @ms_function
    def net(x, y):
        a = x if x > y else y
        b = 1
        return (a, b, x + y if x < y else x - y if x == y else x * y)

    a, b, c = net(t(5), t(3))
    assert a == 5 and b == 1 and (c == 15)


def test_break_continue_else():

    @ms_function
    def net(x):
        s = x
        for i in range(10):
            if i == 3:
                continue
            if i == 6:
                break
            s = s + i
        i = 0
        while True:
            i += 1
            if i > 4:
                break
        return (s, i)

    s, i = net(t(0))
    assert s == 0 + 1 + 2 + 4 + 5 and i == 5


def test_return_in_for_and_while():

    @ms_function
    def first(x, y):
        for i in (1, 2, 3):
            if x > y:
                return x
            x = x + i
        return y

    assert first(t(0), t(2)) == 3
    assert first(t(0), t(20)) == 20

    @ms_function
    def second(x):
        while x < 10:
            x = x * 2
            if x == 8:
                return x + 100
        return x

    assert second(t(1)) == 108 and second(t(3)) == 12


def test_closures():

    def outer(k):

        def inner(x):
            return x + k

        return inner

    @ms_function
    def net(x):
        fs = [outer(1), outer(2)]
        y = x
        for f in fs:
            y = f(y)

        def local(z):
            return z * y

        return local(x)

    assert net(t(2)) == 10


def test_function_chosen_by_constant():

    def add(x):
        return x + 1

    def mul(x):
        return x * 2

    @ms_function
    def net(x, flag):
        f = add if flag else mul
        return f(x)

    assert net(t(3), True) == 4 and net(t(3), False) == 6


def test_switch_of_cells():

    class Case(nn.Cell):

        def __init__(self):
            super().__init__()
            self.layers = (nn.ReLU(), nn.Softmax())

        def construct(self, x, flag):
            if flag:
                out = self.layers[0](x)
            else:
                out = self.layers[1](x)
            return out

    np.testing.assert_allclose(Case()(Tensor([-1.0, 1.0]), Tensor(True)).asnumpy(), [0, 1])


def test_input_signature():

    @ms_function(input_signature=(Tensor(np.ones((2, 3), np.float32)), Tensor(np.ones((2, 3), np.float32))))
    def net(x, y):
        return x + y

    assert net(Tensor(np.ones((2, 3), np.float32)), Tensor(np.ones((2, 3), np.float32))).asnumpy().sum() == 12
    with pytest.raises((ValueError, TypeError)):
        net(Tensor(np.ones((3, 3), np.float32)), Tensor(np.ones((3, 3), np.float32)))


def test_input_signature_too_few():

    @ms_function(input_signature=(Tensor(np.ones((2, 3), np.float32)),))
    def net(x, y):
        return x + y

    with pytest.raises((ValueError, TypeError)):
        net(Tensor(np.ones((2, 3), np.float32)), Tensor(np.ones((2, 3), np.float32)))


def test_set_inputs_with_open_sizes():

    class Net(nn.Cell):

        def __init__(self):
            super().__init__()
            self.relu = P.ReLU()

        def construct(self, x):
            return self.relu(x) + 1

    net = Net()
    net.set_inputs(Tensor(shape=[None, 4], dtype=ms.float32))
    for n in (1, 2, 5):
        assert net(Tensor(np.ones((n, 4), np.float32))).shape == (n, 4)
    with pytest.raises((ValueError, TypeError)):
        net(Tensor(np.ones((2, 5), np.float32)))


def test_set_inputs_twice_and_shapes_of_open_ops():

    class Net(nn.Cell):

        def construct(self, x, y):
            return (P.Concat(0)((x, y)), x.shape[1], P.ReduceSum()(x, 0))

    net = Net()
    net.set_inputs(Tensor(shape=[None, 3], dtype=ms.float32), Tensor(shape=[None, 3], dtype=ms.float32))
    a, b, c = net(Tensor(np.ones((2, 3), np.float32)), Tensor(np.ones((4, 3), np.float32)))
    assert a.shape == (6, 3) and b == 3 and (c.shape == (3,))


def test_hyper_map_multitype():
    add = C.MultitypeFuncGraph("add")

    @add.register("Number", "Number")
    def add_numbers(a, b):
        return F.scalar_add(a, b)

    @add.register("Tensor", "Tensor")
    def add_tensors(a, b):
        return F.tensor_add(a, b)

    @add.register("Number", "Tensor")
    def add_mixed(a, b):
        return b * 10

    hyper = C.HyperMap(add)

    @ms_function
    def net(x):
        return hyper((1, x, 2), (3, x, x))

    out = net(t(2))
    assert out[0] == 4 and out[1] == 4 and (out[2] == 20)
    out = C.HyperMap()(add, ((1, 2), (t(3),)), ((5, 6), (t(4),)))
    assert out[0] == (6, 8) and out[1][0] == 7
    m = C.Map(add)
    assert m((1, 2), (3, 4)) == (4, 6)
    with pytest.raises((TypeError, ValueError)):
        add("a", "b")


def test_order_of_parameter_updates():

    class Net(nn.Cell):

        def __init__(self):
            super().__init__()
            self.p = Parameter(Tensor([1.0]), name="p")
            self.assign, self.assign_add = (P.Assign(), P.AssignAdd())

        def construct(self, x):
            a = self.p * 1
            self.assign(self.p, x)
            b = self.p * 1
            self.assign_add(self.p, x)
            c = self.p * 1
            self.p = self.p + 10
            return (a, b, c, self.p * 1)

    net = Net()
    out = [float(e.asnumpy()) for e in net(Tensor([5.0]))]
    assert out == [1, 5, 10, 20] and net.p.asnumpy() == 20


def test_depend_and_side_effects():

    class Net(nn.Cell):

        def __init__(self):
            super().__init__()
            self.p = Parameter(Tensor([1.0]), name="p")

        def construct(self, x):
            u = ops.assign_add(self.p, x)
            x = F.depend(x, u)
            return x + self.p

    assert Net()(Tensor([2.0])).asnumpy() == 5


def test_stop_gradient():

    @ms_function
    def f(x, y):
        return F.stop_gradient(x * y) + x

    gx, gy = grad_all(f)(t(3.0, np.float32), t(4.0, np.float32))
    assert gx == 1 and gy == 0
    gx, gy = grad_all(lambda x, y: x * ops.stop_gradient(y))(t(3.0, np.float32), t(4.0, np.float32))
    assert gx == 4 and gy == 0


def test_with_and_try_and_global():

    class Box:

        def __enter__(self):
            return 3

        def __exit__(self, *more):
            return False

    @ms_function
    def net(x):
        with Box() as b:
            x = x + b
        return x

    assert net(t(1)) == 4


def test_yield_is_refused_and_defaults_of_lambdas_are_taken():

    def yield_(x):
        yield x

    def lambda_default(x):
        f = lambda a, b=2: a + b
        return f(x)

    with pytest.raises((RuntimeError, TypeError)):
        ms_function(yield_)(t(2))
    assert ms_function(lambda_default)(t(1)) == 3


def test_none_comparisons_and_is():

    @ms_function
    def net(x, y=None):
        if y is None:
            return x
        if y is not None and x is not None:
            return x + y
        return x - y

    assert net(t(1)) == 1 and net(t(1), t(2)) == 3


def test_and_or_of_mixed():

    @ms_function
    def net(x, y):
        a = x > 1 and y > 1
        b = x > 1 or y > 1
        c = not x > 1
        n = 0
        if x and y:
            n = 1
        return (a, b, c, n)

    a, b, c, n = net(t(2), t(0))
    assert not bool(a) and bool(b) and (not bool(c)) and (n == 0)


def test_and_of_tensors_of_two_types():

    @ms_function
    def net(x, y):
        return x and y

    with pytest.raises(TypeError):
        net(Tensor([True]), Tensor([2.0]))


def test_shape_and_arithmetic_of_it():

    @ms_function
    def net(x):
        b, c = x.shape
        n = b * c // 2 + b % c - b**2
        y = P.Reshape()(x, (c, b))
        return (y, n, x.ndim, x.size, x.dtype)

    y, n, d, s, dt = net(Tensor(np.ones((2, 3), np.float32)))
    assert y.shape == (3, 2) and n == 1 and (d == 2) and (s == 6) and (dt == ms.float32)


def test_super_and_static_methods():

    class Base(nn.Cell):

        def construct(self, x):
            return x + 1

        @staticmethod
        def twice(x):
            return x * 2

        @classmethod
        def thrice(cls, x):
            return x * 3

        @property
        def four(self):
            return 4

    class Child(Base):

        def construct(self, x):
            return super().construct(x) + self.twice(x) + self.thrice(x) + self.four

    assert Child()(t(1)) == 2 + 2 + 3 + 4


def test_recursion_with_tensor_end():

    class Net(nn.Cell):

        def construct(self, x, n):
            return self.f(x, n)

        def f(self, x, n):
            if n <= 0:
                return x
            return self.f(x * 2, n - 1)

    assert Net()(t(1), 5) == 32


def test_constant_condition_prunes():

    class Net(nn.Cell):

        def __init__(self):
            super().__init__()
            self.flag = False

        def construct(self, x):
            if self.flag:
                y = no_such_name(x)
            else:
                y = x
            return y

    assert Net()(t(3)) == 3


def test_undefined_name():

    class Net(nn.Cell):

        def construct(self, x):
            return no_such_name(x)

    with pytest.raises(NameError) as info:
        Net()(t(1))
    assert "'no_such_name' is not defined" in str(info.value)


def test_join_failed():

    class Net(nn.Cell):

        def construct(self, x, y):
            if x > y:
                out = x
            else:
                out = P.Cast()(x, ms.float32)
            return out

    with pytest.raises(TypeError) as info:
        Net()(t(1), t(2))
    assert "Type Join Failed" in str(info.value)

    class Shape(nn.Cell):

        def construct(self, x):
            if x[0] > 1:
                return x
            return x[:1]

    with pytest.raises(ValueError) as info:
        Shape()(t([1, 2]))
    assert "Shape Join Failed" in str(info.value)
