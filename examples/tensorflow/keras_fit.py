"""Keras in graph mode: fit with callbacks on a session of its own, evaluation, saving."""

import common
import tensorflow as tf

from npu_bridge.npu_init import *  # noqa: F403  isort: skip


def network():
    return tf.keras.Sequential([
        tf.keras.layers.Conv2D(8, 3, activation="relu", input_shape=(8, 8, 1)),
        tf.keras.layers.BatchNormalization(),
        tf.keras.layers.Flatten(),
        tf.keras.layers.Dense(32, activation="relu"),
        tf.keras.layers.Dense(10, activation="softmax"),
    ])  # fmt: skip


def main():
    options = common.arguments(__doc__, steps=60, batch=32)
    images, labels, test_images, test_labels = common.digits()
    tf.set_random_seed(options.seed)
    sess = set_keras_session_npu_config(config=tf.ConfigProto())
    model = network()
    optimizer = npu_keras_optimizer(tf.keras.optimizers.Adam(2e-3))
    model.compile(optimizer=optimizer, loss="sparse_categorical_crossentropy", metrics=["accuracy"])
    record = common.Record(options)

    class Losses(tf.keras.callbacks.Callback):
        def on_batch_end(self, batch, logs=None):
            record.add(logs["loss"])

    def rows():
        order = common.batches(len(images), options.batch, options.seed)
        while True:
            batch = next(order)
            yield images[batch], labels[batch]

    best = tf.keras.callbacks.ModelCheckpoint(common.path(options, "best.h5"), monitor="loss", save_best_only=True)
    slower = tf.keras.callbacks.LearningRateScheduler(lambda epoch: 2e-3 * 0.5**epoch)
    epochs = 2 if options.steps > 1 else 1
    model.fit(rows(), steps_per_epoch=options.steps // epochs, epochs=epochs, verbose=0,
              callbacks=npu_callbacks_append(callbacks_list=[Losses(), best, slower]))  # fmt: skip
    print("loss and accuracy", model.evaluate(test_images, test_labels, verbose=0))
    variables = [variable for variable in model.variables]
    record.save({f"{index}": value for index, value in enumerate(tf.keras.backend.batch_get_value(variables))})
    close_session(sess)


if __name__ == "__main__":
    main()
