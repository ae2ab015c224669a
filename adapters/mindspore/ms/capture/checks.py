"""What graphs say of calls of Python's functions and methods that they do not take, in MindSpore's words."""

import builtins
import linecache
import sys

from cairn.ms.refusal import Forbidden
from cairn.ms.tensor import Tensor

from .conditions import place_of
from .graph import is_symbolic


def check(function, arguments, keywords, line):
    """Raises what a graph says of the call; returns the arguments as the function is to get them."""
    known = _FUNCTIONS.get(function) if getattr(function, "__hash__", None) else None
    if known is not None:
        known(*arguments, **keywords)
        return arguments
    if function is divmod and any(map(is_symbolic, arguments)):
        place = place_of(line)
        text = linecache.getline(place.rsplit(":", 1)[0], line).strip()
        raise NameError(f"The builtin function 'divmod' of python is not supported in graph mode.\nIn file {place}\n    {text}")
    if function is str:
        if any(map(is_symbolic, arguments)):
            raise TypeError("str() does not support non-constant input.")
        return tuple(map(told, arguments))
    owner, name = getattr(function, "__self__", None), getattr(function, "__name__", "")
    if type(owner) is list and (name in _OF_LISTS):
        _OF_LISTS[name](owner, *arguments)
    if type(owner) is str and name == "format":
        if any(map(is_symbolic, arguments)):
            raise ValueError("str.format not support to input a variable.")
        return tuple(map(told, arguments))
    return arguments


def told(x):
    """What a text of a graph holds for a value: a tensor that is constant is told with its type."""
    if not isinstance(x, Tensor) or x._array is None:
        return x
    return f"Tensor(shape={list(x.shape)}, dtype={x.dtype}, value={x.asnumpy()})"


def _check_zip(*rows):
    if not rows:
        raise ValueError("The zip operator must have at least 1 argument, but the size of arguments is 0.")


def _check_map(*given):
    rows = given[1:]
    if not rows:
        raise ValueError("The Map operator must have at least two arguments.")
    if any(isinstance(each, (int, float, str)) for each in rows):
        raise TypeError(f"Map can only be applied to list, tuple, but got {', '.join(type(each).__name__ for each in rows)}.")
    kinds = [list if isinstance(each, list) else tuple if isinstance(each, tuple) else None for each in rows]
    if any(kinds) and len(set(kinds)) > 1:
        raise TypeError("The types of arguments in Map must be consistent, but they are not.")
    if all(kinds) and len(set(map(len, rows))) > 1:
        raise ValueError(f"For 'Map', the length of {kinds[0].__name__}s must be the same.")


def _check_enumerate(rows=None, start=0):
    if rows is None or isinstance(rows, (int, float)):
        raise TypeError(f"For 'enumerate', the 'first input' should be tuple or list or tensor, but got {type(rows).__name__}.")
    if not isinstance(start, (int, Tensor)):
        raise TypeError(f"For 'enumerate', the 'start' should be a const int number, but got {type(start).__name__}.")


def _check_range(*given):
    if not 1 <= len(given) <= 3:
        raise RuntimeError(f"For 'make_range', the input size should within [1, 3] but got{len(given)}")
    for i, each in enumerate(given):
        if isinstance(each, float):
            raise TypeError(f"For 'make_range', the {i}th input should be a int scalar but got AbstractScalar of {each}.")
    if not all(type(each) is int for each in given):
        return
    step = given[2] if len(given) == 3 else 1
    if step == 0:
        raise RuntimeError("For 'range', the argument 'step' could not be 0.")
    values = range(*given)
    if values and not -sys.maxsize - 1 <= values[-1] + step <= sys.maxsize:
        raise ValueError("Integer overflow error occurred when traversing the range. Please check the inputs of range.")


def _check_open(*given, **named):
    raise Forbidden("The builtin function 'open' of python is not supported in graph mode")


def _integer(index):
    if isinstance(index, float):
        raise TypeError(f"Integer argument expected, but got FP32Imm type value: {index:.6f}")


def _check_pop(owner, index=-1):
    _integer(index)
    if isinstance(index, int) and not -len(owner) <= index < len(owner):
        raise IndexError("The pop index out of range.")


def _check_insert(owner, index=0, *rest):
    _integer(index)


def _check_count(owner, value):
    if is_symbolic(value):
        raise TypeError("The list count not support variable scene now. The count data is Tensor type.")
    if any(map(is_symbolic, owner)):
        raise TypeError("The list count not support variable scene now. Tensor type data exists in the list.")


def _refused(function):
    def refuse(*given, **named):
        raise TypeError(f"'{function}' is not supported both in JIT Fallback and graph mode.")

    return refuse


_FUNCTIONS = {zip: _check_zip, map: _check_map, enumerate: _check_enumerate, range: _check_range, builtins.open: _check_open}
_FUNCTIONS.update((each, _refused(each)) for each in (builtins.input, builtins.compile))
_OF_LISTS = {"pop": _check_pop, "insert": _check_insert, "count": _check_count}
