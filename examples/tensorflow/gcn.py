"""A graph convolution network on a made citation graph: sparse times dense matrices, dropout, masked loss."""

import common
import numpy as np
import tensorflow as tf

from npu_bridge.npu_init import *  # noqa: F403  isort: skip

NODES, FEATURES, CLASSES = 200, 40, 4


def graph(seed):
    """Normalised adjacency, features, classes; nodes of a class are joined more often."""
    random = np.random.RandomState(seed)
    classes = random.randint(CLASSES, size=NODES)
    same = classes[:, None] == classes[None]
    joined = random.uniform(size=[NODES, NODES]) < np.where(same, 0.06, 0.005)
    adjacency = np.maximum(joined, joined.T).astype(np.float32) + np.eye(NODES, dtype=np.float32)
    scale = 1 / np.sqrt(adjacency.sum(1))
    adjacency *= scale[:, None] * scale[None]
    centres = random.randn(CLASSES, FEATURES)
    features = (centres[classes] + 2 * random.randn(NODES, FEATURES)).astype(np.float32)
    return adjacency, features, classes


def layer(support, x, units, keep_prob, name):
    x = npu_ops.dropout(x, keep_prob)
    weights = tf.get_variable(name, [x.shape.as_list()[1], units], initializer=tf.contrib.layers.xavier_initializer())
    return tf.sparse_tensor_dense_matmul(support, tf.matmul(x, weights))


def main():
    options = common.arguments(__doc__, steps=60)
    adjacency, features, classes = graph(options.seed)
    places = np.argwhere(adjacency)
    support_value = tf.SparseTensorValue(places, adjacency[tuple(places.T)], adjacency.shape)
    known = np.arange(NODES) < 60
    tf.set_random_seed(options.seed)
    support = tf.sparse_placeholder(tf.float32, [NODES, NODES])
    x, y = tf.placeholder(tf.float32, [NODES, FEATURES]), tf.placeholder(tf.int64, [NODES])
    mask = tf.placeholder(tf.float32, [NODES])
    keep_prob = tf.placeholder_with_default(1.0, [])
    hidden = tf.nn.relu(layer(support, x, 16, keep_prob, "first"))
    logits = layer(support, hidden, CLASSES, keep_prob, "second")
    each = tf.nn.sparse_softmax_cross_entropy_with_logits(labels=y, logits=logits)
    loss = tf.reduce_sum(each * mask) / tf.reduce_sum(mask) + 5e-4 * tf.nn.l2_loss(tf.trainable_variables()[0])
    right = tf.cast(tf.equal(tf.argmax(logits, 1), y), tf.float32)
    accuracy = tf.reduce_sum(right * mask) / tf.reduce_sum(mask)
    train = tf.train.AdamOptimizer(0.01).minimize(loss)
    record = common.Record(options)
    feed = {support: support_value, x: features, y: classes}
    with tf.Session(config=npu_config_proto()) as sess:
        sess.run(tf.global_variables_initializer())
        for _ in range(options.steps):
            record.add(sess.run([loss, train], {**feed, mask: known, keep_prob: 0.7})[0])
        print(f"accuracy on the other nodes {sess.run(accuracy, {**feed, mask: ~known}):.3f}")
        record.save_session(sess, tf.global_variables())


if __name__ == "__main__":
    main()
