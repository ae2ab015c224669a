"""Keras callbacks of jobs: one gives all ranks the variables of one, one averages metrics, two change the learning rate with the
number of ranks. With one rank there is nothing to give or to average."""

import numpy as np
import tensorflow.compat.v1 as tf

from hccl.manage.api import get_rank_size
from npu_bridge.hccl import collectives, hccl_ops


class NPUBroadcastGlobalVariablesCallback(tf.keras.callbacks.Callback):
    """Before the first batch; variables that the first batch makes get their values after it."""

    def __init__(self, root_rank):
        super().__init__()
        self.root_rank = root_rank
        self.broadcast_done = False
        self._given = set()

    def on_batch_begin(self, batch, logs=None):
        if not self.broadcast_done:
            self._give()

    def on_batch_end(self, batch, logs=None):
        if not self.broadcast_done:
            self._give()
            self.broadcast_done = True

    def _give(self):
        if get_rank_size() == 1:
            return
        if tf.executing_eagerly():
            variables = self._variables()
            collectives.assign_from(self.root_rank, variables)
            self._given.update(id(v) for v in variables)
            return
        session = tf.keras.backend.get_session()
        variables = [v for v in session.graph.get_collection(tf.GraphKeys.GLOBAL_VARIABLES)
                     if getattr(v, "_keras_initialized", False) and id(v) not in self._given]  # fmt: skip
        with session.graph.as_default():
            session.run(collectives.assign_from(self.root_rank, variables))
        self._given.update(id(v) for v in variables)

    def _variables(self):
        model = self.model
        weights = model.weights if model.built else []
        optimizer = getattr(model, "optimizer", None)
        slots = optimizer.variables if optimizer is not None else []
        return [v for v in [*weights, *(slots() if callable(slots) else slots)] if id(v) not in self._given]


class MetricAverageCallback(tf.keras.callbacks.Callback):
    """Replaces the metrics of an epoch by their means over the ranks, for the callbacks behind it."""

    def on_epoch_end(self, epoch, logs=None):
        names = sorted(name for name, value in (logs or {}).items() if isinstance(value, (int, float, np.number)))
        if not names or get_rank_size() == 1:
            return
        mine = np.array([logs[name] for name in names], np.float64)
        logs.update(zip(names, (float(value) for value in self._sum(mine) / get_rank_size())))

    @staticmethod
    def _sum(values):
        if tf.executing_eagerly():
            return hccl_ops.allreduce(tf.constant(values), "sum").numpy()
        with tf.Graph().as_default(), tf.Session() as session:
            return session.run(hccl_ops.allreduce(tf.constant(values), "sum"))


class LearningRateScheduleCallback(tf.keras.callbacks.Callback):
    """The learning rate is `initial_lr` times `multiplier` (a number, or a function of the epoch) from `start_epoch` until
    `end_epoch`; by the batch unless it is a staircase. Older scripts give no `initial_lr`: it is the optimizer's when training begins."""

    def __init__(self, initial_lr=None, multiplier=None, start_epoch=0, end_epoch=None, staircase=True, momentum_correction=True,
                 steps_per_epoch=None):  # fmt: skip
        super().__init__()
        if multiplier is None:
            initial_lr, multiplier = None, initial_lr
        self.initial_lr = initial_lr
        self.multiplier = multiplier if callable(multiplier) else lambda epoch: multiplier
        self.start_epoch, self.end_epoch, self.staircase = start_epoch, end_epoch, staircase and callable(multiplier)
        self.momentum_correction, self.steps_per_epoch = momentum_correction, steps_per_epoch
        self._epoch = 0

    def on_train_begin(self, logs=None):
        if self.initial_lr is None:
            self.initial_lr = float(tf.keras.backend.get_value(self.model.optimizer.learning_rate))
        samples, batch_size = self.params.get("samples"), self.params.get("batch_size")  # of arrays, in graph mode
        by_samples = -(-samples // batch_size) if samples and batch_size else None
        self.steps_per_epoch = self.steps_per_epoch or self.params.get("steps") or by_samples
        if not self.staircase and not self.steps_per_epoch:
            raise ValueError(f"{type(self).__name__}: steps_per_epoch is needed, Keras does not know it")

    def on_epoch_begin(self, epoch, logs=None):
        self._epoch = epoch

    def on_batch_begin(self, batch, logs=None):
        first = self.staircase and batch == 0
        if self._epoch < self.start_epoch or (self.end_epoch is not None and self._epoch >= self.end_epoch):
            return
        if first or not self.staircase:
            self._set(self._epoch if self.staircase else self._epoch + batch / self.steps_per_epoch)

    def _set(self, epoch):
        optimizer = self.model.optimizer
        name = "lr" if hasattr(optimizer, "lr") else "learning_rate"
        tf.keras.backend.set_value(getattr(optimizer, name), self.initial_lr * self.multiplier(epoch))

    def on_epoch_end(self, epoch, logs=None):
        if logs is not None:
            logs["lr"] = float(tf.keras.backend.get_value(self.model.optimizer.learning_rate))


class LearningRateWarmupCallback(LearningRateScheduleCallback):
    """From `initial_lr` divided by the number of ranks to `initial_lr` over the first epochs."""

    def __init__(self, initial_lr=None, warmup_epochs=5, momentum_correction=True, steps_per_epoch=None, verbose=0):
        size, self.verbose = get_rank_size(), verbose

        def multiplier(epoch):
            epoch += 1.0 / self.steps_per_epoch  # of the batch that comes, so that the last one has all of it
            return 1.0 / size * (epoch * (size - 1) / warmup_epochs + 1)

        super().__init__(initial_lr, multiplier, 0, warmup_epochs, False, momentum_correction, steps_per_epoch)

    def on_epoch_end(self, epoch, logs=None):
        super().on_epoch_end(epoch, logs)
        if self.verbose and epoch == self.end_epoch - 1:
            print(f"Epoch {epoch + 1}: finished gradual learning rate warmup to {logs['lr']:g}.")
