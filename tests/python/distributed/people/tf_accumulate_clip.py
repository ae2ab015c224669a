"""Gradients are accumulated over three batches, reduced and clipped by their global norm in the branch of a tf.cond, with weight decay."""
import sys

import numpy as np
import tensorflow as tf
from npu_bridge.npu_init import *  # noqa: F403

rank, size = get_npu_rank_id(), get_npu_rank_size()  # noqa: F405
out = sys.argv[1]
random = np.random.RandomState(0)
data, target = random.randn(18, 8, 6).astype(np.float32), random.randn(18, 8, 2).astype(np.float32)
x, y = tf.placeholder(tf.float32, [None, 6]), tf.placeholder(tf.float32, [None, 2])
net = x
for i, units in enumerate((10, 10, 2)):
    net = tf.layers.dense(net, units, tf.tanh if i < 2 else None, kernel_initializer=tf.random_normal_initializer(seed=i))
loss = tf.losses.mean_squared_error(y, net) + tf.add_n([1e-3 * tf.nn.l2_loss(v) for v in tf.trainable_variables() if "kernel" in v.name])
variables = tf.trainable_variables()
sums = [tf.Variable(tf.zeros_like(v.initialized_value()), trainable=False) for v in variables]
step = tf.train.get_or_create_global_step()
optimizer = tf.train.AdamOptimizer(0.02)
adding = [tf.assign_add(s, g / 3.0) for s, g in zip(sums, tf.gradients(loss, variables))]
with tf.control_dependencies(adding):
    now = tf.assign_add(step, 1)


def update():
    reduced = npu_allreduce([tf.identity(s) for s in sums])  # noqa: F405
    clipped, norm = tf.clip_by_global_norm(reduced, 0.3)
    with tf.control_dependencies([optimizer.apply_gradients(zip(clipped, variables))]):
        with tf.control_dependencies([tf.assign(s, tf.zeros_like(s)) for s in sums]):
            return tf.identity(norm)


norm = tf.cond(tf.equal(now % 3, 0), update, lambda: tf.constant(0.0))
mean = hccl_ops.allreduce(loss, "sum") / size  # noqa: F405
losses = []
with tf.Session(config=npu_config_proto()) as session:  # noqa: F405
    session.run(tf.global_variables_initializer())
    for i in range(18):
        losses.append(sum(session.run([mean, norm], {x: data[i][rank::size], y: target[i][rank::size]})))
    weights = session.run(variables)
np.savez(f"{out}.{rank}", losses=losses, **{f"w{i}": w for i, w in enumerate(weights)})
