"""An unrolled recurrent network, time first."""

import tensorflow.compat.v1 as tf


def npu_dynamic_rnn(cell, inputs, initial_state=None, dtype=None, sequence_length=None, scope=None):
    """(outputs [time, batch, size], state). The number of steps must be known."""
    steps = tf.unstack(inputs, axis=0)
    outputs, state = tf.nn.static_rnn(cell, steps, initial_state, dtype, sequence_length, scope)
    return tf.stack(outputs, axis=0), state
