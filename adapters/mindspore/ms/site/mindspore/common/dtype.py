"""Element types: mindspore.float32 and the like."""

import numpy

from cairn.ms.dtypes import TensorType, Type, numpy_of, of, types
from cairn.ms.tensor import Tensor

globals().update(types)

half, single, double = types["float16"], types["float32"], types["float64"]
byte, ubyte, short, ushort = types["int8"], types["uint8"], types["int16"], types["uint16"]
intc, uintc, intp, uintp = types["int32"], types["uint32"], types["int64"], types["uint64"]
tensor_type = TensorType
tensor = TensorType()
py_class = Type

number_type = tuple(types[name] for name in (
    "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float16", "float32", "float64",
    "complex64", "complex128"))  # fmt: skip
int_type = tuple(each for each in number_type if each.kind == "i")
uint_type = tuple(each for each in number_type if each.kind == "u")
float_type = tuple(each for each in number_type if each.kind == "f")
complex_type = tuple(each for each in number_type if each.kind == "c")
all_types = (types["bool_"], *number_type)
implicit_conversion_seq = {each: i for i, each in enumerate((types["bool_"], *uint_type[:1], *int_type, *float_type))}

__all__ = [
    *types, "TensorType", "all_types", "byte", "complex_type", "double", "dtype_to_nptype", "dtype_to_pytype",
    "float_type", "get_py_obj_dtype", "half", "implicit_conversion_seq", "int_type", "intc", "intp", "issubclass_",
    "number_type", "py_class", "pytype_to_dtype", "short", "single", "tensor", "tensor_type", "type_size_in_bytes",
    "ubyte", "uint_type", "uintc", "uintp", "ushort",
]  # fmt: skip

_FAMILIES = {
    types["number"]: number_type, types["int_"]: int_type, types["uint"]: uint_type, types["float_"]: float_type,
}  # fmt: skip


def issubclass_(type_, dtype):
    """Whether a type belongs to a family of types, or is it."""
    if isinstance(dtype, (tuple, list)):
        return any(issubclass_(type_, each) for each in dtype)
    if isinstance(type_, TensorType) and (dtype is TensorType or dtype == tensor):
        return True
    return type_ == dtype or type_ in _FAMILIES.get(dtype, ())


def dtype_to_nptype(type_):
    """NumPy's scalar type."""
    return numpy_of(type_).type


def dtype_to_pytype(type_):
    """Python's type: bool, int, float or complex."""
    kinds = {"b": bool, "i": int, "u": int, "f": float, "c": complex}
    if type_.numpy is not None:
        return kinds[type_.numpy.kind]
    others = {"string": str, "list_": list, "tuple_": tuple, "dict_": dict, "int_": int, "float_": float,
              "type_none": type(None), "none_type": type(None), "slice": slice, "ellipsis": type(...)}  # fmt: skip
    return others[type_.name]


def pytype_to_dtype(obj):
    """The type object of a Python or NumPy type."""
    if isinstance(obj, (Type, TensorType)):
        return obj
    python = {int: "int64", float: "float64", bool: "bool_", str: "string", list: "list_", tuple: "tuple_",
              type(None): "type_none", complex: "complex128"}  # fmt: skip
    if obj in python:
        return types[python[obj]]
    try:
        return of(numpy.dtype(obj))
    except TypeError:
        raise NotImplementedError(f"the Python type {obj} has no counterpart") from None


def get_py_obj_dtype(obj):
    """The type object of a value."""
    if isinstance(obj, Tensor):
        return TensorType(obj.dtype)
    if callable(obj):
        return types["function"]
    return pytype_to_dtype(type(obj))


def type_size_in_bytes(type_):
    return type_.numpy.itemsize
