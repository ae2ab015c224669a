"""Training graphs of TensorFlow 1 around loops: scans, decoders that feed themselves, loops in loops, samplers. As tf1_vision.py."""

import numpy as np
import tensorflow as tf
from tensorflow.python.ops import rnn, rnn_cell

from cases.tf1_further import normal
from cases.tf1_other import rows
from cases.tf1_sequence import adam, classified, embedded, text, tokens
from cases.tf1_vision import cross_entropy, train

layers = tf.layers


def memory_with_links():
    """Places are freed, found by use and linked in the order of writing (differentiable neural computer)."""
    x, y = tf.placeholder(tf.float32, [8, 10, 8]), tf.placeholder(tf.float32, [8, 10, 8])
    memory, used, wrote, read = tf.zeros([8, 16, 12]) + 0.01, tf.zeros([8, 16]), tf.zeros([8, 16]), tf.zeros([8, 12])
    shares, links, before = tf.zeros([8, 16]), tf.zeros([8, 16, 16]), tf.zeros([8, 16])
    cell, loss = rnn_cell.BasicLSTMCell(48), 0.0
    state, control, out = cell.zero_state(8, tf.float32), layers.Dense(12 * 4 + 8), layers.Dense(8)
    for step in range(10):
        h, state = cell(tf.concat([x[:, step], read], 1), state)
        write_key, erase, add, read_key, gates = tf.split(control(h), [12, 12, 12, 12, 8], 1)
        gate = tf.sigmoid(gates[:, :3])
        used = (used + wrote - used * wrote) * (1 - gate[:, :1] * shares)
        least, order = tf.nn.top_k(-used, 16)
        free = (1 + least) * tf.cumprod(-least, 1, exclusive=True)
        found = tf.reduce_sum(free[..., None] * tf.one_hot(order, 16), 1)
        near = lambda key: tf.nn.softmax(tf.einsum("bnd,bd->bn", tf.nn.l2_normalize(memory, 2), key) * 2)  # noqa: E731, B023
        wrote = gate[:, 1:2] * (gate[:, 2:3] * found + (1 - gate[:, 2:3]) * near(write_key))
        memory = memory * (1 - wrote[..., None] * tf.sigmoid(erase)[:, None]) + wrote[..., None] * tf.tanh(add)[:, None]
        links = (1 - wrote[:, :, None] - wrote[:, None]) * links + wrote[:, :, None] * before[:, None]
        links = tf.linalg.set_diag(links, tf.zeros([8, 16]))
        before = (1 - tf.reduce_sum(wrote, 1, keepdims=True)) * before + wrote
        mode = tf.nn.softmax(gates[:, 3:6])
        ways = tf.einsum("bij,bj->bi", links, shares), near(read_key), tf.einsum("bij,bi->bj", links, shares)
        shares = tf.add_n([mode[:, i : i + 1] * way for i, way in enumerate(ways)])
        read = tf.einsum("bn,bnd->bd", shares, memory)
        loss += tf.reduce_mean(tf.square(out(tf.concat([h, read], 1)) - y[:, step]))
    return loss, train(loss, adam()), [{x: normal(8, 10, 8), y: normal(8, 10, 8, seed=1)}]


def hidden_states_by_scan():
    """All ways through hidden states, forward in a scan (a hidden Markov model with normal sounds)."""
    x = tf.placeholder(tf.float32, [60, 32, 4])
    moves = tf.nn.log_softmax(tf.get_variable("moves", [12, 12]))
    place, width = tf.get_variable("place", [12, 4]), tf.nn.softplus(tf.get_variable("width", [12, 4])) + 0.3
    z = (x[:, :, None] - place) / width
    seen = -0.5 * tf.reduce_sum(z**2, -1) - tf.reduce_sum(tf.log(width), -1)
    start = tf.nn.log_softmax(tf.get_variable("start", [12])) + seen[0]
    ways = tf.scan(lambda a, b: tf.reduce_logsumexp(a[:, :, None] + moves, 1) + b, seen[1:], start)
    loss = -tf.reduce_mean(tf.reduce_logsumexp(ways[-1], 1)) / 60
    return loss, train(loss, adam(0.01)), [{x: normal(60, 32, 4)}]


def particles_drawn_anew():
    """Particles move, are weighed by what is seen, and drawn anew by their weights in each turn of a loop."""
    seen = tf.placeholder(tf.float32, [24, 16])
    move, noise = layers.Dense(2), tf.nn.softplus(tf.get_variable("noise", [], initializer=tf.zeros_initializer())) + 0.1
    move.build([None, 2])

    def turn(t, states, total):
        drawn = tf.tanh(move(states)) + 0.3 * tf.random_normal([16, 64, 2], seed=3)
        far = (seen[t][:, None] - drawn[..., 0]) / noise
        weights = -0.5 * far**2 - tf.log(noise)
        total += tf.reduce_logsumexp(weights, 1) - np.log(64).astype("f")
        which = tf.random.categorical(tf.stop_gradient(weights), 64, seed=4)
        return t + 1, tf.gather(drawn, which, batch_dims=1), total

    total = tf.while_loop(lambda t, *_: t < 24, turn, (0, tf.zeros([16, 64, 2]), tf.zeros([16])))[2]
    loss = -tf.reduce_mean(total) / 24
    return loss, train(loss, adam()), [{seen: normal(24, 16)}]


def steps_as_long_as_needed():
    """An equation is followed by steps whose length follows their error; how many it takes only the run tells."""
    x, y = tf.placeholder(tf.float32, [64, 6]), tf.placeholder(tf.float32, [64, 6])
    a, b = tf.get_variable("a", [6, 48]), tf.get_variable("b", [48, 6])
    speed = lambda z: tf.matmul(tf.tanh(tf.matmul(z, a)), b)  # noqa: E731

    def turn(t, step, z):
        step = tf.minimum(step, 1.0 - t)
        k1 = speed(z)
        k2 = speed(z + step * k1)
        error = tf.sqrt(tf.reduce_mean(tf.square(step * (k2 - k1) / 2)))
        good = error < 0.02
        after = tf.where(good, z + step * (k1 + k2) / 2, z)
        scale = tf.stop_gradient(tf.clip_by_value(0.9 * tf.sqrt(0.02 / (error + 1e-6)), 0.3, 2.0))
        return tf.where(good, t + step, t), step * scale, after

    z = tf.while_loop(lambda t, *_: t < 1.0 - 1e-5, turn, (0.0, 0.3, x), maximum_iterations=60)[2]
    loss = tf.reduce_mean(tf.square(z - y))
    return loss, train(loss, adam()), [{x: rows(64, 6), y: rows(64, 6, 1)}]


def turns_within_turns():
    """Rows of a grid in an outer loop, cells in an inner one: each sees its left and upper neighbour (2-D recurrence)."""
    x, y = tf.placeholder(tf.float32, [8, 8, 16, 12]), tf.placeholder(tf.int64, [16])
    cell, out = layers.Dense(24, tf.tanh), layers.Dense(10)
    cell.build([None, 60])

    def row(i, above, total):
        def place(j, left, made):
            h = cell(tf.concat([x[i, j], left, above.read(j)], 1))
            return j + 1, h, made.write(j, h)

        start = (0, tf.zeros([16, 24]), tf.TensorArray(tf.float32, 8, element_shape=[16, 24], clear_after_read=False))
        made = tf.while_loop(lambda j, *_: j < 8, place, start)
        return i + 1, made[2], total + made[1]

    first = tf.TensorArray(tf.float32, 8, element_shape=[16, 24], clear_after_read=False).unstack(tf.zeros([8, 16, 24]))
    total = tf.while_loop(lambda i, *_: i < 8, row, (0, first, tf.zeros([16, 24])))[2]
    loss = cross_entropy(out(total / 8), y)
    return loss, train(loss, adam()), [{x: normal(8, 8, 16, 12), y: np.arange(16) % 10}]


def captions_by_own_rewards():
    """Captions are drawn word by word in a loop, and judged beside the best words' (self-critical)."""
    seen = tf.placeholder(tf.float32, [16, 64])
    wanted = tf.placeholder(tf.int32, [16, 10])
    cell, out, table = rnn_cell.GRUCell(64), layers.Dense(300), tf.get_variable("words", [300, 32])
    start = layers.dense(seen, 64, tf.tanh)
    out.build([None, 64])

    def said(choose):
        def turn(t, h, word, words, logs):
            made, h = cell(tf.nn.embedding_lookup(table, word), h)
            share = tf.nn.log_softmax(out(made))
            word = choose(share)
            log = tf.reduce_sum(share * tf.one_hot(word, 300), 1)
            return t + 1, h, word, words.write(t, word), logs.write(t, log)

        arrays = tf.TensorArray(tf.int32, 10), tf.TensorArray(tf.float32, 10)
        made = tf.while_loop(lambda t, *_: t < 10, turn, (0, start, tf.zeros([16], tf.int32), *arrays))
        return tf.transpose(made[3].stack()), tf.transpose(made[4].stack())

    drawn, logs = said(lambda share: tf.cast(tf.random.categorical(share, 1, seed=5)[:, 0], tf.int32))
    best, _ = said(lambda share: tf.argmax(share, 1, output_type=tf.int32))
    reward = lambda words: tf.reduce_mean(tf.cast(tf.equal(words % 7, wanted % 7), tf.float32), 1)  # noqa: E731
    gain = tf.stop_gradient(reward(drawn) - reward(best))
    loss = -tf.reduce_mean(gain[:, None] * logs)
    return loss, train(loss, adam()), [{seen: rows(16, 64), wanted: tokens(10, 16, 300)}]


def decoder_fed_by_chance():
    """A decoder by `raw_rnn` takes the true word or its own best one, by a draw (scheduled sampling)."""
    ids, y = tf.placeholder(tf.int32, [16, 20]), tf.placeholder(tf.int32, [16, 13])
    _, state = rnn.dynamic_rnn(rnn_cell.GRUCell(64), embedded(ids), dtype=tf.float32, scope="seen")
    cell, out, table = rnn_cell.GRUCell(64), layers.Dense(400), tf.get_variable("said", [400, 64])
    out.build([None, 64])
    truth = tf.TensorArray(tf.int32, 13, clear_after_read=False).unstack(tf.transpose(y))

    def turn(time, output, before, loop):
        if output is None:
            return tf.zeros([16], tf.bool), tf.nn.embedding_lookup(table, truth.read(0)), state, tf.zeros([400]), None
        own = tf.random_uniform([16], seed=4) < 0.25
        ended = tf.fill([16], time >= 12)
        word = tf.where(own, tf.argmax(out(before), 1, output_type=tf.int32), truth.read(tf.minimum(time, 12)))
        return ended, tf.nn.embedding_lookup(table, word), before, out(output), None

    logits, _, _ = rnn.raw_rnn(cell, turn)
    loss = cross_entropy(logits.stack(), tf.transpose(y[:, 1:]))
    return loss, train(loss, adam()), [{ids: tokens(20), y: tokens(13, words=400, seed=1)}]


class _Kept(rnn_cell.RNNCell):
    """A cell some of whose state is kept as it was, by a draw (zoneout)."""

    def __init__(self, cell):
        super().__init__()
        self.cell = cell

    state_size = property(lambda self: self.cell.state_size)
    output_size = property(lambda self: self.cell.output_size)

    def call(self, inputs, state):
        output, after = self.cell(inputs, state)
        parts = []
        for i, (a, b) in enumerate(zip(state, after)):
            kept = tf.cast(tf.random_uniform(tf.shape(a), seed=i) < 0.1, tf.float32)
            parts.append(kept * a + (1 - kept) * b)
        return output, rnn_cell.LSTMStateTuple(*parts)


def zones_kept():
    """Wrapped cells: residuals, parts of the state that stay by chance, and lengths."""
    ids, y, feed = text(30)
    lengths = tf.placeholder(tf.int32, [None])
    cell = rnn_cell.MultiRNNCell([_Kept(rnn_cell.LSTMCell(64)), rnn_cell.ResidualWrapper(_Kept(rnn_cell.LSTMCell(64)))])
    outputs, _ = rnn.dynamic_rnn(cell, embedded(ids), lengths, dtype=tf.float32)
    mask = tf.sequence_mask(lengths, 30, tf.float32)
    mean = tf.reduce_sum(outputs * mask[..., None], 1) / tf.reduce_sum(mask, 1, keepdims=True)
    return classified(mean, y, {**feed, lengths: np.arange(16) + 14})


def states_each_alone():
    """Gates by convolutions, states that see themselves alone, in scans both ways (SRU, QRNN)."""
    ids, y, feed = text(40)
    h = embedded(ids)
    for i in range(2):
        z, f, o = tf.split(layers.conv1d(tf.pad(h, [[0, 0], [1, 0], [0, 0]]), 192, 2, name=f"gates{i}"), 3, 2)
        parts = tf.transpose(tf.tanh(z), [1, 0, 2]), tf.transpose(tf.sigmoid(f), [1, 0, 2])
        c = tf.scan(lambda a, each: each[1] * a + (1 - each[1]) * each[0], parts, tf.zeros([16, 64]), reverse=bool(i))
        h = tf.sigmoid(o) * tf.transpose(c, [1, 0, 2]) + (1 - tf.sigmoid(o)) * h
    last = tf.foldl(lambda a, b: tf.maximum(0.9 * a, b), tf.transpose(h, [1, 0, 2]))
    return classified(last, y, feed)


def rows_by_map():
    """Each example goes its own way in `map_fn`: its best words by attention, its own number of them."""
    ids, y, feed = text(32)
    count = tf.placeholder(tf.int32, [16])
    h, score = layers.dense(embedded(ids), 64, tf.nn.relu), layers.Dense(1)
    score.build([None, 64])

    def one(parts):
        each, many = parts
        share = score(each)[:, 0]
        best, place = tf.nn.top_k(share, 16)
        mask = tf.cast(tf.range(16) < many, tf.float32)
        weights = tf.nn.softmax(best + (mask - 1) * 1e4)
        return tf.reduce_sum(tf.gather(each, place) * weights[:, None], 0)

    made = tf.map_fn(one, (h, count), dtype=tf.float32)
    return classified(made, y, {**feed, count: np.arange(16) % 12 + 3})


def samples_by_momentum():
    """Chains take ten leaps and are accepted by a draw; a net's shape is fitted to where they come (Hamilton)."""
    x = tf.placeholder(tf.float32, [128, 8])
    a, b = tf.get_variable("a", [8, 48]), tf.get_variable("b", [48, 1])

    def energy(z):
        return tf.reduce_sum(tf.matmul(tf.tanh(tf.matmul(z, a)), b), 1) + 0.5 * tf.reduce_sum(z**2, 1)

    def slope(z):
        return tf.matmul((1 - tf.tanh(tf.matmul(z, a)) ** 2) * b[:, 0], a, transpose_b=True) + z

    def leap(i, z, p):
        p -= 0.05 * slope(z)
        z += 0.1 * p
        return i + 1, z, p - 0.05 * slope(z)

    chains = tf.get_variable("chains", [128, 8], initializer=tf.random_normal_initializer(seed=2), trainable=False)
    old = tf.identity(chains)
    push = tf.random_normal([128, 8], seed=3)
    _, z, p = tf.while_loop(lambda i, *_: i < 10, leap, (0, old, push), back_prop=False)
    change = energy(old) + 0.5 * tf.reduce_sum(push**2, 1) - energy(z) - 0.5 * tf.reduce_sum(p**2, 1)
    taken = tf.log(tf.random_uniform([128], 1e-6, 1.0, seed=4)) < change
    after = tf.stop_gradient(tf.where(tf.tile(taken[:, None], [1, 8]), z, old))
    loss = tf.reduce_mean(energy(x)) - tf.reduce_mean(energy(after))
    with tf.control_dependencies([train(loss, adam())]):
        return loss, tf.assign(chains, after), [{x: rows(128, 8)}]
