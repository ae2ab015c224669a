"""Training graphs of TensorFlow 1 of kinds that the other files do not have: tables, sets, codes, gates. As tf1_vision.py."""

import numpy as np
import tensorflow as tf
from tensorflow.python.ops import rnn, rnn_cell

from cases.tf1_other import rows
from cases.tf1_sequence import adam, attention, layer_norm, tokens
from cases.tf1_vision import classify, conv, cross_entropy, images, train

layers = tf.layers


def attention_unet():
    x, _, feeds = images(32, 3, 8)
    target = tf.placeholder(tf.int64, [None, 32, 32])
    a = conv(conv(x, 16), 16)
    b = conv(layers.max_pooling2d(a, 2, 2), 32)
    middle = conv(layers.max_pooling2d(b, 2, 2), 64)
    for skip, filters in ((b, 32), (a, 16)):
        middle = layers.conv2d_transpose(middle, filters, 2, 2, "same")
        mask = tf.nn.relu(layers.conv2d(skip, filters // 2, 1) + layers.conv2d(middle, filters // 2, 1))
        middle = conv(tf.concat([middle, skip * layers.conv2d(mask, 1, 1, activation=tf.sigmoid)], -1), filters)
    loss = cross_entropy(layers.conv2d(middle, 4, 1), target)
    return loss, train(loss, adam()), [{**feeds[0], target: np.random.RandomState(1).randint(4, size=(8, 32, 32))}]


def ghost_and_squeeze():
    x, y, feeds = images()
    x = conv(x, 16)
    for i, (filters, stride) in enumerate(((32, 1), (64, 2), (128, 2))):
        plain = conv(x, filters // 2, 1, stride)
        kernel = tf.get_variable(f"cheap{i}", [3, 3, filters // 2, 1])
        x = tf.concat([plain, tf.nn.relu(tf.nn.depthwise_conv2d(plain, kernel, [1, 1, 1, 1], "SAME"))], -1)
        shares = layers.dense(layers.dense(tf.reduce_mean(x, [1, 2]), filters // 4, tf.nn.relu), filters, tf.sigmoid)
        x *= shares[:, None, None]
    return classify(x, y, feeds)


def tabular_attention():
    """Steps that choose among columns by sparsemax (TabNet)."""
    x, y = tf.placeholder(tf.float32, [None, 54]), tf.placeholder(tf.int64, [None])
    columns = layers.batch_normalization(x, training=True)
    prior, total, h = tf.ones_like(x), 0.0, layers.dense(columns, 32, tf.nn.relu)
    for _ in range(3):
        logits = layers.dense(h, 54) * prior
        ordered, places = tf.nn.top_k(logits, 54).values, tf.range(1, 55, dtype=tf.float32)
        sums = tf.cumsum(ordered, 1)
        support = tf.cast(1 + places * ordered > sums, tf.float32)
        level = (tf.reduce_sum(ordered * support, 1, keepdims=True) - 1) / tf.reduce_sum(support, 1, keepdims=True)
        mask = tf.nn.relu(logits - level)
        prior *= 1.3 - mask
        value, gate = tf.split(layers.dense(mask * columns, 64), 2, 1)
        h = value * tf.sigmoid(gate)
        total += tf.nn.relu(h)
    loss = cross_entropy(layers.dense(total, 7), y)
    return loss, train(loss, adam()), [{x: rows(256, 54), y: np.arange(256) % 7}]


def mixture_density_recurrence():
    x, y = tf.placeholder(tf.float32, [16, 30, 8]), tf.placeholder(tf.float32, [16, 30, 1])
    h, _ = rnn.dynamic_rnn(rnn_cell.LSTMCell(64), x, dtype=tf.float32)
    shares, means, spreads = tf.split(layers.dense(h, 15), 3, -1)
    density = -0.5 * tf.square((y - means) * tf.exp(-spreads)) - spreads
    loss = -tf.reduce_mean(tf.reduce_logsumexp(tf.nn.log_softmax(shares) + density, -1))
    random = np.random.RandomState(0)
    return loss, train(loss, adam()), [{x: random.randn(16, 30, 8).astype("f"), y: random.randn(16, 30, 1).astype("f")}]


def code_book_autoencoder():
    """The nearest code stands for each place; gradients pass it by (VQ-VAE)."""
    x, _, feeds = images(32, 3, 16)
    h = layers.conv2d(conv(conv(x, 32, stride=2), 64, stride=2), 16, 1)
    codes, flat = tf.get_variable("codes", [128, 16]), tf.reshape(h, [-1, 16])
    distances = tf.reduce_sum(flat**2, 1, keepdims=True) - 2 * tf.matmul(flat, codes, transpose_b=True) + tf.reduce_sum(codes**2, 1)
    near = tf.reshape(tf.gather(codes, tf.argmin(distances, 1)), tf.shape(h))
    passed = h + tf.stop_gradient(near - h)
    made = layers.conv2d_transpose(layers.conv2d_transpose(passed, 32, 4, 2, "same", activation=tf.nn.relu), 3, 4, 2, "same")
    loss = tf.reduce_mean((made - x) ** 2) + tf.reduce_mean((near - tf.stop_gradient(h)) ** 2)
    loss += 0.25 * tf.reduce_mean((h - tf.stop_gradient(near)) ** 2)
    return loss, train(loss, adam()), feeds


def pixels_by_masked_convolutions():
    """Each pixel sees those before it alone (PixelCNN)."""
    x, _, feeds = images(28, 1, 16)

    def masked(h, filters, size, own, name):
        kernel = tf.get_variable(name, [size, size, h.shape[-1], filters])
        mask = np.ones((size, size, 1, 1), "f")
        mask[size // 2, size // 2 + own :], mask[size // 2 + 1 :] = 0, 0
        return tf.nn.conv2d(h, kernel * mask, [1, 1, 1, 1], "SAME")

    h = masked(x, 32, 7, 0, "first")
    for i in range(4):
        value, gate = tf.split(masked(tf.nn.relu(h), 64, 3, 1, f"inner{i}"), 2, -1)
        h += tf.tanh(value) * tf.sigmoid(gate)
    logits = layers.conv2d(tf.nn.relu(h), 1, 1)
    loss = tf.reduce_mean(tf.nn.sigmoid_cross_entropy_with_logits(labels=tf.sigmoid(x), logits=logits))
    return loss, train(loss, adam()), feeds


def random_feature_attention():
    """Attention by positive random features (Performer)."""
    ids, y = tf.placeholder(tf.int64, [8, 128]), tf.placeholder(tf.int64, [None])
    x = tf.nn.embedding_lookup(tf.get_variable("words", [2000, 64]), ids)
    turn = tf.constant(np.random.RandomState(1).randn(16, 32).astype("f"))
    for i in range(2):
        q, k, v = (tf.transpose(tf.reshape(each, [8, 128, 4, 16]), [0, 2, 1, 3]) for each in tf.split(layers.dense(layer_norm(x, f"n{i}"), 192), 3, -1))
        q, k = (tf.exp(tf.tensordot(each / 2, turn, 1) - tf.reduce_sum(each**2, -1, keepdims=True) / 8) + 1e-4 for each in (q, k))
        made = tf.matmul(q, tf.matmul(k, v, transpose_a=True)) / tf.reduce_sum(q * tf.reduce_sum(k, 2, keepdims=True), -1, keepdims=True)
        x += layers.dense(tf.reshape(tf.transpose(made, [0, 2, 1, 3]), [8, 128, 64]), 64)
    loss = cross_entropy(layers.dense(tf.reduce_mean(x, 1), 10), y)
    return loss, train(loss, adam()), [{ids: tokens(128, 8, 2000), y: np.arange(8)}]


def graph_isomorphism():
    x, edges, y = tf.placeholder(tf.float32, [32, 40, 16]), tf.placeholder(tf.float32, [32, 40, 40]), tf.placeholder(tf.int64, [None])
    h, kept = x, []
    for i in range(3):
        own = tf.get_variable(f"own{i}", [], initializer=tf.zeros_initializer())
        h = layers.dense(layers.dense((1 + own) * h + tf.matmul(edges, h), 64, tf.nn.relu), 64)
        h = tf.nn.relu(layers.batch_normalization(h, training=True))
        kept.append(tf.reduce_sum(h, 1))
    loss = cross_entropy(layers.dense(tf.concat(kept, -1), 10), y)
    random = np.random.RandomState(0)
    feed = {x: random.randn(32, 40, 16).astype("f"), edges: (random.rand(32, 40, 40) < 0.1).astype("f"), y: np.arange(32) % 10}
    return loss, train(loss, adam()), [feed]


def conditioned_by_text():
    """Words shift and scale an image's channels (FiLM)."""
    x, y, feeds = images()
    ids = tf.placeholder(tf.int64, [16, 12])
    _, state = rnn.dynamic_rnn(rnn_cell.GRUCell(64), tf.nn.embedding_lookup(tf.get_variable("words", [100, 32]), ids), dtype=tf.float32)
    h = conv(x, 32, stride=2)
    for _ in range(2):
        scale, shift = tf.split(layers.dense(state, 64)[:, None, None], 2, -1)
        h += tf.nn.relu(conv(h, 32, activation=None) * (1 + scale) + shift)
    return classify(h, y, [{**feeds[0], ids: tokens(12, 16, 100)}])


def weights_made_by_a_net():
    context, x, y = tf.placeholder(tf.float32, [8, 16]), tf.placeholder(tf.float32, [8, 64, 32]), tf.placeholder(tf.float32, [8, 64, 8])
    weights = layers.dense(layers.dense(context, 64, tf.nn.relu), 2560)
    a, b = tf.reshape(weights[:, :2048], [8, 32, 64]), tf.reshape(weights[:, 2048:], [8, 64, 8])
    loss = tf.reduce_mean((tf.matmul(tf.nn.relu(tf.matmul(x, a)), b) - y) ** 2)
    random = np.random.RandomState(0)
    feed = {context: random.randn(8, 16).astype("f"), x: random.randn(8, 64, 32).astype("f"), y: random.randn(8, 64, 8).astype("f")}
    return loss, train(loss, adam()), [feed]


def series_by_bases():
    """Blocks that explain a series and hand on the rest (N-BEATS)."""
    x, y = tf.placeholder(tf.float32, [None, 96]), tf.placeholder(tf.float32, [None, 24])
    rest, total = x, 0.0
    for _ in range(4):
        h = rest
        for _ in range(3):
            h = layers.dense(h, 128, tf.nn.relu)
        rest, total = rest - layers.dense(h, 96), total + layers.dense(h, 24)
    loss = tf.reduce_mean(200 * tf.abs(y - total) / (tf.abs(y) + tf.abs(total) + 1.0))
    return loss, train(loss, adam()), [{x: rows(128, 96), y: rows(128, 24, 1)}]


def distributional_policy():
    """The return's distribution over 51 values, projected onto them (C51)."""
    x, after, action, reward = tf.placeholder(tf.float32, [None, 16]), tf.placeholder(tf.float32, [None, 16]), tf.placeholder(tf.int32, [None]), tf.placeholder(tf.float32, [None])  # fmt: skip
    values = tf.linspace(-10.0, 10.0, 51)
    net = tf.make_template("net", lambda h: tf.reshape(layers.dense(layers.dense(h, 128, tf.nn.relu), 4 * 51), [-1, 4, 51]))
    next_ = tf.nn.softmax(net(after))
    best = tf.argmax(tf.reduce_sum(next_ * values, -1), 1, output_type=tf.int32)
    shares = tf.reduce_sum(next_ * tf.one_hot(best, 4)[..., None], 1)
    target = tf.clip_by_value(reward[:, None] + 0.99 * values, -10.0, 10.0)
    weights = tf.clip_by_value(1 - tf.abs(target[:, None] - values[None, :, None]) / 0.4, 0.0, 1.0)
    wanted = tf.stop_gradient(tf.reduce_sum(weights * shares[:, None], -1))
    chosen = tf.reduce_sum(net(x) * tf.one_hot(action, 4)[..., None], 1)
    loss = -tf.reduce_mean(tf.reduce_sum(wanted * tf.nn.log_softmax(chosen), 1))
    return loss, train(loss, adam()), [{x: rows(32, 16), after: rows(32, 16, 1), action: np.arange(32) % 4, reward: rows(32, 1, 2)[:, 0]}]


def faces_with_angular_margin():
    """Classes are directions, whose angle to the own one is widened (ArcFace)."""
    x, y, feeds = images(32, 3, 16)
    h = conv(conv(conv(x, 32, stride=2), 64, stride=2), 64)
    h = tf.nn.l2_normalize(layers.dense(layers.flatten(h), 64), 1)
    centres = tf.nn.l2_normalize(tf.get_variable("centres", [64, 100]), 0)
    cosines = tf.clip_by_value(tf.matmul(h, centres), -1 + 1e-5, 1 - 1e-5)
    own = tf.one_hot(y, 100)
    loss = tf.reduce_mean(tf.nn.softmax_cross_entropy_with_logits_v2(labels=own, logits=16 * tf.where(own > 0, tf.cos(tf.acos(cosines) + 0.3), cosines)))
    return loss, train(loss), feeds


def set_transformer():
    x, y = tf.placeholder(tf.float32, [16, 200, 3]), tf.placeholder(tf.int64, [None])
    h = layers.dense(x, 64)
    for i in range(2):
        points = tf.tile(tf.get_variable(f"points{i}", [1, 16, 64]), [16, 1, 1])
        few = layer_norm(points + attention(points, h, 4), f"few{i}")
        h = layer_norm(h + attention(h, few, 4), f"all{i}")
    loss = cross_entropy(layers.dense(tf.reduce_max(h, 1), 10), y)
    return loss, train(loss, adam()), [{x: np.random.RandomState(0).randn(16, 200, 3).astype("f"), y: np.arange(16) % 10}]
