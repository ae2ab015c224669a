"""What a map tells while its rows flow: callbacks of a data pipeline, and such as wait for the training loop."""

import threading

from mindspore.dataset.core import config
from mindspore.train.callback import Callback

__all__ = ["DSCallback", "WaitedDSCallback"]

_EVENTS = ("ds_begin", "ds_epoch_begin", "ds_epoch_end", "ds_step_begin", "ds_step_end")


class DSCallback:
    """DSCallback(step_size=1): a subclass defines some of its methods; those of steps are called for every step_size-th row."""

    def __init__(self, step_size=1):
        if isinstance(step_size, bool) or not isinstance(step_size, int):
            raise TypeError(f"Argument step_size with value {step_size} is not of type [<class 'int'>], but got {type(step_size)}.")
        if step_size < 1:
            raise ValueError("Input step_size is not within the required interval of [1, 2147483647].")
        self.step_size = step_size

    def ds_begin(self, ds_run_context):
        """Before the first row."""

    def ds_epoch_begin(self, ds_run_context):
        """Before the rows of a pass."""

    def ds_epoch_end(self, ds_run_context):
        """After the rows of a pass."""

    def ds_step_begin(self, ds_run_context):
        """Before a row."""

    def ds_step_end(self, ds_run_context):
        """After a row."""


class WaitedDSCallback(Callback, DSCallback):
    """A callback of the pipeline and of the training loop: a pass waits for the end of the training's epoch before it, a row for that of
    the step before it; then sync_epoch_begin and sync_step_begin are told both contexts."""

    def __init__(self, step_size=1):
        DSCallback.__init__(self, step_size)
        self.step_event, self.epoch_event = threading.Event(), threading.Event()
        self.step_run_context = self.epoch_run_context = None
        self.training_ended = False

    def sync_epoch_begin(self, train_run_context, ds_run_context):
        """A pass begins, and the training's epoch before it has ended."""

    def sync_step_begin(self, train_run_context, ds_run_context):
        """A row begins, and the training's step before it has ended."""

    def epoch_end(self, run_context):
        self.epoch_run_context = run_context
        self.epoch_event.set()

    def step_end(self, run_context):
        self.step_run_context = run_context
        self.step_event.set()

    def end(self, run_context):
        self.epoch_end(run_context)
        self.step_end(run_context)
        self.training_ended = True

    def ds_epoch_begin(self, ds_run_context):
        if ds_run_context.cur_epoch_num > 1:
            self._wait(self.epoch_event, "ds_epoch_begin")
            self.sync_epoch_begin(self.epoch_run_context, ds_run_context)

    def ds_step_begin(self, ds_run_context):
        if ds_run_context.cur_step_num > self.step_size:
            self._wait(self.step_event, "ds_step_begin")
            self.sync_step_begin(self.step_run_context, ds_run_context)

    def _wait(self, event, name):
        seconds = config.get_callback_timeout()
        if not self.training_ended and not event.wait(timeout=seconds):
            raise RuntimeError(f"{name} timed out after {seconds} second(s).")
        event.clear()


class RunContext:
    """Where a pipeline is: cur_epoch_num, cur_step_num_in_epoch, cur_step_num."""

    def __init__(self):
        self.cur_epoch_num = self.cur_step_num_in_epoch = self.cur_step_num = 0


class Told:
    """The callbacks of one map in one iterator."""

    def __init__(self, callbacks):
        self._callbacks, self._context, self._in_pass = callbacks, RunContext(), False

    def _tell(self, event, due=lambda _: True):
        for each in filter(due, self._callbacks):
            try:
                getattr(each, event)(self._context)
            except Exception as error:
                raise RuntimeError(f"Exception thrown from a callback of the dataset. {type(error).__name__}: {error}") from error

    def begin(self):
        """Before each row that the iterator is asked for."""
        if self._in_pass:
            return
        if not self._context.cur_epoch_num:
            self._tell("ds_begin")
        self._in_pass = True
        self._context.cur_epoch_num += 1
        self._context.cur_step_num_in_epoch = 0
        self._tell("ds_epoch_begin")

    def end(self):
        """After the last row of a pass."""
        self._in_pass = False
        self._tell("ds_epoch_end")

    def around(self, call):
        """The call for one row, told."""

        def told(*row):
            context = self._context
            context.cur_step_num_in_epoch += 1
            context.cur_step_num += 1

            def due(callback):
                return (context.cur_step_num_in_epoch - 1) % callback.step_size == 0

            self._tell("ds_step_begin", due)
            made = call(*row)
            self._tell("ds_step_end", due)
            return made

        return told


def checked(callbacks):
    """A list of callbacks."""
    if callbacks is None:
        return []
    several = isinstance(callbacks, (list, tuple))
    for place, each in enumerate(callbacks if several else [callbacks]):
        if not isinstance(each, DSCallback):
            name = f"callbacks[{place}]" if several else "callbacks"
            raise TypeError(f"Argument {name} with value {each} is not of type [{DSCallback}], but got {type(each)}.")
        if all(getattr(type(each), name) is getattr(DSCallback, name) for name in _EVENTS):
            raise AttributeError("Provided Callback class did not override any of the 6 callback methods.")
    return list(callbacks) if several else [callbacks]
