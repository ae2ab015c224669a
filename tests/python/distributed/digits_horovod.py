"""The same training as digits.py's, as a script for Horovod, which `cairn migrate` rewrites."""

import horovod.tensorflow as hvd
import numpy as np
import tensorflow as tf
from sklearn.datasets import load_digits

BATCH, EPOCHS, TEST = 64, 5, 360


def lenet(images):
    net = tf.layers.conv2d(images, 8, 3, padding="same", activation=tf.nn.relu, kernel_initializer=tf.glorot_uniform_initializer(seed=1 + hvd.rank()))
    net = tf.layers.max_pooling2d(net, 2, 2)
    net = tf.layers.conv2d(net, 16, 3, padding="same", activation=tf.nn.relu, kernel_initializer=tf.glorot_uniform_initializer(seed=2))
    net = tf.layers.flatten(tf.layers.max_pooling2d(net, 2, 2))
    net = tf.layers.dense(net, 32, activation=tf.nn.relu, kernel_initializer=tf.glorot_uniform_initializer(seed=3))
    return tf.layers.dense(net, 10, kernel_initializer=tf.glorot_uniform_initializer(seed=4))


def main():
    hvd.init()
    images, labels = load_digits(return_X_y=True)
    order = np.random.RandomState(3).permutation(len(labels))
    images, labels = (images[order] / 16).reshape(-1, 8, 8, 1).astype(np.float32), labels[order]
    x, y = tf.placeholder(tf.float32, [None, 8, 8, 1]), tf.placeholder(tf.int64, [None])
    logits = lenet(x)
    optimizer = hvd.DistributedOptimizer(tf.train.MomentumOptimizer(0.05, 0.9))
    train = optimizer.minimize(tf.losses.sparse_softmax_cross_entropy(y, logits))
    predicted = tf.argmax(logits, 1)
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        session.run(hvd.broadcast_global_variables(0))
        for epoch in range(EPOCHS):
            rows = TEST + np.random.RandomState(epoch).permutation(len(labels) - TEST)
            for first in range(0, len(rows) - BATCH + 1, BATCH):
                mine = rows[first:first + BATCH][hvd.rank()::hvd.size()]
                session.run(train, {x: images[mine], y: labels[mine]})
        right = session.run(predicted, {x: images[:TEST]}) == labels[:TEST]
    print("accuracy", np.mean(right), flush=True)


if __name__ == "__main__":
    main()
