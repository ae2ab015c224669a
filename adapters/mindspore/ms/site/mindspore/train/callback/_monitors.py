"""Callbacks that print, in the words of each level."""

import time

import numpy as np
from cairn.ms import level

from mindspore._checkparam import Validator
from mindspore.train._utils import check_int, number, step_loss
from mindspore.train.callback._callback import Callback

__all__ = ["LossMonitor", "TimeMonitor"]


class LossMonitor(Callback):
    """Prints the loss, and ends the training where it is NaN or infinite."""

    def __init__(self, per_print_times=1, lr_init=None, has_trained_epoch=0):
        Validator.check_non_negative_int(has_trained_epoch, "has_trained_epoch", "LossMonitor")
        if isinstance(per_print_times, bool) or not isinstance(per_print_times, int) or per_print_times < 0:
            raise ValueError(f"The argument 'per_print_times' must be int and >= 0, but got {per_print_times}")
        self._per_print_times, self._lr_init, self._last_print_time = per_print_times, lr_init, 0
        self._trained = has_trained_epoch

    def step_end(self, run_context):
        told = run_context.original_args()
        loss = number(step_loss(told.net_outputs))
        if level.at_least("1.10") and isinstance(loss, (float, np.floating)):
            loss = float(loss)
        step = (told.cur_step_num - 1) % told.batch_num + 1
        if isinstance(loss, (float, np.floating)) and not np.isfinite(loss):
            raise ValueError(self._invalid(told.cur_epoch_num, step))
        if self._due(told.cur_step_num):
            print(f"epoch: {told.cur_epoch_num + self._trained} step{':' if level.at_least('1.1') else ''} {step}, loss is {loss!s}", flush=True)

    on_train_step_end = step_end

    def on_eval_step_end(self, run_context):
        """Evaluation has no loss to watch."""

    def on_train_epoch_end(self, run_context):
        self.epoch_end(run_context)
        told = run_context.original_args()
        if told.get("eval_results"):
            print("Eval result: epoch %d, metrics: %s" % (told.cur_epoch_num, told.eval_results), flush=True)

    @staticmethod
    def _invalid(epoch, step):
        if level.at_least("1.10"):
            return f"In epoch: {epoch} step: {step}, loss is NAN or INF, training process cannot continue, terminating training."
        return f"epoch: {epoch} step: {step}. Invalid loss, terminating training."

    def _due(self, step):
        if self._per_print_times == 0:
            return False
        if not level.at_least("1.10"):
            return step % self._per_print_times == 0
        if step <= self._last_print_time:  # another run
            self._last_print_time = 0
        if step - self._last_print_time >= self._per_print_times:
            self._last_print_time = step
            return True
        return False


class TimeMonitor(Callback):
    """Prints the time of each epoch, and of its steps."""

    def __init__(self, data_size=None):
        if data_size is None and not level.at_least("1.1"):
            raise TypeError("TimeMonitor() missing the argument 'data_size'")
        self.data_size = data_size
        self.epoch_time = time.time()

    def epoch_begin(self, run_context):
        self.epoch_time = time.time()

    def epoch_end(self, run_context):
        epoch = (time.time() - self.epoch_time) * 1000
        told = run_context.original_args()
        steps = self.data_size
        if level.at_least("1.1") and isinstance(told.get("batch_num"), int) and told.batch_num > 0:
            steps = told.batch_num
        if not isinstance(steps, int) or steps < 1:
            raise ValueError("data_size must be positive int.")
        if level.at_least("1.1"):
            mode = f"{told.get('mode', '').title()} " if level.at_least("1.10") else ""
            print(f"{mode}epoch time: {epoch:5.3f} ms, per step time: {epoch / steps:5.3f} ms", flush=True)
        else:
            print(f"epoch time: {epoch}, per step time: {epoch / steps}", flush=True)
