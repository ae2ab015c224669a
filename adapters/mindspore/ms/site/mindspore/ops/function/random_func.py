"""Functions of random numbers of later releases."""

import numpy as np
from cairn.ms import core
from cairn.ms.numerics import basic, random
from mindspore.common import dtype as mstype
from mindspore.ops import operations as P


def gamma(shape, alpha, beta, seed=None):
    """Gamma numbers."""
    return random.of_calls(P.Gamma(seed or 0), seed or 0)(shape, alpha, beta)


def poisson(shape, mean, seed=None):
    """Poisson's numbers."""
    return random.of_calls(P.Poisson(seed or 0), seed or 0)(shape, mean)


def random_gamma(shape, alpha, seed=0, seed2=0):
    """Gamma numbers of rate 1, for each alpha."""
    return random.of_calls(P.RandomGamma(seed, seed2), seed, seed2)(shape, alpha)


def random_poisson(shape, rate, seed=None, dtype=mstype.float32):
    """Poisson's numbers for each rate."""
    return random.of_calls(P.RandomPoisson(seed or 0, dtype=dtype), seed or 0)(shape, rate)


def multinomial_with_replacement(x, seed=0, offset=0, numsamples=1, replacement=False):
    """Classes drawn by their weights."""
    with random.called("MultinomialWithReplacement", seed):
        return P.MultinomialWithReplacement(numsamples, replacement)(x, seed, offset)


def uniform_candidate_sampler(true_classes, num_true, num_sampled, unique, range_max, seed=0, remove_accidental_hits=False):
    """Sampled classes and expected counts."""
    sampler = P.UniformCandidateSampler(num_true, num_sampled, unique, range_max, seed, remove_accidental_hits)
    return random.of_calls(sampler, seed)(true_classes)


def log_uniform_candidate_sampler(true_classes, num_true=1, num_sampled=5, unique=True, range_max=5, seed=0):
    """Sampled classes and expected counts, of small classes more often."""
    return random.of_calls(P.LogUniformCandidateSampler(num_true, num_sampled, unique, range_max, seed), seed)(true_classes)


def choice_with_mask(input_x, count=256, seed=None):
    """Places of true elements, drawn at random."""
    return random.of_calls(P.RandomChoiceWithMask(count, seed or 0), seed or 0)(input_x)


def _sizes(size):
    return tuple(size[0]) if len(size) == 1 and isinstance(size[0], (tuple, list)) else tuple(size)


def randint(low, high, size, seed=None, *, dtype=mstype.int64):
    """Whole numbers in [low, high)."""
    with random.called("RandInt", seed):
        return random.integers(_sizes((size,)), np.int64(low), np.int64(high), basic.as_np(dtype))


def randint_like(input, low, high, seed=None, *, dtype=None):
    """Whole numbers in [low, high), of the shape of a tensor."""
    return randint(low, high, tuple(input.shape), seed, dtype=dtype or input.dtype)


def rand_like(input, seed=None, *, dtype=None):
    """Numbers in [0, 1), of the shape of a tensor."""
    with random.called("Rand", seed):
        return basic.cast(random.uniform(input.shape), dtype or input.dtype)


def randn_like(input, seed=None, *, dtype=None):
    """Normal numbers, of the shape of a tensor."""
    with random.called("Randn", seed):
        return basic.cast(random.normal(input.shape), dtype or input.dtype)


def dropout1d(x, p=0.5, training=True):
    """Whole channels dropped."""
    if not training or not p:
        return x
    return random.dropped(x, 1 - p, (len(x.shape) - 1,))[0] if p < 1 else core.mul(x, basic.number(0, x))
