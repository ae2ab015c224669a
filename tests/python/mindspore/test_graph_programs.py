"""Captured programs as people write them: loops, inheritance, states, keywords, types."""

import numpy as np
import pytest
import mindspore as ms
from mindspore import Tensor, nn, ops, ms_function, jit, context, Parameter
from mindspore import mutable

pytestmark = pytest.mark.usefixtures("graph_mode")


def test_while_with_tuple_carry():
    @jit
    def f(x):
        i, s = 0, x
        while i < 3:
            s, i = s + i, i + 1
        return s, i

    s, i = f(Tensor(1.0))
    assert s.asnumpy() == 4 and int(i) == 3


def test_inheritance_super():
    class Base(nn.Cell):
        def __init__(self, k):
            super().__init__()
            self.k = k

        def construct(self, x):
            return x * self.k

        def helper(self, x):
            return x + 1

    class Child(Base):
        def construct(self, x):
            y = super().construct(x)
            return self.helper(y)

    assert Child(3)(Tensor(2.0)).asnumpy() == 7


def test_param_update_in_loop():
    class Net(nn.Cell):
        def __init__(self):
            super().__init__()
            self.n = Parameter(Tensor(0, ms.int32), name="n")

        def construct(self, x):
            for _ in range(3):
                self.n += 1
            return x + self.n

    net = Net()
    assert net(Tensor(1.0)).asnumpy() == 4 and net.n.asnumpy() == 3
    net(Tensor(1.0))
    assert net.n.asnumpy() == 6


def test_setattr_and_list_state():
    class Net(nn.Cell):
        def __init__(self):
            super().__init__()
            self.items = [1, 2, 3]
            self.cfg = {"a": 2.0}
            self.layers = nn.CellList([nn.ReLU(), nn.Sigmoid()])

        def construct(self, x):
            for k in self.items:
                x = x * k
            for i, layer in enumerate(self.layers):
                x = layer(x) + i
            return x * self.cfg["a"]

    assert np.isclose(Net()(Tensor(1.0)).asnumpy(), 2 * (1 / (1 + np.exp(-6)) + 1))


def test_numpy_and_scalar_in_graph():
    class Net(nn.Cell):
        def construct(self, x):
            a = np.array([1, 2, 3])
            b = Tensor(a.astype(np.float32))
            return x + b + float(a.sum())

    assert Net()(Tensor([0.0, 0.0, 0.0])).asnumpy().tolist() == [7, 8, 9]


def test_isinstance_type_branches():
    @jit
    def f(x):
        if isinstance(x, Tensor):
            return x + 1
        if isinstance(x, (tuple, list)):
            return x[0]
        return x

    assert f(Tensor(1.0)).asnumpy() == 2
    assert f((Tensor(5.0), 1)).asnumpy() == 5


def test_default_args_and_kwargs():
    class Net(nn.Cell):
        def construct(self, x, scale=2.0, *, bias=None):
            if bias is not None:
                x = x + bias
            return x * scale

    n = Net()
    assert n(Tensor(1.0)).asnumpy() == 2
    assert n(Tensor(1.0), 3.0).asnumpy() == 3
    assert n(Tensor(1.0), bias=Tensor(1.0)).asnumpy() == 4


def test_mutable():
    class Net(nn.Cell):
        def construct(self, t):
            return t[0] + t[1]

    n = Net()
    assert n(mutable((Tensor(1.0), Tensor(2.0)))).asnumpy() == 3
    assert n(mutable((Tensor(4.0), Tensor(2.0)))).asnumpy() == 6
    with pytest.raises(TypeError):
        mutable("a")


def test_shape_ops():
    @jit
    def f(x):
        b, c = x.shape
        y = x.reshape((c, b)).transpose()
        z = ops.concat((y, x), axis=-1)
        return z[:, ::2].sum(axis=0), ops.shape(x)[0] * 2, x.ndim, x.size

    r = f(Tensor(np.arange(6).reshape(2, 3).astype(np.float32)))
    assert r[0].shape == (3,) and r[1] == 4 and r[2] == 2 and r[3] == 6


def test_global_and_nonlocal_values():
    K = 5.0

    @jit
    def f(x):
        def inner(y):
            return y * K

        return inner(x) + GLOBAL

    assert f(Tensor(1.0)).asnumpy() == 8


GLOBAL = 3.0


def test_nested_functions_returning_functions():
    @jit
    def f(x):
        def make(k):
            def g(y):
                return y + k

            return g

        return make(2)(x) * make(3)(x)

    assert f(Tensor(1.0)).asnumpy() == 12


def test_tensor_bool_conditions():
    @jit
    def f(x, y):
        if x > 0 and y > 0:
            z = x + y
        elif not (x > 0) or y < -5:
            z = x - y
        else:
            z = x * y
        return z

    assert f(Tensor(1.0), Tensor(2.0)).asnumpy() == 3
    assert f(Tensor(-1.0), Tensor(2.0)).asnumpy() == -3
    assert f(Tensor(1.0), Tensor(-2.0)).asnumpy() == -2


def test_else_of_loops_is_refused():
    @jit
    def f(x):
        for i in range(3):
            x = x + i
        else:
            x = x * 2
        return x

    @jit
    def g(x):
        while x < 3:
            x = x + 1
        else:
            x = x * 2
        return x

    for function, word in ((f, "for"), (g, "while")):
        with pytest.raises(RuntimeError, match=f"The '{word}...else...' statement is not supported now"):
            function(Tensor(1.0))


def test_dict_return():
    class Net(nn.Cell):
        def construct(self, x):
            return {"out": x, "sq": x * x}

    r = Net()(Tensor(3.0))
    assert r["sq"].asnumpy() == 9


def test_str_and_none():
    class Net(nn.Cell):
        def __init__(self, act="relu"):
            super().__init__()
            self.act = act

        def construct(self, x, mask=None):
            if self.act == "relu" and mask is None:
                x = ops.relu(x)
            elif self.act.startswith("sig"):
                x = ops.sigmoid(x)
            return x

    assert Net()(Tensor(-1.0)).asnumpy() == 0
    assert np.isclose(Net("sigmoid")(Tensor(0.0)).asnumpy(), 0.5)


def test_ms_function_in_pynative():
    context.set_context(mode=context.PYNATIVE_MODE)

    @ms_function
    def f(x):
        return x * x + 1

    assert f(Tensor(3.0)).asnumpy() == 10
    assert ops.grad(f)(Tensor(3.0)).asnumpy() == 6

    class Net(nn.Cell):
        @ms_function
        def construct(self, x):
            return f(x) * 2

    assert Net()(Tensor(1.0)).asnumpy() == 4
    context.set_context(mode=context.GRAPH_MODE)


def test_set_inputs_compile():
    net = nn.Dense(3, 2)
    net.compile(Tensor(np.ones((1, 3), np.float32)))
    net.set_inputs(Tensor(shape=[None, 3], dtype=ms.float32))
    assert net(Tensor(np.ones((5, 3), np.float32))).shape == (5, 2)
    assert net(Tensor(np.ones((2, 3), np.float32))).shape == (2, 2)
