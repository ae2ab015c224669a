"""Normalisations."""

from cairn.ms import core
from cairn.ms.numerics.basic import number, reshape


def batch_norm(x, scale, offset, mean, variance, epsilon, data_format="NCHW"):
    """By given statistics of each channel."""
    return core.batch_norm(x, scale, offset, mean, variance, epsilon=epsilon, axis=_channel(x, data_format))


def batch_norm_training(x, scale, offset, epsilon, data_format="NCHW"):
    """By the batch's own: (y, mean, biased variance)."""
    return core.batch_norm_training(x, scale, offset, epsilon=epsilon, axis=_channel(x, data_format))


def _channel(x, data_format):
    return 1 if data_format.startswith("NC") else len(x.shape) - 1


def moved_average(running, new, momentum):
    """running * (1 - momentum) + new * momentum"""
    return core.add(core.mul(running, number(1.0 - momentum, running)), core.mul(new, number(momentum, new)))


def layer_norm(x, scale, offset, begin_norm_axis, epsilon):
    return core.layer_norm(x, scale, offset, epsilon=epsilon, axis=begin_norm_axis % len(x.shape))


def moments(x, axes):
    """Mean and biased variance with the reduced axes kept."""
    mean = core.reduce_mean(x, axes=axes, keep_dims=True)
    return mean, core.reduce_mean(core.square(core.sub(x, mean)), axes=axes, keep_dims=True)


def by_groups(x, groups, scale, offset, epsilon):
    """Group norm; one group for each channel is instance norm. Scale and offset have one element for each channel."""
    n, c = x.shape[:2]
    ones = number(1, x).reshape(1)
    flat = reshape(x, (n, groups, -1))
    y = core.layer_norm(flat, ones, number(0, x).reshape(1), epsilon=epsilon, axis=2)
    per = (1, c) + (1,) * (len(x.shape) - 2)
    return core.add(core.mul(reshape(y, x.shape), reshape(scale, per)), reshape(offset, per))
