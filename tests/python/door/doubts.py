"""Nets that hold work for which TensorFlow's kernels may be faster than the engine's, and loops that stay with TensorFlow; run by
test_door_doubts.py as cases.py is."""

import cases
import numpy as np
import tensorflow.compat.v1 as tf
from cases import case, entry, fresh

STEPS = 20
random = np.random.RandomState


def variable(name, *dims, dtype="float64", scale=0.3):
    return tf.get_variable(name, initializer=(random(sum(map(ord, name))).randn(*dims) * scale).astype(dtype))


def doubles():
    x, y = tf.placeholder(tf.float64, [8, 6, 4]), tf.placeholder(tf.float64, [8])
    w, u = variable("w", 4, 32), variable("u", 8, 32)
    h = c = tf.zeros([8, 8], tf.float64)
    for t in range(6):
        i, f, g, o = tf.split(tf.matmul(x[:, t], w) + tf.matmul(h, u), 4, 1)
        c = tf.sigmoid(f + 1) * c + tf.sigmoid(i) * tf.tanh(g)
        h = tf.sigmoid(o) * tf.tanh(c)
    loss = tf.reduce_mean(tf.square(tf.matmul(h, variable("last", 8, 1))[:, 0] - y))
    return loss, {x: random(0).randn(8, 6, 4), y: random(1).randn(8)}


def turns(real, complex_):
    """A state that is turned, transformed and shrunk; what is read of it by slices has a gradient of complex zeros elsewhere."""
    x = tf.placeholder(real, [8, 3, 16])
    into = tf.complex(x, x * 2)
    axis = tf.complex(variable("a", 16, 1, dtype=real.name), variable("b", 16, 1, dtype=real.name))
    axis /= tf.cast(tf.norm(axis), complex_)
    phase = variable("phase", 16, dtype=real.name)
    h = tf.complex(tf.ones([8, 16], real), tf.zeros([8, 16], real))
    for t in range(3):
        h = tf.signal.fft(h * tf.complex(tf.cos(phase), tf.sin(phase))) / 4
        h += into[:, t] - tf.matmul(tf.matmul(h, tf.math.conj(axis)), axis, adjoint_b=True)
        h *= tf.cast(tf.tanh(abs(h)) / (abs(h) + 1e-3), complex_)
        h = 1 / (h + 2)
    return tf.reduce_mean(abs(h) ** 2), {x: random(2).randn(8, 3, 16)}


def complex_floats():
    return turns(tf.float32, tf.complex64)


def complex_doubles():
    return turns(tf.float64, tf.complex128)


def complex_weights():
    x = tf.placeholder(tf.complex64, [8, 16])
    fixed = tf.get_variable("fixed", initializer=(random(5).randn(16, 4) * (1 + 1j)).astype("F"), trainable=False)
    w = fixed * tf.cast(variable("w", 16, 4, dtype="float32"), tf.complex64)
    return tf.reduce_mean(abs(tf.matmul(x, w) - 1) ** 2), {x: random(2).randn(8, 16) + 1j * random(3).randn(8, 16)}


def solved():
    x = tf.placeholder(tf.float32, [20, 6])
    k = tf.matmul(x * variable("scale", 6, dtype="float32") ** 2, x, transpose_b=True) + tf.eye(20)
    root = tf.linalg.cholesky(k)
    loss = tf.reduce_sum(tf.linalg.triangular_solve(root, x) ** 2) + tf.reduce_sum(tf.log(tf.linalg.diag_part(root)))
    return loss, {x: random(4).randn(20, 6)}


def branches_in_loops():
    """A loop whose turns take values from a table or join those of earlier turns."""
    words, left = tf.placeholder(tf.int32, [7]), tf.placeholder(tf.int32, [7])
    table, w, u = (variable(name, *dims, dtype="float32") for name, dims in {"table": (12, 8), "w": (8, 8), "u": (16, 8)}.items())

    def node(i, values):
        one = lambda: tf.tanh(tf.matmul(tf.gather(table, words[i])[None], w))  # noqa: E731
        two = lambda: tf.tanh(tf.matmul(tf.concat([values.read(left[i])[None], values.read(left[i] + 1)[None]], 1), u))  # noqa: E731
        return i + 1, values.write(i, tf.reshape(tf.cond(left[i] < 0, one, two), [8]))

    array = tf.TensorArray(tf.float32, 7, clear_after_read=False, element_shape=[8])
    _, array = tf.while_loop(lambda i, _: i < 7, node, (0, array))
    return tf.reduce_mean(tf.square(array.stack() - 0.5)), {words: [3, 5, 7, 1, 0, 0, 0], left: [-1, -1, -1, -1, 0, 2, 4]}


@case
def doubts(name, kind="references", steps=STEPS):
    def run(engine):
        fresh(resource=kind == "resources")
        loss, feed = globals()[name]()
        count = tf.get_variable("count", initializer=0)
        train = [tf.train.MomentumOptimizer(0.05, 0.9).minimize(loss), count.assign_add(1)]
        config = entry(engine)
        if engine and kind == "deterministic":
            config.graph_options.rewrite_options.custom_optimizers[0].parameter_map["deterministic"].i = 1
        with tf.Session(config=config) as s:
            s.run(tf.global_variables_initializer())
            losses = [float(s.run([loss, train], feed)[0]) for _ in range(int(steps))]
            return [losses, int(s.run(count))]

    return [run(None), run(True)]


@case
def loop_over_data():
    """Steps in a loop that takes each batch from a data set itself."""
    tf.enable_control_flow_v2()

    def run(engine):
        fresh(resource=True)
        rows = random(0).randn(24, 8).astype("f")
        batches = tf.data.Dataset.from_tensor_slices((rows, rows.sum(1, keepdims=True))).batch(8).repeat()
        data = tf.data.make_initializable_iterator(batches)
        w, v = variable("w", 8, 16, dtype="float32"), variable("v", 16, 1, dtype="float32")

        def step(i, total):
            x, y = data.get_next()
            loss = tf.reduce_mean(tf.square(tf.matmul(tf.nn.relu(tf.matmul(x, w)), v) - y))
            updates = [a.assign_sub(0.02 * g, read_value=False) for a, g in zip((w, v), tf.gradients(loss, [w, v]), strict=True)]
            with tf.control_dependencies(updates):
                return i + 1, total + loss

        total = tf.while_loop(lambda i, _: i < 4, step, [0, 0.0])[1]
        with tf.Session(config=entry(engine)) as s:
            s.run([tf.global_variables_initializer(), data.initializer])
            return [float(s.run(total)) for _ in range(5)]

    return [run(None), run(True)]


if __name__ == "__main__":
    cases.main()
