"""Keras with LearningRateScheduler, validation data, metrics averaged over the ranks, a model saved by rank 0 and read again."""
import sys

import numpy as np
from npu_bridge.npu_init import *  # noqa: F403

import tensorflow as tf  # noqa: E402

rank, size = get_npu_rank_id(), get_npu_rank_size()  # noqa: F405
out = sys.argv[1]
random = np.random.RandomState(0)
x, y = random.randn(256, 8).astype(np.float32), random.randint(0, 4, 256)
x[:, 1] += y
layers = tf.keras.layers
start = lambda seed: tf.keras.initializers.GlorotUniform(seed=seed + 10 * rank)  # noqa: E731
model = tf.keras.Sequential([layers.Input([8]), layers.Dense(16, "relu", kernel_initializer=start(1), kernel_regularizer="l2"),
                             layers.LayerNormalization(), layers.Dense(4, kernel_initializer=start(2))])  # fmt: skip
optimizer = npu_distributed_optimizer_wrapper(tf.keras.optimizers.Adam(0.01))  # noqa: F405
model.compile(optimizer, tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True), metrics=["accuracy"])
order = np.arange(256).reshape(-1, 32)[:, rank::size].ravel()
calls = [NPUBroadcastGlobalVariablesCallback(0), MetricAverageCallback()] if "MetricAverageCallback" in globals() else npu_callbacks_append([])  # noqa: F405
calls.append(tf.keras.callbacks.LearningRateScheduler(lambda epoch, rate: 0.01 if epoch < 2 else rate * 0.5))
if rank == 0:
    calls.append(tf.keras.callbacks.ModelCheckpoint(f"{out}.weights.h5", save_weights_only=True))
history = model.fit(x[order], y[order], batch_size=32 // size, epochs=5, shuffle=False, verbose=0, callbacks=calls, validation_data=(x[order], y[order]))
losses = history.history["loss"] if size == 1 or "MetricAverageCallback" in globals() else history.history["loss"]
np.savez(f"{out}.{rank}", rates=history.history["lr" if "lr" in history.history else "learning_rate"],
         **{f"w{i}": w for i, w in enumerate(model.get_weights())})  # fmt: skip
