"""The form of primitives: attributes at construction, tensors at the call, one function that computes."""

import functools
import inspect
import re

import cairn
import numpy as np
from cairn.ms import core
from cairn.ms import promote as promotion
from cairn.ms.numerics import random
from cairn.ms.numerics.basic import cast, nptype
from cairn.ms.primitive import Primitive
from cairn.ms.tensor import wrap
from mindspore.common.parameter import Parameter
from mindspore.common.tensor import Tensor

KINDS = {"float": "fc", "real": "f", "number": "fiuc", "int": "iu", "bool": "b", "any": "fiubc", "signed": "fic"}


_PLAIN = (TypeError, ValueError, IndexError)


class Operator(Primitive):
    """A primitive of ours: `compute` makes its results from tensors."""

    arguments = None  # what the inputs are called where that is not what compute() calls them
    foreign = False  # whether compute() runs code of others, whose errors keep their words

    def __call__(self, *inputs, **named):
        try:
            return self.compute(*inputs, *self._placed(len(inputs), named)) if named else self.compute(*inputs)
        except cairn.Error as error:
            if "assert failed" in str(error):
                raise
            raise _classed(self.name, error) from error
        except (TypeError, ValueError, IndexError) as error:
            if not self.foreign and type(error) in _PLAIN and len(error.args) == 1 and self.name not in str(error):
                error.args = (f"For '{self.name}', {error}",)
            raise

    def compute(self, *inputs):
        raise NotImplementedError(self.name)

    def _placed(self, given, named):
        """Inputs given by name, in the order of those that were not given by position."""
        order = self.arguments or tuple(inspect.signature(self.compute).parameters)
        places = sorted((order.index(each) if each in order else -1, each) for each in named)
        if [place for place, _ in places] != list(range(given, given + len(named))):
            raise TypeError(f"For '{self.name}', the inputs are {', '.join(order)}, but got {given} and {', '.join(named)}.")
        return [named[each] for _, each in places]


def _classed(name, error):
    text = str(error)
    wrong_type = re.search(r"element type|must be of|takes |must be (floats|numbers|bool|[fiu]\d+), found", text)
    return (TypeError if wrong_type else ValueError)(f"For '{name}', {text}")


def tensor(x, name, kinds=None, argument="x"):
    """x, which must be a tensor of one of the kinds of numbers."""
    if not isinstance(x, Tensor):
        raise TypeError(f"For '{name}', the input '{argument}' must be a Tensor, but got {type(x).__name__}.")
    if kinds is not None and promotion.nptype(x).kind not in KINDS[kinds]:
        raise TypeError(f"For '{name}', the input '{argument}' must be a Tensor of {kinds}, but got {x.dtype}.")
    return x


def pair(x, y, name):
    """Two operands of one dtype, by MindSpore's promotion; at least one is a tensor."""
    if not isinstance(x, Tensor) and not isinstance(y, Tensor):
        if not isinstance(x, (int, float, bool)) or not isinstance(y, (int, float, bool)):
            raise TypeError(
                f"For '{name}', the inputs must be Tensors or numbers, but got {type(x).__name__} and {type(y).__name__}."
            )
        x = Tensor(x)
    for each in (x, y):
        if not isinstance(each, (Tensor, int, float, bool)):
            raise TypeError(f"For '{name}', the inputs must be Tensors or numbers, but got {type(each).__name__}.")
    return promotion.promote(x, y)


REQUIRED = inspect.Parameter.empty


def primitive(name, compute, doc, prepare=None, /, **attributes):
    """A class of primitives: attributes are its arguments in order with their defaults; `prepare(self)` checks and derives."""
    names, needed = list(attributes), list(attributes.values()).count(REQUIRED)
    signature = inspect.Signature(
        [inspect.Parameter(each, inspect.Parameter.POSITIONAL_OR_KEYWORD, default=attributes[each]) for each in names]
    )

    def __init__(self, *args, **kwargs):
        Primitive.__init__(self, name)
        if kwargs or not needed <= len(args) <= len(names):
            kwargs = signature.bind(*args, **kwargs).arguments
        given = {**attributes, **dict(zip(names, args)), **kwargs}
        for key, value in given.items():
            if isinstance(attributes[key], bool) and not isinstance(value, bool):
                raise TypeError(f"For '{name}', the type of '{key}' must be bool, but got {type(value).__name__}.")
            if key == "reduction" and name.endswith(("Loss", "LossV2", "Entropy")) and value not in ("none", "mean", "sum", "batchmean"):
                raise ValueError(f"For '{name}', the 'reduction' must be one of none, mean and sum, but got {value}.")
            self.add_prim_attr(key, value)
        if prepare is not None:
            prepare(self)

    seeds = [each for each in names if each in ("seed", "seed2", "Seed0", "Seed1")]
    members = {"__init__": __init__, "compute": _seeded(compute, seeds) if seeds else compute, "__doc__": doc, "__signature__": signature}
    return type(name, (Operator,), members)


def _seeded(compute, seeds):
    """compute, which draws from a stream of the primitive's own where one of its seeds is given."""

    @functools.wraps(compute)
    def drawn(self, *inputs, **named):
        given = [getattr(self, each) for each in seeds]
        with random.stream(self, *([] if given[0] == -1 else given)):
            return compute(self, *inputs, **named)

    return drawn


def unary(name, function, kinds="float", doc=""):
    """A primitive of one tensor without attributes."""

    def compute(self, x):
        return function(tensor(x, name, kinds))

    return primitive(name, compute, doc or f"{name} of each element.")


def binary(name, function, kinds="number", doc=""):
    """A primitive of two operands that are promoted and broadcast."""

    def compute(self, x, y):
        x, y = pair(x, y, name)
        if nptype(x).kind not in KINDS[kinds]:
            raise TypeError(f"For '{name}', the inputs must be Tensors of {kinds}, but got {x.dtype}.")
        return function(x, y)

    return primitive(name, compute, doc or f"{name} of two tensors, element by element.")


def host(name, function, doc="", prepare=None, **attributes):
    """A primitive without a gradient that `function(self, *arrays)` computes in NumPy, where no row has its rule."""

    def compute(self, *inputs):
        made = function(self, *(each.asnumpy() if isinstance(each, Tensor) else each for each in inputs))
        return tuple(map(Tensor, made)) if isinstance(made, tuple) else Tensor(made)

    return primitive(name, compute, doc, prepare, **attributes)


def static(value, name, argument):
    """Python's numbers out of a tuple, a number or a constant tensor."""
    if isinstance(value, Tensor):
        value = value.asnumpy().tolist()
    if isinstance(value, np.ndarray):
        value = value.tolist()
    if isinstance(value, list):
        value = tuple(value)
    if not isinstance(value, (tuple, int, np.integer)):
        raise TypeError(f"For '{name}', '{argument}' must be int or tuple, but got {type(value).__name__}.")
    return value


def parameter(x, name, argument="variable"):
    if not isinstance(x, Parameter):
        raise TypeError(f"For '{name}', '{argument}' must be a Parameter, but got {type(x).__name__}.")
    return x


def written(variable, value):
    """Gives the Parameter its elements; returns it, or where nobody records a Tensor of its memory."""
    core.assign(variable, value)
    return variable if core.here.recorder is not None else wrap(variable.asnumpy())


def same_type(x, like):
    """A tensor or number as a tensor of the dtype of another."""
    return cast(x, nptype(like)) if isinstance(x, Tensor) else np.asarray(x, nptype(like))
