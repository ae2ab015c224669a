"""Training graphs of TensorFlow 1 in f64 and complex numbers, by series, matrices and loops. As tf1_vision.py."""

import numpy as np
import tensorflow as tf

from cases.tf1_further import normal
from cases.tf1_other import rows
from cases.tf1_sequence import adam
from cases.tf1_vision import conv, cross_entropy, images, train

layers = tf.layers


def flow_with_shocks():
    """The residual of Burgers' equation in f64, by second derivatives of a net (PINN)."""
    x, t = tf.placeholder(tf.float64, [1000, 1]), tf.placeholder(tf.float64, [1000, 1])
    x0, u0 = tf.placeholder(tf.float64, [100, 1]), tf.placeholder(tf.float64, [100, 1])
    sizes = [2, 20, 20, 20, 20, 1]
    weights = [tf.get_variable(f"w{i}", pair, tf.float64) for i, pair in enumerate(zip(sizes, sizes[1:]))]
    biases = [tf.get_variable(f"b{i}", [1, width], tf.float64, tf.zeros_initializer()) for i, width in enumerate(sizes[1:])]

    def net(x, t):
        h = 2.0 * tf.concat([(x + 1) / 2, t], 1) - 1.0
        for w, b in zip(weights[:-1], biases[:-1]):
            h = tf.tanh(tf.matmul(h, w) + b)
        return tf.matmul(h, weights[-1]) + biases[-1]

    u = net(x, t)
    by_t, by_x = tf.gradients(u, t)[0], tf.gradients(u, x)[0]
    residual = by_t + u * by_x - 0.01 / np.pi * tf.gradients(by_x, x)[0]
    loss = tf.reduce_mean(residual**2) + tf.reduce_mean((net(x0, 0 * x0) - u0) ** 2)
    random = np.random.RandomState(0)
    start = random.rand(100, 1) * 2 - 1
    return loss, train(loss, adam()), [{x: random.rand(1000, 1) * 2 - 1, t: random.rand(1000, 1), x0: start, u0: -np.sin(np.pi * start)}]


def swings_that_keep_energy():
    """A Hamiltonian net in f64, whose slopes move places and impulses step by step (leapfrog)."""
    q, p, after = (tf.placeholder(tf.float64, [128, 4]) for _ in range(3))

    def energy(q, p):
        with tf.variable_scope("energy", reuse=tf.AUTO_REUSE, dtype=tf.float64):
            h = tf.concat([q, p], 1)
            for i in range(2):
                h = layers.dense(h, 64, tf.nn.softplus, name=f"h{i}")
            return tf.reduce_sum(layers.dense(h, 1, name="out"))

    def force(q, p):
        return tf.gradients(energy(q, p), q)[0]

    a, b = q, p
    for _ in range(4):
        b = b - 0.05 * force(a, b)
        a = a + 0.1 * tf.gradients(energy(a, b), b)[0]
        b = b - 0.05 * force(a, b)
    loss = tf.reduce_mean((a - after) ** 2)
    return loss, train(loss, adam()), [{q: rows(128, 4), p: rows(128, 4, 1), after: rows(128, 4, 2)}]


def waves_of_operators():
    """Layers that weigh the lowest waves of a field by complex numbers (Fourier neural operator)."""
    x, y = tf.placeholder(tf.float32, [4, 32, 32, 3]), tf.placeholder(tf.float32, [4, 32, 32])
    h = layers.dense(x, 16)
    for i in range(3):
        waves = tf.signal.rfft2d(tf.transpose(h, [0, 3, 1, 2]))
        real, imag = (tf.get_variable(f"{part}{i}", [16, 16, 8, 8]) for part in ("real", "imag"))
        low = tf.einsum("bixy,ioxy->boxy", waves[:, :, :8, :8], tf.complex(real, imag))
        back = tf.signal.irfft2d(tf.pad(low, [[0, 0], [0, 0], [0, 24], [0, 9]]), [32, 32])
        h = tf.transpose(back, [0, 2, 3, 1]) + layers.dense(h, 16)
        h = tf.nn.gelu(h) if hasattr(tf.nn, "gelu") else tf.nn.swish(h)
    loss = tf.reduce_mean((layers.dense(layers.dense(h, 64, tf.nn.relu), 1)[..., 0] - y) ** 2)
    return loss, train(loss, adam()), [{x: normal(4, 32, 32, 3), y: normal(4, 32, 32, seed=1)}]


def states_that_turn():
    """A recurrence of complex numbers: turns by learnt phases, reflections, and roots of magnitudes (unitary RNN)."""
    x, y = tf.placeholder(tf.float32, [32, 20, 8]), tf.placeholder(tf.int64, [32])
    into = tf.complex(layers.dense(x, 32), layers.dense(x, 32))
    phases = [tf.get_variable(f"phase{i}", [32]) for i in range(2)]
    axis = tf.complex(tf.get_variable("axis_r", [32, 1]), tf.get_variable("axis_i", [32, 1]))
    shift = tf.get_variable("shift", [32], initializer=tf.zeros_initializer())
    turns = [tf.complex(tf.cos(phase), tf.sin(phase)) for phase in phases]
    h = tf.complex(tf.ones([32, 32]) * 0.1, tf.zeros([32, 32]))
    norm = tf.cast(tf.reduce_sum(abs(axis) ** 2), tf.complex64)
    for step in range(20):
        h = tf.signal.fft(h * turns[0]) / np.complex64(32**0.5)
        h = h - 2 * tf.matmul(tf.matmul(h, axis), axis, adjoint_b=True) / norm
        h = tf.signal.ifft(h * turns[1]) * np.complex64(32**0.5) + into[:, step]
        size = abs(h)
        h = h * tf.cast(tf.nn.relu(size + shift) / (size + 1e-5), tf.complex64)
    loss = cross_entropy(layers.dense(tf.concat([tf.real(h), tf.imag(h)], 1), 10), y)
    return loss, train(loss, adam()), [{x: normal(32, 20, 8), y: np.arange(32) % 10}]


def kernels_of_processes():
    """A Gaussian process in f64: Matern's kernel, Cholesky, noise and lengths learnt by the marginal likelihood."""
    x, y = tf.placeholder(tf.float64, [200, 4]), tf.placeholder(tf.float64, [200, 1])
    lengths = tf.exp(tf.get_variable("lengths", [4], tf.float64, tf.zeros_initializer()))
    height, noise = (tf.exp(tf.get_variable(name, [], tf.float64, tf.constant_initializer(-1.0))) for name in ("height", "noise"))
    a = x / lengths
    far = tf.sqrt(tf.maximum(tf.reduce_sum((a[:, None] - a) ** 2, -1), 1e-12)) * np.sqrt(5.0)
    kernel = height * (1 + far + far**2 / 3) * tf.exp(-far) + (noise + 1e-6) * tf.eye(200, dtype=tf.float64)
    root = tf.linalg.cholesky(kernel)
    solved = tf.linalg.cholesky_solve(root, y)
    loss = (0.5 * tf.reduce_sum(y * solved) + tf.reduce_sum(tf.log(tf.linalg.diag_part(root)))) / 200
    random = np.random.RandomState(0)
    return loss, train(loss, adam(1e-2)), [{x: random.randn(200, 4), y: random.randn(200, 1)}]


def graphs_without_circles():
    """Causes of columns as a graph whose matrix exponential holds no circles (NOTEARS), in f64."""
    x = tf.placeholder(tf.float64, [256, 24])
    w = tf.get_variable("w", [24, 24], tf.float64, tf.random_uniform_initializer(-0.05, 0.05, dtype=tf.float64))
    w = tf.linalg.set_diag(w, tf.zeros([24], tf.float64))
    term = power = tf.eye(24, dtype=tf.float64)
    for i in range(1, 12):
        power = tf.matmul(power, w * w) / i
        term += power
    circles = tf.linalg.trace(term) - 24
    far = 0.5 * tf.reduce_mean(tf.reduce_sum((x - tf.matmul(x, w)) ** 2, 1))
    spread = tf.linalg.slogdet(tf.eye(24, dtype=tf.float64) - 0.1 * w)[1]
    loss = far + 10 * circles + circles**2 - spread + 0.01 * tf.reduce_sum(abs(w))
    return loss, train(loss, adam(1e-2)), [{x: rows(256, 24)}]


def fields_in_doubles():
    """Convolutions of f64 step a field forward, and must keep its sum (a learnt solver)."""
    x, after = tf.placeholder(tf.float64, [4, 24, 24, 2]), tf.placeholder(tf.float64, [4, 24, 24, 2])
    kernels = [tf.get_variable(f"k{i}", shape, tf.float64) for i, shape in enumerate(((3, 3, 2, 16), (3, 3, 16, 16), (3, 3, 16, 2)))]
    h, loss = x, 0.0
    for _ in range(2):
        a = tf.pad(h, [[0, 0], [3, 3], [3, 3], [0, 0]], "SYMMETRIC")
        for i, kernel in enumerate(kernels):
            a = tf.nn.conv2d(a, kernel, 1, "VALID")
            a = tf.tanh(a) if i < 2 else a
        h = h + 0.1 * (a - tf.reduce_mean(a, [1, 2], keepdims=True))
    loss = tf.reduce_mean((h - after) ** 2) + tf.reduce_mean((tf.reduce_sum(h - x, [1, 2])) ** 2)
    return loss, train(loss, adam()), [{x: normal(4, 24, 24, 2), after: normal(4, 24, 24, 2, seed=1)}]


def weights_on_splines():
    """Every weight is a spline of its input, by the recursion of Cox and de Boor (Kolmogorov-Arnold)."""
    x, y = tf.placeholder(tf.float32, [256, 16]), tf.placeholder(tf.float32, [256, 1])
    grid = np.linspace(-2.2, 2.2, 12).astype("f")
    h = x
    for i, (before, after) in enumerate(((16, 32), (32, 1))):
        a = h[..., None]
        bases = tf.cast((a >= grid[:-1]) & (a < grid[1:]), tf.float32)
        for k in range(1, 4):
            left = (a - grid[: -k - 1]) / (grid[k:-1] - grid[: -k - 1]) * bases[..., :-1]
            bases = left + (grid[k + 1 :] - a) / (grid[k + 1 :] - grid[1:-k]) * bases[..., 1:]
        spline = tf.einsum("bik,iko->bo", bases, tf.get_variable(f"spline{i}", [before, 8, after]))
        h = layers.dense(tf.nn.swish(h), after, use_bias=False) + spline
    loss = tf.reduce_mean((h - y) ** 2)
    return loss, train(loss, adam()), [{x: rows(256, 16), y: rows(256, 1, 1)}]


def series_aligned_softly():
    """A soft minimum over all alignments of two series, diagonal by diagonal (soft-DTW)."""
    x, y = tf.placeholder(tf.float32, [16, 24, 4]), tf.placeholder(tf.float32, [16, 24, 4])
    made = layers.dense(layers.dense(x, 64, tf.nn.relu), 4)
    costs = tf.reduce_sum((made[:, :, None] - y[:, None]) ** 2, -1)
    skewed = tf.stack([tf.pad(costs[:, i], [[0, 0], [i, 23 - i]], constant_values=1e4) for i in range(24)], 2)
    slabs = tf.TensorArray(tf.float32, 47).unstack(tf.transpose(skewed, [1, 0, 2]))

    def turn(step, last, last_but_one):
        up = tf.pad(last[:, :-1], [[0, 0], [1, 0]], constant_values=1e4)
        across = tf.pad(last_but_one[:, :-1], [[0, 0], [1, 0]], constant_values=1e4)
        least = -tf.reduce_logsumexp(-tf.stack([last, up, across]), 0)
        return step + 1, slabs.read(step) + least, last

    first = tf.concat([skewed[:, 0, :1], tf.fill([16, 23], 1e4)], 1)
    _, last, _ = tf.while_loop(lambda step, *_: step < 47, turn, (1, first, tf.fill([16, 24], 1e4)))
    loss = tf.reduce_mean(last[:, -1]) / 24
    return loss, train(loss, adam()), [{x: normal(16, 24, 4), y: normal(16, 24, 4, seed=1)}]


def ranks_held_low():
    """The singular values of a completed matrix are held small (nuclear norm), beside an inverse and a determinant."""
    x, mask = tf.placeholder(tf.float32, [48, 32]), tf.placeholder(tf.float32, [48, 32])
    whole = tf.matmul(tf.get_variable("a", [48, 32]), tf.get_variable("b", [32, 32]))
    values = tf.linalg.svd(whole, compute_uv=False)
    spread = tf.matmul(whole, whole, transpose_a=True) / 48 + 0.1 * tf.eye(32)
    exact = tf.linalg.logdet(spread) + tf.linalg.trace(tf.linalg.inv(spread)) / 100
    loss = tf.reduce_mean(mask * (whole - x) ** 2) + 0.01 * tf.reduce_sum(values) + 0.001 * exact
    return loss, train(loss, adam(1e-2)), [{x: rows(48, 32), mask: np.random.RandomState(1).rand(48, 32) < 0.5}]


def quantiles_of_returns():
    """A dueling net whose quantiles of the return meet those of the next state, weighed by priorities (QR-DQN)."""
    x, after, done = tf.placeholder(tf.float32, [32, 24, 24, 4]), tf.placeholder(tf.float32, [32, 24, 24, 4]), tf.placeholder(tf.float32, [32])
    acted, gained, weigh = tf.placeholder(tf.int32, [32]), tf.placeholder(tf.float32, [32]), tf.placeholder(tf.float32, [32])

    def net(x, name):
        with tf.variable_scope(name, reuse=tf.AUTO_REUSE):
            h = layers.conv2d(layers.conv2d(x, 16, 5, 3, activation=tf.nn.relu, name="a"), 32, 3, 2, activation=tf.nn.relu, name="b")
            h = layers.dense(layers.flatten(h), 128, tf.nn.relu, name="h")
            value = layers.dense(h, 51, name="value")[:, None]
            better = tf.reshape(layers.dense(h, 6 * 51, name="better"), [32, 6, 51])
            return value + better - tf.reduce_mean(better, 1, keepdims=True)

    best = tf.argmax(tf.reduce_mean(net(after, "net"), 2), 1, output_type=tf.int32)
    goal = gained[:, None] + 0.99 * (1 - done[:, None]) * tf.batch_gather(net(after, "target"), best[:, None])[:, 0]
    found = tf.reduce_sum(net(x, "net") * tf.one_hot(acted, 6)[..., None], 1)
    error = tf.stop_gradient(goal)[:, None] - found[..., None]
    part = (np.arange(51, dtype="f") + 0.5) / 51
    huber = tf.where(abs(error) < 1, 0.5 * error**2, abs(error) - 0.5)
    each = tf.reduce_mean(tf.reduce_sum(abs(part[:, None] - tf.cast(error < 0, tf.float32)) * huber, 1), 1)
    loss = tf.reduce_mean(weigh * each)
    own, held = tf.trainable_variables("net"), tf.trainable_variables("target")
    step = train(loss, adam())
    with tf.control_dependencies([step]):
        step = tf.group(*(b.assign(0.995 * b + 0.005 * a) for a, b in zip(own, held)))
    random = np.random.RandomState(0)
    feed = {x: normal(32, 24, 24, 4), after: normal(32, 24, 24, 4, seed=1), done: random.rand(32) < 0.1, acted: random.randint(6, size=32)}
    return loss, step, [{**feed, gained: random.randn(32), weigh: random.rand(32)}]


def keys_of_earlier_batches():
    """Two views agree against a queue of earlier keys, which a slow copy of the net makes (MoCo)."""
    x, other, _ = tf.placeholder(tf.float32, [32, 24, 24, 3]), tf.placeholder(tf.float32, [32, 24, 24, 3]), 0

    def net(x, name):
        with tf.variable_scope(name, reuse=tf.AUTO_REUSE):
            h = layers.conv2d(layers.conv2d(x, 32, 3, 2, activation=tf.nn.relu, name="a"), 64, 3, 2, activation=tf.nn.relu, name="b")
            return tf.nn.l2_normalize(layers.dense(tf.reduce_mean(h, [1, 2]), 64, name="out"), 1)

    queue = tf.get_variable("queue", [1024, 64], trainable=False)
    head = tf.get_variable("head", [], tf.int32, tf.zeros_initializer(), trainable=False)
    q, k = net(x, "net"), tf.stop_gradient(net(other, "slow"))
    logits = tf.concat([tf.reduce_sum(q * k, 1, keepdims=True), tf.matmul(q, tf.stop_gradient(queue), transpose_b=True)], 1) / 0.2
    loss = cross_entropy(logits, tf.zeros([32], tf.int64))
    own, held = tf.trainable_variables("net"), tf.trainable_variables("slow")
    step = tf.train.MomentumOptimizer(0.03, 0.9).minimize(loss, var_list=own)
    with tf.control_dependencies([step]):
        moved = [b.assign(0.999 * b + 0.001 * a) for a, b in zip(own, held)]
        put = tf.scatter_update(queue, tf.floormod(head + tf.range(32), 1024), k)
    with tf.control_dependencies([put, *moved]):
        step = head.assign(tf.floormod(head + 32, 1024)).op
    return loss, step, [{x: normal(32, 24, 24, 3), other: normal(32, 24, 24, 3, seed=1)}]


def two_ways_between_pictures():
    """Two generators and two critics, each way and back again, by turns in one step (CycleGAN)."""
    a, b = tf.placeholder(tf.float32, [2, 32, 32, 3]), tf.placeholder(tf.float32, [2, 32, 32, 3])

    def norm(x):
        mean, spread = tf.nn.moments(x, [1, 2], keepdims=True)
        return tf.nn.relu((x - mean) * tf.rsqrt(spread + 1e-5))

    def made(x, name):
        with tf.variable_scope(name, reuse=tf.AUTO_REUSE):
            h = tf.pad(x, [[0, 0], [3, 3], [3, 3], [0, 0]], "REFLECT")
            h = norm(layers.conv2d(norm(layers.conv2d(h, 16, 7, name="a")), 32, 3, 2, "same", name="b"))
            h += layers.conv2d(tf.pad(norm(layers.conv2d(h, 32, 3, 1, "same", name="c")), [[0, 0], [1, 1], [1, 1], [0, 0]], "REFLECT"), 32, 3, name="d")
            h = norm(layers.conv2d_transpose(h, 16, 3, 2, "same", name="e"))
            return tf.tanh(layers.conv2d(tf.pad(h, [[0, 0], [3, 3], [3, 3], [0, 0]], "REFLECT"), 3, 7, name="f"))

    def judged(x, name):
        with tf.variable_scope(name, reuse=tf.AUTO_REUSE):
            h = tf.nn.leaky_relu(layers.conv2d(x, 16, 4, 2, "same", name="a"))
            return layers.conv2d(tf.nn.leaky_relu(layers.conv2d(h, 32, 4, 2, "same", name="b")), 1, 4, 1, "same", name="c")

    to_b, to_a = made(a, "gen_b"), made(b, "gen_a")
    back = tf.reduce_mean(abs(made(to_b, "gen_a") - a)) + tf.reduce_mean(abs(made(to_a, "gen_b") - b))
    fooled = tf.reduce_mean((judged(to_b, "dis_b") - 1) ** 2) + tf.reduce_mean((judged(to_a, "dis_a") - 1) ** 2)
    told = sum(tf.reduce_mean((judged(x, n) - 1) ** 2) + tf.reduce_mean(judged(tf.stop_gradient(y), n) ** 2) for x, y, n in ((b, to_b, "dis_b"), (a, to_a, "dis_a")))
    makers = tf.train.AdamOptimizer(2e-4, 0.5).minimize(fooled + 10 * back, var_list=tf.trainable_variables("gen"))
    with tf.control_dependencies([makers]):
        judges = tf.train.AdamOptimizer(2e-4, 0.5).minimize(told, var_list=tf.trainable_variables("dis"))
    return back + fooled + told, judges, [{a: np.tanh(normal(2, 32, 32, 3)), b: np.tanh(normal(2, 32, 32, 3, seed=1))}]


def teachers_of_unlabelled():
    """A mean teacher: unlabelled images must look alike to the net and to its average, under noise that is drawn."""
    x, y, feeds = images(24, 3, 16)
    more = tf.placeholder(tf.float32, [32, 24, 24, 3])

    def net(x, name):
        with tf.variable_scope(name, reuse=tf.AUTO_REUSE):
            h = layers.conv2d(x + 0.1 * tf.random_normal(tf.shape(x)), 32, 3, 2, activation=tf.nn.relu, name="a")
            h = layers.dropout(layers.conv2d(h, 64, 3, 2, activation=tf.nn.relu, name="b"), 0.2, training=True)
            return layers.dense(tf.reduce_mean(h, [1, 2]), 10, name="out")

    count = tf.train.get_or_create_global_step()
    ramp = tf.exp(-5 * (1 - tf.minimum(tf.cast(count, tf.float32) / 100, 1)) ** 2)
    apart = tf.reduce_mean((tf.nn.softmax(net(more, "net")) - tf.stop_gradient(tf.nn.softmax(net(more, "mean")))) ** 2)
    loss = cross_entropy(net(x, "net"), y) + 10 * ramp * apart
    own, held = tf.trainable_variables("net"), tf.trainable_variables("mean")
    step = tf.train.AdamOptimizer(1e-3).minimize(loss, count, var_list=own)
    rate = tf.minimum(1 - 1 / (tf.cast(count, tf.float32) + 1), 0.99)
    with tf.control_dependencies([step]):
        step = tf.group(*(b.assign(rate * b + (1 - rate) * a) for a, b in zip(own, held)))
    return loss, step, [{**feeds[0], more: normal(32, 24, 24, 3, seed=3)}]


def rooms_of_rois():
    """Boxes of an image are pooled by their largest values, one box a turn of `map_fn` (Fast R-CNN)."""
    x, _, feeds = images(48, 3, 1)
    boxes, y = tf.placeholder(tf.int32, [12, 4]), tf.placeholder(tf.int64, [12])
    h = conv(conv(x, 16, stride=2), 32, stride=2)

    def pooled(box):
        part = h[0, box[0] : box[2], box[1] : box[3]]
        return tf.reduce_max(tf.image.resize_nearest_neighbor(part[None], [6, 6])[0], [0, 1])

    made = tf.map_fn(pooled, boxes, tf.float32)
    loss = cross_entropy(layers.dense(layers.dense(made, 64, tf.nn.relu), 10), y)
    random = np.random.RandomState(0)
    low = random.randint(0, 6, size=(12, 2))
    return loss, train(loss, adam()), [{x: feeds[0][x], boxes: np.concatenate([low, low + 4], 1), y: np.arange(12) % 10}]
