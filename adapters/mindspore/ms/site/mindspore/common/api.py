"""ms_function and what scripts use of the compiler. Functions are captured where the mode is GRAPH_MODE, or by ms_function."""

import functools

from cairn.ms import core, gradient, modes
from cairn.ms.tensor import Tensor, wrap


def ms_function(fn=None, obj=None, input_signature=None, hash_args=None, jit_config=None):
    """Decorates a function, which is captured and compiled."""

    signature = input_signature if isinstance(input_signature, (tuple, list)) else () if input_signature is None else (input_signature,)

    def make(function):
        @functools.wraps(function)
        def staged(*arguments, **keywords):
            if signature:
                method = arguments and hasattr(type(arguments[0]), function.__name__)  # whose first argument is its object
                _check_signature(signature, arguments[1:] if method else arguments)
            if core.graph_entry is None or core.here.recorder is not None:
                with modes.as_graph():
                    return function(*arguments, **keywords)
            return core.graph_entry(function, arguments, keywords)

        staged.captured = function
        return staged

    return make(fn) if fn is not None else make


def _check_signature(signature, given):
    """Tensors, and tuples of them, have the types and sizes that the signature says; a size of -1 or None is any."""
    if len(signature) != len(given):
        raise ValueError(f"The input args is incompatible with the args in `input_signature`: {len(signature)} were said, but got {len(given)}.")
    for said, each in zip(signature, given):
        if isinstance(said, (tuple, list)):
            _check_signature(said, each)
        elif hasattr(said, "dtype"):
            sizes = [s in (-1, None) or s == size for s, size in zip(said.shape, each.shape)]
            if said.dtype != each.dtype or len(said.shape) != len(each.shape) or not all(sizes):
                raise ValueError(f"The input args is incompatible with the args in `input_signature`: {tuple(said.shape)} of {said.dtype} was said, "
                                 f"but got {each.shape} of {each.dtype}.")


jit = ms_function


def ms_class(cls):
    """Decorates a class whose attributes and methods are used inside captured functions."""
    if not isinstance(cls, type):
        raise TypeError(f"Decorator ms_class can only be used for class type, but got {cls}.")
    if hasattr(cls, "cells_and_names"):
        cls.__call__ = _no_ms_class
    cls.__ms_class__ = True
    return cls


def _no_ms_class(self, *inputs, **kwargs):
    raise TypeError(f"Decorator ms_class is used for user-defined classes and cannot be used for nn.Cell: {type(self).__name__}.")


jit_class = ms_class


class JitConfig:
    """JitConfig(jit_level="O1", **kwargs): kept; there is one way to compile."""

    def __init__(self, jit_level="O1", task_sink=True, **kwargs):
        self.jit_config_dict = {"jit_level": jit_level, "task_sink": str(int(task_sink)), **kwargs}


def mutable(input_data, dynamic_len=False):
    """The data as they are: values of arguments are never compiled in, except those that shapes depend on."""
    if not isinstance(input_data, (Tensor, int, float, tuple, list, dict)) or isinstance(input_data, bool):
        raise TypeError(f"For 'mutable', the 'input_data' should be one of (int, float, Tensor, tuple, list, dict), but got {input_data}.")
    if not isinstance(dynamic_len, bool):
        raise TypeError(f"For 'mutable', the second input should be bool, but got {dynamic_len}.")
    if dynamic_len and not isinstance(input_data, (tuple, list)):
        raise TypeError(f"For 'mutable', a dynamic length is for a tuple or list, but got {input_data}.")
    return _mutable(input_data)


def _mutable(data, inside=False):
    if isinstance(data, Tensor):
        if data._array is None or hasattr(data, "requires_grad") or not (data.const_arg or inside):
            return data
        made = wrap(data.asnumpy())
        made.is_mutable = inside
        return made
    if type(data) in (tuple, list):
        return type(data)([_mutable(each, True) for each in data])
    return {key: _mutable(each, True) for key, each in data.items()} if type(data) is dict else data


_phases = {}


def _phase(phase, obj, key):
    """A name of its own for each compiled function."""
    return f"{phase}.{_phases.setdefault((id(obj), key), len(_phases))}"


class _CellGraphExecutor:
    """The compile entry that official scripts import."""

    def compile(self, obj, *args, phase="predict", **keywords):
        parts = [part for each in args if isinstance(each, (tuple, list, dict)) for part in gradient.tensors_of(each)]
        fixed = tuple([part for part in parts if not part.is_mutable])  # constants: other tensors make another phase
        return _phase(phase, obj, (obj.compile(*args), fixed)), True

    def __call__(self, obj, *args, phase="predict"):
        return obj(*args)

    def sync(self):
        """Nothing is under way: operators have run when their call returns."""

    def is_first_cell(self):
        return core.here.recorder is None

    def _get_shard_strategy(self, net):
        """How each operator is split over devices: none is."""
        return {}

    _get_strategy = _get_allreduce_fusion = _get_shard_strategy

    def set_grad_flag(self, flag):
        """Gradients are recorded where they are asked for."""


class _MindsporeFunctionExecutor:
    """The compile entry of functions."""

    def __init__(self, fn, ms_create_time, input_signature=None, process_obj=None, jit_config=None):
        self.fn = getattr(fn, "__wrapped__", fn)

    def compile(self, args_list, method_name):
        return _phase(method_name, self.fn, core.graph_entry.compile(self.fn, args_list))

    def __call__(self, *args, **kwargs):
        return core.graph_entry(self.fn, args, kwargs)


_PyNativeExecutor = _CellGraphExecutor
_executor = _cell_graph_executor = _pynative_executor = _CellGraphExecutor()
