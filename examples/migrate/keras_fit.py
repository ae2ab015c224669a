"""A Keras model of the TensorFlow 1 interface on handwritten digits, trained by fit()."""
import numpy as np
import tensorflow as tf
from sklearn.datasets import load_digits
from tensorflow import keras


def build():
    model = keras.Sequential([
        keras.layers.Conv2D(8, 3, activation="relu", input_shape=(8, 8, 1)),
        keras.layers.MaxPooling2D(),
        keras.layers.Flatten(),
        keras.layers.Dropout(0.2),
        keras.layers.Dense(10, activation="softmax"),
    ])
    model.compile("adam", "sparse_categorical_crossentropy", metrics=["accuracy"])
    return model


if "__main__" == __name__:
    tf.set_random_seed(1)
    data = load_digits()
    images = (data.images / 16)[..., None].astype(np.float32)
    build().fit(images, data.target, epochs=2, batch_size=64, shuffle=False, verbose=2)
