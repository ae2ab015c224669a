"""Operators as functions: `ops.relu(x)`."""

from mindspore.ops.function import array_func, math_func, nn_func, other_func

_HIDDEN = {"np", "core", "P", "mstype", "Tensor", "basic", "arrays", "images", "reductions", "losses", "norms", "random",
           "pair", "tensor", "static", "same_type", "sizes", "builtins"}  # fmt: skip
_found = {
    name: value
    for module in (math_func, array_func, nn_func, other_func)
    for name, value in vars(module).items()
    if not name.startswith("_") and name not in _HIDDEN
}
globals().update(_found)
__all__ = list(_found)
