"""Handwritten digits as sequences of eight rows."""
import numpy as np
import tensorflow as tf
from sklearn.datasets import load_digits


def batches(batch_size):
    digits = load_digits()
    dataset = tf.data.Dataset.from_tensor_slices(((digits.images / 16).astype(np.float32), digits.target))
    dataset = dataset.shuffle(2000, seed=5).repeat().batch(batch_size)
    return dataset.make_one_shot_iterator().get_next()
