"""What goes wrong in training, on stock TensorFlow and on the engine, run by test_door_faults.py as cases.py is."""

import os
import signal
import threading
import time

import cases
import numpy as np
import tensorflow.compat.v1 as tf
from cases import case, data, fresh, perceptron, plain, session, variable


def both(run):
    return [run(engine) for engine in (None, True)]


def kind_of(action):
    """Kind and text of what `action` raises."""
    try:
        action()
    except Exception as error:  # each kind is wanted
        return [type(error).__name__, str(error)]
    return ["", ""]


@case
def unsupported_in_a_loop():
    def run(engine):
        tf.disable_control_flow_v2()
        fresh()
        x = tf.placeholder(tf.float32, [4, 4])
        w = variable("w", 4, 4)

        def body(i, y):
            text = tf.strings.length(tf.as_string(i))  # no numbers: the loop stays with TensorFlow
            return i + text, tf.tanh(tf.matmul(y, w))

        _, y = tf.while_loop(lambda i, y: i < 5, body, [0, tf.matmul(x, w)])
        loss = tf.reduce_mean(tf.square(tf.matmul(y, w)))
        step = tf.train.GradientDescentOptimizer(0.1).minimize(loss)
        with session(engine) as s:
            s.run(tf.global_variables_initializer())
            return plain([*[s.run([loss, step], {x: np.eye(4)})[0] for _ in range(3)], s.run(w)])

    return both(run)


@case
def inconsistent_shapes():
    def run(engine):
        fresh()
        x, y = tf.placeholder(tf.float32, None), tf.placeholder(tf.float32, None)
        product = tf.matmul(tf.nn.relu(x), y, name="layer/product")
        with session(engine) as s:
            before = kind_of(lambda: s.run(product, {x: np.ones((2, 8)), y: np.ones((7, 3))}))
            return before, plain(s.run(product, {x: np.ones((2, 8)), y: np.ones((8, 3))}))

    return both(run)


@case
def cancelled_steps():
    """Steps that would go on for ever: how each ends, whether that was soon, and what the variable is then."""
    fresh()
    x = tf.placeholder(tf.float32, [64, 64])
    w = variable("w", 64, 64)
    endless = tf.while_loop(lambda i, y: i < 2**30, lambda i, y: (i + 1, tf.tanh(tf.matmul(y, w))), [0, x])[1]
    step = tf.assign_add(w, endless)
    feed = {x: np.ones((64, 64))}
    found = []

    def timed(action):
        begun = time.monotonic()
        return kind_of(action)[0], time.monotonic() - begun < 20

    with session(True) as s:
        s.run(tf.global_variables_initializer())
        before = s.run(w)
        options = tf.RunOptions(timeout_in_ms=1000)
        found.append(timed(lambda: s.run(step, feed, options=options)))
        found.append(bool((s.run(w) == before).all()) and plain(s.run(tf.matmul(x, x), feed))[0][0])
    closed = session(True)
    closed.run(tf.global_variables_initializer())
    threading.Timer(1.5, closed.close).start()
    found.append(timed(lambda: closed.run(step, feed)))
    return found


@case
def cancelled_compilations():
    """A step whose time is over while its code is made: how it ends, and whether the next one makes the code."""
    fresh()
    x = tf.placeholder(tf.float32, [8, 8])
    y = x
    for i in range(500):
        y = tf.concat([tf.tanh(y[:, 1:] * (1 + i / 1000)), tf.reduce_mean(y, 1, keepdims=True)], 1)
    feed = {x: np.ones((8, 8))}
    with session(None) as s:
        expected = s.run(y, feed)
    with session(True) as s:
        ended = kind_of(lambda: s.run(y, feed, options=tf.RunOptions(timeout_in_ms=1)))[0]
    with session(True) as s:
        return [ended, bool(np.allclose(s.run(y, feed), expected, atol=1e-5))]


@case
def not_a_number():
    def run(engine):
        fresh()
        x = tf.placeholder(tf.float32, [None, 8])
        loss = tf.reduce_mean(tf.square(tf.matmul(tf.matmul(x, variable("w1", 8, 16)), variable("w2", 16, 3))))
        step = tf.train.AdamOptimizer(0.1).minimize(loss)
        checked = tf.check_numerics(loss, "the loss is lost")
        inputs = data()[0]
        bad = inputs.copy()
        bad[3, 2] = np.nan
        with session(engine) as s:
            s.run(tf.global_variables_initializer())
            told = kind_of(lambda: s.run(checked, {x: bad}))
            good = plain(s.run([loss, step], {x: inputs})[:1])
            lost = [bool(np.isnan(s.run([loss, step], {x: bad})[0]))]
            lost += [bool(np.isnan(value).any()) for value in s.run(tf.trainable_variables())]
            return told, good, lost

    return both(run)


@case
def assertions():
    """Assertions in a loop, a branch and beside an update, as they hold and as they do not; and one of tf.function."""

    def run(engine):
        fresh()
        x, limit = tf.placeholder(tf.float32, [None, 8]), tf.placeholder(tf.float32, [])
        w = variable("w", 8, 8)

        def body(i, h):
            checks = [tf.assert_less(i, 10, message="too long"),
                      tf.Assert(tf.reduce_all(h < limit), ["h is", h, "in round", i, tf.cast(h > 0, tf.float16)])]  # fmt: skip
            with tf.control_dependencies(checks):
                return i + 1, tf.tanh(tf.matmul(h, w))

        _, y = tf.while_loop(lambda i, h: i < 5, body, [0, x])
        loss = tf.reduce_mean(tf.square(y))
        total = tf.reduce_sum(x)
        with tf.control_dependencies([tf.assert_positive(total / 3, data=["the sum is", total, tf.reshape(x, [-1, 2, 4])], summarize=11)]):
            step = tf.train.GradientDescentOptimizer(0.1).minimize(loss)
        good = np.random.RandomState(0).rand(4, 8).astype(np.float32)
        message = lambda error: error[1][error[1].index("assertion failed") :].splitlines()[0] if error else error
        told = []
        with session(engine) as s:
            s.run(tf.global_variables_initializer())
            train = lambda value, most=100: s.run([loss, step], {x: value, limit: most})[0]
            before = plain([train(good), s.run(w)])
            for value, most in ((-good, 100), (good, 0.5), (good * 1e-9, 1e-10), (good[:1] * 200, 3)):
                told.append(message(kind_of(lambda: train(value, most))))
            return before, told, plain([s.run(w), train(good)])

    return both(run)


@case
def interrupted():
    """The signal comes in a step; Python sees it when the step is over, and the session goes on."""
    fresh(resource=True)
    x = tf.placeholder(tf.float32, [500, 500])
    count = tf.get_variable("count", initializer=np.int32(0))
    y = x
    for _ in range(20):
        y = tf.tanh(tf.matmul(y, x))
    step = [tf.reduce_sum(y), tf.assign_add(count, 1)]
    value = np.random.RandomState(0).rand(500, 500).astype(np.float32) / 500
    with session(True) as s:
        s.run(tf.global_variables_initializer())
        first = float(s.run(step, {x: value})[0])
        threading.Timer(0.05, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
        interrupted = False
        signal.signal(signal.SIGINT, signal.default_int_handler)  # a program started in the background ignores it
        try:
            while True:
                s.run(step, {x: value})
        except KeyboardInterrupt:
            interrupted = True
        steps = int(s.run(count))
        after = float(s.run(step, {x: value})[0])
        return interrupted, after == first, int(s.run(count)) == steps + 1


@case
def exception_in_a_py_func():
    def run(engine):
        fresh()
        x = tf.placeholder(tf.float32, [4, 4])
        w = variable("w", 4, 4)
        count = [0]

        def read(value):
            count[0] += 1
            if count[0] == 2:
                raise ValueError("the reader lost its file")
            return value

        rows = tf.py_func(read, [tf.matmul(x, w)], tf.float32)
        rows.set_shape([4, 4])
        loss = tf.reduce_mean(tf.square(tf.matmul(rows, w)))
        step = tf.train.GradientDescentOptimizer(0.1).minimize(loss)
        with session(engine) as s:
            s.run(tf.global_variables_initializer())
            run = lambda: s.run([loss, step], {x: np.eye(4)})[0]
            return plain([run()]), kind_of(run), plain([run(), s.run(w)])

    return both(run)


@case
def closed_while_running():
    fresh()
    x = tf.placeholder(tf.float32, [300, 300])
    y = x
    for _ in range(10):
        y = tf.tanh(tf.matmul(y, x))
    s = session(True)
    value = np.ones((300, 300), np.float32)
    s.run(y, {x: value})
    kinds, steps = [], [0]

    def work():
        while not kinds:
            kind = kind_of(lambda: s.run(y, {x: value}))[0]
            steps[0] += 1
            if kind:
                kinds.append(kind)

    thread = threading.Thread(target=work)
    thread.start()
    while steps[0] < 3:
        time.sleep(0.01)
    s.close()
    thread.join(60)
    with session(True) as another:
        return kinds, thread.is_alive(), float(another.run(y, {x: np.zeros((300, 300))}).sum())


# What a fed value makes of rows of 4 x 8: legal values, then those that TensorFlow refuses.
PLACES = {
    "broadcast_to": (lambda x, at: tf.broadcast_to(x, at), [[4, 8]], [[2, 8]]),
    "fill": (lambda x, at: tf.fill(at, tf.reduce_sum(x)), [[2, 3], [0, 3]], [[-1, 1]]),
    "gather": (lambda x, at: tf.gather(x, at), [[0, 3], []], [[4], [-1]]),
    "gather_nd": (lambda x, at: tf.gather_nd(x, at), [[[3, 7], [0, 0]]], [[[3, 7], [0, 8]], [[-1, 0], [0, 0]]]),
    "index": (lambda x, at: x[at], [2, -1, -4], [4, -5]),
    "index_inside": (lambda x, at: x[1:, at, None], [2, -1, -8], [8, -9]),
    "batches": (lambda x, at: tf.matmul(tf.reshape(x, at), tf.reshape(x * 2, at), transpose_b=True), [[2, 4, 4], [1, 8, 4]], []),
    "bounds": (lambda x, at: x[at[0] : at[1], 2:-1], [[1, 3], [0, 4], [-3, -1], [2, 9], [3, 1], [-9, 2]], []),
    "first": (lambda x, at: x[:, :at], [3, -2, 0, 99], []),
    "last_of_unknown": (lambda x, at: tf.reshape(x, at)[-1] * 2 + tf.reduce_sum(tf.reshape(x, at)[1:, -2]), [[4, 8], [8, 4]], []),
    "last": (lambda x, at: x[at:, ::2], [3, -2, 0, 4, 9], []),
    "one_hot": (lambda x, at: tf.one_hot(at, 3) * tf.reduce_sum(x), [[0, 2], [-1, 3]], []),
    "pad": (lambda x, at: tf.pad(x, at), [[[0, 0], [1, 2]]], [[[-1, 0], [0, 0]]]),
    "reshape": (lambda x, at: tf.reshape(x, at), [[2, 16], [-1], [2, 2, 8]], [[5, 6], [-1, 3], [-1, -1]]),
    "reverse_sequence": (lambda x, at: tf.reverse_sequence(x, at, seq_axis=1), [[0, 8, 3, 1]], [[9, 1, 1, 1], [-1, 1, 1, 1]]),
    "scatter_nd": (lambda x, at: tf.scatter_nd(at, x, [5, 8]), [[[0], [4], [4], [1]]], [[[0], [5], [1], [1]]]),
    "segment_sum": (lambda x, at: tf.segment_sum(x, at), [[0, 0, 2, 3]], [[0, 2, 1, 2], [-1, 0, 1, 2]]),
    "slice": (lambda x, at: tf.slice(x, at, [2, 3]), [[2, 5], [0, 0]], [[3, 0], [0, 6], [-1, 0]]),
    "slice_sizes": (lambda x, at: tf.slice(x, [1, 2], at), [[3, 6], [-1, 1], [0, -1]], [[4, 1], [1, 7], [-2, 1]]),
    "tile": (lambda x, at: tf.tile(x, at), [[2, 1], [0, 1]], [[-1, 1]]),
    "top_k": (lambda x, at: tf.nn.top_k(x, at)[0], [0, 8], [9, -1]),
    "unsorted_segments": (lambda x, at: tf.unsorted_segment_sum(x, at, 3), [[2, 0, -1, 0]], [[0, 1, 3, 2]]),
}  # fmt: skip


@case
def places_out_of_range():
    """Of training steps with fed places: losses, kinds of errors, and whether they are the engine's."""

    def run(engine, name, build, legal, illegal):
        fresh()
        at = tf.placeholder(tf.int32, [None] if name in ("gather", "reshape") else np.shape(legal[0]))
        net = tf.nn.relu(tf.matmul(np.full([4, 4], 0.5, np.float32), variable("w", 4, 8)) + 1)
        loss = tf.reduce_sum(tf.square(build(net, at)))
        step = tf.train.GradientDescentOptimizer(0.01).minimize(loss)
        with session(engine) as s:
            s.run(tf.global_variables_initializer())
            losses = [float(s.run([loss, step], {at: value})[0]) for value in legal]
            errors = [kind_of(lambda value=value: s.run([loss, step], {at: value})) for value in illegal]
            return losses, [kind for kind, _ in errors], ["Cairn" in text for _, text in errors]

    return {name: both(lambda engine: run(engine, name, *row)) for name, row in PLACES.items()}  # noqa: B023, used at once


@case
def rows_that_are_none():
    """TensorFlow knows no negative indices: no row is trained, least of all the last."""

    def run(engine):
        fresh()
        rows = tf.placeholder(tf.int32, [None])
        table = variable("table", 5, 4)
        loss = tf.reduce_mean(tf.square(tf.matmul(tf.nn.embedding_lookup(table, rows), variable("w", 4, 4))))
        loss += tf.reduce_sum(tf.gather_nd(table, rows[:, None])) + tf.reduce_sum(tf.gather(loss + table, rows, axis=1))
        step = tf.train.GradientDescentOptimizer(0.1).minimize(loss)
        new = tf.matmul(tf.nn.embedding_lookup(table, rows * 0), variable("v", 4, 4))
        put = [tf.scatter_update(table, rows, new), tf.scatter_nd_add(table, rows[:, None], new), tf.scatter_nd(rows[:, None], new, [5, 4])]
        with session(engine) as s:
            s.run(tf.global_variables_initializer())
            kinds = [kind_of(lambda: s.run(step, {rows: each}))[0] for each in ([-1], [1, 7], [0, -2], [3])]
            kinds += [kind_of(lambda: s.run(each, {rows: [at]}))[0] for each in put for at in (-1, 2)]
            return kinds, plain(s.run(tf.global_variables()))

    return [run(None), run(True)]


@case
def forked():
    """A child process that reads data, as loaders make them, and a parent that trains on."""
    fresh()
    x, y, loss, step = perceptron(tf.train.GradientDescentOptimizer(0.1))
    inputs, labels = data()
    with session(True) as s:
        s.run(tf.global_variables_initializer())
        losses = [float(s.run([loss, step], {x: inputs, y: labels})[0])]
        ends = []
        for _ in range(3):
            child = os.fork()
            if child == 0:
                os._exit(int(np.matmul(inputs.T, inputs).shape[0]))
            losses.append(float(s.run([loss, step], {x: inputs, y: labels})[0]))
            ends.append(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
        return ends, all(b < a for a, b in zip(losses, losses[1:]))


if __name__ == "__main__":
    cases.main()
