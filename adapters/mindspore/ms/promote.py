"""Which element type two operands have together, by MindSpore's rules."""

import functools

import numpy

from cairn.ms import core
from cairn.ms.tensor import Tensor

_ORDER = [numpy.dtype(name) for name in (
    "bool", "uint8", "int8", "uint16", "int16", "uint32", "int32", "uint64", "int64", "float16", "float32", "float64",
    "complex64", "complex128")]  # fmt: skip


@functools.lru_cache(maxsize=None)
def together(a, b):
    """The element type of two tensors of these (numpy.dtype)."""
    if a is b or a == b:
        return a
    kinds = {a.kind, b.kind}
    if kinds == {"i", "u"}:  # signed and unsigned: wide enough for both, at most int64
        return numpy.dtype(f"int{min(64, 8 * max(s.itemsize * (2 if s.kind == 'u' else 1) for s in (a, b)))}")
    return max(a, b, key=_ORDER.index)


@functools.lru_cache(maxsize=None)
def with_number(dtype, kind):
    """The element type of a tensor and a number of Python's type `kind`."""
    if kind is float and dtype.kind in "biu":
        return numpy.dtype("float32")
    if kind is int and dtype.kind == "b":
        return numpy.dtype("int32")
    if kind is complex and dtype.kind != "c":
        return numpy.dtype("complex64")
    return dtype


def nptype(x):
    """The numpy.dtype of a tensor."""
    return x._array.dtype if x._array is not None else x.dtype.numpy


def cast(x, dtype):
    """The tensor with elements of the type (numpy.dtype); itself where it has."""
    return x if nptype(x) == dtype else core.cast(x, dtype=dtype)


def converted(x, dtype):
    """cast() as a script asks for it: gradients pass through integers to the floating numbers that they are cast from."""
    made = cast(x, dtype)
    recorder = core.here.recorder
    if recorder is not None and made is not x and nptype(made).kind in "iub":
        recorder.came(made, x)
    return made


def promote(x, y):
    """Two operands, of which one at least is a tensor, as tensors or numbers of one element type."""
    if isinstance(x, Tensor):
        if isinstance(y, Tensor):
            a, b = nptype(x), nptype(y)
            if a == b:
                return x, y
            dtype = together(a, b)
            return cast(x, dtype), cast(y, dtype)
        dtype = with_number(nptype(x), _kind(y))
        return cast(x, dtype), numpy.array(y, dtype)
    y, x = promote(y, x)
    return x, y


def _kind(number):
    for kind in (bool, int, float, complex):
        if isinstance(number, kind):
            return kind
    if isinstance(number, numpy.generic):
        return type(number.item())
    raise TypeError(f"unsupported operand type: Tensor and {type(number).__name__}")


def common(*tensors):
    """Tensors of one element type."""
    dtype = functools.reduce(together, (nptype(each) for each in tensors))
    return [cast(each, dtype) for each in tensors]
