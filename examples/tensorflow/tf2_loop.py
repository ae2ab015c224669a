"""TensorFlow 2: a training loop of one's own in a tf.function, on the device that npu_device opens."""

import common
import npu_device as npu
import tensorflow as tf


def main():
    options = common.arguments(__doc__, steps=60, batch=32)
    npu.open().as_default()
    tf.keras.utils.set_random_seed(options.seed)
    images, labels, test_images, test_labels = common.digits()
    model = tf.keras.Sequential([
        tf.keras.layers.Conv2D(8, 3, activation="relu"),
        tf.keras.layers.Flatten(),
        tf.keras.layers.Dense(32, activation="relu"),
        tf.keras.layers.Dense(10),
    ])  # fmt: skip
    cross_entropy = tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    optimizer = npu.distribute.npu_distributed_keras_optimizer_wrapper(tf.keras.optimizers.SGD(0.1, momentum=0.9))
    model.build([None, 8, 8, 1])
    optimizer.build(model.trainable_variables)

    @tf.function
    def train(x, y):
        with tf.GradientTape() as tape:
            loss = cross_entropy(y, model(x, training=True))
        gradients = tape.gradient(loss, model.trainable_variables)
        gradients, _ = tf.clip_by_global_norm(gradients, 5.0)
        optimizer.apply_gradients(zip(gradients, model.trainable_variables))
        return loss

    record = common.Record(options)
    rows = common.batches(len(images), options.batch, options.seed)
    for _ in range(options.steps):
        batch = next(rows)
        record.add(train(tf.constant(images[batch]), tf.constant(labels[batch])).numpy())
    right = tf.reduce_mean(tf.cast(tf.argmax(model(test_images), 1) == test_labels, tf.float32))
    print(f"accuracy {float(right):.4f}")
    record.save({f"{index}": variable.numpy() for index, variable in enumerate(model.variables)})


if __name__ == "__main__":
    main()
