"""A recurrent network of the TensorFlow 1 kind."""
import tensorflow as tf
from tensorflow.contrib import layers, rnn


def lstm(images, units=24):
    cell = rnn.BasicLSTMCell(units)
    outputs, state = tf.nn.static_rnn(cell, tf.unstack(images, axis=1), dtype=tf.float32)
    return layers.fully_connected(outputs[-1], 10, activation_fn=None, weights_initializer=layers.xavier_initializer())
