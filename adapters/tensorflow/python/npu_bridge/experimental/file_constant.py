"""A constant whose bytes lie in a file."""

import tensorflow.compat.v1 as tf


def file_constant(shape, dtype, file_path=None, file_id=None):
    """The file's bytes as a tensor of `dtype` and `shape`, read when the graph runs."""
    if file_path is None:
        raise NotImplementedError("file_constant: file_id without file_path is not supported")
    return tf.reshape(tf.io.decode_raw(tf.io.read_file(file_path), dtype), shape)
