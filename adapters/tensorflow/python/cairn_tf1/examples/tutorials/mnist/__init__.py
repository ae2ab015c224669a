"""The MNIST tutorial's modules."""

from cairn_tf1.examples.tutorials.mnist import input_data  # noqa: F401
