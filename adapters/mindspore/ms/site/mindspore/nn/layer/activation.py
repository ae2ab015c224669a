"""Activations."""

import numpy as np
from cairn.ms import core
from cairn.ms.numerics import basic
from mindspore._checkparam import Validator
from mindspore.common.initializer import initializer
from mindspore.common.parameter import Parameter
from mindspore.common.tensor import Tensor
from mindspore.nn.cell import Cell
from mindspore.ops import operations as P


def _of_primitive(name, make, doc, **arguments):
    """A Cell of one primitive; arguments are the constructor's, with defaults."""
    names = list(arguments)

    def __init__(self, *args, **kwargs):
        Cell.__init__(self)
        if len(args) > len(names) or set(kwargs) - set(names):
            raise TypeError(f"{name}.__init__() takes the arguments {names}, but got {args} and {kwargs}.")
        given = {**arguments, **dict(zip(names, args)), **kwargs}
        for key, value in given.items():
            setattr(self, key, value)
        self.apply_ = make(**given)

    def construct(self, x):
        return self.apply_(x)

    return type(name, (Cell,), {"__init__": __init__, "construct": construct, "__doc__": doc, "__module__": __name__})


ReLU = _of_primitive("ReLU", P.ReLU, "max(0, x)")
ReLU6 = _of_primitive("ReLU6", P.ReLU6, "min(max(0, x), 6)")
Sigmoid = _of_primitive("Sigmoid", P.Sigmoid, "1 / (1 + exp(-x))")
Tanh = _of_primitive("Tanh", P.Tanh, "Hyperbolic tangent.")
HSwish = _of_primitive("HSwish", P.HSwish, "x * relu6(x + 3) / 6")
HSigmoid = _of_primitive("HSigmoid", P.HSigmoid, "relu6(x + 3) / 6")
FastGelu = _of_primitive("FastGelu", P.FastGeLU, "x * sigmoid(1.702 x)")
Mish = _of_primitive("Mish", P.Mish, "x * tanh(softplus(x))")
SeLU = _of_primitive("SeLU", P.SeLU, "Scaled exponential linear unit.")
SiLU = _of_primitive("SiLU", P.SiLU, "x * sigmoid(x)")
Softsign = _of_primitive("Softsign", P.Softsign, "x / (1 + |x|)")
ELU = _of_primitive("ELU", lambda alpha: P.Elu(alpha), "x above 0, else alpha * (exp(x) - 1)", alpha=1.0)
CELU = _of_primitive("CELU", lambda alpha: P.CeLU(alpha), "max(0, x) + min(0, alpha * (exp(x / alpha) - 1))", alpha=1.0)
HShrink = _of_primitive("HShrink", lambda lambd: P.HShrink(lambd), "x, 0 where |x| <= lambd", lambd=0.5)
SoftShrink = _of_primitive("SoftShrink", lambda lambd: P.SoftShrink(lambd), "x moved by lambd towards 0", lambd=0.5)
LogSigmoid = _of_primitive("LogSigmoid", lambda: basic.log_sigmoid, "log(sigmoid(x))")
Softmin = _of_primitive("Softmin", lambda axis: _Softmin(axis), "Softmax of -x.", axis=-1)


def _hardtanh(min_val, max_val):
    for name, value in (("min_val", min_val), ("max_val", max_val)):
        Validator.check_value_type(name, value, [float, int], "Hardtanh")
    if min_val > max_val:
        raise ValueError(f"For 'Hardtanh', the 'min_val' must not be above 'max_val', but got {min_val} and {max_val}.")
    return lambda x: core.clip(x, low=float(min_val), high=float(max_val))


Hardtanh = _of_primitive("Hardtanh", _hardtanh, "x inside of bounds.", min_val=-1.0, max_val=1.0)
Tanhshrink = _of_primitive("Tanhshrink", lambda: lambda x: core.sub(x, core.tanh(x)), "x - tanh(x)")


class _Softmin:
    def __init__(self, axis):
        self.softmax = P.Softmax(axis)

    def __call__(self, x):
        return self.softmax(core.neg(x))


def _checked_axis(name, primitive):
    def make(axis):
        Validator.check_value_type("axis", axis, [int, tuple], name)
        return primitive(axis)

    return _of_primitive(name, make, f"{name} along the axis.", axis=-1)


Softmax, LogSoftmax = _checked_axis("Softmax", P.Softmax), _checked_axis("LogSoftmax", P.LogSoftmax)


class LeakyReLU(Cell):
    """x above 0, else alpha * x."""

    def __init__(self, alpha=0.2):
        super().__init__()
        Validator.check_value_type("alpha", alpha, [float, int], "LeakyReLU")
        self.alpha = float(alpha)

    def construct(self, x):
        return core.leaky_relu(x, alpha=self.alpha)


class GELU(Cell):
    """x * P(normal < x), by tanh when approximate."""

    def __init__(self, approximate=True):
        super().__init__()
        self.approximate = Validator.check_bool(approximate, "approximate", "GELU")

    def construct(self, x):
        return core.gelu(x, approximate=self.approximate)


class PReLU(Cell):
    """x above 0, else w * x; w is learned, one for all or one for each channel."""

    def __init__(self, channel=1, w=0.25):
        super().__init__()
        Validator.check_positive_int(channel, "channel", "PReLU")
        if isinstance(w, (float, np.floating)):
            w = Tensor(np.full((channel,), w, np.float32))
        elif isinstance(w, list):
            w = Tensor(np.array(w, np.float32))
        elif not isinstance(w, Tensor):
            raise TypeError(f"For 'PReLU', the 'w' must be float, list or Tensor, but got {type(w).__name__}.")
        if tuple(w.shape) != (channel,):
            raise ValueError(f"For 'PReLU', the 'w' must have {channel} elements, but got shape {tuple(w.shape)}.")
        self.w = Parameter(initializer(w, [channel]), name="a")
        self.prelu = P.PReLU()

    def construct(self, x):
        return self.prelu(x, self.w)


class GLU(Cell):
    """The first half along an axis times sigmoid of the second."""

    def __init__(self, axis=-1):
        super().__init__()
        self.axis = axis

    def construct(self, x):
        half = x.shape[self.axis] // 2
        a, b = basic.split(x, self.axis, [half, half])
        return core.mul(a, core.sigmoid(b))


_ACTIVATIONS = {
    "softmin": Softmin, "softmax": Softmax, "logsoftmax": LogSoftmax, "relu": ReLU, "relu6": ReLU6, "tanh": Tanh,
    "gelu": GELU, "fast_gelu": FastGelu, "elu": ELU, "sigmoid": Sigmoid, "prelu": PReLU, "leakyrelu": LeakyReLU,
    "hswish": HSwish, "hsigmoid": HSigmoid, "logsigmoid": LogSigmoid, "softsign": Softsign, "mish": Mish, "selu": SeLU,
    "softshrink": SoftShrink, "hshrink": HShrink, "silu": SiLU, "celu": CELU, "tanhshrink": Tanhshrink,
}  # fmt: skip


def get_activation(name, prim_name=None):
    """The activation of that name; None for None."""
    if not name:
        return None
    if name not in _ACTIVATIONS:
        raise KeyError(
            f"For '{prim_name or 'get_activation'}', the 'name' must be one of {list(_ACTIVATIONS)}, but got '{name}'."
        )
    return _ACTIVATIONS[name]()


__all__ = ["get_activation", *sorted({each.__name__ for each in _ACTIVATIONS.values()}), "Hardtanh", "GLU"]
