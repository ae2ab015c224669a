"""The base of distributions: parameters, dispatch, and functions that follow from others."""

from mindspore import Tensor
from mindspore.common import dtype as mstype
from mindspore.nn.probability import _values as _v
from mindspore.nn.probability._described import Described

NUMBERS = (mstype.int8, mstype.int16, mstype.int32, mstype.int64, mstype.uint8, mstype.uint16, mstype.uint32,
           mstype.uint64, *_v.FLOATS)  # fmt: skip

# Where a function is not defined: of which other it follows, and how.
_FOLLOWS = {
    "prob": (("_log_prob", _v.exp),),
    "log_prob": (("_prob", _v.log),),
    "cdf": (("_log_cdf", _v.exp), ("_survival_function", lambda x: 1 - x), ("_log_survival", lambda x: 1 - _v.exp(x))),
    "log_cdf": (("_cdf", _v.log), ("_survival_function", lambda x: _v.log1p(-x))),
    "survival_function": (("_log_survival", _v.exp), ("_cdf", lambda x: 1 - x), ("_log_cdf", lambda x: 1 - _v.exp(x))),
    "log_survival": (("_survival_function", _v.log), ("_cdf", lambda x: _v.log(1 - x))),
    "sd": (("_var", _v.sqrt),),
    "var": (("_sd", _v.square),),
    "mean": (), "mode": (), "entropy": (), "kl_loss": (), "cross_entropy": (), "sample": (),
}  # fmt: skip


class Distribution(Described):
    """A distribution; subclasses define some of _prob, _cdf, _mean, _sample and their kin."""

    def __init__(self, seed, dtype, name, param):
        super().__init__(name, dtype, dict((param or {}).get("param_dict", {})))
        self._seed = _v.check_seed(seed, type(self).__name__)
        self._broadcast_shape = self._batch_shape

    @property
    def seed(self):
        return self._seed

    @property
    def broadcast_shape(self):
        return self._broadcast_shape

    def _check_value(self, value, name):
        """The value, which needs to be a tensor."""
        if not isinstance(value, Tensor):
            raise TypeError(f"For '{type(self).__name__}', {name} needs to be a Tensor, not {type(value).__name__}")
        return value

    def _value(self, value):
        """The value in the dtype of the parameters."""
        value = self._check_value(value, "value")
        return value if value.dtype == self._parameter_type else _v.cast(value, self._parameter_type)

    def _check_param_type(self, *args):
        """The parameters of a call, or those given at the start, in one kind and shape."""
        found = []
        for name, own, value in zip(self.parameter_names, self.default_parameters, args):
            value = own if value is None else value
            if value is None:
                raise TypeError(f"For '{type(self).__name__}', {name} is given neither at the start nor in the call")
            value = self._check_value(value, name)
            found.append(value if value.dtype == self._parameter_type else _v.cast(value, self._parameter_type))
        shape = _v.shape_of(found, type(self).__name__)
        found = [each if tuple(each.shape) == shape else _v.P.BroadcastTo(shape)(each) for each in found]
        return found[0] if len(found) == 1 else tuple(found)

    def _check_other(self, dist):
        """A divergence is of two distributions of the same name."""
        own = self._get_dist_type()
        if not isinstance(dist, str) or dist != own:
            raise ValueError(f"For '{own}', the other distribution needs to be '{own}', not {dist!r}")

    def _get_dist_type(self):
        return type(self).__name__

    def _get_dist_args(self, *args):
        given = list(args) + [None] * (len(self.parameter_names) - len(args))
        return tuple(
            own if value is None else self._check_value(value, name)
            for name, own, value in zip(self.parameter_names, self.default_parameters, given)
        )

    def _of(self, name, *args, **kwargs):
        own = f"_{name}"
        if hasattr(self, own):
            return getattr(self, own)(*args, **kwargs)
        for other, follow in _FOLLOWS[name]:
            if hasattr(self, other):
                return follow(getattr(self, other)(*args, **kwargs))
        if name == "cross_entropy" and hasattr(self, "_entropy") and hasattr(self, "_kl_loss"):
            count = len(self.parameter_names)
            return self._entropy(*args[1 + count :]) + self._kl_loss(*args, **kwargs)
        raise NotImplementedError(f"'{type(self).__name__}' does not define {name}")

    def prob(self, value, *args, **kwargs):
        """The probability or its density."""
        return self._of("prob", value, *args, **kwargs)

    def log_prob(self, value, *args, **kwargs):
        """The logarithm of prob."""
        return self._of("log_prob", value, *args, **kwargs)

    def cdf(self, value, *args, **kwargs):
        """The probability of at most the value."""
        return self._of("cdf", value, *args, **kwargs)

    def log_cdf(self, value, *args, **kwargs):
        """The logarithm of cdf."""
        return self._of("log_cdf", value, *args, **kwargs)

    def survival_function(self, value, *args, **kwargs):
        """The probability of more than the value."""
        return self._of("survival_function", value, *args, **kwargs)

    def log_survival(self, value, *args, **kwargs):
        """The logarithm of survival_function."""
        return self._of("log_survival", value, *args, **kwargs)

    def mean(self, *args, **kwargs):
        return self._of("mean", *args, **kwargs)

    def mode(self, *args, **kwargs):
        return self._of("mode", *args, **kwargs)

    def sd(self, *args, **kwargs):
        return self._of("sd", *args, **kwargs)

    def var(self, *args, **kwargs):
        return self._of("var", *args, **kwargs)

    def entropy(self, *args, **kwargs):
        return self._of("entropy", *args, **kwargs)

    def kl_loss(self, dist, *args, **kwargs):
        """The divergence of Kullback and Leibler from this one to another of the same name."""
        return self._of("kl_loss", dist, *args, **kwargs)

    def cross_entropy(self, dist, *args, **kwargs):
        """The entropy and kl_loss together."""
        return self._of("cross_entropy", dist, *args, **kwargs)

    def sample(self, *args, **kwargs):
        """Numbers of the shape given first, for each of the parameters."""
        return self._of("sample", *args, **kwargs)

    def get_dist_args(self, *args, **kwargs):
        """The parameters."""
        return self._get_dist_args(*args, **kwargs)

    def get_dist_type(self):
        """The name of the distribution."""
        return self._get_dist_type()

    def construct(self, name, *args, **kwargs):
        if name not in _FOLLOWS and name not in ("get_dist_args", "get_dist_type"):
            raise NotImplementedError(f"'{type(self).__name__}' has no function {name}")
        return getattr(self, name)(*args, **kwargs)


class Parametric(Distribution):
    """A distribution whose functions are written of a value and broadcast parameters.

    Subclasses list their parameters in PARAMETERS and define, say, density_log(self, value, mean, sd).
    """

    KINDS = _v.FLOATS

    def _begin(self, seed, dtype, name, **values):
        _v.check_dtype(dtype, self.KINDS, type(self).__name__)
        Distribution.__init__(self, seed, dtype, name, {"param_dict": values})
        self._add_parameters(values)

    def _arguments(self, args, kwargs):
        named = [kwargs.pop(name, None) for name in self.PARAMETERS]
        if kwargs or len(args) > len(self.PARAMETERS):
            raise TypeError(f"'{type(self).__name__}' takes {', '.join(self.PARAMETERS)}, got {args} {kwargs}")
        given = [args[at] if at < len(args) else named[at] for at in range(len(named))]
        found = self._check_param_type(*given)
        return found if isinstance(found, tuple) else (found,)

    def _pairs(self, dist, args, kwargs):
        """The parameters of the other distribution and of this one."""
        self._check_other(dist)
        names, count = self.PARAMETERS, len(self.PARAMETERS)
        other = [args[at] if at < len(args) else kwargs.get(f"{name}_b") for at, name in enumerate(names)]
        own = [args[at] if at < len(args) else kwargs.get(f"{name}_a", kwargs.get(name)) for at, name in enumerate(names, count)]
        for name, value in zip(names, other):
            self._check_value(value, f"{name}_b")
        other = tuple(_v.cast(value, self._parameter_type) for value in other)
        found = self._check_param_type(*own)
        return other, found if isinstance(found, tuple) else (found,)

    def _draws(self, args, kwargs):
        """The shape of a sample, its parameters, and how to reduce one of a scalar."""
        shape = kwargs.pop("shape", args[0] if args else ())
        if not isinstance(shape, tuple):
            raise TypeError(f"For '{type(self).__name__}', the shape needs to be a tuple, not {type(shape).__name__}")
        found = self._arguments(args[1:], kwargs)
        return shape + tuple(found[0].shape), found

    def _sampled(self, numbers):
        return numbers if numbers.dtype == self._dtype else _v.cast(numbers, self._dtype)


def _with_value(name):
    return lambda self, value, *args, **kwargs: getattr(self, name)(self._value(value), *self._arguments(args, kwargs))


def _without_value(name):
    return lambda self, *args, **kwargs: getattr(self, name)(*self._arguments(args, kwargs))


def _divergence(self, dist, *args, **kwargs):
    other, own = self._pairs(dist, args, kwargs)
    return self.divergence(other, own)


def _sample(self, *args, **kwargs):
    shape, found = self._draws(args, kwargs)
    scalar = shape == ()
    numbers = self.numbers((1,) if scalar else shape, *found)
    return self._sampled(_v.P.Reshape()(numbers, ()) if scalar else numbers)


_WRITTEN = {
    "of_log_prob": ("_log_prob", _with_value), "of_prob": ("_prob", _with_value), "of_cdf": ("_cdf", _with_value),
    "of_log_cdf": ("_log_cdf", _with_value), "of_survival": ("_survival_function", _with_value),
    "of_log_survival": ("_log_survival", _with_value), "of_mean": ("_mean", _without_value),
    "of_mode": ("_mode", _without_value), "of_sd": ("_sd", _without_value), "of_var": ("_var", _without_value),
    "of_entropy": ("_entropy", _without_value),
}  # fmt: skip


def functions(kind):
    """Gives a Parametric the functions that Distribution looks for, of those it has written."""
    for written, (name, maker) in _WRITTEN.items():
        if hasattr(kind, written):
            setattr(kind, name, maker(written))
    if hasattr(kind, "divergence"):
        kind._kl_loss = _divergence
    if hasattr(kind, "numbers"):
        kind._sample = _sample
    return kind
