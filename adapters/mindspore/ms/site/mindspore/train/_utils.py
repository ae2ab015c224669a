"""What Model and its callbacks share."""

import numpy as np

from mindspore.common.tensor import Tensor


def step_loss(outputs):
    """The loss of a step's outputs: element 0 of a tuple, as a Tensor, array or number."""
    if isinstance(outputs, (tuple, list)) and outputs:
        outputs = outputs[0]
    return outputs


def number(value):
    """The mean of a Tensor or array as a NumPy number; other values as they are."""
    if isinstance(value, Tensor):
        value = value.asnumpy()
    return np.mean(value) if isinstance(value, np.ndarray) else value


def check_value_type(name, value, kinds, who=None):
    """TypeError unless the value is of the kinds; bool is no int."""
    kinds = kinds if isinstance(kinds, tuple) else (kinds,)
    if not isinstance(value, kinds) or (isinstance(value, bool) and bool not in kinds):
        wanted = " or ".join(each.__name__ for each in kinds)
        raise TypeError((f"For '{who}', the" if who else "The") + f" argument '{name}' must be {wanted}, but got {type(value).__name__}.")
    return value


def check_int(name, value, least, who=None):
    """A whole number of at least `least`."""
    check_value_type(name, value, int, who)
    if value < least:
        raise ValueError((f"For '{who}', the" if who else "The") + f" argument '{name}' must be >= {least}, but got {value}.")
    return value
