"""Losses of each element or row."""

import numpy as np
from cairn.ms import core
from cairn.ms.numerics.basic import cast, is_float, ints, nptype, number, reshape, xlogy


def reduced(loss, reduction):
    """The mean or sum of all elements, or the loss itself for "none"."""
    if reduction in ("none", None):
        return loss
    row = core.reduce_mean if reduction == "mean" else core.reduce_sum
    return row(loss, axes=list(range(len(loss.shape))), keep_dims=False) if len(loss.shape) else loss


def softmax_cross_entropy(logits, labels):
    """(loss of each row, gradient). As in MindSpore the loss has the gradient softmax - labels by the logits, also where labels do not add up
    to 1, and none by the labels."""
    labels = core.stop_gradient(labels)
    loss, slope = core.softmax_cross_entropy(logits, labels)
    if core.here.recorder is None:
        return loss, slope
    last = [len(logits.shape) - 1]
    most = core.stop_gradient(core.reduce_max(logits, axes=last, keep_dims=True))
    whole = core.log(core.reduce_sum(core.exp(core.sub(logits, most)), axes=last, keep_dims=False))  # whose gradient is the softmax
    rest = core.sub(number(1, loss), core.reduce_sum(labels, axes=last, keep_dims=False))
    return core.add(loss, core.mul(rest, core.sub(whole, core.stop_gradient(whole)))), slope


def sparse_softmax_cross_entropy(logits, labels):
    return core.sparse_softmax_cross_entropy(logits, labels if nptype(labels) == np.int64 else cast(labels, np.int32))


def sigmoid_cross_entropy(logits, labels):
    """log(1 + exp(x)) - x * label"""
    return core.sub(core.softplus(logits), core.mul(logits, labels))


def bce_with_logits(logits, labels, weight, pos_weight):
    """Binary cross entropy of logits, the share of label 1 times pos_weight; the weights have no gradient."""
    weight, pos_weight = core.stop_gradient(weight), core.stop_gradient(pos_weight)
    more = core.add(core.mul(core.sub(pos_weight, number(1, logits)), labels), number(1, logits))
    low = core.mul(more, core.softplus(core.neg(logits)))
    loss = core.add(core.mul(core.sub(number(1, logits), labels), logits), low)
    return core.mul(loss, weight)


def binary_cross_entropy(x, labels, weight=None):
    least = -100.0
    one = number(1, x)
    yes = core.maximum(core.log(x), number(least, x))
    no = core.maximum(core.log(core.sub(one, x)), number(least, x))
    loss = core.neg(core.add(core.mul(labels, yes), core.mul(core.sub(one, labels), no)))
    return loss if weight is None else core.mul(loss, core.stop_gradient(weight))


def smooth_l1(x, target, beta):
    """d^2 / (2 beta) where |d| < beta, else |d| - beta / 2"""
    size = core.abs(core.sub(x, target))
    if beta == 0:
        return size
    inner = core.mul(core.square(size), number(0.5 / beta, x))
    return core.select(core.less(size, number(beta, x)), inner, core.sub(size, number(0.5 * beta, x)))


def huber(x, target, delta):
    size = core.abs(core.sub(x, target))
    inner = core.mul(core.square(size), number(0.5, x))
    outer = core.mul(core.sub(size, number(0.5 * delta, x)), number(delta, x))
    return core.select(core.less_equal(size, number(delta, x)), inner, outer)


def kl_divergence(x, target):
    """target * (log(target) - x), 0 where target is not above 0; the target has no gradient."""
    target = core.stop_gradient(target)
    return core.sub(xlogy(core.relu(target), core.relu(target)), core.mul(core.relu(target), x))


def nll(log_probabilities, labels, weight=None, ignore_index=None, smoothing=0.0):
    """-weight[label] * log_probability[label] of each row, and the weights, 0 at ignored labels; classes along axis 1."""
    rank = len(log_probabilities.shape)
    classes = 1 if rank > 1 else 0
    count = log_probabilities.shape[classes]
    if rank > 2:
        log_probabilities = core.transpose(log_probabilities, permutation=[0, *range(2, rank), 1])
    log_probabilities = reshape(log_probabilities, (-1, count))
    labels_shape = labels.shape
    labels = cast(reshape(labels, (-1,)), np.int32)
    kept = None
    if ignore_index is not None:
        kept = core.not_equal(labels, np.int32(ignore_index))
        labels = core.select(kept, labels, np.int32(0))
    one, zero = number(1, log_probabilities), number(0, log_probabilities)
    hot = core.one_hot(labels, np.asarray(count, np.int64), one, zero, axis=-1)
    chosen = core.select(core.not_equal(hot, zero), log_probabilities, zero)  # products would make NaN of -inf elsewhere
    each = core.reduce_sum(chosen, axes=[1], keep_dims=False)
    weights = core.broadcast_to(one, ints(labels.shape))
    weighted = log_probabilities
    if weight is not None:
        weight = cast(weight, nptype(log_probabilities))
        weights = core.gather(weight, labels, axis=0)
        weighted = core.mul(log_probabilities, weight)
    if kept is not None:
        weights, each = core.select(kept, weights, zero), core.select(kept, each, zero)
    loss = core.neg(core.mul(each, weights))
    smooth = None
    if smoothing:
        smooth = core.neg(core.reduce_sum(weighted, axes=[1], keep_dims=False))
        if kept is not None:
            smooth = core.select(kept, smooth, zero)
        smooth = reshape(smooth, labels_shape)
    return reshape(loss, labels_shape), reshape(weights, labels_shape), smooth


def nll_reduced(log_probabilities, labels, weight=None, ignore_index=None, reduction="mean", smoothing=0.0):
    loss, weights, smooth = nll(log_probabilities, labels, weight, ignore_index, smoothing)
    total = None
    if reduction == "mean":
        total = reduced(weights, "sum")
    out = core.div(reduced(loss, "sum"), total) if total is not None else reduced(loss, reduction)
    if smooth is not None:
        count = log_probabilities.shape[1 if len(log_probabilities.shape) > 1 else 0]
        even = core.div(reduced(smooth, "sum"), total) if total is not None else reduced(smooth, reduction)
        kept, spread = number(1 - smoothing, out), number(smoothing / count, out)
        out = core.add(core.mul(out, kept), core.mul(even, spread))
    return out


def cross_entropy(logits, labels, weight=None, ignore_index=-100, reduction="mean", smoothing=0.0):
    """Of class numbers, or of probabilities with the shape of the logits."""
    axis = 1 if len(logits.shape) > 1 else 0
    log_probabilities = core.log_softmax(logits, axis=axis)
    if not is_float(labels):
        return nll_reduced(log_probabilities, labels, weight, ignore_index, reduction, smoothing)
    count = logits.shape[axis]
    if smoothing:
        labels = core.add(core.mul(labels, number(1 - smoothing, labels)), number(smoothing / count, labels))
    if weight is not None:
        log_probabilities = core.mul(log_probabilities, reshape(weight, (-1,) + (1,) * (len(logits.shape) - axis - 1)))
    loss = core.neg(core.reduce_sum(core.mul(log_probabilities, labels), axes=[axis], keep_dims=False))
    if reduction == "mean" and len(logits.shape) > 1:
        rows = int(np.prod(loss.shape))
        return core.div(reduced(loss, "sum"), number(rows, loss))
    return reduced(loss, reduction)


def cosine_similarity(x, y, axis, epsilon=1e-8):
    dot = core.reduce_sum(core.mul(x, y), axes=[axis], keep_dims=False)
    sizes = [core.reduce_sum(core.square(each), axes=[axis], keep_dims=False) for each in (x, y)]
    return core.div(dot, core.sqrt(core.maximum(core.mul(*sizes), number(epsilon * epsilon, x))))
