"""Training graphs of TensorFlow 1: special functions, draws, whole numbers and texts inside the step. As tf1_vision.py."""

import numpy as np
import tensorflow as tf

from cases.tf1_further import normal
from cases.tf1_other import rows
from cases.tf1_sequence import adam, embedded, tokens
from cases.tf1_sparse import click_loss
from cases.tf1_vision import conv, cross_entropy, images, train

layers = tf.layers


def topics_by_dirichlet():
    """Shares of topics drawn from a Dirichlet distribution by gamma numbers, whose gradients reach the encoder (DVAE)."""
    x = tf.placeholder(tf.float32, [64, 500])
    h = layers.dense(layers.dense(tf.log1p(x), 128, tf.nn.softplus), 128, tf.nn.softplus)
    shape = 0.1 + tf.nn.softplus(layers.dense(h, 20))
    drawn = tf.random_gamma([], shape)
    shares = drawn / tf.reduce_sum(drawn, 1, keepdims=True)
    words = tf.nn.log_softmax(layers.dense(shares, 500))
    prior = tf.fill([20], 0.3)
    apart = tf.lgamma(tf.reduce_sum(shape, 1)) - tf.lgamma(6.0) - tf.reduce_sum(tf.lgamma(shape) - tf.lgamma(prior), 1)
    apart += tf.reduce_sum((shape - prior) * (tf.digamma(shape) - tf.digamma(tf.reduce_sum(shape, 1, keepdims=True))), 1)
    loss = tf.reduce_mean(apart - tf.reduce_sum(x * words, 1)) / 500
    return loss, train(loss, adam()), [{x: np.random.RandomState(0).poisson(0.2, size=(64, 500)).astype("f")}]


def directions_on_spheres():
    """Unit vectors by von Mises' and Fisher's density on circles, whose norm takes Bessel functions."""
    x, angle = tf.placeholder(tf.float32, [256, 32]), tf.placeholder(tf.float32, [256, 64])
    h = layers.dense(layers.dense(x, 128, tf.nn.relu), 128, tf.nn.relu)
    to, sharp = layers.dense(h, 128), tf.nn.softplus(layers.dense(h, 64)) + 0.1
    a, b = tf.split(to, 2, 1)
    mean = tf.atan2(a, b)
    fit = sharp * (tf.cos(angle - mean) - 1) - tf.log(tf.math.bessel_i0e(sharp)) - np.log(2 * np.pi)
    ratio = tf.math.bessel_i1e(sharp) / tf.math.bessel_i0e(sharp)
    loss = -tf.reduce_mean(fit) + 0.01 * tf.reduce_mean(ratio * sharp)
    return loss, train(loss, adam()), [{x: rows(256, 32), angle: 3 * np.tanh(rows(256, 64, 1))}]


def words_on_hyperboloids():
    """Pairs of a tree by their distance on a hyperboloid: inverse hyperbolic cosines and sines (Lorentz model)."""
    a, b = tf.placeholder(tf.int32, [512]), tf.placeholder(tf.int32, [512, 8])
    table = tf.get_variable("places", [2000, 16], initializer=tf.random_uniform_initializer(-0.5, 0.5))

    def lifted(ids):
        x = tf.nn.embedding_lookup(table, ids)
        return tf.concat([tf.sqrt(1 + tf.reduce_sum(x**2, -1, keepdims=True)), x], -1)

    u, v = lifted(a)[:, None], lifted(b)
    inner = u[..., 0] * v[..., 0] - tf.reduce_sum(u[..., 1:] * v[..., 1:], -1)
    far = tf.acosh(tf.maximum(inner, 1 + 1e-4)) + 0.1 * tf.asinh(inner) + 0.05 * tf.atanh(tf.tanh(u[..., 1]) * 0.9)
    loss = tf.reduce_mean(far[:, 0] + tf.reduce_logsumexp(-far, 1))
    random = np.random.RandomState(0)
    return loss, train(loss, tf.train.AdagradOptimizer(0.1)), [{a: random.randint(2000, size=512), b: random.randint(2000, size=(512, 8))}]


def margins_by_copula():
    """Margins of each column become normal by quantiles, a full covariance joins them (Gaussian copula flow)."""
    x = tf.placeholder(tf.float32, [256, 24])
    weights = tf.nn.softmax(tf.get_variable("weights", [24, 8]))
    place, width = tf.get_variable("place", [24, 8]), tf.nn.softplus(tf.get_variable("width", [24, 8])) + 0.2
    z = (x[..., None] - place) / width
    below = tf.reduce_sum(weights * 0.5 * tf.erfc(-z / np.sqrt(2)), -1)
    dense = tf.reduce_sum(weights / width * tf.exp(-0.5 * z**2) / np.sqrt(2 * np.pi), -1)
    made = tf.math.ndtri(tf.clip_by_value(below, 1e-5, 1 - 1e-5))
    made += 0.01 * tf.math.erfinv(tf.clip_by_value(2 * below - 1, -0.999, 0.999))
    root = tf.linalg.band_part(tf.get_variable("root", [24, 24]) * 0.1, -1, 0) - tf.linalg.diag(tf.linalg.diag_part(tf.eye(24))) * -1.0
    white = tf.transpose(tf.linalg.triangular_solve(root, tf.transpose(made)))
    fit = -0.5 * tf.reduce_sum(white**2, 1) - tf.reduce_sum(tf.log(abs(tf.linalg.diag_part(root)) + 1e-3))
    loss = -tf.reduce_mean(fit + tf.reduce_sum(tf.log(dense + 1e-6) + 0.5 * made**2, 1)) / 24
    return loss, train(loss, adam()), [{x: rows(256, 24)}]


def shares_by_beta():
    """Rates between 0 and 1 by a Beta density with zeros and ones of their own, and heavy tails by Student's density."""
    x, y, r = tf.placeholder(tf.float32, [256, 16]), tf.placeholder(tf.float32, [256, 32]), tf.placeholder(tf.float32, [256, 32])
    h = layers.dense(layers.dense(x, 128, tf.nn.elu), 128, tf.nn.elu)
    mean, size = tf.sigmoid(layers.dense(h, 32)), tf.nn.softplus(layers.dense(h, 32)) + 1.0
    a, b = mean * size, (1 - mean) * size
    beta = (a - 1) * tf.log(y) + (b - 1) * tf.log1p(-y) - tf.math.lbeta(tf.stack([a, b], -1))
    place, scale, free = layers.dense(h, 32), tf.nn.softplus(layers.dense(h, 32)) + 0.1, 2 + tf.nn.softplus(layers.dense(h, 32))
    student = tf.lgamma((free + 1) / 2) - tf.lgamma(free / 2) - 0.5 * tf.log(np.pi * free) - tf.log(scale)
    student -= (free + 1) / 2 * tf.log1p(((r - place) / scale) ** 2 / free)
    loss = -tf.reduce_mean(beta) - tf.reduce_mean(student)
    y_in = np.clip(np.random.RandomState(0).beta(2, 3, size=(256, 32)), 0.01, 0.99).astype("f")
    return loss, train(loss, adam()), [{x: rows(256, 16), y: y_in, r: rows(256, 32, 2)}]


def waits_by_weibull():
    """Censored waits: Weibull and gamma densities, whose survival is an incomplete gamma function."""
    x, time, seen = tf.placeholder(tf.float32, [512, 24]), tf.placeholder(tf.float32, [512]), tf.placeholder(tf.float32, [512])
    h = layers.dense(layers.dense(x, 64, tf.nn.selu), 64, tf.nn.selu)
    shape, scale = (tf.nn.softplus(layers.dense(h, 1)[:, 0]) + 0.2 for _ in range(2))
    z = time / scale
    weibull = seen * (tf.log(shape / scale) + (shape - 1) * tf.log(z)) - tf.pow(z, shape)
    a = tf.get_variable("a", [], initializer=tf.constant_initializer(1.5))
    gamma = seen * ((a - 1) * tf.log(z) - z - tf.lgamma(a)) + (1 - seen) * tf.log(tf.math.igammac(a, z) + 1e-6)
    loss = -tf.reduce_mean(weibull) - 0.5 * tf.reduce_mean(gamma)
    random = np.random.RandomState(0)
    return loss, train(loss, adam()), [{x: rows(512, 24), time: 0.1 + random.rand(512), seen: (random.rand(512) < 0.7)}]


def places_by_hashed_grids():
    """Corners of cells on eight grids are hashed to rows of a table, whose mean by place a small net reads (instant NGP)."""
    x, y = tf.placeholder(tf.float32, [2048, 2]), tf.placeholder(tf.float32, [2048, 3])
    table, made = tf.get_variable("table", [8 * 4096, 2], initializer=tf.random_uniform_initializer(-0.1, 0.1)), []
    for level in range(8):
        at = x * float(int(16 * 1.5**level))
        low = tf.floor(at)
        share, cell, found = at - low, tf.cast(low, tf.int32), 0.0
        for i, j in ((0, 0), (0, 1), (1, 0), (1, 1)):
            hashed = tf.bitwise.bitwise_xor(cell[:, 0] + i, (cell[:, 1] + j) * 19349663)
            row = tf.floormod(hashed, 4096) + level * 4096
            weight = abs(1 - i - share[:, :1]) * abs(1 - j - share[:, 1:])
            found += weight * tf.nn.embedding_lookup(table, row)
        made.append(found)
    h = tf.concat(made, 1)
    for _ in range(2):
        h = layers.dense(h, 64, tf.nn.relu)
    loss = tf.reduce_mean((layers.dense(h, 3, tf.sigmoid) - y) ** 2)
    random = np.random.RandomState(0)
    return loss, train(loss, adam(1e-2)), [{x: random.rand(2048, 2), y: random.rand(2048, 3)} for _ in range(3)]


def titles_hashed_in_the_graph():
    """Texts are hashed to categories inside the step; crossed columns feed a wide and a deep part."""
    title, city, clicks = tf.placeholder(tf.string, [256]), tf.placeholder(tf.string, [256]), tf.placeholder(tf.float32, [256])
    hour = tf.placeholder(tf.int64, [256])
    column = tf.feature_column
    parts = {"title": title, "city": city, "hour": hour}
    one = column.categorical_column_with_hash_bucket("title", 1000)
    two = column.categorical_column_with_vocabulary_list("city", [f"city{i}" for i in range(50)], num_oov_buckets=2)
    three = column.categorical_column_with_identity("hour", 24)
    crossed = column.crossed_column([two, three], 500)
    wide = column.linear_model(parts, [one, two, three, crossed])
    deep = column.input_layer(parts, [column.embedding_column(one, 16), column.embedding_column(crossed, 8), column.indicator_column(three)])
    loss = click_loss(layers.dense(layers.dense(deep, 64, tf.nn.relu), 1) + wide, clicks)
    random = np.random.RandomState(0)
    feed = {title: [f"title {i}" for i in random.randint(5000, size=256)], city: [f"city{i}" for i in random.randint(60, size=256)]}
    return loss, train(loss, tf.train.AdagradOptimizer(0.1)), [{**feed, hour: random.randint(24, size=256), clicks: random.randint(2, size=256)}]


def pairs_ranked_by_draws():
    """Each user's item is to come before drawn ones (Bayesian personalised ranking, neural collaborative filtering)."""
    user, item = tf.placeholder(tf.int32, [512]), tf.placeholder(tf.int32, [512])
    other = tf.random_uniform([512], 0, 5000, tf.int32)
    parts = [(embedded(user, 32, 2000, f"u{i}"), tf.get_variable(f"i{i}", [5000, 32])) for i in range(2)]
    tower = [layers.Dense(width, tf.nn.relu) for width in (64, 32)]
    out = layers.Dense(1)

    def score(ids):
        product = parts[0][0] * tf.nn.embedding_lookup(parts[0][1], ids)
        h = tf.concat([parts[1][0], tf.nn.embedding_lookup(parts[1][1], ids)], 1)
        for layer in tower:
            h = layer(h)
        return out(tf.concat([product, h], 1))

    loss = tf.reduce_mean(tf.nn.softplus(score(other) - score(item)))
    random = np.random.RandomState(0)
    return loss, train(loss, adam()), [{user: random.randint(2000, size=512), item: random.randint(5000, size=512)} for _ in range(4)]


def noise_of_counted_light():
    """Images with noise of counted light (Poisson) at drawn strengths are made clean; the loss compares variance-stable roots."""
    x, _, feeds = images(32, 1, 8)
    light = tf.nn.sigmoid(x)
    noisy = tf.random_poisson(tf.stop_gradient(light) * 20, []) / 20
    h = conv(conv(tf.sqrt(noisy + 3 / 8), 32), 32)
    made = tf.nn.softplus(layers.conv2d(h, 1, 3, padding="same"))
    loss = tf.reduce_mean(tf.nn.log_poisson_loss(light, tf.log(made + 1e-3), compute_full_loss=True))
    return loss, train(loss, adam()), feeds


def energies_of_restricted_machines():
    """Hidden units are drawn and shown again a few times; the difference of statistics trains (contrastive divergence)."""
    x = tf.placeholder(tf.float32, [128, 784])
    w = tf.get_variable("w", [784, 256], initializer=tf.random_normal_initializer(stddev=0.01))
    a, b = tf.get_variable("a", [784], initializer=tf.zeros_initializer()), tf.get_variable("b", [256], initializer=tf.zeros_initializer())
    drawn = lambda p: tf.nn.relu(tf.sign(p - tf.random_uniform(tf.shape(p))))  # noqa: E731
    up, down = lambda v: tf.sigmoid(tf.matmul(v, w) + b), lambda h: tf.sigmoid(tf.matmul(h, w, transpose_b=True) + a)
    first = up(x)
    h = drawn(first)
    for _ in range(3):
        v = down(h)
        last = up(v)
        h = drawn(last)
    rate = 0.05 / 128
    change = tf.group(
        w.assign_add(rate * (tf.matmul(x, first, transpose_a=True) - tf.matmul(v, last, transpose_a=True))),
        a.assign_add(rate * tf.reduce_sum(x - v, 0)),
        b.assign_add(rate * tf.reduce_sum(first - last, 0)),
    )
    free = tf.reduce_sum(tf.nn.softplus(tf.matmul(x, w) + b), 1) + tf.linalg.matvec(x, a)
    return -tf.reduce_mean(free) / 784, change, [{x: (abs(rows(128, 784)) > 1)}]


def sounds_read_and_compared():
    """CTC beside its best path and edit distance, all in one step."""
    x, lengths = tf.placeholder(tf.float32, [40, 8, 26]), tf.placeholder(tf.int32, [8])
    y = tf.sparse_placeholder(tf.int32, [8, 12])
    h = layers.conv1d(tf.transpose(x, [1, 0, 2]), 64, 5, padding="same", activation=tf.nn.relu)
    logits = tf.transpose(layers.dense(layers.dense(h, 64, tf.nn.relu), 30), [1, 0, 2])
    loss = tf.reduce_mean(tf.nn.ctc_loss(y, logits, lengths))
    path, _ = tf.nn.ctc_greedy_decoder(logits, lengths)
    wrong = tf.reduce_mean(tf.edit_distance(tf.cast(path[0], tf.int32), y))
    at = np.stack(np.meshgrid(np.arange(8), np.arange(6), indexing="ij"), -1).reshape(-1, 2)
    labels = tf.SparseTensorValue(at, tokens(48, 1, 29)[0], [8, 12])
    return loss + 0 * wrong, train(loss, adam()), [{x: normal(40, 8, 26), lengths: np.full(8, 40), y: labels}]


def light_left_by_products():
    """What is left of the light along a ray is a running product; depths are drawn by running sums (mip-NeRF, splatting)."""
    x, y = tf.placeholder(tf.float32, [128, 48, 6]), tf.placeholder(tf.float32, [128, 3])
    h = layers.dense(layers.dense(x, 64, tf.nn.relu), 64, tf.nn.relu)
    seen = 1 - tf.exp(-tf.nn.softplus(layers.dense(h, 1)[..., 0]) * 0.1)
    weights = seen * tf.cumprod(1 - seen + 1e-6, 1, exclusive=True)
    colour = tf.reduce_sum(weights[..., None] * layers.dense(h, 3, tf.sigmoid), 1)
    order = tf.argsort(tf.reduce_sum(x, -1), axis=1)
    loss = tf.reduce_mean((colour - y) ** 2) + 0.01 * tf.reduce_mean(tf.gather(weights, order, batch_dims=1)[:, 0])
    return loss, train(loss, adam()), [{x: normal(128, 48, 6), y: np.random.RandomState(0).rand(128, 3)}]


def classes_of_whole_numbers():
    """Distances of codes by products of whole numbers weigh a hashing net's loss (deep supervised hashing)."""
    x, y, feeds = images(32, 3, 32)
    h = tf.reduce_mean(conv(conv(x, 32, stride=2), 64, stride=2), [1, 2])
    soft = tf.tanh(layers.dense(h, 48))
    codes = tf.cast(tf.sign(soft), tf.int32)
    far = (48 - tf.matmul(codes, codes, transpose_b=True)) // 2
    same = tf.cast(tf.equal(y[:, None], y), tf.float32)
    near = tf.matmul(soft, soft, transpose_b=True) / 2
    hard = tf.cast(tf.less(far, 20), tf.float32) * (1 - same) + same
    loss = tf.reduce_mean((tf.nn.softplus(near) - same * near) * (0.5 + hard)) + 0.1 * tf.reduce_mean((abs(soft) - 1) ** 2)
    return loss + 0 * cross_entropy(layers.dense(h, 10), y), train(loss, adam()), feeds
