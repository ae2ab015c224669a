"""Keras' mixed policies on the engine that CAIRN_ENGINE names: `keras_policies.py POLICY SEEDS` prints losses on digits by seed, and
gradients of a layer's kernel and bias in one step, with the exact sums of the same rows."""

import json
import sys

import npu_device
import numpy as np
import tensorflow as tf
from sklearn.datasets import load_digits

layers = tf.keras.layers
digits = load_digits()
images, labels = (digits.images[..., None] / 16).astype(np.float32), digits.target
loss = tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True)


def losses(seed):
    tf.keras.utils.set_random_seed(seed)
    model = tf.keras.Sequential([
        layers.Conv2D(16, 3, padding="same", use_bias=False), layers.BatchNormalization(), layers.ReLU(), layers.MaxPool2D(),
        layers.Conv2D(32, 3, activation="relu"), layers.GlobalAveragePooling2D(), layers.Dense(10), layers.Activation("linear", dtype="float32")])  # fmt: skip
    model.compile(tf.keras.optimizers.SGD(0.05, 0.9), loss)
    return [float(model.train_on_batch(images[i : i + 64], labels[i : i + 64])) for i in range(0, 25 * 64, 64)]


def gradients():
    tf.keras.utils.set_random_seed(0)
    first, second = layers.Dense(128), layers.Dense(10, dtype="float32")
    x, y = tf.constant(images[:64].reshape(64, -1)), tf.constant(labels[:64])

    @tf.function
    def step(x, y):
        with tf.GradientTape() as tape:
            h = first(x)
            value = loss(y, second(tf.nn.relu(h)))
        return tape.gradient(value, [first.kernel, first.bias, h])

    first.build(x.shape), second.build([64, 128])
    kernel, bias, rows = (tf.cast(each, tf.float64).numpy() for each in step(x, y))
    narrow = tf.cast(tf.cast(x, first.compute_dtype), tf.float64).numpy()
    return {"kernel": [kernel.tolist(), (narrow.T @ rows).tolist()], "bias": [bias.tolist(), rows.sum(0).tolist()]}


if __name__ == "__main__":
    npu_device.open().as_default()
    tf.keras.mixed_precision.set_global_policy(sys.argv[1])
    print(json.dumps({"losses": [losses(seed) for seed in range(int(sys.argv[2]))], "gradients": gradients()}))
