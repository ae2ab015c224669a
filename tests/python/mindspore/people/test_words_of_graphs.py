"""What graphs say of calls that they do not take, and what they return of lists that they change."""

import sys

import numpy as np
import pytest

import mindspore.common._monad as monad
from mindspore import Parameter, Tensor, context, nn
from mindspore.common import dtype as mstype
from mindspore.common.api import ms_function
from mindspore.ops import functional as F



def setup_function(_):
    context.set_context(mode=context.GRAPH_MODE)


@pytest.mark.parametrize("index, rest, taken", [(-1, (5, 6, 7), 8), (0, (6, 7, 8), 5), (-3, (5, 7, 8), 6), (2, (5, 6, 8), 7)])
def test_pop_of_a_list(index, rest, taken):
    @ms_function
    def function():
        x = [5, 6, 7, 8]
        y = x.pop(index)
        return x, y

    assert function() == (rest, taken)


@pytest.mark.parametrize("items, index", [([1, 2], 2), ([1, 2], -3), ([], -1)])
def test_pop_outside_of_a_list(items, index):
    @ms_function
    def function():
        x = list(items)
        return x.pop(index)

    with pytest.raises(IndexError, match="The pop index out of range."):
        function()


@pytest.mark.parametrize("name", ["pop", "insert"])
def test_index_of_a_list_that_is_no_integer(name):
    @ms_function
    def function():
        x = [1, 2]
        if name == "pop":
            x.pop(0.5)
        else:
            x.insert(0.5, 3)
        return x

    with pytest.raises(TypeError, match="Integer argument expected, but got FP32Imm type value: 0.500000"):
        function()


def test_a_list_of_the_caller_that_a_graph_changes_is_a_tuple_and_stays_as_it_was():
    @ms_function
    def changed(x):
        x.insert(1, 9)
        return x

    @ms_function
    def kept(x, y):
        return x, y

    given = [Tensor([1]), Tensor([2])]
    made = changed(given)
    assert isinstance(made, tuple) and len(made) == 3 and made[1] == 9
    assert len(given) == 2
    assert kept([3, 1], 2) == ([3, 1], 2)


def test_count_of_what_only_the_run_tells():
    @ms_function
    def of_value(a):
        return ["a", 3].count(a + 1)

    @ms_function
    def of_list(a):
        x = [3, a + 1]
        return x.count(3)

    with pytest.raises(TypeError, match="The count data is Tensor type"):
        of_value(Tensor(2))
    with pytest.raises(TypeError, match="Tensor type data exists in the list"):
        of_list(Tensor(2))


def test_count_of_constant_tensors_among_texts():
    @ms_function
    def function():
        x = ["a", ("b", "c"), Tensor(1), 4, Tensor(1)]
        return x.count(Tensor(1))

    assert function() == 2


@pytest.mark.parametrize(
    "bounds, error, words",
    [
        ((), RuntimeError, "the input size should within"),
        ((1, 2, 3, 4), RuntimeError, "but got4"),
        ((0, 0.5), TypeError, "the 1th input should be a int scalar"),
        ((1, 5, 0), RuntimeError, "the argument 'step' could not be 0"),
        ((sys.maxsize - 1, sys.maxsize, 3), ValueError, "Integer overflow error occurred when traversing the range"),
    ],
)
def test_range_that_is_none(bounds, error, words):
    class Net(nn.Cell):
        def construct(self, x):
            for _ in range(*bounds):
                x = x + 1
            return x

    with pytest.raises(error, match=words):
        Net()(Tensor(2, mstype.int32))


def test_format_of_a_text():
    @ms_function
    def constant():
        a = Tensor([7])
        return "{} is {}".format("a", a)

    @ms_function
    def unknown(a):
        a = a + 1
        return "a is {}".format(a)

    assert constant() == "a is Tensor(shape=[1], dtype=Int64, value=[7])"
    with pytest.raises(ValueError, match="str.format not support to input a variable"):
        unknown(Tensor([7]))


def test_slices_of_numbers_with_points():
    class Net(nn.Cell):
        def construct(self, x):
            return x[0.5:None]

    with pytest.raises(TypeError, match="Slice indices must be integers or bool"):
        Net()(Tensor([1, 2, 3]))


def test_round_of_tensors():
    @ms_function
    def function(x):
        return round(x), round(Tensor([0.6, -1.7], mstype.float32))

    a, b = function(Tensor([0.2, 3.7], mstype.float32))
    assert np.allclose(a.asnumpy(), [0, 4])
    assert np.allclose(b.asnumpy(), [1, -2])


def test_branches_that_do_not_join_are_told_with_their_lines():
    @ms_function
    def returned(x, y):
        if x < y:
            return Tensor([1, 2, 3])
        return 0

    @ms_function
    def assigned(x, y):
        if x < y:
            made = Tensor([4, 5])
        else:
            made = 7
        return made

    x, y = Tensor(2, mstype.float32), Tensor(6, mstype.float32)
    with pytest.raises(TypeError) as told:
        returned(x, y)
    assert "return Tensor([1, 2, 3])" in str(told.value)
    assert "return 0" in str(told.value)
    with pytest.raises(TypeError) as told:
        assigned(x, y)
    assert "made = Tensor([4, 5])" in str(told.value)
    assert "made = 7" in str(told.value)


def test_a_member_that_is_not_there():
    class Net(nn.Cell):
        def construct(self, x):
            return x + self.offset

    with pytest.raises(AttributeError, match="External object has no attribute offset"):
        Net()(Tensor([1]))


def test_what_no_graph_has():
    class Reads(nn.Cell):
        def construct(self, x):
            with open("weights.txt") as file:
                file.read()
            return x

    class Complex(nn.Cell):
        def construct(self, x):
            return x + 2.5j

    with pytest.raises(RuntimeError):
        Reads()(Tensor([1]))
    with pytest.raises(TypeError, match="Only support 'Number' type"):
        Complex()(Tensor([1.0]))


def test_order_that_depends_on_an_effect():
    @ms_function
    def function(x, y):
        made = x * y
        return F.depend(made, monad.U)

    assert function(Tensor(3.0, mstype.float32), Tensor(2.0, mstype.float32)) == 6


def test_membership_of_tensors():
    class Net(nn.Cell):
        def __init__(self, x, items):
            super().__init__()
            self.x, self.items = x, items

        def construct(self):
            return self.x in self.items, self.x not in self.items

    ones, zeros = Tensor(np.ones((2, 2), np.int32)), Tensor(np.zeros((2, 2), np.int32))
    same = Tensor(np.ones((2, 2), np.int32))
    assert Net(ones, [zeros, "a"])() == (False, True)
    assert Net(ones, ("a", same, 3))() == (True, False)
    assert Net(ones, (Tensor([1, 1]), zeros))() == (False, True)

    @ms_function
    def of_inputs(x, y):
        return x in [y, x]

    assert of_inputs(ones, zeros)

    @ms_function
    def of_number(x):
        return 3 in x

    with pytest.raises(TypeError, match="argument of type 'int' is not iterable"):
        of_number(4)


def test_membership_of_a_parameter_follows_what_it_holds():
    class Net(nn.Cell):
        def __init__(self):
            super().__init__()
            self.w = Parameter(Tensor([1.0], mstype.float32), name="w")

        def construct(self, x):
            if self.w in [Tensor([1.0], mstype.float32)]:
                return x
            return x * 2

    net = Net()
    assert net(Tensor([3.0])) == 3
    net.w.set_data(Tensor([5.0], mstype.float32))
    assert net(Tensor([3.0])) == 6
