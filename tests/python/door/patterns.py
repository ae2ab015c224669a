"""The ten ways in which scripts of the platform set up their training, each as small as it can be: `patterns.py FOLDER` trains with
each on stock TensorFlow and on the engine, and prints {name: [losses on stock TensorFlow, losses on the engine, nodes that each of
the two had on the engine]}. CAIRN_REPORT names the file that tells the nodes."""

import json
import os
import sys
from pathlib import Path

import numpy as np
import tensorflow as tf  # under the TensorFlow 1 layer
from npu_bridge.estimator import npu_ops
from npu_bridge.hccl import hccl_ops

from npu_bridge.npu_init import *  # noqa: F403  isort: skip

PATTERNS = {}
STEPS = 6
FOLDER = sys.argv[1]


def pattern(function):
    PATTERNS[function.__name__] = function
    return function


def fresh():
    tf.keras.backend.clear_session()
    tf.reset_default_graph()
    tf.set_random_seed(1)


def block(engine, **keys):
    """The session block of scripts, with more keys."""
    config = tf.ConfigProto()
    custom_op = config.graph_options.rewrite_options.custom_optimizers.add()
    custom_op.name = "NpuOptimizer"
    custom_op.parameter_map["use_off_line"].b = engine
    for key, value in keys.items():
        if isinstance(value, bool):
            custom_op.parameter_map[key].b = value
        elif isinstance(value, int):
            custom_op.parameter_map[key].i = value
        else:
            custom_op.parameter_map[key].s = tf.compat.as_bytes(value)
    config.graph_options.rewrite_options.remapping = RewriterConfig.OFF
    config.graph_options.rewrite_options.memory_optimization = RewriterConfig.OFF
    return config


def data(seed=0):
    random = np.random.RandomState(seed)
    return random.rand(48, 8).astype(np.float32), random.randint(0, 3, 48)


def network(x, activation=tf.nn.relu, keep_prob=None):
    fixed = lambda seed: tf.random_normal_initializer(stddev=0.3, seed=seed)
    hidden = tf.layers.dense(x, 16, activation, kernel_initializer=fixed(1))
    if keep_prob is not None:
        hidden = npu_ops.dropout(hidden, keep_prob)
    return tf.layers.dense(hidden, 3, kernel_initializer=fixed(2))


def loss_of(x, y, **more):
    return tf.losses.sparse_softmax_cross_entropy(y, network(x, **more))


def trained(config, optimizer=None, wrap=lambda sess, train: train, **more):
    """Losses of a script with placeholders, whose last batch is smaller."""
    x, y = tf.placeholder(tf.float32, [None, 8]), tf.placeholder(tf.int64, [None])
    loss = loss_of(x, y, **more)
    train = (optimizer or tf.train.MomentumOptimizer(0.1, 0.9)).minimize(loss)
    images, labels = data()
    with tf.Session(config=config) as sess:
        train = wrap(sess, train)
        sess.run(tf.global_variables_initializer())
        return [sess.run([loss, train], {x: images[:n], y: labels[:n]})[0] for n in (48, 32) * (STEPS // 2)]


@pattern
def explicit_session_block(engine):
    return trained(block(engine, precision_mode="must_keep_origin_dtype"))


@pattern
def converter_output(engine):
    return trained(npu_config_proto(config_proto=block(engine)))


class Losses(tf.train.SessionRunHook):
    def __init__(self, name):
        self.name, self.found = name, []

    def before_run(self, run_context):
        return tf.train.SessionRunArgs(run_context.session.graph.get_tensor_by_name(self.name))

    def after_run(self, run_context, run_values):
        self.found.append(run_values.results)


def input_fn():
    images, labels = data()
    return tf.data.Dataset.from_tensor_slices((images, labels)).repeat().batch(32, drop_remainder=True)


def model_fn(spec):
    def build(features, labels, mode, params):
        loss = tf.identity(loss_of(features, labels), "kept_loss")
        train = tf.train.AdamOptimizer(params["rate"]).minimize(loss, global_step=tf.train.get_global_step())
        return spec(mode, loss=loss, train_op=train, eval_metric_ops={"mean": tf.metrics.mean(loss)})

    return build


@pattern
def estimator(engine):
    config = NPURunConfig(
        model_dir=os.path.join(FOLDER, f"own{engine:d}"), session_config=block(engine), save_checkpoints_steps=100,
        iterations_per_loop=1, precision_mode="must_keep_origin_dtype", tf_random_seed=1,
    )  # fmt: skip
    found = Losses("kept_loss:0")
    own = NPUEstimator(model_fn=model_fn(NPUEstimatorSpec), config=config, params={"rate": 0.01})
    own.train(input_fn, hooks=[found], max_steps=STEPS)
    return [*found.found, own.evaluate(input_fn, steps=2)["loss"]]


@pattern
def plain_estimator_wrapped(engine):
    config = tf.estimator.RunConfig(os.path.join(FOLDER, f"plain{engine:d}"), tf_random_seed=1, session_config=block(engine))
    found = Losses("kept_loss:0")
    plain = tf.estimator.Estimator(model_fn(tf.estimator.EstimatorSpec), config=npu_run_config_init(run_config=config),
                                   params={"rate": 0.01})  # fmt: skip
    plain.train(input_fn, hooks=npu_hooks_append(hooks_list=[found]), max_steps=STEPS)
    return found.found


@pattern
def loss_scaling(engine):
    manager = ExponentialUpdateLossScaleManager(init_loss_scale=2**10, incr_every_n_steps=2, decr_every_n_nan_or_inf=2, decr_ratio=0.5)
    optimizer = NPULossScaleOptimizer(tf.train.AdamOptimizer(0.01), manager)
    first = trained(block(engine), optimizer)
    fresh()
    fixed = NPULossScaleOptimizer(tf.train.GradientDescentOptimizer(0.1), FixedLossScaleManager(loss_scale=64))
    return [*first, *trained(block(engine), fixed)]


@pattern
def data_parallel(engine):
    ranks = int(os.getenv("RANK_SIZE", "1"))
    variable = tf.Variable(np.arange(3.0, dtype=np.float32) / ranks)
    sent = tf.assign(variable, hccl_ops.broadcast([variable * 2.0], root_rank=0)[0])
    sums = hccl_ops.allreduce(tf.reshape(variable, [1, 3]), "sum")
    with tf.Session(config=block(engine)) as sess:
        sess.run(tf.global_variables_initializer())
        shared = [*sess.run(sent), *sess.run(sums)[0]]
    return [*shared, *trained(block(engine), npu_tf_optimizer(NPUDistributedOptimizer(tf.train.AdamOptimizer(0.01))))]


@pattern
def substituted_operators(engine):
    return trained(block(engine), activation=npu_unary_ops.gelu, keep_prob=0.8)


@pattern
def keras(engine):
    sess = set_keras_session_npu_config(config=block(engine))
    made = tf.keras.initializers.RandomNormal(stddev=0.3, seed=3)
    layers = [tf.keras.layers.Dense(16, "relu", input_shape=(8,), kernel_initializer=made)]
    model = tf.keras.Sequential([*layers, tf.keras.layers.Dense(3, "softmax", kernel_initializer=made)])
    model.compile(npu_keras_optimizer(tf.keras.optimizers.SGD(0.1)), "sparse_categorical_crossentropy")
    images, labels = data()
    history = model.fit(images, labels, 16, STEPS, verbose=0, shuffle=False, callbacks=npu_callbacks_append([]))
    close_session(sess)
    return history.history["loss"]


@pattern
def rank_aware_input(engine):
    sess, shutdown = init_resource(config=block(engine))
    rank, size = get_npu_rank_id(), get_npu_rank_size()
    images, labels = data()
    part = tf.data.Dataset.from_tensor_slices((images, labels)).shard(size, rank).repeat().batch(32)
    x, y = tf.data.make_one_shot_iterator(part).get_next()
    loss = loss_of(x, y)
    train = tf.train.GradientDescentOptimizer(0.1).minimize(loss)
    with tf.Session(config=block(engine)) as training:
        training.run(tf.global_variables_initializer())
        losses = [training.run([loss, train])[0] for _ in range(STEPS)]
    shutdown_resource(sess, shutdown)
    close_session(sess)
    return losses


@pattern
def modes_and_loops(engine):
    """Blocks behind command-line flags: dynamic input, mixed compilation, and several steps in one run."""
    first = trained(block(engine, dynamic_input=True, dynamic_graph_execute_mode="lazy_recompile"))
    fresh()
    second = trained(block(engine, mix_compile_mode=True), tf.train.GradientDescentOptimizer(0.1))
    fresh()
    several = lambda sess, train: util.set_iteration_per_loop(sess, train, 3)
    return [*first, *second, *trained(block(engine, iterations_per_loop=3), tf.train.GradientDescentOptimizer(0.05), several)]


def nodes_on_engine():
    file = Path(os.environ["CAIRN_REPORT"])
    graphs = json.loads(file.read_text())["graphs"] if file.exists() else []
    return sum(graph["numeric_on_engine"] for graph in graphs)


def main():
    found = {}
    for name, run in PATTERNS.items():
        losses, nodes = [], [nodes_on_engine()]
        for engine in (False, True):
            fresh()
            losses.append(np.asarray(run(engine), np.float64).tolist())
            nodes.append(nodes_on_engine())
        found[name] = [*losses, np.diff(nodes).tolist()]
    print(json.dumps(found))


if __name__ == "__main__":
    main()
