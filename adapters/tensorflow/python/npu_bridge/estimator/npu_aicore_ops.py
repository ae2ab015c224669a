"""More operators of the platform, as compositions of stock TensorFlow operators."""

import math

import tensorflow.compat.v1 as tf

from npu_bridge.estimator import npu_ops
from npu_bridge.estimator.npu_unary_ops import fast_gelu  # noqa: F401  scripts import it from here


def fast_gelu_v2(x, name=None):
    """x (sgn(x) (a (min(|x| / sqrt 2, -b) + b)^2 + 0.5) + 0.5) with a = -0.1444, b = -1.769"""
    with tf.name_scope(name, "FastGeluV2"):
        x = tf.convert_to_tensor(x)
        a, b = -0.1444, -1.769
        bounded = tf.minimum(tf.abs(x) * (1 / math.sqrt(2)), -b) + b
        sign = (x + 1e-12) / tf.abs(x + 1e-12)
        return x * (sign * (a * tf.square(bounded) + 0.5) + 0.5)


def prelu(x, weight):
    """x where positive, weight * x elsewhere; `weight` has one element per channel of the last dimension, or one."""
    x = tf.convert_to_tensor(x)
    return tf.where(x > 0, x, weight * x)


def centralization(x, axes, name=None):
    with tf.name_scope(name, "Centralization"):
        x = tf.convert_to_tensor(x)
        return x - tf.reduce_mean(x, axes, keepdims=True)


def layer_norm(x, gamma, beta, begin_norm_axis=0, begin_params_axis=0, epsilon=1e-7, name=None):
    """[y, mean, variance] over the dimensions from `begin_norm_axis`; gamma and beta have those from `begin_params_axis`."""
    with tf.name_scope(name, "LayerNorm"):
        x = tf.convert_to_tensor(x)
        rank = x.shape.rank
        if rank is None:
            raise ValueError("layer_norm: the rank of x must be known")
        axes = list(range(begin_norm_axis % rank, rank))
        mean, variance = tf.nn.moments(x, axes, keepdims=True)
        shape = tf.concat([tf.ones([begin_params_axis % rank], tf.int32), tf.shape(gamma)], 0)
        y = (x - mean) * tf.rsqrt(variance + epsilon) * tf.reshape(gamma, shape) + tf.reshape(beta, shape)
        return [y, mean, variance]


def nonzero(x, transpose=False, output_type=tf.int64, name=None):
    """Indices of the elements that are not zero: [count, rank], or [rank, count] with `transpose`."""
    with tf.name_scope(name, "NonZero"):
        places = tf.cast(tf.where(tf.not_equal(x, tf.zeros([], tf.convert_to_tensor(x).dtype))), output_type)
        return tf.transpose(places) if transpose else places


def nonzerowithvalue(x, transpose=False, output_type=tf.int64, name=None):
    """(values, indices, count) of the elements that are not zero."""
    with tf.name_scope(name, "NonZeroWithValue"):
        x = tf.convert_to_tensor(x)
        places = tf.where(tf.not_equal(x, tf.zeros([], x.dtype)))
        indices = tf.cast(places, output_type)
        count = tf.cast(tf.shape(places)[:1], output_type)
        return tf.gather_nd(x, places), tf.transpose(indices) if transpose else indices, count


def dropout_v3(x, keep_prob, noise_shape=None, seed=None, name=None):
    return npu_ops.dropout(x, keep_prob, noise_shape, seed, name)


def dropout_v4(x, keep_prob, noise_shape=None, seed=None, output_dtype=tf.bool, name=None):
    return npu_ops.dropout(x, keep_prob, noise_shape, seed, name)


def __getattr__(name):
    if name in ("lru_cache_v2", "prod_env_mat_a", "prodforcesea", "prodvirialsea", "tabulatefusion", "tabulatefusiongrad"):
        raise NotImplementedError(f"npu_aicore_ops.{name} is not supported")
    raise AttributeError(f"module 'npu_aicore_ops' has no attribute '{name}'")
