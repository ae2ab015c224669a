"""What rewritten functions call (rewrite.py): with Python's values these do what the source said; where a condition is a
captured tensor they build branches and loops of the graph."""

import builtins
import functools
import os
import sys
import sysconfig
import types

import numpy
from cairn.ms import core
from cairn.ms.gradient import tensors_of
from cairn.ms.refusal import Uncaptured
from cairn.ms.tensor import Tensor

from .graph import Graph, Value, is_symbolic, symbolic

RESULT = "_cairn_result"


def graph():
    recorder = core.here.recorder
    return recorder if isinstance(recorder, Graph) else None


class Undefined:
    """A variable that has no value on some path. Using it is an error."""

    def __init__(self, name, why=""):
        self.__dict__["_cairn_text"] = f"local variable '{name}' is used before it has a value{why}"

    def _fail(self, *arguments, **keywords):
        raise UnboundLocalError(self._cairn_text)

    __call__ = __getattr__ = __getitem__ = __iter__ = __len__ = __bool__ = __float__ = __int__ = __index__ = _fail
    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = __truediv__ = __rtruediv__ = __neg__ = _fail
    __lt__ = __le__ = __gt__ = __ge__ = _fail


# Conditions


def _condition(test):
    """A bool[] of a tensor of one element."""
    x = test
    if test.size != 1:
        raise ValueError(
            f"The truth value of a tensor of shape {test.shape} is ambiguous: a condition takes a tensor of one element"
        )
    if _nptype(x).kind != "b":
        x = core.not_equal(x, numpy.zeros((), _nptype(x)))
    return x if x.shape == () else core.reshape(x, [])


def _nptype(x):
    return x._value.dtype if x._value is not None else x._array.dtype


def _seen(x):
    """A parameter as what it holds in the graph; anything else as it is."""
    own = graph()
    return symbolic(own.state(x)) if own is not None and isinstance(x, Tensor) and hasattr(x, "requires_grad") else x


def not_(x):
    x = _seen(x)
    return core.not_(_condition(x)) if is_symbolic(x) else not x


def _lazy(thunks, stops, combine):
    made = None
    for index, thunk in enumerate(thunks):
        value = _seen(thunk())
        if made is not None:
            made = combine(made, _condition(value) if isinstance(value, Tensor) else numpy.array(bool(value)))
        elif is_symbolic(value) and index + 1 < len(thunks):
            made = _condition(value)
        elif index + 1 == len(thunks) or stops(value):
            return value
    return made


def and_(*thunks):
    return _lazy(thunks, lambda value: not value, lambda a, b: getattr(core, "and_")(a, b))


def or_(*thunks):
    return _lazy(thunks, bool, lambda a, b: getattr(core, "or_")(a, b))


_COMPARE = {
    "eq": lambda a, b: a == b, "ne": lambda a, b: a != b, "lt": lambda a, b: a < b, "le": lambda a, b: a <= b,
    "gt": lambda a, b: a > b, "ge": lambda a, b: a >= b, "in": lambda a, b: a in b, "not in": lambda a, b: a not in b,
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

    return and_(*(step(op, thunk) for op, thunk in rest))


def choose(test, then, otherwise, line):
    test = _seen(test)
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


# Branches


def if_(test, then, otherwise, get, put, names, line):
    test = _seen(test)
    if not is_symbolic(test):
        return then() if test else otherwise()
    own = graph()
    condition = own.value(_condition(test))
    before = get()
    own.builder.begin_if(condition.handle)
    open_ = True
    try:
        first, states1 = _branch(own, then, get)
        put(before)
        own.builder.begin_else()
        second, states2 = _branch(own, otherwise, get)
        join = _Join(own, line)
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
    for index, each in enumerate(written, len(handles) - len(written)):
        held = own.state(each)
        own.scopes[-1].states[each] = Value(handles[index], held.dtype, held.shape, own)
        own.scopes[-1].written[each] = True


def _branch(own, body, get):
    with own.region(writes=True) as scope:
        body()
        values = get()
        held = [_held(own, each) for each in values]
    return held, scope


def _held(own, value):
    """A variable as it is at the end of a branch: a Parameter may hold something else later."""
    if isinstance(value, Tensor) and any(value in scope.states for scope in own.scopes):
        return symbolic(own.state(value))
    return value


def _type_text(x):
    if isinstance(x, Tensor):
        return f"a Tensor of {x.dtype} and shape {x.shape}"
    if isinstance(x, Undefined):
        return "no value"
    return f"{x!r} of type {type(x).__name__}"


def _place(line):
    frame = sys._getframe(1)
    while frame is not None and os.path.dirname(frame.f_code.co_filename) == os.path.dirname(__file__):
        frame = frame.f_back
    return f"{frame.f_code.co_filename}:{line}" if frame else f"line {line}"


def _number_dtype(x):
    return numpy.dtype({bool: "bool", int: "int64", float: "float32"}[type(x)])


def _is_number(x):
    return type(x) in (bool, int, float)


def _same(a, b):
    """Whether two values are one object, or equal values of Python."""
    if a is b:
        return True
    if type(a) is not type(b):
        return False
    if isinstance(a, (tuple, list)):
        return len(a) == len(b) and all(map(_same, a, b))
    if isinstance(a, dict):
        return list(a) == list(b) and all(_same(a[key], b[key]) for key in a)
    return isinstance(a, (bool, int, float, str, bytes)) and a == b


class _Join:
    """The values of two branches made one. Each variable has a plan, called with the handles of the conditional's results."""

    def __init__(self, own, line):
        self._own, self._line = own, line
        self._pairs = []  # for each branch what makes the handle

    def plan(self, name, a, b, old):
        if _same(a, b):
            return lambda handles: a
        if name == RESULT and isinstance(old, Undefined):  # returned from a loop: a flag tells whether it counts
            a, b = (_zeros(other) if isinstance(each, Undefined) else each for each, other in ((a, b), (b, a)))
        for each in (a, b):
            if isinstance(each, Undefined):
                if not isinstance(old, Undefined):
                    self._fail(name, a, b)
                why = f": only one branch of the condition at {_place(self._line)} assigns it"
                return lambda handles: Undefined(name, why)
        if isinstance(a, (tuple, list)) and type(a) is type(b):
            if len(a) != len(b):
                self._fail(name, a, b)
            parts = [self.plan(name, x, y, old) for x, y in zip(a, b)]
            return lambda handles: type(a)([part(handles) for part in parts])
        if isinstance(a, dict) and isinstance(b, dict) and list(a) == list(b):
            parts = {key: self.plan(name, a[key], b[key], old) for key in a}
            return lambda handles: {key: part(handles) for key, part in parts.items()}
        if not all(isinstance(each, Tensor) or _is_number(each) for each in (a, b)):
            self._fail(name, a, b)
        return self._tensors(name, a, b)

    def _tensors(self, name, a, b):
        if isinstance(a, Tensor) and isinstance(b, Tensor):
            dtype, shape = _nptype(a), a.shape
            if _nptype(b) != dtype:
                self._fail(name, a, b)
        elif isinstance(a, Tensor) or isinstance(b, Tensor):
            tensor, number = (a, b) if isinstance(a, Tensor) else (b, a)
            dtype, shape = _nptype(tensor), tensor.shape
            if isinstance(number, float) and dtype.kind != "f" or shape != ():
                self._fail(name, a, b)
        else:
            dtype, shape = numpy.result_type(_number_dtype(a), _number_dtype(b)), ()
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
            return lambda: own.value(x).handle
        return lambda: own.constant(numpy.array(x, dtype)).handle

    def states(self, tensor, *scopes):
        def maker(scope):
            return lambda: (scope.states.get(tensor) or self._own.state(tensor)).handle

        self._pairs.append([maker(scope) for scope in scopes])

    def _fail(self, name, a, b, what="Type"):
        shown = "the returned value" if name == RESULT else f"'{name}'" if name.isidentifier() else name
        raise TypeError(
            f"{what} Join Failed: {shown} is {_type_text(a)} where the condition at {_place(self._line)} is true, and "
            f"{_type_text(b)} where it is false; both branches must give the same type and shape"
        )

    def close(self):
        sides = []
        for branch in (0, 1):
            self._own.builder.branch(branch)
            with self._own.region():
                sides.append([pair[branch]() for pair in self._pairs])
        return self._own.builder.join(*sides)


# Loops


def _zeros(tree):
    """A tree of that form."""
    if isinstance(tree, (tuple, list)):
        return type(tree)([_zeros(each) for each in tree])
    if isinstance(tree, Tensor):
        return Tensor(numpy.zeros(tree.shape, _nptype(tree)))
    return type(tree)(0) if _is_number(tree) else tree


def while_(test, body, get, put, names, line, place=None):
    while True:
        going = _seen(test())
        if is_symbolic(going):
            return _loop(test, body, get, put, names, line, (place or body).__code__)
        if not going:
            return None
        body()


def _carriable(x):
    if isinstance(x, (tuple, list)):
        return all(map(_carriable, x))
    return isinstance(x, Tensor) or _is_number(x)


def _leaves(tree):
    if isinstance(tree, (tuple, list)):
        return [leaf for each in tree for leaf in _leaves(each)]
    return [tree]


def _filled(tree, leaves):
    if isinstance(tree, (tuple, list)):
        return type(tree)([_filled(each, leaves) for each in tree])
    return next(leaves)


class _Retry(Exception):
    pass


def _loop(test, body, get, put, names, line, place):
    """A loop of the graph. What it must carry turns out when its body is traced: then it is traced once more."""
    own = graph()
    before = get()
    known = own.loops.get(place)  # what an equal loop turned out to carry
    carried, states = ({}, []) if known is None else ({name: dict(each) for name, each in known[0].items()}, list(known[1]))
    for name, value in zip(names, before):
        if isinstance(value, Tensor) or isinstance(value, (tuple, list)) and any(isinstance(e, Tensor) for e in _leaves(value)):
            carried.setdefault(name, {})
    for _ in range(8 + len(names)):
        try:
            _try_loop(own, test, body, get, put, names, line, before, carried, states)
            own.loops[place] = (carried, states)
            return
        except _Retry:
            put(before)
    raise Uncaptured(f"the variables of the loop at {_place(line)} change their types in every turn")


def _try_loop(own, test, body, get, put, names, line, before, carried, states):
    trees = {name: carried[name].get("tree", value) for name, value in zip(names, before) if name in carried}
    starts = []
    for name, tree in trees.items():
        for index, leaf in enumerate(_leaves(tree)):
            starts.append(_start(own, leaf, carried[name].get(index)))
    held = [own.state(each) for each in states]
    inside = own.builder.begin_while([each.handle for each in starts + held])

    def enter(handles):
        values = [Value(handle, each.dtype, each.shape, own) for handle, each in zip(handles, starts + held)]
        leaves = iter([symbolic(each) for each in values[: len(starts)]])
        own.scopes[-1].states.update(zip(states, values[len(starts) :]))
        put(tuple(_filled(trees[name], leaves) if name in trees else old for name, old in zip(names, before)))

    done = False
    try:
        with own.region(writes=True) as scope:
            enter(inside)
            condition = _seen(test())
            if not is_symbolic(condition):
                condition = Tensor(numpy.array(bool(condition)))
            condition = own.value(_condition(condition)).handle
        if scope.written:
            raise Uncaptured("a Parameter is assigned in the condition of a loop")
        inside = own.builder.begin_body(condition, len(starts) + len(held))
        with own.region(writes=True) as scope:
            enter(inside)
            body()
            after = [_held(own, each) for each in get()]
            following = _following(own, names, before, after, trees, starts, carried, line)
            missing = [each for each in scope.written if each not in states]
            if missing:
                states += missing
                raise _Retry
            following += [own.state(each).handle for each in states]
        results = own.builder.end_while(following)
        done = True
    finally:
        if not done:
            own.builder.abandon()
    values = [Value(handle, each.dtype, each.shape, own) for handle, each in zip(results, starts + held)]
    leaves = iter([symbolic(each) for each in values[: len(starts)]])
    made = []
    for name, old, new in zip(names, before, after):
        if name in trees:
            made.append(_filled(trees[name], leaves))
        elif isinstance(old, Undefined) and not _same(old, new):
            made.append(Undefined(name, f": only the loop at {_place(line)} assigns it"))
        else:
            made.append(old)
    put(tuple(made))
    for each, value in zip(states, values[len(starts) :]):
        own.scopes[-1].states[each] = value
        own.scopes[-1].written[each] = True


def _start(own, leaf, given):
    """The Value that a loop carries first; given: the element type that a number turned out to need."""
    if isinstance(leaf, Tensor):
        return own.value(leaf)
    return own.constant(numpy.array(leaf, given or _number_dtype(leaf)))


def _following(own, names, before, after, trees, starts, carried, line):
    """The handles for the next turn. _Retry where something else has to be carried."""
    handles, at = [], 0
    for name, old, new in zip(names, before, after):
        if name not in trees:
            _check_kept(name, old, new, carried, line)
            continue
        olds, news = _leaves(trees[name]), _leaves(new)
        if len(olds) != len(news) or isinstance(new, (tuple, list)) != isinstance(trees[name], (tuple, list)):
            _fail_turn(name, old, new, line)
        for index, (first, leaf) in enumerate(zip(olds, news)):
            start = starts[at]
            at += 1
            if not isinstance(leaf, Tensor):
                if not _is_number(leaf):
                    _fail_turn(name, first, leaf, line)
                leaf = Tensor(numpy.array(leaf, start.dtype if type(leaf) is not float or start.dtype.kind == "f" else "float32"))
            dtype = _nptype(leaf)
            if leaf.shape != start.shape:
                _fail_turn(name, first, leaf, line, "Shape")
            if dtype != start.dtype:
                if isinstance(first, Tensor) or index in carried[name]:
                    _fail_turn(name, first, leaf, line)
                carried[name][index] = dtype
                raise _Retry
            handles.append(own.value(leaf).handle)
    return handles


def _check_kept(name, old, new, carried, line):
    """A variable that is not carried: Python's value that stays, or one that only the body knows."""
    if _same(old, new):
        return
    if isinstance(old, Undefined):
        if name != RESULT:
            return
        carried[name] = {"tree": _zeros(new)}
        raise _Retry
    if _carriable(old) and _carriable(new):
        carried[name] = {}
        raise _Retry
    if isinstance(new, (types.FunctionType, types.MethodType)):
        return
    _fail_turn(name, old, new, line)


def _fail_turn(name, old, new, line, what="Type"):
    raise TypeError(
        f"{what} Join Failed: '{name}' is {_type_text(old)} before the loop at {_place(line)} and {_type_text(new)} after a "
        "turn of it; a loop whose condition is a tensor keeps the types and shapes of its variables"
    )


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


# Stores


def setitem(container, index, value):
    """What the name holds after container[index] = value."""
    if isinstance(container, Tensor) and container._value is not None:
        made = symbolic(container._value)
        made[index] = value
        return made
    container[index] = value
    return container


slice_ = slice


def set_attribute(target, name, value, line):
    held = getattr(target, name, None)
    own = graph()
    if own is not None and isinstance(held, Tensor) and hasattr(held, "requires_grad") and held is not value:
        if isinstance(value, Tensor) and not hasattr(value, "requires_grad"):
            core.assign(held, value)
            return
    if own is not None and hasattr(target, "_cells") and any(map(is_symbolic, tensors_of(value))):
        raise Uncaptured(f"'.{name}' of a Cell is set to a tensor; only Parameters can be assigned", line)
    if own is not None and len(own.scopes) > 1:
        raise Uncaptured(f"'.{name}' is assigned where a condition depends on a tensor; only Parameters can be", line)
    setattr(target, name, value)


def raising(line):
    own = graph()
    if own is not None and len(own.scopes) > 1:
        raise Uncaptured("'raise' where a condition depends on a tensor", line)


# Calls


@functools.lru_cache(maxsize=None)
def _is_users(filename):
    if filename.startswith("<") and not filename.startswith(("<stdin", "<ipython")):
        return False
    path = os.path.abspath(filename)
    library = sysconfig.get_paths()["stdlib"]
    if path.startswith(library + os.sep) and "site-packages" not in path and "dist-packages" not in path:
        return False
    here = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    roots = [here, os.path.realpath(here)]
    roots += [os.path.dirname(each.__file__) for each in (numpy, sys.modules["cairn"])]
    roots += [os.path.dirname(sys.modules[name].__file__) for name in ("scipy", "torch", "tensorflow") if name in sys.modules]
    return not any(path.startswith(root + os.sep) for root in roots)


def converted(function):
    """The function rewritten if it is the user's, else itself."""
    from .rewrite import rewritten

    if isinstance(function, types.FunctionType):
        if hasattr(function, "captured"):  # ms_function
            return converted(function.captured)
        if hasattr(function, "is_constexpr"):
            return function
        return rewritten(function) if _is_users(function.__code__.co_filename) else function
    if isinstance(function, types.MethodType):
        inner = converted(function.__func__)
        return function if inner is function.__func__ else types.MethodType(inner, function.__self__)
    if isinstance(function, functools.partial):
        return functools.partial(converted(function.func), *function.args, **function.keywords)
    own = type(function).__dict__.get("__call__")
    if isinstance(own, types.FunctionType) and _is_users(own.__code__.co_filename):
        return types.MethodType(converted(own), function)
    return function


def call(function, *arguments, _cairn_line=None, **keywords):
    if graph() is None:
        return function(*arguments, **keywords)
    if isinstance(function, types.BuiltinFunctionType) or function in _TYPES:
        given = _builtin(function, tuple(map(_seen, arguments)))
        if given is not None:
            return given[0]
    elif isinstance(function, (types.FunctionType, types.MethodType, functools.partial)):
        made = converted(function)
        if made is not function:
            return made(*arguments, **keywords)
    else:
        function = converted(function)
    arguments = [_argument(each) for each in arguments]
    return function(*arguments, **{name: _argument(each) for name, each in keywords.items()})


def _argument(x):
    """Functions of the user that something else will call."""
    return converted(x) if isinstance(x, (types.FunctionType, types.MethodType)) else x


_TYPES = (int, float, bool, range)


def _builtin(function, arguments):
    """(result,) of a builtin with captured tensors among its arguments, or None."""
    single = arguments[0] if len(arguments) == 1 else None
    if isinstance(single, (list, tuple)):
        if function in (builtins.max, builtins.min, builtins.all, builtins.any) and any(map(is_symbolic, single)):
            arguments = tuple(single)
    elif function in (builtins.max, builtins.min, builtins.all, builtins.any) and is_symbolic(single):
        arguments = tuple(single)
    if not any(is_symbolic(each) for each in arguments):
        return None
    from cairn.ms import promote

    if function in (builtins.max, builtins.min):
        row = core.maximum if function is builtins.max else core.minimum
        return (functools.reduce(lambda a, b: row(*promote.promote(a, b)), arguments),)
    if function in (builtins.all, builtins.any):
        thunks = [lambda each=each: each for each in arguments]
        return ((and_ if function is builtins.all else or_)(*thunks),)
    if function is range:
        return (SymbolicRange(*arguments),)
    if function in (int, float, bool):
        dtype = {int: "int64", float: "float32", bool: "bool"}[function]
        scalar = core.reshape(arguments[0], [])
        if function is bool:
            return (_condition(scalar),)
        return (core.cast(scalar, dtype=numpy.dtype(dtype)),)
    if function is builtins.print:
        raise Uncaptured("print() of a tensor, whose elements are known only when the function runs")
    return None
