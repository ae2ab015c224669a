"""TensorFlow 2: a network of its own class, GradientTape, a step in tf.function."""
import numpy as np
import tensorflow as tf
from sklearn.datasets import load_digits

for gpu in tf.config.experimental.list_physical_devices("GPU"):
    tf.config.experimental.set_memory_growth(gpu, True)


class Network(tf.keras.Model):
    def __init__(self):
        super().__init__()
        self.conv = tf.keras.layers.Conv2D(8, 3, activation="relu")
        self.flatten = tf.keras.layers.Flatten()
        self.norm = tf.keras.layers.LayerNormalization()
        self.dense = tf.keras.layers.Dense(10)

    def call(self, images):
        return self.dense(self.norm(self.flatten(self.conv(images))))


network = Network()
optimizer = tf.keras.optimizers.Adam(1e-2)
cross_entropy = tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True)


@tf.function
def train_step(images, labels):
    with tf.GradientTape() as tape:
        loss = cross_entropy(labels, network(images, training=True))
    gradients = tape.gradient(loss, network.trainable_variables)
    optimizer.apply_gradients(zip(gradients, network.trainable_variables))
    return loss


def main():
    data = load_digits()
    images = (data.images / 16)[..., None].astype(np.float32)
    dataset = tf.data.Dataset.from_tensor_slices((images, data.target)).shuffle(1797, seed=7).batch(32)
    for step, (x, y) in enumerate(dataset.take(40)):
        print("step", step, "loss", float(train_step(x, y)))


if __name__ == "__main__":
    main()
