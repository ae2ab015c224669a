"""Training graphs of TensorFlow 1 over lists of new lengths in every step: tokens, nodes and boxes without padding."""

import numpy as np
import tensorflow as tf

from cases.tf1_sequence import adam
from cases.tf1_vision import cross_entropy, train

layers = tf.layers


def ends_of(counts):
    return np.repeat(np.arange(len(counts)), counts)


def attention_over_lists():
    """Tokens of 32 sentences in one list; each sentence's weights are a softmax over its own part."""
    x, owners, y = tf.placeholder(tf.float32, [None, 32]), tf.placeholder(tf.int32, [None]), tf.placeholder(tf.int64, [32])
    h = layers.dense(x, 64, tf.nn.tanh)
    scores = layers.dense(h, 4)
    scores = tf.exp(scores - tf.gather(tf.math.unsorted_segment_max(scores, owners, 32), owners))
    weights = scores / tf.gather(tf.math.unsorted_segment_sum(scores, owners, 32), owners)
    heads = tf.reshape(h, [-1, 4, 16]) * weights[:, :, None]
    h = tf.math.unsorted_segment_sum(tf.reshape(heads, [-1, 64]), owners, 32)
    loss = cross_entropy(layers.dense(h, 8), y)
    random, feeds = np.random.RandomState(0), []
    for _ in range(200):
        ends = ends_of(random.randint(2, 40, size=32))
        feeds.append({x: random.randn(len(ends), 32).astype("f"), owners: ends, y: random.randint(8, size=32)})
    return loss, train(loss, adam()), feeds


def pooling_of_graphs():
    """Messages along edges, then only the nodes that score above zero go on."""
    x, ends = tf.placeholder(tf.float32, [None, 16]), tf.placeholder(tf.int32, [2, None])
    owners, y = tf.placeholder(tf.int32, [None]), tf.placeholder(tf.int64, [24])
    h = layers.dense(x, 32, tf.nn.relu)
    h = h + tf.math.unsorted_segment_sum(layers.dense(tf.gather(h, ends[0]), 32, tf.nn.relu), ends[1], tf.shape(x)[0])
    score = layers.dense(h, 1)[:, 0]
    kept = score > tf.reduce_mean(score)
    h = tf.boolean_mask(h * tf.nn.sigmoid(score)[:, None], kept)
    h = layers.dense(h, 64, tf.nn.relu)
    loss = cross_entropy(layers.dense(tf.math.unsorted_segment_mean(h, tf.boolean_mask(owners, kept), 24), 5), y)
    random, feeds = np.random.RandomState(0), []
    for _ in range(200):
        of_nodes = ends_of(random.randint(8, 30, size=24))
        edges = random.randint(len(of_nodes), size=(2, 3 * len(of_nodes) + random.randint(50)))
        features = random.randn(len(of_nodes), 16).astype("f")
        feeds.append({x: features, ends: edges, owners: of_nodes, y: random.randint(5, size=24)})
    return loss, train(loss, adam()), feeds


def boxes_of_an_image():
    """Anchors take the class and the place of the box that they cover most, of as many boxes as the image holds."""
    x = tf.placeholder(tf.float32, [1, 64, 64, 3])
    boxes, classes = tf.placeholder(tf.float32, [None, 4]), tf.placeholder(tf.int64, [None])
    h = x
    for width in (16, 32, 32):
        h = layers.conv2d(h, width, 3, 2, "same", activation=tf.nn.relu)
    logits = tf.reshape(layers.conv2d(h, 6, 1), [-1, 6])
    moves = tf.reshape(layers.conv2d(h, 4, 1), [-1, 4])
    corners = np.stack(np.meshgrid(np.arange(8), np.arange(8), indexing="ij"), -1).reshape(-1, 2) / 8
    anchors = tf.constant(np.concatenate([corners, corners + 0.25], 1).astype("f"))
    low, high = tf.maximum(anchors[:, None, :2], boxes[None, :, :2]), tf.minimum(anchors[:, None, 2:], boxes[None, :, 2:])
    shared = tf.reduce_prod(tf.maximum(high - low, 0.0), -1)
    areas = [tf.reduce_prod(each[:, 2:] - each[:, :2], -1) for each in (anchors, boxes)]
    overlap = shared / (areas[0][:, None] + areas[1][None] - shared)
    best, hit = tf.argmax(overlap, 1), tf.reduce_max(overlap, 1) > 0.2
    target = tf.where(hit, tf.gather(classes, best), tf.zeros_like(best))
    away = tf.reduce_sum(tf.square(moves - (tf.gather(boxes, best) - anchors)), 1)
    loss = cross_entropy(logits, target) + tf.reduce_mean(tf.where(hit, away, tf.zeros_like(away)))
    random, feeds = np.random.RandomState(0), []
    for _ in range(200):
        count = random.randint(2, 90)
        starts = random.rand(count, 2) * 0.7
        held = np.concatenate([starts, starts + 0.1 + 0.2 * random.rand(count, 2)], 1).astype("f")
        feeds.append({x: random.rand(1, 64, 64, 3).astype("f"), boxes: held, classes: random.randint(1, 6, size=count)})
    return loss, train(loss, adam()), feeds
