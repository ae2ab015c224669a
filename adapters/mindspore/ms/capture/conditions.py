"""Conditions of captured functions: truth, and, or, not and comparisons of tensors; what is said of values that do not fit."""

import math
import os
import sys

import numpy
from cairn.ms import core, level, promote
from cairn.ms.refusal import Forbidden, ForbiddenType
from cairn.ms.tensor import Tensor

from .graph import Graph, is_symbolic, symbolic

RESULT = "_cairn_result"


def graph():
    recorder = core.here.recorder
    return recorder if isinstance(recorder, Graph) else None


class Undefined:
    """A variable that has no value on some path. Using it is an error."""

    def __init__(self, name, why=""):
        self.__dict__["_cairn_text"] = f"local variable '{name}' referenced before assignment{why}"

    def _fail(self, *arguments, **keywords):
        raise UnboundLocalError(self._cairn_text)

    __call__ = __getattr__ = __getitem__ = __iter__ = __len__ = __bool__ = __float__ = __int__ = __index__ = _fail
    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = __truediv__ = __rtruediv__ = __neg__ = _fail
    __lt__ = __le__ = __gt__ = __ge__ = _fail


def condition(test):
    """A bool[] of a tensor of one element."""
    x = test
    if math.prod(test.shape) != 1:  # `size` is a method at level 0.5
        raise ValueError(f"Only tensor which shape is () or (1,) can be converted to bool, but got tensor shape is {test.shape}")
    if nptype(x).kind != "b":
        x = core.not_equal(x, numpy.zeros((), nptype(x)))
    return x if x.shape == () else core.reshape(x, [])


def nptype(x):
    return x._value.dtype if x._value is not None else x._array.dtype


def seen(x):
    """A parameter as what it holds in the graph; anything else as it is."""
    own = graph()
    return symbolic(own.state(x)) if own is not None and isinstance(x, Tensor) and hasattr(x, "requires_grad") else x


def decided(x):
    """The same, and a tensor made of constants as what it is."""
    x = seen(x)
    return x._value.known if is_symbolic(x) and x._value.known is not None else x


def not_(x):
    x = seen(x)
    return core.not_(condition(x)) if is_symbolic(x) else not x


def inverted(x):
    """~x; of a graph's numbers none is inverted."""
    if graph() is not None and is_number(x):
        raise ForbiddenType(f"Failed calling LogicalNot with \"LogicalNot()(input_x: {type(x).__name__})\". It takes Tensors of bool.")
    return ~x


def many(x):
    """Whether it is a captured tensor of several elements."""
    return is_symbolic(x) and math.prod(x.shape) != 1


def _bools(x):
    """A tensor, or what Python has, as truth values."""
    if not isinstance(x, Tensor):
        return Tensor(numpy.array(bool(x)))
    return x if nptype(x).kind == "b" else core.not_equal(x, numpy.zeros((), nptype(x)))


def pair(made, value, both):
    """`made and value`, or `made or value`: of one kind it is one of them, else a truth value."""
    combine = getattr(core, "and_") if both else getattr(core, "or_")
    if many(made) or many(value):  # several elements: each by itself, before 1.10
        if level.at_least("1.10"):
            condition(made if many(made) else value)
        return combine(*promote.promote(_bools(made), _bools(value)))
    if not isinstance(value, Tensor):
        return combine(condition(made), numpy.array(bool(value)))
    if nptype(made) != nptype(value) or made.shape != value.shape:
        return combine(condition(made), condition(value))
    if nptype(made).kind == "b":
        return combine(made, value)
    holds = _bools(made)
    return core.select(holds, value, made) if both else core.select(holds, made, value)


def _lazy(thunks, stops, both, pair):
    made = None
    for index, thunk in enumerate(thunks):
        value = seen(thunk())
        if made is not None:
            made = pair(made, value, both)
        elif is_symbolic(value) and index + 1 < len(thunks):
            made = value
        elif index + 1 == len(thunks) or stops(value):
            return value
    return made


def and_(*thunks, pair=pair):
    """`and` of what the functions give, as a condition; `pair` makes one value of two."""
    return _lazy(thunks, lambda value: not value, True, pair)


def or_(*thunks, pair=pair):
    return _lazy(thunks, bool, False, pair)


def contains(x, items, negated=False):
    """x in items, or not: tensors are the same where they are one, or constants of equal elements."""
    if graph() is None:
        return (x in items) != negated
    if not hasattr(items, "__contains__") and not hasattr(items, "__iter__"):
        raise TypeError(f"argument of type '{type(items).__name__}' is not iterable.")
    if type(items) in (list, tuple) and any(isinstance(each, Tensor) for each in (x, *items)):
        return (any(each is x for each in items) or any(_equal(each, x) for each in items)) != negated
    return (x in items) != negated


def _equal(a, b):
    if not (isinstance(a, Tensor) and isinstance(b, Tensor)):
        return not isinstance(a, str) and not isinstance(b, str) and bool(a == b)
    if a.shape != b.shape:
        return False
    known = all(each._array is not None and not hasattr(each, "requires_grad") for each in (a, b))
    return bool(numpy.array_equal(a._array, b._array)) if known else bool(a == b)


_COMPARE = {
    "eq": lambda a, b: a == b, "ne": lambda a, b: a != b, "lt": lambda a, b: a < b, "le": lambda a, b: a <= b,
    "gt": lambda a, b: a > b, "ge": lambda a, b: a >= b, "in": contains, "not in": lambda a, b: contains(a, b, True),
    "is": lambda a, b: a is b, "is not": lambda a, b: a is not b,
}  # fmt: skip


def chain(left, *rest):
    """left < a < b ...; each operand is computed once."""
    held = [left]

    def step(op, thunk):
        def compare():
            right = thunk()
            made = _COMPARE[op](held[0], right)
            held[0] = right
            return made

        return compare

    made = and_(*(step(op, thunk) for op, thunk in rest))
    return bool(made) if isinstance(made, numpy.ndarray) and made.size == 1 else made


def shifted(x, count, left):
    """x << count or x >> count; numbers of a graph have 64 bits."""
    if any(isinstance(each, Tensor) for each in (x, count)) or graph() is None:
        return x << count if left else x >> count
    name = "left_shift" if left else "right_shift"
    if not all(is_number(each) for each in (x, count)):
        raise Forbidden(f"The '{name}' operation does not support the type [{type(x).__name__}, {type(count).__name__}].")
    if float in (type(x), type(count)):
        told = f"{type(x).__name__} and {type(count).__name__}"
        raise TypeError(f"For '{name}', only integer types are supported, but got {told}.")
    if count < 0:
        raise ValueError(f"For '{name}', shift count must be a non-negative integer, but got {count}.")
    made = x << count if left else x >> count
    if left and not -(2**63) <= made < 2**63:
        raise Forbidden(f"For '{name}', int64 integer overflow: {x} << {count}.")
    return made


def type_text(x):
    if isinstance(x, Tensor):
        return f"a Tensor of {x.dtype} and shape {x.shape}"
    if isinstance(x, Undefined):
        return "no value"
    return f"{x!r} of type {type(x).__name__}"


def place_of(line):
    frame = sys._getframe(1)
    while frame is not None and os.path.dirname(frame.f_code.co_filename) == os.path.dirname(__file__):
        frame = frame.f_back
    return f"{frame.f_code.co_filename}:{line}" if frame else f"line {line}"


def number_dtype(x):
    return numpy.dtype({bool: "bool", int: "int64", float: "float32"}[type(x)])


def is_number(x):
    return type(x) in (bool, int, float)


def same(a, b):
    """Whether two values are one object, or equal values of Python."""
    if a is b:
        return True
    if type(a) is not type(b):
        return False
    if isinstance(a, (tuple, list)):
        return len(a) == len(b) and all(map(same, a, b))
    if isinstance(a, dict):
        return list(a) == list(b) and all(same(a[key], b[key]) for key in a)
    return isinstance(a, (bool, int, float, str, bytes)) and a == b
