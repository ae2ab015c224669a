"""The function that is being captured: calls of the core become nodes of a builder, parameters its states.

A scope is a branch, a loop's condition or body, or the function itself. It knows what the states hold in it: reads look from
the inside out, writes stay inside until the scope is joined with what surrounds it (branches.py, loops.py)."""

import contextlib
import functools
import math
import os
import sys
from types import FunctionType

import numpy
from cairn import _cairn
from cairn.ms import core
from cairn.ms.parameter import named_twice
from cairn.ms.tape import from_laid, to_laid
from cairn.ms.refusal import Forbidden, Uncaptured
from cairn.ms.tensor import Tensor, laid, order_of

RNG = "rng"
_FEW = 64  # elements of a constant that is computed when a function is compiled
_OWN = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep


class Value:
    """A value of the builder of a graph; `dtype` is NumPy's, or RNG. known: the tensor that it is, where it is made of few constants."""

    __slots__ = ("handle", "dtype", "shape", "graph", "known")

    def __init__(self, handle, dtype, shape, graph):
        self.handle, self.dtype, self.shape, self.graph, self.known = handle, dtype, shape, graph, None


_dtypes = {}


def _dtype(name):
    if name not in _dtypes:
        _dtypes[name] = numpy.dtype(name)
    return _dtypes[name]


def script_line():
    """ "train.py:41": the innermost line outside of this package."""
    frame = sys._getframe(2)
    while frame is not None and frame.f_code.co_filename.startswith(_OWN):
        frame = frame.f_back
    return f"{os.path.basename(frame.f_code.co_filename)}:{frame.f_lineno}" if frame else ""


def symbolic(value):
    made = Tensor.__new__(Tensor)
    made._value = value
    return made


def is_symbolic(x):
    return isinstance(x, Tensor) and x._value is not None


def settings_of(cell):
    """What a captured function depends on of a Cell that it calls, from the attributes of the Cell."""
    own = [cell[name] for name in ("training", "requires_grad", "_plain", "_cast_to", "_precision_mode", "_returns")]
    return own + list(cell["_cells"].values())


class Scope:
    def __init__(self):
        self.states = {}  # tensor -> Value
        self.written = {}  # of them, those assigned; in order
        self.constants = {}  # id of an array -> (array, Value)


class Graph:
    """The recorder of core calls while a function is captured."""

    symbolic = True

    def __init__(self, name, frozen=False):
        self.frozen = frozen  # whether Parameters are constants, as in a file without state
        self.builder = _cairn._Builder(name)
        self.scopes = [Scope()]
        self.states = {}  # tensor: (Value of the param, the order of its axes in memory)
        self.chosen = {}  # a Parameter that stands for one of two: (the condition, the one, the other)
        self.inputs = self.nodes = 0
        self.given = set()  # Parameters among the arguments, whose names are their own
        self.loops = {}  # what a loop at a place turned out to carry
        self.seen = {}  # tensors that are no parameters and were read as constants
        self.mixes = False  # whether integers join floating numbers, as where integers are differentiated
        self._calls = {}  # of the script's functions, being traced: how many scopes were open
        self.shown = []  # (function, values) that each run ends with, in order
        self.differentiated = []  # the Gradients that are open
        self.origins = {}  # handle of integers, while gradients are taken: the floating tensor that they were cast from
        self.guards = {}  # Cells that were called: their attributes, and what of them the function depends on

    # Values

    def input(self, tensor):
        """A new input like the tensor."""
        array = _ordinary(tensor.asnumpy())
        order = order_of(array)
        name = f"input_{self.inputs}" if not self.frozen else f"x{self.inputs or ''}"
        handle = self.builder.param(name, array.dtype.name, laid(array, order).shape)
        handle = from_laid(self.builder, handle, order)
        self.inputs += 1
        return symbolic(Value(handle, array.dtype, array.shape, self))

    def state(self, tensor, rng=False):
        """What the parameter holds here."""
        if tensor in self.chosen:
            test, *both = self.chosen[tensor]
            return core.select(test, *(symbolic(self.state(each)) for each in both))._value
        for scope in reversed(self.scopes):
            found = scope.states.get(tensor)
            if found is not None:
                return found
        if self.frozen:
            if rng:
                raise Uncaptured("a file has no random state")
            return self.constant(tensor._array)
        array = tensor._array if rng else _ordinary(tensor._array)
        if tensor not in self.states:
            if not getattr(tensor, "held", True) and tensor not in self.given and any(
                tensor.name == each.name for each in self.states if hasattr(each, "held") and each not in self.given
            ):
                raise Forbidden(named_twice(tensor))
            order = None if rng else order_of(array)
            name, dims = f"{getattr(tensor, 'name', 'state')}_{len(self.states)}", laid(array, order).shape
            handle = self.builder.param(name, RNG if rng else array.dtype.name, None if rng else dims)
            self.states[tensor] = Value(handle, RNG if rng else array.dtype, dims, self), order
        value, order = self.states[tensor]
        if order is None:
            self.scopes[0].states[tensor] = value
            return value
        made = self.typed(from_laid(self.builder, value.handle, order))
        self.scopes[-1].states[tensor] = made
        return made

    def value(self, x, rng=False):
        """The Value of a tensor."""
        if x._value is not None:
            if x._value.graph is not self:
                raise Uncaptured("a tensor that another captured function computes is used")
            return x._value
        if rng or self._is_state(x):
            return self.state(x, rng)
        self.seen[id(x)] = x
        return self.constant(x.asnumpy())

    def constant(self, array):
        for scope in reversed(self.scopes):
            known = scope.constants.get(id(array))
            if known is not None:
                return known[1]
        made = Value(self.builder.constant(numpy.asarray(_ordinary(array), order="C")), array.dtype, array.shape, self)
        self.scopes[-1].constants[id(array)] = (array, made)
        return made

    def typed(self, handle):
        name, dims = self.builder.type(handle)
        if dims is None or None in dims:
            raise Uncaptured("the shape of a result depends on the elements of a tensor")
        return Value(handle, _dtype(name), dims, self)

    # What the core asks of a recorder

    def call(self, row, inputs, attributes):
        if row.name == "cast" and self.differentiated and is_symbolic(inputs[0]):
            return self._cast(row, inputs, attributes)
        return self._call(row, inputs, attributes)

    def _cast(self, row, inputs, attributes):
        """A cast while gradients are taken: integers pass them on to the floating numbers that they were cast from."""
        given, origin = inputs[0]._value, self.origins.get(inputs[0]._value.handle)
        if origin is None:
            return self._call(row, inputs, attributes)
        if numpy.dtype(attributes["dtype"]).kind != "f":
            made = self._call(row, inputs, attributes)
            self.origins[made._value.handle] = origin
            return made

        def forward(x):
            return (self._call(row, (self._call(row, (x,), {"dtype": given.dtype}),), attributes),)

        def backward(held, results, slopes):
            return (self._call(row, slopes, {"dtype": origin._value.dtype}),)

        return self.custom(forward, backward, [origin])[0]

    def came(self, integers, given):
        """A script cast the tensor to these integers."""
        origin = given if given._value is not None and given._value.dtype.kind == "f" else self.origins.get(getattr(given._value, "handle", None))
        if self.differentiated and origin is not None:
            self.origins[integers._value.handle] = origin

    def _call(self, row, inputs, attributes):
        like = None
        for each in inputs:
            if isinstance(each, (Tensor, numpy.ndarray)):
                like = each._array.dtype if getattr(each, "_array", None) is not None else each.dtype
                like = getattr(like, "numpy", like)
                break
        while inputs and inputs[-1] is None:
            inputs = inputs[:-1]
        handles = [self._input(row.role(i), each, like) for i, each in enumerate(inputs)]
        self.nodes += 1
        of = attributes.get("name")  # the tensor that a collective exchanges
        self.builder.source(f"{of}/{row.name}" if of else f"{row.name}_{self.nodes}", row.name, script_line())
        made = self.builder.add(row.name, handles, attributes, row.results)
        if row.random:
            first = symbolic(Value(made[0], RNG, (3,), self))
            results = (first, *(symbolic(self.typed(each)) for each in made[1:]))
        else:
            results = tuple(symbolic(self.typed(each)) for each in made)
            self._know(row, inputs, attributes, results)
            if row.name == "cast":
                for each in self.differentiated:
                    each.converted(handles[0], results[0])
        return results[0] if len(results) == 1 else results

    def _know(self, row, inputs, attributes, results):
        """Computes a result of few elements that is made of constants: conditions of it are decided when the function is compiled."""
        if "group" in attributes or any(math.prod(each.shape) > _FEW for each in results):  # ranks meet in runs alone
            return
        given = []
        for each in inputs:
            if isinstance(each, Tensor):
                known = each._value.known if each._value is not None else None if self._is_state(each) else each
                if known is None:
                    return
                each = known
            given.append(each)
        made = row.run(*given, **attributes)
        for result, each in zip(results, made if isinstance(made, tuple) else (made,)):
            result._value.known = each

    def _is_state(self, tensor):
        return hasattr(tensor, "requires_grad") or any(tensor in scope.states for scope in self.scopes)

    def _input(self, role, given, like):
        if isinstance(given, Tensor):
            return self.value(given, rng=role == "state").handle
        if isinstance(given, numpy.generic):
            given = numpy.asarray(given)
        if isinstance(given, str):
            raise TypeError(f"A primitive takes tensors and numbers, but got the text {given!r}.")
        if not isinstance(given, numpy.ndarray):
            if isinstance(given, (list, tuple)) and any(isinstance(each, Tensor) for each in given):
                raise Uncaptured("a shape is made of the elements of tensors")
            given = numpy.array(given, numpy.int64 if role in ("shape", "index") else like or numpy.float32)
        elif role == "shape" and given.dtype.kind in "iu" and given.dtype.itemsize < 4:
            given = given.astype(numpy.int64)
        return self.constant(given).handle

    def either(self, test, a, b):
        """A Parameter that is a where the condition holds and b where not: read and assigned as the one that it is."""
        made = object.__new__(type(a))
        made.__dict__.update(a.__dict__)
        self.chosen[made] = test, a, b
        return made

    def assign(self, parameter, value):
        if parameter in self.chosen:
            test, a, b = self.chosen[parameter]
            held = [symbolic(self.state(each)) for each in (a, b)]
            value = value if isinstance(value, Tensor) else Tensor(numpy.asarray(value, held[0]._value.dtype))
            value = core.broadcast_to(core.cast(value, dtype=held[0]._value.dtype), list(held[0].shape))
            self.assign(a, core.select(test, value, held[0]))
            self.assign(b, core.select(test, held[1], value))
            return
        if parameter._value is not None:
            parameter._value = self.value(value if isinstance(value, Tensor) else Tensor(value))
            return
        if self.frozen:
            raise Uncaptured("it assigns to a Parameter, and a file has no state")
        if id(parameter) in self.seen:
            raise Uncaptured("a Tensor that is no Parameter is assigned after it was read")
        rng = is_symbolic(value) and value._value.dtype == RNG
        held = self.state(parameter, rng)
        made = self.value(value) if isinstance(value, Tensor) else self.constant(numpy.asarray(value, held.dtype))
        if not rng:
            if made.dtype != held.dtype:
                made = core.cast(symbolic(made), dtype=held.dtype)._value
            if made.shape != held.shape:
                one = held.shape == () and made.shape == (1,)
                made = (core.reshape if one else core.broadcast_to)(symbolic(made), list(held.shape))._value
        self.write(parameter, self._apart(parameter, made) if self.differentiated and not rng and made.dtype.kind == "f" else made)

    def _apart(self, parameter, value):
        """The value as a Parameter holds it: gradients end there, and are those of the Parameter where these are taken."""
        held = core.stop_gradient(symbolic(value))
        for each in self.differentiated:
            leaf = each.leaves.get(parameter)
            if leaf is not None:  # adds 0 and passes its gradient on
                held = core.add(held, core.sub(symbolic(leaf), core.stop_gradient(symbolic(leaf))))
        return held._value

    def write(self, parameter, value):
        """From here on the state holds the Value."""
        self.scopes[-1].states[parameter] = value
        self.scopes[-1].written[parameter] = True

    def mixed(self, a, b):
        """Whether elements of these two types may meet where branches or turns of a loop join."""
        return self.mixes and {a.kind, b.kind} in ({"i", "f"}, {"u", "f"})

    def show(self, act, *values):
        """Has act(values) called each time the function has run."""
        if len(self.scopes) > 1:
            raise Uncaptured("tensors are printed in a branch or loop that depends on tensors")
        self.shown.append((act, tuple(symbolic(self.value(each)) if isinstance(each, Tensor) else each for each in values)))

    def scope(self):
        return Gradients(self)

    def custom(self, forward, backward, inputs):
        tensors = [each for each in inputs if isinstance(each, Tensor)]
        values = [self.value(each) for each in tensors]
        handles = self.builder.begin_call("custom", [each.handle for each in values])

        def inside(made):
            stand = iter(made)
            return [symbolic(next(stand)) if isinstance(each, Tensor) else each for each in inputs]

        with self.region():
            made = forward(*inside(_like(handles, values)))
            results = [self.value(each) for each in made]
        floats = [each for each in results if each.dtype.kind in "fc"]
        count = len(values) + len(results) + len(floats)
        handles = self.builder.begin_backward([each.handle for each in results], count)
        with self.region():
            arguments = inside(_like(handles, values))
            own = [symbolic(each) for each in _like(handles[len(values) :], results)]
            slopes = iter(_like(handles[len(values) + len(results) :], floats))
            gradients = tuple(
                symbolic(next(slopes)) if each.dtype.kind in "fc" else Tensor(numpy.zeros(each.shape, each.dtype))
                for each in results
            )
            found = backward(arguments, tuple(own), gradients)
            if len(found) == len(inputs):
                found = [each for each, given in zip(found, inputs) if isinstance(given, Tensor)]
            wanted = []
            for index, each in enumerate(values):
                if each.dtype.kind in "fc":
                    slope = found[index] if index < len(found) else None
                    slope = Tensor(numpy.zeros(each.shape, each.dtype)) if slope is None else slope
                    wanted.append(self.value(slope).handle)
        made = self.builder.end_call(wanted, len(results))
        return tuple(symbolic(each) for each in _like(made, results))

    @contextlib.contextmanager
    def region(self, writes=False):
        """A new innermost scope. Without `writes` nothing may be assigned in it."""
        self.scopes.append(Scope())
        try:
            yield self.scopes[-1]
        finally:
            scope = self.scopes.pop()
        if scope.written and not writes:
            raise Uncaptured("a Parameter is assigned in a condition of a loop or in a function with a gradient of its own")

    @contextlib.contextmanager
    def inside(self, function, arguments, keywords):
        """A call of the script's function. One that a condition leads back into with values of the same kinds would be traced without end."""
        own = getattr(function, "__func__", getattr(function, "func", function))
        held = [id(each) for each in own.__closure__ or ()] if isinstance(own, FunctionType) else ()
        key = getattr(own, "__code__", own), (*held, id(getattr(function, "__self__", None))), _kinds((arguments, tuple(keywords.items())))
        depth = self._calls.get(key)
        if depth is not None and len(self.scopes) > depth:
            raise Uncaptured("a recursion has no end that is known when it is compiled")
        self._calls[key] = len(self.scopes)
        try:
            yield
        finally:
            if depth is None:
                del self._calls[key]
            else:
                self._calls[key] = depth

    def prepared(self, function):
        """The function as it is to be called now: rewritten, if it is the user's."""
        from . import flow

        own = getattr(function, "__self__", None)
        if hasattr(own, "_cells"):
            own = own.__dict__
            self.guards[id(own)] = own, settings_of(own)
        return flow.converted(function)

    # The end

    def finish(self, results, bound=True):
        """The module whose results are these tensors, then the new contents of the assigned states, which `bound` writes back."""
        for index, each in enumerate(results):
            name = f"output_{index}" if not self.frozen else f"output{index or ''}"
            self.builder.result(name, self.value(each).handle, 0)
        scope = self.scopes[0]
        for index, tensor in enumerate(scope.written):
            (param, order), handle = self.states[tensor], scope.states[tensor].handle
            self.builder.result(f"state_{index}", to_laid(self.builder, handle, order), param.handle if bound else 0)
        return _cairn.Module(self.builder.finish())


def _ordinary(array):
    """The array, whose elements the IR has a type for."""
    if array.dtype == numpy.complex128:
        raise Uncaptured("complex numbers of 128 bits are computed outside of graphs")
    if array.dtype.kind == "U":
        raise Uncaptured("texts are held outside of graphs")
    return array


def _kinds(x):
    """What a call is traced for: types and shapes of captured tensors, other values as they are."""
    if isinstance(x, (tuple, list)):
        return tuple(map(_kinds, x))
    if is_symbolic(x):
        return x._value.dtype.char, x.shape
    return (type(x), x) if isinstance(x, (bool, int, float, str)) else id(x)


def _like(handles, values):
    return [Value(handle, each.dtype, each.shape, each.graph) for handle, each in zip(handles, values)]


class Gradients:
    """Gradients of what is captured meanwhile: see cairn.ms.gradient."""

    def __init__(self, graph):
        self._graph, self.leaves = graph, {}
        self._casts = {}  # handle of an argument that is not floating -> Values that it was converted to

    def __enter__(self):
        self._graph.differentiated.append(self)
        self._depth = len(self._graph.scopes)
        return self

    def __exit__(self, *exception):
        self._graph.differentiated.remove(self)

    def _fresh(self, value):
        return self._graph.typed(self._graph.builder.add("identity", [value.handle], {}, 1)[0])

    def argument(self, tensor):
        made = self._fresh(self._graph.value(tensor))
        if made.dtype.kind not in "fc":
            self._casts[made.handle] = []
        return symbolic(made)

    def origin(self, result):
        return self._graph.origins.get(result._value.handle, result) if is_symbolic(result) else result

    def converted(self, handle, result):
        """An argument that is not floating was converted: gradients by it are those by what it became."""
        if handle in self._casts and result._value.dtype.kind == "f" and len(self._graph.scopes) == self._depth:
            self._casts[handle].append(result._value)

    def parameter(self, parameter):
        made = self._fresh(self._graph.state(parameter))
        self._graph.scopes[-1].states[parameter] = self.leaves[parameter] = made
        return symbolic(made)

    def gradients(self, results, seeds, wanted):
        graph = self._graph
        pairs = [(graph.value(result), seed) for result, seed in zip(results, seeds)]
        pairs = [(value, seed) for value, seed in pairs if value.dtype.kind in "fc"]
        of = [value.handle for value, _ in pairs]
        given = [0 if seed is None else graph.value(seed).handle for _, seed in pairs]
        by = [graph.value(each) for each in wanted]
        of_each = [self._casts.get(each.handle) or [each] for each in by]
        flat = [value for each in of_each for value in each]
        made = iter([symbolic(each) for each in _like(graph.builder.gradients(of, given, [each.handle for each in flat]), flat)])
        sums = [functools.reduce(core.add, [next(made) for _ in each]) for each in of_each]
        return [x if value.dtype == x._value.dtype else core.cast(x, dtype=value.dtype) for x, value in zip(sums, by)]
