"""Statements of graphs that give one of several values, that end with an exception, and that are refused."""

import numpy as np
import pytest

import mindspore.nn as nn
from mindspore import Parameter, ParameterTuple, Tensor, context, ms_class, ms_function
from mindspore import dtype as mstype
from mindspore.common.api import _cell_graph_executor
from mindspore.common import mutable
from mindspore.ops import operations as P
from mindspore.ops.composite import GradOperation


def setup_function(_):
    context.set_context(mode=context.GRAPH_MODE)


class Both(nn.Cell):
    def construct(self, x, y):
        return x and y


class Either(nn.Cell):
    def construct(self, x, y):
        return x or y


ONE, TWO = Tensor(np.ones(1, np.int32)), Tensor(np.ones(1, np.float32))


@pytest.mark.parametrize("net", [Both, Either])
@pytest.mark.parametrize("x, y", [(ONE, TWO), (TWO, ONE), (ONE, 5), (ONE, True)])
def test_and_or_of_two_types_cannot_join(net, x, y):
    with pytest.raises(TypeError, match="Cannot join the return values of different branches"):
        net()(x, y)


@pytest.mark.parametrize("net", [Both, Either])
def test_and_or_of_two_shapes_cannot_join(net):
    with pytest.raises((TypeError, ValueError), match="Cannot join"):
        net()(ONE, Tensor(np.ones((2, 3), np.int32)))


@pytest.mark.parametrize("net", [Both, Either])
def test_and_or_of_several_elements(net):
    x = Tensor(np.ones((2, 3), np.int32))
    with pytest.raises(ValueError, match=r"can be converted to bool, but got tensor shape is \(2, 3\)"):
        net()(x, x)


@pytest.mark.parametrize("x, flag, wanted", [(3, True, 4), (3, False, 3), (-3, True, -3)])
def test_conditions_may_mix_tensors_and_numbers(x, flag, wanted):
    class Net(nn.Cell):
        def __init__(self):
            super().__init__()
            self.flag = flag

        def construct(self, x):
            if x > 0 and self.flag:
                x = x + 1
            return x

    assert Net()(Tensor([x], mstype.int32)).asnumpy() == wanted


class Base(nn.Cell):
    def __init__(self, scale):
        super().__init__()
        self.scale = scale

    def construct(self, x):
        return x * self.scale

    def shifted(self, x):
        return x + self.scale


class Derived(Base):
    def __init__(self, scale):
        super().__init__(scale)
        self.scale = scale + 1

    def construct(self, x):
        return super().construct(x), super(Derived, self).shifted(x), super().scale, super(Derived, self).scale


def test_super_gives_what_the_cell_holds():
    scaled, shifted, one, two = Derived(4)(Tensor([1.0, 2.0]))
    assert scaled.asnumpy().tolist() == [5, 10] and shifted.asnumpy().tolist() == [6, 7] and (one, two) == (5, 5)


@pytest.mark.parametrize("x", [1, 2.5, True])
def test_numbers_are_not_inverted(x):
    class Net(nn.Cell):
        def construct(self, x):
            return ~x

    with pytest.raises(TypeError, match="Failed calling LogicalNot"):
        Net()(x)


def test_constants_whose_shapes_differ_in_the_branches():
    class Net(nn.Cell):
        def __init__(self, flags, other):
            super().__init__()
            self.flags, self.other = flags, other

        def construct(self):
            if self.flags.all() == self.other:
                return self.flags.any()
            return self.other

    assert Net(Tensor([True, False]), Tensor([False]))().shape == ()
    assert Net(Tensor([True, True]), Tensor([False]))().shape == (1,)


@ms_function
def for_else(x):
    for i in range(2):
        x = x + i
    else:
        x = x * 2
    return x


@ms_function
def while_else(x):
    while x < 3:
        x = x + 1
    else:
        x = x * 2
    return x


@pytest.mark.parametrize("function, word", [(for_else, "for"), (while_else, "while")])
def test_loops_have_no_else(function, word):
    with pytest.raises(RuntimeError, match=f"The '{word}...else...' statement is not supported now"):
        function(Tensor([1.0]))


class Raises(nn.Cell):
    def __init__(self, kind):
        super().__init__()
        self.kind = kind

    def construct(self, x):
        if x == 1:
            if self.kind == "warning":
                raise UserWarning("x is 1")
            if self.kind == "import":
                raise ImportError("x is 1")
            if self.kind == "own":
                raise NoSuchError("x is 1")  # noqa: F821
        return x


class Warns(nn.Cell):
    def construct(self, x):
        if x == 1:
            raise RuntimeWarning("x is 1")
        return x


@pytest.mark.parametrize("kind, name", [("warning", "UserWarning"), ("import", "ImportError"), ("own", "NoSuchError")])
def test_exceptions_that_graphs_do_not_raise(kind, name):
    with pytest.raises(RuntimeError, match=f"Unsupported exception type: {name}"):
        Raises(kind)(1)


def test_a_warning_that_graphs_raise():
    with pytest.raises(RuntimeWarning, match="x is 1"):
        Warns()(1)
    assert Warns()(2) == 2


def test_an_exception_that_is_unsupported_beside_a_constant():
    class Net(nn.Cell):
        def construct(self):
            x = Tensor(1)
            if x == 1:
                raise UserWarning("x is 1")
            return x

    with pytest.raises(RuntimeError, match="Unsupported exception type: UserWarning"):
        Net()()


@pytest.mark.parametrize("of", [Tensor(1), (int, Tensor(1)), [int, float], np.array([1])])
def test_isinstance_of_what_is_no_type(of):
    @ms_function
    def function(x):
        return isinstance(x, of)

    with pytest.raises(TypeError, match="isinstance\\(\\) arg 2 must be a type or tuple of types"):
        function(Tensor(1))


def test_isinstance_of_types():
    @ms_function
    def function(x):
        return isinstance(x, Tensor), isinstance(x, (int, (float, Tensor))), isinstance(x, (int, float))

    assert function(Tensor(1)) == (True, True, False)


def test_input_is_refused():
    @ms_function
    def function(x):
        input("x: ")
        return x * 2

    with pytest.raises(TypeError, match="'<built-in function input>' is not supported both in JIT Fallback and graph mode."):
        function(Tensor([1]))


@pytest.mark.parametrize("name", ["same", None])
def test_two_parameters_of_one_name(name):
    a, b = (Parameter(Tensor([value], mstype.float32), name=name) for value in (1, 2))

    @ms_function
    def function():
        return a + b

    told = f"its name '{name or 'Parameter'}' already exists."
    with pytest.raises(RuntimeError, match=told):
        function()
    with pytest.raises(ValueError, match=told):
        ParameterTuple((a, b))


def test_parameters_of_cells_may_share_a_name_with_each_other():
    first, second = (nn.Dense(2, 2) for _ in range(2))

    @ms_function
    def function(x):
        return second(first(x))

    assert function(Tensor(np.ones((1, 2), np.float32))).shape == (1, 2)


def test_a_cell_is_no_ms_class():
    @ms_class
    class Net(nn.Cell):
        def construct(self, x):
            return x

    with pytest.raises(TypeError, match="cannot be used for nn.Cell"):
        Net()(Tensor(1))


def test_a_constant_argument():
    class Product(nn.Cell):
        def __init__(self):
            super().__init__()
            self.multiply = P.MatMul()

        def construct(self, x, y):
            return self.multiply(x, y)

    class Slope(nn.Cell):
        def __init__(self, net):
            super().__init__()
            self.net, self.gradient = net, GradOperation()

        def construct(self, x, y):
            return self.gradient(self.net)(mutable(x), y)

    x = Tensor(np.ones((2, 3), np.float32), const_arg=True)
    y = np.arange(12, dtype=np.float32).reshape(3, 4)
    assert x.const_arg and np.allclose(Slope(Product())(x, Tensor(y)).asnumpy(), np.tile(y.sum(1), (2, 1)))
    x.set_const_arg(False)
    assert not x.const_arg
    for make, name in ((lambda: Tensor([1], const_arg=1), "Tensor"), (lambda: x.set_const_arg(1), "set_const_arg")):
        with pytest.raises(TypeError, match=f"For '{name}', the type of 'const_arg' should be 'bool', but got '1' with type 'int'"):
            make()


class Products(nn.Cell):
    def construct(self, x, y):
        return x * y * y


class Slopes(nn.Cell):
    def __init__(self, **how):
        super().__init__()
        self.net, self.gradient = Products(), GradOperation(**how)

    def construct(self, x, y):
        return self.gradient(self.net)(x, y)


def test_constant_arguments_have_no_gradient():
    x, y = Tensor(3.0, const_arg=True), Tensor(5.0)
    assert Slopes()(x, y) == () and Slopes()(y, x).asnumpy() == 9
    (of_y,) = Slopes(get_all=True)(x, y)
    assert of_y.asnumpy() == 30
    assert Slopes(get_all=True)(x, x) == ()


def test_phases_of_what_is_compiled():
    def compiled(x, y):
        return _cell_graph_executor.compile(net, x, y)[0]

    net = Products()
    three, four, five = (Tensor([value], mstype.float32) for value in (3, 4, 5))
    assert compiled(three, four) == compiled(three, five) != compiled(three, Tensor([1, 2], mstype.float32))
    for each in (four, five):
        each.set_const_arg()
    assert compiled(three, four) != compiled(three, five)
    assert compiled(three, mutable(four)) == compiled(three, mutable(five))


def test_phases_of_functions():
    from mindspore.common.api import _MindsporeFunctionExecutor

    @ms_function
    def function(x):
        return x * 2

    executor = _MindsporeFunctionExecutor(function, 1)
    one, two = (Tensor([value], mstype.float32) for value in (1, 2))
    assert executor.compile((one,), "function") == executor.compile((two,), "function") and executor(two).asnumpy() == 4
    one.set_const_arg()
    two.set_const_arg()
    assert executor.compile((one,), "function") != executor.compile((two,), "function") and executor(two).asnumpy() == 4


@pytest.mark.parametrize("mode", [context.GRAPH_MODE, context.PYNATIVE_MODE])
def test_one_element_is_assigned_to_a_scalar(mode):
    class Net(nn.Cell):
        def __init__(self):
            super().__init__()
            self.held, self.assign = Parameter(Tensor(2.0), name="held"), P.Assign()

        def construct(self, x):
            self.assign(self.held, x)
            return x

    context.set_context(mode=mode)
    net = Net()
    net(Tensor([7.0]))
    assert net.held.asnumpy() == 7 and net.held.shape == ()
    with pytest.raises(ValueError):
        net(Tensor([7.0, 8.0]))


def test_what_raises_is_told_when_it_is_compiled():
    class Net(nn.Cell):
        def construct(self, x):
            raise ValueError("never")

    with pytest.raises(ValueError, match="never"):
        _cell_graph_executor.compile(Net(), Tensor(np.ones((1, 2), np.float32)))


def test_str_of_what_is_constant():
    @ms_function
    def function():
        return str(Tensor([10])), str(2.5), str([1, 2]), str(np.array([1, 2])), str(int)

    told = ("Tensor(shape=[1], dtype=Int64, value=[10])", "2.5", "[1, 2]", "[1 2]", "<class 'int'>")
    assert function() == told


def test_str_of_an_input():
    @ms_function
    def function(x):
        return str(x)

    with pytest.raises(TypeError, match="does not support non-constant input"):
        function(Tensor([1, 2]))


def test_elements_of_tensors_in_lists_are_written_in_loops():
    @ms_function
    def function(rows, k, n):
        while k < n:
            for i in range(2):
                rows[i][k] += 10
            k += 1
        return rows

    rows = [Tensor([1, 2, 3]), Tensor([4, 5, 6])]
    made = function(rows, Tensor(0), Tensor(2))
    assert [each.asnumpy().tolist() for each in made] == [[11, 12, 3], [14, 15, 6]]


def test_elements_of_lists_in_lists_are_written():
    @ms_function
    def function(x):
        rows = [[x, 2], [3, 4]]
        rows[1][0] = x + 1
        rows[0][1] += 7
        return rows

    rows = function(Tensor(1))
    assert rows[0][0].asnumpy() == 1 and rows[0][1] == 9 and rows[1][0].asnumpy() == 2 and rows[1][1] == 4
