"""Trains a small network through TensorFlow's fake-quant operators and writes a JSON line: losses, the bounds that were trained, what the
network answers. python quantised_training.py keras|tf1 FROZEN.pb, where the trained graph goes. CAIRN_ENGINE chooses the engine."""

import json
import sys

import npu_bridge.npu_init  # noqa: F401
import npu_device
import numpy as np
import tensorflow as tf

STEPS, FEATURES, WIDTH, CLASSES = 30, 12, 16, 4
v1 = tf.compat.v1
random = np.random.default_rng(5)
x = random.normal(size=(64, 6, 6, 3)).astype("float32")
y = (np.abs(x).mean((1, 2)).argmax(1) + (x[:, 0, 0, 0] > 0.9)).astype("int32")
start = {
    "conv": random.normal(scale=0.3, size=(3, 3, 3, 8)).astype("float32"),
    "dense": random.normal(scale=0.3, size=(8, CLASSES)).astype("float32"),
    "low": np.float32(-1.5), "high": np.float32(1.5), "most": np.float32(3),
    "conv_low": np.full(8, -0.6, "float32"), "conv_high": np.full(8, 0.6, "float32"),
}  # fmt: skip


def logits_of(values, images):
    """Activations by one pair of bounds, the convolution's weights by one for each channel, all of which are trained."""
    quantise, by_channel = tf.quantization.fake_quant_with_min_max_vars, tf.quantization.fake_quant_with_min_max_vars_per_channel
    images = quantise(images, values["low"], values["high"])
    kernel = by_channel(values["conv"], values["conv_low"], values["conv_high"], narrow_range=True)
    hidden = tf.nn.relu(tf.nn.conv2d(images, kernel, 1, "SAME"))
    hidden = quantise(hidden, 0.0, values["most"])
    dense = tf.quantization.fake_quant_with_min_max_args(values["dense"], -0.9, 0.9, narrow_range=True)
    return tf.matmul(tf.reduce_mean(hidden, [1, 2]), dense)


def loss_of(values, images, labels):
    return tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels, logits_of(values, images)))


def by_keras():
    class Net(tf.keras.Model):
        def __init__(self):
            super().__init__()
            self.values = {name: tf.Variable(value, name=name) for name, value in start.items()}

        def call(self, images):
            return logits_of(self.values, images)

    net = Net()
    loss = tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    net.compile(tf.keras.optimizers.legacy.SGD(0.3), loss)
    losses = net.fit(x, y, batch_size=64, epochs=STEPS, shuffle=False, verbose=0).history["loss"]
    return losses, {name: value.numpy() for name, value in net.values.items()}


def by_session():
    config = v1.ConfigProto()
    config.graph_options.rewrite_options.custom_optimizers.add().name = "NpuOptimizer"
    with tf.Graph().as_default(), v1.Session(config=config) as session:
        values = {name: v1.get_variable(name, initializer=value) for name, value in start.items()}
        loss = loss_of(values, tf.constant(x), tf.constant(y))
        step = v1.train.GradientDescentOptimizer(0.3).minimize(loss)
        session.run(v1.global_variables_initializer())
        losses = [float(session.run([loss, step])[0]) for _ in range(STEPS)]
        return losses, session.run(values)


def freeze(values, path):
    with tf.Graph().as_default() as graph, v1.Session() as session:
        images = v1.placeholder(tf.float32, [None, 6, 6, 3], "images")
        tf.identity(logits_of({name: tf.constant(value, name=name) for name, value in values.items()}, images), "logits")
        with open(path, "wb") as file:
            file.write(graph.as_graph_def().SerializeToString())
        return session.run("logits:0", {images: x[:16]})


if __name__ == "__main__":
    if sys.argv[1] == "keras":
        npu_device.open().as_default()
    losses, values = {"keras": by_keras, "tf1": by_session}[sys.argv[1]]()
    made = {name: np.asarray(value).tolist() for name, value in values.items()}
    print(json.dumps({"losses": losses, "values": made, "logits": freeze(values, sys.argv[2]).tolist()}))
