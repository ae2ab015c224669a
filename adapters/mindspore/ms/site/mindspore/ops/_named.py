"""Primitives that are made by their name alone, Primitive("scalar_add"): numbers, tuples and functions, and operators without attributes."""

import functools
import operator

from cairn.ms import core
from mindspore.common import dtype as mstype
from mindspore.common.tensor import Tensor
from mindspore.ops import operations


def _of_numbers(name, function):
    def compute(x, y):
        for each in (x, y):
            if not isinstance(each, (bool, int, float)):
                raise TypeError(f"For primitive[{name}], the input must be a number, but got {type(each).__name__}.")
        return function(x, y)

    return compute


def _type_of(x):
    return mstype.TensorType(x.dtype) if isinstance(x, Tensor) else mstype.get_py_obj_dtype(x)


def _partial(function, *inputs):
    return functools.partial(core.prepared(function), *inputs)


_NUMBERS = {
    "add": operator.add, "sub": operator.sub, "mul": operator.mul, "div": operator.truediv, "floordiv": operator.floordiv, "mod": operator.mod,
    "pow": operator.pow, "eq": operator.eq, "ne": operator.ne, "lt": operator.lt, "gt": operator.gt, "le": operator.le, "ge": operator.ge,
}  # fmt: skip
_FUNCTIONS = {f"scalar_{name}": _of_numbers(f"scalar_{name}", function) for name, function in _NUMBERS.items()}
_FUNCTIONS.update({
    "scalar_uadd": operator.pos, "scalar_usub": operator.neg, "bool_not": operator.not_, "bool_and": lambda x, y: x and y,
    "bool_or": lambda x, y: x or y, "bool_eq": operator.eq, "string_eq": operator.eq, "string_concat": operator.add, "partial": _partial,
    "make_tuple": lambda *x: x, "make_list": lambda *x: list(x), "make_dict": lambda keys, values: dict(zip(keys, values)),
    "make_slice": slice, "tuple_getitem": operator.getitem, "list_getitem": operator.getitem, "dict_getitem": operator.getitem,
    "tuple_setitem": lambda x, i, v: (*x[:i], v, *x[i + 1 :]), "list_append": lambda x, y: [*x, y], "tuple_len": len, "list_len": len,
    "identity": lambda x: x, "getattr": getattr, "make_range": lambda *x: tuple(range(*x)), "typeof": _type_of, "is_": operator.is_,
    "is_not": operator.is_not, "in_dict": lambda x, y: x in y, "not_in_dict": lambda x, y: x not in y, "scalar_to_array": Tensor,
    "array_to_scalar": lambda x: x.asnumpy().item(), "depend": lambda x, *others: x, "Depend": lambda x, *others: x,
})  # fmt: skip


def function_of(primitive):
    """What computes a primitive of this name, or None."""
    known = _FUNCTIONS.get(primitive.name)
    if known is None and primitive.name[:1].isalpha():
        found = getattr(operations, primitive.name, None)
        if isinstance(found, type):
            given = {key: value for key, value in primitive.attrs.items() if key not in ("input_names", "output_names")}
            known = found(**given)
    return known
