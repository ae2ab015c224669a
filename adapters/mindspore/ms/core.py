"""Operators on tensors: each row of docs/reference/ops.md is a function, and every number of a script is made here.

    y = core.conv2d(x, w, strides=[1, 1], padding="same")

Inputs, by position, are Tensors, NumPy arrays or numbers of one element type (cairn.ms.promote makes them so); the result is
a Tensor, or a tuple of them. Names that Python keeps for itself end in "_".

Every call is dispatched in one place, by `here.recorder` of the thread:
    None             the prepared operator of cairn.ops runs at once
    tape.Tape        the same, and the call is recorded, because gradients are being taken
    capture's own    a node is added to the function that is being captured; results have no elements
A recorder has
    symbolic                                whether tensors have no elements here
    call(row, inputs, attributes)           the result or tuple of results
    came(integers, tensor)                  a script cast the tensor to these integers
    assign(parameter, value)                from here on the parameter holds the value
    scope()                                 a context in which gradients are taken: see gradient.py
    prepared(function)                      the function as it is to be called
    custom(forward, backward, inputs)       tuple forward(*inputs); its gradients are backward(inputs, results, gradients)
                                            (a Tape's takes always=True as well)
"""

import contextlib
import keyword
import sys
import types

import numpy

from cairn import Error, _cairn, ops
from cairn.ms import dtypes, modes, refusal
from cairn.ms.tensor import Tensor


class _Here:
    recorder = property(_cairn._recorder, _cairn._record)  # each thread has its own


here = _Here()
rows = {}  # name of a function: its Row

graph_entry = None  # set by cairn.ms.capture: graph_entry(function, arguments, keywords) runs a function captured


def captures():
    """Whether a call of a Cell or of a gradient is to be captured as a whole."""
    return modes.mode == modes.GRAPH and here.recorder is None and graph_entry is not None


@contextlib.contextmanager
def without_gradients():
    """An eager tape does not see the calls inside, through whose results no gradient passes."""
    recorder = here.recorder
    unseen = recorder is not None and hasattr(recorder, "records")
    if unseen:
        here.recorder = None
    try:
        yield
    finally:
        if unseen:
            here.recorder = recorder


def prepared(function):
    """A function of the script as it is to be called now: rewritten while it is being captured."""
    recorder = here.recorder
    return function if recorder is None else recorder.prepared(function)


class Row:
    """An operator: its name, the prepared function of cairn.ops on tensors or arrays, and what is known of its inputs and attributes."""

    __slots__ = ("name", "run", "roles", "variadic", "dtypes", "results", "random", "plain")

    def __init__(self, python_name, described):
        self.name = described["name"]
        self.run = ops._function(python_name, described, tensor=Tensor)
        self.roles = [each["role"] for each in described["inputs"]]
        self.variadic = bool(described["inputs"]) and described["inputs"][-1]["arity"] == "variadic"
        self.dtypes = [each["name"] for each in described["attributes"] if each["kind"] == "dtype"]
        self.results = len(described["results"])
        self.random, self.plain = "state" in self.roles, "shape" not in self.roles

    def role(self, index):
        return self.roles[min(index, len(self.roles) - 1)]

    def spread(self, inputs):
        """Inputs with the list of a variadic one spread."""
        if self.variadic and len(inputs) == len(self.roles) and isinstance(inputs[-1], (list, tuple)):
            return (*inputs[:-1], *inputs[-1])
        return inputs


def _short_name(dtype):
    """"f32" of float32."""
    return dtype.name if dtype.kind == "b" else f"{dtype.kind}{8 * dtype.itemsize}"


# Element types as attributes: short names for operators that run at once, numpy.dtypes for builders.
_types = {each: each.numpy for each in dtypes.types.values() if each.numpy}
_types.update({each.numpy.name: each.numpy for each in _types})
_short = {key: _short_name(dtype) for key, dtype in _types.items()}
_short.update({dtype: _short_name(dtype) for dtype in _types.values()})


def elements(value):
    return value._array if isinstance(value, Tensor) else value


def _recorded(row):
    """The row's function, whoever the recorder is."""
    run, variadic = row.run, row.variadic

    def function(*inputs, **attributes):
        if variadic:
            inputs = row.spread(inputs)
        recorder = here.recorder
        for name in row.dtypes:
            if name in attributes:
                known = _short if recorder is None else _types
                attributes[name] = known.get(attributes[name], attributes[name])
        try:
            return run(*inputs, **attributes) if recorder is None else recorder.call(row, inputs, attributes)
        except Error as error:
            made = _of_complex(row, inputs, attributes, recorder)
            if made is None:
                raise refusal.fault(error) from None
            return made

    return function


def _of_complex(row, inputs, attributes, recorder):
    """The result of a row that refused complex numbers, or None where that was not why, or no rule is known."""
    from cairn.ms.numerics import complexes

    to_complex = str(attributes.get("dtype", "")).startswith("c")
    if not (to_complex or complexes.are_among(inputs)) or not complexes.has_rule(row.name):
        return None
    if recorder is not None and recorder.symbolic:
        raise refusal.Uncaptured("complex numbers are computed outside of graphs")
    if recorder is None:
        return complexes.computed(row, inputs, attributes)
    given = [each if isinstance(each, Tensor) or each is None else numpy.asarray(each) for each in inputs]

    def forward(*held):
        made = complexes.computed(row, held, attributes)
        return made if isinstance(made, tuple) else (made,)

    def backward(held, results, slopes):
        return complexes.gradients(row, held, attributes, results, slopes)

    made = recorder.custom(forward, backward, given)
    return made[0] if len(made) == 1 else made


def method(name, otherwise):
    """A method of Tensor: the operator where all operands are tensors of one floating type, or numbers, else what otherwise(*operands) does."""
    described = ops._row(name)
    return _cairn._method(ops._function(name, described, tensor=Tensor, otherwise=otherwise, alike=True))


def row_of(name):
    """The Row of an operator."""
    getattr(sys.modules[__name__], name)
    return rows[name]


def assign(parameter, value):
    """The parameter holds the value from here on, in its own memory. Returns the parameter."""
    recorder = here.recorder
    if recorder is not None:
        recorder.assign(parameter, value)
    else:
        numpy.copyto(parameter._array, elements(value), casting="same_kind")
    return parameter


def custom(forward, backward, inputs, always=False):
    """The tuple forward(*inputs), whose gradients are backward(inputs, results, gradients): one for each input, or None.
    always: backward() is called also where no gradient of an input is asked for, as hooks are."""
    recorder = here.recorder
    if recorder is None:
        return forward(*inputs)
    return recorder.custom(forward, backward, inputs, always) if always else recorder.custom(forward, backward, inputs)


class _Core(types.ModuleType):
    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        known = name[:-1] if name.endswith("_") and keyword.iskeyword(name[:-1]) else name
        described = ops._row(known)
        if described is None:
            raise AttributeError(f"no operator is called {known}")
        row = rows[name] = Row(name, described)
        made = _recorded(row)
        if not row.variadic and not row.dtypes:  # calls that nobody records stay outside of Python
            made = ops._function(name, described, tensor=Tensor, otherwise=made)
        else:
            made.__name__ = made.__qualname__ = name
            made.__doc__ = row.run.__doc__
        setattr(self, name, made)
        return made


sys.modules[__name__].__class__ = _Core
