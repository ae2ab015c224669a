"""Training graphs of TensorFlow 1: likelihoods, flows, long texts, relations, graphs by samples. As tf1_vision.py."""

import numpy as np
import tensorflow as tf
from tensorflow.python.ops import rnn, rnn_cell

from cases.tf1_further import normal
from cases.tf1_other import rows
from cases.tf1_sequence import adam, block, embedded, layer_norm, tokens
from cases.tf1_sparse import click_loss, fields
from cases.tf1_vision import conv, cross_entropy, images, train

layers = tf.layers


def flow_by_splines():
    """Coupling layers bend each number by a rational spline of eight bins (neural spline flow)."""
    x = tf.placeholder(tf.float32, [256, 8])

    def knots(h):
        sizes = 0.01 + (1 - 0.08) * tf.nn.softmax(h)
        return sizes * 6, tf.cumsum(sizes, -1, exclusive=True) * 6 - 3

    h, volume = x, 0.0
    for _ in range(3):
        kept, moved = tf.split(h[:, ::-1], 2, 1)
        parts = tf.reshape(layers.dense(layers.dense(kept, 64, tf.nn.relu), 4 * 25), [-1, 4, 25])
        (width, left), (height, low) = knots(parts[..., :8]), knots(parts[..., 8:16])
        slopes = 0.01 + tf.nn.softplus(parts[..., 16:])
        inside = tf.clip_by_value(moved, -2.99, 2.99)
        place = tf.reduce_sum(tf.cast(inside[..., None] >= left, tf.int32), -1, keepdims=True) - 1
        w, x0, t, y0 = (tf.gather(each, place, axis=2, batch_dims=2)[..., 0] for each in (width, left, height, low))
        a, b = (tf.gather(slopes, place + i, axis=2, batch_dims=2)[..., 0] for i in (0, 1))
        slope, share = t / w, (inside - x0) / w
        both = share * (1 - share)
        below = slope + (a + b - 2 * slope) * both
        bent = y0 + t * (slope * share**2 + a * both) / below
        steep = slope**2 * (b * share**2 + 2 * slope * both + a * (1 - share) ** 2) / below**2
        moved, change = tf.where(abs(moved) < 2.99, bent, moved), tf.where(abs(moved) < 2.99, tf.log(steep), tf.zeros_like(steep))
        h, volume = tf.concat([kept, moved], 1), volume + tf.reduce_sum(change, 1)
    loss = tf.reduce_mean(0.5 * tf.reduce_sum(h**2, 1) - volume)
    return loss, train(loss, adam()), [{x: rows(256, 8)}]


def flow_of_masked_layers():
    """Each number is moved by those before it alone; masks on the weights see to that (MAF)."""
    x = tf.placeholder(tf.float32, [256, 16])
    h, volume, orders = x, 0.0, [np.arange(16), np.arange(128) % 15, np.arange(128) % 15, np.tile(np.arange(16), 2)]
    for i in range(4):
        a = h[:, ::-1]
        for j, (before, after) in enumerate(zip(orders, orders[1:])):
            mask = (before[:, None] < after if j == 2 else before[:, None] <= after).astype("f")
            a = tf.matmul(a, tf.get_variable(f"w{i}{j}", mask.shape) * mask) + tf.get_variable(f"b{i}{j}", mask.shape[1:])
            a = tf.nn.relu(a) if j < 2 else a
        mean, spread = tf.split(a, 2, 1)
        h, volume = (h[:, ::-1] - mean) * tf.exp(-tf.tanh(spread)), volume - tf.reduce_sum(tf.tanh(spread), 1)
    loss = tf.reduce_mean(0.5 * tf.reduce_sum(h**2, 1) - volume)
    return loss, train(loss, adam()), [{x: rows(256, 16)}]


def inducing_points():
    """A Gaussian process by few points of its own, four outputs at once (sparse and variational)."""
    x, y = tf.placeholder(tf.float32, [256, 4]), tf.placeholder(tf.float32, [256, 4])
    places, mean = tf.get_variable("places", [48, 4]), tf.get_variable("mean", [4, 48, 1])
    root = tf.linalg.band_part(tf.get_variable("root", [4, 48, 48]) * 0.1 + tf.eye(48), -1, 0)
    length, height, noise = (tf.exp(tf.get_variable(name, [4, 1, 1], initializer=tf.zeros_initializer())) for name in ("l", "h", "n"))

    def kernel(a, b):
        far = tf.reduce_sum(a**2, 1)[:, None] - 2 * tf.matmul(a, b, transpose_b=True) + tf.reduce_sum(b**2, 1)
        return height * tf.exp(-0.5 * far[None] / length**2)

    factor = tf.linalg.cholesky(kernel(places, places) + 1e-3 * tf.eye(48))
    seen = tf.linalg.triangular_solve(factor, kernel(places, x))
    found = tf.matmul(seen, mean, transpose_a=True)[..., 0]
    spread = height[..., 0] - tf.reduce_sum(seen**2, 1) + tf.reduce_sum(tf.matmul(root, seen, transpose_a=True) ** 2, 1)
    fit = -0.5 * (tf.square(tf.transpose(y) - found) + spread) / noise[..., 0] ** 2 - tf.log(noise[..., 0])
    apart = 0.5 * (tf.reduce_sum(root**2) + tf.reduce_sum(mean**2) - 192) - tf.reduce_sum(tf.log(abs(tf.linalg.diag_part(root))))
    loss = apart / 1000 - tf.reduce_mean(tf.reduce_sum(fit, 0))
    return loss, train(loss, adam()), [{x: rows(256, 4), y: rows(256, 4, 1)}]


def counts_of_cells():
    """Counts of genes by a negative binomial with extra zeros (scVI)."""
    x = tf.placeholder(tf.float32, [64, 800])
    h = layers.dense(layers.dropout(tf.log1p(x), 0.1), 128, use_bias=False)
    h = tf.nn.relu(layers.batch_normalization(h, training=True))
    mean, spread = tf.split(layers.dense(h, 20), 2, 1)
    z = mean + tf.exp(0.5 * spread) * tf.random_normal([64, 10])
    h = layers.dense(z, 128, tf.nn.relu)
    rate = tf.nn.softmax(layers.dense(h, 800)) * tf.reduce_sum(x, 1, keepdims=True)
    shape, zero = tf.exp(tf.get_variable("shape", [800])), layers.dense(h, 800)
    whole = tf.log(shape + rate + 1e-8)
    none = shape * (tf.log(shape + 1e-8) - whole)
    some = none + x * (tf.log(rate + 1e-8) - whole) + tf.lgamma(x + shape) - tf.lgamma(shape) - tf.lgamma(x + 1)
    fit = tf.where(x < 0.5, tf.nn.softplus(none - zero) - tf.nn.softplus(-zero), some - zero - tf.nn.softplus(-zero))
    apart = 0.5 * tf.reduce_sum(mean**2 + tf.exp(spread) - 1 - spread, 1)
    loss = tf.reduce_mean(apart - tf.reduce_sum(fit, 1)) / 800
    return loss, train(loss, adam()), [{x: np.random.RandomState(0).poisson(0.6, size=(64, 800)).astype("f")}]


def times_until_event():
    """Who is at risk when somebody's event comes: sums over all later times (Cox)."""
    x, time, seen = tf.placeholder(tf.float32, [512, 32]), tf.placeholder(tf.float32, [512]), tf.placeholder(tf.float32, [512])
    risk = layers.dense(layers.dense(layers.dense(x, 64, tf.nn.selu), 64, tf.nn.selu), 1)[:, 0]
    order = tf.argsort(time, direction="DESCENDING")
    ordered, events = tf.gather(risk, order), tf.gather(seen, order)
    loss = tf.reduce_sum((tf.math.cumulative_logsumexp(ordered) - ordered) * events) / tf.reduce_sum(events)
    random = np.random.RandomState(0)
    return loss, train(loss, adam()), [{x: rows(512, 32), time: random.rand(512), seen: (random.rand(512) < 0.7)}]


def neural_process():
    """What is known about some points tells about others, by attention and a drawn summary."""
    x, y, at, wanted = (tf.placeholder(tf.float32, [16, count, width]) for count, width in ((20, 1), (20, 1), (60, 1), (60, 1)))

    def net(h, name, out=64):
        with tf.variable_scope(name, reuse=tf.AUTO_REUSE):
            for i in range(2):
                h = layers.dense(h, 64, tf.nn.relu, name=f"h{i}")
            return layers.dense(h, out, name="out")

    def summary(x, y):
        mean, spread = tf.split(net(tf.reduce_mean(net(tf.concat([x, y], -1), "latent"), 1), "middle", 64), 2, -1)
        return mean, 0.1 + 0.9 * tf.sigmoid(spread)

    pairs = net(tf.concat([x, y], -1), "pairs")
    shares = tf.nn.softmax(tf.matmul(net(at, "places"), net(x, "places"), transpose_b=True) / 8)
    (m0, s0), (m1, s1) = summary(x, y), summary(at, wanted)
    z = tf.tile((m1 + s1 * tf.random_normal([16, 32]))[:, None], [1, 60, 1])
    mean, spread = tf.split(net(tf.concat([tf.matmul(shares, pairs), z, at], -1), "out", 2), 2, -1)
    spread = 0.1 + 0.9 * tf.nn.softplus(spread)
    fit = 0.5 * tf.square((wanted - mean) / spread) + tf.log(spread)
    apart = tf.log(s0 / s1) + (s1**2 + (m1 - m0) ** 2) / (2 * s0**2) - 0.5
    loss = tf.reduce_mean(fit) + tf.reduce_mean(apart) / 60
    feed = {x: normal(16, 20, 1), y: normal(16, 20, 1, seed=1), at: normal(16, 60, 1, seed=2), wanted: normal(16, 60, 1, seed=3)}
    return loss, train(loss, adam()), [feed]


def areas_in_common():
    """Errors of each class in order, weighed by what they add to the area that is not shared (Lovasz)."""
    x, _, feeds = images(32, 3, 4)
    y = tf.placeholder(tf.int32, [4, 32, 32])
    shares = tf.reshape(tf.nn.softmax(layers.conv2d(conv(conv(x, 32), 32), 4, 1)), [-1, 4])
    truth, losses = tf.one_hot(tf.reshape(y, [-1]), 4), []
    for i in range(4):
        errors, order = tf.nn.top_k(abs(truth[:, i] - shares[:, i]), 4096)
        here = tf.gather(truth[:, i], order)
        whole = tf.reduce_sum(here)
        area = 1 - (whole - tf.cumsum(here)) / (whole + tf.cumsum(1 - here))
        losses.append(tf.tensordot(errors, tf.stop_gradient(tf.concat([area[:1], area[1:] - area[:-1]], 0)), 1))
    loss = tf.add_n(losses) / 4
    return loss, train(loss, adam()), [{**feeds[0], y: np.random.RandomState(1).randint(4, size=(4, 32, 32))}]


def speech_by_transducer():
    """All ways through a lattice of sounds and letters, diagonal by diagonal (RNN-T)."""
    sound, ids = tf.placeholder(tf.float32, [8, 40, 24]), tf.placeholder(tf.int32, [8, 12])
    heard, _ = rnn.dynamic_rnn(rnn_cell.GRUCell(48), sound, dtype=tf.float32, scope="heard")
    said, _ = rnn.dynamic_rnn(rnn_cell.GRUCell(48), tf.pad(embedded(ids, 32, 30), [[0, 0], [1, 0], [0, 0]]), dtype=tf.float32, scope="said")
    both = tf.nn.log_softmax(layers.dense(tf.tanh(layers.dense(heard, 64)[:, :, None] + layers.dense(said, 64)[:, None]), 30))
    none = both[..., 0]
    letters = tf.reduce_sum(both[:, :, :12] * tf.one_hot(ids, 30)[:, None], -1)
    letters = tf.pad(letters, [[0, 0], [0, 0], [0, 1]], constant_values=-1e9)

    def turn(before, parts):
        quiet, here = parts
        stay = before + quiet
        made = [stay[:, 0]]
        for u in range(1, 13):
            made.append(tf.reduce_logsumexp(tf.stack([stay[:, u], made[-1] + here[:, u - 1]]), 0))
        return tf.stack(made, 1)

    start = tf.concat([tf.zeros([8, 1]), tf.cumsum(letters[:, 0, :12], 1)], 1)
    ways = tf.scan(turn, (tf.transpose(none, [1, 0, 2])[:-1], tf.transpose(letters, [1, 0, 2])[1:]), start)
    loss = -tf.reduce_mean(ways[-1, :, 12] + none[:, -1, 12]) / 40
    return loss, train(loss, adam()), [{sound: normal(8, 40, 24), ids: tokens(12, 8, 30)}]


def words_by_hashes():
    """Words attend to those of the same hash, sorted and in chunks (Reformer)."""
    ids, y = tf.placeholder(tf.int64, [4, 256]), tf.placeholder(tf.int64, [None])
    x, turn = embedded(ids), tf.constant(normal(16, 8))
    for i in range(2):
        h = layer_norm(x, f"n{i}")
        q, v = (tf.reshape(tf.transpose(tf.reshape(layers.dense(h, 64), [4, 256, 4, 16]), [0, 2, 1, 3]), [16, 256, 16]) for _ in range(2))
        near = tf.tensordot(q, turn, 1)
        hashes = tf.argmax(tf.concat([near, -near], -1), -1, output_type=tf.int32)
        order = tf.argsort(hashes * 256 + tf.range(256))
        back = tf.argsort(order)
        q, v = (tf.reshape(tf.gather(each, order, batch_dims=1), [16, 8, 32, 16]) for each in (q, v))
        place = tf.reshape(order, [16, 8, 32])
        both = lambda each: tf.concat([tf.roll(each, 1, 1), each], 2)  # noqa: E731
        scores = tf.matmul(q, both(tf.nn.l2_normalize(q, -1)), transpose_b=True)
        scores -= 1e5 * tf.cast(tf.equal(place[..., None], both(place)[:, :, None]), tf.float32)
        made = tf.gather(tf.reshape(tf.matmul(tf.nn.softmax(scores), both(v)), [16, 256, 16]), back, batch_dims=1)
        x += layers.dense(tf.reshape(tf.transpose(tf.reshape(made, [4, 4, 256, 16]), [0, 2, 1, 3]), [4, 256, 64]), 64)
        x += layers.dense(layers.dense(layer_norm(x, f"m{i}"), 128, tf.nn.relu), 64)
    loss = cross_entropy(layers.dense(tf.reduce_mean(x, 1), 10), y)
    return loss, train(loss, tf.train.GradientDescentOptimizer(1e-3)), [{ids: tokens(256, 4), y: np.arange(4)}]


def windows_of_long_texts():
    """Words see their neighbours and the first word, which sees all (Longformer)."""
    ids, y = tf.placeholder(tf.int64, [4, 256]), tf.placeholder(tf.int64, [None])
    x = embedded(ids)
    away = np.arange(96) - 32 - np.arange(32)[:, None]
    mask = np.where(abs(away) <= 32, 0, -1e9) + np.zeros((8, 1, 1))
    mask[0, :, :32], mask[-1, :, 64:] = -1e9, -1e9
    for i in range(2):
        h = layer_norm(x, f"n{i}")
        q, k, v = (tf.transpose(tf.reshape(layers.dense(h, 64), [4, 256, 4, 16]), [0, 2, 1, 3]) for _ in range(3))
        around = lambda each: tf.pad(each, [[0, 0], [0, 0], [32, 32], [0, 0]])  # noqa: E731
        shifted = lambda each, j: tf.reshape(around(each)[:, :, j : j + 256], [4, 4, 8, 32, 16])  # noqa: E731, B023
        wide = lambda each: tf.concat([shifted(each, j) for j in (0, 32, 64)], 3)  # noqa: E731, B023
        first = lambda each: tf.tile(each[:, :, :1, None], [1, 1, 8, 1, 1])  # noqa: E731
        scores = tf.matmul(tf.reshape(q, [4, 4, 8, 32, 16]), wide(k), transpose_b=True) / 4 + tf.constant(mask.astype("f"))
        scores = tf.concat([tf.matmul(tf.reshape(q, [4, 4, 8, 32, 16]), first(k), transpose_b=True) / 4, scores], -1)
        made = tf.reshape(tf.matmul(tf.nn.softmax(scores), tf.concat([first(v), wide(v)], 3)), [4, 4, 256, 16])
        whole = tf.matmul(tf.nn.softmax(tf.matmul(q[:, :, :1], k, transpose_b=True) / 4), v)
        made = tf.concat([whole, made[:, :, 1:]], 2)
        x += layers.dense(tf.reshape(tf.transpose(made, [0, 2, 1, 3]), [4, 256, 64]), 64)
        x += layers.dense(layers.dense(layer_norm(x, f"m{i}"), 128, tf.nn.relu), 64)
    loss = cross_entropy(layers.dense(x[:, 0], 10), y)
    return loss, train(loss, adam()), [{ids: tokens(256, 4), y: np.arange(4)}]


def words_replaced():
    """A small net draws words for masked places, a larger one finds which were replaced (ELECTRA)."""
    ids, hidden = tf.placeholder(tf.int32, [16, 32]), tf.placeholder(tf.bool, [16, 32])
    table = tf.get_variable("words", [1000, 64])
    masked = tf.where(hidden, tf.zeros_like(ids), ids)
    h = layers.dense(tf.nn.embedding_lookup(table, masked), 32)
    logits = tf.tensordot(layers.dense(block(h, "small", 2), 64), table, [[2], [1]])
    weight = tf.cast(hidden, tf.float32)
    made = tf.reduce_sum(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=ids, logits=logits) * weight) / tf.reduce_sum(weight)
    drawn = tf.reshape(tf.multinomial(tf.reshape(tf.stop_gradient(logits), [-1, 1000]), 1, output_dtype=tf.int32), [16, 32])
    shown = tf.where(hidden, drawn, ids)
    h = block(block(tf.nn.embedding_lookup(table, shown), "a"), "b")
    false = tf.cast(tf.not_equal(shown, ids), tf.float32)
    loss = made + 50 * tf.reduce_mean(tf.nn.sigmoid_cross_entropy_with_logits(labels=false, logits=layers.dense(h, 1)[..., 0]))
    return loss, train(loss, adam()), [{ids: tokens(32, 16, 1000), hidden: np.random.RandomState(0).rand(16, 32) < 0.15}]


def latent_dynamics():
    """A state that is partly drawn, step by step, from what was seen and from what was expected (RSSM)."""
    seen, acted = tf.placeholder(tf.float32, [20, 16, 32]), tf.placeholder(tf.float32, [20, 16, 4])
    cell, before, after = rnn_cell.GRUCell(64), layers.Dense(32), layers.Dense(32)
    features, noise = layers.dense(layers.dense(seen, 64, tf.nn.elu), 64), tf.random_normal([20, 16, 16])

    def turn(state, parts):
        h, z = state[:2]
        feature, action, drawn = parts
        h, _ = cell(tf.concat([z, action], 1), h)
        expected, found = before(h), after(tf.concat([h, feature], 1))
        mean, spread = tf.split(found, 2, 1)
        return h, mean + (tf.nn.softplus(spread) + 0.1) * drawn, expected, found

    zero = [tf.zeros([16, width]) for width in (64, 16, 32, 32)]
    h, z, expected, found = tf.scan(turn, (features, acted, noise), tuple(zero))
    (m0, s0), (m1, s1) = (tf.split(each, 2, -1) for each in (expected, found))
    s0, s1 = tf.nn.softplus(s0) + 0.1, tf.nn.softplus(s1) + 0.1
    apart = tf.reduce_sum(tf.log(s0 / s1) + (s1**2 + (m1 - m0) ** 2) / (2 * s0**2) - 0.5, -1)
    made = layers.dense(layers.dense(tf.concat([h, z], -1), 64, tf.nn.elu), 32)
    loss = tf.reduce_mean(tf.maximum(apart, 1.0)) + tf.reduce_mean(tf.square(made - seen))
    return loss, train(loss, adam()), [{seen: normal(20, 16, 32), acted: normal(20, 16, 4)}]


def relations_of_objects():
    """A net over every pair of an image's places, together with the question (relation network)."""
    x, y, feeds = images(32, 3, 16)
    question = tf.placeholder(tf.float32, [16, 11])
    h = x
    for _ in range(3):
        h = conv(h, 24, stride=2)
    places = tf.constant(np.tile(np.stack(np.meshgrid(np.arange(4), np.arange(4)), -1).reshape(1, 16, 2) / 4, (16, 1, 1)).astype("f"))
    objects = tf.concat([tf.reshape(h, [16, 16, 24]), places], -1)
    a, b = tf.tile(objects[:, :, None], [1, 1, 16, 1]), tf.tile(objects[:, None], [1, 16, 1, 1])
    pairs = tf.concat([a, b, tf.tile(question[:, None, None], [1, 16, 16, 1])], -1)
    for _ in range(3):
        pairs = layers.dense(pairs, 64, tf.nn.relu)
    loss = cross_entropy(layers.dense(layers.dense(tf.reduce_sum(pairs, [1, 2]), 64, tf.nn.relu), 10), y)
    return loss, train(loss, adam()), [{**feeds[0], question: rows(16, 11)}]


def facts_by_rotation():
    """Relations turn complex numbers; wrong facts weigh by how likely they seem (RotatE)."""
    head, relation, tail, wrong = (tf.placeholder(tf.int32, shape) for shape in ([128], [128], [128], [128, 32]))
    things, turns = tf.get_variable("things", [5000, 64]), tf.get_variable("turns", [40, 32])
    a, b = tf.split(tf.nn.embedding_lookup(things, head), 2, -1)
    angle = tf.nn.embedding_lookup(turns, relation)
    x, y = a * tf.cos(angle) - b * tf.sin(angle), a * tf.sin(angle) + b * tf.cos(angle)

    def far(places, x, y):
        a, b = tf.split(tf.nn.embedding_lookup(things, places), 2, -1)
        return 6.0 - tf.reduce_sum(tf.sqrt((x - a) ** 2 + (y - b) ** 2 + 1e-9), -1)

    good, bad = far(tail, x, y), far(wrong, x[:, None], y[:, None])
    share = tf.stop_gradient(tf.nn.softmax(bad))
    loss = -tf.reduce_mean(tf.log_sigmoid(good)) - tf.reduce_mean(tf.reduce_sum(share * tf.log_sigmoid(-bad), 1))
    random = np.random.RandomState(0)
    values = lambda count, *shape: random.randint(count, size=shape)  # noqa: E731
    feeds = [{head: values(5000, 128), relation: values(40, 128), tail: values(5000, 128), wrong: values(5000, 128, 32)} for _ in range(4)]
    return loss, train(loss, adam()), feeds


def compressed_interactions():
    """Products of all pairs of fields, compressed, layer upon layer (xDeepFM)."""
    ids, _, y, feeds = fields()
    x = tf.nn.embedding_lookup(tf.get_variable("table", [10000, 16]), ids)
    h, kept = x, []
    for i, width in enumerate((32, 32)):
        pairs = tf.einsum("bhd,bmd->bhmd", h, x)
        h = tf.nn.relu(tf.einsum("bhmd,hmk->bkd", pairs, tf.get_variable(f"cin{i}", [h.shape[1], 20, width])))
        kept.append(tf.reduce_sum(h, -1))
    deep = layers.dense(layers.dense(layers.flatten(x), 64, tf.nn.relu), 32, tf.nn.relu)
    loss = click_loss(layers.dense(tf.concat([*kept, deep], 1), 1)[:, 0], y)
    return loss, train(loss, adam()), feeds


def neighbours_by_samples():
    """Two rings of drawn neighbours about each node of a batch (GraphSAGE)."""
    nodes, y = tf.placeholder(tf.int32, [64]), tf.placeholder(tf.int64, [64])
    random = np.random.RandomState(0)
    table, edges = tf.constant(normal(3000, 64)), tf.constant(random.randint(3000, size=(3000, 32)).astype("i"))

    def drawn(nodes, count):
        order = tf.random_shuffle(tf.range(32))[:count]
        return tf.reshape(tf.gather(tf.gather(edges, nodes), order, axis=1), [-1])

    rings = [nodes]
    for count in (10, 5):
        rings.append(drawn(rings[-1], count))
    hidden = [tf.nn.embedding_lookup(table, ring) for ring in rings]
    for i, width in enumerate((64, 64)):
        made = []
        own, around = layers.Dense(width), layers.Dense(width)
        for h, far, count in zip(hidden, hidden[1:], (10, 5)):
            mean = tf.reduce_mean(tf.reshape(far, [-1, count, far.shape[-1]]), 1)
            made.append(tf.nn.l2_normalize(tf.nn.relu(tf.concat([own(h), around(mean)], -1)), -1))
        hidden = made
    loss = cross_entropy(layers.dense(hidden[0], 7), y)
    return loss, train(loss, adam()), [{nodes: random.randint(3000, size=64), y: random.randint(7, size=64)} for _ in range(8)]


def words_in_a_ball():
    """Words of a tree in hyperbolic space; steps shrink near the ball's edge (Poincare embeddings)."""
    one, others = tf.placeholder(tf.int32, [64]), tf.placeholder(tf.int32, [64, 11])
    table = tf.get_variable("ball", [2000, 10], initializer=tf.random_uniform_initializer(-0.001, 0.001))
    a, b = tf.gather(table, one)[:, None], tf.gather(table, others)
    inside = (1 - tf.reduce_sum(a**2, -1)) * (1 - tf.reduce_sum(b**2, -1))
    far = tf.acosh(1 + 2 * tf.reduce_sum((a - b) ** 2, -1) / inside + 1e-6)
    loss = cross_entropy(-far, tf.zeros([64], tf.int64))
    slope = tf.gradients(loss, table)[0]
    rows, places = tf.unique(slope.indices)
    change = tf.math.unsorted_segment_sum(slope.values, places, tf.size(rows))
    old = tf.gather(table, rows)
    new = old - 0.3 * tf.square(1 - tf.reduce_sum(old**2, 1, keepdims=True)) / 4 * change
    train = tf.scatter_update(table, rows, tf.clip_by_norm(new, 1 - 1e-5, 1))
    random = np.random.RandomState(0)
    return loss, train, [{one: random.randint(2000, size=64), others: random.randint(2000, size=(64, 11))} for _ in range(50)]
