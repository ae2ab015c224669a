"""Trains one of the networks in one of three styles, alone or as a rank, and saves weights after one step, after all, and losses.

    train.py NET STYLE OUT [--steps N] [--parts N]     --parts: alone, the batch in so many parts
"""

import argparse
import os

import numpy as np
import nets
import tensorflow.compat.v1 as tf

arguments = argparse.ArgumentParser()
arguments.add_argument("net", choices=nets.NETS)
arguments.add_argument("style", choices=["feed", "estimator", "keras"])
arguments.add_argument("out")
arguments.add_argument("--steps", type=int, default=4)
arguments.add_argument("--parts", type=int, default=1)
arguments.add_argument("--scale", action="store_true", help="with loss scaling")
arguments.add_argument("--fault", default="", help="RANK:STEP:HOW")
options = arguments.parse_args()

if options.style != "keras":
    tf.disable_v2_behavior()

from npu_bridge.npu_init import *  # noqa: E402, F403

RATE = 0.05
RANK, SIZE = get_npu_rank_id(), get_npu_rank_size()  # noqa: F405
BATCHES = [nets.part(batch, SIZE, RANK) for batch in nets.batches(options.net, options.steps)]
PARTS = 1 if SIZE > 1 else options.parts


def fault(step):
    rank, at, how = (options.fault or "-1:0:").split(":")
    if int(rank) == RANK and int(at) == step:
        os.kill(os.getpid(), int(how))


def save(losses, **weights):
    """The weights before the first step, after it and after the last."""
    lists = {f"{when}/{i}": value for when, values in weights.items() for i, value in enumerate(values)}
    np.savez(f"{options.out}.{RANK}.npz", losses=np.asarray(losses, np.float64), **lists)


def feed():
    inputs, labels = (tf.placeholder(each.dtype, each.shape) for each in BATCHES[0])
    loss = nets.mean_loss(options.net, inputs, labels, PARTS)
    optimizer = npu_distributed_optimizer_wrapper(tf.train.GradientDescentOptimizer(RATE))  # noqa: F405
    if options.scale:
        optimizer = NPULossScaleOptimizer(optimizer, ExponentialUpdateLossScaleManager(1024.0, 2), is_distributed=SIZE > 1)  # noqa: F405
    train = optimizer.minimize(loss)
    mean = hccl_ops.allreduce(loss, "sum") / SIZE  # noqa: F405
    weights, first, losses = tf.trainable_variables(), None, []
    with tf.Session(config=npu_config_proto()) as session:  # noqa: F405
        session.run(tf.global_variables_initializer())
        if SIZE > 1:
            session.run(tf.group(*[tf.assign(v, b) for v, b in zip(weights, hccl_ops.broadcast(weights, 0))]))  # noqa: F405
        start = session.run(weights)
        for step, batch in enumerate(BATCHES):
            fault(step)
            losses.append(session.run([train, mean], dict(zip((inputs, labels), batch)))[1])
            first = first or session.run(weights)
        save(losses, start=start, first=first, last=session.run(weights))


class Record(tf.train.SessionRunHook):
    start, first, losses = None, None, []

    def begin(self):
        self.loss, self.weights = tf.get_collection("mean_loss")[0], tf.trainable_variables()

    def before_run(self, context):
        fault(len(self.losses))
        self.start = self.start or context.session.run(self.weights)
        return tf.train.SessionRunArgs(self.loss)

    def after_run(self, context, values):
        self.losses.append(values.results)
        self.first = self.first or context.session.run(self.weights)

    def end(self, session):
        save(self.losses, start=self.start, first=self.first, last=session.run(self.weights))


def estimator():
    def model_fn(features, labels, mode):
        loss = nets.mean_loss(options.net, features, labels, PARTS)
        tf.add_to_collection("mean_loss", hccl_ops.allreduce(loss, "sum") / SIZE)  # noqa: F405
        optimizer = NPUDistributedOptimizer(tf.train.GradientDescentOptimizer(RATE))  # noqa: F405
        return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=optimizer.minimize(loss, tf.train.get_global_step()))

    def input_fn():
        return tf.data.Dataset.from_tensor_slices(tuple(np.stack(each) for each in zip(*BATCHES)))

    config = NPURunConfig(model_dir=f"{options.out}.model", save_checkpoints_steps=2, log_step_count_steps=None)  # noqa: F405
    NPUEstimator(model_fn, config=config).train(input_fn, hooks=[Record()], max_steps=options.steps)  # noqa: F405


class Net(tf.keras.layers.Layer):
    """The network as a layer whose result is its mean loss."""

    def build(self, shapes):
        with tf.Graph().as_default():
            nets.mean_loss(options.net, *(tf.placeholder(each.dtype, each.shape) for each in BATCHES[0]), PARTS)
            shapes = [(v.op.name, v.shape.as_list(), v.initial_value) for v in tf.trainable_variables()]
            with tf.Session() as session:
                values = session.run([value for _, _, value in shapes])
        self.values = {}
        for (name, shape, _), value in zip(shapes, values):
            init = tf.keras.initializers.Constant(value)
            self.values[name] = self.add_weight(name=name, shape=shape, initializer=init)

    def call(self, both):
        def found(getter, name, *args, **kwargs):
            return self.values[name]

        with tf.variable_scope("", custom_getter=found, reuse=tf.AUTO_REUSE):
            return nets.mean_loss(options.net, *both, PARTS)[None]


def keras():
    inputs = [tf.keras.Input(each.shape[1:], each.shape[0], dtype=each.dtype) for each in BATCHES[0]]
    model = tf.keras.Model(inputs, Net()(inputs))
    optimizer = npu_distributed_optimizer_wrapper(tf.keras.optimizers.SGD(RATE))  # noqa: F405
    model.compile(optimizer, loss=lambda _, loss: loss)
    start, first, losses = model.get_weights(), [], []

    class Watch(tf.keras.callbacks.Callback):
        def on_batch_begin(self, batch, logs=None):
            fault(batch)

        def on_batch_end(self, batch, logs=None):
            first.extend([] if first else model.get_weights())
            losses.append(logs["loss"])

    class Data(tf.keras.utils.Sequence):
        def __len__(self):
            return len(BATCHES)

        def __getitem__(self, index):
            return list(BATCHES[index]), np.zeros(BATCHES[index][0].shape[0], np.float32)

    model.fit(Data(), epochs=1, shuffle=False, verbose=0, callbacks=npu_callbacks_append([Watch()]))  # noqa: F405
    save(losses, start=start, first=first, last=model.get_weights())


{"feed": feed, "estimator": estimator, "keras": keras}[options.style]()
