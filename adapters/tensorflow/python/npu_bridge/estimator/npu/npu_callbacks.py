"""The Keras callback that spreads rank 0's variables; with one rank there is nothing to spread."""

import tensorflow.compat.v1 as tf

from npu_bridge import environment


class NPUBroadcastGlobalVariablesCallback(tf.keras.callbacks.Callback):
    def __init__(self, root_rank):
        super().__init__()
        environment.require_one_rank("NPUBroadcastGlobalVariablesCallback")
        self.root_rank = root_rank
        self.broadcast_done = False

    def on_batch_begin(self, batch, logs=None):
        self.broadcast_done = True
