"""Checks of arguments: `Validator` and `Rel`, the private names that scripts import."""

import enum
import functools
import inspect
import re

import numpy as np


class Rel(enum.Enum):
    """Relations of a number to others."""

    EQ, NE, LT, LE, GT, GE = 1, 2, 3, 4, 5, 6
    INC_NEITHER, INC_LEFT, INC_RIGHT, INC_BOTH = 7, 8, 9, 10
    IN, NOT_IN = 11, 12


_RELATIONS = {
    Rel.EQ: (lambda x, y: x == y, "equal to {}"),
    Rel.NE: (lambda x, y: x != y, "not equal to {}"),
    Rel.LT: (lambda x, y: x < y, "less than {}"),
    Rel.LE: (lambda x, y: x <= y, "less than or equal to {}"),
    Rel.GT: (lambda x, y: x > y, "greater than {}"),
    Rel.GE: (lambda x, y: x >= y, "greater than or equal to {}"),
    Rel.INC_NEITHER: (lambda x, low, high: low < x < high, "in range of ({}, {})"),
    Rel.INC_LEFT: (lambda x, low, high: low <= x < high, "in range of [{}, {})"),
    Rel.INC_RIGHT: (lambda x, low, high: low < x <= high, "in range of ({}, {}]"),
    Rel.INC_BOTH: (lambda x, low, high: low <= x <= high, "in range of [{}, {}]"),
    Rel.IN: (lambda x, y: x in y, "in {}"),
    Rel.NOT_IN: (lambda x, y: x not in y, "not in {}"),
}


def _named(name, owner):
    who = f"For '{owner}', the " if owner else "The "
    return f"{who}'{name}'" if name else f"{who}argument"


def _is_int(x):
    return isinstance(x, (int, np.integer)) and not isinstance(x, (bool, np.bool_))


def _is_number(x):
    return _is_int(x) or isinstance(x, (float, np.floating))


def _int(x, name, owner):
    if not _is_int(x):
        raise TypeError(f"{_named(name, owner)} must be int, but got '{x}' of type '{type(x).__name__}'.")
    return int(x)


def _float(x, name, owner):
    if not _is_number(x):
        raise TypeError(f"{_named(name, owner)} must be float, but got '{x}' of type '{type(x).__name__}'.")
    return x


class Validator:
    """Each check returns the value, or raises TypeError or ValueError with the names of the argument and its class."""

    @staticmethod
    def check(arg_name, arg_value, value_name, value, rel=Rel.EQ, prim_name=None, excp_cls=ValueError):
        holds, words = _RELATIONS[rel]
        if not holds(arg_value, value):
            text = words.format(f"'{value_name}'" if value_name else value)
            raise excp_cls(f"{_named(arg_name, prim_name)} must be {text}: {value}, but got {arg_value}.")
        return arg_value

    @staticmethod
    def check_number(arg_value, value, rel, arg_name=None, prim_name=None):
        _float(arg_value, arg_name, prim_name)
        holds, words = _RELATIONS[rel]
        if not holds(arg_value, value):
            raise ValueError(f"{_named(arg_name, prim_name)} must be {words.format(value)}, but got {arg_value}.")
        return arg_value

    @staticmethod
    def check_int(arg_value, value, rel, arg_name=None, prim_name=None):
        return Validator.check_number(_int(arg_value, arg_name, prim_name), value, rel, arg_name, prim_name)

    @staticmethod
    def check_is_int(arg_value, arg_name=None, prim_name=None):
        return _int(arg_value, arg_name, prim_name)

    @staticmethod
    def check_is_float(arg_value, arg_name=None, prim_name=None):
        if not isinstance(arg_value, (float, np.floating)):
            raise TypeError(f"{_named(arg_name, prim_name)} must be float, but got '{type(arg_value).__name__}'.")
        return arg_value

    @staticmethod
    def check_positive_int(arg_value, arg_name=None, prim_name=None):
        return Validator.check_int(arg_value, 0, Rel.GT, arg_name, prim_name)

    @staticmethod
    def check_non_negative_int(arg_value, arg_name=None, prim_name=None):
        return Validator.check_int(arg_value, 0, Rel.GE, arg_name, prim_name)

    @staticmethod
    def check_positive_float(arg_value, arg_name=None, prim_name=None):
        Validator.check_is_float(arg_value, arg_name, prim_name)
        return Validator.check_number(arg_value, 0, Rel.GT, arg_name, prim_name)

    @staticmethod
    def check_non_negative_float(arg_value, arg_name=None, prim_name=None):
        Validator.check_is_float(arg_value, arg_name, prim_name)
        return Validator.check_number(arg_value, 0, Rel.GE, arg_name, prim_name)

    @staticmethod
    def check_number_range(arg_value, lower_limit, upper_limit, rel, arg_name=None, prim_name=None):
        if isinstance(arg_value, str) and arg_name in _RELATIONS:  # 1.0 has the name first
            arg_name, arg_value, lower_limit, upper_limit, rel = arg_value, lower_limit, upper_limit, rel, arg_name
        _float(arg_value, arg_name, prim_name)
        holds, words = _RELATIONS[rel]
        if not holds(arg_value, lower_limit, upper_limit):
            text = words.format(lower_limit, upper_limit)
            raise ValueError(f"{_named(arg_name, prim_name)} must be {text}, but got {arg_value}.")
        return arg_value

    @staticmethod
    def check_int_range(arg_value, lower_limit, upper_limit, rel, arg_name=None, prim_name=None):
        _int(arg_value, arg_name, prim_name)
        return Validator.check_number_range(arg_value, lower_limit, upper_limit, rel, arg_name, prim_name)

    @staticmethod
    def check_float_range(arg_value, lower_limit, upper_limit, rel, arg_name=None, prim_name=None):
        Validator.check_is_float(arg_value, arg_name, prim_name)
        return Validator.check_number_range(arg_value, lower_limit, upper_limit, rel, arg_name, prim_name)

    check_integer = staticmethod(
        lambda arg_name, arg_value, value, rel, prim_name=None: Validator.check_int(
            arg_value, value, rel, arg_name, prim_name
        )
    )

    @staticmethod
    def check_bool(arg_value, arg_name=None, prim_name=None):
        if not isinstance(arg_value, (bool, np.bool_)):
            raise TypeError(
                f"{_named(arg_name, prim_name)} must be bool, but got '{arg_value}' of type '{type(arg_value).__name__}'."
            )
        return arg_value

    @staticmethod
    def check_string(arg_value, valid_values, arg_name=None, prim_name=None):
        if not isinstance(arg_value, str) or arg_value not in valid_values:
            raise ValueError(
                f"{_named(arg_name, prim_name)} must be one of {list(valid_values)}, but got {arg_value!r}."
            )
        return arg_value

    @staticmethod
    def check_value_type(arg_name, arg_value, valid_types, prim_name=None):
        types = valid_types if isinstance(valid_types, (list, tuple)) else [valid_types]
        wrong_bool = isinstance(arg_value, bool) and bool not in types
        if wrong_bool or not isinstance(arg_value, tuple(types)):
            names = ", ".join(each.__name__ for each in types)
            raise TypeError(
                f"{_named(arg_name, prim_name)} must be one of {names}, but got '{type(arg_value).__name__}'."
            )
        return arg_value

    @staticmethod
    def check_axis_in_range(axis, ndim):
        if type(axis) is int and -ndim <= axis < ndim:
            return axis % ndim
        axes = [axis] if _is_int(axis) else list(axis)
        for each in axes:
            if not -ndim <= each < ndim:
                raise ValueError(f"axis must be in range of [{-ndim}, {ndim}), but got {each}.")
        counted = tuple(each % ndim for each in axes)
        return counted[0] if _is_int(axis) else counted

    @staticmethod
    def check_equal_int(arg_value, value, arg_name=None, prim_name=None):
        return Validator.check_int(arg_value, value, Rel.EQ, arg_name, prim_name)


def sizes(value, count, name, owner, allow_zero=False, batched=False):
    """A size for each of `count` axes: one int for all, or a tuple of them (of 1, 1, ... too where `batched`)."""
    least, words = (0, "non-negative") if allow_zero else (1, "positive")
    if _is_int(value):
        value = (int(value),) * count
    elif not isinstance(value, (tuple, list)):
        raise TypeError(f"{_named(name, owner)} must be int or tuple, but got '{type(value).__name__}'.")
    if batched and len(value) == count + 2:
        value = value[2:]
    if len(value) == 1:
        value = tuple(value) * count
    if len(value) != count:
        raise ValueError(f"{_named(name, owner)} must be an int or a tuple of {count} ints, but got {tuple(value)}.")
    for each in value:
        if not _is_int(each) or each < least:
            raise ValueError(f"{_named(name, owner)} must be {words} ints, but got {tuple(value)}.")
    return tuple(int(each) for each in value)


def check_int(arg_value, value=None, rel=None, arg_name=None, prim_name=None):
    """An int, which level 0.5 checks by its type alone."""
    if rel is None:
        return _int(arg_value, arg_name, prim_name)
    return Validator.check_int(arg_value, value, rel, arg_name, prim_name)


def check_input_format(input_param):
    """The layout of images, as level 0.5 asks for it."""
    return Validator.check_string(input_param, ("NCHW",), "input_format")


def twice(x):
    """A pair of ints: of an int, or a tuple or list of two."""
    if _is_int(x):
        return (x, x)
    if isinstance(x, (tuple, list)) and len(x) == 2 and all(map(_is_int, x)):
        return x
    raise TypeError(f"The argument must be an int or two ints, but got {x!r}.")


def _check_str_by_regular(target, reg=r"^\w+[0-9a-zA-Z_\.]*$", flag=re.ASCII, prim_name=None):
    """A name of letters, digits, _ and dots, which does not begin with a dot."""
    if not re.match(reg, target, flag):
        raise ValueError(f"For '{prim_name}', the value '{target}' is illegal: it does not match {reg!r}.")
    return True


def args_type_check(*types, **named_types):
    """A decorator of functions whose arguments must be of the types, each a type or a tuple of them."""

    def decorate(function):
        signature = inspect.signature(function)
        wanted = signature.bind_partial(*types, **named_types).arguments

        @functools.wraps(function)
        def checked(*args, **kwargs):
            for name, value in signature.bind(*args, **kwargs).arguments.items():
                if value is not None and name in wanted and not isinstance(value, wanted[name]):
                    raise TypeError(f"The argument '{name}' must be {wanted[name]}, but got {type(value)}.")
            return function(*args, **kwargs)

        return checked

    return decorate


check_bool, check_int_positive = Validator.check_bool, Validator.check_positive_int
check_string, check_value_type = Validator.check_string, Validator.check_value_type
check_positive_int, check_non_negative_int = Validator.check_positive_int, Validator.check_non_negative_int
check_number, check_int_range = Validator.check_number, Validator.check_int_range
INC_LEFT, INC_RIGHT, INC_BOTH, INC_NEITHER = Rel.INC_LEFT, Rel.INC_RIGHT, Rel.INC_BOTH, Rel.INC_NEITHER
EQ, NE, LT, LE, GT, GE = Rel.EQ, Rel.NE, Rel.LT, Rel.LE, Rel.GT, Rel.GE
