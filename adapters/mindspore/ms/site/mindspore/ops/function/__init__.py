"""Operators as functions: `ops.relu(x)`."""

from cairn.ms import modules, names

import types

from mindspore.ops.function import (
    _arguments,
    array_func,
    image_func,
    linalg_func,
    math_func,
    more_func,
    nn_func,
    other_func,
    random_func,
    search_func,
    sparse_func,
)

_HIDDEN = {"Tensor", "pair", "tensor", "static", "same_type", "sizes", "COOTensor", "CSRTensor", "RowTensor", "sparse_of_dense"}
_found = {
    name: value
    for module in (linalg_func, random_func, image_func, search_func, more_func, array_func, math_func, nn_func, other_func, sparse_func)
    for name, value in vars(module).items()
    if not name.startswith("_") and name not in _HIDDEN and not isinstance(value, types.ModuleType)
}
_arguments.name(_found)
globals().update(_found)
__all__ = list(_found)
modules.share(__name__)
__getattr__ = names.lazy(__name__)
