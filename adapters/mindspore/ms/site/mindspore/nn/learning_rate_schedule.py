"""Learning rates as Cells of the step."""

import math

import numpy as np
from cairn.ms import core
from cairn.ms.numerics import basic
from mindspore._checkparam import Validator
from mindspore.nn.cell import Cell


class LearningRateSchedule(Cell):
    """The base: construct(global_step) gives the learning rate."""

    def __init__(self):
        super().__init__()

    def construct(self, global_step):
        raise NotImplementedError("a schedule defines construct(global_step)")


def _step(global_step):
    return (
        basic.cast(global_step, np.float32) if hasattr(global_step, "dtype") else core.identity(np.float32(global_step))
    )


def _number(value):
    return np.asarray(value, np.float32)


def _check(learning_rate, decay_rate, decay_steps, is_stair, owner):
    Validator.check_positive_int(decay_steps, "decay_steps", owner)
    Validator.check_positive_float(learning_rate, "learning_rate", owner)
    Validator.check_positive_float(decay_rate, "decay_rate", owner)
    Validator.check_value_type("is_stair", is_stair, [bool], owner)


class _Decay(LearningRateSchedule):
    def __init__(self, learning_rate, decay_rate, decay_steps, is_stair=False):
        super().__init__()
        _check(learning_rate, decay_rate, decay_steps, is_stair, type(self).__name__)
        self.learning_rate, self.decay_rate, self.decay_steps, self.is_stair = (
            learning_rate,
            decay_rate,
            decay_steps,
            is_stair,
        )

    def epochs(self, global_step):
        """Steps over decay_steps, whole ones where is_stair."""
        p = core.div(_step(global_step), _number(self.decay_steps))
        return core.floor(p) if self.is_stair else p


class ExponentialDecayLR(_Decay):
    """lr * decay_rate^(step / decay_steps)"""

    def construct(self, global_step):
        return core.mul(core.pow(_number(self.decay_rate), self.epochs(global_step)), _number(self.learning_rate))


class NaturalExpDecayLR(_Decay):
    """lr * exp(-decay_rate * step), the step rounded down to a multiple of decay_steps where is_stair. Releases divide neither."""

    def construct(self, global_step):
        p = _step(global_step)
        if self.is_stair:
            p = core.mul(core.floor(core.div(p, _number(self.decay_steps))), _number(self.decay_steps))
        return core.mul(core.exp(core.mul(p, _number(-self.decay_rate))), _number(self.learning_rate))


class InverseDecayLR(_Decay):
    """lr / (1 + decay_rate * step / decay_steps)"""

    def construct(self, global_step):
        below = core.add(core.mul(self.epochs(global_step), _number(self.decay_rate)), _number(1))
        return core.div(_number(self.learning_rate), below)


class CosineDecayLR(LearningRateSchedule):
    """From max_lr to min_lr by half a cosine over decay_steps."""

    def __init__(self, min_lr, max_lr, decay_steps):
        super().__init__()
        Validator.check_value_type("min_lr", min_lr, [float], "CosineDecayLR")
        Validator.check_non_negative_float(min_lr, "min_lr", "CosineDecayLR")
        Validator.check_positive_float(max_lr, "max_lr", "CosineDecayLR")
        Validator.check_positive_int(decay_steps, "decay_steps", "CosineDecayLR")
        if min_lr >= max_lr:
            raise ValueError(
                f"For 'CosineDecayLR', the 'max_lr' must be greater than 'min_lr', but got {max_lr} and {min_lr}."
            )
        self.min_lr, self.max_lr, self.decay_steps = min_lr, max_lr, decay_steps

    def construct(self, global_step):
        p = core.minimum(_step(global_step), _number(self.decay_steps))
        wave = core.cos(core.mul(p, _number(math.pi / self.decay_steps)))
        half = _number(0.5 * (self.max_lr - self.min_lr))
        return core.add(core.mul(core.add(wave, _number(1)), half), _number(self.min_lr))


class PolynomialDecayLR(LearningRateSchedule):
    """From learning_rate to end_learning_rate by (1 - step / decay_steps)^power."""

    def __init__(self, learning_rate, end_learning_rate, decay_steps, power, update_decay_steps=False):
        super().__init__()
        owner = "PolynomialDecayLR"
        Validator.check_positive_float(learning_rate, "learning_rate", owner)
        Validator.check_non_negative_float(end_learning_rate, "end_learning_rate", owner)
        if learning_rate <= end_learning_rate:
            raise ValueError(
                f"For '{owner}', the 'learning_rate' must be greater than 'end_learning_rate', but got {learning_rate} and {end_learning_rate}."
            )
        Validator.check_positive_int(decay_steps, "decay_steps", owner)
        Validator.check_value_type("update_decay_steps", update_decay_steps, [bool], owner)
        Validator.check_positive_float(power, "power", owner)
        self.learning_rate, self.end_learning_rate, self.decay_steps = learning_rate, end_learning_rate, decay_steps
        self.power, self.update_decay_steps = power, update_decay_steps

    def construct(self, global_step):
        step, length = _step(global_step), _number(self.decay_steps)
        if self.update_decay_steps:
            cycles = core.maximum(core.ceil(core.div(step, length)), _number(1))
            length = core.mul(cycles, length)
        else:
            step = core.minimum(step, length)
        left = core.pow(core.sub(_number(1), core.div(step, length)), _number(self.power))
        span = _number(self.learning_rate - self.end_learning_rate)
        return core.add(core.mul(left, span), _number(self.end_learning_rate))


class WarmUpLR(LearningRateSchedule):
    """lr * step / warmup_steps up to warmup_steps."""

    def __init__(self, learning_rate, warmup_steps):
        super().__init__()
        if not isinstance(learning_rate, float):
            raise TypeError(
                f"For 'WarmUpLR', the 'learning_rate' must be float, but got {type(learning_rate).__name__}."
            )
        Validator.check_non_negative_float(learning_rate, "learning_rate", "WarmUpLR")
        Validator.check_positive_int(warmup_steps, "warmup_steps", "WarmUpLR")
        self.learning_rate, self.warmup_steps = learning_rate, warmup_steps

    def construct(self, global_step):
        share = core.div(core.minimum(_step(global_step), _number(self.warmup_steps)), _number(self.warmup_steps))
        return core.mul(share, _number(self.learning_rate))


__all__ = [
    "LearningRateSchedule", "ExponentialDecayLR", "NaturalExpDecayLR", "InverseDecayLR", "CosineDecayLR", "PolynomialDecayLR", "WarmUpLR",
]  # fmt: skip
