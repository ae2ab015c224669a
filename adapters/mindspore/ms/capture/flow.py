"""What rewritten functions call (rewrite.py): with Python's values these do what the source said; where a condition is a
captured tensor they build branches and loops of the graph."""

import builtins
import functools
import os
import sys
import sysconfig
import types

import numpy
from cairn.ms import core, level, methods, modes, promote
from cairn.ms.gradient import tensors_of
from cairn.ms.refusal import Forbidden, Uncaptured
from cairn.ms.tensor import Tensor

from . import checks
from .branches import choose, if_, one_of  # noqa: F401
from .conditions import Undefined, and_, chain, condition, contains, decided, graph, inverted, not_, or_, place_of, seen, shifted  # noqa: F401
from .graph import is_symbolic, symbolic
from .loops import SymbolicRange, for_, while_  # noqa: F401

# Stores


def setitem(container, index, value):
    """What the name holds after container[index] = value."""
    if isinstance(container, Tensor) and container._value is not None:
        made = symbolic(container._value)
        made[index] = value
        return made
    container[index] = value
    return container


def put_back(container, index, value):
    """What the name holds after an element of container[index], now value, was written; a part of a tensor is a copy."""
    if not isinstance(container, Tensor) and container[index] is not value:
        container[index] = value
    return container


def member(target, name):
    """What a captured function writes elements of: of a Cell's members only Parameters can be, lists and dictionaries cannot."""
    if graph() is not None and hasattr(target, "_cells"):
        told = "should be initialized as a 'Parameter' in the '__init__' function" if level.at_least("1.10") else "should be a Parameter"
        if not hasattr(target, name):
            raise TypeError(f"'self.{name}' {told} before assigning.")
        held = getattr(target, name)
        if type(held) in (list, tuple, dict):
            raise TypeError(f"'self.{name}' {told}, but got '{held}' with type '{type(held).__name__}'.")
    return getattr(target, name)


slice_ = slice


def of_super(parent, name):
    """super().name: in a graph also what the Cell itself holds."""
    return getattr(parent if hasattr(parent, name) else parent.__self__, name)


def set_attribute(target, name, value, line):
    held = getattr(target, name, None)
    own = graph()
    if own is not None and isinstance(held, Tensor) and hasattr(held, "requires_grad") and held is not value:
        if isinstance(value, Tensor) and not hasattr(value, "requires_grad"):
            of, into = promote.nptype(value), promote.nptype(held)
            if promote.together(of, into) != into:
                raise TypeError("Data type conversion of 'Parameter' is not supported, so data type "
                                f"{into} cannot be converted to data type {of} automatically, at {place_of(line)}.")  # fmt: skip
            core.assign(held, value)
            return
        if not isinstance(value, (Tensor, int, float)):
            raise TypeError(f"'.{name}' is a Parameter and cannot be set to {type(value).__name__} at {place_of(line)}")
    if own is not None and hasattr(target, "_cells") and any(map(is_symbolic, tensors_of(value))):
        raise Uncaptured(f"'.{name}' of a Cell is set to a tensor; only Parameters can be assigned", line)
    if own is not None and len(own.scopes) > 1:
        raise Uncaptured(f"'.{name}' is assigned where a condition depends on a tensor; only Parameters can be", line)
    if own is not None and modes.mode == modes.PYNATIVE:
        raise Uncaptured(f"'.{name}' is set, which PYNATIVE_MODE does in each call", line)
    setattr(target, name, value)


_RAISED = set(
    "IndexError ValueError TypeError KeyError AttributeError NameError AssertionError BaseException KeyboardInterrupt Exception StopIteration "
    "OverflowError ZeroDivisionError EnvironmentError IOError OSError MemoryError UnboundLocalError RuntimeError NotImplementedError "
    "IndentationError RuntimeWarning".split()
)


def raising(line, name=None, kind=None):
    """Before `raise name(...)`; kind() is what the name stands for."""
    own = graph()
    if own is not None and kind is not None:
        try:
            kind = kind()
            known = not isinstance(kind, type) or kind.__module__ != "builtins" or kind.__name__ in _RAISED
        except NameError:
            known = False
        if not known:
            raise Forbidden(f"Unsupported exception type: {name}. Raise only support some Python standard exception types.")
    if own is not None and len(own.scopes) > 1:
        if not own.inputs:  # all is constant, and the condition is known where it runs
            raise Uncaptured("'raise' where a condition depends on a tensor", line)
        raise Forbidden(f"Currently only supports raise in constant scenarios. The condition of the 'raise' at line {line} depends on a tensor.", line)


def raised(error):
    """What a graph raises: the parts of a message are one text, and some types have no place in it."""
    if graph() is None or not isinstance(error, Exception) or type(error).__module__ != "builtins":
        return error
    joined_parts = [isinstance(each, methods.Joined) for each in error.args]
    text = "".join(each.text() if is_joined else str(each) for each, is_joined in zip(error.args, joined_parts))
    if isinstance(error, NotImplementedError):
        return NotImplementedError(f"Unsupported exception type: NotImplementedError. {text}")
    return type(error)(text) if len(error.args) > 1 or any(joined_parts) else error


def isinstance_(x, types_):
    """isinstance(), which says in MindSpore's words that the second argument is no type."""
    if types_ is None:
        raise TypeError("The type 'None' is not supported for 'isinstance'")
    try:
        return isinstance(x, types_)
    except TypeError:
        told = "The second arg of 'isinstance' must be a type or a tuple of types, but got"
        raise TypeError(f"isinstance() arg 2 must be a type or tuple of types. {told} a {type(types_).__name__}") from None


def told(x):
    """What an f-string of a graph holds for a value."""
    return x if graph() is None else checks.told(x)


def joined(*parts):
    """What an f-string of these parts is: a text, unless a part is a captured tensor."""
    parts = [checks.told(decided(each)) for each in parts] if graph() is not None else parts
    return methods.Joined(parts) if any(map(is_symbolic, parts)) else "".join(map(format, parts))


def has_key(x, key):
    """x.has_key(key), which dictionaries of graphs have."""
    return key in x if isinstance(x, dict) else x.has_key(key)


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
    if function is builtins.print and not keywords:
        return graph().show(methods.show, *map(seen, arguments))
    if isinstance(function, (types.BuiltinFunctionType, type)):
        arguments = checks.check(function, arguments, keywords, _cairn_line)
    if isinstance(function, types.BuiltinFunctionType) or function in _TYPES:
        given = _builtin(function, tuple(map(seen, arguments)))
        if given is not None:
            return given[0]
    elif isinstance(function, (types.FunctionType, types.MethodType, functools.partial)):
        made = converted(function)
        if made is not function:
            with graph().inside(function, arguments, keywords):
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
            return (condition(scalar),)
        return (core.cast(scalar, dtype=numpy.dtype(dtype)),)
    return None
