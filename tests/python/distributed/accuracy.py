"""Trains one of the networks on many batches, alone or as a rank, and prints how many of the last batches' answers are right.

    accuracy.py NET"""

import sys

import nets
import numpy as np
import tensorflow.compat.v1 as tf

tf.disable_v2_behavior()

from npu_bridge.npu_init import *  # noqa: E402, F403

NET, STEPS, TEST = sys.argv[1], 150, 8
RANK, SIZE = get_npu_rank_id(), get_npu_rank_size()  # noqa: F405
BATCHES = nets.batches(NET, STEPS + TEST)


def part(batch):
    return nets.part(batch, SIZE, RANK)


inputs, labels = (tf.placeholder(each.dtype, [None, *each.shape[1:]]) for each in BATCHES[0])
with tf.variable_scope("net"):
    logits = nets.LOGITS[NET](inputs)
optimizer = npu_distributed_optimizer_wrapper(tf.train.AdamOptimizer(3e-3))  # noqa: F405
train = optimizer.minimize(nets.cross_entropy(labels, logits))
right = hccl_ops.allreduce(tf.reduce_sum(tf.cast(tf.equal(tf.argmax(logits, 1), labels), tf.float32)), "sum")  # noqa: F405
with tf.Session(config=npu_config_proto()) as session:  # noqa: F405
    session.run(tf.global_variables_initializer())
    for batch in BATCHES[:STEPS]:
        session.run(train, dict(zip((inputs, labels), part(batch))))
    found = sum(session.run(right, dict(zip((inputs, labels), part(batch)))) for batch in BATCHES[STEPS:])
print("accuracy", found / (TEST * nets.BATCH), flush=True)
