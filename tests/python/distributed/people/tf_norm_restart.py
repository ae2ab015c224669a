"""Batch norms with moving averages (each rank's own), UPDATE_OPS, a Saver of rank 0 from which all go on, on the same rows on every rank."""
import sys

import numpy as np
import tensorflow as tf
from npu_bridge.npu_init import *  # noqa: F403

rank, size = get_npu_rank_id(), get_npu_rank_size()  # noqa: F405
out = sys.argv[1]
random = np.random.RandomState(0)
data, target = random.randn(12, 8, 6, 6, 2).astype(np.float32), random.randint(0, 3, [12, 8])
x, y, training = tf.placeholder(tf.float32, [None, 6, 6, 2]), tf.placeholder(tf.int64, [None]), tf.placeholder_with_default(False, [])
net = tf.layers.conv2d(x, 4, 3, kernel_initializer=tf.random_normal_initializer(seed=1))
net = tf.nn.relu(tf.layers.batch_normalization(net, training=training, momentum=0.9))
logits = tf.layers.dense(tf.layers.flatten(net), 3, kernel_initializer=tf.random_normal_initializer(seed=2))
loss = tf.losses.sparse_softmax_cross_entropy(y, logits)
optimizer = NPUDistributedOptimizer(tf.train.MomentumOptimizer(0.05, 0.9))  # noqa: F405
with tf.control_dependencies(tf.get_collection(tf.GraphKeys.UPDATE_OPS)):
    train = optimizer.minimize(loss, tf.train.get_or_create_global_step())
share = tf.train.Saver()
from npu_bridge.estimator.npu.npu_hook import broadcast_global_variables  # noqa: E402

first = broadcast_global_variables(0, 0)
losses = []
with tf.Session(config=npu_config_proto()) as session:  # noqa: F405
    session.run(tf.global_variables_initializer())
    for i in range(6):  # the same rows everywhere: what each rank computes is what one process computes
        losses.append(session.run([loss, train], {x: data[i], y: target[i], training: True})[0])
    if rank == 0:
        share.save(session, f"{out}.kept")
with tf.Session(config=npu_config_proto()) as session:  # noqa: F405
    session.run(tf.global_variables_initializer())
    if rank == 0:
        share.restore(session, f"{out}.kept")
    session.run(first)
    for i in range(6, 12):
        losses.append(session.run([loss, train], {x: data[i], y: target[i], training: True})[0])
    losses.append(session.run(loss, {x: data[0], y: target[0]}))
    weights = session.run(tf.global_variables())
np.savez(f"{out}.{rank}", losses=losses, **{f"w{i}": w for i, w in enumerate(weights)})
