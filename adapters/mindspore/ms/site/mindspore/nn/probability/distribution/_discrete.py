"""Distributions of whole numbers."""

import math

import numpy as np
from mindspore import Tensor
from mindspore.common import dtype as mstype
from mindspore.nn.probability import _values as _v
from mindspore.nn.probability.distribution._base import NUMBERS, Parametric, functions
from mindspore.nn.probability.distribution._continuous import uniform


@functions
class Bernoulli(Parametric):
    """One with a probability, zero otherwise."""

    PARAMETERS = ("probs",)
    KINDS = NUMBERS

    def __init__(self, probs=None, seed=None, dtype=mstype.int32, name="Bernoulli"):
        self._begin(seed, dtype, name, probs=probs)
        _v.probability(probs)

    def of_prob(self, value, probs):
        return probs * value + (1 - probs) * (1 - value)

    def of_log_prob(self, value, probs):
        return _v.log(probs) * value + _v.log1p(-probs) * (1 - value)

    def of_cdf(self, value, probs):
        below = _v.where(value >= 1, 1.0, 1 - probs + value * 0)
        return _v.where(value < 0, 0.0, below)

    def of_mean(self, probs):
        return probs

    def of_mode(self, probs):
        return _v.cast(probs > 0.5, self._dtype)

    def of_var(self, probs):
        return probs * (1 - probs)

    def of_entropy(self, probs):
        return -(probs * _v.log(probs) + (1 - probs) * _v.log1p(-probs))

    def divergence(self, other, own):
        (probs_b,), (probs,) = other, own
        return probs * _v.log(probs / probs_b) + (1 - probs) * (_v.log1p(-probs) - _v.log1p(-probs_b))

    def numbers(self, shape, probs):
        return _v.cast(_v.drawing(_v.P.UniformReal, self._seed)(shape) < probs, self._dtype)


@functions
class Geometric(Parametric):
    """Failures before the first success."""

    PARAMETERS = ("probs",)
    KINDS = NUMBERS

    def __init__(self, probs=None, seed=None, dtype=mstype.int32, name="Geometric"):
        self._begin(seed, dtype, name, probs=probs)
        _v.probability(probs)

    def of_prob(self, value, probs):
        return _v.where(value < 0, 0.0, _v.exp(value * _v.log1p(-probs) + _v.log(probs)))

    def of_cdf(self, value, probs):
        return _v.where(value < 0, 0.0, -_v.expm1((_v.floor(value) + 1) * _v.log1p(-probs)))

    def of_survival(self, value, probs):
        return _v.where(value < 0, 1.0, _v.exp((_v.floor(value) + 1) * _v.log1p(-probs)))

    def of_log_survival(self, value, probs):
        return _v.where(value < 0, 0.0, (_v.floor(value) + 1) * _v.log1p(-probs))

    def of_mean(self, probs):
        return (1 - probs) / probs

    def of_mode(self, probs):
        return _v.cast(_v.like(probs, 0.0), self._dtype)

    def of_var(self, probs):
        return (1 - probs) / _v.square(probs)

    def of_entropy(self, probs):
        return -((1 - probs) * _v.log1p(-probs) + probs * _v.log(probs)) / probs

    def divergence(self, other, own):
        (probs_b,), (probs,) = other, own
        return _v.log(probs / probs_b) + (1 - probs) / probs * (_v.log1p(-probs) - _v.log1p(-probs_b))

    def numbers(self, shape, probs):
        return _v.floor(_v.log(uniform(self._seed, shape)) / _v.log1p(-probs))


@functions
class Poisson(Parametric):
    """The Poisson distribution."""

    PARAMETERS = ("rate",)
    KINDS = NUMBERS

    def __init__(self, rate=None, seed=None, dtype=mstype.float32, name="Poisson"):
        self._begin(seed, dtype, name, rate=rate)
        _v.positive(rate, "rate")

    def of_log_prob(self, value, rate):
        counted = value * _v.log(rate) - rate - _v.lgamma(_v.P.Maximum()(value, 0) + 1)
        return _v.where(_v.P.LogicalOr()(value < 0, value != _v.floor(value)), -math.inf, counted)

    def of_cdf(self, value, rate):
        count = _v.P.Maximum()(_v.floor(value), 0) + 1
        below = 1 - _v.igamma(count, _v.P.ZerosLike()(count) + rate)
        return _v.where(value < 0, 0.0, below)

    def of_mean(self, rate):
        return rate

    def of_mode(self, rate):
        return _v.floor(rate)

    def of_var(self, rate):
        return rate

    def numbers(self, shape, rate):
        return _v.drawing(_v.P.Poisson, self._seed)(shape, rate)


@functions
class Categorical(Parametric):
    """A class, drawn by the probabilities along the last axis."""

    PARAMETERS = ("probs",)
    KINDS = NUMBERS

    def __init__(self, probs=None, seed=None, dtype=mstype.int32, name="Categorical"):
        self._begin(seed, dtype, name, probs=probs)
        if probs is None:
            return
        _v.probability(probs)
        shape = np.shape(probs) if not isinstance(probs, Tensor) else tuple(probs.shape)
        if not shape:
            raise ValueError("For 'Categorical', probs needs at least one dimension")
        _v.check_values(probs, "the sum of probs", lambda x: np.abs(x.sum(-1) - 1) < 1e-5, "1")
        self._batch_shape = self._broadcast_shape = shape[:-1]

    def _classes(self, probs):
        return Tensor(np.arange(probs.shape[-1], dtype=np.float32), probs.dtype)

    def _chosen(self, value, probs, of, compare):
        """The sum of what is told of the classes that compare with the value."""
        met = compare(self._classes(probs), _v.P.ExpandDims()(_v.floor(value), -1))
        return (_v.where(met, of(probs), 0.0)).sum(-1)

    def of_prob(self, value, probs):
        return self._chosen(value, probs, lambda x: x, lambda known, wanted: known == wanted)

    def of_cdf(self, value, probs):
        return self._chosen(value, probs, lambda x: x, lambda known, wanted: known <= wanted)

    def of_survival(self, value, probs):
        return self._chosen(value, probs, lambda x: x, lambda known, wanted: known > wanted)

    def of_mean(self, probs):
        return (self._classes(probs) * probs).sum(-1)

    def of_var(self, probs):
        return (_v.square(self._classes(probs)) * probs).sum(-1) - _v.square(self.of_mean(probs))

    def of_mode(self, probs):
        return _v.cast(probs.argmax(-1), self._dtype)

    def of_entropy(self, probs):
        return -(probs * _v.log(probs)).sum(-1)

    def divergence(self, other, own):
        (probs_b,), (probs,) = other, own
        return (probs * (_v.log(probs) - _v.log(probs_b))).sum(-1)

    def _sample(self, *args, **kwargs):
        shape, (probs,) = self._draws(args, kwargs)
        count = int(np.prod(shape[: len(shape) - probs.ndim]))
        flat = probs.reshape((-1, probs.shape[-1]))
        drawn = _v.drawing(_v.P.Multinomial, self._seed)(flat, count)
        return _v.cast(drawn.T.reshape(shape[:-1]), self._dtype)
