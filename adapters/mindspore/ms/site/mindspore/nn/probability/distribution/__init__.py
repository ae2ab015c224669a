"""Distributions: probabilities, moments, divergences and samples."""

from mindspore.nn.probability.distribution._base import Distribution
from mindspore.nn.probability.distribution._continuous import (
    Beta,
    Cauchy,
    Exponential,
    Gamma,
    HalfNormal,
    Laplace,
    Logistic,
    Normal,
    StudentT,
    Uniform,
)
from mindspore.nn.probability.distribution._discrete import Bernoulli, Categorical, Geometric, Poisson
from mindspore.nn.probability.distribution._transformed import Gumbel, LogNormal, TransformedDistribution

__all__ = [
    "Bernoulli", "Beta", "Categorical", "Cauchy", "Distribution", "Exponential", "Gamma", "Geometric", "Gumbel",
    "HalfNormal", "Laplace", "LogNormal", "Logistic", "Normal", "Poisson", "StudentT", "TransformedDistribution", "Uniform",
]  # fmt: skip
