"""Distributions of real numbers."""

import math

import numpy as np
from mindspore.common import dtype as mstype
from mindspore.nn.probability import _values as _v
from mindspore.nn.probability.distribution._base import Parametric, functions

_TINY = float(np.finfo(np.float32).tiny)
_EULER = float(np.euler_gamma)


def uniform(seed, shape):
    """Numbers in (0, 1)."""
    return _v.P.Maximum()(_v.drawing(_v.P.UniformReal, seed)(shape), _TINY)


class _Located(Parametric):
    """Of a place and a scale."""

    def _located(self, first, scale, seed, dtype, name):
        self._begin(seed, dtype, name, **dict(zip(self.PARAMETERS, (first, scale))))
        _v.positive(scale, self.PARAMETERS[1])


def _normal_log_prob(value, mean, sd):
    return -_v.square((value - mean) / sd) * 0.5 - _v.log(sd) - 0.5 * math.log(2 * math.pi)


def _normal_divergence(other, own):
    (mean_b, sd_b), (mean, sd) = other, own
    difference = _v.log(sd) - _v.log(sd_b)
    return _v.square(mean - mean_b) / _v.square(sd_b) * 0.5 + _v.expm1(difference * 2) * 0.5 - difference


@functions
class Normal(_Located):
    """The normal distribution."""

    PARAMETERS = ("mean", "sd")

    def __init__(self, mean=None, sd=None, seed=None, dtype=mstype.float32, name="Normal"):
        self._located(mean, sd, seed, dtype, name)
        self._mean_value, self._sd_value = self.default_parameters

    def of_log_prob(self, value, mean, sd):
        return _normal_log_prob(value, mean, sd)

    def of_cdf(self, value, mean, sd):
        return 0.5 * (1 + _v.erf((value - mean) / (sd * math.sqrt(2))))

    def of_survival(self, value, mean, sd):
        return 0.5 * (1 - _v.erf((value - mean) / (sd * math.sqrt(2))))

    def of_mean(self, mean, sd):
        return mean

    def of_mode(self, mean, sd):
        return mean

    def of_sd(self, mean, sd):
        return sd

    def of_entropy(self, mean, sd):
        return _v.log(sd) + 0.5 * math.log(2 * math.pi * math.e)

    def divergence(self, other, own):
        return _normal_divergence(other, own)

    def numbers(self, shape, mean, sd):
        return mean + sd * _v.drawing(_v.P.StandardNormal, self._seed)(shape)


@functions
class Uniform(Parametric):
    """Numbers between low and high."""

    PARAMETERS = ("low", "high")

    def __init__(self, low=None, high=None, seed=None, dtype=mstype.float32, name="Uniform"):
        self._begin(seed, dtype, name, low=low, high=high)
        if low is not None and high is not None:
            _v.check_values(self._high - self._low, "high - low", lambda x: x > 0, "greater than 0")

    def of_prob(self, value, low, high):
        inside = _v.P.LogicalAnd()(value >= low, value <= high)
        return _v.where(inside, 1 / (high - low) + value * 0, 0.0)

    def of_cdf(self, value, low, high):
        part = (value - low) / (high - low)
        return _v.where(value < low, 0.0, _v.where(value > high, 1.0, part))

    def of_mean(self, low, high):
        return (low + high) / 2

    def of_var(self, low, high):
        return _v.square(high - low) / 12

    def of_entropy(self, low, high):
        return _v.log(high - low)

    def divergence(self, other, own):
        (low_b, high_b), (low, high) = other, own
        inside = _v.P.LogicalAnd()(low_b <= low, high <= high_b)
        return _v.where(inside, _v.log(high_b - low_b) - _v.log(high - low), math.inf)

    def numbers(self, shape, low, high):
        return low + (high - low) * _v.drawing(_v.P.UniformReal, self._seed)(shape)


@functions
class Exponential(Parametric):
    """The exponential distribution."""

    PARAMETERS = ("rate",)

    def __init__(self, rate=None, seed=None, dtype=mstype.float32, name="Exponential"):
        self._begin(seed, dtype, name, rate=rate)
        _v.positive(rate, "rate")

    def of_prob(self, value, rate):
        return _v.where(value < 0, 0.0, rate * _v.exp(-rate * value))

    def of_log_prob(self, value, rate):
        return _v.where(value < 0, -math.inf, _v.log(rate) - rate * value)

    def of_cdf(self, value, rate):
        return _v.where(value < 0, 0.0, -_v.expm1(-rate * value))

    def of_survival(self, value, rate):
        return _v.where(value < 0, 1.0, _v.exp(-rate * value))

    def of_log_survival(self, value, rate):
        return _v.where(value < 0, 0.0, -rate * value)

    def of_mean(self, rate):
        return 1 / rate

    def of_sd(self, rate):
        return 1 / rate

    def of_mode(self, rate):
        return _v.like(rate, 0.0)

    def of_entropy(self, rate):
        return 1 - _v.log(rate)

    def divergence(self, other, own):
        (rate_b,), (rate,) = other, own
        return _v.log(rate) - _v.log(rate_b) + rate_b / rate - 1

    def numbers(self, shape, rate):
        return -_v.log(uniform(self._seed, shape)) / rate


@functions
class Gamma(Parametric):
    """The gamma distribution."""

    PARAMETERS = ("concentration", "rate")

    def __init__(self, concentration=None, rate=None, seed=None, dtype=mstype.float32, name="Gamma"):
        self._begin(seed, dtype, name, concentration=concentration, rate=rate)
        _v.positive(concentration, "concentration")
        _v.positive(rate, "rate")

    def of_log_prob(self, value, concentration, rate):
        shape = (concentration - 1) * _v.log(value) + concentration * _v.log(rate)
        return shape - rate * value - _v.lgamma(concentration)

    def of_cdf(self, value, concentration, rate):
        scaled = value * rate
        return _v.igamma(_v.P.ZerosLike()(scaled) + concentration, scaled)

    def of_mean(self, concentration, rate):
        return concentration / rate

    def of_var(self, concentration, rate):
        return concentration / _v.square(rate)

    def of_mode(self, concentration, rate):
        return _v.where(concentration > 1, (concentration - 1) / rate, math.nan)

    def of_entropy(self, concentration, rate):
        return concentration - _v.log(rate) + _v.lgamma(concentration) + (1 - concentration) * _v.digamma(concentration)

    def divergence(self, other, own):
        (shape_b, rate_b), (shape, rate) = other, own
        logs = _v.lgamma(shape_b) - _v.lgamma(shape) + shape_b * (_v.log(rate) - _v.log(rate_b))
        return (shape - shape_b) * _v.digamma(shape) + logs + shape * (rate_b / rate - 1)

    def numbers(self, shape, concentration, rate):
        return _v.drawing(_v.P.Gamma, self._seed)(shape, concentration, rate)


def _log_beta(one, zero):
    return _v.lgamma(one) + _v.lgamma(zero) - _v.lgamma(one + zero)


@functions
class Beta(Parametric):
    """The beta distribution."""

    PARAMETERS = ("concentration1", "concentration0")

    def __init__(self, concentration1=None, concentration0=None, seed=None, dtype=mstype.float32, name="Beta"):
        self._begin(seed, dtype, name, concentration1=concentration1, concentration0=concentration0)
        _v.positive(concentration1, "concentration1")
        _v.positive(concentration0, "concentration0")

    def of_log_prob(self, value, one, zero):
        return (one - 1) * _v.log(value) + (zero - 1) * _v.log1p(-value) - _log_beta(one, zero)

    def of_mean(self, one, zero):
        return one / (one + zero)

    def of_var(self, one, zero):
        total = one + zero
        return one * zero / (_v.square(total) * (total + 1))

    def of_mode(self, one, zero):
        known = _v.P.LogicalAnd()(one > 1, zero > 1)
        return _v.where(known, (one - 1) / (one + zero - 2), math.nan)

    def of_entropy(self, one, zero):
        total = one + zero
        parts = (one - 1) * _v.digamma(one) + (zero - 1) * _v.digamma(zero)
        return _log_beta(one, zero) - parts + (total - 2) * _v.digamma(total)

    def divergence(self, other, own):
        (one_b, zero_b), (one, zero) = other, own
        parts = _v.digamma(one) * (one_b - one) + _v.digamma(zero) * (zero_b - zero)
        total, total_b = one + zero, one_b + zero_b
        return _log_beta(one_b, zero_b) - _log_beta(one, zero) - parts + _v.digamma(total) * (total_b - total)

    def numbers(self, shape, one, zero):
        unit = _v.like(one, 1.0)
        first = _v.drawing(_v.P.Gamma, self._seed)(shape, one, unit)
        second = _v.drawing(_v.P.Gamma, self._seed + 1)(shape, zero, unit)
        return first / (first + second)


@functions
class Cauchy(_Located):
    """The Cauchy distribution, which has neither mean nor variance."""

    PARAMETERS = ("loc", "scale")

    def __init__(self, loc=None, scale=None, seed=None, dtype=mstype.float32, name="Cauchy"):
        self._located(loc, scale, seed, dtype, name)

    def _turn(self, value, loc, scale):
        return _v.P.Atan()((value - loc) / scale) / math.pi

    def of_log_prob(self, value, loc, scale):
        return -_v.log1p(_v.square((value - loc) / scale)) - _v.log(scale) - math.log(math.pi)

    def of_cdf(self, value, loc, scale):
        return self._turn(value, loc, scale) + 0.5

    def of_log_cdf(self, value, loc, scale):
        return _v.log1p(2 * self._turn(value, loc, scale)) - math.log(2)

    def of_survival(self, value, loc, scale):
        return 0.5 - self._turn(value, loc, scale)

    def of_log_survival(self, value, loc, scale):
        return _v.log1p(-2 * self._turn(value, loc, scale)) - math.log(2)

    def _undefined(self, *args, **kwargs):
        raise ValueError("For 'Cauchy', neither the mean nor the variance is defined")

    _mean = _sd = _var = _undefined

    def of_mode(self, loc, scale):
        return loc

    def of_entropy(self, loc, scale):
        return _v.log(4 * math.pi * scale)

    def divergence(self, other, own):
        (loc_b, scale_b), (loc, scale) = other, own
        return _v.log(_v.square(scale + scale_b) + _v.square(loc - loc_b)) - _v.log(4 * scale * scale_b)

    def numbers(self, shape, loc, scale):
        return loc + scale * _v.P.Tan()((uniform(self._seed, shape) - 0.5) * math.pi)


@functions
class Logistic(_Located):
    """The logistic distribution."""

    PARAMETERS = ("loc", "scale")

    def __init__(self, loc=None, scale=None, seed=None, dtype=mstype.float32, name="Logistic"):
        self._located(loc, scale, seed, dtype, name)

    def of_log_prob(self, value, loc, scale):
        z = (value - loc) / scale
        return -z - _v.log(scale) - 2 * _v.softplus(-z)

    def of_cdf(self, value, loc, scale):
        return _v.sigmoid((value - loc) / scale)

    def of_log_cdf(self, value, loc, scale):
        return -_v.softplus((loc - value) / scale)

    def of_survival(self, value, loc, scale):
        return _v.sigmoid((loc - value) / scale)

    def of_log_survival(self, value, loc, scale):
        return -_v.softplus((value - loc) / scale)

    def of_mean(self, loc, scale):
        return loc

    def of_mode(self, loc, scale):
        return loc

    def of_sd(self, loc, scale):
        return scale * (math.pi / math.sqrt(3))

    def of_entropy(self, loc, scale):
        return _v.log(scale) + 2

    def numbers(self, shape, loc, scale):
        drawn = uniform(self._seed, shape)
        return loc + scale * (_v.log(drawn) - _v.log1p(-drawn))


@functions
class Laplace(_Located):
    """The Laplace distribution."""

    PARAMETERS = ("mean", "sd")

    def __init__(self, mean=None, sd=None, seed=None, dtype=mstype.float32, name="Laplace"):
        self._located(mean, sd, seed, dtype, name)

    def of_log_prob(self, value, mean, sd):
        return -_v.absolute(value - mean) / sd - _v.log(sd * 2)


@functions
class HalfNormal(_Located):
    """The normal distribution of the numbers from its mean on."""

    PARAMETERS = ("mean", "sd")

    def __init__(self, mean=None, sd=None, seed=None, dtype=mstype.float32, name="HalfNormal"):
        self._located(mean, sd, seed, dtype, name)

    def of_log_prob(self, value, mean, sd):
        return _v.where(value < mean, -math.inf, _normal_log_prob(value, mean, sd) + math.log(2))


@functions
class StudentT(Parametric):
    """Student's distribution."""

    PARAMETERS = ("df", "mean", "sd")

    def __init__(self, df=None, mean=None, sd=None, seed=None, dtype=mstype.float32, name="StudentT"):
        self._begin(seed, dtype, name, df=df, mean=mean, sd=sd)
        _v.positive(df, "df")
        _v.positive(sd, "sd")

    def of_log_prob(self, value, df, mean, sd):
        z = (value - mean) / sd
        scale = _v.log(sd) + 0.5 * _v.log(df) + 0.5 * math.log(math.pi) + _v.lgamma(df / 2) - _v.lgamma((df + 1) / 2)
        return -0.5 * (df + 1) * _v.log1p(_v.square(z) / df) - scale
