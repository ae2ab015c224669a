"""Parameters of distributions and bijectors: their kind, their shape and checks of their values."""

import numpy as np
from cairn.ms.numerics import random
from mindspore import Tensor
from mindspore.common import dtype as mstype
from mindspore.common.parameter import Parameter
from mindspore.ops import operations as P

exp, log, log1p, expm1, square, sqrt, floor = P.Exp(), P.Log(), P.Log1p(), P.Expm1(), P.Square(), P.Sqrt(), P.Floor()
erf, lgamma, digamma, igamma, sigmoid = P.Erf(), P.Lgamma(), P.Digamma(), P.Igamma(), P.Sigmoid()
select, cast, absolute = P.Select(), P.Cast(), P.Abs()

FLOATS = (mstype.float16, mstype.float32, mstype.float64)


def softplus(x):
    """log(1 + exp(x)) without overflow."""
    return P.Maximum()(x, 0) + log1p(exp(-absolute(x)))


def like(x, value):
    """A tensor of x's shape and kind that holds the value."""
    return P.OnesLike()(x) * value


def drawing(kind, seed):
    """A random primitive for a distribution's seed, which goes on with each draw."""
    return random.of_calls(kind(seed=seed), seed)


def where(condition, x, y):
    """select, with numbers and shapes that broadcast."""
    x, y = (each if isinstance(each, Tensor) else Tensor(each, mstype.float32) for each in (x, y))
    shape = np.broadcast_shapes(condition.shape, x.shape, y.shape)
    kind = x.dtype if x.ndim or not y.ndim else y.dtype
    condition = P.BroadcastTo(shape)(cast(condition, mstype.int32)) != 0 if condition.shape != shape else condition
    return select(condition, *(P.BroadcastTo(shape)(cast(each, kind)) for each in (x, y)))


def check_name(name, owner):
    if not isinstance(name, str):
        raise TypeError(f"For '{owner}', the name needs to be a str, not {type(name).__name__}")


def check_seed(seed, owner):
    if seed is None:
        return 0
    if isinstance(seed, bool) or not isinstance(seed, int):
        raise TypeError(f"For '{owner}', the seed needs to be an int, not {type(seed).__name__}")
    if seed < 0:
        raise ValueError(f"For '{owner}', the seed needs to be at least 0, not {seed}")
    return seed


def check_dtype(dtype, allowed, owner):
    if dtype not in allowed:
        raise TypeError(f"For '{owner}', the dtype needs to be one of {', '.join(map(str, allowed))}, not {dtype}")


def common_kind(values, wanted, owner):
    """The one kind of the given arrays: the wanted one where there are none, float32 for integers and doubles."""
    kinds = {}
    for name, value in values.items():
        if isinstance(value, (Tensor, np.ndarray)):
            kind = value.dtype if isinstance(value, Tensor) else mstype.pytype_to_dtype(value.dtype)
            kinds[name] = kind
    if len(set(map(str, kinds.values()))) > 1:
        told = ", ".join(f"{name} {kind}" for name, kind in kinds.items())
        raise TypeError(f"For '{owner}', the parameters need one dtype, got {told}")
    found = next(iter(kinds.values()), None)
    if found is None:
        return wanted if wanted in FLOATS else mstype.float32
    return found if found in (mstype.float16, mstype.float32) else mstype.float32


def as_tensor(value, kind):
    """The value as a tensor of the kind; Parameters stay what they are."""
    if value is None or isinstance(value, Parameter):
        return value
    if isinstance(value, Tensor):
        return value if value.dtype == kind else cast(value, kind)
    return Tensor(value, kind)


def shape_of(values, owner):
    """The shape to which the values broadcast, None where one is missing."""
    shapes = []
    for value in values:
        if value is None:
            return None
        shapes.append(tuple(value.shape) if isinstance(value, Tensor) else np.shape(value))
    try:
        return np.broadcast_shapes(*shapes)
    except ValueError:
        raise ValueError(f"For '{owner}', the parameters' shapes do not broadcast: {shapes}") from None


def check_values(value, name, rule, told):
    """ValueError unless the rule holds for all elements of a value that is known."""
    if value is None:
        return
    array = value.asnumpy() if isinstance(value, Tensor) else np.asarray(value)
    if not np.all(rule(array)):
        raise ValueError(f"{name} needs to be {told}, got {array.tolist()}")


def positive(value, name):
    check_values(value, name, lambda x: x > 0, "greater than 0")


def probability(value, name="probs"):
    check_values(value, name, lambda x: (x > 0) & (x < 1), "between 0 and 1")
