"""Training graphs of TensorFlow 1 from science and statistics: doubles, complex numbers, factors, embeddings. As tf1_vision.py."""

import numpy as np
import tensorflow as tf

from cases.tf1_further import normal
from cases.tf1_other import rows
from cases.tf1_sequence import adam, block, embedded, text
from cases.tf1_sparse import graph_of
from cases.tf1_updates import every
from cases.tf1_vision import cross_entropy, train

layers = tf.layers


def doubles_in_a_net():
    """A regression wholly in f64, inputs scaled by their own moments."""
    x, y = tf.placeholder(tf.float64, [256, 32]), tf.placeholder(tf.float64, [256, 4])
    mean, spread = tf.nn.moments(x, [0])
    h = (x - mean) * tf.rsqrt(spread + 1e-12)
    for width in (64, 64):
        h = layers.dense(h, width, tf.tanh)
    loss = tf.reduce_mean(tf.square(layers.dense(h, 4) - y))
    return loss, train(loss, adam()), [{x: rows(256, 32).astype("d"), y: rows(256, 4, 1).astype("d")}]


def process_in_doubles():
    """A Gaussian process in f64: a sum of kernels, Cholesky, and what it says of other places."""
    x, y = tf.placeholder(tf.float64, [80, 3]), tf.placeholder(tf.float64, [80, 1])
    names = "length", "height", "noise", "slope"
    length, height, noise, slope = (tf.exp(tf.get_variable(n, [], tf.float64, tf.zeros_initializer())) for n in names)
    far = tf.reduce_sum(tf.square(x[:, None] - x[None]), -1)
    kernel = height * tf.exp(-0.5 * far / length**2) + slope * tf.matmul(x, x, transpose_b=True)
    factor = tf.linalg.cholesky(kernel + (0.01 + noise) * tf.eye(80, dtype=tf.float64))
    white = tf.linalg.triangular_solve(factor, y)
    loss = (0.5 * tf.reduce_sum(white**2) + tf.reduce_sum(tf.log(tf.linalg.diag_part(factor)))) / 80
    return loss, train(loss, adam(0.01)), [{x: rows(80, 3).astype("d"), y: rows(80, 1, 1).astype("d")}]


def forecasts_in_doubles():
    """A convolution and a recurrence in f64, written as loops over time (a calibrated model of rates)."""
    x, y = tf.placeholder(tf.float64, [32, 20, 4]), tf.placeholder(tf.float64, [32])
    w, u = (tf.get_variable(n, [s, 96], tf.float64) for n, s in (("w", 4), ("u", 24)))
    b = tf.get_variable("b", [96], tf.float64, tf.zeros_initializer())
    h = c = tf.zeros([32, 24], tf.float64)
    for t in range(20):
        i, f, g, o = tf.split(tf.matmul(x[:, t], w) + tf.matmul(h, u) + b, 4, 1)
        c = tf.sigmoid(f + 1) * c + tf.sigmoid(i) * tf.tanh(g)
        h = tf.sigmoid(o) * tf.tanh(c)
    loss = tf.reduce_mean(tf.square(layers.dense(h, 1)[:, 0] - y))
    return loss, train(loss, adam()), [{x: normal(32, 20, 4).astype("d"), y: normal(32).astype("d")}]


def waves_of_complex_weights():
    """A net whose weights are complex, between Fourier transforms: products, moduli and phases."""
    x, y = tf.placeholder(tf.float32, [64, 128]), tf.placeholder(tf.int64, [64])
    h = tf.signal.rfft(x)[:, :64]
    for i in range(2):
        a, b = (tf.get_variable(f"{n}{i}", [64, 64], initializer=tf.glorot_normal_initializer()) for n in "ab")
        bias = tf.get_variable(f"bias{i}", [64], initializer=tf.constant_initializer(-0.1))
        h = tf.matmul(h, tf.complex(a, b))
        size = abs(h)
        h *= tf.cast(tf.nn.relu(size + bias) / (size + 1e-6), tf.complex64)
    made = tf.signal.irfft(tf.concat([h, h[:, :1]], 1))
    loss = cross_entropy(layers.dense(tf.concat([tf.real(h), tf.imag(h), made], 1), 10), y)
    return loss, train(loss, adam()), [{x: rows(64, 128), y: np.arange(64) % 10}]


def recurrence_by_rotations():
    """A hidden state of complex numbers, turned, reflected and transformed in each step (unitary evolution)."""
    x, y = tf.placeholder(tf.float32, [24, 32, 4]), tf.placeholder(tf.int64, [32])
    turns = [tf.get_variable(f"t{i}", [64], initializer=tf.random_uniform_initializer(-3, 3, seed=i)) for i in range(3)]
    mirror = tf.complex(tf.get_variable("mr", [1, 64]), tf.get_variable("mi", [1, 64]))
    mirror /= tf.cast(tf.norm(mirror) + 1e-6, tf.complex64)
    into = tf.get_variable("in", [4, 128])
    phase = lambda t: tf.complex(tf.cos(t), tf.sin(t))  # noqa: E731
    bias = tf.get_variable("bias", [64], initializer=tf.constant_initializer(-0.05))
    h = tf.complex(tf.ones([32, 64]) * 0.1, tf.zeros([32, 64]))
    for t in range(24):
        h = tf.signal.fft(h * phase(turns[0])) / 8
        h -= 2 * tf.matmul(tf.matmul(h, mirror, adjoint_b=True), mirror)
        h = tf.signal.ifft(h * phase(turns[1])) * 8 * phase(turns[2])
        a, b = tf.split(tf.matmul(x[t], into), 2, 1)
        h += tf.complex(a, b)
        size = tf.sqrt(tf.real(h) ** 2 + tf.imag(h) ** 2 + 1e-6)
        h *= tf.cast(tf.nn.relu(size + bias) / size, tf.complex64)
    loss = cross_entropy(layers.dense(tf.concat([tf.real(h), tf.imag(h)], 1), 10), y)
    return loss, train(loss, adam()), [{x: normal(24, 32, 4), y: np.arange(32) % 10}]


def neighbours_kept_in_planes():
    """Points of a plane whose neighbourhoods are those of many dims (t-SNE)."""
    share = tf.placeholder(tf.float32, [300, 300])
    z = tf.get_variable("z", [300, 2], initializer=tf.random_normal_initializer(stddev=0.1, seed=1))
    square = tf.reduce_sum(z**2, 1)
    far = square[:, None] - 2 * tf.matmul(z, z, transpose_b=True) + square
    near = tf.linalg.set_diag(1 / (1 + far), tf.zeros([300]))
    q = tf.maximum(near / tf.reduce_sum(near), 1e-12)
    loss = tf.reduce_sum(share * (tf.log(tf.maximum(share, 1e-12)) - tf.log(q)))
    x = rows(300, 20)
    p = np.exp(-0.05 * ((x[:, None] - x) ** 2).sum(-1)) * (1 - np.eye(300))
    return loss, train(loss, tf.train.MomentumOptimizer(10.0, 0.8)), [{share: (p / p.sum()).astype("f")}]


def factors_in_turns():
    """Factors of users and items by solving for one side at a time (alternating least squares); no gradient."""
    seen, known = tf.placeholder(tf.float32, [120, 90]), tf.placeholder(tf.float32, [120, 90])
    a, b = (tf.get_variable(n, [s, 12], initializer=tf.random_normal_initializer(seed=s), trainable=False) for n, s in (("a", 120), ("b", 90)))

    def solved(fixed, seen, known):
        squares = tf.einsum("uv,vi,vj->uij", known, fixed, fixed) + 0.5 * tf.eye(12)
        return tf.linalg.cholesky_solve(tf.linalg.cholesky(squares), tf.matmul(seen * known, fixed)[..., None])[..., 0]

    loss = tf.reduce_sum(known * tf.square(seen - tf.matmul(a, b, transpose_b=True))) / tf.reduce_sum(known)
    with tf.control_dependencies([loss]):
        first = tf.assign(a, solved(tf.convert_to_tensor(b), seen, known))
        second = tf.assign(b, solved(first, tf.transpose(seen), tf.transpose(known)))
    return loss, second, [{seen: rows(120, 90), known: (np.random.RandomState(1).rand(120, 90) < 0.3)}]


def particles_that_repel():
    """Forty nets at once, which follow their likelihood and keep apart by a kernel (Stein)."""
    x, y = tf.placeholder(tf.float32, [128, 8]), tf.placeholder(tf.float32, [128])
    w = tf.get_variable("w", [40, 8 * 16 + 16], initializer=tf.random_normal_initializer(stddev=0.3, seed=1))
    first, last = tf.reshape(w[:, :128], [40, 8, 16]), w[:, 128:]
    made = tf.einsum("pbh,ph->pb", tf.tanh(tf.einsum("bi,pih->pbh", x, first)), last)
    fit = -0.5 * tf.reduce_sum(tf.square(y - made), 1) - 0.5 * tf.reduce_sum(w**2, 1)
    slope = tf.gradients(fit, w)[0]
    far = tf.reduce_sum(tf.square(w[:, None] - w[None]), -1)
    middle = tf.nn.top_k(tf.reshape(far, [-1]), 800)[0][-1]
    width = middle / np.log(41).astype("f") + 1e-6
    kernel = tf.exp(-far / width)
    push = (tf.reduce_sum(kernel, 1, keepdims=True) * w - tf.matmul(kernel, w)) * 2 / width
    loss = -tf.reduce_mean(fit) / 128
    with tf.control_dependencies([loss]):
        return loss, tf.assign_add(w, 1e-3 * (tf.matmul(kernel, slope) + push) / 40), [{x: rows(128, 8), y: normal(128)}]


def parts_without_signs():
    """Factors that are never below zero, by multiplied steps (NMF); every fourth step they are scaled."""
    x = tf.placeholder(tf.float32, [200, 160])
    a, b = (tf.get_variable(n, s, initializer=tf.random_uniform_initializer(0.1, 1.0, seed=2), trainable=False) for n, s in (("a", [200, 24]), ("b", [24, 160])))
    loss = tf.reduce_mean(tf.square(x - tf.matmul(a, b)))
    with tf.control_dependencies([loss]):
        b2 = tf.assign(b, b * tf.matmul(a, x, transpose_a=True) / (tf.matmul(tf.matmul(a, a, transpose_a=True), b) + 1e-9))
        a2 = tf.assign(a, a * tf.matmul(x, b2, transpose_b=True) / (tf.matmul(a, tf.matmul(b2, b2, transpose_b=True)) + 1e-9))

    def scaled():
        size = tf.norm(a, axis=0)
        return tf.assign(a, a / size), tf.assign(b, b * size[:, None])

    with tf.control_dependencies([a2]):
        return loss, every(4, scaled), [{x: abs(rows(200, 160))}]


def words_by_counts():
    """Logarithms of how often words meet, by products of their vectors, weighed by the counts (GloVe)."""
    a, b, count = tf.placeholder(tf.int32, [1024]), tf.placeholder(tf.int32, [1024]), tf.placeholder(tf.float32, [1024])
    tables = [tf.get_variable(n, [8000, 48], initializer=tf.random_uniform_initializer(-0.1, 0.1)) for n in ("own", "other")]
    biases = [tf.get_variable(n + "_bias", [8000], initializer=tf.zeros_initializer()) for n in ("own", "other")]
    (u, v), (p, q) = ([tf.nn.embedding_lookup(t, i) for t, i in zip(each, (a, b))] for each in (tables, biases))
    weight = tf.minimum(1.0, tf.pow(count / 100, 0.75))
    loss = tf.reduce_mean(weight * tf.square(tf.reduce_sum(u * v, 1) + p + q - tf.log(count)))
    random = np.random.RandomState(0)
    feeds = [{a: random.randint(8000, size=1024), b: random.zipf(1.4, 1024) % 8000, count: 1 + random.zipf(1.5, 1024) % 500} for _ in range(4)]
    return loss, train(loss, tf.train.AdagradOptimizer(0.05)), feeds


def polynomials_of_graphs():
    """Powers of a graph's matrix in Chebyshev's recursion, two layers, with dropout of 0 (ChebNet)."""
    x, y, matrix = tf.placeholder(tf.float32, [800, 64]), tf.placeholder(tf.int64, [None]), tf.sparse_placeholder(tf.float32, [800, 800])
    h = x
    for i in range(2):
        terms = [h, tf.sparse_tensor_dense_matmul(matrix, h)]
        for _ in range(2):
            terms.append(2 * tf.sparse_tensor_dense_matmul(matrix, terms[-1]) - terms[-2])
        h = tf.nn.relu(layers.dense(tf.concat(terms, 1), 32, name=f"mix{i}"))
    loss = cross_entropy(layers.dense(h, 7), y)
    a, b = graph_of(800, 4000)
    places = np.unique(np.stack([a, b], 1), axis=0)
    values = np.full(len(places), 0.1, "f")
    return loss, train(loss, adam()), [{x: rows(800, 64), y: np.arange(800) % 7, matrix: (places, values, (800, 800))}]


def edges_found_anew():
    """Each layer finds every point's nearest ones among the layer's features (DGCNN)."""
    x, y = tf.placeholder(tf.float32, [4, 128, 3]), tf.placeholder(tf.int64, [None])
    h, kept = x, []
    for width in (32, 32, 64):
        square = tf.reduce_sum(h**2, -1, keepdims=True)
        far = square - 2 * tf.matmul(h, h, transpose_b=True) + tf.transpose(square, [0, 2, 1])
        near = tf.gather(h, tf.nn.top_k(-far, 10)[1], batch_dims=1)
        own = tf.tile(h[:, :, None], [1, 1, 10, 1])
        pairs = layers.batch_normalization(layers.conv2d(tf.concat([own, near - own], -1), width, 1, use_bias=False), training=True)
        h = tf.reduce_max(tf.nn.leaky_relu(pairs), 2)
        kept.append(h)
    h = layers.dense(tf.concat(kept, -1), 128, tf.nn.leaky_relu)
    loss = cross_entropy(layers.dense(tf.concat([tf.reduce_max(h, 1), tf.reduce_mean(h, 1)], 1), 10), y)
    return loss, train(loss, adam()), [{x: normal(4, 128, 3), y: np.arange(4)}]


def draws_weighed_by_importance():
    """Fifty draws a picture, weighed by how likely they are (IWAE)."""
    x = tf.placeholder(tf.float32, [32, 196])
    h = layers.dense(layers.dense(x, 100, tf.tanh), 100, tf.tanh)
    mean, spread = layers.dense(h, 16), layers.dense(h, 16)
    noise = tf.random_normal([20, 32, 16], seed=2)
    z = mean + tf.exp(spread) * noise
    made = layers.dense(layers.dense(layers.dense(z, 100, tf.tanh), 100, tf.tanh), 196)
    fit = -tf.reduce_sum(tf.nn.sigmoid_cross_entropy_with_logits(labels=tf.tile(x[None], [20, 1, 1]), logits=made), -1)
    fit += tf.reduce_sum(-0.5 * z**2 + 0.5 * noise**2 + spread, -1)
    loss = -tf.reduce_mean(tf.reduce_logsumexp(fit, 0) - np.log(20).astype("f"))
    return loss, train(loss, adam()), [{x: (rows(32, 196) > 0.5)}]


def latents_apart():
    """Latents are held independent of each other: densities of every draw under every picture (beta-TCVAE)."""
    x = tf.placeholder(tf.float32, [64, 256])
    h = layers.dense(layers.dense(x, 128, tf.nn.relu), 128, tf.nn.relu)
    mean, spread = layers.dense(h, 10), layers.dense(h, 10)
    z = mean + tf.exp(0.5 * spread) * tf.random_normal([64, 10], seed=2)
    each = -0.5 * (tf.square(z[:, None] - mean[None]) * tf.exp(-spread)[None] + spread[None] + np.log(2 * np.pi).astype("f"))
    joint, alone = tf.reduce_logsumexp(tf.reduce_sum(each, 2), 1), tf.reduce_sum(tf.reduce_logsumexp(each, 1), 1)
    own = tf.reduce_sum(tf.matrix_diag_part(tf.transpose(each, [2, 0, 1])), 0)
    prior = tf.reduce_sum(-0.5 * z**2 - 0.5 * np.log(2 * np.pi).astype("f"), 1)
    made = layers.dense(layers.dense(z, 128, tf.nn.relu), 256)
    fit = tf.reduce_sum(tf.nn.sigmoid_cross_entropy_with_logits(labels=x, logits=made), 1)
    loss = tf.reduce_mean(fit + own - joint + 6 * (joint - alone) + alone - prior)
    return loss, train(loss, adam()), [{x: (rows(64, 256) > 0.3)}]


def steps_by_earlier_slopes():
    """Directions from the last eight steps and slopes, kept in one variable that turns (L-BFGS)."""
    ids, y, feed = text()
    loss = cross_entropy(layers.dense(tf.reduce_mean(block(embedded(ids, 32, 500), "a", 2), 1), 10), y)
    variables = tf.trainable_variables()
    sizes = [int(np.prod(v.shape.as_list())) for v in variables]
    whole = sum(sizes)
    slope = tf.concat([tf.reshape(tf.convert_to_tensor(g), [-1]) for g in tf.gradients(loss, variables)], 0)
    zeros = tf.zeros_initializer()
    moved, bent = (tf.get_variable(n, [8, whole], initializer=zeros, trainable=False) for n in ("moved", "bent"))
    before, step = (tf.get_variable(n, [whole], initializer=zeros, trainable=False) for n in ("before", "step"))
    s, t = (tf.concat([old[1:], new[None]], 0) for old, new in ((moved, step), (bent, slope - before)))
    q, shares = slope, []
    rates = 1 / (tf.reduce_sum(s * t, 1) + 1e-8)
    rates = tf.where(rates > 0, tf.minimum(rates, 1e4), tf.zeros_like(rates))
    for i in reversed(range(8)):
        shares.append(rates[i] * tf.tensordot(s[i], q, 1))
        q -= shares[-1] * t[i]
    for i in range(8):
        q += (shares[7 - i] - rates[i] * tf.tensordot(t[i], q, 1)) * s[i]
    way = -0.02 * tf.clip_by_norm(q, 5.0)
    with tf.control_dependencies([s, t, way]):
        updates = [tf.assign(moved, s), tf.assign(bent, t), tf.assign(before, slope), tf.assign(step, way)]
    updates += [tf.assign_add(v, tf.reshape(part, v.shape)) for v, part in zip(variables, tf.split(way, sizes))]
    feed = {ids: feed[ids] % 500, y: feed[y]}
    return loss, tf.group(*updates), [feed]
