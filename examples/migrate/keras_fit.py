"""A Keras model of the TensorFlow 1 interface, trained by fit()."""
import numpy as np
import tensorflow as tf
from tensorflow import keras


def build():
    model = keras.Sequential([keras.layers.Dense(16, activation="relu", input_shape=(8,)), keras.layers.Dropout(0.2), keras.layers.Dense(1)])
    model.compile("adam", "mse")
    return model


if "__main__" == __name__:
    tf.set_random_seed(1)
    x = np.random.RandomState(0).rand(128, 8).astype(np.float32)
    build().fit(x, x.sum(axis=1), epochs=2, batch_size=32)
