"""TensorFlow 2: Keras' fit with Horovod's optimizer and callbacks."""
import horovod.tensorflow.keras as hvd
import numpy as np
import tensorflow as tf
from sklearn.datasets import load_digits

BATCH = 64

hvd.init()
gpus = tf.config.experimental.list_physical_devices("GPU")
for gpu in gpus:
    tf.config.experimental.set_memory_growth(gpu, True)
if gpus:
    tf.config.experimental.set_visible_devices(gpus[hvd.local_rank()], "GPU")


def words(images):
    """Rows of an image as words of a vocabulary."""
    return (np.clip(images, 0, 15).astype(np.int32) * np.arange(1, 9)).reshape(-1, 64) % 97


def network():
    ids = tf.keras.Input([64], dtype=tf.int32)
    init = tf.keras.initializers.GlorotUniform(seed=3)
    x = tf.keras.layers.Embedding(97, 32, embeddings_initializer=init)(ids)
    for _ in range(2):
        q, k, v = (tf.keras.layers.Dense(32, kernel_initializer=init)(x) for _ in range(3))
        x = tf.keras.layers.LayerNormalization()(x + tf.keras.layers.Attention(use_scale=False)([q, v, k]))
        inner = tf.keras.layers.Dense(64, activation="gelu", kernel_initializer=init)(x)
        x = tf.keras.layers.LayerNormalization()(x + tf.keras.layers.Dense(32, kernel_initializer=init)(inner))
    return tf.keras.Model(ids, tf.keras.layers.Dense(10, kernel_initializer=init)(tf.keras.layers.GlobalAveragePooling1D()(x)))


def main():
    data = load_digits()
    features = words(data.images)[:1728]  # 27 whole batches
    dataset = tf.data.Dataset.from_tensor_slices((features, data.target[:1728])).shard(hvd.size(), hvd.rank())
    dataset = dataset.batch(BATCH // hvd.size(), drop_remainder=True)
    model = network()
    opt = hvd.DistributedOptimizer(tf.keras.optimizers.Adam(2e-3))
    loss = tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile(optimizer=opt, loss=loss, metrics=["accuracy"])
    callbacks = [
        hvd.callbacks.BroadcastGlobalVariablesCallback(0),
        hvd.callbacks.MetricAverageCallback(),
    ]
    history = model.fit(dataset, epochs=2, callbacks=callbacks, verbose=0)
    if hvd.rank() == 0:
        for value in history.history["loss"]:
            print("loss %.5f" % value, flush=True)


if __name__ == "__main__":
    main()
