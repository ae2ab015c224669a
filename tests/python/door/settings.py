"""Precision keys of a session, run by test_door_settings.py as cases.py is."""

import json
from pathlib import Path

import cases
import numpy as np
import tensorflow.compat.v1 as tf
from cases import case, entry, fresh, perceptron, data


def product(marks=(), **keys):
    """x times w with these keys in the session's entry, and attributes of the product's node; or the error."""
    fresh()
    random = np.random.RandomState(0)
    x = tf.placeholder(tf.float32, [16, 32])
    w = tf.get_variable("w", initializer=random.randn(32, 24).astype(np.float32))
    with tf.get_default_graph()._attr_scope({mark: tf.AttrValue(i=1) for mark in marks}):
        y = tf.matmul(x, w)
    config = entry(True)
    for key, value in keys.items():
        config.graph_options.rewrite_options.custom_optimizers[0].parameter_map[key].s = value.encode()
    with tf.Session(config=config) as s:
        try:
            s.run(tf.global_variables_initializer())
            return s.run(y, {x: random.randn(16, 32).astype(np.float32)}).tolist()
        except tf.errors.OpError as error:
            return [type(error).__name__, str(error)]


@case
def precision(folder):
    lists = Path(folder) / "lists.json"
    lists.write_text(json.dumps({"black-list": {"to-add": ["MatMul"]}}))
    types = Path(folder) / "types.cfg"
    types.write_text("MatMul::InputDtype:float16,float16,OutputDtype:float32\nno/such/node::InputDtype:float16\n")
    odd = Path(folder) / "odd.cfg"
    odd.write_text("MatMul::InputDtype:int8\n")
    broken = Path(folder) / "broken.json"
    broken.write_text('{"black-list": ["MatMul"]}')
    return {
        "none": product(),
        "origin": product(precision_mode_v2="origin"),
        "mixed": product(precision_mode="allow_mix_precision"),
        "bfloat": product(precision_mode_v2="mixed_bfloat16"),
        "listed": product(precision_mode="allow_mix_precision", modify_mixlist=str(lists)),
        "kept": [product(["_keep_dtype"], precision_mode=mode) for mode in ("allow_mix_precision", "force_fp16")],
        "custom": product(customize_dtypes=str(types)),
        "odd": product(customize_dtypes=str(odd)),
        "unknown": product(precision_mode="allow_everything"),
        "missing": product(precision_mode="allow_mix_precision", modify_mixlist="/nowhere/lists.json"),
        "broken": product(precision_mode="allow_mix_precision", modify_mixlist=str(broken)),
    }


@case
def infinity(deterministic):
    """How many results of a convolution with an infinity in its image are no numbers, and how many are infinite."""
    fresh()
    image = np.ones([2, 28, 28, 64], np.float32)
    image[0, 13, 13, 5] = np.inf
    x, kernel = tf.placeholder(tf.float32, image.shape), tf.get_variable("kernel", initializer=np.ones([3, 3, 64, 64], np.float32))
    config = entry(True)
    config.graph_options.rewrite_options.custom_optimizers[0].parameter_map["deterministic"].i = int(deterministic)
    with tf.Session(config=config) as s:
        s.run(tf.global_variables_initializer())
        y = s.run(tf.nn.conv2d(x, kernel, 1, "SAME"), {x: image})
    return [int(np.isnan(y).sum()), int(np.isinf(y).sum())]


@case
def training(mode):
    """Losses of a classifier in that mode."""
    fresh()
    x, y, loss, step = perceptron(tf.train.AdamOptimizer(0.02))
    inputs, labels = data()
    config = entry(True)
    if mode != "none":
        config.graph_options.rewrite_options.custom_optimizers[0].parameter_map["precision_mode"].s = mode.encode()
    with tf.Session(config=config) as s:
        s.run(tf.global_variables_initializer())
        return [float(s.run([loss, step], {x: inputs, y: labels})[0]) for _ in range(40)]


@case
def convolutions(mode, seed):
    """Losses of 25 steps on digits of two convolutions with normalisation over the batch, in that mode, from that seed's weights."""
    fresh()
    from sklearn.datasets import load_digits

    random, digits = np.random.RandomState(int(seed)), load_digits()
    images, labels = digits.images[..., None] / 16, digits.target
    x, y = tf.placeholder(tf.float32, [64, 8, 8, 1]), tf.placeholder(tf.int64, [64])
    variable = lambda name, *dims: tf.get_variable(name, initializer=(random.randn(*dims) * np.sqrt(2 / np.prod(dims[:-1]))).astype(np.float32))  # noqa: E731
    h = x
    for i, (inputs, outputs) in enumerate([(1, 16), (16, 16)]):
        h = tf.nn.conv2d(h, variable(f"k{i}", 3, 3, inputs, outputs), [1, 1, 1, 1], "SAME")
        scale, offset = tf.get_variable(f"s{i}", initializer=np.ones(outputs, np.float32)), tf.get_variable(f"o{i}", initializer=np.zeros(outputs, np.float32))
        h = tf.nn.relu(tf.nn.fused_batch_norm(h, scale, offset, epsilon=1e-5, is_training=True)[0])
    h = tf.nn.max_pool(h, [1, 2, 2, 1], [1, 2, 2, 1], "VALID")
    logits = tf.nn.bias_add(tf.matmul(tf.reduce_mean(h, [1, 2]), variable("w", 16, 10)), tf.get_variable("b", initializer=np.zeros(10, np.float32)))
    loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=y, logits=logits))
    step = tf.train.MomentumOptimizer(0.05, 0.9).minimize(loss)
    config = entry(True)
    if mode != "none":
        config.graph_options.rewrite_options.custom_optimizers[0].parameter_map["precision_mode"].s = mode.encode()
    with tf.Session(config=config) as s:
        s.run(tf.global_variables_initializer())
        return [float(s.run([loss, step], {x: images[i : i + 64], y: labels[i : i + 64]})[0]) for i in range(0, 25 * 64, 64)]


@case
def frozen(mode):
    """What a net of a reference and a resource variable answers before and after both have changed, in shapes seen before and
    new ones, and what a step that changes one of them answers."""
    fresh()
    x = tf.placeholder(tf.float32, [None, 8])
    w = tf.get_variable("w", initializer=np.eye(8, dtype=np.float32), use_resource=False)
    b = tf.get_variable("b", initializer=np.ones(8, np.float32), use_resource=True)
    y = tf.nn.relu(tf.matmul(x, w) + b)
    counter = tf.get_variable("counter", initializer=0.0, use_resource=True)
    count = tf.assign_add(counter, tf.reduce_sum(tf.matmul(x, w)))
    config = entry(True)
    keys = config.graph_options.rewrite_options.custom_optimizers[0].parameter_map
    keys["frozen_variable"].b, keys["graph_run_mode"].i = True, int(mode)
    two, three = np.ones([2, 8], np.float32), np.ones([3, 8], np.float32)
    with tf.Session(config=config) as s:
        s.run(tf.global_variables_initializer())
        before = s.run(y, {x: two}).tolist()
        s.run([w.assign(np.zeros([8, 8], np.float32)), b.assign(np.full(8, 5, np.float32))])
        after, other = s.run(y, {x: two}).tolist(), s.run(y, {x: three}).tolist()
        return {"before": before, "after": after, "other": other, "counts": [float(s.run(count, {x: two})) for _ in range(2)],
                "read": s.run([w, b])[1].tolist()}  # fmt: skip


if __name__ == "__main__":
    cases.main()
