"""Decoding with cropping and resizing in one call."""

import tensorflow.compat.v1 as tf


def decode_and_resize_jpeg(image, size):
    """uint8 [height, width, 3]: the JPEG at `size`, bilinear."""
    return _resized(tf.image.decode_jpeg(image, channels=3), size)


def decode_and_crop_and_resize_jpeg(image, crop_size, size):
    """The same of a window (y, x, height, width)."""
    return _resized(tf.image.decode_and_crop_jpeg(image, crop_size, channels=3), size)


def _resized(pixels, size):
    resized = tf.image.resize_bilinear(tf.expand_dims(pixels, 0), size)[0]
    return tf.cast(tf.round(resized), tf.uint8)
