"""Estimator with train_and_evaluate, a dataset in shards, metrics, early steps of Adam."""
import sys

import numpy as np
import tensorflow as tf
from npu_bridge.npu_init import *  # noqa: F403

rank, size = get_npu_rank_id(), get_npu_rank_size()  # noqa: F405
out = sys.argv[1]
random = np.random.RandomState(0)
features, labels = random.randn(320, 5).astype(np.float32), random.randint(0, 3, 320)
features[:, 0] += labels


def model_fn(features, labels, mode, params):
    net = features["x"]
    for i, units in enumerate(params["units"]):
        net = tf.layers.dense(net, units, tf.nn.relu, kernel_initializer=tf.glorot_uniform_initializer(seed=i + 1))
    logits = tf.layers.dense(net, 3, kernel_initializer=tf.glorot_uniform_initializer(seed=9))
    if mode == tf.estimator.ModeKeys.PREDICT:
        return tf.estimator.EstimatorSpec(mode, predictions={"logits": logits})
    loss = tf.losses.sparse_softmax_cross_entropy(labels, logits)
    metrics = {"accuracy": tf.metrics.accuracy(labels, tf.argmax(logits, 1))}
    if mode == tf.estimator.ModeKeys.EVAL:
        return tf.estimator.EstimatorSpec(mode, loss=loss, eval_metric_ops=metrics)
    optimizer = npu_distributed_optimizer_wrapper(tf.train.AdamOptimizer(0.01))  # noqa: F405
    return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=optimizer.minimize(loss, tf.train.get_global_step()))


def train_input():
    rows = tf.data.Dataset.from_tensor_slices(({"x": features}, labels)).shard(size, rank).repeat()
    return rows.batch(32 // size, drop_remainder=True)


def eval_input():
    return tf.data.Dataset.from_tensor_slices(({"x": features}, labels)).batch(64)


config = NPURunConfig(model_dir=f"{out}.folder", save_checkpoints_steps=10, log_step_count_steps=None, hcom_parallel=True)  # noqa: F405
made = NPUEstimator(model_fn, config=config, params={"units": [16, 8]})  # noqa: F405
spec = tf.estimator.TrainSpec(train_input, max_steps=30, hooks=npu_hooks_append([]))  # noqa: F405
result, _ = tf.estimator.train_and_evaluate(made, spec, tf.estimator.EvalSpec(eval_input, steps=None, throttle_secs=0, start_delay_secs=0))
names = [name for name in made.get_variable_names() if name.endswith(("kernel", "bias"))]
np.savez(f"{out}.{rank}", losses=[result["loss"], result["accuracy"]], **{name.replace("/", "_"): made.get_variable_value(name) for name in names})
