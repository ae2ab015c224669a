"""The TensorFlow backend of nets.py: NHWC, weights as constants (a frozen graph)."""

import math

import nets
import numpy as np
import tensorflow as tf


class Net:
    def __init__(self, weights):
        self.weights = weights
        self.flattened_from = None  # order of a flattened NHWC image in terms of the NCHW one

    def weight(self, name, order=None):
        array = self.weights[name]
        array = np.ascontiguousarray(array.transpose(order) if order else array)
        return tf.constant(array, name=name.replace(".", "_"))

    def conv(self, x, name, inputs, outputs, size, stride, pad=None, bias=False):
        pad = size // 2 if pad is None else pad
        padding = "VALID" if pad == 0 else "SAME" if stride == 1 else [[0, 0], [pad, pad], [pad, pad], [0, 0]]
        x = tf.nn.conv2d(x, self.weight(name + ".w", (2, 3, 1, 0)), stride, padding)
        return tf.nn.bias_add(x, self.weight(name + ".bias")) if bias else x

    def depthwise(self, x, name, channels, size, stride):
        kernel = self.weight(name + ".w", (2, 3, 0, 1))
        if stride == 1:
            return tf.nn.depthwise_conv2d(x, kernel, [1, 1, 1, 1], "SAME")
        return tf.nn.depthwise_conv2d(_pad(x, 1), kernel, [1, stride, stride, 1], "VALID")

    def batch_norm(self, x, name, channels):
        gain, bias, mean, variance = (self.weight(name + end) for end in (".g", ".b", ".rm", ".rv"))
        norm = tf.compat.v1.nn.fused_batch_norm
        return norm(x, gain, bias, mean, variance, epsilon=1e-5, is_training=False)[0]

    def dense(self, x, name, inputs, outputs, kind="he"):
        kernel = self.weights[name + ".w"]
        if self.flattened_from is not None:
            kernel, self.flattened_from = kernel[:, self.flattened_from], None
        kernel = tf.constant(np.ascontiguousarray(kernel.T), name=name.replace(".", "_"))
        bias = self.weight(name + ".bias")
        if x.shape.rank == 3:
            rows = tf.matmul(tf.reshape(x, [-1, inputs]), kernel)
            return tf.reshape(tf.nn.bias_add(rows, bias), [-1, x.shape[1], outputs])
        return tf.nn.bias_add(tf.matmul(x, kernel), bias)

    def layer_norm(self, x, name):
        mean, variance = tf.nn.moments(x, [-1], keepdims=True)
        return tf.nn.batch_normalization(x, mean, variance, self.weight(name + ".b"), self.weight(name + ".g"), 1e-12)

    def embed(self, ids):
        return tf.gather(self.weight("emb.word"), ids) + self.weight("emb.pos") + self.weight("emb.type")

    def attention(self, q, k, v):
        depth = nets.HIDDEN // nets.HEADS
        q, k, v = (
            tf.transpose(tf.reshape(t, [-1, nets.SEQUENCE, nets.HEADS, depth]), [0, 2, 1, 3]) for t in (q, k, v)
        )
        shares = tf.nn.softmax(tf.matmul(q, k, transpose_b=True) * (1.0 / math.sqrt(depth)))
        return tf.reshape(tf.transpose(tf.matmul(shares, v), [0, 2, 1, 3]), [-1, nets.SEQUENCE, nets.HIDDEN])

    def relu(self, x):
        return tf.nn.relu(x)

    def relu6(self, x):
        return tf.nn.relu6(x)

    def gelu(self, x):
        return tf.nn.gelu(x, approximate=False)

    def max_pool(self, x, size, stride, pad):
        return tf.nn.max_pool2d(_pad(x, pad), size, stride, "VALID")  # after a relu, so zeros do not matter

    def global_pool(self, x):
        return tf.reduce_mean(x, [1, 2])

    def add(self, a, b):
        return a + b

    def flatten(self, x):
        height, width, channels = x.shape[1:]
        count = height * width * channels
        self.flattened_from = np.arange(count).reshape(channels, height, width).transpose(1, 2, 0).ravel()
        return tf.reshape(x, [-1, count])


def _pad(x, pad):
    return tf.pad(x, [[0, 0], [pad, pad], [pad, pad], [0, 0]]) if pad else x
