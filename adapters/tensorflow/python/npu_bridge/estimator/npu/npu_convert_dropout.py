"""Imported for its effect: Keras' Dropout layer, tf.layers.dropout with it, drops through npu_ops.dropout."""

import tensorflow.compat.v1 as tf

from npu_bridge.estimator import npu_ops

_Dropout = tf.keras.layers.Dropout
_plain_call = _Dropout.call


def _call(self, inputs, training=None):
    if self.noise_shape is not None or not 0 < self.rate < 1 or tf.executing_eagerly():
        return _plain_call(self, inputs, training=training)
    if training is None:
        training = tf.keras.backend.learning_phase()

    def dropped():
        return npu_ops.dropout(inputs, 1 - self.rate, seed=self.seed)

    if isinstance(training, (bool, int)):
        return dropped() if training else tf.identity(inputs)
    return tf.cond(tf.cast(training, tf.bool), dropped, lambda: tf.identity(inputs))


_Dropout.call = _call
