"""Session hooks of the platform."""

import os

import tensorflow.compat.v1 as tf

from hccl.manage.api import get_rank_size
from npu_bridge import environment, sessions
from npu_bridge.estimator.npu import util
from npu_bridge.hccl import collectives


class NPUShutDownHook(tf.train.SessionRunHook):
    """Stands where the platform shuts its system down."""


class NPUInfeedOutfeedSessionHook(tf.train.SessionRunHook):
    """Stands where the platform feeds a device channel."""

    def __init__(self, dequeue_ops=None, channel_name=None):
        self._dequeue_ops, self._channel_name = dequeue_ops, channel_name


class NPULogOutfeedSessionHook(tf.train.SessionRunHook):
    """Stands where the platform prints what comes from the device; here tf.print writes to the stream itself."""

    def __init__(self, output_stream=None):
        self._output_stream = output_stream


class NPUBroadcastGlobalVariablesHook(tf.train.SessionRunHook):
    """Gives all ranks the global variables of `root_rank` after the session was made: also where that rank alone restored a
    checkpoint, all go on from the same step. With one rank there is nothing to give."""

    def __init__(self, root_rank=None, index=None):
        self._root_rank = 0 if root_rank is None else root_rank
        self._index = environment.rank_id() if index is None else index
        self._operation = None

    def begin(self):
        self._operation = broadcast_global_variables(self._root_rank, self._index) if get_rank_size() > 1 else None

    def after_create_session(self, session, coord):
        if self._operation is not None:
            session.run(self._operation)


def broadcast_global_variables(root_rank, index):
    """An op that gives the global variables rank `root_rank`'s values; also the name scripts import."""
    return collectives.assign_from(root_rank, tf.global_variables()) if get_rank_size() > 1 else tf.no_op()


class NPUCheckpointSaverHook(tf.train.CheckpointSaverHook):
    """Saves every `save_steps` or `save_secs`, also where several steps make one run."""

    def __init__(self, checkpoint_dir, save_secs=None, save_steps=None, saver=None, checkpoint_basename="model.ckpt",
                 scaffold=None, listeners=None):  # fmt: skip
        super().__init__(checkpoint_dir, save_secs, save_steps, saver, checkpoint_basename, scaffold, listeners)


class NPUOutputTensorHook(tf.train.SessionRunHook):
    """Collects `tensors` (a dict) of each run and hands lists of them to `output_fn` after every `output_every_n_steps` runs, and
    what is left at the end."""

    def __init__(self, tensors, dependencies=None, output_fn=None, output_every_n_steps=0):
        if not isinstance(tensors, dict):
            raise TypeError(f"tensors must be a dict, got {type(tensors)}")
        util.check_not_none(output_fn, "output_fn")
        util.check_nonnegative_integer(output_every_n_steps, "output_every_n_steps")
        self._tensors, self._dependencies = tensors, dependencies
        self._output_fn, self._every = output_fn, output_every_n_steps
        self._collected = []

    def begin(self):
        self._collected = []

    def before_run(self, run_context):
        extra = [] if self._dependencies is None else self._dependencies
        return tf.train.SessionRunArgs([self._tensors, extra])

    def after_run(self, run_context, run_values):
        self._collected.append(run_values.results[0])
        if self._every and len(self._collected) >= self._every:
            self._hand_over()

    def end(self, session):
        if self._collected:
            self._hand_over()

    def _hand_over(self):
        collected, self._collected = self._collected, []
        self._output_fn({name: [item[name] for item in collected] for name in self._tensors})


class SetIterationsVarHook(tf.train.SessionRunHook):
    """Tells the session how many training steps one run of IterationOp makes."""

    def __init__(self, iterations_per_loop=None):
        self._iterations_per_loop = 1 if iterations_per_loop is None else iterations_per_loop
        util.check_positive_integer(self._iterations_per_loop, "iterations_per_loop")

    def begin(self):
        self._variables = util._loop_variables()

    def after_create_session(self, session, coord):
        for variable, value in zip(self._variables, (self._iterations_per_loop - 1, 0, 0, 1)):
            variable.load(value, session=session)
        for operation in session.graph.get_operations():
            if operation.name.split("/")[-1] == "IterationOp":
                sessions.set_steps(operation, self._iterations_per_loop)


class TellMeStepOrLossHook(tf.train.SessionRunHook):
    """Publishes how far training is, in the environment: STEP_NOW and TOTAL_STEP, or LOSS_NOW and TARGET_LOSS."""

    def __init__(self, step=None, total_step=None, loss=None, final_loss=None):
        if step is None and loss is None:
            raise ValueError("step and loss must not both be None")
        self._tensors = {name: tensor for name, tensor in (("STEP_NOW", step), ("LOSS_NOW", loss)) if tensor is not None}
        self._goals = {"TOTAL_STEP": total_step, "TARGET_LOSS": final_loss}

    def begin(self):
        os.environ.update({name: str(value) for name, value in self._goals.items() if value is not None})

    def before_run(self, run_context):
        return tf.train.SessionRunArgs(self._tensors)

    def after_run(self, run_context, run_values):
        os.environ.update({name: str(value) for name, value in run_values.results.items()})
