"""Nets whose inputs have other sizes in every step, run by test_door_sizes.py as cases.py is."""

import cases
import numpy as np
import tensorflow.compat.v1 as tf
from cases import case, fresh, session, variable

STEPS = 40
random = np.random.RandomState


def cross_entropy(labels, logits):
    return tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=logits))


def words():
    """Sentences in batches of different length and, in the end, number."""
    x, y = tf.placeholder(tf.int32, [None, None]), tf.placeholder(tf.int32, [None])
    h = tf.nn.embedding_lookup(variable("table", 50, 16), x)
    h = tf.nn.relu(tf.nn.conv1d(h, variable("kernel", 3, 16, 16), 1, "SAME")) + h
    weights = tf.nn.softmax(tf.reduce_sum(h * variable("query", 16), -1))
    loss = cross_entropy(y, tf.matmul(tf.reduce_sum(h * weights[:, :, None], 1), variable("w", 16, 5)))

    def feed(i):
        rows = 8 if i % 7 else 3 + i % 5
        return {x: random(i).randint(50, size=(rows, 4 + i)), y: random(i).randint(5, size=rows)}

    return loss, feed


def edges():
    """Messages along edges of which there are never as many again."""
    nodes, ends, y = tf.placeholder(tf.float32, [None, 8]), tf.placeholder(tf.int32, [2, None]), tf.placeholder(tf.int32, [None])
    h = tf.matmul(nodes, variable("first", 8, 16))
    messages = tf.nn.relu(tf.matmul(tf.gather(h, ends[0]), variable("w", 16, 16)))
    h = h + tf.math.unsorted_segment_sum(messages, ends[1], tf.shape(h)[0])
    loss = cross_entropy(y, tf.matmul(h, variable("last", 16, 3)))

    def feed(i):
        rows = 20 + i % 11
        return {
            nodes: random(i).randn(rows, 8),
            ends: random(i).randint(rows, size=(2, 60 + 3 * i)),
            y: random(i).randint(3, size=rows),
        }

    return loss, feed


def nonzeros():
    ids, y = tf.sparse_placeholder(tf.int64, [16, 20]), tf.placeholder(tf.int32, [16])
    mean = tf.nn.embedding_lookup_sparse(variable("table", 200, 8), ids, None, combiner="mean")
    loss = cross_entropy(y, tf.matmul(mean, variable("w", 8, 2)))

    def feed(i):
        rows = np.sort(np.concatenate([np.arange(16), random(i).randint(16, size=10 + i)]))
        columns = np.concatenate([np.arange(count) for count in np.bincount(rows)])
        values = random(i).randint(200, size=len(rows))
        return {ids: (np.stack([rows, columns], 1), values, [16, 20]), y: random(i).randint(2, size=16)}

    return loss, feed


def lengths():
    x, y = tf.placeholder(tf.float32, [4, None, 6]), tf.placeholder(tf.int32, [4])
    _, state = tf.nn.dynamic_rnn(tf.nn.rnn_cell.GRUCell(8), x, dtype=tf.float32)
    loss = cross_entropy(y, tf.matmul(state, variable("w", 8, 3)))
    return loss, lambda i: {x: random(i).randn(4, 2 + i, 6), y: random(i).randint(3, size=4)}


def told():
    """The engine gets a size as a number, not by the shape of anything: TensorFlow counts texts."""
    texts, x = tf.placeholder(tf.string, [None]), tf.placeholder(tf.float32, [None])
    h = tf.matmul(tf.reshape(x, [tf.shape(texts)[0], 8]), variable("w", 8, 4))
    loss = tf.reduce_mean(tf.square(h)) + tf.reduce_sum(tf.ones(tf.shape(texts))) * 1e-3
    return loss, lambda i: {texts: ["a"] * (2 + i), x: random(i).randn(8 * (2 + i))}


def parts():
    """Rows of three kinds, each with weights of its own, in one list: each part's gradient is a slice whose ends a run tells."""
    rows, owners = [tf.placeholder(tf.float32, [None, 6]) for _ in range(3)], tf.placeholder(tf.int32, [None])
    made = [tf.nn.relu(tf.matmul(x, variable(f"w{i}", 6, 8))) for i, x in enumerate(rows)]
    sums = tf.math.unsorted_segment_sum(tf.tanh(tf.concat(made, 0)), owners, 4)
    loss = tf.reduce_mean(tf.square(tf.matmul(sums, variable("last", 8, 1)) - 1))

    def feed(i):
        counts = [5 + i, 9 + 2 * i, 20 + 3 * i]
        fed = {x: random(i).randn(count, 6) for x, count in zip(rows, counts, strict=True)}
        return {**fed, owners: random(i).randint(4, size=sum(counts))}

    return loss, feed


@case
def sizes(name):
    def run(engine):
        fresh()
        loss, feed = globals()[name]()
        train = tf.train.AdamOptimizer(0.01).minimize(loss)
        with session(engine) as s:
            s.run(tf.global_variables_initializer())
            return [float(s.run([loss, train], feed(i))[0]) for i in range(STEPS)]

    return [run(None), run(True)]


if __name__ == "__main__":
    cases.main()
