"""Embeddings, whose gradients are IndexedSlices with repeated rows, in Adam, beside dense weights; rows differ from rank to rank."""
import sys

import numpy as np
import tensorflow as tf
from npu_bridge.npu_init import *  # noqa: F403

rank, size = get_npu_rank_id(), get_npu_rank_size()  # noqa: F405
out = sys.argv[1]
random = np.random.RandomState(0)
ids, labels = random.randint(0, 30, [10, 16, 5]), random.randint(0, 2, [10, 16])
x, y = tf.placeholder(tf.int32, [None, 5]), tf.placeholder(tf.int64, [None])
table = tf.get_variable("table", [30, 8], initializer=tf.random_normal_initializer(seed=1))
places = tf.get_variable("places", [5, 8], initializer=tf.random_normal_initializer(seed=2))
net = tf.reduce_mean(tf.nn.embedding_lookup(table, x) + tf.nn.embedding_lookup(places, tf.range(5)), 1)
logits = tf.layers.dense(net, 2, kernel_initializer=tf.random_normal_initializer(seed=3))
loss = tf.losses.sparse_softmax_cross_entropy(y, logits)
kind = sys.argv[2] if len(sys.argv) > 2 else "adam"
plain = {"adam": tf.train.AdamOptimizer(0.05), "adagrad": tf.train.AdagradOptimizer(0.5), "momentum": tf.train.MomentumOptimizer(0.5, 0.9)}[kind]
optimizer = npu_distributed_optimizer_wrapper(plain)  # noqa: F405
pairs = optimizer.compute_gradients(loss)
assert sum(isinstance(gradient, tf.IndexedSlices) for gradient, _ in pairs) == 2
train = optimizer.apply_gradients(pairs)
mean = hccl_ops.allreduce(loss, "sum") / size  # noqa: F405
losses = []
with tf.Session(config=npu_config_proto()) as session:  # noqa: F405
    session.run(tf.global_variables_initializer())
    for i in range(10):
        losses.append(session.run([mean, train], {x: ids[i][rank::size], y: labels[i][rank::size]})[0])
    weights = session.run(tf.trainable_variables())
np.savez(f"{out}.{rank}", losses=losses, **{f"w{i}": w for i, w in enumerate(weights)})
