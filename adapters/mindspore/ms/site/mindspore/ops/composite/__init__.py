"""Functions of functions, and gradients."""

from cairn.ms import modules, names

from mindspore.ops.composite.clip import clip_by_global_norm, clip_by_value
from mindspore.ops.composite.gradients import GradOperation
from mindspore.ops.composite.maps import HyperMap, Map, MultitypeFuncGraph, add_flags
from mindspore.ops.composite.transforms import derivative, grad, jacfwd, jacrev, jvp, linearize, value_and_grad, vjp, vmap

core = add_flags

__all__ = [
    "GradOperation", "HyperMap", "Map", "MultitypeFuncGraph", "add_flags", "clip_by_global_norm", "clip_by_value", "core",
    "derivative", "grad", "jacfwd", "jacrev", "jvp", "linearize", "value_and_grad", "vjp", "vmap",
]  # fmt: skip
modules.share(__name__)
__getattr__ = names.lazy(__name__)
