"""Callbacks that watch a measure: stop, or lower the learning rate."""

import copy

import numpy as np

from mindspore import log as logger
from mindspore.common.parameter import Parameter
from mindspore.common.tensor import Tensor
from mindspore.train._utils import number, step_loss
from mindspore.train.callback._callback import Callback

__all__ = ["EarlyStopping", "History", "LambdaCallback", "LearningRateScheduler", "ReduceLROnPlateau"]

_SMALLER = ("loss", "mae", "mse", "perplexity", "mean_absolute_error", "mean_square_error", "hausdorff_distance", "occlusion_sensitivity")


class _Watch(Callback):
    """What both share: the measure of an epoch, and whether it is better."""

    def __init__(self, monitor, min_delta, patience, verbose, mode):
        who = type(self).__name__
        if not isinstance(monitor, str):
            raise TypeError(f"For '{who}', the argument 'monitor' must be str, but got {type(monitor)}.")
        if isinstance(patience, bool) or not isinstance(patience, int):
            raise TypeError(f"For '{who}', the argument 'patience' must be int, but got {type(patience)}.")
        if patience < 0:
            raise ValueError(f"For '{who}', the argument 'patience' must be >= 0, but got {patience}.")
        if not isinstance(verbose, bool):
            raise TypeError(f"For '{who}', the argument 'verbose' must be bool, but got {type(verbose)}.")
        if isinstance(min_delta, bool) or not isinstance(min_delta, (int, float)):
            raise TypeError(f"For '{who}', the argument 'min_delta' must be a number, but got {type(min_delta)}.")
        if mode not in ("auto", "min", "max"):
            raise ValueError(f"For '{who}', the argument 'mode' must be 'auto', 'min' or 'max', but got {mode}.")
        self.monitor, self.min_delta, self.patience, self.verbose = monitor, abs(min_delta), patience, verbose
        self.smaller = mode == "min" or (mode == "auto" and monitor.rsplit("eval_", 1)[-1] in _SMALLER)
        self.worst = float("inf") if self.smaller else float("-inf")

    def better(self, value, than):
        """Whether a measure is better than another by min_delta."""
        return value < than - self.min_delta if self.smaller else value > than + self.min_delta

    def measure(self, run_context):
        """The measure of this epoch; None with a warning where there is none."""
        told = run_context.original_args()
        measures = {"eval_" + name if not name.startswith("eval_") else name: value for name, value in (told.get("eval_results") or {}).items()}
        measures["loss"] = number(step_loss(told.net_outputs))
        value = measures.get(self.monitor)
        if value is None:
            logger.warning(f"{type(self).__name__} is conditioned on {self.monitor}, which is not available; there are: "
                           f"{', '.join(measures)}.")
            return None
        if isinstance(value, np.ndarray) and value.size > 1:
            logger.warning(f"The average of {self.monitor} is watched.")
        return float(np.mean(value))


class EarlyStopping(_Watch):
    """Ends the training when a measure has not become better for `patience` epochs."""

    def __init__(self, monitor="eval_loss", min_delta=0, patience=0, verbose=False, mode="auto", baseline=None, restore_best_weights=False):
        super().__init__(monitor, min_delta, patience, verbose, mode)
        if baseline is not None and (isinstance(baseline, bool) or not isinstance(baseline, (int, float))):
            raise TypeError(f"For 'EarlyStopping', the argument 'baseline' must be a number, but got {type(baseline)}.")
        if not isinstance(restore_best_weights, bool):
            raise TypeError(f"For 'EarlyStopping', the argument 'restore_best_weights' must be bool, but got {type(restore_best_weights)}.")
        self.baseline, self.restore_best_weights = baseline, restore_best_weights

    def on_train_begin(self, run_context):
        self.waited, self.stopped_epoch, self.best_weights = 0, 0, None
        self.best = self.worst if self.baseline is None else self.baseline

    def on_train_epoch_end(self, run_context):
        told = run_context.original_args()
        value = self.measure(run_context)
        if value is None:
            return
        if self.better(value, self.best):
            self.waited, self.best = 0, value
            if self.restore_best_weights:
                self.best_weights = {each.name: np.array(each.asnumpy()) for _, each in told.train_network.parameters_and_names()}
            return
        self.waited += 1
        if self.waited >= self.patience:
            self.stopped_epoch = told.cur_epoch_num
            run_context.request_stop()
            if self.restore_best_weights and self.best_weights is not None:
                for _, each in told.train_network.parameters_and_names():
                    each.set_data(Tensor(self.best_weights[each.name]))

    def on_train_end(self, run_context):
        if self.stopped_epoch and self.verbose:
            print(f"Epoch {self.stopped_epoch:05d}: early stopping", flush=True)


class ReduceLROnPlateau(_Watch):
    """Lowers the learning rate when a measure has not become better for `patience` epochs."""

    def __init__(self, monitor="eval_loss", factor=0.1, patience=10, verbose=False, mode="auto", min_delta=1e-4, cooldown=0, min_lr=0):
        super().__init__(monitor, min_delta, patience, verbose, mode)
        if isinstance(factor, bool) or not isinstance(factor, (int, float)):
            raise TypeError(f"For 'ReduceLROnPlateau', the argument 'factor' must be a number, but got {type(factor)}.")
        if factor >= 1.0:
            raise ValueError("For 'ReduceLROnPlateau', the argument 'factor' must be < 1.0, but got {}.".format(factor))
        if isinstance(cooldown, bool) or not isinstance(cooldown, int):
            raise TypeError(f"For 'ReduceLROnPlateau', the argument 'cooldown' must be int, but got {type(cooldown)}.")
        if cooldown < 0 or min_lr < 0:
            raise ValueError("For 'ReduceLROnPlateau', the arguments 'cooldown' and 'min_lr' must be >= 0.")
        self.factor, self.cooldown, self.min_lr = factor, cooldown, min_lr

    def on_train_begin(self, run_context):
        self.waited = self.cooling = 0
        self.best = self.worst

    def on_train_epoch_end(self, run_context):
        told = run_context.original_args()
        rate = learning_rate(told.optimizer, "ReduceLROnPlateau")
        value = self.measure(run_context)
        if value is None:
            return
        if self.cooling:
            self.cooling, self.waited = self.cooling - 1, 0
        if self.better(value, self.best):
            self.best, self.waited = value, 0
        elif not self.cooling:
            self.waited += 1
            if self.waited >= self.patience:
                old = float(rate.asnumpy())
                if old > self.min_lr:
                    new = max(old * self.factor, self.min_lr)
                    set_learning_rate(rate, new)
                    if self.verbose:
                        print(f"Epoch {told.cur_epoch_num:05d}: ReduceLROnPlateau reducing learning rate to {new}.", flush=True)
                    self.cooling, self.waited = self.cooldown, 0


def learning_rate(optimizer, who):
    """The Parameter of an optimizer's constant learning rate."""
    rate = getattr(optimizer, "learning_rate", None)
    if not isinstance(rate, Parameter) or rate.asnumpy().size != 1:
        raise ValueError(f"For '{who}', the learning rate must be a constant: groups, lists and schedules are not supported.")
    return rate


def set_learning_rate(rate, value):
    """A new value in the Parameter."""
    rate.set_data(Tensor(np.full(rate.asnumpy().shape, value, rate.asnumpy().dtype)))


class LearningRateScheduler(Callback):
    """learning_rate_function(rate, step) is the next learning rate."""

    def __init__(self, learning_rate_function):
        if not callable(learning_rate_function):
            raise TypeError("For 'LearningRateScheduler', the argument 'learning_rate_function' must be a function.")
        self.learning_rate_function = learning_rate_function

    def step_end(self, run_context):
        told = run_context.original_args()
        rate = learning_rate(told.optimizer, "LearningRateScheduler")
        value = self.learning_rate_function(float(rate.asnumpy()), told.cur_step_num)
        if not isinstance(value, (float, np.floating)):
            raise TypeError(f"The output of learning_rate_function must be float, but got {type(value)}.")
        set_learning_rate(rate, value)

    def on_eval_step_end(self, run_context):
        """Evaluation has no learning rate."""


class LambdaCallback(Callback):
    """Functions as a callback."""

    def __init__(self, **functions):
        for name, function in functions.items():
            if not name.startswith(("on_train_", "on_eval_")) or not hasattr(Callback, name):
                raise TypeError(f"LambdaCallback() got an unexpected keyword argument '{name}'")
            if function is not None:
                setattr(self, name, function)


class History(Callback):
    """Losses and measures of the epochs, in `history` and `epoch`."""

    def __init__(self):
        self.history = {}

    def begin(self, run_context):
        self.epoch = {"epoch": []}

    def on_eval_begin(self, run_context):
        """Kept from the training."""

    on_eval_epoch_end = on_eval_begin

    def epoch_end(self, run_context):
        told = run_context.original_args()
        self.epoch.setdefault("epoch", []).append(told.get("cur_epoch_num", 1))
        outputs = told.net_outputs
        outputs = number(step_loss(outputs)) if not isinstance(outputs, dict) else outputs
        self.history.setdefault("net_output", []).append(copy.copy(outputs))
        for name, value in (told.get("eval_results") or {}).items():
            self.history.setdefault("eval_" + name if not name.startswith("eval_") else name, []).append(value)
