"""Dicts, lists, tuples, comprehensions, closures and classes in captured functions."""

import numpy as np
import pytest
import mindspore as ms
from mindspore import Tensor, ms_function, nn

pytestmark = pytest.mark.usefixtures("graph_mode")


def test_dict():
    class Net(nn.Cell):
        def construct(self, x):
            d = {"a": x, "b": x * 2}
            d["c"] = d["a"] + d["b"]
            total = d["c"]
            for k in d.keys():
                total = total + d[k]
            for v in d.values():
                total = total + v
            for k, v in d.items():
                total = total + v
            return total

    assert Net()(Tensor([1.0])).asnumpy()[0] == 3 + 6 + 6 + 6


def test_list_methods():
    @ms_function
    def f(x):
        l = [x, x + 1]
        l.append(x + 2)
        l.insert(0, x * 0)
        l.extend([x, x])
        last = l.pop()
        l.reverse()
        return l[0] + last + len(l)

    assert f(Tensor(1.0)).asnumpy() == 1 + 1 + 5


def test_tuple_ops():
    @ms_function
    def f(x, t):
        a, b = t
        c = t + (x,)
        return c[-1] + a * b, c[0:2], len(c)

    r = f(Tensor(2.0), (Tensor(3.0), Tensor(4.0)))
    assert r[0].asnumpy() == 14 and len(r[1]) == 2 and r[2] == 3


def test_comprehension():
    @ms_function
    def f(x):
        l = [i * x for i in range(4) if i % 2 == 1]
        s = sum([i for i in range(3)])
        return l[0] + l[1] + s

    assert f(Tensor(2.0)).asnumpy() == 2 + 6 + 3


def test_star_args_kwargs():
    class Net(nn.Cell):
        def construct(self, x, *args, **kwargs):
            for a in args:
                x = x + a
            return x * kwargs["k"]

    assert Net()(Tensor(1.0), Tensor(2.0), Tensor(3.0), k=Tensor(2.0)).asnumpy() == 12


def test_builtin_functions():
    @ms_function
    def f(x):
        a = max(1, 2, 3) + min(4, 5) + abs(-2) + round(2.6) + pow(2, 3) + int("3") + len("abc")
        b = any([False, True]) and all((True, True)) and isinstance(x, Tensor)
        if b:
            x = x + a
        m = list(map(lambda u: u + 1, (1, 2)))
        return x + m[0] + m[1] + sum((1, 2, 3))

    assert f(Tensor(0.0)).asnumpy() == 3 + 4 + 2 + 3 + 8 + 3 + 3 + 2 + 3 + 6


def test_fstring_and_compare_none():
    class Net(nn.Cell):
        def __init__(self, name=None):
            super().__init__()
            self.n = name

        def construct(self, x):
            if self.n is None:
                return x
            s = f"{self.n}_x"
            if s == "a_x":
                return x + 1
            return x + 2

    assert Net()(Tensor(1.0)).asnumpy() == 1
    assert Net("a")(Tensor(1.0)).asnumpy() == 2
    assert Net("b")(Tensor(1.0)).asnumpy() == 3


def test_in_not_in_chain():
    @ms_function
    def f(x, k):
        if k in (1, 2, 3) and "a" not in {"b": 1} and 0 < k <= 2:
            return x + 1
        return x

    assert f(Tensor(1.0), 2).asnumpy() == 2 and f(Tensor(1.0), 3).asnumpy() == 1


def test_closure_partial_lambda():
    import functools

    @ms_function
    def f(x, y):
        def g(a, b):
            return a * y + b

        h = functools.partial(g, b=x)
        k = lambda z: h(z) + 1
        return k(x)

    assert f(Tensor(2.0), Tensor(3.0)).asnumpy() == 9


def test_slice_assign():
    @ms_function
    def f(x):
        x[0] = 5.0
        x[1:3, 1] = 7.0
        x[..., -1] = 0.0
        return x

    out = f(Tensor(np.ones((3, 3)), ms.float32)).asnumpy()
    assert out.tolist() == [[5, 5, 0], [1, 7, 0], [1, 7, 0]]


def test_with_class_attr():
    @ms.ms_class
    class Helper:
        scale = 3

        def __init__(self, b):
            self.b = b

        def apply(self, x):
            return x * self.scale + self.b

    class Net(nn.Cell):
        def __init__(self):
            super().__init__()
            self.h = Helper(2)

        def construct(self, x):
            return self.h.apply(x) + self.h.b

    assert Net()(Tensor(1.0)).asnumpy() == 7


def test_raise_assert():
    class Net(nn.Cell):
        def construct(self, x, k):
            if k > 3:
                raise ValueError("k too big: %d" % k)
            assert k >= 0
            return x

    n = Net()
    assert n(Tensor(1.0), 2).asnumpy() == 1
    with pytest.raises(ValueError, match="too big"):
        n(Tensor(1.0), 5)
    with pytest.raises(AssertionError):
        n(Tensor(1.0), -1)


def test_print_and_hasattr(capfd):
    class Net(nn.Cell):
        def __init__(self):
            super().__init__()
            self.a = 1

        def construct(self, x):
            print("x:", x)
            if hasattr(self, "a"):
                x = x + getattr(self, "a")
            return x

    assert Net()(Tensor(1.0)).asnumpy() == 2
