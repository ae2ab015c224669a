"""Element types as objects: `mindspore.float32`, and their NumPy counterparts."""

import numpy

__all__ = ["Type", "TensorType", "of", "named", "numpy_of"]


class Type:
    """An element type. `numpy`: the numpy.dtype, None for types of Python's values."""

    def __init__(self, name, numpy_name=None, text=None):
        self.name = name
        self.numpy = numpy.dtype(numpy_name) if numpy_name else None
        self._text = text or name.title()

    @property
    def kind(self):
        return self.numpy.kind if self.numpy else ""

    def __repr__(self):
        return self._text

    def __copy__(self):
        return self

    def __deepcopy__(self, memo):
        return self

    def __reduce__(self):
        return named, (self.name,)


class TensorType:
    """The type of a tensor of known element type."""

    def __init__(self, element=None):
        self._element = element

    def element_type(self):
        return self._element

    def __eq__(self, other):
        return isinstance(other, TensorType) and other._element is self._element

    def __hash__(self):
        return hash((TensorType, self._element))

    def __repr__(self):
        return f"Tensor[{self._element}]" if self._element else "Tensor"


_NUMBERS = {
    "bool_": "bool", "int8": "int8", "int16": "int16", "int32": "int32", "int64": "int64", "uint8": "uint8",
    "uint16": "uint16", "uint32": "uint32", "uint64": "uint64", "float16": "float16", "float32": "float32",
    "float64": "float64", "complex64": "complex64", "complex128": "complex128",
}  # fmt: skip
_TEXTS = {"bool_": "Bool", "uint8": "UInt8", "uint16": "UInt16", "uint32": "UInt32", "uint64": "UInt64"}
_OTHERS = {
    "int_": "Int", "uint": "UInt", "float_": "Float", "number": "Number", "string": "String", "list_": "List",
    "tuple_": "Tuple", "dict_": "Dictionary", "type_none": "None", "type_type": "TypeType", "function": "Function",
    "slice": "Slice", "ellipsis": "Ellipsis", "anything": "AnyType", "none_type": "None",
}  # fmt: skip
types = {name: Type(name, numbers, _TEXTS.get(name)) for name, numbers in _NUMBERS.items()}
types.update((name, Type(name, None, text)) for name, text in _OTHERS.items())

_of = {each.numpy: each for each in types.values() if each.numpy}


def of(dtype):
    """The type object of a numpy.dtype."""
    try:
        return _of[dtype]
    except KeyError:
        found = types["string"] if numpy.dtype(dtype).kind == "U" else _of.get(numpy.dtype(dtype))
        if found is None:
            raise TypeError(f"a Tensor cannot hold elements of {dtype}") from None
        return found


def named(name):
    return types[name]


def numpy_of(dtype):
    """The numpy.dtype of a type object, a numpy.dtype, a Python type or a name of either."""
    if isinstance(dtype, Type):
        if dtype.numpy is None:
            raise TypeError(f"{dtype} is no element type of tensors")
        return dtype.numpy
    if isinstance(dtype, TensorType):
        return dtype.element_type().numpy
    if dtype is float:
        return types["float32"].numpy
    return numpy.dtype(dtype)
