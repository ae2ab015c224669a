"""A small CNN on scikit-learn's handwritten digits, written as for TensorFlow 1 and a GPU: a session, feed_dict and a frozen
graph at the end. The demo migrates this script and trains it on two engines."""

import argparse
import os
import time

import numpy as np
import tensorflow as tf
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from tensorflow.python.framework import graph_util


def data():
    digits = load_digits()
    images = (digits.images[..., np.newaxis] / 16).astype(np.float32)
    return train_test_split(images, digits.target, test_size=0.25, random_state=0, stratify=digits.target)


def network(images, training):
    net = tf.layers.conv2d(images, 32, 3, padding="same", use_bias=False, name="conv1")
    net = tf.nn.relu(tf.layers.batch_normalization(net, momentum=0.9, training=training, name="norm1"))
    net = tf.layers.max_pooling2d(net, 2, 2)
    net = tf.layers.conv2d(net, 64, 3, padding="same", activation=tf.nn.relu, name="conv2")
    net = tf.layers.max_pooling2d(net, 2, 2)
    net = tf.layers.dense(tf.layers.flatten(net), 64, activation=tf.nn.relu, name="hidden")
    return tf.layers.dense(net, 10, name="logits")


def main(options):
    train_images, test_images, train_labels, test_labels = data()
    tf.set_random_seed(1)
    images = tf.placeholder(tf.float32, [None, 8, 8, 1], name="images")
    labels = tf.placeholder(tf.int64, [None], name="labels")
    training = tf.placeholder_with_default(False, [], name="training")
    with tf.device("/gpu:0"):
        logits = network(images, training)
        tf.nn.softmax(logits, name="probabilities")
        loss = tf.losses.sparse_softmax_cross_entropy(labels, logits)
        accuracy = tf.reduce_mean(tf.cast(tf.equal(tf.argmax(logits, 1), labels), tf.float32))
    with tf.control_dependencies(tf.get_collection(tf.GraphKeys.UPDATE_OPS)):
        train_op = tf.train.AdamOptimizer(0.002).minimize(loss)

    config = tf.ConfigProto(allow_soft_placement=True)
    config.gpu_options.allow_growth = True
    order = np.random.RandomState(1)
    losses, seconds = [], []
    with tf.Session(config=config) as sess:
        sess.run(tf.global_variables_initializer())
        for step in range(options.steps):
            batch = order.choice(len(train_images), 64, replace=False)
            start = time.time()
            _, value = sess.run([train_op, loss], {images: train_images[batch], labels: train_labels[batch], training: True})
            seconds.append(time.time() - start)
            losses.append(value)
        reached = sess.run(accuracy, {images: test_images, labels: test_labels})
        frozen = graph_util.convert_variables_to_constants(sess, tf.get_default_graph().as_graph_def(), ["probabilities"])
    os.makedirs(options.output, exist_ok=True)
    with open(os.path.join(options.output, "frozen.pb"), "wb") as file:
        file.write(frozen.SerializeToString())
    np.savez(os.path.join(options.output, "record.npz"), losses=losses, seconds=seconds, accuracy=reached)
    print("%d steps, loss %.4f to %.4f, test accuracy %.4f" % (options.steps, losses[0], losses[-1], reached))


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=200)
    parser.add_argument("--output", default="trained")
    main(parser.parse_args())
