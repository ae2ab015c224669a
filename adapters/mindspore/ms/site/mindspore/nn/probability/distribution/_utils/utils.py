"""Helpers that distributions of scripts import: checks of parameters, and what makes tensors of them."""

import numpy as np

from mindspore.common import dtype as mstype
from mindspore.common.parameter import Parameter
from mindspore.common.tensor import Tensor
from mindspore.nn.cell import Cell
from mindspore.nn.probability import _values as _v

__all__ = [
    "CheckTensor", "CheckTuple", "cast_to_tensor", "check_greater", "check_greater_equal_zero", "check_greater_zero", "check_prob",
    "check_rank", "check_sum_equal_one", "log_generic", "set_param_type",
]  # fmt: skip


def cast_to_tensor(t, hint_type=mstype.float32):
    """The value as a tensor of the type; tensors and Parameters as they are, but for their type."""
    if t is None:
        raise ValueError("Input cannot be None in cast_to_tensor")
    if isinstance(t, bool) or not isinstance(t, (Parameter, Tensor, np.ndarray, list, int, float)):
        raise TypeError(f"Unable to convert input of type {type(t)} to a Tensor of type {hint_type}")
    return _v.as_tensor(t, hint_type)


def set_param_type(args, hint_type):
    """The one kind of the arrays among the parameters, by name."""
    return _v.common_kind(args, hint_type, "set_param_type")


def check_greater_zero(value, name):
    _v.positive(_given(value, name), name)


def check_greater_equal_zero(value, name):
    _v.check_values(_given(value, name), name, lambda x: x >= 0, "greater than or equal to 0")


def check_greater(a, b, name_a, name_b):
    """ValueError unless all elements of b are greater than those of a."""
    low, high = (each.asnumpy() for each in (_given(a, name_a), _given(b, name_b)))
    if not np.all(low < high):
        raise ValueError(f"{name_a} should be less than {name_b}")


def check_prob(p):
    _v.probability(_given(p, "probs"))


def check_sum_equal_one(probs):
    total = np.sum(_given(probs, "probs").asnumpy(), axis=-1)
    if not np.allclose(total, 1, atol=1e-6):
        raise ValueError("Probabilities for each category should sum to one for Categorical distribution.")


def check_rank(probs):
    if _given(probs, "probs").ndim == 0:
        raise ValueError("probs for Categorical distribution must have rank >= 1.")


def _given(value, name):
    if value is None:
        raise ValueError(f"input value cannot be None for {name}")
    return value if isinstance(value, Tensor) else Tensor(value)


def log_generic(input_x):
    """The logarithm, which is -inf at 0."""
    return _v.log(input_x)


class _Check(Cell):
    """Gives back a value of the right type."""

    kind = None

    def construct(self, x, name):
        if not isinstance(x, self.kind):
            raise TypeError(f"The input {name} must be a {self.kind.__name__}, but got {type(x).__name__}.")
        return x


class CheckTuple(_Check):
    kind = tuple


class CheckTensor(_Check):
    kind = Tensor
