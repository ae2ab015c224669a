"""Data set functions that the platform can run on its device; here they are TensorFlow's."""

import tensorflow.compat.v1 as tf


def map(map_func, num_parallel_npu=28, output_device="cpu"):  # noqa: A001  the platform's name
    return lambda dataset: dataset.map(map_func, num_parallel_calls=tf.data.experimental.AUTOTUNE)


def map_and_batch(map_func, batch_size, num_parallel_npu=28, drop_remainder=False, output_device="cpu"):
    def apply(dataset):
        mapped = dataset.map(map_func, num_parallel_calls=tf.data.experimental.AUTOTUNE)
        return mapped.batch(batch_size, drop_remainder=drop_remainder)

    return apply
