"""Training graphs of TensorFlow 1 beyond the usual layers: flows, filters, spectra, factors, trees, linear attention."""

import numpy as np
import tensorflow as tf
from tensorflow.python.ops import rnn, rnn_cell

from cases.tf1_other import rows
from cases.tf1_sequence import adam, classified, embedded, layer_norm, text
from cases.tf1_sparse import click_loss, fields
from cases.tf1_vision import conv, images, train

layers = tf.layers


def glow_of_images():
    x, _, feeds = images(16, 4, 12)
    h, volume = tf.space_to_depth(x, 2), 0.0
    for i in range(3):
        scale, bias = tf.get_variable(f"s{i}", [16], initializer=tf.zeros_initializer()), tf.get_variable(f"b{i}", [16])
        mixed = tf.get_variable(f"w{i}", [16, 16], initializer=tf.orthogonal_initializer(seed=i))
        h = tf.nn.conv2d((h + bias) * tf.exp(scale), mixed[None, None], [1, 1, 1, 1], "SAME")
        volume += 64 * (tf.reduce_sum(scale) + tf.log(tf.abs(tf.matrix_determinant(mixed))))
        a, b = tf.split(h, 2, axis=3)
        inner = layers.conv2d(conv(conv(a, 48, norm=False), 48, 1, norm=False), 16, 3, 1, "same", kernel_initializer=tf.zeros_initializer())
        gate = tf.sigmoid(inner[..., 0::2] + 2)
        h, volume = tf.concat([a, (b + inner[..., 1::2]) * gate], 3), volume + tf.reduce_sum(tf.log(gate), [1, 2, 3])
    loss = tf.reduce_mean(0.5 * tf.reduce_sum(tf.square(h), [1, 2, 3]) - volume) / 1024
    return loss, train(loss, adam()), feeds


def kalman_filter():
    seen = tf.placeholder(tf.float32, [8, 25, 3])
    turn, shown = tf.get_variable("turn", initializer=0.9 * tf.eye(5)), tf.get_variable("shown", [3, 5])
    noise, error = (tf.matrix_diag(tf.exp(tf.get_variable(name, [size]))) for name, size in (("noise", 5), ("error", 3)))
    state, spread, loss = tf.zeros([8, 5, 1]), tf.eye(5, batch_shape=[8]), 0.0
    every = lambda matrix: tf.tile(matrix[None], [8, 1, 1])  # noqa: E731
    turn, shown = every(turn), every(shown)
    for step in range(25):
        state, spread = turn @ state, turn @ tf.matmul(spread, turn, transpose_b=True) + noise
        miss, inner = seen[:, step, :, None] - shown @ state, shown @ tf.matmul(spread, shown, transpose_b=True) + error
        turned = tf.matrix_inverse(inner)
        loss += tf.reduce_mean(tf.linalg.logdet(inner)) + tf.reduce_mean(tf.matmul(miss, turned @ miss, transpose_a=True))
        gain = tf.matmul(spread, shown, transpose_b=True) @ turned
        state, spread = state + gain @ miss, spread - gain @ shown @ spread
    loss /= 50
    return loss, train(loss, adam()), [{seen: rows(8, 75).reshape(8, 25, 3)}]


def fourier_mixing():
    ids, y, feed = text(50)
    h = embedded(ids, 96)
    for i in range(3):
        mixed = tf.real(tf.transpose(tf.fft(tf.transpose(tf.fft(tf.cast(h, tf.complex64)), [0, 2, 1])), [0, 2, 1]))
        h = layer_norm(h + mixed / 70, f"norm{i}")
        h += layers.dense(layers.dense(h, 200, tf.nn.relu), 96)
    return classified(tf.reduce_mean(h, 1), y, feed)


def spectral_losses_of_waves():
    x = tf.placeholder(tf.float32, [6, 3000])
    h = x[..., None]
    for width, dilation in ((16, 1), (16, 3), (16, 9)):
        h = layers.conv1d(h, width, 5, padding="same", dilation_rate=dilation, activation=tf.nn.elu)
    made, loss = layers.conv1d(h, 1, 1)[..., 0], 0.0
    for frame, step in ((512, 128), (200, 50)):
        size = lambda wave: tf.abs(tf.signal.stft(wave, frame, step))  # noqa: E731, B023
        a, b = size(made), size(x)
        loss += tf.reduce_mean(tf.abs(a - b)) + tf.reduce_mean(tf.square(tf.log(a + 1e-2) - tf.log(b + 1e-2)))
    return loss, train(loss, adam()), [{x: rows(6, 3000)}]


def field_aware_factors():
    ids, unused, y, feeds = fields(12, 200)
    ids_of_fields = ids + 10000 * np.arange(12)
    pairs = tf.nn.embedding_lookup(tf.get_variable("pairs", [120000, 12 * 4]), ids_of_fields)
    pairs = tf.reshape(pairs, [-1, 12, 12, 4])
    both = tf.reduce_sum(pairs * tf.transpose(pairs, [0, 2, 1, 3]), 3)
    upper = tf.matrix_band_part(both, 0, -1) - tf.matrix_band_part(both, 0, 0)
    alone = tf.nn.embedding_lookup(tf.get_variable("alone", [120000, 1]), ids_of_fields)
    loss = click_loss(tf.reduce_sum(upper, [1, 2]) + tf.reduce_sum(alone, [1, 2]), y)
    return loss, train(loss, tf.train.AdagradOptimizer(0.05)), [{k: v for k, v in feed.items() if k is not unused} for feed in feeds]


def linear_attention():
    ids, y, feed = text(75)
    h = embedded(ids, 72)
    for i in range(2):
        q, k, v = (tf.transpose(tf.reshape(layers.dense(h, 72), [-1, 75, 6, 12]), [0, 2, 1, 3]) for _ in range(3))
        drawn = tf.constant(rows(12, 30, i))
        features = lambda x: tf.exp(tf.einsum("bhtd,dm->bhtm", x, drawn) / 4 - tf.reduce_sum(tf.square(x), -1, keepdims=True) / 8)  # noqa: E731, B023
        q, k = features(q), features(k)
        sums = tf.einsum("bhtm,bhtd->bhmd", k, v)
        shares = tf.einsum("bhtm,bhm->bht", q, tf.reduce_sum(k, 2))
        mixed = tf.einsum("bhtm,bhmd->bhtd", q, sums) / (shares[..., None] + 1e-3)
        h += layers.dense(tf.reshape(tf.transpose(mixed, [0, 2, 1, 3]), [-1, 75, 72]), 72)
        h += layers.dense(layers.dense(h, 150, tf.nn.relu), 72)
    return classified(tf.reduce_mean(h, 1), y, feed)


def oblivious_trees():
    x, y = tf.placeholder(tf.float32, [None, 37]), tf.placeholder(tf.float32, [None, 1])
    h, count, depth = x, 50, 4
    for i in range(2):
        width = h.shape[1].value
        chosen = tf.nn.softmax(tf.get_variable(f"choice{i}", [width, count * depth]), 0)
        split = tf.sigmoid((tf.reshape(h @ chosen, [-1, count, depth]) - tf.get_variable(f"border{i}", [count, depth])) * 2)
        reached = tf.ones_like(split[..., :1])
        for level in range(depth):
            part = split[..., level : level + 1]
            reached = tf.concat([reached * part, reached * (1 - part)], -1)
        h = tf.concat([h, tf.einsum("btl,tl->bt", reached, tf.get_variable(f"leaves{i}", [count, 2**depth]))], 1)
    loss = tf.reduce_mean(tf.square(tf.reduce_mean(h[:, 37:], 1, keepdims=True) - y))
    return loss, train(loss, adam()), [{x: rows(333, 37), y: rows(333, 1, 1)}]


def temporal_fusion():
    x, known, y = (tf.placeholder(tf.float32, [None, length, width]) for length, width in ((35, 7), (9, 3), (9, 1)))

    def gated(h, width=40, by=None):
        inner = layers.dense(tf.nn.elu(layers.dense(h, width) + (0 if by is None else layers.dense(by, width))), width)
        a, b = tf.split(layers.dense(inner, 2 * width), 2, axis=-1)
        h = (h if h.shape[-1].value == width else layers.dense(h, width)) + a * tf.sigmoid(b)
        mean, spread = tf.nn.moments(h, [-1], keepdims=True)
        return (h - mean) * tf.rsqrt(spread + 1e-3)

    def selected(h):
        parts = tf.stack([gated(part) for part in tf.split(h, h.shape[-1].value, axis=-1)], -1)
        return tf.reduce_sum(parts * tf.nn.softmax(gated(h, h.shape[-1].value))[..., None, :], -1)

    past, state = rnn.dynamic_rnn(rnn_cell.LSTMCell(40), selected(x), dtype=tf.float32, scope="past")
    future, _ = rnn.dynamic_rnn(rnn_cell.LSTMCell(40), selected(known), initial_state=state, scope="future")
    h = gated(tf.concat([past, future], 1))
    q, k, v = layers.dense(h[:, 35:], 40), layers.dense(h, 40), layers.dense(h, 10)
    heads = [tf.nn.softmax(tf.matmul(a, b, transpose_b=True) / 3.2) @ v for a, b in zip(tf.split(q, 4, 2), tf.split(k, 4, 2))]
    made = layers.dense(gated(layers.dense(tf.add_n(heads) / 4, 40)) + h[:, 35:], 3)
    miss = y - made
    shares = tf.constant([0.1, 0.5, 0.9])
    loss = tf.reduce_mean(tf.reduce_sum(tf.maximum(shares * miss, (shares - 1) * miss), -1))
    shaped = lambda length, width, seed: rows(32, length * width, seed).reshape(32, length, width)  # noqa: E731
    return loss, train(loss, adam()), [{x: shaped(35, 7, 0), known: shaped(9, 3, 1), y: shaped(9, 1, 2)}]


def pixels_to_pixels():
    x, _, feeds = images(48, 3, 6)
    wanted = tf.placeholder(tf.float32, [None, 48, 48, 3])
    with tf.variable_scope("maker"):
        kept, h = [], x
        for filters in (16, 32, 64):
            h = tf.nn.leaky_relu(layers.batch_normalization(layers.conv2d(h, filters, 4, 2, "same"), training=True))
            kept.append(h)
        for filters, beside in ((32, kept[1]), (16, kept[0])):
            h = tf.concat([tf.nn.relu(layers.batch_normalization(layers.conv2d_transpose(h, filters, 4, 2, "same"), training=True)), beside], 3)
        made = tf.tanh(layers.conv2d_transpose(h, 3, 4, 2, "same"))

    def judge(y):
        with tf.variable_scope("judge", reuse=tf.AUTO_REUSE):
            h = tf.nn.leaky_relu(layers.conv2d(tf.concat([x, y], 3), 24, 4, 2, "same", name="a"))
            return layers.conv2d(tf.nn.leaky_relu(layers.conv2d(h, 48, 4, 1, "valid", name="b")), 1, 4, 1, "valid", name="c")

    entropy = lambda logits, one: tf.reduce_mean(  # noqa: E731
        tf.nn.sigmoid_cross_entropy_with_logits(labels=tf.fill(tf.shape(logits), one), logits=logits)
    )
    true, fooled = judge(wanted), judge(made)
    loss = entropy(true, 1.0) + entropy(fooled, 0.0)
    far = entropy(fooled, 1.0) + 100 * tf.reduce_mean(tf.abs(made - wanted))
    of = lambda scope: tf.get_collection(tf.GraphKeys.TRAINABLE_VARIABLES, scope)  # noqa: E731
    steps = tf.group(adam(2e-4).minimize(loss, var_list=of("judge")), adam(2e-4).minimize(far, var_list=of("maker")))
    return loss, steps, [{x: feeds[0][x], wanted: np.tanh(rows(6, 48 * 48 * 3)).reshape(6, 48, 48, 3)}]


def retina_focal_loss():
    x, _, feeds = images(75, 3, 6)
    found = tf.placeholder(tf.float32, [None, 134 * 3, 8])
    boxes = tf.placeholder(tf.float32, [None, 134 * 3, 4])
    h, levels = conv(conv(x, 16, 3, 2), 32, 3, 2), []
    for filters in (48, 64):
        h = conv(h, filters, 3, 2)
        levels.append(h)
    top = conv(levels[1], 48, 1, norm=False, activation=None)
    side = tf.image.resize_nearest_neighbor(top, [10, 10]) + conv(levels[0], 48, 1, norm=False, activation=None)
    classes, places = [], []
    for level in (side, top, layers.conv2d(top, 48, 3, 2, "same")):
        with tf.variable_scope("heads", reuse=tf.AUTO_REUSE):
            for kept, width, name in ((classes, 8, "c"), (places, 4, "p")):
                inner = layers.conv2d(level, 48, 3, 1, "same", activation=tf.nn.relu, name=name + "1")
                out = layers.conv2d(inner, 3 * width, 3, 1, "same", name=name + "2")
                kept.append(tf.reshape(out, [-1, out.shape[1].value * out.shape[2].value * 3, width]))
    logits, places = tf.concat(classes, 1), tf.concat(places, 1)
    share = tf.sigmoid(logits)
    right = found * share + (1 - found) * (1 - share)
    weight = (0.25 * found + 0.75 * (1 - found)) * tf.pow(1 - right, 2)
    loss = tf.reduce_sum(weight * tf.nn.sigmoid_cross_entropy_with_logits(labels=found, logits=logits))
    there, miss = tf.reduce_max(found, -1, keepdims=True), tf.abs(places - boxes)
    loss += tf.reduce_sum(there * tf.where(miss < 0.1, 5 * miss * miss, miss - 0.05))
    loss /= 1 + tf.reduce_sum(there)
    random = np.random.RandomState(1)
    count = 134 * 3
    return loss, train(loss), [{x: feeds[0][x], found: (random.rand(6, count, 8) > 0.995).astype("f"), boxes: random.randn(6, count, 4).astype("f")}]
