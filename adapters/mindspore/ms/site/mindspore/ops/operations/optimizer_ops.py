"""Primitives that update Parameters: the rules are cairn.ms.numerics.updates."""

import numpy as np
from cairn.ms import core
from cairn.ms.numerics import basic, updates
from mindspore.common.tensor import Tensor
from mindspore.ops.operations._form import REQUIRED, parameter, primitive

LOCK = {"use_locking": False}


def _converted(x, variable):
    """x in the variable's dtype where that holds all of its numbers."""
    if not isinstance(x, Tensor) or not basic.is_float(x) or not basic.is_float(variable):
        return x
    return basic.cast(x, basic.nptype(variable)) if basic.nptype(x).itemsize < basic.nptype(variable).itemsize else x


def _wide(x):
    return basic.cast(x, np.float32) if isinstance(x, Tensor) and basic.nptype(x) == np.float16 else x


def _update(name, slots, rule, doc, returned=None, **attributes):
    """`slots` Parameters come first; rule(self, slots, others) gives their new values."""

    def compute(self, *inputs):
        own, others = inputs[:slots], inputs[slots:]
        for each in own:
            parameter(each, name)
        others = [_converted(each, own[0]) for each in others]
        half = basic.nptype(own[0]) == np.float16  # its steps are computed with more bits, and rounded once
        made = rule(self, list(map(_wide, own)), list(map(_wide, others))) if half else rule(self, own, others)
        for each, value in zip(own, made):
            core.assign(each, basic.cast(value, basic.nptype(each)) if half else value)
        return own[0] if returned == 1 or slots == 1 else own[: returned or slots]

    return primitive(name, compute, doc, **attributes)


def _momentum(self, slots, others):
    lr, gradient, rate = others
    gradient = updates.div(gradient, self.gradient_scale) if self.gradient_scale != 1.0 else gradient
    return updates.momentum(*slots, updates.same(gradient, slots[0]), lr, rate, self.use_nesterov)


ApplyMomentum = _update(
    "ApplyMomentum",
    2,
    _momentum,
    "v = momentum * v + g; p -= lr * v",
    1,
    use_nesterov=False,
    use_locking=False,
    gradient_scale=1.0,
)


def _fused_momentum(weighted):
    def compute(self, *inputs):
        decay = inputs[0] if weighted else None
        scale, p, v, lr, gradient, rate = inputs[1:] if weighted else inputs
        gradient = updates.same(gradient, p)
        if decay is not None:
            gradient = core.add(gradient, updates.mul(p, decay))
        for each, value in zip((p, v), updates.momentum(p, v, updates.mul(gradient, scale), lr, rate)):
            core.assign(each, value)
        return p

    return compute


FusedWeightScaleApplyMomentum = primitive(
    "FusedWeightScaleApplyMomentum", _fused_momentum(True), "Momentum with decay and scale."
)
FusedScaleApplyMomentum = primitive("FusedScaleApplyMomentum", _fused_momentum(False), "Momentum with scale.")


def _adam(self, slots, others):
    power1, power2, lr, beta1, beta2, epsilon, gradient = others
    return updates.adam(*slots, gradient, lr, beta1, beta2, epsilon, power1, power2, self.use_nesterov)


Adam = _update("Adam", 3, _adam, "Adam with TensorFlow's epsilon.", use_locking=False, use_nesterov=False)


def _adam_weight_decay(self, slots, others):
    lr, beta1, beta2, epsilon, decay, gradient = others
    return updates.adam_weight_decay(*slots, gradient, lr, beta1, beta2, epsilon, decay)


AdamWeightDecay = _update("AdamWeightDecay", 3, _adam_weight_decay, "Adam without correction, decoupled decay.", **LOCK)


def _sgd(self, p, gradient, lr, accum, rate, stat):
    values = updates.sgd(p, accum, stat, gradient, lr, rate, self.dampening, self.weight_decay, self.nesterov)
    for each, value in zip((p, accum, stat), values):
        core.assign(each, value)
    return p


SGD = primitive("SGD", _sgd, "Gradient descent with momentum.", dampening=0.0, weight_decay=0.0, nesterov=False)


def _adam_step(self, slots, others):
    """The moments after the step and what it adds to the parameter, which is not written."""
    power1, power2, lr, beta1, beta2, epsilon, g = others
    zero = updates.mul(slots[0], 0.0)
    return updates.adam(zero, *slots, g, lr, beta1, beta2, epsilon, power1, power2, self.use_nesterov)


def _adam_no_update(self, m, v, *others):
    for each in (m, v):
        parameter(each, "AdamNoUpdateParam")
    step, *moments = _adam_step(self, (m, v), others)
    for each, value in zip((m, v), moments):
        core.assign(each, value)
    return step


AdamNoUpdateParam = primitive("AdamNoUpdateParam", _adam_no_update, "What Adam adds to a parameter.", use_locking=False, use_nesterov=False)
FusedCastAdamWeightDecay = _update("FusedCastAdamWeightDecay", 3, _adam_weight_decay, "AdamWeightDecay of float16 gradients.", **LOCK)


def _ada_max(self, slots, others):
    power1, lr, beta1, beta2, epsilon, gradient = others
    return updates.ada_max(*slots, gradient, lr, beta1, beta2, epsilon, power1)


ApplyAdaMax = _update("ApplyAdaMax", 3, _ada_max, "Adam with the infinity norm.")
ApplyAdagrad = _update(
    "ApplyAdagrad",
    2,
    lambda self, s, o: updates.adagrad(*s, o[1], o[0], self.update_slots),
    "Adagrad.",
    update_slots=True,
)
ApplyAdagradV2 = _update(
    "ApplyAdagradV2",
    2,
    lambda self, s, o: updates.adagrad(*s, o[1], o[0], self.update_slots, self.epsilon),
    "Adagrad.",
    epsilon=REQUIRED,
    update_slots=True,
)
ApplyAdadelta = _update(
    "ApplyAdadelta", 3, lambda self, s, o: updates.ada_delta(*s, o[3], o[0], o[1], o[2]), "Adadelta."
)
ApplyAddSign = _update(
    "ApplyAddSign", 2, lambda self, s, o: updates.signed(*s, o[4], o[0], o[3], o[1], o[2], False), "AddSign."
)
ApplyPowerSign = _update(
    "ApplyPowerSign", 2, lambda self, s, o: updates.signed(*s, o[4], o[0], o[3], o[1], o[2], True), "PowerSign."
)
ApplyGradientDescent = _update(
    "ApplyGradientDescent", 1, lambda self, s, o: [core.sub(s[0], updates.mul(o[1], o[0]))], "p -= alpha * delta"
)
ApplyProximalGradientDescent = _update(
    "ApplyProximalGradientDescent",
    1,
    lambda self, s, o: [updates.proximal(s[0], o[3], updates.of(o[0], s[0]), o[1], o[2])],
    "Proximal descent.",
)
ApplyProximalAdagrad = _update(
    "ApplyProximalAdagrad",
    2,
    lambda self, s, o: updates.proximal_adagrad(*s, o[3], o[0], o[1], o[2]),
    "Proximal Adagrad.",
    **LOCK,
)
ApplyFtrl = _update(
    "ApplyFtrl", 3, lambda self, s, o: updates.ftrl(*s, o[0], o[1], o[2], o[3], o[4]), "FTRL.", 1, **LOCK
)


def _rms_prop(self, p, mean_square, moment, lr, gradient, decay, rate, epsilon):
    values = updates.rms_prop(p, mean_square, moment, gradient, lr, decay, rate, epsilon)
    for each, value in zip((p, mean_square, moment), values):
        core.assign(each, value)
    return p


def _centered_rms_prop(self, p, mean_gradient, mean_square, moment, gradient, lr, decay, rate, epsilon):
    values = updates.rms_prop(p, mean_square, moment, gradient, lr, decay, rate, epsilon, mean_gradient)
    for each, value in zip((p, mean_square, moment, mean_gradient), values):
        core.assign(each, value)
    return p


ApplyRMSProp = primitive("ApplyRMSProp", _rms_prop, "RMSProp.", **LOCK)
ApplyCenteredRMSProp = primitive("ApplyCenteredRMSProp", _centered_rms_prop, "RMSProp with the variance.", **LOCK)
LARSUpdate = primitive(
    "LARSUpdate", lambda self, p, g, p2, g2, decay, lr: updates.lars(p, g, decay, lr, self.epsilon, self.hyperpara, self.use_clip, (p2, g2)),
    "Gradient scaled by the ratio of norms; takes the sums of squares too.", epsilon=1e-5, hyperpara=0.001, use_clip=False,
)  # fmt: skip


def _amsgrad(self, slots, others):
    power1, power2, *rest, gradient = others
    lr = rest[0]
    beta1, beta2, epsilon = rest[1:] or (self.beta1, self.beta2, self.epsilon)
    return updates.adam(*slots[:3], gradient, lr, beta1, beta2, epsilon, power1, power2, largest=slots[3])


ApplyAdamWithAmsgrad = _update(
    "ApplyAdamWithAmsgrad", 4, _amsgrad, "Adam with the largest second moment.", beta1=0.9, beta2=0.999, epsilon=1e-8, use_locking=False
)
ApplyAdagradDA = _update(
    "ApplyAdagradDA",
    3,
    lambda self, s, o: updates.adagrad_da(*s, updates.same(o[0], s[0]), *o[1:]),
    "Dual averaging.",
    **LOCK,
)
