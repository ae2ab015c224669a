"""Trains a small CNN with stock Keras on scikit-learn's handwritten digits and saves it: train.py FOLDER."""

import os
import sys

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

import numpy as np  # noqa: E402
import tensorflow as tf  # noqa: E402
from sklearn.datasets import load_digits  # noqa: E402
from sklearn.model_selection import train_test_split  # noqa: E402

layers = tf.keras.layers


def data():
    """((train images, labels), (test images, labels)); images are 8 x 8 x 1 in 0 .. 1."""
    digits = load_digits()
    images = (digits.images[..., np.newaxis] / 16).astype(np.float32)
    train_x, test_x, train_y, test_y = train_test_split(
        images, digits.target, test_size=0.25, random_state=0, stratify=digits.target
    )
    return (train_x, train_y), (test_x, test_y)


def make_model():
    return tf.keras.Sequential(
        [
            layers.Input((8, 8, 1), name="x"),
            layers.Conv2D(32, 3, padding="same", use_bias=False, name="conv1"),
            layers.BatchNormalization(momentum=0.9, name="norm1"),
            layers.ReLU(name="relu1"),
            layers.MaxPooling2D(name="pool1"),
            layers.Conv2D(64, 3, padding="same", activation="relu", name="conv2"),
            layers.MaxPooling2D(name="pool2"),
            layers.Flatten(name="flatten"),
            layers.Dropout(0.3, name="dropout"),
            layers.Dense(64, activation="relu", name="hidden"),
            layers.Dense(10, activation="softmax", name="probabilities"),
        ],
        name="digits",
    )


def fit(model, epochs=12):
    (train_x, train_y), _ = data()
    model.compile("adam", "sparse_categorical_crossentropy", metrics=["accuracy"])
    return model.fit(train_x, train_y, batch_size=32, epochs=epochs, verbose=0)


def main(folder):
    tf.keras.utils.set_random_seed(1)
    model = make_model()
    history = fit(model)
    _, (test_x, test_y) = data()
    accuracy = model.evaluate(test_x, test_y, verbose=0)[1]
    model.save(folder, save_format="tf")
    print(f"trained {len(history.history['loss'])} epochs; test accuracy {accuracy:.4f}; saved to {folder}")


if __name__ == "__main__":
    main(sys.argv[1])
