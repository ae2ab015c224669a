"""Element types of results: of tensors together, and of tensors with numbers."""

import mindspore as ms
import numpy as np
import pytest
from mindspore import Tensor

from cairn.ms import core

ORDER = ["bool", "uint8", "int8", "int16", "int32", "int64", "float16", "float32", "float64"]


def together(a, b):
    if {a, b} == {"uint8", "int8"}:
        return "int16"
    return max(a, b, key=ORDER.index)


def made(dtype):
    return Tensor(np.array([0, 1]).astype(dtype))


@pytest.mark.parametrize("b", ORDER)
@pytest.mark.parametrize("a", ORDER)
def test_two_tensors(a, b):
    total = made(a) + made(b)
    assert total.asnumpy().dtype == together(a, b)
    assert (made(a) == made(b)).dtype is ms.bool_


@pytest.mark.parametrize("dtype", ORDER)
def test_a_tensor_and_a_number(dtype):
    of_float = "float32" if dtype == "bool" or "int" in dtype else dtype
    assert (made(dtype) * 2.5).asnumpy().dtype == of_float
    assert (2.5 - made(dtype)).asnumpy().dtype == of_float
    assert (made(dtype) + 2).asnumpy().dtype == ("int32" if dtype == "bool" else dtype)


@pytest.mark.parametrize("value, dtype", [
    (0.1, "float32"), ([0.1, 2], "float32"), (1, "int64"), ([1, 2], "int64"), (True, "bool"),
    (np.zeros(2, np.float64), "float64"), (np.float16(1), "float16"),
])  # fmt: skip
def test_what_is_inferred(value, dtype):
    assert Tensor(value).asnumpy().dtype == dtype


@pytest.mark.parametrize("level, dtype", [("0.5", "float64"), ("1.1", "float64"), ("1.10", "float32")])
def test_floats_by_level(level, dtype):
    from cairn.ms import level as levels

    levels.select(level)
    assert Tensor(0.1).asnumpy().dtype == dtype
    assert Tensor([0.1]).asnumpy().dtype == dtype


def test_integers_are_divided_as_floats():
    quotient = Tensor([7, 8]) / Tensor([2, 2])
    assert quotient.dtype is ms.float32 and quotient.asnumpy().tolist() == [3.5, 4.0]


@pytest.mark.parametrize("operator", ["+", "-", "*", "/", "//", "%", "**"])
def test_operators_equal_numpy(operator):
    a, b = np.array([[1.5, -2.0], [3.0, 4.5]], np.float32), np.array([2.0, 3.0], np.float32)
    expected = eval(f"a {operator} b")
    np.testing.assert_allclose(eval(f"x {operator} y", {"x": Tensor(a), "y": Tensor(b)}).asnumpy(), expected, rtol=1e-6)
    np.testing.assert_allclose(eval(f"x {operator} 2", {"x": Tensor(a)}).asnumpy(), eval(f"a {operator} 2"), rtol=1e-6)
    np.testing.assert_allclose(eval(f"3 {operator} y", {"y": Tensor(b)}).asnumpy(), eval(f"3 {operator} b"), rtol=1e-6)


@pytest.mark.parametrize("operator", ["<", "<=", ">", ">=", "==", "!="])
def test_comparisons_equal_numpy(operator):
    a, b = np.array([1, 2, 3]), np.array([3, 2, 1])
    assert eval(f"x {operator} y", {"x": Tensor(a), "y": Tensor(b)}).asnumpy().tolist() == eval(f"(a {operator} b).tolist()")
    assert eval(f"x {operator} 2", {"x": Tensor(a)}).asnumpy().tolist() == eval(f"(a {operator} 2).tolist()")


def test_equality_with_what_is_no_number():
    x = Tensor([1.0])
    assert (x == None) is False and (x != "a") is True  # noqa: E711


@pytest.mark.parametrize("other", [None, "a", np.ones(2, np.float32), object()])
def test_other_operands_are_type_errors(other):
    x = Tensor([1.0, 2.0])
    with pytest.raises(TypeError):
        x + other
    if not isinstance(other, np.ndarray):
        with pytest.raises(TypeError):
            other + x


def test_functions_and_arrays_of_numpy_take_tensors_and_give_arrays():
    x = Tensor([1.0, -2.0])
    for made, expected in ((np.ones(2) - x, [0, 3]), (np.abs(x), [1, 2]), (np.maximum(x, 0), [1, 0]), (np.zeros(2) < x, [1, 0])):
        assert isinstance(made, np.ndarray) and made.tolist() == expected
    assert isinstance(np.float32(2) * x, Tensor) and (np.int64(3) - x).asnumpy().tolist() == [2, 5]


def test_bools_and_bits():
    t, f = Tensor([True, True, False]), Tensor([True, False, False])
    assert (t & f).asnumpy().tolist() == [True, False, False]
    assert (t | f).asnumpy().tolist() == [True, True, False]
    assert (~t).asnumpy().tolist() == [False, False, True]
    assert (Tensor([6]) & Tensor([3])).asnumpy().tolist() == [2]
    assert (Tensor([6]) ^ Tensor([3])).asnumpy().tolist() == [5]


@pytest.mark.parametrize("value, number", [(2, 2), (-1.5, -1.5), (True, True), ([3], 3)])
def test_python_numbers(value, number):
    x = Tensor(value)
    assert float(x) == number and int(x) == int(number) and bool(x) == bool(number)


def test_texts_and_arrays_of_tensors():
    assert f"{Tensor(1.5):.2f} {Tensor([1, 2])}" == "1.50 [1 2]"
    assert np.asarray(Tensor([1, 2])).tolist() == [1, 2] and np.allclose(Tensor([1.0]), 1.0)


def test_many_elements_are_no_python_number():
    for kind in (int, float, bool):
        with pytest.raises(ValueError):
            kind(Tensor([1, 2]))


def test_signed_zero_and_nan_survive():
    x = Tensor(np.array([1.0, -1.0], np.float32))
    assert np.signbit((x * 0.0).asnumpy()).tolist() == [False, True]
    assert np.signbit((x * -0.0).asnumpy()).tolist() == [True, False]
    assert np.isnan((x + float("nan")).asnumpy()).all()


F = np.ones((2, 3), np.float32)


@pytest.mark.parametrize("call, error", [
    (lambda: Tensor(F) + Tensor(F[:1, :2]), ValueError), (lambda: Tensor(F) @ Tensor(F), ValueError),
    (lambda: core.exp(Tensor([1])), TypeError), (lambda: core.add(Tensor(F), Tensor([1])), TypeError),
    (lambda: core.concat([Tensor(F), Tensor(F[0])], axis=0), ValueError), (lambda: core.softmax(Tensor(F), axis=5), ValueError),
    (lambda: core.gather(Tensor(F), Tensor([5])), ValueError), (lambda: core.and_(Tensor([1]), Tensor([1])), TypeError),
])  # fmt: skip
def test_errors_of_the_engine_have_mindspores_classes(call, error):
    with pytest.raises(error) as raised:
        call()
    assert isinstance(raised.value, RuntimeError)


def test_size_by_level():
    from cairn.ms import level as levels

    assert Tensor(F).size == 6 and Tensor(F).dim() == 2
    levels.select("0.5")
    assert Tensor(F).size() == 6
