"""What the tests of npu_bridge share: the packages on stock TensorFlow, a fresh graph for each test."""

import os

import pytest
from tensorflow_adapter import use_packages

os.environ["CAIRN_ENGINE"] = "tensorflow"
use_packages()

import tensorflow.compat.v1 as tf  # noqa: E402

tf.disable_v2_behavior()

from npu_bridge import options  # noqa: E402


@pytest.fixture(autouse=True)
def fresh_graph():
    tf.reset_default_graph()
    options._told.clear()


def value_of(tensors, feed=None):
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        return sess.run(tensors, feed)
