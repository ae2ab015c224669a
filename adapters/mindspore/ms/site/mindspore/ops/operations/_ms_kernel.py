"""Functions of arrays in MindSpore's hybrid language: Python with loops over elements and a few functions of its own."""

import functools
import itertools
import types

import numpy as np

__all__ = ["ms_kernel"]


def _zeros(shape, dtype):
    return np.zeros(shape, np.dtype(dtype))


def _grid(shape):
    return itertools.product(*map(range, shape))


_TYPES = "float16 float32 float64 int8 int16 int32 int64 uint8 uint16 uint32 uint64 bool_"
_MATH = "sqrt exp log log2 sin cos tan tanh sinh cosh arcsin arccos arctan isnan isinf isfinite floor ceil trunc power fmod"
_LOOPS = "serial vectorize parallel reduce"

_WORDS = {
    "allocate": _zeros, "output_tensor": _zeros, "grid": _grid, "rsqrt": lambda x: 1 / np.sqrt(x),
    **{name: getattr(np, name) for name in (_TYPES + " " + _MATH).split()}, **dict.fromkeys(_LOOPS.split(), range),
}  # fmt: skip


def ms_kernel(fn=None, reg_info=None, compile_attrs=None):
    """Decorates a function of arrays, in which allocate, output_tensor, grid and functions of numbers have a meaning. It is called
    with arrays, and is a func of ops.Custom; reg_info and compile_attrs have no effect."""
    if fn is None:
        return ms_kernel

    @functools.wraps(fn)
    def called(*arguments):
        names = {**_WORDS, **fn.__globals__}
        return types.FunctionType(fn.__code__, names, fn.__name__, fn.__defaults__, fn.__closure__)(*arguments)

    called.ms_kernel_flag = True
    return called
