"""A Saver that first collects variables that other ranks own; with one rank it is TensorFlow's Saver."""

import tensorflow.compat.v1 as tf

from npu_bridge import environment


class NPUSaver(tf.train.Saver):
    def save(self, *args, **kwargs):
        environment.require_one_rank("NPUSaver")
        return super().save(*args, **kwargs)
