"""Learning rates as lists, constant inside an epoch."""

import math

from mindspore._checkparam import Validator


def _is_float(value, name, owner):
    Validator.check_positive_float(value, name, owner)


def _epochs(total_step, step_per_epoch, decay_epoch, owner):
    for value, name in ((total_step, "total_step"), (step_per_epoch, "step_per_epoch"), (decay_epoch, "decay_epoch")):
        Validator.check_positive_int(value, name, owner)
    return [i // step_per_epoch for i in range(total_step)]


def piecewise_constant_lr(milestone, learning_rates):
    """learning_rates[i] up to step milestone[i]."""
    owner = "piecewise_constant_lr"
    for value, name in ((milestone, "milestone"), (learning_rates, "learning_rates")):
        Validator.check_value_type(name, value, [tuple, list], owner)
    if len(milestone) != len(learning_rates):
        raise ValueError(
            f"For '{owner}', the lengths of 'milestone' and 'learning_rates' must be equal, but got {len(milestone)} and {len(learning_rates)}."
        )
    made, last = [], 0
    for step, rate in zip(milestone, learning_rates):
        Validator.check_positive_int(step, "milestone", owner)
        Validator.check_value_type("learning_rates", rate, [float], owner)
        if step < last:
            raise ValueError(f"For '{owner}', the numbers of 'milestone' must rise, but got {milestone}.")
        made += [rate] * (step - last)
        last = step
    return made


def _decay(owner, rule, doc):
    def function(learning_rate, decay_rate, total_step, step_per_epoch, decay_epoch, is_stair=False):
        _is_float(learning_rate, "learning_rate", owner)
        _is_float(decay_rate, "decay_rate", owner)
        Validator.check_value_type("is_stair", is_stair, [bool], owner)
        epochs = _epochs(total_step, step_per_epoch, decay_epoch, owner)
        return [learning_rate * rule(decay_rate, epoch, decay_epoch, is_stair) for epoch in epochs]

    function.__name__, function.__doc__ = owner, doc
    return function


def _part(epoch, decay_epoch, is_stair):
    return math.floor(epoch / decay_epoch) if is_stair else epoch / decay_epoch


exponential_decay_lr = _decay(
    "exponential_decay_lr",
    lambda rate, epoch, every, stair: rate ** _part(epoch, every, stair),
    "lr * rate^(epoch / decay_epoch)",
)
natural_exp_decay_lr = _decay(
    "natural_exp_decay_lr",
    lambda rate, epoch, every, stair: math.exp(-rate * (math.floor(epoch / every) * every if stair else epoch)),
    "lr * exp(-rate * epoch)",
)
inverse_decay_lr = _decay(
    "inverse_decay_lr",
    lambda rate, epoch, every, stair: 1 / (1 + rate * _part(epoch, every, stair)),
    "lr / (1 + rate * epoch / decay_epoch)",
)


def cosine_decay_lr(min_lr, max_lr, total_step, step_per_epoch, decay_epoch):
    """From max_lr to min_lr by half a cosine over decay_epoch epochs."""
    owner = "cosine_decay_lr"
    Validator.check_value_type("min_lr", min_lr, [float], owner)
    Validator.check_non_negative_float(min_lr, "min_lr", owner)
    _is_float(max_lr, "max_lr", owner)
    if min_lr >= max_lr:
        raise ValueError(f"For '{owner}', the 'max_lr' must be greater than 'min_lr', but got {max_lr} and {min_lr}.")
    half = 0.5 * (max_lr - min_lr)
    return [
        min_lr + half * (1 + math.cos(math.pi * min(epoch, decay_epoch) / decay_epoch))
        for epoch in _epochs(total_step, step_per_epoch, decay_epoch, owner)
    ]


def polynomial_decay_lr(
    learning_rate, end_learning_rate, total_step, step_per_epoch, decay_epoch, power, update_decay_epoch=False
):
    """From learning_rate to end_learning_rate by (1 - epoch / decay_epoch)^power."""
    owner = "polynomial_decay_lr"
    _is_float(learning_rate, "learning_rate", owner)
    Validator.check_value_type("end_learning_rate", end_learning_rate, [float], owner)
    Validator.check_non_negative_float(end_learning_rate, "end_learning_rate", owner)
    _is_float(power, "power", owner)
    Validator.check_value_type("update_decay_epoch", update_decay_epoch, [bool], owner)
    made = []
    for epoch in _epochs(total_step, step_per_epoch, decay_epoch, owner):
        length = decay_epoch * max(math.ceil(epoch / decay_epoch), 1) if update_decay_epoch else decay_epoch
        left = (1 - (epoch if update_decay_epoch else min(epoch, decay_epoch)) / length) ** power
        made.append((learning_rate - end_learning_rate) * left + end_learning_rate)
    return made


def warmup_lr(learning_rate, total_step, step_per_epoch, warmup_epoch):
    """lr * epoch / warmup_epoch up to warmup_epoch."""
    owner = "warmup_lr"
    if not isinstance(learning_rate, float):
        raise TypeError(f"For '{owner}', the 'learning_rate' must be float, but got {type(learning_rate).__name__}.")
    Validator.check_non_negative_float(learning_rate, "learning_rate", owner)
    Validator.check_non_negative_int(warmup_epoch, "warmup_epoch", owner)
    epochs = _epochs(total_step, step_per_epoch, 1, owner)
    if not warmup_epoch:
        return [learning_rate] * total_step
    return [learning_rate * min(epoch, warmup_epoch) / warmup_epoch for epoch in epochs]


__all__ = [
    "piecewise_constant_lr", "exponential_decay_lr", "natural_exp_decay_lr", "inverse_decay_lr", "cosine_decay_lr", "polynomial_decay_lr", "warmup_lr",
]  # fmt: skip
