"""TensorFlow 2: Keras' functional interface, fit() over a dataset, callbacks, a learning-rate schedule."""
import numpy as np
import tensorflow as tf
from sklearn.datasets import load_digits
from tensorflow.keras import layers


def build():
    inputs = tf.keras.Input((8, 8, 1))
    x = layers.Conv2D(8, 3, padding="same", activation="relu")(inputs)
    x = layers.BatchNormalization()(x)
    x = layers.Add()([x, layers.Conv2D(8, 1)(inputs)])
    x = layers.GlobalAveragePooling2D()(x)
    outputs = layers.Dense(10, activation="softmax")(x)
    return tf.keras.Model(inputs, outputs)


def main():
    data = load_digits()
    images = (data.images / 16)[..., None].astype(np.float32)
    train = tf.data.Dataset.from_tensor_slices((images[:1500], data.target[:1500])).shuffle(1500, seed=9).batch(50)
    test = tf.data.Dataset.from_tensor_slices((images[1500:], data.target[1500:])).batch(50)
    schedule = tf.keras.optimizers.schedules.ExponentialDecay(0.05, 20, 0.9)
    model = build()
    model.compile(
        optimizer=tf.keras.optimizers.SGD(schedule, momentum=0.9),
        loss="sparse_categorical_crossentropy",
        metrics=["accuracy"],
    )
    model.fit(train, validation_data=test, epochs=2, callbacks=[tf.keras.callbacks.TerminateOnNaN()], verbose=2)


if __name__ == "__main__":
    main()
