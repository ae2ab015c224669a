"""tf.contrib.eager: names that live in TensorFlow itself now."""

import tensorflow.compat.v1 as tf

Variable = tf.Variable
py_func, executing_eagerly = tf.py_function, tf.executing_eagerly
function, defun = tf.function, tf.function
list_devices = lambda: [device.name for device in tf.config.list_logical_devices()]
num_gpus = lambda: len(tf.config.list_logical_devices("GPU"))
Checkpoint = tf.train.Checkpoint
enable_eager_execution = tf.enable_eager_execution
