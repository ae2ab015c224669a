"""Graph mode: Cells and functions are captured once for the shapes, types and flags of a call, compiled, and run.

What cannot be captured runs eagerly, with one notice that names the line and the reason; CAIRN_MS_STRICT=1 (--strict) makes
it an error. `statistics` counts what was captured, run and refused."""

import bisect
import functools
import os
import re
import sys
import traceback
import types
import weakref

import numpy
from cairn import Error
from cairn.ms import core, gradient, kept, modes
from cairn.ms.refusal import Forbidden, Uncaptured, of_index
from cairn.ms.tensor import Tensor, laid, order_of, unlaid, wrap

from . import source
from .conditions import RESULT
from .graph import Graph, settings_of
from .rewrite import unended

MOST = 64  # signatures of one function whose compiled forms are kept
statistics = {"compiled": 0, "runs": 0, "eager": 0}

_OF_ZERO = {"division by zero", "float division by zero", "integer division or modulo by zero", "float floor division by zero",
            "integer modulo by zero", "float modulo", "float modulo by zero"}  # fmt: skip
_ITERATORS = (map, filter, zip, enumerate, range)  # which are tuples in graphs
_owners = weakref.WeakKeyDictionary()  # object -> {key: [Compiled]}
_told = set()


class Signature:
    """The arguments of a call: what distinguishes compiled functions, and the tensors that are inputs."""

    def __init__(self, target, arguments, keywords):
        self.tensors, self.kept = [], []
        self.key = (self._of(arguments), self._of(keywords), *_own_key(target))

    def _of(self, x):
        if isinstance(x, Tensor):
            if hasattr(x, "requires_grad"):
                return "parameter", x
            array = x.asnumpy()
            if x.const_arg:
                return "constant", array.dtype.char, array.shape, array.tobytes()
            self.tensors.append(x)
            return array.dtype.char, array.shape, order_of(array), x.is_mutable
        if x is None or type(x) in (bool, int, float, str):
            return type(x), x
        if isinstance(x, (tuple, list)) and not hasattr(x, "_fields"):
            return type(x), tuple([self._of(each) for each in x])
        if isinstance(x, dict):
            return dict, tuple([(key, self._of(each)) for key, each in x.items()])
        if isinstance(x, numpy.ndarray):
            return numpy.ndarray, x.dtype.char, x.shape, x.tobytes()
        if hasattr(x, "of_parts"):
            return type(x), x.capture_shape(), self._of(x.parts())
        try:
            hash(x)
        except TypeError:
            self.kept.append(x)
            return id(x)
        return x


def _own_key(target):
    if isinstance(target, types.MethodType):
        return (target.__func__,)
    return target.capture_key() if hasattr(target, "capture_key") else ()


def _owner(target):
    """What the compiled functions of the target live as long as."""
    if isinstance(target, types.MethodType):
        return target.__self__
    owner = getattr(target, "captured_for", target)
    return _owner(owner) if isinstance(owner, types.MethodType) else owner


class Compiled(kept.Function):
    """A captured function, ready to run. `guards`: the Cells that it went through, and how they were."""

    def __init__(self, graph, result):
        self._outputs = []
        self._result = self._outline(result)
        self._shown = [(act, self._outline(values)) for act, values in graph.shown]
        for each in self._outputs:  # a Parameter that is only returned becomes a state here
            graph.value(each)
        self._states, self._orders = list(graph.states), [order for _, order in graph.states.values()]
        self._types = [tensor._array.dtype for tensor in self._states], [tensor.shape for tensor in self._states]
        self._written = [(tensor, order) for tensor, order in zip(self._states, self._orders) if tensor in graph.scopes[0].written]
        self.guards = list(graph.guards.values())
        self.kept = None
        modes_of_cells = (cell["_precision_mode"] for cell, _ in self.guards)
        super().__init__(graph.finish(self._outputs), True, next(filter(None, modes_of_cells), ""))

    def _outline(self, tree):
        """The result with numbers in the places of its tensors."""

        def take(tensor):
            self._outputs.append(tensor)
            return _Place(len(self._outputs) - 1)

        return gradient.rebuilt(tree, take)

    def fits(self):
        for cell, settings in self.guards:
            if settings_of(cell) != settings:
                return False
        return all(
            t._array.dtype == dtype and t._array.shape == shape for t, dtype, shape in zip(self._states, *self._types)
        )

    def run(self, tensors):
        arrays = [laid(each._array, order_of(each._array)) for each in tensors]
        written = []
        for each, order in self._written:
            own = laid(each._array, order)
            if not own.flags.c_contiguous or not own.flags.writeable:
                own = own.copy()
                each._array = unlaid(own, order)
            written.append(own)
        arrays = _apart(arrays, written)
        arrays += [laid(each._array, order) for each, order in zip(self._states, self._orders)]
        self.used()
        try:
            made = self.model.call(arrays)
        except Error as error:
            raise of_index(error) from None
        for act, values in self._shown:
            act(_filled(values, made))
        return _filled(self._result, made)


def _span(array):
    begin = array.__array_interface__["data"][0]
    return begin, begin + array.nbytes


def _apart(arrays, written):
    """The arrays, copied where they share memory with one of the written, which are row-major."""
    spans = sorted(map(_span, written))
    made = []
    for each in arrays:
        begin, end = _span(each)
        place = bisect.bisect_left(spans, (end,)) - 1
        shares = place >= 0 and spans[place][1] > begin
        made.append(each.copy() if shares or not each.flags.c_contiguous else each)
    return made


class _Place:
    __slots__ = ("index",)

    def __init__(self, index):
        self.index = index


def _filled(tree, arrays):
    if type(tree) is _Place:
        return wrap(arrays[tree.index])
    if isinstance(tree, dict):
        return {key: _filled(each, arrays) for key, each in tree.items()}
    if isinstance(tree, (tuple, list)) and not hasattr(tree, "_fields"):
        return type(tree)([_filled(each, arrays) for each in tree])
    return tree.of_parts([_filled(each, arrays) for each in tree.parts()]) if hasattr(tree, "of_parts") else tree


def _is_method(target, arguments):
    """Whether ms_function decorates a method, whose object is the first argument."""
    if not isinstance(target, types.FunctionType) or not arguments:
        return False
    return getattr(getattr(type(arguments[0]), target.__name__, None), "captured", None) is target


def entry(target, arguments, keywords):
    """Calls a Cell, a function or a gradient of one as a captured function."""
    if _is_method(target, arguments):
        target, arguments = types.MethodType(target, arguments[0]), arguments[1:]
    signature = Signature(target, arguments, keywords)
    found = _find(target, signature, arguments, keywords)
    if found is None:
        statistics["eager"] += 1
        try:
            given = _lists(arguments)
            return _tuples(_body(target)(*arguments, **keywords), given)
        except RecursionError:
            raise RuntimeError(_too_deep()) from None
    statistics["runs"] += 1
    return found.run(signature.tensors)


def compile_only(target, arguments):
    """Compiles the call; returns what tells its compiled function from others of the target."""
    signature = Signature(target, arguments, {})
    _find(target, signature, arguments, {})
    return signature.key


entry.compile = compile_only


def _find(target, signature, arguments, keywords):
    of_owner = _owners.setdefault(_owner(target), {})
    known = of_owner.setdefault(signature.key, [])
    for each in known:
        if each is None or each.fits():
            return each
    try:
        made = _captured(target, signature, arguments, keywords)
    except Uncaptured as reason:
        if isinstance(reason, Forbidden) or os.environ.get("CAIRN_MS_STRICT", "0") not in ("", "0"):
            source.place(reason)
            raise
        _notice(target, reason)
        made, Uncaptured.raised = None, None  # which holds the frames of the capture
    known.append(made)
    if made is not None:
        made.keep(functools.partial(_forget, weakref.ref(_owner(target)), signature.key))
    if len(of_owner) > MOST:
        del of_owner[next(iter(of_owner))]
    return made


def _forget(owner, key, function):
    known = _owners[owner()].get(key, ()) if owner() is not None else ()
    if function in known:
        known.remove(function)


def _body(target):
    """What a call of the target runs: a Cell with its hooks, or the function itself."""
    run = getattr(target, "uncaptured", None)
    return run if run is not None else target


def formed(target, arguments, form, frozen=False):
    """form(graph, result) of a call of the target; Uncaptured where it cannot be captured. frozen: Parameters are constants."""
    return _captured(target, Signature(target, arguments, {}), arguments, {}, form, frozen)


def _captured(target, signature, arguments, keywords, form=Compiled, frozen=False):
    graph = Graph(getattr(target, "__name__", type(target).__name__), frozen)
    given = iter([graph.input(each) for each in signature.tensors])

    def stand(tensor):
        return tensor if hasattr(tensor, "requires_grad") or tensor.const_arg else next(given)

    limit = sys.getrecursionlimit()
    core.here.recorder = graph
    Uncaptured.raised = None
    try:
        sys.setrecursionlimit(_frames() + 12 * modes.call_depth)
        graph.given = {each for each in gradient.tensors_of([*arguments, *keywords.values()]) if hasattr(each, "requires_grad")}
        inner = [gradient.rebuilt(each, stand) for each in arguments]
        named = {key: gradient.rebuilt(each, stand) for key, each in keywords.items()}
        _fix_parts([*arguments, *keywords.values()], [*inner, *named.values()])
        lists = _lists(inner)
        result = graph.prepared(_body(target))(*inner, **named)
        if Uncaptured.raised is not None:
            raise Uncaptured.raised
        made = form(graph, _returnable(_tuples(result, lists)))
    except RecursionError:
        raise Forbidden(_too_deep()) from None
    except Uncaptured:
        raise
    except Exception as error:
        if "that has ended" in str(error):
            raise Uncaptured("a tensor of a branch or loop is kept by Python and used outside of it") from error
        unknown = source.undefined_name(error) or _missing_return(error) or _zero_divisor(error) or _given_twice(error)
        if unknown is not None:
            raise unknown from error
        source.place(error)
        raise
    finally:
        core.here.recorder = None
        sys.setrecursionlimit(limit)
    made.kept = signature.kept
    statistics["compiled"] += 1
    return made


def _fix_parts(given, inner):
    """Tensors in containers that are not mutable count as constants where gradients of all inputs are asked for."""
    for each, made in zip(given, inner):
        if isinstance(each, (tuple, list, dict)):
            for outer, part in zip(gradient.tensors_of(each), gradient.tensors_of(made)):
                part.fixed = not outer.is_mutable if part is not outer else part.fixed


def _frames():
    """How many calls of Python are open."""
    frame, count = sys._getframe(), 0
    while frame is not None:
        frame, count = frame.f_back, count + 1
    return count


def _too_deep():
    return f"Exceed function call depth limit {modes.call_depth}, (function call depth: {modes.call_depth})"


def _lists(arguments):
    """The lists among the arguments and what they hold: those that it does not change are returned as they are."""
    return {id(each): list(each) for each in arguments if isinstance(each, list)}


def _tuples(result, kept):
    """What a graph returns: lists that it makes are tuples, as iterators are."""
    held = kept.get(id(result))
    if isinstance(result, _ITERATORS) or type(result) in (list, tuple) and (held is None or not _same(held, result)):
        return tuple([_tuples(each, kept) for each in result])
    return result


def _same(a, b):
    return len(a) == len(b) and all(x is y for x, y in zip(a, b))


def _returnable(result):
    """The result, which holds what a graph can return."""
    if type(result) in (list, tuple):
        for each in result:
            _returnable(each)
    elif isinstance(result, (types.FunctionType, types.MethodType, functools.partial)):
        raise RuntimeError("Function in output is not supported. Please check your code.")
    elif isinstance(result, numpy.ndarray):
        raise RuntimeError("Should not use Python object in runtime, but a NumPy array is returned; return Tensor(array).")
    return result


def _zero_divisor(error):
    """What is said of constants that are divided by 0."""
    if not isinstance(error, ZeroDivisionError) or str(error) not in _OF_ZERO:
        return None
    modulo = "division" not in str(error)
    return ValueError("Cannot perform modulo operation on zero." if modulo else "The divisor could not be zero. But the divisor is zero now.")


def _given_twice(error):
    """What is said of an argument that a call gives by place and by name."""
    found = isinstance(error, TypeError) and re.search("got multiple values for argument '(.*)'", str(error))
    return TypeError(f"Multiply values for specific argument: {found[1]}") if found else None


def _missing_return(error):
    """What is said of returned values that do not fit because a path returns none."""
    text = str(error)
    if "Join Failed" in text and ("the returned value" in text or RESULT in text):
        for frame, _ in traceback.walk_tb(error.__traceback__):
            name = unended.get(frame.f_code)
            if name is not None:
                return TypeError(f"Function must has 'return' statement, but missing in {name}. {text}")
    return None


def _notice(target, reason):
    """Says once where and why a function is not captured."""
    file, line = "", getattr(reason, "line", None)
    for frame in traceback.extract_tb(reason.__traceback__):
        if os.path.join("cairn", "ms", "") not in frame.filename:
            file, line = frame.filename, line or frame.lineno
    name = getattr(target, "__qualname__", type(target).__name__)
    text = f"{name} runs eagerly: {reason}" + (f" ({file}:{line})" if file else "")
    if text not in _told:
        _told.add(text)
        print(f"cairn ms: {text}", file=sys.stderr)


core.graph_entry = entry
