"""Distributions and bijectors as Cells."""

from mindspore.nn.probability import bijector, distribution
