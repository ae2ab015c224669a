"""Distributions of what a bijector makes of another distribution's numbers."""

import math

from mindspore.common import dtype as mstype
from mindspore.nn.probability import _values as _v
from mindspore.nn.probability import bijector as msb
from mindspore.nn.probability.distribution import _continuous
from mindspore.nn.probability.distribution._base import Distribution, Parametric, functions


class TransformedDistribution(Distribution):
    """The distribution of bijector(x) for x of a distribution."""

    def __init__(self, bijector, distribution, seed=None, name="transformed_distribution"):
        if not isinstance(bijector, msb.Bijector):
            raise TypeError(f"For 'TransformedDistribution', bijector is a Bijector, not {type(bijector).__name__}")
        if not isinstance(distribution, Distribution):
            raise TypeError(f"For 'TransformedDistribution', distribution is one, not {type(distribution).__name__}")
        super().__init__(seed, distribution.dtype, name, {})
        self._bijector, self._distribution = bijector, distribution
        self._is_linear_transformation = bijector.is_constant_jacobian
        self._parameter_type = distribution.parameter_type
        self._batch_shape = self._broadcast_shape = distribution.batch_shape

    @property
    def bijector(self):
        return self._bijector

    @property
    def distribution(self):
        return self._distribution

    @property
    def is_linear_transformation(self):
        return self._is_linear_transformation

    def _log_prob(self, value, *args, **kwargs):
        inner = self._distribution.log_prob(self._bijector.inverse(value), *args, **kwargs)
        return inner + self._bijector.inverse_log_jacobian(value)

    def _prob(self, value, *args, **kwargs):
        return _v.exp(self._log_prob(value, *args, **kwargs))

    def _cdf(self, value, *args, **kwargs):
        return self._distribution.cdf(self._bijector.inverse(value), *args, **kwargs)

    def _log_cdf(self, value, *args, **kwargs):
        return self._distribution.log_cdf(self._bijector.inverse(value), *args, **kwargs)

    def _survival_function(self, value, *args, **kwargs):
        return self._distribution.survival_function(self._bijector.inverse(value), *args, **kwargs)

    def _log_survival(self, value, *args, **kwargs):
        return self._distribution.log_survival(self._bijector.inverse(value), *args, **kwargs)

    def _mean(self, *args, **kwargs):
        if not self._is_linear_transformation:
            raise NotImplementedError("For 'TransformedDistribution', the mean is known of linear bijectors only")
        return self._bijector.forward(self._distribution.mean(*args, **kwargs))

    def _sample(self, *args, **kwargs):
        return self._bijector.forward(self._distribution.sample(*args, **kwargs))


class _Both(Parametric, TransformedDistribution):
    """A transformed distribution whose functions are known."""

    def _inner(self, bijector, distribution):
        self._bijector, self._distribution = bijector, distribution
        self._is_linear_transformation = bijector.is_constant_jacobian

    def of_log_survival(self, value, loc, scale):
        return _v.log(self.of_survival(value, loc, scale))


@functions
class LogNormal(_Both):
    """exp(x) of x that is normal."""

    PARAMETERS = ("loc", "scale")

    def __init__(self, loc=None, scale=None, seed=0, dtype=mstype.float32, name="LogNormal"):
        self._begin(seed, dtype, name, loc=loc, scale=scale)
        _v.positive(scale, "scale")
        self._inner(msb.Exp(), _continuous.Normal(loc, scale, seed, dtype))

    def of_log_prob(self, value, loc, scale):
        log = _v.log(value)
        return _continuous._normal_log_prob(log, loc, scale) - log

    def of_cdf(self, value, loc, scale):
        return 0.5 * (1 + _v.erf((_v.log(value) - loc) / (scale * math.sqrt(2))))

    def of_log_cdf(self, value, loc, scale):
        return _v.log(self.of_cdf(value, loc, scale))

    def of_survival(self, value, loc, scale):
        return 0.5 * (1 - _v.erf((_v.log(value) - loc) / (scale * math.sqrt(2))))

    def of_mean(self, loc, scale):
        return _v.exp(loc + _v.square(scale) * 0.5)

    def of_mode(self, loc, scale):
        return _v.exp(loc - _v.square(scale))

    def of_var(self, loc, scale):
        return _v.expm1(_v.square(scale)) * _v.exp(2 * loc + _v.square(scale))

    def of_entropy(self, loc, scale):
        return loc + 0.5 + _v.log(scale) + 0.5 * math.log(2 * math.pi)

    def divergence(self, other, own):
        return _continuous._normal_divergence(other, own)

    def numbers(self, shape, loc, scale):
        return _v.exp(loc + scale * _v.drawing(_v.P.StandardNormal, self._seed)(shape))


@functions
class Gumbel(_Both):
    """The Gumbel distribution."""

    PARAMETERS = ("loc", "scale")

    def __init__(self, loc, scale, seed=0, dtype=mstype.float32, name="Gumbel"):
        self._begin(seed, dtype, name, loc=loc, scale=scale)
        _v.positive(scale, "scale")
        self._inner(msb.Invert(msb.GumbelCDF(self._loc, self._scale)), _continuous.Uniform(0.0, 1.0, seed, dtype))

    def of_log_prob(self, value, loc, scale):
        z = (value - loc) / scale
        return -(z + _v.exp(-z)) - _v.log(scale)

    def of_cdf(self, value, loc, scale):
        return _v.exp(-_v.exp((loc - value) / scale))

    def of_log_cdf(self, value, loc, scale):
        return -_v.exp((loc - value) / scale)

    def of_survival(self, value, loc, scale):
        return -_v.expm1(-_v.exp((loc - value) / scale))

    def of_mean(self, loc, scale):
        return loc + scale * _continuous._EULER

    def of_mode(self, loc, scale):
        return loc

    def of_sd(self, loc, scale):
        return scale * (math.pi / math.sqrt(6))

    def of_entropy(self, loc, scale):
        return 1 + _continuous._EULER + _v.log(scale)

    def divergence(self, other, own):
        """What MindSpore says: the integral less (loc - loc_b) / scale_b."""
        (loc_b, scale_b), (loc, scale) = other, own
        parts = _continuous._EULER * (scale / scale_b - 1) + _v.log(scale_b) - _v.log(scale)
        return parts + _v.expm1((loc_b - loc) / scale_b + _v.lgamma(scale / scale_b + 1))

    def numbers(self, shape, loc, scale):
        return loc - scale * _v.log(-_v.log(_continuous.uniform(self._seed, shape)))
