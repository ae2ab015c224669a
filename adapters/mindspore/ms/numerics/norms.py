"""Normalisations."""

import numpy as np
from cairn.ms import core
from cairn.ms.numerics import collectives
from cairn.ms.numerics.basic import filled, nptype, number, part, reshape


def batch_norm(x, scale, offset, mean, variance, epsilon, data_format="NCHW"):
    """By given statistics of each channel."""
    return core.batch_norm(x, scale, offset, mean, variance, epsilon=epsilon, axis=_channel(x, data_format))


def batch_norm_training(x, scale, offset, epsilon, data_format="NCHW", group=None):
    """By the batch's own, or by those of all ranks of a group as one: (y, mean, biased variance)."""
    if group is None:
        return core.batch_norm_training(x, scale, offset, epsilon=epsilon, axis=_channel(x, data_format))
    mean, variance = _moments_of_group(x, _channel(x, data_format), group)
    return batch_norm(x, scale, offset, mean, variance, epsilon, data_format), mean, variance


def _moments_of_group(x, channel, group):
    """Mean and biased variance of each channel, from those of each rank: T. F. Chan et al., Updating Formulae (1979), which subtracts no
    large sums from each other. One exchange."""
    channels = x.shape[channel]
    own = [reshape(each, (-1,)) for each in moments(x, [axis for axis in range(len(x.shape)) if axis != channel])]
    count = filled((1,), np.prod(x.shape) // channels, nptype(x))
    of_ranks = collectives.all_gather(reshape(core.concat(count, *own, axis=0), (1, -1)), group)
    share = part(of_ranks, 1, 0, 1)
    share = core.div(share, core.reduce_sum(share, axes=[0], keep_dims=True))
    means, variances = part(of_ranks, 1, 1, 1 + channels), part(of_ranks, 1, 1 + channels, 1 + 2 * channels)
    mean = core.reduce_sum(core.mul(share, means), axes=[0], keep_dims=True)
    spread = core.add(variances, core.square(core.sub(means, mean)))
    return reshape(mean, (-1,)), core.reduce_sum(core.mul(share, spread), axes=[0], keep_dims=False)


def _channel(x, data_format):
    return 1 if data_format.startswith("NC") else len(x.shape) - 1


def moved_average(running, new, momentum):
    """running * (1 - momentum) + new * momentum"""
    return core.add(core.mul(running, number(1.0 - momentum, running)), core.mul(new, number(momentum, new)))


def follow(pairs, momentum):
    """Has each Parameter follow what a batch has: (running, new)."""
    with core.without_gradients():
        moved = [moved_average(running, new, momentum) for running, new in pairs]
    for (running, _), made in zip(pairs, moved):
        core.assign(running, made)


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
