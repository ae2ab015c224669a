"""Loops of captured functions: unrolled while Python knows how they go on, else one loop of the graph."""

import functools

import numpy
from cairn.ms.promote import cast
from cairn.ms.refusal import Uncaptured
from cairn.ms.tensor import Tensor

from .branches import held_value, if_, is_parameter
from .conditions import RESULT, Undefined, condition, graph, is_number, not_, nptype, number_dtype, place_of, same, seen, type_text
from .graph import Value, is_symbolic, symbolic
from .trees import form, is_carriable, leaves, rebuilt, zeros


def while_(test, body, get, put, names, line, place=None):
    while True:
        going = seen(test())
        if is_symbolic(going):
            return _Loop(test, body, get, put, names, line).run((place or body).__code__)
        if not going:
            return None
        body()


class _Retry(Exception):
    """Something else has to be carried."""


class _Loop:
    """A loop of the graph. What it must carry turns out when its body is traced: then it is traced once more.

    carried: {variable: {"tree": what it starts with, where it has no value before; number of a leaf: its element type}};
    states: the parameters that the body assigns."""

    def __init__(self, test, body, get, put, names, line):
        self.own, self.test, self.body, self.get, self.put = graph(), test, body, get, put
        self.names, self.line, self.before = names, line, get()
        self.carried, self.states = {}, []

    def run(self, place):
        place = place, self.own.mixes
        known = self.own.loops.get(place)  # what an equal loop turned out to carry
        if known is not None:
            self.carried, self.states = {name: dict(each) for name, each in known[0].items()}, list(known[1])
        for name, value in zip(self.names, self.before):
            if not is_carriable(value) and "tree" not in self.carried.get(name, ()):
                self.carried.pop(name, None)
            elif any(isinstance(leaf, Tensor) and not is_parameter(leaf) for leaf in leaves(value)):
                self.carried.setdefault(name, {})
        for _ in range(8 + len(self.names)):
            try:
                self._trace()
            except _Retry:
                self.put(self.before)
                continue
            self.own.loops[place] = (self.carried, self.states)
            return
        raise Uncaptured(f"the variables of the loop at {place_of(self.line)} change their types in every turn")

    def _trace(self):
        own = self.own
        self.trees = {
            name: self.carried[name].get("tree", value)
            for name, value in zip(self.names, self.before)
            if name in self.carried
        }
        self.starts = [
            self._start(leaf, self.carried[name].get(index))
            for name, tree in self.trees.items()
            for index, leaf in enumerate(leaves(tree))
        ]
        self.count = len(self.starts)
        self.starts += [own.state(each) for each in self.states]
        inside = own.builder.begin_while([each.handle for each in self.starts])
        ended = False
        try:
            with own.region():
                self._enter(inside)
                going = seen(self.test())
                going = going if is_symbolic(going) else Tensor(numpy.array(bool(going)))
                going = own.value(condition(going)).handle
            inside = own.builder.begin_body(going, len(self.starts))
            with own.region(writes=True) as scope:
                self._enter(inside)
                self.body()
                after = [each if each is old else held_value(own, each) for each, old in zip(self.get(), self.before)]
                following = self._following(after)
                known = set(map(id, self.states))
                missing = [each for each in scope.written if id(each) not in known]
                if missing:
                    self.states += missing
                    raise _Retry
                following += [own.state(each).handle for each in self.states]
            results = own.builder.end_while(following)
            ended = True
        finally:
            if not ended:
                own.builder.abandon()
        self._leave(results, after)

    def _start(self, leaf, dtype):
        """The Value that is carried first; dtype: the element type that a number turned out to need."""
        own = self.own
        if isinstance(leaf, Tensor):
            return own.value(cast(leaf, dtype or nptype(leaf)))
        return own.constant(numpy.array(leaf, dtype or number_dtype(leaf)))

    def _values(self, handles):
        """({variable: its value}, Values of the states)"""
        values = [Value(handle, each.dtype, each.shape, self.own) for handle, each in zip(handles, self.starts)]
        first = iter(values[: self.count])
        made = {name: rebuilt(tree, lambda _: symbolic(next(first))) for name, tree in self.trees.items()}
        return made, values[self.count :]

    def _enter(self, handles):
        made, states = self._values(handles)
        self.own.scopes[-1].states.update(zip(self.states, states))
        self.put(tuple(made.get(name, old) for name, old in zip(self.names, self.before)))

    def _leave(self, handles, after):
        made, states = self._values(handles)
        for name, old, new in zip(self.names, self.before, after):
            if name not in made and isinstance(old, Undefined) and not same(old, new):
                made[name] = Undefined(name, f": it is defined in the loop body at {place_of(self.line)}")
        self.put(tuple(made.get(name, old) for name, old in zip(self.names, self.before)))
        for each, value in zip(self.states, states):
            self.own.write(each, value)

    def _following(self, after):
        """The handles for the next turn."""
        handles = []
        for name, old, new in zip(self.names, self.before, after):
            if name not in self.trees:
                self._check_kept(name, old, new)
                continue
            tree = self.trees[name]
            if form(new) != form(tree):
                self._fail(name, old, new)
            for index, (first, leaf) in enumerate(zip(leaves(tree), leaves(new))):
                handles.append(self._next(name, index, first, leaf, self.starts[len(handles)]))
        return handles

    def _next(self, name, index, first, leaf, start):
        if is_number(leaf):
            keeps = type(leaf) is not float or start.dtype.kind == "f"
            leaf = Tensor(numpy.array(leaf, start.dtype if keeps else "float32"))
        elif not isinstance(leaf, Tensor):
            self._fail(name, first, leaf)
        if leaf.shape != start.shape:
            self._fail(name, first, leaf, "Shape")
        if nptype(leaf) != start.dtype:
            if self.own.mixed(nptype(leaf), start.dtype):
                if start.dtype.kind == "f":
                    return self.own.value(cast(leaf, start.dtype)).handle
                self.carried[name][index] = nptype(leaf)
                raise _Retry
            if isinstance(first, Tensor) or index in self.carried[name]:
                self._fail(name, first, leaf)
            self.carried[name][index] = nptype(leaf)
            raise _Retry
        return self.own.value(leaf).handle

    def _check_kept(self, name, old, new):
        """A variable that is not carried: Python's value that stays, or one that only the body knows."""
        if same(old, new) or isinstance(old, Undefined) and name != RESULT:
            return
        if isinstance(old, Undefined):
            self.carried[name] = {"tree": zeros(new)}
            raise _Retry
        if is_carriable(old) and is_carriable(new):
            self.carried[name] = {}
            raise _Retry
        if callable(old) and callable(new):  # a function that the body defines anew
            return
        if form(old) is not None and form(old) == form(new):
            raise Uncaptured(f"'{name}' holds tensors and other things, which a loop on tensors cannot carry", self.line)
        self._fail(name, old, new)

    def _fail(self, name, old, new, what="Type"):
        if what == "Shape":
            raise Uncaptured(f"Shape Join Failed: '{name}' has shape {old.shape} before the loop and {new.shape} after a turn of it", self.line)
        raise TypeError(
            f"{what} Join Failed: '{name}' is {type_text(old)} before the loop at {place_of(self.line)} and "
            f"{type_text(new)} after a turn of it; a loop whose condition is a tensor keeps the types and shapes of its variables"
        )


# Loops over things


class SymbolicRange:
    """range() of tensors."""

    def __init__(self, *bounds):
        start, stop, step = (0, bounds[0], 1) if len(bounds) == 1 else (*bounds, 1) if len(bounds) == 2 else bounds
        if isinstance(step, Tensor) or step == 0:
            raise Uncaptured("range() takes a number other than 0 as its step")
        self.start, self.stop, self.step = start, stop, step


def for_(items, body, get, put, names, stop, line):
    if isinstance(items, SymbolicRange):
        return _for_range(items, body, get, put, names, line)
    for item in items:
        if stop is not None and is_symbolic(get()[stop]):
            left = get()[stop]
            if_(not_(left), functools.partial(body, item), lambda: None, get, put, names, line)
            continue
        body(item)
        if stop is not None and not is_symbolic(get()[stop]) and get()[stop]:
            return


def _for_range(items, body, get, put, names, line):
    at = [items.start]

    def test():
        return at[0] < items.stop if items.step > 0 else at[0] > items.stop

    def turn():
        item = at[0]
        at[0] = item + items.step
        body(item)

    def get_all():
        return (*get(), at[0])

    def put_all(values):
        put(values[:-1])
        at[0] = values[-1]

    while_(test, turn, get_all, put_all, (*names, "the index"), line, place=body)
