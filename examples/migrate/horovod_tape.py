"""TensorFlow 2 with Horovod: a step of its own with DistributedGradientTape, variables broadcast after the first step."""
import horovod.tensorflow as hvd
import numpy as np
import tensorflow as tf
from sklearn.datasets import load_digits

hvd.init()
data = load_digits()
images = (data.images / 16)[..., None].astype(np.float32)
dataset = tf.data.Dataset.from_tensor_slices((images, data.target)).repeat().shard(hvd.size(), hvd.rank())
dataset = dataset.batch(64 // hvd.size())
init = tf.keras.initializers.GlorotUniform(seed=5)
model = tf.keras.Sequential([
    tf.keras.layers.Conv2D(8, 3, activation="relu", kernel_initializer=init, input_shape=(8, 8, 1)),
    tf.keras.layers.Flatten(),
    tf.keras.layers.Dense(10, kernel_initializer=init),
])
loss_object = tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True)
opt = tf.keras.optimizers.Adam(0.005)


@tf.function
def training_step(x, y):
    with tf.GradientTape() as tape:
        loss = loss_object(y, model(x, training=True))
    tape = hvd.DistributedGradientTape(tape)
    gradients = tape.gradient(loss, model.trainable_variables)
    opt.apply_gradients(zip(gradients, model.trainable_variables))
    return loss


for step, (x, y) in enumerate(dataset.take(20)):
    loss = training_step(x, y)
    if step == 0:
        hvd.broadcast_variables(model.variables, root_rank=0)
        hvd.broadcast_variables(opt.variables, root_rank=0)
    mean = hvd.allreduce(loss)
    if hvd.rank() == 0:
        print("step %d loss %.5f" % (step, float(mean)), flush=True)
