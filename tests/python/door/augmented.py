"""Digits that Keras' layers turn, move, zoom, flip and crop anew in each step, on the engine that CAIRN_ENGINE names: prints losses, numbers
of a generator before and after, and draws of a function from it."""

import json

import npu_device
import numpy as np
import tensorflow as tf
from sklearn.datasets import load_digits

layers = tf.keras.layers
digits = load_digits()
images, labels = (digits.images[:512, ..., None] / 16).astype(np.float32), digits.target[:512]


def losses():
    tf.keras.utils.set_random_seed(3)
    model = tf.keras.Sequential([
        layers.RandomFlip(), layers.RandomRotation(0.1), layers.RandomZoom(0.2, fill_mode="nearest"), layers.RandomTranslation(0.1, 0.1, "wrap"),
        layers.RandomContrast(0.2), layers.RandomBrightness(0.1, (0, 1)), layers.RandomCrop(7, 7),
        layers.Conv2D(8, 3, activation="relu"), layers.Flatten(), layers.Dense(10)])  # fmt: skip
    model.compile("sgd", tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True))
    return [float(model.train_on_batch(images[i : i + 64], labels[i : i + 64])) for i in range(0, 512, 64)]


def draws():
    generator = tf.random.Generator.from_state([-300, 5, 7], "philox")  # the lower word of the counter is about to overflow

    @tf.function
    def step():
        return generator.normal([3]), generator.uniform([2], maxval=9, dtype=tf.int32), generator.uniform_full_int([3], tf.int32)

    found = [[each.numpy().tolist() for each in step()] for _ in range(3)]
    return found, generator.state.numpy().tolist()


if __name__ == "__main__":
    npu_device.open().as_default()
    print(json.dumps({"losses": losses(), "draws": draws()}))
