"""The object `npu_unary_ops` with gelu and its relatives, as compositions whose gradients TensorFlow derives."""

import math

import tensorflow.compat.v1 as tf


class _UnaryOps:
    @staticmethod
    def gelu(features, name=None):
        """0.5 x (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3)))"""
        with tf.name_scope(name, "Gelu"):
            x = tf.convert_to_tensor(features)
            return 0.5 * x * (1.0 + tf.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * tf.pow(x, 3))))

    @staticmethod
    def gelu_grad(gradients, features, activations=None, name=None):
        """The gradient of gelu at `features`, times `gradients`."""
        with tf.name_scope(name, "GeluGrad"):
            x = tf.convert_to_tensor(features)
            t = tf.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * tf.pow(x, 3)))
            inner = math.sqrt(2 / math.pi) * (1.0 + 3 * 0.044715 * tf.square(x))
            return gradients * (0.5 * (1.0 + t) + 0.5 * x * (1.0 - tf.square(t)) * inner)

    @staticmethod
    def fast_gelu(features, name=None):
        """x * sigmoid(1.702 x)"""
        with tf.name_scope(name, "FastGelu"):
            x = tf.convert_to_tensor(features)
            return x * tf.sigmoid(1.702 * x)

    @staticmethod
    def fast_gelu_grad(gradients, features, name=None):
        with tf.name_scope(name, "FastGeluGrad"):
            x = tf.convert_to_tensor(features)
            s = tf.sigmoid(1.702 * x)
            return gradients * (s + 1.702 * x * s * (1.0 - s))


npu_unary_ops = _UnaryOps()
gelu, gelu_grad, fast_gelu, fast_gelu_grad = _UnaryOps.gelu, _UnaryOps.gelu_grad, _UnaryOps.fast_gelu, _UnaryOps.fast_gelu_grad
