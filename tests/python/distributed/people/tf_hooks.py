"""MonitoredTrainingSession with hooks of all kinds, a rate that falls with the global step, summaries of rank 0."""
import sys

import numpy as np
import tensorflow as tf
from npu_bridge.npu_init import *  # noqa: F403

rank, size = get_npu_rank_id(), get_npu_rank_size()  # noqa: F405
out = sys.argv[1]
random = np.random.RandomState(0)
data, target = random.randn(20, 16, 6).astype(np.float32), random.randn(20, 16, 1).astype(np.float32)
x, y = tf.placeholder(tf.float32, [None, 6]), tf.placeholder(tf.float32, [None, 1])
with tf.variable_scope("net", initializer=tf.random_normal_initializer(seed=3 + rank)):
    net = tf.layers.dense(tf.layers.dense(x, 12, tf.tanh, name="a"), 1, name="b")
loss = tf.identity(tf.losses.mean_squared_error(y, net), name="loss")
step = tf.train.get_or_create_global_step()
rate = tf.train.exponential_decay(0.1, step, 5, 0.5, staircase=True)
tf.summary.scalar("loss", loss)
tf.summary.histogram("weights", tf.trainable_variables()[0])
optimizer = NPUDistributedOptimizer(tf.train.MomentumOptimizer(rate, 0.9, use_nesterov=True))  # noqa: F405
train = optimizer.minimize(loss, step)
mean = hccl_ops.allreduce(loss, "sum") / size  # noqa: F405
losses = []


class Watch(tf.train.SessionRunHook):
    def before_run(self, context):
        return tf.train.SessionRunArgs([mean, step])

    def after_run(self, context, values):
        losses.append(values.results[0])


hooks = [NPUBroadcastGlobalVariablesHook(0), tf.train.StopAtStepHook(last_step=20), tf.train.NanTensorHook(loss), Watch()]  # noqa: F405
if rank == 0:
    hooks += [tf.train.LoggingTensorHook({"loss": loss, "step": step}, every_n_iter=5), tf.train.StepCounterHook(5)]
with tf.train.MonitoredTrainingSession(checkpoint_dir=f"{out}.folder" if rank == 0 else None, hooks=hooks, save_summaries_steps=4 if rank == 0 else None,
                                       config=npu_config_proto()) as session:  # noqa: F405  # fmt: skip
    number = 0
    while not session.should_stop():
        session.run(train, {x: data[number][rank::size], y: target[number][rank::size]})
        number += 1
        weights = session.run_step_fn(lambda step_context: step_context.session.run(tf.trainable_variables()))
np.savez(f"{out}.{rank}", losses=losses, **{f"w{i}": w for i, w in enumerate(weights)})
