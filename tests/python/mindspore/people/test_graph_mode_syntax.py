"""What the language of graph mode takes: constants, tuples, lists, dictionaries, functions, statements."""
import functools
import math
import numpy as np
import pytest
import mindspore.ops.operations as P
from mindspore import Tensor, context, ms_function
from mindspore import dtype as mstype
from mindspore.nn import Cell
from mindspore.ops import composite as C
from mindspore.ops import functional as F
from mindspore.ops import constexpr
from mindspore.ops.functional import depend

context.set_context(mode=context.GRAPH_MODE)


def check(construct, inputs, expect, init=None):
    class Net(Cell):
        def __init__(self):
            super().__init__()
            if init is not None:
                init(self)

    Net.construct = construct
    out = Net()(*inputs)
    if isinstance(expect, np.ndarray):
        np.testing.assert_allclose(out.asnumpy(), expect, 1e-5)
    else:
        assert out == expect


def test_constant_tuple():
    class Net(Cell):
        def __init__(self):
            super().__init__()
            self.tuple_1 = (1, 2, 3)
            self.tuple_2 = (4, 5, 6)

        def construct(self):
            return self.tuple_1 + self.tuple_2

    assert Net()() == (1, 2, 3, 4, 5, 6)


@pytest.mark.parametrize("value", [(1, 2, 3), 5, 2.5, "hello world", True])
def test_constant_output(value):
    class Net(Cell):
        def __init__(self):
            super().__init__()
            self.x = value

        def construct(self):
            return self.x

    assert Net()() == value


def test_constant_arithmetic():
    class Net(Cell):
        def __init__(self):
            super().__init__()
            self.a, self.b = 2, 3

        def construct(self):
            return self.a + self.b, self.a * self.b, self.a ** self.b, self.b // self.a, self.b % self.a, self.b / self.a

    assert Net()() == (5, 6, 8, 1, 1, 1.5)


def test_same_tensor_comes_back():
    class Net(Cell):
        def construct(self, x):
            return x

    x = Tensor(np.array(88).astype(np.int32))
    assert Net()(x) == x


def test_nested_tuples_of_tensors():
    class Net(Cell):
        def __init__(self):
            super().__init__()
            self.add, self.sub, self.relu, self.depend = P.Add(), P.Sub(), P.ReLU(), depend

        def construct(self, x, y):
            ret = ((self.add(x, x), self.add(y, y)), (self.sub(x, x), self.sub(y, y)))
            ret = (ret, ret)
            return self.depend(ret, self.relu(x))

    out = Net()(Tensor(np.ones([2], np.int32)), Tensor(np.zeros([3], np.int32)))
    np.testing.assert_array_equal(out[1][0][0].asnumpy(), [2, 2])
    assert out[0][1][1].shape == (3,)


def test_cross_entropy_in_tuples():
    class Net(Cell):
        def __init__(self):
            super().__init__()
            self.soft = P.SoftmaxCrossEntropyWithLogits()
            self.value = (Tensor(np.zeros((2, 2)).astype(np.float32)), Tensor(np.ones((2, 2)).astype(np.float32)))

        def construct(self, x, y, z):
            ret = self.soft(x + y, x - y)
            return (ret, z), self.value

    one = Tensor(np.ones((2, 2)).astype(np.float32))
    (ret, z), value = Net()(one, one, one)
    assert ret[0].shape == (2,) and ret[1].shape == (2, 2) and value[0].asnumpy().sum() == 0


class NonTensorNet(Cell):
    def construct(self, tuple_a, tensor_x, list_b, tensor_y, scalar, dict_c, flag):
        if flag:
            return tensor_x - tuple_a[2] + list_b[1][1]["x"] - tensor_y + scalar - dict_c["x"]
        return tensor_x + tuple_a[2] - list_b[1][1]["y"] + tensor_y - scalar + dict_c["y"]


def test_inputs_that_are_no_tensors():
    x, y, z, w = (Tensor(np.full((2, 2), k, np.float32)) for k in (1, 2, 3, 4))
    lists = [[x, x], [[x, y], {"x": x, "y": y, "z": x, "p": y}]]
    out = NonTensorNet()((x, y, z, w), z, lists, w, 6, {"x": x, "y": y}, True)
    np.testing.assert_array_equal(out.asnumpy(), np.full((2, 2), 3 - 3 + 1 - 4 + 6 - 1))
    out = NonTensorNet()((w, y, z, w), z, lists, x, 6, {"x": x, "y": y}, False)
    np.testing.assert_array_equal(out.asnumpy(), np.full((2, 2), 3 + 3 - 2 + 1 - 6 + 2))


def test_gradient_of_inputs_that_are_no_tensors():
    class GradNet(Cell):
        def __init__(self, net):
            super().__init__()
            self.net = net
            self.grad_all = C.GradOperation(get_all=True)

        def construct(self, tuple_a, tensor_x, list_b, tensor_y, scalar, dict_c, flag):
            return self.grad_all(self.net)(tuple_a, tensor_x, list_b, tensor_y, scalar, dict_c, flag)

    x, y, z, w = (Tensor(np.full((2, 2), k, np.float32)) for k in (1, 2, 3, 4))
    lists = [[x, x], [[x, y], {"x": x, "y": y, "z": x, "p": y}]]
    GradNet(NonTensorNet())((x, y, z, w), z, lists, w, 6, {"x": x, "y": y}, True)


def test_global_tensor():
    @ms_function
    def add_global(x):
        global G_X
        return F.tensor_add(x, G_X)

    np.testing.assert_array_equal(add_global(Tensor(np.ones([3, 3]).astype(np.float32))).asnumpy(), np.full((3, 3), 2))


G_X = Tensor(np.ones([3, 3]).astype(np.float32))


def test_default_and_variable_arguments():
    class Net(Cell):
        def construct(self, x, a=1 + 2, *args, **kwargs):
            for each in args:
                x = x + each
            return x * a + kwargs.get("k", 0)

    assert Net()(Tensor(2)) == 6
    assert Net()(Tensor(2), 2, Tensor(3), Tensor(4)) == 18


def test_slices_of_tuples_and_lists():
    class Net(Cell):
        def __init__(self):
            super().__init__()
            self.t = (1, 2, 3, 4, 5)

        def construct(self):
            return self.t[0:2], self.t[::-1], self.t[-1], self.t[1:4:2], self.t[-3:]

    assert Net()() == ((1, 2), (5, 4, 3, 2, 1), 5, (2, 4), (3, 4, 5))


def test_lists_grow():
    class Net(Cell):
        def construct(self, x):
            out = []
            for i in range(3):
                out.append(x + i)
            return out[0] + out[1] * out[2]

    assert Net()(Tensor(2)) == 2 + 3 * 4


def test_list_methods():
    class Net(Cell):
        def construct(self, x):
            a = [1, 2]
            a.append(3)
            a.insert(0, 7)
            a.extend([5])
            b = a.pop()
            a.reverse()
            return x + a[0] + b + len(a)

    assert Net()(Tensor(1)) == 1 + 3 + 5 + 4


def test_dictionaries():
    class Net(Cell):
        def construct(self, x, y):
            d = {"a": x, "b": y}
            d["c"] = x * y
            total = d["a"]
            for key in d.keys():
                if key != "a":
                    total = total + d[key]
            for v in d.values():
                total = total + v
            for k, v in d.items():
                if k == "c":
                    total = total - v
            return total, "a" in d, len(d)

    out = Net()(Tensor(2), Tensor(3))
    assert out[0] == 2 + 3 + 6 + 2 + 3 + 6 - 6 and out[1] and out[2] == 3


def test_comprehensions():
    class Net(Cell):
        def construct(self, x):
            a = [i * i for i in range(5) if i % 2 == 0]
            b = tuple(j + 1 for j in a)
            return x + sum(a), b

    out = Net()(Tensor(1))
    assert out[0] == 21 and out[1] == (1, 5, 17)


def test_enumerate_and_zip():
    class Net(Cell):
        def __init__(self):
            super().__init__()
            self.a, self.b = (1, 2, 3), (4, 5, 6)

        def construct(self, x):
            for i, (a, b) in enumerate(zip(self.a, self.b)):
                x = x + i * a * b
            for i, t in enumerate(x):
                x = x + i * t
            return x

    x = np.array([1, 2])
    x = x + 0 * 4 + 1 * 2 * 5 + 2 * 3 * 6
    for i, t in enumerate(x.copy()):
        x = x + i * t
    np.testing.assert_array_equal(Net()(Tensor([1, 2])).asnumpy(), x)


def test_functions_in_functions():
    class Net(Cell):
        def construct(self, x, y):
            def outer(a):
                def inner(b):
                    return a * b + y
                return inner(a) + inner(2)
            return outer(x)

    assert Net()(Tensor(3), Tensor(4)) == 9 + 4 + 6 + 4


def test_lambda_map_filter_partial():
    class Net(Cell):
        def construct(self, x):
            f = lambda a, b: a * b + 1
            g = functools.partial(f, 3)
            h = F.partial(f, 2)
            m = tuple(map(lambda k: k + 1, (1, 2)))
            return f(x, 2) + g(x) + h(x) + m[1]

    assert Net()(Tensor(1)) == 3 + 4 + 3 + 3


def test_hyper_map_and_multitype():
    add = C.MultitypeFuncGraph('add')

    @add.register("Number", "Number")
    def add_scala(x, y):
        return x + y

    @add.register("Tensor", "Tensor")
    def add_tensor(x, y):
        return x + y

    @add.register("Tensor", "Number")
    def add_mixed(x, y):
        return x * y

    class Net(Cell):
        def __init__(self):
            super().__init__()
            self.map = C.HyperMap(add)

        def construct(self, x, y):
            return self.map((x, (1, x)), (y, (2, 10)))

    out = Net()(Tensor(2), Tensor(3))
    assert out == (5, (3, 20))


def test_hyper_map_with_partial():
    class Mul(Cell):
        def construct(self, x, y):
            return x * y

    net = Mul()
    factor = Tensor(5, dtype=mstype.int32)
    hypermap = C.HyperMap()
    x, y = Tensor(np.ones([1]).astype(np.int32)), Tensor(np.ones([2]).astype(np.int32))

    @ms_function
    def run():
        return hypermap(F.partial(net, factor), (x, y))

    out = run()
    assert out[0].asnumpy().tolist() == [5] and out[1].asnumpy().tolist() == [5, 5]


def test_multitype_without_a_match():
    f = C.MultitypeFuncGraph('f')

    @f.register("Tensor")
    def one(x):
        return x

    with pytest.raises((TypeError, ValueError)):
        f("a", "b")


def test_constexpr():
    @constexpr
    def shape_of(shape, k):
        return tuple(int(each * k) for each in shape)

    class Net(Cell):
        def construct(self, x):
            return F.fill(mstype.float32, shape_of(x.shape, 2), 1.0) + F.shape(x)[0]

    out = Net()(Tensor(np.ones((2, 3), np.float32)))
    assert out.shape == (4, 6) and out.asnumpy()[0, 0] == 3


def test_shape_dtype_and_rank():
    class Net(Cell):
        def construct(self, x):
            if x.dtype == mstype.float32 and len(x.shape) == 2 and x.ndim == 2:
                return P.Cast()(x, mstype.int32) + P.Rank()(x) + P.Size()(x)
            return P.Cast()(x, mstype.int32)

    np.testing.assert_array_equal(Net()(Tensor(np.ones((2, 3), np.float32))).asnumpy(), np.full((2, 3), 9))
    np.testing.assert_array_equal(Net()(Tensor(np.ones((2, 3), np.float16))).asnumpy(), np.full((2, 3), 1))


def test_is_in_and_none():
    class Net(Cell):
        def __init__(self):
            super().__init__()
            self.nothing = None

        def construct(self, x, y=None):
            if self.nothing is None and y is None:
                x = x + 1
            if "a" in ("a", "b") and 3 not in (1, 2):
                x = x * 2
            if self.nothing is not None:
                x = x * 100
            return x

    assert Net()(Tensor(1)) == 4


def test_isinstance_and_hasattr():
    class Net(Cell):
        def __init__(self):
            super().__init__()
            self.k = 3

        def construct(self, x, t):
            if isinstance(x, Tensor) and isinstance(t, tuple) and not isinstance(self.k, str):
                x = x + 1
            if isinstance(self.k, (int, float)) and hasattr(self, "k"):
                x = x + getattr(self, "k")
            return x + getattr(self, "zzz", 10)

    assert Net()(Tensor(1), (1, 2)) == 15


def test_strings_and_f_strings():
    class Net(Cell):
        def construct(self, x, mode):
            name = f"mode_{mode}"
            if name == "mode_sum" and name.startswith("mode"):
                return x + len(name)
            return x

    class Outer(Cell):
        def __init__(self):
            super().__init__()
            self.net = Net()

        def construct(self, x):
            return self.net(x, "sum")

    assert Outer()(Tensor(1)) == 9


def test_assert_and_raise():
    class Net(Cell):
        def __init__(self, k):
            super().__init__()
            self.k = k

        def construct(self, x):
            assert self.k > 0, "k is small"
            if self.k > 10:
                raise ValueError(f"k is {self.k}")
            return x

    assert Net(1)(Tensor(1)) == 1
    with pytest.raises(AssertionError):
        Net(-1)(Tensor(1))
    with pytest.raises(ValueError, match="k is 11"):
        Net(11)(Tensor(1))


def test_with_statement():
    class Scope:
        def __enter__(self):
            return 3

        def __exit__(self, *a):
            return None

    class Net(Cell):
        def construct(self, x):
            with Scope() as k:
                x = x + k
            return x

    assert Net()(Tensor(1)) == 4


def test_python_builtins():
    class Net(Cell):
        def construct(self, x):
            a = max(1, 4, 2) + min(3, 2) + abs(-5) + int(2.7) + round(2.6) + pow(2, 3) + len((1, 2)) + sum((1, 2, 3))
            b = all((True, 1)) and any((False, 1)) and bool(3)
            c = float(3) + len(str(12)) + len(list((1, 2))) + len(tuple([1]))
            if b:
                return x + a + c
            return x

    assert Net()(Tensor(0.0, mstype.float32)) == 4 + 2 + 5 + 2 + 3 + 8 + 2 + 6 + 3 + 2 + 2 + 1


def test_math_of_constants():
    class Net(Cell):
        def __init__(self):
            super().__init__()
            self.k = math.sqrt(16)

        def construct(self, x):
            return x * self.k + np.sqrt(9.0)

    assert Net()(Tensor(1.0, mstype.float32)) == 7


def test_numpy_constants():
    class Net(Cell):
        def construct(self):
            a = np.array([1, 2, 3])
            return Tensor(a + 1)

    np.testing.assert_array_equal(Net()().asnumpy(), [2, 3, 4])


def test_assignments():
    class Net(Cell):
        def construct(self, x, y):
            a, b = x, y
            a, b = b, a
            (c, d), e = (a, b), 3
            c += d
            c -= 1
            c *= 2
            c //= 1
            return c + e

    assert Net()(Tensor(2), Tensor(5)) == (2 + 5 - 1) * 2 + 3
