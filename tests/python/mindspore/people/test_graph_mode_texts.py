"""Texts of graph mode: str, join, format, f-strings, messages of raise and assert."""

import numpy as np
import pytest
import mindspore as ms
import mindspore.nn as nn
from mindspore import Tensor, context, ms_function, Parameter
from mindspore.ops import operations as P
from mindspore.ops import functional as F

context.set_context(mode=context.GRAPH_MODE)


def test_join():

    @ms_function
    def net():
        return "-".join(["a", "b", "c"])

    assert net() == "a-b-c"


def test_str_of_numbers():

    @ms_function
    def net():
        return str(10) + str(2.5) + str(True) + str((1, 2)) + str([1, 2]) + str({"a": 1}) + str("x")

    assert net() == "102.5True(1, 2)[1, 2]{'a': 1}x"


def test_f_string_of_constants():

    class Net(nn.Cell):

        def __init__(self):
            super().__init__()
            self.n = 3

        def construct(self, x):
            name = f"layer_{self.n}_{self.n + 1:03d}"
            return (x, name)

    x, name = Net()(Tensor([1.0]))
    assert name == "layer_3_004"


def test_format():

    @ms_function
    def net(x):
        return ("{} is {}".format("a", 1), "%d-%s" % (3, "z"))

    assert net(Tensor(1)) == ("a is 1", "3-z")


def test_format_with_names_and_places():

    @ms_function
    def net():
        return ("{1} {0} {b}".format("x", "y", b="z"), "{0[1]}".format((5, 6)))

    assert net() == ("y x z", "6")


def test_f_string_of_a_constant_tensor():

    @ms_function
    def net():
        x = Tensor([1, 2, 3])
        return f"x: {x}"

    assert net() == "x: Tensor(shape=[3], dtype=Int64, value=[1 2 3])"


def test_str_of_a_constant_tensor():

    @ms_function
    def net():
        return str(Tensor([1, 2]))

    assert net() == "[1 2]" or "Tensor" in net()


def test_raise_with_format():

    class Net(nn.Cell):

        def construct(self, x):
            if x.shape[0] != 3:
                raise ValueError(f"The input should have 3 rows, but got {x.shape[0]}.")
            return x

    with pytest.raises(ValueError) as info:
        Net()(Tensor(np.ones((2, 2), np.float32)))
    assert "The input should have 3 rows, but got 2." in str(info.value)


def test_raise_without_message():

    class Net(nn.Cell):

        def construct(self, x):
            raise ValueError

    with pytest.raises(ValueError):
        Net()(Tensor(1))


def test_raise_two_arguments():

    @ms_function
    def net(x):
        raise ValueError(f"The input can not be {x}.", "second")

    with pytest.raises(ValueError) as info:
        net(11)
    assert "The input can not be 11" in str(info.value)


def test_raise_of_input_number():

    class RaiseNet(nn.Cell):

        def construct(self, x):
            if x == 1:
                raise ValueError("x should not be 1.")
            return x

    with pytest.raises(ValueError, match="x should not be 1."):
        RaiseNet()(1)
    assert RaiseNet()(2) == 2


def test_raise_string_of_joined_list():

    class RaiseNet(nn.Cell):

        def construct(self, x):
            if x in (1, 2):
                raise KeyError("not in " + "|".join(["1", "2"]))
            return x

    with pytest.raises(KeyError) as info:
        RaiseNet()(1)
    assert "not in 1|2" in str(info.value)


@pytest.mark.parametrize(
    "kind",
    [ValueError, TypeError, IndexError, KeyError, RuntimeError, AssertionError, NotImplementedError, ZeroDivisionError, AttributeError, NameError],
)
def test_raise_classes(kind):

    @ms_function
    def net(flag):
        if flag:
            raise kind("words")
        return flag

    with pytest.raises(kind):
        net(True)


def test_assert_messages():

    class Net(nn.Cell):

        def __init__(self):
            super().__init__()
            self.n = 3

        def construct(self, x):
            assert self.n > 5, f"n is {self.n}"
            return x

    with pytest.raises(AssertionError) as info:
        Net()(Tensor(1))
    assert "n is 3" in str(info.value)


def test_strings_compare_and_slice():

    @ms_function
    def net():
        s = "hello"
        return (s == "hello", s != "x", s[1:3], "ell" in s, s + "!", len(s), s < "z")

    assert net() == (True, True, "el", True, "hello!", 5, True)


def test_string_argument():

    class Net(nn.Cell):

        def construct(self, x, kind):
            if kind == "add":
                return x + x
            return x * x

    assert Net()(Tensor(3), "add") == 6 and Net()(Tensor(3), "mul") == 9


def test_print_in_graph(capfd):

    class Net(nn.Cell):

        def __init__(self):
            super().__init__()
            self.print = P.Print()

        def construct(self, x):
            self.print("TEST:", x)
            print("value", x)
            return x

    Net()(Tensor([1, 2], ms.int32))
    out = capfd.readouterr().out
    assert "TEST:" in out and "[1 2]" in out


def test_string_methods_are_known():

    @ms_function
    def net():
        return ("A,b".split(","), "Ab".lower(), "ab".upper(), " a ".strip(), "abc".startswith("a"), "abc".replace("a", "x"))

    assert net() == (("A", "b"), "ab", "AB", "a", True, "xbc") or net()[0] == ["A", "b"]


def told(kind, construct, *inputs):

    class Net(nn.Cell):

        def __init__(self):
            super().__init__()
            self.x = [1, 3, 5, 7]
            self.input = Tensor(1)

    Net.construct = construct
    with pytest.raises(kind) as info:
        Net()(*inputs)
    return str(info.value)


def test_several_arguments_are_one_text():

    def construct(self, x):
        raise ValueError("The input can not be ", x, ".")

    assert "The input can not be 11." in told(ValueError, construct, 11)


def test_percent():

    def construct(self, x):
        raise ValueError("%s can not be %s" % ("it", x))

    assert "it can not be 11" in told(ValueError, construct, 11)


def test_format_of_a_member():

    def construct(self):
        if len(self.x) == 4:
            raise ValueError("Not expected value, x is {}".format(self.x))
        return self.x

    assert "Not expected value, x is [1, 3, 5, 7]" in told(ValueError, construct)


def test_a_number_as_text():

    def construct(self, x):
        if x == 1:
            raise ValueError(1)
        return x

    assert "1" in told(ValueError, construct, 1)


def test_types_that_graphs_do_not_have():

    def construct(self):
        raise NotImplementedError("words")

    assert "Unsupported exception type: NotImplementedError." in told(RuntimeError, construct)


def test_where_a_constant_tensor_decides():

    def construct(self):
        if self.input == 1:
            raise AssertionError("The input should not be 1.")
        return self.param_a

    assert "The input should not be 1." in told(AssertionError, construct)


def test_before_a_missing_member():

    def construct(self):
        name = "a"
        if name == "a":
            raise NameError("not a")
        return self.param_a

    assert "not a" in told(NameError, construct)


def test_f_string_of_an_input_is_the_tuple_of_its_parts():

    @ms_function
    def net(x, y):
        if (x > y).all():
            chosen = f"{2 * y}"
        else:
            chosen = f"{x}"
        return f"x: {x}", chosen

    x = Tensor(np.array([1, 2]))
    text, chosen = net(x, x)
    assert str(text) == "('x: ', Tensor(shape=[2], dtype=Int64, value= [1, 2]))"
    assert str(chosen) == "(Tensor(shape=[2], dtype=Int64, value= [1, 2]),)"


def test_printed_f_strings_tell_the_elements_of_each_run(capfd):

    class Net(nn.Cell):

        def construct(self, x, width=4):
            y = x * 2
            print(f"y is {y} of {width:{width}d}")
            return y

    net = Net()
    for value in (1, 3):
        net(Tensor([value, 0]))
        assert capfd.readouterr().out == f"y is [{2 * value} 0] of    4\n"
