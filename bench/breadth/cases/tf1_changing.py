"""Training graphs of TensorFlow 1 whose sizes hardly ever repeat: data decides them, or every batch has others."""

import numpy as np
import tensorflow as tf

from cases.tf1_sequence import adam
from cases.tf1_vision import cross_entropy, train

layers = tf.layers


def proposals_by_suppression():
    """Boxes that survive non-maximum suppression are cut out and classified, as in the second stage of a detector."""
    images, y = tf.placeholder(tf.float32, [1, 96, 96, 3]), tf.placeholder(tf.int64, [576])
    h = images
    for width in (16, 32):
        h = layers.conv2d(h, width, 3, 2, "same", activation=tf.nn.relu)
    scores = tf.reshape(layers.conv2d(h, 1, 1), [-1])
    corners = np.stack(np.meshgrid(np.arange(24), np.arange(24), indexing="ij"), -1).reshape(-1, 2) / 24
    anchors = tf.constant(np.concatenate([corners, corners + 0.2], 1).astype("f"))
    boxes = anchors + 0.1 * tf.tanh(tf.reshape(layers.conv2d(h, 4, 1), [-1, 4]))
    kept = tf.image.non_max_suppression(tf.stop_gradient(boxes), scores, 64, 0.3, 0.0)
    crops = tf.image.crop_and_resize(h, tf.gather(boxes, kept), tf.zeros_like(kept), [6, 6])
    logits = layers.dense(layers.dense(layers.flatten(crops), 64, tf.nn.relu), 5)
    object_loss = tf.reduce_mean(tf.nn.sigmoid_cross_entropy_with_logits(labels=tf.cast(y > 0, tf.float32), logits=scores))
    loss = cross_entropy(logits, tf.gather(y, kept)) + object_loss
    random = np.random.RandomState(0)
    feeds = [{images: random.rand(1, 96, 96, 3).astype("f"), y: random.randint(5, size=576)} for _ in range(8)]
    return loss, train(loss, tf.train.MomentumOptimizer(0.01, 0.9)), feeds


def words_met_in_a_batch():
    """Each word that a batch holds goes through the encoder once, however often it stands there."""
    ids, y = tf.placeholder(tf.int32, [64, 20]), tf.placeholder(tf.int64, [64])
    words, places = tf.unique(tf.reshape(ids, [-1]))
    rows = tf.nn.embedding_lookup(tf.get_variable("table", [5000, 32]), words)
    rows = layers.dense(layers.dense(rows, 64, tf.nn.relu), 32)
    h = tf.reduce_mean(tf.reshape(tf.gather(rows, places), [64, 20, 32]), 1)
    loss = cross_entropy(layers.dense(h, 10), y)
    random = np.random.RandomState(0)
    feeds = [{ids: random.zipf(1.3, size=(64, 20)) % 5000, y: random.randint(10, size=64)} for _ in range(200)]
    return loss, train(loss, adam()), feeds


def tokens_without_padding():
    """Dense layers see the tokens alone; attention sees the padded batch."""
    x, lengths, y = tf.placeholder(tf.float32, [16, None, 32]), tf.placeholder(tf.int32, [16]), tf.placeholder(tf.int64, [16])
    mask = tf.sequence_mask(lengths, tf.shape(x)[1])
    places = tf.where(mask)
    q, k, v = (layers.dense(x, 32, name=name) for name in "qkv")
    scores = tf.matmul(q, k, transpose_b=True) + tf.where(mask, tf.zeros_like(x[..., 0]), -1e9 * tf.ones_like(x[..., 0]))[:, None]
    h = tf.boolean_mask(x + tf.matmul(tf.nn.softmax(scores / 6), v), mask)
    h = h + layers.dense(layers.dense(h, 128, tf.nn.relu), 32)
    h = tf.scatter_nd(places, h, tf.shape(x, out_type=tf.int64))
    loss = cross_entropy(layers.dense(tf.reduce_max(h, 1), 8), y)
    random, feeds = np.random.RandomState(0), []
    for _ in range(200):
        counts = random.randint(5, 40, size=16)
        feeds.append({x: random.randn(16, counts.max(), 32).astype("f"), lengths: counts, y: random.randint(8, size=16)})
    return loss, train(loss, adam()), feeds


def losses_above_their_mean():
    """Only the examples that the net finds hard go into the loss."""
    x, y = tf.placeholder(tf.float32, [512, 64]), tf.placeholder(tf.int64, [512])
    logits = layers.dense(layers.dense(x, 128, tf.nn.relu), 10)
    losses = tf.nn.sparse_softmax_cross_entropy_with_logits(labels=y, logits=logits)
    loss = tf.reduce_mean(tf.boolean_mask(losses, losses > tf.reduce_mean(losses)))
    random = np.random.RandomState(0)
    feeds = [{x: random.randn(512, 64).astype("f"), y: random.randint(10, size=512)} for _ in range(8)]
    return loss, train(loss, adam()), feeds


def clouds_of_varying_points():
    x, y = tf.placeholder(tf.float32, [8, None, 3]), tf.placeholder(tf.int64, [8])
    h = x
    for width in (32, 64, 128):
        h = layers.conv1d(h, width, 1, activation=tf.nn.relu)
    h = tf.concat([h, tf.tile(tf.reduce_max(h, 1, keepdims=True), [1, tf.shape(h)[1], 1])], 2)
    h = tf.reduce_max(layers.conv1d(h, 64, 1, activation=tf.nn.relu), 1)
    loss = cross_entropy(layers.dense(h, 6), y)
    random, feeds = np.random.RandomState(0), []
    for i in range(300):
        feeds.append({x: random.randn(8, 200 + 3 * (i * 101 % 300), 3).astype("f"), y: random.randint(6, size=8)})
    return loss, train(loss, adam()), feeds


def cells_that_are_occupied():
    """A few cells of a volume hold anything: their features are gathered, changed and put back."""
    x, y = tf.placeholder(tf.float32, [4, 12, 12, 12, 8]), tf.placeholder(tf.int64, [4])
    places = tf.where(tf.reduce_any(x > 0, -1))
    rows = layers.dense(layers.dense(tf.gather_nd(x, places), 64, tf.nn.relu), 16)
    grid = tf.scatter_nd(places, rows, tf.shape(x[..., :1], out_type=tf.int64) * tf.constant([1, 1, 1, 1, 16], tf.int64))
    h = tf.reduce_max(layers.conv3d(grid, 16, 3, 2, activation=tf.nn.relu), [1, 2, 3])
    loss = cross_entropy(layers.dense(h, 4), y)
    random, feeds = np.random.RandomState(0), []
    for _ in range(100):
        held = random.rand(4, 12, 12, 12, 1) > 0.9
        feeds.append({x: np.where(held, random.rand(4, 12, 12, 12, 8), 0).astype("f"), y: random.randint(4, size=4)})
    return loss, train(loss, adam()), feeds


def experts_of_the_best_two():
    """Rows go to two of four experts each, and what these make of them is added."""
    x, y = tf.placeholder(tf.float32, [256, 64]), tf.placeholder(tf.int64, [256])
    weights, chosen = tf.nn.top_k(tf.nn.softmax(layers.dense(x, 4)), 2)
    rows = tf.reshape(tf.tile(tf.range(256)[:, None], [1, 2]), [-1])
    parts = tf.dynamic_partition(rows, tf.reshape(chosen, [-1]), 4)
    shares = tf.dynamic_partition(tf.reshape(weights, [-1, 1]), tf.reshape(chosen, [-1]), 4)
    made = [layers.dense(layers.dense(tf.gather(x, part), 96, tf.nn.relu), 64) * share for part, share in zip(parts, shares)]
    h = tf.math.unsorted_segment_sum(tf.concat(made, 0), tf.concat(parts, 0), 256)
    loss = cross_entropy(layers.dense(h, 10), y)
    random = np.random.RandomState(0)
    feeds = [{x: random.randn(256, 64).astype("f"), y: random.randint(10, size=256)} for _ in range(8)]
    return loss, train(loss, adam()), feeds


def sums_over_sets():
    """Sets of different size by their ends: sums of what their members become, with the last batch smaller."""
    x, owners, y = tf.placeholder(tf.float32, [None, 16]), tf.placeholder(tf.int32, [None]), tf.placeholder(tf.float32, [None])
    h = layers.dense(layers.dense(x, 64, tf.nn.relu), 64, tf.nn.relu)
    sums = tf.math.unsorted_segment_sum(h, owners, tf.shape(y)[0])
    loss = tf.reduce_mean(tf.square(layers.dense(layers.dense(sums, 32, tf.nn.relu), 1)[:, 0] - y))
    random, feeds = np.random.RandomState(0), []
    for i in range(200):
        counts = random.randint(1, 30, size=64 if i % 10 else 23)
        ends = np.repeat(np.arange(len(counts)), counts)
        feeds.append({x: random.randn(len(ends), 16).astype("f"), owners: ends, y: counts / 30})
    return loss, train(loss, adam()), feeds
