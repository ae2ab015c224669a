"""MultitypeFuncGraph, HyperMap and Map: functions chosen by types, and applied to nested tuples."""

from mindspore.common import dtype as mstype
from mindspore.common.sparse_tensor import COOTensor, CSRTensor, RowTensor
from mindspore.common.tensor import Tensor

from cairn.ms.core import prepared

_IS = {
    "Tensor": lambda x: isinstance(x, Tensor),
    "Bool": lambda x: isinstance(x, bool),
    "Int": lambda x: isinstance(x, int) and not isinstance(x, bool),
    "Float": lambda x: isinstance(x, float),
    "Number": lambda x: isinstance(x, (bool, int, float)),
    "String": lambda x: isinstance(x, str),
    "Tuple": lambda x: isinstance(x, tuple),
    "List": lambda x: isinstance(x, list),
    "Dictionary": lambda x: isinstance(x, dict),
    "None": lambda x: x is None,
    "Function": lambda x: callable(x) and not isinstance(x, Tensor),
    "TypeType": lambda x: isinstance(x, mstype.Type),
    "RowTensor": lambda x: isinstance(x, RowTensor),
    "CSRTensor": lambda x: isinstance(x, CSRTensor),
    "COOTensor": lambda x: isinstance(x, COOTensor),
}
_SAME = {"SparseTensor": "COOTensor", "IndexedSlices": "RowTensor", "Dict": "Dictionary", "Int64": "Int", "Int32": "Int", "Float32": "Float"}


def _name(given):
    if not isinstance(given, (str, mstype.Type, mstype.TensorType)):
        raise TypeError(f"For 'MultitypeFuncGraph', a type should be a str or a mindspore type, but got {given}.")
    name = str(given)
    return _SAME.get(name, name)


class MultitypeFuncGraph:
    """MultitypeFuncGraph(name): a function with one form for each list of types, which register() adds."""

    def __init__(self, name, read_value=False):
        if not isinstance(name, str):
            raise TypeError(f"For 'MultitypeFuncGraph', the 'name' should be str, but got {type(name).__name__}.")
        self.name, self.entries = name, []

    def register(self, *type_names):
        """Decorates the form for arguments of these types: "Tensor", "Number", "Function", ..."""
        names = [_name(each) for each in type_names]

        def add(function):
            self.entries = [entry for entry in self.entries if entry[0] != names] + [(names, function)]
            return function

        return add

    def select(self, arguments):
        """The form for the arguments."""
        for names, function in self.entries:
            if len(names) == len(arguments) and all(_IS[n](x) if n in _IS else False for n, x in zip(names, arguments)):
                return function
        given = ", ".join(type(each).__name__ for each in arguments)
        known = "; ".join(", ".join(names) for names, _ in self.entries)
        raise TypeError(f"For '{self.name}', no form takes ({given}); there are: {known}.")

    def __call__(self, *arguments):
        return prepared(self.select(arguments))(*arguments)

    def __repr__(self):
        return f"MultitypeFuncGraph_{self.name}"


def add_flags(fn=None, **flags):
    """Sets flags of a function or Cell; decorates without one."""

    def add(target):
        if hasattr(target, "add_flags"):
            return target.add_flags(**flags)
        target._func_graph_flags = {**getattr(target, "_func_graph_flags", {}), **flags}
        return target

    return add if fn is None else add(fn)


class Map:
    """Map(ops=None, reverse=False): applies a function to the elements of tuples, of one level."""

    _deep = False

    def __init__(self, ops=None, reverse=False):
        if ops is not None and not callable(ops):
            raise TypeError(f"For '{type(self).__name__}', 'ops' should be a function, but got {type(ops).__name__}.")
        self.ops, self.reverse = ops, reverse

    def __call__(self, *arguments):
        function, arguments = (arguments[0], arguments[1:]) if self.ops is None else (self.ops, arguments)
        return self._apply(function, arguments)

    def _apply(self, function, arguments):
        first = arguments[0] if arguments else None
        if isinstance(first, dict):
            return {key: self._element(function, [each[key] for each in arguments]) for key in first}
        if not isinstance(first, (tuple, list)):
            return prepared(function)(*arguments)
        lengths = {len(each) if isinstance(each, (tuple, list)) else None for each in arguments}
        if len(lengths) != 1:
            raise ValueError(
                f"For '{type(self).__name__}', all inputs should have one length, but got {sorted(map(str, lengths))}."
            )
        rows = list(zip(*arguments))
        made = [self._element(function, row) for row in (reversed(rows) if self.reverse else rows)]
        made = made[::-1] if self.reverse else made
        return made if isinstance(first, list) else tuple(made)

    def _element(self, function, row):
        return self._apply(function, row) if self._deep else prepared(function)(*row)


class HyperMap(Map):
    """HyperMap(ops=None, reverse=False): applies a function to the leaves of nested tuples."""

    _deep = True
