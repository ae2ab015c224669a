"""What the tests of the TensorFlow 1 layer share: the layer put in place, a fresh graph for each test."""

import os

import pytest
from tensorflow_adapter import use_packages

os.environ["CAIRN_ENGINE"] = "tensorflow"
use_packages()

import cairn_tf1  # noqa: E402

cairn_tf1.install()

import tensorflow as tf  # noqa: E402


@pytest.fixture(autouse=True)
def fresh_graph():
    tf.reset_default_graph()
    tf.set_random_seed(1)


def value_of(tensors, feed=None):
    with tf.Session() as sess:
        sess.run([tf.global_variables_initializer(), tf.local_variables_initializer(), tf.tables_initializer()])
        return sess.run(tensors, feed)
