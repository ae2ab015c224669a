"""A Horovod script of TensorFlow 1: rate times size, metrics by hvd.allreduce, broadcast_global_variables, allgather of predictions."""
import sys

import horovod.tensorflow as hvd
import numpy as np
import tensorflow as tf

hvd.init()
out = sys.argv[1]
random = np.random.RandomState(0)
data, target = random.randn(12, 16, 5).astype(np.float32), random.randint(0, 2, [12, 16])
data[:, :, 2] += target
x, y = tf.placeholder(tf.float32, [None, 5]), tf.placeholder(tf.int64, [None])
logits = tf.layers.dense(tf.layers.dense(x, 7, tf.nn.elu, kernel_initializer=tf.glorot_uniform_initializer(seed=1 + hvd.rank())), 2,
                         kernel_initializer=tf.glorot_uniform_initializer(seed=5 + hvd.rank()))  # fmt: skip
loss = tf.losses.sparse_softmax_cross_entropy(y, logits)
optimizer = tf.train.RMSPropOptimizer(0.01)
optimizer = hvd.DistributedOptimizer(optimizer)
train = optimizer.minimize(loss, tf.train.get_or_create_global_step())
right = tf.reduce_mean(tf.cast(tf.equal(tf.argmax(logits, 1), y), tf.float32))
mean_right, mean_loss = hvd.allreduce(right), hvd.allreduce(loss, average=True)
every = hvd.allgather(tf.argmax(logits, 1))
config = tf.ConfigProto()
config.gpu_options.visible_device_list = str(hvd.local_rank())
losses = []
with tf.Session(config=config) as session:
    session.run(tf.global_variables_initializer())
    session.run(hvd.broadcast_global_variables(0))
    rows = 16 // hvd.size()
    mine = slice(hvd.rank() * rows, (hvd.rank() + 1) * rows)
    for i in range(12):
        feed = {x: data[i][mine], y: target[i][mine]}
        _, a, b, predicted = session.run([train, mean_right, mean_loss, every], feed)
        losses += [a, b]
        assert predicted.shape == (16,)
    weights = session.run(tf.trainable_variables())
if hvd.rank() == 0:
    print("accuracy", losses[-2])
np.savez("%s.%d" % (out, hvd.rank()), losses=losses[1::2], **{"w%d" % i: w for i, w in enumerate(weights)})
