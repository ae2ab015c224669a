"""The Keras callback that gives all ranks the variables of one; with one rank there is nothing to give."""

import tensorflow.compat.v1 as tf

from hccl.manage.api import get_rank_size
from npu_bridge.hccl import collectives


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
