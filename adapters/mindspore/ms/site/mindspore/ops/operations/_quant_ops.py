"""Primitives of quantisation while training: numbers rounded as whole numbers of few bits, and batch norms folded into weights."""

import numpy as np
from cairn.ms import core, refusal
from cairn.ms.numerics import basic
from mindspore.ops.operations._form import primitive, written


def _along(each, x, axis):
    """One number for each channel, as x broadcasts it; a single number as it is."""
    shape = [1] * len(x.shape)
    if each.shape and each.shape[0] != 1:
        shape[axis % len(shape)] = -1
    return basic.reshape(each, shape)


def _total(x, axis):
    return core.reduce_sum(x, axes=[i for i in range(len(x.shape)) if i != axis % len(x.shape)], keep_dims=False)


def _grid(self, low, high):
    """(lowest, highest, step): the range, widened to hold zero and moved so that zero is one of its whole numbers."""
    zero, bits = basic.number(0, low), self.num_bits
    low, high = core.minimum(low, zero), core.maximum(high, zero)
    first, last = int(self.narrow_range), 2**bits - 1
    if getattr(self, "symmetric", False):
        high = core.maximum(core.neg(low), high)
        low, first, last = core.neg(high), self.narrow_range - 2 ** (bits - 1), 2 ** (bits - 1) - 1
    step = core.div(core.sub(high, low), basic.number(last - first, low))
    step = core.select(core.equal(step, zero), basic.like(step, 1), step)
    at = core.minimum(core.maximum(core.sub(basic.number(first, low), core.div(low, step)), basic.number(first, low)), basic.number(last, low))
    at = core.floor(core.add(at, basic.number(0.5, at)))
    return (*(core.mul(core.sub(basic.number(end, at), at), step) for end in (first, last)), step)


def _inside(x, low, high):
    return core.and_(core.greater_equal(x, low), core.less_equal(x, high))


def _straight(inside, x, rounded):
    """rounded, whose gradient is that of x where x is inside."""
    kept = core.select(inside, x, basic.number(0, x))
    return core.add(kept, core.stop_gradient(core.sub(rounded, kept)))


def _rounded(x, low, high, step):
    cut = core.minimum(core.maximum(x, low), high)
    steps = core.floor(core.add(core.div(core.sub(cut, low), step), basic.number(0.5, x)))
    return _straight(_inside(x, low, high), x, core.add(core.mul(steps, step), low))


def _waits(self):
    """Whether a primitive that trains is called for one of its first `quant_delay` times, which leave x as it is."""
    if core.here.recorder is not None and core.here.recorder.symbolic:
        raise refusal.Uncaptured("calls are counted outside of graphs (quant_delay)")
    self.calls = getattr(self, "calls", -1) + 1
    return getattr(self, "training", True) and self.calls < self.quant_delay


def _fake(self, x, low, high):
    if getattr(self, "quant_delay", 0) and _waits(self):
        return x
    axis = getattr(self, "channel_axis", -1)
    return _rounded(x, *_grid(self, _along(low, x, axis), _along(high, x, axis)))


def _fake_slope(self, dy, x, low, high):
    if self.quant_delay and _waits(self):
        return dy
    axis = getattr(self, "channel_axis", -1)
    low, high, _ = _grid(self, _along(low, x, axis), _along(high, x, axis))
    return core.select(_inside(x, low, high), dy, basic.number(0, dy))


_BITS = {"num_bits": 8, "ema": False, "ema_decay": 0.999, "quant_delay": 0, "symmetric": False, "narrow_range": False, "training": True}
_SLOPE = {"num_bits": 8, "quant_delay": 0, "symmetric": False, "narrow_range": False}
FakeQuantPerLayer = primitive("FakeQuantPerLayer", _fake, "x in whole steps of one range.", **_BITS)
FakeQuantPerChannel = primitive("FakeQuantPerChannel", _fake, "x in whole steps of each channel's range.", **_BITS, channel_axis=1)
FakeQuantPerLayerGrad = primitive("FakeQuantPerLayerGrad", _fake_slope, "dy where x is in the range.", **_SLOPE)
FakeQuantPerChannelGrad = primitive("FakeQuantPerChannelGrad", _fake_slope, "dy where x is in its channel's range.", **_SLOPE, channel_axis=1)


def _vars_slope(whole):
    """dy where x is in the range; what lies below belongs to the lower end, what lies above to the upper."""

    def compute(self, dy, x, low, high):
        first, last, _ = _grid(self, low, high)
        total = (lambda each: core.reduce_sum(each, axes=list(range(len(x.shape))), keep_dims=False)) if whole else lambda each: _total(each, -1)
        where = lambda mask: core.select(mask, dy, basic.number(0, dy))  # noqa: E731
        ends = [total(where(mask)) for mask in (core.less(x, first), core.greater(x, last))]
        return where(_inside(x, first, last)), *(basic.reshape(each, low.shape) for each in ends)

    return compute


def _fake_vars(self, x, low, high):
    """x in whole steps, whose gradient is the lower end's for what lies below the range and the upper end's for what lies above."""
    low, high = _along(low, x, -1), _along(high, x, -1)
    first, last, step = _grid(self, low, high)
    rounded = _rounded(x, first, last, step)
    kept = core.select(core.less(x, first), low, core.select(core.greater(x, last), high, x))
    return core.add(kept, core.stop_gradient(core.sub(rounded, kept)))


_VARS = {"num_bits": 8, "narrow_range": False}
FakeQuantWithMinMaxVars = primitive("FakeQuantWithMinMaxVars", _fake_vars, "x in whole steps of one range.", **_VARS)
FakeQuantWithMinMaxVarsPerChannel = primitive("FakeQuantWithMinMaxVarsPerChannel", _fake_vars, "x in whole steps by last axis.", **_VARS)
FakeQuantWithMinMaxVarsGradient = primitive("FakeQuantWithMinMaxVarsGradient", _vars_slope(True), "By x and both ends.", **_VARS)
FakeQuantWithMinMaxVarsPerChannelGradient = primitive(
    "FakeQuantWithMinMaxVarsPerChannelGradient", _vars_slope(False), "By x and both ends.", **_VARS
)


def _range(axis):
    """The least and the largest element so far, never on one side of zero; with `ema` they move slowly."""

    def compute(self, x, low, high):
        axes = [i for i in range(len(x.shape)) if axis is None or i != self.channel_axis % len(x.shape)]
        made = []
        for row, bound, old in (("reduce_min", core.minimum, low), ("reduce_max", core.maximum, high)):
            new = basic.reshape(getattr(core, row)(x, axes=axes, keep_dims=False), old.shape)
            if self.ema:
                new = core.add(core.mul(old, basic.number(self.ema_decay, new)), core.mul(new, basic.number(1 - self.ema_decay, new)))
            made.append(bound(new, basic.number(0, new)))
        return tuple(made)

    return compute


MinMaxUpdatePerLayer = primitive("MinMaxUpdatePerLayer", _range(None), "(least, largest).", ema=False, ema_decay=0.999)
MinMaxUpdatePerChannel = primitive("MinMaxUpdatePerChannel", _range(1), "(least, largest) by channel.", ema=False, ema_decay=0.999, channel_axis=1)


def _learned(self, x, alpha, steps):
    """x / alpha, cut to [-1, 1] or [0, 1], in `steps` whole steps, times alpha."""
    axis = getattr(self, "channel_axis", -1)
    alpha = _along(alpha, x, axis)
    if self.quant_delay and _waits(self):
        return x
    scaled, low = core.div(x, alpha), basic.number(0 if self.neg_trunc else -1, x)
    cut = core.minimum(core.maximum(scaled, low), basic.number(1, x))
    rounded = core.div(core.floor(core.add(core.mul(cut, steps), basic.number(0.5, x))), steps)
    return core.mul(core.add(cut, core.stop_gradient(core.sub(rounded, cut))), alpha)


_LEARNED = {"quant_delay": 0, "neg_trunc": False, "training": True}
FakeLearnedScaleQuantPerLayer = primitive("FakeLearnedScaleQuantPerLayer", _learned, "x in whole steps of alpha.", **_LEARNED)
FakeLearnedScaleQuantPerChannel = primitive("FakeLearnedScaleQuantPerChannel", _learned, "The same by channel.", **_LEARNED, channel_axis=1)


def _moments(x):
    mean = core.div(_total(x, 1), basic.number(np.prod(x.shape) / x.shape[1], x))
    centred = core.sub(x, _along(mean, x, 1))
    return mean, core.div(_total(core.square(centred), 1), basic.number(np.prod(x.shape) / x.shape[1], x))


def _frozen(self, step):
    """Whether the step, a tensor of one number, is one of those that use the running statistics."""
    return self.freeze_bn > 0 and int(step.asnumpy().reshape(-1)[0]) >= self.freeze_bn


def _deviation(self, variance):
    return core.sqrt(core.add(variance, basic.number(self.epsilon, variance)))


def _fold(self, x, mean, variance, step):
    """(mean and deviation of the batch, running mean and deviation before it); moves the running statistics, which pass no gradient."""
    old = core.stop_gradient(core.identity(mean)), core.stop_gradient(_deviation(self, variance))
    if not self.is_training or _frozen(self, step):
        return basic.like(mean, 0), basic.like(mean, 1), *old
    new, spread = _moments(x)
    count = np.prod(x.shape) / x.shape[1]
    keep, rest = (basic.number(each, mean) for each in (self.momentum, 1 - self.momentum))
    written(mean, core.add(core.mul(mean, keep), core.mul(new, rest)))
    unbiased = core.mul(spread, basic.number(count / (count - 1), spread))
    written(variance, core.add(core.mul(variance, keep), core.mul(unbiased, rest)))
    return new, _deviation(self, spread), *old


def _fold_slope(self, d_mean, d_deviation, x, mean, deviation, step):
    if not self.is_training or _frozen(self, step):
        return basic.like(x, 0)
    along = lambda each: _along(each, x, 1)  # noqa: E731
    by_deviation = core.mul(core.div(along(d_deviation), along(deviation)), core.sub(x, along(mean)))
    return core.div(core.add(along(d_mean), by_deviation), basic.number(np.prod(x.shape) / x.shape[1], x))


def _fold2(self, x, beta, gamma, deviation, mean, running_deviation, running_mean, step):
    """x by the batch's deviation, and what the folded norm adds; the running statistics have no gradient."""
    running_deviation, running_mean = core.stop_gradient(running_deviation), core.stop_gradient(running_mean)
    along = lambda each: _along(each, x, 1)  # noqa: E731
    if _frozen(self, step):
        return core.add(x, along(core.sub(beta, core.div(core.mul(gamma, running_mean), running_deviation))))
    shift = core.sub(beta, core.div(core.mul(gamma, mean), deviation))
    return core.add(core.mul(x, along(core.div(running_deviation, deviation))), along(shift))


_FOLD = {"epsilon": 1e-5, "is_training": True, "freeze_bn": 0}
BatchNormFold = primitive("BatchNormFold", _fold, "Statistics of a batch and the running ones.", momentum=0.9, **_FOLD)
BatchNormFoldGrad = primitive("BatchNormFoldGrad", _fold_slope, "By x.", **_FOLD)
BatchNormFold2 = primitive("BatchNormFold2", _fold2, "A convolution's result as the batch's norm has it.", freeze_bn=0)


def _corrected(self, x, deviation, running):
    return core.mul(x, _along(core.div(deviation, core.stop_gradient(running)), x, self.channel_axis))


def _corrected_slope(self, dy, x, deviation, running):
    dx = core.mul(dy, _along(core.div(deviation, running), x, self.channel_axis))
    return dx, core.div(_total(core.mul(dy, x), self.channel_axis), running)


CorrectionMul = primitive("CorrectionMul", _corrected, "Weights by the deviation of a batch over the running one.", channel_axis=0)
CorrectionMulGrad = primitive("CorrectionMulGrad", _corrected_slope, "By the weights and the deviation.", channel_axis=0)
