"""Types of the compiled module: tensors' element types by their width, and those of Python's values."""

from cairn.ms import names
from mindspore.common import dtype
from mindspore.common.dtype import *  # noqa: F403


def _of_width(kind, plain):
    def make(width=None):
        return getattr(dtype, plain if width is None else f"{kind}{width}")

    return make


Int, UInt, Float, Complex = (_of_width(kind, plain) for kind, plain in (
    ("int", "int_"), ("uint", "uint"), ("float", "float_"), ("complex", "complex64")))  # fmt: skip


def _single(name):
    return lambda: getattr(dtype, name)


Number, Bool, String, Function, Slice, TypeNone = map(_single, ("number", "bool_", "string", "function", "slice", "type_none"))
TensorType = Tensor = dtype.TensorType


class Tuple:
    """Tuple(types): the type of a tuple."""

    def __init__(self, elements=()):
        self.elements = tuple(elements)

    def __repr__(self):
        return f"{type(self).__name__}[{', '.join(map(str, self.elements))}]"


class List(Tuple):
    """List(types): the type of a list."""


__getattr__ = names.lazy(__name__)
