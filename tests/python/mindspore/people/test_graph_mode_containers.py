"""Lists, tuples, dictionaries, comprehensions, starred arguments and builtins of graph mode."""

import numpy as np
import pytest
import mindspore as ms
import mindspore.nn as nn
import mindspore.ops as ops
from mindspore import Tensor, context, ms_function, Parameter, ParameterTuple
from mindspore.ops import operations as P
from mindspore.ops import functional as F
from mindspore.ops import composite as C

context.set_context(mode=context.GRAPH_MODE)


def test_list_append_insert_pop_extend_reverse_clear_count():

    @ms_function
    def net():
        x = [1, 2]
        x.append(3)
        x.insert(0, 9)
        y = x.pop()
        x.extend([7, 7])
        x.reverse()
        return (x, y, x.count(7), len(x))

    out = net()
    assert list(out[0]) == [7, 7, 2, 1, 9] and out[1:] == (3, 2, 5)


def test_list_pop_of_place_and_clear():

    @ms_function
    def net():
        x = [1, 2, 3]
        y = x.pop(0)
        z = [4, 5]
        z.clear()
        return (x, y, z)

    x, y, z = net()
    assert list(x) == [2, 3] and y == 1 and (len(z) == 0)


def test_list_comprehension():

    @ms_function
    def net():
        return [i * 2 for i in range(5) if i % 2 == 0]

    assert list(net()) == [0, 4, 8]


def test_list_comprehension_of_tensors():

    @ms_function
    def net(x):
        ys = [x + i for i in range(3)]
        return ys[0] + ys[1] + ys[2]

    assert net(Tensor(1)) == 6


def test_nested_comprehension_is_refused():

    @ms_function
    def net():
        return [a + b for a in [1, 2] for b in [3, 4]]

    with pytest.raises(TypeError) as info:
        net()
    assert "The 'generators' supports supports 1 'comprehension' in ListComp/GeneratorExp" in str(info.value) or "comprehension" in str(info.value)


def test_generator_expression():

    @ms_function
    def net(x):
        out = ()
        for i in (x + k for k in (1, 2)):
            out = out + (i,)
        return out

    a, b = net(Tensor(1))
    assert a == 2 and b == 3


def test_dict_get_set_items():

    @ms_function
    def net(x):
        d = {"a": x, "b": 2}
        d["c"] = x + 1
        d["a"] = x * 2
        keys = d.keys()
        values = d.values()
        n = 0
        for k, v in d.items():
            n = n + v
        return (d["a"] + d["c"], "b" in d, len(d), keys, n, d.get("z", 5), d.get("b"))

    out = net(Tensor(3))
    assert out[0] == 10 and out[1] and (out[2] == 3) and (tuple(out[3]) == ("a", "b", "c")) and (out[4] == 12) and (out[5] == 5) and (out[6] == 2)


def test_dict_fromkeys_update_clear():

    @ms_function
    def net():
        d = {"a": 1}
        d.update({"b": 2, "a": 5})
        e = d.fromkeys(["x", "y"], 3)
        return (d["a"] + d["b"], e["x"] + e["y"], d.has_key("a"))

    out = net()
    assert out[0] == 7 and out[1] == 6 and out[2]


def test_dict_as_result_and_argument():

    class Net(nn.Cell):

        def construct(self, d):
            return {"x": d["a"] + d["b"]}

    out = Net()({"a": Tensor(1), "b": Tensor(2)})
    assert (out["x"] if isinstance(out, dict) else out[0]) == 3


def test_star_arguments():

    class Net(nn.Cell):

        def construct(self, *args):
            out = args[0]
            for each in args[1:]:
                out = out + each
            return out

    assert Net()(Tensor(1), Tensor(2), Tensor(3)) == 6


def test_star_call_and_keywords():

    def add(a, b=2, *rest, c=3, **more):
        s = a + b + c
        for r in rest:
            s = s + r
        return s + more.get("d", 0) if more else s

    @ms_function
    def net(x):
        args = (x, 1)
        kw = {"c": 10}
        return (add(*args), add(*args, **kw), add(x, b=5), add(x, 1, 2, 3), add(x, d=7))

    assert tuple((int(each.asnumpy()) for each in net(Tensor(1)))) == (5, 12, 9, 10, 13)


def test_tuple_slices_and_index():

    @ms_function
    def net(x):
        t = (x, x + 1, x + 2, x + 3)
        return (t[1:3], t[-1], t[::2], t[::-1])

    out = net(Tensor(0))
    assert [int(e.asnumpy()) for e in out[0]] == [1, 2] and out[1] == 3 and (len(out[2]) == 2) and (out[3][0] == 3)


def test_tuple_index_by_tensor_scalar():

    class Net(nn.Cell):

        def __init__(self):
            super().__init__()
            self.nets = nn.CellList([nn.ReLU(), nn.Tanh()])

        def construct(self, x, i):
            return self.nets[i](x)

    np.testing.assert_allclose(Net()(Tensor([-1.0, 2.0]), Tensor(0, ms.int32)).asnumpy(), [0, 2])
    np.testing.assert_allclose(Net()(Tensor([-1.0, 2.0]), Tensor(-1, ms.int32)).asnumpy(), np.tanh([-1, 2]), 0.0001)


def test_index_out_of_tuple():

    @ms_function
    def net(x):
        return (x, x)[3]

    with pytest.raises(IndexError):
        net(Tensor(1))


def test_in_and_not_in():

    @ms_function
    def net():
        return (1 in (1, 2), 3 not in [1, 2], "a" in {"a": 1}, "x" in ("x", "y"), None in (None, 1))

    assert net() == (True, True, True, True, True)


def test_zip_enumerate_range_map_filter_reversed_sum():

    @ms_function
    def net(x):
        s = x
        for i, (a, b) in enumerate(zip((1, 2, 3), [4, 5, 6]), 1):
            s = s + i * a * b
        m = tuple(map(lambda v: v + 1, (1, 2)))
        f = tuple(filter(lambda v: v > 1, (1, 2, 3)))
        return (s, m, f, sum((1, 2, 3)), sum([x, x]), sum((1, 2), 10), max(1, 2, 3), min((4, 2)), tuple(range(1, 7, 2)))

    out = net(Tensor(0))
    assert (
        out[0] == 4 + 20 + 54
        and out[1] == (2, 3)
        and (out[2] == (2, 3))
        and (out[3] == 6)
        and (out[4] == 0)
        and (out[5] == 13)
        and (out[6:] == (3, 2, (1, 3, 5)))
    )


def test_unpacking():

    @ms_function
    def net(x):
        (a, b), c = ((x, x + 1), x + 2)
        a, b = (b, a)
        d = e = c
        return (a - b, d + e)

    out = net(Tensor(1))
    assert out[0] == 1 and out[1] == 6


def test_list_of_parameters():

    class Net(nn.Cell):

        def __init__(self):
            super().__init__()
            self.a = Parameter(Tensor([1.0]), name="a")
            self.b = Parameter(Tensor([2.0]), name="b")
            self.all = ParameterTuple((self.a, self.b))

        def construct(self, x):
            for each in self.all:
                x = x + each
            return x

    assert Net()(Tensor([1.0])).asnumpy() == 4
    grads = C.GradOperation(get_by_list=True)(Net(), Net().all)
    net = Net()
    grads = C.GradOperation(get_by_list=True)(net, net.all)(Tensor([1.0]))
    assert [g.asnumpy()[0] for g in grads] == [1, 1]


def test_tensor_list_assignments():

    @ms_function
    def net(x, y):
        z = [[x, y], [y, x]]
        z[0][1] = x + y
        z[1] = [x]
        return (z[0][1], z[1][0], len(z))

    out = net(Tensor(1), Tensor(2))
    assert out[0] == 3 and out[1] == 1 and (out[2] == 2)


def test_isinstance_kinds():

    @ms_function
    def net(x):
        return (
            isinstance(1, int),
            isinstance(x, Tensor),
            isinstance((1,), (tuple, list)),
            isinstance("s", str),
            isinstance([], tuple),
            isinstance(1.0, float),
            isinstance({"a": 1}, dict),
            isinstance(True, bool),
        )

    assert net(Tensor(1)) == (True, True, True, True, False, True, True, True)


def test_getattr_hasattr():

    class Net(nn.Cell):

        def __init__(self):
            super().__init__()
            self.a = 3

        def construct(self, x):
            s = x
            if hasattr(self, "a"):
                s = s + getattr(self, "a")
            if not hasattr(self, "zz"):
                s = s + getattr(self, "zz", 10)
            return (s, getattr(x, "shape"), hasattr(x, "dtype"))

    out = Net()(Tensor([1]))
    assert out[0] == 14 and out[1] == (1,) and out[2]


def test_getattr_without_default():

    class Net(nn.Cell):

        def construct(self, x):
            return getattr(self, "missing")

    with pytest.raises(AttributeError):
        Net()(Tensor(1))


def test_len_and_bool_of_containers():

    @ms_function
    def net(x):
        n = 0
        if ():
            n = n + 1
        if [1]:
            n = n + 10
        if "":
            n = n + 100
        if not {}:
            n = n + 1000
        if None:
            n = n + 10000
        return (n, len(x), bool([]), bool((1,)), all([1, 0]), any((0, 1)), abs(-3), round(2.6), pow(2, 3), int(3.7), float(2), int("12"))

    out = net(Tensor(np.ones((4, 2), np.float32)))
    assert out == (1010, 4, False, True, False, True, 3, 3, 8, 3, 2.0, 12)
