"""The platform's Saver; every rank has all variables, so that it is TensorFlow's."""

import tensorflow.compat.v1 as tf


class NPUSaver(tf.train.Saver):
    pass
