"""Operators and methods of Tensor, over the core. Methods that are functions of mindspore.ops take them from there."""

import math
import operator

import numpy

from cairn.ms import core, dtypes, indexing, level, promote
from cairn.ms.core import here
from cairn.ms.numerics import basic
from cairn.ms.refusal import WrongIndex
from cairn.ms.tensor import Tensor, wrap

_NUMBERS = (bool, int, float, complex, numpy.generic)
_exact = {each.numpy for each in dtypes.types.values() if each.numpy}


def _operand(other):
    """The other operand: a Tensor or a number, or None where it is neither."""
    if isinstance(other, (Tensor, *_NUMBERS)):
        return other
    if isinstance(other, (list, tuple)) and here.recorder is not None and here.recorder.symbolic:  # in graphs they become tensors
        try:
            return Tensor(other)
        except TypeError:  # of texts
            return None
    return None


_PRIMITIVES = {"+": "Add", "-": "Sub", "*": "Mul", "/": "Div", "//": "FloorDiv", "%": "FloorMod", "**": "Pow"}


def _refuse(symbol, x, other):
    if hasattr(other, "of_parts"):  # a sparse tensor, whose reflected form is asked
        return NotImplemented
    kind = type(other).__name__
    told = f"For '{_PRIMITIVES[symbol]}', the 1th input is a not support implicit conversion type: {kind}, and the value is {other}: " if symbol in _PRIMITIVES else ""
    raise TypeError(f"{told}unsupported operand type(s) for {symbol}: 'Tensor' and '{kind}'")


def _binary(symbol, function, floats=False):
    """The operator and its reflected form. floats: integers are divided as float32."""
    def apply(x, y):
        x, y = promote.promote(x, y)
        if floats and _kind(x) in "biu":
            x, y = (promote.cast(each, numpy.dtype("float32")) if isinstance(each, Tensor) else numpy.float32(each)
                    for each in (x, y))  # fmt: skip
        elif _kind(x) == "b":  # sums and products of bools count
            x, y = (promote.cast(each, numpy.dtype("int32")) if isinstance(each, Tensor) else numpy.int32(each)
                    for each in (x, y))  # fmt: skip
            return promote.cast(function(x, y), numpy.dtype("bool"))
        return function(x, y)

    def forward(self, other):
        given = _operand(other) if not isinstance(other, Tensor) else other
        return _refuse(symbol, self, other) if given is None else apply(self, given)

    def reflected(self, other):
        given = _operand(other)
        return _refuse(symbol, self, other) if given is None else apply(given, self)

    return core.method(function.__name__, forward), reflected


def _kind(x):
    return promote.nptype(x).kind if isinstance(x, Tensor) else x.dtype.kind


def _compare(function, otherwise=None):
    def forward(self, other):
        given = _operand(other)
        if given is None:
            if otherwise is None:
                raise TypeError(f"'{function.__name__}' is not supported between a Tensor and {type(other).__name__}")
            return otherwise
        x, y = promote.promote(self, given)
        if _kind(x) == "b" and otherwise is None:
            x, y = (promote.cast(each, numpy.dtype("int32")) if isinstance(each, Tensor) else numpy.int32(each)
                    for each in (x, y))  # fmt: skip
        return function(x, y)

    return forward


def _logical(of_bools, of_integers):
    def forward(self, other):
        given = _operand(other)
        if given is None:
            _refuse("&, | or ^", self, other)
        x, y = promote.promote(self, given)
        return of_bools(x, y) if _kind(x) == "b" else of_integers(x, y)

    return forward


def _inverted(self):
    if _kind(self) != "b":
        told = "For primitive[LogicalNot], the input argument[x] must be a type of { Tensor[Bool],}"
        raise TypeError(f"{told}, but got {self.dtype}.")
    return core.not_(self)


def _product(self, other):
    if not isinstance(other, Tensor):
        return _refuse("@", self, other)
    if 1 in (len(self.shape), len(other.shape)):  # vectors by NumPy's rules
        return basic.matmul(*promote.promote(self, other))
    return core.matmul(*promote.promote(self, other))


def _attach(**members):
    for name, member in members.items():
        setattr(Tensor, name, member)


for _name, _symbol, _row, _floats in (
    ("add", "+", core.add, False), ("sub", "-", core.sub, False), ("mul", "*", core.mul, False),
    ("truediv", "/", core.div, True), ("floordiv", "//", core.floor_div, False), ("mod", "%", core.mod, False),
    ("pow", "**", basic.pow, False),
):  # fmt: skip
    _forward, _reflected = _binary(_symbol, _row, _floats)
    _attach(**{f"__{_name}__": _forward, f"__r{_name}__": _reflected})

_and, _or, _xor = (
    _logical(getattr(core, name + "_" * (name != "xor")), getattr(core, f"bit_{name}")) for name in ("and", "or", "xor")
)
_attach(
    __lt__=_compare(core.less), __le__=_compare(core.less_equal), __gt__=_compare(core.greater),
    __ge__=_compare(core.greater_equal), __eq__=_compare(core.equal, False), __ne__=_compare(core.not_equal, True),
    __hash__=lambda self: id(self), __and__=_and, __rand__=_and, __or__=_or, __ror__=_or, __xor__=_xor, __rxor__=_xor,
    __neg__=lambda self: core.neg(self), __pos__=lambda self: self, __abs__=lambda self: core.abs(self),
    __invert__=_inverted, __round__=lambda self, digits=None: core.round(self),
    __matmul__=_product,
)  # fmt: skip


def _item(self):
    array = self.asnumpy()
    if hasattr(core.here.recorder, "decides"):
        core.here.recorder.decides(self)
    if array.size != 1:
        raise ValueError(f"only one element tensors can be converted to Python scalars or can be converted to bool, but the shape is {self.shape}")
    return array.reshape(())[()]


def _bool(self):
    if self._array is not None and not self._array.size:
        return False
    return bool(_item(self))


_BASIC = frozenset((int, slice, type(None), type(...)))


def _is_basic(index):
    kind = type(index)
    return kind in _BASIC or (kind is tuple and all(type(each) in _BASIC for each in index))


def _get_item(self, index):
    if here.recorder is None and _is_basic(index):  # a copy of memory; no operator is needed
        made = wrap(numpy.array(self.asnumpy()[index]))
        made._parent = (self, index)
        return made
    made = indexing.get(self, index)
    if here.recorder is None and not isinstance(index, Tensor):
        made = wrap(made._array) if made is self else made
        made._parent = (self, index)
    return made


def _set_item(self, index, value):
    made = indexing.put(self, index, value)
    self._take(made)
    parent = self.__dict__.get("_parent")
    if parent is not None:
        parent[0][parent[1]] = self


def _take(self, made):
    """Becomes what another tensor is."""
    self._array, self._value, self._mark = made._array, made._value, made._mark


def _size(self):
    """How many elements; a method at level 0.5."""
    count = math.prod(self.shape)
    return count if level.at_least("1.1") else lambda: count


def _iterate(self):
    if not self.shape:
        raise TypeError("Cannot iterate over a scalar tensor.")
    return (self[i] for i in range(self.shape[0]))


def _repr(self, separator=", ", gap=" "):
    if self._array is None:
        return f"Tensor(shape={list(self.shape)}, dtype={self.dtype})"
    texts = {"float_kind": lambda number: f"{number:15.8e}"} if self.shape else None
    text = numpy.array2string(self._array, separator=separator, formatter=texts)
    gap = "\n" if self._array.ndim > 1 else gap
    return f"Tensor(shape={list(self.shape)}, dtype={self.dtype}, value={gap}{text})"


def show(values):
    """Prints values as a graph does."""
    print(shown(values))


class Joined(tuple):
    """An f-string of a graph whose parts are known only when the graph runs; as a result it is the tuple of them."""

    def text(self):
        return "".join(map(str, self))


def shown(values):
    """The lines that a graph prints for values."""
    texts = [each.text() if isinstance(each, Joined) else each for each in values]
    return "\n".join(_repr(each, " ", "") if isinstance(each, Tensor) else str(each) for each in texts)


def _index(self):
    """The tensor as a bound or place of Python's sequences."""
    if self.size != 1 or self.dtype.numpy.kind not in "iub":
        raise WrongIndex(f"slice indices must be integers or bool, or a Tensor of one such element, but got {self.dtype} of shape {self.shape}.")
    return int(_item(self))


_OPERATORS = {"add": "add", "subtract": "sub", "multiply": "mul", "divide": "truediv", "true_divide": "truediv", "floor_divide": "floordiv",
              "remainder": "mod", "power": "pow"}  # fmt: skip


def _of_numpy(self, ufunc, method, *inputs, **options):
    """NumPy's functions take the elements and return arrays; a number of NumPy's on the left counts as one of Python's."""
    if method == "__call__" and isinstance(inputs[0], numpy.generic) and ufunc.__name__ in _OPERATORS:
        return getattr(operator, _OPERATORS[ufunc.__name__])(inputs[0].item(), inputs[1])
    return getattr(ufunc, method)(*(each.asnumpy() if isinstance(each, Tensor) else each for each in inputs), **options)


_attach(
    __array_ufunc__=_of_numpy, __bool__=_bool, __int__=lambda self: int(_item(self)), __float__=lambda self: float(_item(self)),
    __index__=_index, __len__=lambda self: self.shape[0] if self.shape else 1,
    __iter__=_iterate, __getitem__=_get_item, __setitem__=_set_item, _take=_take, __repr__=_repr,
    __format__=lambda self, spec: format(_item(self) if spec else str(self), spec),
    __array__=lambda self, dtype=None, copy=None: numpy.asarray(self.asnumpy(), dtype),
    __str__=lambda self: str(self.asnumpy()) if self._value is None else _repr(self),
    ndim=property(lambda self: len(self.shape)), size=property(_size),
    itemsize=property(lambda self: self.dtype.numpy.itemsize), nbytes=property(lambda self: math.prod(self.shape) * self.itemsize),
    strides=property(lambda self: self.asnumpy().strides),
    T=property(lambda self: self.transpose()),
    has_init=property(lambda self: self.init is not None),
)  # fmt: skip
