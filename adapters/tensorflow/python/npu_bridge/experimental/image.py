"""Image decoding by the platform's name."""

import tensorflow.compat.v1 as tf


def decode_image(contents, channels=0, dtype=tf.uint8, expand_animations=True):
    return tf.image.decode_image(contents, channels=channels, dtype=dtype, expand_animations=expand_animations)
