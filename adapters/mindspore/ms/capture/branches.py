"""Branches of captured functions: both are traced, and what they assign becomes results of one conditional of the graph."""

import numpy
from cairn.ms import core, level
from cairn.ms.promote import cast, together
from cairn.ms.refusal import Uncaptured, Wrong
from cairn.ms.tensor import Tensor

from .conditions import RESULT, Undefined, and_, condition, decided, graph, is_number, nptype, number_dtype, or_, pair, place_of, same, type_text
from .graph import Value, is_symbolic, symbolic
from .source import endings
from .trees import leaves, zeros


def choose(test, then, otherwise, line):
    test = decided(test)
    if not is_symbolic(test):
        return then() if test else otherwise()
    made = [None]

    def put(values):
        made[0] = values[0]

    def first():
        made[0] = then()

    def second():
        made[0] = otherwise()

    if_(test, first, second, lambda: tuple(made), put, ("the value of the conditional expression",), line)
    return made[0]


def one_of(both, line, *thunks):
    """`and` or `or` whose value is asked for: since 1.10 one of the operands, which join as the values of branches do."""

    def either(made, value, both):
        if isinstance(value, Tensor) and (nptype(value), value.shape) == (nptype(made), made.shape) or not level.at_least("1.10"):
            return pair(made, value, both)
        then, otherwise = (value, made) if both else (made, value)
        return choose(made, lambda: then, lambda: otherwise, line)

    return (and_ if both else or_)(*thunks, pair=either)


def if_(test, then, otherwise, get, put, names, line):
    test = decided(test)
    if not is_symbolic(test):
        return then() if test else otherwise()
    own = graph()
    before = get()
    own.builder.begin_if(own.value(condition(test)).handle)
    open_ = True
    try:
        first, states1 = _branch(own, then, get)
        put(before)
        own.builder.begin_else()
        second, states2 = _branch(own, otherwise, get)
        join = _Join(own, test, line, states1.held, states2.held)
        made = [join.plan(name, a, b, old) for name, a, b, old in zip(names, first, second, before)]
        written = list(dict.fromkeys([*states1.written, *states2.written]))
        for each in written:
            join.states(each, states1, states2)
        handles = join.close()
        open_ = False
    finally:
        if open_:
            own.builder.abandon()
    put(tuple(each(handles) for each in made))
    for each, handle in zip(written, handles[len(handles) - len(written) :]):
        held = own.state(each)
        own.write(each, Value(handle, held.dtype, held.shape, own))


def _branch(own, body, get):
    """The variables at the end of a branch, and its scope; scope.held: what their Parameters hold there."""
    with own.region(writes=True) as scope:
        body()
        values = get()
        scope.held = {each: held_value(own, each) for each in leaves(values) if isinstance(each, Tensor)}
    return values, scope


def held_value(own, value):
    """A variable as it is at the end of a branch: a Parameter may hold something else later."""
    if isinstance(value, Tensor) and any(value in scope.states for scope in own.scopes):
        return symbolic(own.state(value))
    return value


def is_parameter(value):
    """Whether a variable names a Parameter, which is read where it is used."""
    return isinstance(value, Tensor) and value._value is None and hasattr(value, "requires_grad")


def _is_function(value):
    return callable(value) and not isinstance(value, (Tensor, type, Undefined))


def _either(test, a, b, line):
    """The function that a condition chooses; both are captured where it is called."""

    def chosen(*arguments, **keywords):
        return choose(test, lambda: core.prepared(a)(*arguments, **keywords), lambda: core.prepared(b)(*arguments, **keywords), line)

    return chosen


class _Join:
    """The values of two branches made one. Each variable has a plan, called with the handles of the conditional's results."""

    def __init__(self, own, test, line, *held):
        self._own, self._test, self._line, self._held = own, test, line, held
        self._pairs = []  # for each branch what makes the handle

    def plan(self, name, a, b, old):
        if same(a, b):
            return lambda handles: a
        if is_parameter(a) and is_parameter(b) and (nptype(a), a.shape) == (nptype(b), b.shape):
            return lambda handles: self._own.either(self._test, a, b)
        if name == RESULT and isinstance(old, Undefined):  # returned from a loop: a flag tells whether it counts
            a, b = (zeros(other) if isinstance(each, Undefined) else each for each, other in ((a, b), (b, a)))
        for each in (a, b):
            if isinstance(each, Undefined):
                if not isinstance(old, Undefined):
                    self._fail(name, a, b)
                without, having = ("true", "false") if each is a else ("false", "true")
                why = (
                    f". The local variable '{name}' is not defined in {without} branch, but defined in {having} branch. "
                    f"See the condition at {place_of(self._line)}"
                )
                return lambda handles: Undefined(name, why)
        if isinstance(a, (tuple, list)) and type(a) is type(b):
            if len(a) != len(b):
                self._fail(name, a, b)
            parts = [self.plan(name, x, y, old) for x, y in zip(a, b)]
            return lambda handles: type(a)([part(handles) for part in parts])
        if isinstance(a, dict) and isinstance(b, dict) and list(a) == list(b):
            parts = {key: self.plan(name, a[key], b[key], old) for key in a}
            return lambda handles: {key: part(handles) for key, part in parts.items()}
        if hasattr(type(a), "of_parts") and type(a) is type(b) and a.shape == b.shape:
            parts = [self.plan(name, x, y, old) for x, y in zip(a.parts(), b.parts())]
            return lambda handles: a.of_parts([part(handles) for part in parts])
        if _is_function(a) and _is_function(b):
            return lambda handles: _either(self._test, a, b, self._line)
        a, b = (held.get(each, each) if isinstance(each, Tensor) else each for each, held in zip((a, b), self._held))
        if not all(isinstance(each, Tensor) or is_number(each) for each in (a, b)):
            if any(isinstance(each, numpy.ndarray) for each in (a, b)):
                raise Uncaptured(f"'{name}' is a NumPy array that depends on a tensor", self._line)
            self._fail(name, a, b)
        return self._tensors(name, a, b)

    def _tensors(self, name, a, b):
        if isinstance(a, Tensor) and isinstance(b, Tensor):
            dtype, shape = nptype(a), a.shape
            if nptype(b) != dtype:
                if not self._own.mixed(dtype, nptype(b)):
                    self._fail(name, a, b)
                dtype = together(dtype, nptype(b))
        elif isinstance(a, Tensor) or isinstance(b, Tensor):
            tensor, number = (a, b) if isinstance(a, Tensor) else (b, a)
            dtype, shape = nptype(tensor), tensor.shape
            if isinstance(number, float) and dtype.kind != "f" or shape != ():
                self._fail(name, a, b)
        else:
            dtype, shape = numpy.result_type(number_dtype(a), number_dtype(b)), ()
            if (dtype.kind == "b") != (type(a) is bool and type(b) is bool) or bool in (type(a), type(b)) and dtype.kind != "b":
                self._fail(name, a, b)
            dtype = numpy.dtype("float32") if dtype.kind == "f" else dtype
        for each in (a, b):
            if isinstance(each, Tensor) and each.shape != shape:
                self._fail(name, a, b, "Shape")
        return self._pair(a, b, dtype, shape)

    def _pair(self, a, b, dtype, shape):
        place = len(self._pairs)
        self._pairs.append([self._maker(each, dtype) for each in (a, b)])
        return lambda handles: symbolic(Value(handles[place], dtype, shape, self._own))

    def _maker(self, x, dtype):
        own = self._own
        if isinstance(x, Tensor):
            return lambda: own.value(cast(x, dtype)).handle
        return lambda: own.constant(numpy.array(x, dtype)).handle

    def states(self, tensor, *scopes):
        def maker(scope):
            return lambda: (scope.states.get(tensor) or self._own.state(tensor)).handle

        self._pairs.append([maker(scope) for scope in scopes])

    def _fail(self, name, a, b, what="Type"):
        if what == "Shape" and not self._own.inputs:  # all is constant, and the condition is known where it runs
            raise Uncaptured(f"'{name}' has another shape in each branch", self._line)
        shown = "the returned value" if name == RESULT else f"'{name}'" if name.isidentifier() else name
        place = place_of(self._line)
        raise (Wrong if what == "Shape" else TypeError)(
            f"Cannot join the return values of different branches. {what} Join Failed: {shown} is {type_text(a)} where the condition at {place} is true, and "
            f"{type_text(b)} where it is false; both branches must give the same type and shape{endings(place, None if name == RESULT else name)}"
        )

    def close(self):
        sides = []
        for branch in (0, 1):
            self._own.builder.branch(branch)
            with self._own.region():
                sides.append([pair[branch]() for pair in self._pairs])
        return self._own.builder.join(*sides)
