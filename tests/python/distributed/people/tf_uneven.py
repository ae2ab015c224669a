"""Last batches with fewer rows, which no number of ranks divides: losses are sums over the rows of all ranks."""
import sys

import numpy as np
import tensorflow as tf
from npu_bridge.npu_init import *  # noqa: F403

rank, size = get_npu_rank_id(), get_npu_rank_size()  # noqa: F405
out = sys.argv[1]
random = np.random.RandomState(0)
data = random.randn(53, 4).astype(np.float32)
target = data @ np.array([[1.0], [-2.0], [0.5], [3.0]], np.float32) + 0.1
x, y = tf.placeholder(tf.float32, [None, 4]), tf.placeholder(tf.float32, [None, 1])
w = tf.get_variable("w", [4, 1], initializer=tf.zeros_initializer())
b = tf.get_variable("b", [1], initializer=tf.zeros_initializer())
total = tf.reduce_sum(tf.squared_difference(tf.matmul(x, w) + b, y))
rows = hccl_ops.allreduce(tf.cast(tf.shape(x)[0], tf.float32), "sum")  # noqa: F405
optimizer = tf.train.AdagradOptimizer(0.5)
pairs = optimizer.compute_gradients(total)
summed = npu_allreduce([gradient for gradient, _ in pairs], "sum")  # noqa: F405
train = optimizer.apply_gradients([(gradient / rows, v) for gradient, (_, v) in zip(summed, pairs)])
mean = hccl_ops.allreduce(total, "sum") / rows  # noqa: F405
losses = []
with tf.Session(config=npu_config_proto()) as session:  # noqa: F405
    session.run(tf.global_variables_initializer())
    for epoch in range(4):
        for first in range(0, 53, 16):
            mine = slice(first, min(first + 16, 53))
            feed = {x: data[mine][rank::size], y: target[mine][rank::size]}
            losses.append(session.run([mean, train], feed)[0])
    weights = session.run([w, b])
np.savez(f"{out}.{rank}", losses=losses, w=weights[0], b=weights[1])
