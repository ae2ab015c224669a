"""Bijectors: maps with an inverse and the logarithms of their derivatives."""

import numpy as np
from mindspore import Tensor
from mindspore.common import dtype as mstype
from mindspore.nn.probability import _values as _v
from mindspore.nn.probability._described import Described

__all__ = ["Bijector", "Exp", "GumbelCDF", "Invert", "PowerTransform", "ScalarAffine", "Softplus"]

_FLOATS = (mstype.float16, mstype.float32)


def _check_parameter(value, name, owner):
    array = isinstance(value, (Tensor, np.ndarray))
    kind = np.dtype(mstype.dtype_to_nptype(value.dtype)) if isinstance(value, Tensor) else np.asarray(value).dtype
    if not array and not isinstance(value, (float, list, tuple)) or kind.kind != "f":
        raise TypeError(f"For '{owner}', {name} needs to be a float, a list or a tensor of floats, got {value!r}")


class Bijector(Described):
    """A map with an inverse; subclasses define _forward, _inverse and the logarithms of their derivatives."""

    def __init__(self, is_constant_jacobian=False, is_injective=True, name=None, dtype=None, param=None):
        owner = type(self).__name__
        for flag in (is_constant_jacobian, is_injective):
            if not isinstance(flag, bool):
                raise TypeError(f"For '{owner}', is_constant_jacobian and is_injective are bools, not {flag!r}")
        if dtype is not None:
            _v.check_dtype(dtype, _FLOATS, owner)
        values = (param or {}).get("param_dict", {})
        for each, value in values.items():
            _check_parameter(value, each, owner)
        super().__init__(owner if name is None else name, dtype, values)
        if dtype is not None and self._parameter_type != dtype:
            raise TypeError(f"For '{owner}', the parameters are {self._parameter_type}, not {dtype}")
        self._batch_shape = self._batch_shape or ()
        self._is_constant_jacobian, self._is_injective = is_constant_jacobian, is_injective
        self._add_parameters(values)

    @property
    def is_constant_jacobian(self):
        return self._is_constant_jacobian

    @property
    def is_injective(self):
        return self._is_injective

    def _check_value_dtype(self, value):
        """The value, a tensor of floats and of the bijector's own dtype where it has one."""
        if not isinstance(value, Tensor):
            raise TypeError(f"For '{type(self).__name__}', the value needs to be a Tensor, not {type(value).__name__}")
        allowed = _v.FLOATS if self._dtype is None else (self._dtype,)
        _v.check_dtype(value.dtype, allowed, type(self).__name__)
        return value

    def cast_param_by_value(self, value, para):
        """The parameter in the dtype of the value."""
        return para if para.dtype == value.dtype else _v.cast(para, value.dtype)

    def _own(self, value):
        """The value, and the parameters in its dtype."""
        value = self._check_value_dtype(value)
        return value, *(self.cast_param_by_value(value, each) for each in self.default_parameters)

    def _run(self, method, value, *args, **kwargs):
        if not hasattr(self, method):
            raise NotImplementedError(f"'{type(self).__name__}' does not define {method[1:]}")
        return getattr(self, method)(value, *args, **kwargs)

    def forward(self, value, *args, **kwargs):
        """The map of the value."""
        return self._run("_forward", value, *args, **kwargs)

    def inverse(self, value, *args, **kwargs):
        """What is mapped to the value."""
        return self._run("_inverse", value, *args, **kwargs)

    def forward_log_jacobian(self, value, *args, **kwargs):
        """The logarithm of the map's derivative."""
        return self._run("_forward_log_jacobian", value, *args, **kwargs)

    def inverse_log_jacobian(self, value, *args, **kwargs):
        """The logarithm of the inverse's derivative."""
        return self._run("_inverse_log_jacobian", value, *args, **kwargs)

    def __call__(self, *args, **kwargs):
        from mindspore.nn.probability.distribution import Distribution, TransformedDistribution

        if args and isinstance(args[0], Distribution):
            return TransformedDistribution(self, args[0], *args[1:], **kwargs)
        return super().__call__(*args, **kwargs)

    def construct(self, name, *args, **kwargs):
        if name not in ("forward", "inverse", "forward_log_jacobian", "inverse_log_jacobian"):
            raise NotImplementedError(f"'{type(self).__name__}' has no function {name}")
        return getattr(self, name)(*args, **kwargs)


class PowerTransform(Bijector):
    """(1 + power x) ** (1 / power), and exp(x) where power is 0."""

    PARAMETERS = ("power",)

    def __init__(self, power=0.0, name="PowerTransform"):
        super().__init__(name=name, param={"param_dict": {"power": power}})
        _v.check_values(power, "power", lambda x: x >= 0, "at least 0")

    def _by_power(self, value, zero, other):
        """What zero says where power is 0, what other says of the rest."""
        value, power = self._own(value)
        safe = _v.where(power == 0, _v.like(power, 1.0), power)
        return _v.where(power == 0, zero(value), other(value, safe))

    def _forward(self, x):
        return self._by_power(x, _v.exp, lambda x, power: _v.exp(_v.log1p(x * power) / power))

    def _inverse(self, y):
        return self._by_power(y, _v.log, lambda y, power: _v.expm1(_v.log(y) * power) / power)

    def _forward_log_jacobian(self, x):
        return self._by_power(x, lambda x: x, lambda x, power: (1 / power - 1) * _v.log1p(x * power))

    def _inverse_log_jacobian(self, y):
        y, power = self._own(y)
        return (power - 1) * _v.log(y)


class Exp(PowerTransform):
    """exp(x)."""

    def __init__(self, name="Exp"):
        super().__init__(name=name)


class ScalarAffine(Bijector):
    """scale x + shift."""

    PARAMETERS = ("scale", "shift")

    def __init__(self, scale=1.0, shift=0.0, name="ScalarAffine"):
        super().__init__(is_constant_jacobian=True, name=name, param={"param_dict": {"scale": scale, "shift": shift}})

    def _forward(self, x):
        x, scale, shift = self._own(x)
        return scale * x + shift

    def _inverse(self, y):
        y, scale, shift = self._own(y)
        return (y - shift) / scale

    def _forward_log_jacobian(self, x):
        _, scale, _ = self._own(x)
        return _v.log(_v.absolute(scale))

    def _inverse_log_jacobian(self, y):
        return -self._forward_log_jacobian(y)


class Softplus(Bijector):
    """log(1 + exp(sharpness x)) / sharpness."""

    PARAMETERS = ("sharpness",)

    def __init__(self, sharpness=1.0, name="Softplus"):
        super().__init__(name=name, param={"param_dict": {"sharpness": sharpness}})

    def _own(self, value):
        value, sharpness = super()._own(value)
        return sharpness, value * sharpness

    def _forward(self, x):
        sharpness, scaled = self._own(x)
        return _v.softplus(scaled) / sharpness

    def _inverse(self, y):
        sharpness, scaled = self._own(y)
        return (scaled + _v.log(-_v.expm1(-scaled))) / sharpness

    def _forward_log_jacobian(self, x):
        return -_v.softplus(-self._own(x)[1])

    def _inverse_log_jacobian(self, y):
        return -_v.log(-_v.expm1(-self._own(y)[1]))


class GumbelCDF(Bijector):
    """exp(-exp(-(x - loc) / scale))."""

    PARAMETERS = ("loc", "scale")

    def __init__(self, loc=0.0, scale=1.0, name="GumbelCDF"):
        super().__init__(name=name, param={"param_dict": {"loc": loc, "scale": scale}})
        _v.positive(scale, "scale")

    def _forward(self, x):
        x, loc, scale = self._own(x)
        return _v.exp(-_v.exp(-(x - loc) / scale))

    def _inverse(self, y):
        y, loc, scale = self._own(y)
        return loc - scale * _v.log(-_v.log(y))

    def _forward_log_jacobian(self, x):
        x, loc, scale = self._own(x)
        z = (x - loc) / scale
        return -z - _v.exp(-z) - _v.log(scale)

    def _inverse_log_jacobian(self, y):
        y, _, scale = self._own(y)
        return _v.log(scale / (-y * _v.log(y)))


class Invert(Bijector):
    """The bijector turned round."""

    def __init__(self, bijector, name=""):
        if not isinstance(bijector, Bijector):
            raise TypeError(f"For 'Invert', bijector needs to be a Bijector, not {type(bijector).__name__}")
        name = f"Invert{bijector.name}" if name == "" else name
        super().__init__(bijector.is_constant_jacobian, bijector.is_injective, name, bijector.dtype)
        self._bijector = bijector
        self._batch_shape = bijector.batch_shape

    @property
    def bijector(self):
        return self._bijector

    def inverse(self, y):
        return self._bijector.forward(y)

    def forward(self, x):
        return self._bijector.inverse(x)

    def inverse_log_jacobian(self, y):
        return self._bijector.forward_log_jacobian(y)

    def forward_log_jacobian(self, x):
        return self._bijector.inverse_log_jacobian(x)
