"""Shapes as tensors."""

import tensorflow.compat.v1 as tf


def getshape(x):
    return [tf.shape(item) for item in x] if isinstance(x, (list, tuple)) else tf.shape(x)
