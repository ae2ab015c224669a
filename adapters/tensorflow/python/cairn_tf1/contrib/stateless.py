"""tf.contrib.stateless: random numbers of a given seed, which later versions have in tf.random."""

import tensorflow.compat.v1 as tf

stateless_random_uniform, stateless_random_normal = tf.random.stateless_uniform, tf.random.stateless_normal
stateless_truncated_normal, stateless_multinomial = tf.random.stateless_truncated_normal, tf.random.stateless_multinomial
