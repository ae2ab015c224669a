"""TensorFlow 1's conditionals and loops (Switch and Merge, Enter and Exit) in steps that train, run by test_door_control.py as
cases.py is."""

import cases
import numpy as np
import tensorflow.compat.v1 as tf
from cases import case, data, fresh, plain, session, variable


def steps(build, feeds):
    """[stock, engine]: what build() gives, run once for each feed, and the variables afterwards."""
    results = []
    for engine in (None, True):
        tf.disable_control_flow_v2()
        fresh()
        fetches, placeholders = build()
        with session(engine) as s:
            s.run(tf.global_variables_initializer())
            values = [s.run(fetches, dict(zip(placeholders, feed))) for feed in feeds]
            flat = [value for row in values for value in (row if isinstance(row, list) else [row]) if value is not None]
            results.append([plain(flat), plain(s.run(tf.global_variables()))])
    return results


def dense(x, name, *dims):
    return tf.matmul(x, variable(name, *dims))


@case
def updates_in_a_branch():
    """A loss scale: the update is left out when a gradient is not finite, and the scale changes in both branches."""

    def build():
        x = tf.placeholder(tf.float32, [None, 8])
        scale = tf.get_variable("scale", initializer=np.float32(4.0), trainable=False)
        count = tf.get_variable("count", initializer=np.int32(0), trainable=False)
        loss = tf.reduce_mean(tf.square(dense(tf.nn.relu(dense(x, "w1", 8, 16)), "w2", 16, 3)))
        optimizer = tf.train.AdamOptimizer(0.01)
        pairs = [(g / scale, v) for g, v in optimizer.compute_gradients(loss * scale)]
        finite = tf.reduce_all([tf.reduce_all(tf.is_finite(g)) for g, _ in pairs])
        applied = tf.cond(finite, lambda: optimizer.apply_gradients(pairs), tf.no_op)
        changed = tf.cond(
            finite, lambda: tf.group(tf.assign(scale, scale * 2.0), tf.assign_add(count, 1)), lambda: tf.assign(scale, scale / 2.0).op
        )
        return [loss, tf.group(applied, changed)], [x]

    good = data()[0]
    bad = np.full_like(good, 1e30)
    return steps(build, [[good], [good], [bad], [good]])


@case
def batch_norm_by_a_placeholder():
    """The statistics move in one branch; the gradient goes through both."""

    def build():
        x, training = tf.placeholder(tf.float32, [None, 6, 6, 3]), tf.placeholder(tf.bool, [])
        fixed = tf.initializers.constant(0.1)
        hidden = tf.layers.conv2d(x, 8, 3, kernel_initializer=tf.initializers.random_uniform(-0.3, 0.3, seed=3))
        hidden = tf.nn.relu(tf.layers.batch_normalization(hidden, training=training, beta_initializer=fixed))
        hidden = tf.layers.conv2d(hidden, 4, 3, kernel_initializer=tf.initializers.random_uniform(-0.3, 0.3, seed=4))
        hidden = tf.layers.batch_normalization(hidden, training=training, momentum=0.9)
        loss = tf.reduce_mean(tf.square(hidden - 0.3))
        with tf.control_dependencies(tf.get_collection(tf.GraphKeys.UPDATE_OPS)):
            step = tf.train.MomentumOptimizer(0.05, 0.9).minimize(loss)
        return [loss, step], [x, training]

    images = np.random.RandomState(0).rand(4, 6, 6, 3).astype(np.float32)
    return steps(build, [[images, True], [images[::-1], True], [images, False], [images, True]])


@case
def a_switch_that_is_waited_for():
    """Gradients of a branch stand behind the moving averages of another, so that a NoOp waits for their Switch."""

    def build():
        x, training = tf.placeholder(tf.float32, [None, 8]), tf.placeholder(tf.bool, [])
        averages = [tf.get_variable(name, initializer=np.zeros(16, np.float32), trainable=False) for name in ("mean", "square")]
        hidden = dense(x, "w1", 8, 16)
        means = [tf.reduce_mean(value, 0) for value in (hidden, tf.square(hidden))]
        moved = [
            tf.cond(training, lambda a=a, b=b: tf.assign(a, 0.9 * a + 0.1 * b), lambda a=a: a * 1.0) for a, b in zip(averages, means)
        ]
        hidden = tf.cond(training, lambda: tf.tanh(hidden) * 3.0, lambda: hidden * 1.5)
        loss = tf.reduce_mean(tf.square(dense(hidden, "w2", 16, 3)))
        with tf.control_dependencies(moved):
            return [loss, tf.train.GradientDescentOptimizer(0.1).minimize(loss)], [x, training]

    rows = data()[0]
    return steps(build, [[rows, True], [rows, False], [rows[:7], True]])


@case
def slopes_in_a_branch():
    """A gradient taken in a branch is part of the loss: it switches and merges by the branch's own condition."""

    def build():
        x, held = tf.placeholder(tf.float32, [None, 8]), tf.placeholder(tf.bool, [])
        a, b = variable("w1", 8, 16), variable("w2", 16, 1)
        score = lambda x: tf.matmul(tf.nn.softplus(tf.matmul(x, a)), b)
        slope = lambda: tf.reduce_mean(tf.square(tf.gradients(score(x * 2.0), x)[0]))
        loss = tf.reduce_mean(tf.square(score(x) - 1.0)) + tf.cond(held, slope, lambda: tf.constant(0.5))
        return [loss, tf.train.GradientDescentOptimizer(0.1).minimize(loss)], [x, held]

    rows = data()[0]
    return steps(build, [[rows, True], [rows, False], [rows[:7], True]])


@case
def dropout_in_a_branch():
    """The gradient uses the mask that the forward branch drew."""

    def build():
        x, training = tf.placeholder(tf.float32, [None, 8]), tf.placeholder(tf.bool, [])
        hidden = dense(x, "w1", 8, 16)
        dropped = tf.cond(training, lambda: tf.nn.dropout(hidden, rate=0.5, seed=5), lambda: tf.identity(hidden))
        loss = tf.reduce_mean(tf.square(dense(dropped, "w2", 16, 3)))
        return [loss, tf.train.GradientDescentOptimizer(0.1).minimize(loss)], [x, training]

    rows = data()[0]
    return steps(build, [[rows, True], [rows, False], [rows, True]])


@case
def branches_in_branches():
    """The gradient of a tf.case needs what its inner branches made; one of them draws."""

    def build():
        x, k = tf.placeholder(tf.float32, [None, 8]), tf.placeholder(tf.int32, [])
        shared = variable("shared", 8, 8)

        def third():
            hidden = tf.nn.dropout(tf.nn.relu(dense(x, "w3", 8, 8)), rate=0.4, seed=7)
            return tf.tanh(tf.matmul(hidden, shared))

        branches = [(tf.equal(k, 0), lambda: tf.matmul(x, shared)), (tf.equal(k, 1), lambda: tf.tanh(dense(x, "w2", 8, 8))),
                    (tf.equal(k, 2), third)]  # fmt: skip
        y = tf.case(branches, default=lambda: tf.nn.softplus(tf.matmul(tf.sin(tf.matmul(x, shared)), shared)))
        loss = tf.reduce_mean(tf.square(y - 1.0))
        return [loss, tf.train.MomentumOptimizer(0.05, 0.9).minimize(loss)], [x, k]

    inputs = data()[0].reshape(8, 8, 8)
    return steps(build, [(inputs[i % 8] * (1 + i % 3), i % 4) for i in range(12)])


@case
def gradients_that_accumulate():
    """Applied every second step, by a counter; conditionals in a conditional."""

    def build():
        x = tf.placeholder(tf.float32, [None, 8])
        w = variable("w", 8, 3)
        total = tf.get_variable("total", [8, 3], initializer=tf.zeros_initializer(), trainable=False)
        count = tf.get_variable("count", initializer=np.int32(0), trainable=False)
        loss = tf.reduce_mean(tf.square(tf.matmul(x, w) - 1.0))
        added = tf.assign_add(total, tf.gradients(loss, w)[0])
        with tf.control_dependencies([added]):
            counted = tf.assign_add(count, 1)

        def apply():
            large = tf.norm(total) > 0.5
            step = tf.cond(large, lambda: total * (0.5 / tf.norm(total)), lambda: tf.identity(total))
            with tf.control_dependencies([tf.assign_sub(w, 0.3 * step)]):
                return tf.group(tf.assign(total, tf.zeros_like(total)))

        with tf.control_dependencies([counted]):
            step = tf.cond(tf.equal(tf.floormod(counted, 2), 0), apply, tf.no_op)
        return [loss, step], [x]

    return steps(build, [[data(seed=i)[0]] for i in range(6)])


@case
def a_branch_with_a_host_operator():
    """A conditional that prints stays with TensorFlow; what is around it does not."""

    def build():
        x = tf.placeholder(tf.float32, [None, 8])
        hidden = dense(x, "w1", 8, 16)
        shown = tf.cond(
            tf.reduce_mean(hidden) > 1e9, lambda: tf.Print(hidden, ["large", tf.as_string(tf.reduce_sum(hidden))]), lambda: hidden * 2.0
        )
        loss = tf.reduce_mean(tf.square(dense(shown, "w2", 16, 3)))
        return [loss, tf.train.GradientDescentOptimizer(0.1).minimize(loss)], [x]

    return steps(build, [[data()[0]]] * 3)


@case
def conditionals_of_one_predicate():
    """One prints, the others do not: after TensorFlow's own passes they share their Switches."""

    def build():
        x, training = tf.placeholder(tf.float32, [None, 8]), tf.placeholder(tf.bool, [])
        hidden = dense(x, "w1", 8, 16)
        scaled = tf.cond(training, lambda: tf.tanh(hidden) * 3.0, lambda: hidden + 1.0)
        shown = tf.cond(training, lambda: tf.Print(hidden, [tf.as_string(tf.reduce_sum(hidden))], first_n=0), lambda: hidden * 2.0)
        again = tf.cond(training, lambda: tf.nn.relu(shown), lambda: tf.sin(shown))
        loss = tf.reduce_mean(tf.square(dense(scaled + again, "w2", 16, 3)))
        return [loss, tf.train.GradientDescentOptimizer(0.1).minimize(loss)], [x, training]

    rows = data()[0]
    return steps(build, [[rows, True], [rows, False], [rows[:7], True]])


@case
def first_values_of_averages():
    """A moving average begins with its variable's value, or with what that begins with when it has none yet."""

    def build():
        w = variable("w", 8, 8)
        start = tf.random_uniform([8, 8], seed=3)
        drawn = tf.Variable(start, name="drawn")
        average = tf.train.ExponentialMovingAverage(0.9)
        return [average.apply([w, drawn])], []

    return steps(build, [[], []])


def trained(loss, *placeholders):
    return [loss, tf.train.GradientDescentOptimizer(0.1).minimize(loss)], list(placeholders)


@case
def loop_and_its_gradient():
    """What the backward loop needs goes through stacks; the number of rounds is known in the run only."""

    def build():
        x, rounds = tf.placeholder(tf.float32, [None, 8]), tf.placeholder(tf.int32, [])
        w = variable("w", 8, 8)
        body = lambda i, y: (i + 1, tf.tanh(tf.matmul(y, w)) * y + 0.1)
        _, y = tf.while_loop(lambda i, y: i < rounds, body, [0, x])
        return trained(tf.reduce_mean(tf.square(y)), x, rounds)

    rows = data()[0]
    return steps(build, [[rows, 3], [rows, 5], [rows, 0], [rows[:7], 4]])


@case
def loops_in_loops():
    """An inner loop and a conditional in each round of the outer one, and their gradient."""

    def build():
        x = tf.placeholder(tf.float32, [None, 8])
        w = variable("w", 8, 8)

        def outer(i, y):
            _, inner = tf.while_loop(lambda j, z: j < i, lambda j, z: (j + 1, tf.sin(tf.matmul(z, w))), [0, y])
            chosen = tf.cond(tf.reduce_sum(inner) > 0.5, lambda: inner * 0.5, lambda: tf.tanh(inner + y))
            return i + 1, chosen

        _, y = tf.while_loop(lambda i, y: i < 4, outer, [0, x])
        return trained(tf.reduce_mean(tf.square(y)), x)

    return steps(build, [[data(seed=i)[0]] for i in range(3)])


@case
def recurrent_network():
    """dynamic_rnn over sequences of different lengths: TensorArrays and their gradients."""

    def build():
        x, lengths = tf.placeholder(tf.float32, [None, None, 8]), tf.placeholder(tf.int32, [None])
        cell = tf.nn.rnn_cell.LSTMCell(12, initializer=tf.initializers.random_uniform(-0.4, 0.4, seed=2))
        outputs, last = tf.nn.dynamic_rnn(cell, x, lengths, dtype=tf.float32)
        logits = tf.matmul(tf.reshape(outputs, [-1, 12]), variable("w", 12, 3))
        return trained(tf.reduce_mean(tf.square(logits - 0.2)) + tf.reduce_mean(last.h), x, lengths)

    random = np.random.RandomState(1)
    return steps(build, [[random.rand(4, time, 8), [time, 2, 1, time - 1]] for time in (5, 5, 7)])


@case
def statistics_behind_a_loop():
    """The gradient waits for a moving average of what the loop has made, and so do the constants that it adds to the loop."""

    def build():
        x = tf.placeholder(tf.float32, [4, 5, 8])
        cell = tf.nn.rnn_cell.GRUCell(6, kernel_initializer=tf.initializers.random_uniform(-0.4, 0.4, seed=2))
        _, last = tf.nn.dynamic_rnn(cell, x, dtype=tf.float32)
        average = tf.get_variable("average", [6], initializer=tf.zeros_initializer(), trainable=False)
        loss = tf.reduce_mean(tf.square(tf.matmul(last, variable("w", 6, 3)) - 0.2))
        with tf.control_dependencies([tf.assign_sub(average, 0.1 * (average - tf.reduce_mean(last, 0)))]):
            return trained(loss, x)

    return steps(build, [[data(20, i)[0].reshape(4, 5, 8)] for i in range(3)])


@case
def map_and_scan():
    """A function of every row, and a running value over them."""

    def build():
        x = tf.placeholder(tf.float32, [None, 8])
        w = variable("w", 8, 8)
        mapped = tf.map_fn(lambda row: tf.tanh(tf.tensordot(row, w, 1)), x)
        running = tf.scan(lambda a, row: tf.sigmoid(a * row + 0.3), mapped)
        return trained(tf.reduce_mean(tf.square(running)), x)

    return steps(build, [[data(n)[0]] for n in (6, 6, 9)])


@case
def loop_from_a_variable():
    """What a loop carries begins as a variable, which is overwritten behind it."""

    def build():
        x, chain = tf.placeholder(tf.float32, [4, 8]), variable("chain", 4, 8)
        w = variable("w", 8, 8)
        _, z = tf.while_loop(lambda i, z: i < 3, lambda i, z: (i + 1, tf.tanh(tf.matmul(z, w) + x)), [0, tf.identity(chain)])
        return [tf.reduce_sum(z), tf.assign(chain, 0.5 * z)], [x]

    return steps(build, [[data(4, i)[0]] for i in range(3)])


@case
def new_axis_of_a_number():
    """A count that the step computes becomes a shape of one dim, as in segment means."""

    def build():
        x = tf.placeholder(tf.float32, [None, 8])
        count = tf.shape(x)[0]
        parts = tf.math.unsorted_segment_mean(x, tf.range(count) // 2, count // 2)
        return trained(tf.reduce_mean(tf.square(tf.matmul(parts, variable("w", 8, 3)))), x)

    return steps(build, [[data(n)[0]] for n in (6, 6, 8)])


@case
def convolutions_of_crops():
    """Images are changed and cropped in the step, so that only the run tells the sizes that the gradients of kernels meet."""

    def build():
        x = tf.placeholder(tf.float32, [None, 12, 12, 3])
        h = tf.image.per_image_standardization(tf.random_crop(tf.image.random_flip_left_right(x, seed=3), [4, 10, 10, 3], seed=4))
        for width in (32, 64):
            h = tf.nn.relu(tf.layers.conv2d(h, width, 3, 2, "same", kernel_initializer=tf.initializers.random_uniform(-0.3, 0.3, seed=3)))
        return trained(tf.reduce_mean(tf.square(h)), x)

    return steps(build, [[np.random.RandomState(i).rand(4, 12, 12, 3)] for i in range(3)])


if __name__ == "__main__":
    cases.main()
