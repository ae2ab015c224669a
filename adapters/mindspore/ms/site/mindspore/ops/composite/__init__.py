"""Functions of functions, and gradients."""

from cairn.ms import modules, names
from mindspore.ops import operations

from mindspore.ops.composite.clip import clip_by_global_norm, clip_by_value
from mindspore.ops.composite.gradients import (
    GradOperation,
    grad_all,
    grad_all_with_sens,
    grad_by_list,
    grad_by_list_with_sens,
    grad_with_sens,
)
from mindspore.ops.composite.maps import HyperMap, Map, MultitypeFuncGraph, add_flags
from mindspore.ops.composite.transforms import derivative, grad, jacfwd, jacrev, jet, jvp, linearize, value_and_grad, vjp, vmap

core = add_flags
hyper_add = HyperMap(operations.Add())


def _like(name, number):
    """A function of tensors that takes numbers and nested values, too."""

    def function(x):
        if isinstance(x, (tuple, list)):
            return type(x)([function(each) for each in x])
        if x is None or isinstance(x, (int, float)):
            return x if x is None else type(x)(number)
        return getattr(operations, name)()(x)

    return function


zeros_like, ones_like = _like("ZerosLike", 0), _like("OnesLike", 1)


def tail(values):
    """All values but the first."""
    return values[1:]


__all__ = [
    "GradOperation", "HyperMap", "Map", "MultitypeFuncGraph", "add_flags", "clip_by_global_norm", "clip_by_value", "core",
    "derivative", "grad", "grad_all", "grad_all_with_sens", "grad_by_list", "grad_by_list_with_sens", "grad_with_sens", "jacfwd", "jacrev", "jet", "jvp", "linearize", "ones_like", "tail", "value_and_grad", "vjp", "vmap", "zeros_like",
]  # fmt: skip
modules.share(__name__)
__getattr__ = names.lazy(__name__)
