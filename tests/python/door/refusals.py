"""Steps of which the engine refuses a node, or which wait for themselves, run by test_door_refusals.py as cases.py is."""

import cases
import numpy as np
import tensorflow.compat.v1 as tf
from cases import case, data, fresh, plain, session, variable


def masked(x, hidden):
    """How many rows remain is known in the run only, and so is what a broadcast in the gradient adds up."""
    rows = tf.boolean_mask(hidden, tf.reduce_sum(x, 1) > 4.0)
    rest = tf.boolean_mask(tf.nn.dropout(hidden, rate=0.3), tf.reduce_sum(x, 1) > 4.0)
    return rows * rest[:, :1] + rest


def split(x, hidden):
    """Parts whose sizes are known in the run only."""
    many = tf.reduce_sum(tf.cast(tf.reduce_sum(x, 1) > 4.0, tf.int32))
    first, second = tf.split(hidden, [many, 8 - many])
    first = tf.reshape(tf.squeeze(first[:, None]), [-1, 8])  # which of its dims are 1, too
    return tf.concat([second * 2.0, first], 0) + tf.nn.dropout(hidden, rate=0.3)


@case
def sizes_of_the_run(name):
    """Two sets of fetches draw from the streams of two dropouts in turn."""

    def run(engine, resource):
        fresh(resource, seed=3)
        x = tf.placeholder(tf.float32, [8, 8])
        hidden = tf.nn.dropout(tf.nn.relu(tf.matmul(x, variable("w", 8, 8))), rate=0.3)
        loss = tf.reduce_mean(tf.square(tf.matmul({"masked": masked, "split": split}[name](x, hidden), variable("v", 8, 8)) - 1.0))
        step = tf.train.MomentumOptimizer(0.05, 0.9).minimize(loss)
        with session(engine) as s:
            s.run(tf.global_variables_initializer())
            inputs = data()[0].reshape(8, 8, 8)
            values = [s.run([loss, step] if i % 2 else [step, loss, hidden], {x: inputs[i]}) for i in range(6)]
            return plain([*[row[0 if i % 2 else 1] for i, row in enumerate(values)], *s.run(tf.global_variables())])

    return [[run(engine, resource) for engine in (None, True)] for resource in (False, True)]


@case
def a_queue_between_two_parts():
    """One run puts into a queue what it computes, and computes with what it takes out."""

    def run(engine):
        fresh()
        x, w = tf.placeholder(tf.float32, [8, 8]), variable("w", 8, 8)
        queue = tf.FIFOQueue(5, [tf.float32], [[8, 8]])
        put = queue.enqueue(tf.tanh(tf.matmul(tf.tanh(tf.matmul(x, w)), w)))
        loss = tf.reduce_mean(tf.square(tf.matmul(tf.tanh(tf.matmul(queue.dequeue(), w)), w) - 1.0))
        step = tf.train.GradientDescentOptimizer(0.1).minimize(loss)
        waits = tf.RunOptions(timeout_in_ms=60000)  # so that a fault ends the test
        with session(engine) as s:
            s.run(tf.global_variables_initializer())
            inputs = data()[0].reshape(8, 8, 8)
            losses = [s.run([put, loss], {x: each}, waits)[1] for each in inputs[:3]]
            s.run(put, {x: inputs[3]})
            return plain([*losses, s.run([step, loss])[1], s.run(w)])

    return [run(None), run(True)]


if __name__ == "__main__":
    cases.main()
