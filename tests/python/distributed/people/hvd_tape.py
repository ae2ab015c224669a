"""TensorFlow 2 with hvd.DistributedGradientTape in a tf.function, gradients clipped by hand, variables broadcast after the first step."""
import sys

import horovod.tensorflow as hvd
import numpy as np
import tensorflow as tf

hvd.init()
out = sys.argv[1]
random = np.random.RandomState(0)
x, y = random.randn(10, 16, 6).astype(np.float32), random.randn(10, 16, 1).astype(np.float32)
model = tf.keras.Sequential([
    tf.keras.layers.Dense(9, activation="tanh", kernel_initializer=tf.keras.initializers.GlorotUniform(seed=1)),
    tf.keras.layers.Dense(1, kernel_initializer=tf.keras.initializers.GlorotUniform(seed=2)),
])  # fmt: skip
model.build([None, 6])
optimizer = tf.keras.optimizers.SGD(0.05, momentum=0.9)


@tf.function
def step(images, labels):
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean(tf.square(model(images, training=True) - labels))
    tape = hvd.DistributedGradientTape(tape)
    gradients = tape.gradient(loss, model.trainable_variables)
    gradients, _ = tf.clip_by_global_norm(gradients, 0.5)
    optimizer.apply_gradients(zip(gradients, model.trainable_variables))
    return loss


losses, rows = [], 16 // hvd.size()
for i in range(10):
    mine = slice(hvd.rank() * rows, (hvd.rank() + 1) * rows)
    loss = step(tf.constant(x[i][mine]), tf.constant(y[i][mine]))
    if i == 0:
        hvd.broadcast_variables(model.variables, root_rank=0)
        hvd.broadcast_variables(optimizer.variables, root_rank=0)
    losses.append(float(hvd.allreduce(loss)))
np.savez(f"{out}.{hvd.rank()}", losses=losses, **{f"w{i}": w for i, w in enumerate(model.get_weights())})
