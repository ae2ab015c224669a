"""Allocations of the door and the engine in steady steps, with count_allocations preloaded; run by test_door_steady.py."""

import ctypes

import cases
import numpy as np
import tensorflow.compat.v1 as tf
from cases import case, data, fresh, perceptron, session


def sentences(optimizer):
    """x, y, loss and train operation of an embedding with dropout: rows that are updated, random numbers."""
    x = tf.placeholder(tf.int32, [None, 6], name="x")
    y = tf.placeholder(tf.int64, [None], name="y")
    words = tf.nn.dropout(tf.gather(cases.variable("words", 50, 8), x), rate=0.5, seed=1)
    noise = tf.random_normal([8], stddev=0.01) + tf.truncated_normal([8], stddev=0.01)
    logits = tf.matmul(tf.reduce_mean(words, 1) + noise, cases.variable("w", 8, 3))
    loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=y, logits=logits))
    return x, y, loss, optimizer.minimize(loss)


def pictures(optimizer):
    """The same of convolutions and a product over pixels, whose gradients by their weights pack what they read."""
    x = tf.placeholder(tf.float32, [None, 12, 12, 20], name="x")
    y = tf.placeholder(tf.int64, [None], name="y")
    net = tf.nn.relu(tf.nn.conv2d(x, cases.variable("k1", 3, 3, 20, 40), 1, "SAME"))
    net = tf.nn.relu(tf.nn.conv2d(net, cases.variable("k2", 1, 1, 40, 70), 1, "SAME"))
    net = tf.reshape(tf.matmul(tf.reshape(net, [-1, 70]), cases.variable("w1", 70, 64)), [-1, 12, 12, 64])
    logits = tf.matmul(tf.reduce_mean(net, [1, 2]), cases.variable("w2", 64, 3))
    loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=y, logits=logits))
    return x, y, loss, optimizer.minimize(loss)


def words(count=64):
    random = np.random.RandomState(0)
    return random.randint(0, 50, (count, 6)), random.randint(0, 3, count)


@case
def allocations(resource):
    return counted(resource, perceptron, data())


@case
def allocations_with_convolutions(resource):
    random = np.random.RandomState(0)
    return counted(resource, pictures, (random.rand(16, 12, 12, 20).astype(np.float32), random.randint(0, 3, 16)))


@case
def allocations_with_rows_and_random_numbers(resource):
    return counted(resource, sentences, words())


def counted(resource, net, example):
    counter = ctypes.CDLL(None)
    counter.stop_counting.restype = ctypes.c_long
    for library in (b"_cairn_tf.so", b"libcairn.so"):
        counter.watch_allocations_of(library)
    fresh(resource == "True")
    x, y, loss, step = net(tf.train.AdamOptimizer(0.01))
    inputs, labels = example
    with session(True) as s:
        s.run(tf.global_variables_initializer())
        run = s.make_callable([loss, step], [x, y])
        for _ in range(20):
            run(inputs, labels)
        for _ in range(5):  # the first run on a thread that TensorFlow had not used yet makes what that thread keeps
            counter.start_counting()
            for _ in range(50):
                run(inputs, labels)
            count = counter.stop_counting()
            if not count:
                break
        if count:
            counter.print_last()
        return count


if __name__ == "__main__":
    cases.main()
