"""Training graphs of TensorFlow 1: memories, sorting, transport, point sets, fields, equations, halting. As tf1_vision.py."""

import numpy as np
import tensorflow as tf
from tensorflow.python.ops import rnn, rnn_cell

from cases.tf1_other import rows
from cases.tf1_sequence import adam, attention, embedded, layer_norm, tokens
from cases.tf1_sparse import click_loss
from cases.tf1_vision import classify, conv, cross_entropy, images, train

layers = tf.layers


def normal(*shape, seed=0):
    return np.random.RandomState(seed).randn(*shape).astype("f")


def memory_by_addresses():
    """A controller that finds places by content, shifts them, erases and adds (Neural Turing Machine)."""
    x, y = tf.placeholder(tf.float32, [16, 12, 8]), tf.placeholder(tf.float32, [16, 12, 8])
    memory, shares, read = tf.zeros([16, 32, 16]) + 0.01, tf.one_hot(tf.zeros([16], tf.int32), 32), tf.zeros([16, 16])
    cell, loss = rnn_cell.BasicLSTMCell(64), 0.0
    state = cell.zero_state(16, tf.float32)
    control, out = layers.Dense(16 + 1 + 1 + 3 + 1 + 32), layers.Dense(8)
    for step in range(12):
        h, state = cell(tf.concat([x[:, step], read], 1), state)
        key, strength, gate, shift, sharp, change = tf.split(control(h), [16, 1, 1, 3, 1, 32], 1)
        near = tf.einsum("bnd,bd->bn", tf.nn.l2_normalize(memory, 2), tf.nn.l2_normalize(key, 1))
        found = tf.nn.softmax(tf.nn.softplus(strength) * near)
        shares = tf.sigmoid(gate) * found + (1 - tf.sigmoid(gate)) * shares
        turns = tf.stack([tf.roll(shares, i, 1) for i in (-1, 0, 1)], 2)
        shares = tf.pow(tf.reduce_sum(turns * tf.nn.softmax(shift)[:, None], 2) + 1e-6, 1 + tf.nn.softplus(sharp))
        shares /= tf.reduce_sum(shares, 1, keepdims=True)
        read = tf.einsum("bn,bnd->bd", shares, memory)
        erase, add = tf.split(change, 2, 1)
        memory = memory * (1 - shares[..., None] * tf.sigmoid(erase)[:, None]) + shares[..., None] * tf.tanh(add)[:, None]
        loss += tf.reduce_mean(tf.square(out(tf.concat([h, read], 1)) - y[:, step]))
    return loss, train(loss, adam()), [{x: normal(16, 12, 8), y: normal(16, 12, 8, seed=1)}]


def segments_with_memory():
    """Each step's hidden states are the next step's memory; positions are relative (Transformer-XL)."""
    ids, y = tf.placeholder(tf.int64, [8, 32]), tf.placeholder(tf.int64, [8, 32])
    h, place, kept = embedded(ids), tf.constant(normal(64, 64)), []
    mask = tf.constant(np.triu(np.full((32, 64), -1e9, "f"), 33))
    for i in range(2):
        memory = tf.get_variable(f"memory{i}", [8, 32, 64], initializer=tf.zeros_initializer(), trainable=False)
        both = tf.concat([tf.stop_gradient(memory), h], 1)
        kept.append((memory, h))
        heads = lambda x, name: tf.transpose(tf.reshape(layers.dense(x, 64, use_bias=False, name=name), [-1, x.shape[-2], 4, 16]), [0, 2, 1, 3])  # noqa: E731, B023
        q, k, v, r = heads(h, f"q{i}"), heads(both, f"k{i}"), heads(both, f"v{i}"), heads(place[None], f"r{i}")
        a, b = (tf.get_variable(f"{name}{i}", [4, 1, 16]) for name in "ab")
        far = tf.einsum("bhqd,hkd->bhqk", q + b, r[0])
        far = tf.reshape(tf.reshape(tf.pad(far, [[0, 0], [0, 0], [0, 0], [1, 0]]), [8, 4, 65, 32])[:, :, 1:], [8, 4, 32, 64])
        shares = tf.nn.softmax((tf.matmul(q + a, k, transpose_b=True) + far) / 4 + mask)
        made = tf.reshape(tf.transpose(tf.matmul(shares, v), [0, 2, 1, 3]), [8, 32, 64])
        h = layer_norm(h + layers.dense(made, 64), f"n{i}")
        h = layer_norm(h + layers.dense(layers.dense(h, 128, tf.nn.relu), 64), f"m{i}")
    loss = cross_entropy(layers.dense(h, 1000), y)
    with tf.control_dependencies([train(loss, adam())]):
        steps = tf.group(*[tf.assign(memory, value) for memory, value in kept])
    return loss, steps, [{ids: tokens(32, 8, 5000, i), y: tokens(32, 8, 1000, i + 1)} for i in range(4)]


def sorting_by_softmax():
    """Scores are sorted by a relaxed permutation, whose error trains (NeuralSort)."""
    x, y = tf.placeholder(tf.float32, [16, 20, 24]), tf.placeholder(tf.float32, [16, 20, 20])
    s = layers.dense(layers.dense(x, 64, tf.nn.relu), 1)
    apart = tf.reduce_sum(tf.abs(s - tf.transpose(s, [0, 2, 1])), 2, keepdims=True)
    scaling = tf.constant((19 - 2 * np.arange(20))[None, :, None].astype("f"))
    permutation = tf.nn.softmax(tf.matmul(scaling * tf.ones([16, 1, 1]), s, transpose_b=True) - tf.transpose(apart, [0, 2, 1]))
    loss = -tf.reduce_mean(tf.reduce_sum(y * tf.log(permutation + 1e-6), -1))
    order = np.argsort(normal(16, 20, seed=1), 1)
    return loss, train(loss, adam()), [{x: normal(16, 20, 24), y: np.eye(20, dtype="f")[order]}]


def transport_between_sets():
    """Entropic transport by 20 turns of a loop (Sinkhorn)."""
    x, y = tf.placeholder(tf.float32, [8, 40, 16]), tf.placeholder(tf.float32, [8, 48, 16])
    embed = tf.make_template("embed", lambda h: layers.dense(layers.dense(h, 64, tf.nn.relu), 32))
    a, b = embed(x), embed(y)
    cost = tf.reduce_sum(tf.square(a[:, :, None] - b[:, None]), -1)
    logits = -cost / 0.5

    def turn(i, f, g):
        f = -tf.reduce_logsumexp(logits + g[:, None], 2) - np.log(40)
        return i + 1, f, -tf.reduce_logsumexp(logits + f[..., None], 1) - np.log(48)

    _, f, g = tf.while_loop(lambda i, *_: i < 20, turn, (0, tf.zeros([8, 40]), tf.zeros([8, 48])))
    plan = tf.exp(logits + f[..., None] + g[:, None])
    loss = tf.reduce_sum(plan * cost) / 8 + 0.1 * tf.reduce_mean(tf.square(tf.norm(a, axis=-1) - 1))
    return loss, train(loss, adam()), [{x: normal(8, 40, 16), y: normal(8, 48, 16, seed=1)}]


def interest_that_evolves():
    """A recurrence whose updates attention scales (DIEN)."""
    history, item, y = (tf.placeholder(tf.int64, shape) for shape in ([64, 20], [64], [64]))
    table = tf.get_variable("items", [5000, 32])
    keys, query = tf.nn.embedding_lookup(table, history), tf.nn.embedding_lookup(table, item)
    states, _ = rnn.dynamic_rnn(rnn_cell.GRUCell(32), keys, dtype=tf.float32)
    shares = tf.nn.softmax(tf.einsum("btd,bd->bt", layers.dense(states, 32), query))
    gates, made, h = layers.Dense(64, tf.sigmoid), layers.Dense(32, tf.tanh), tf.zeros([64, 32])
    for i, step in enumerate(tf.unstack(states, axis=1)):
        update, reset = tf.split(gates(tf.concat([step, h], 1)), 2, 1)
        update *= shares[:, i : i + 1]
        h = (1 - update) * h + update * made(tf.concat([step, reset * h], 1))
    loss = click_loss(layers.dense(layers.dense(tf.concat([h, query], 1), 64, tf.nn.relu), 1), tf.cast(y, tf.float32))
    random = np.random.RandomState(0)
    feed = {history: random.randint(5000, size=(64, 20)), item: random.randint(5000, size=64), y: random.randint(2, size=64)}
    return loss, train(loss, adam()), [feed]


def trees_of_words():
    """Nodes join their children's values, which a loop keeps in an array (recursive net)."""
    words, left, right, y = (tf.placeholder(tf.int32, [None]) for _ in range(4))
    table, inner, leaves = tf.get_variable("words", [1000, 64]), layers.Dense(64, tf.tanh), layers.Dense(64, tf.tanh)

    def node(i, values):
        one = lambda: leaves(tf.gather(table, words[i : i + 1]))  # noqa: E731
        two = lambda: inner(tf.concat([values.read(left[i])[None], values.read(right[i])[None]], 1))  # noqa: E731
        return i + 1, values.write(i, tf.reshape(tf.cond(left[i] < 0, one, two), [64]))

    inner.build([None, 128]), leaves.build([None, 64])
    count = tf.size(words)
    array = tf.TensorArray(tf.float32, count, clear_after_read=False, element_shape=[64])
    _, array = tf.while_loop(lambda i, _: i < count, node, (0, array))
    loss = cross_entropy(layers.dense(array.stack(), 5), y)
    feeds, random = [], np.random.RandomState(0)
    for i in range(4):
        leaf = 8 + i
        a = [-1] * leaf + [2 * j for j in range(leaf - 1)]
        b = [-1] * leaf + [2 * j + 1 for j in range(leaf - 1)]
        feeds.append({words: random.randint(1000, size=2 * leaf - 1), left: a, right: b, y: random.randint(5, size=2 * leaf - 1)})
    return loss, train(loss, adam()), feeds


def light_along_rays():
    """Colours and densities at points of rays, added up by what is left of the light (NeRF)."""
    origin, way, wanted = (tf.placeholder(tf.float32, [None, 3]) for _ in range(3))
    depths = tf.linspace(0.5, 3.0, 24)
    points = origin[:, None] + way[:, None] * depths[:, None]
    coded = tf.concat([points] + [turn(points * 2.0**i) for i in range(6) for turn in (tf.sin, tf.cos)], -1)
    h = layers.dense(layers.dense(coded, 64, tf.nn.relu), 64, tf.nn.relu)
    h = layers.dense(layers.dense(tf.concat([h, coded], -1), 64, tf.nn.relu), 4)
    kept = tf.exp(-tf.nn.softplus(h[..., 3]) * 0.11)
    shares = (1 - kept) * tf.cumprod(kept + 1e-10, 1, exclusive=True)
    seen = tf.reduce_sum(shares[..., None] * tf.sigmoid(h[..., :3]), 1)
    loss = tf.reduce_mean(tf.square(seen - wanted))
    return loss, train(loss, adam()), [{origin: rows(128, 3), way: rows(128, 3, 1), wanted: abs(rows(128, 3, 2)) % 1}]


def slopes_of_sines():
    """A field of sines learns an image by its slopes (SIREN)."""
    x, wanted = tf.placeholder(tf.float32, [None, 2]), tf.placeholder(tf.float32, [None, 2])
    h = tf.sin(30 * layers.dense(x, 128))
    for _ in range(2):
        h = tf.sin(layers.dense(h, 128))
    slopes = tf.gradients(layers.dense(h, 1), x)[0]
    loss = tf.reduce_mean(tf.square(slopes - wanted))
    return loss, train(loss, adam(1e-4)), [{x: np.tanh(rows(512, 2)), wanted: rows(512, 2, 1)}]


def equation_of_heat():
    """The residual of a differential equation, with second derivatives (PINN)."""
    t, x, start = (tf.placeholder(tf.float32, [None, 1]) for _ in range(3))
    net = tf.make_template("net", lambda h: layers.dense(layers.dense(layers.dense(h, 48, tf.tanh), 48, tf.tanh), 1))
    u = net(tf.concat([t, x], 1))
    once = tf.gradients(u, x)[0]
    rest = tf.gradients(u, t)[0] + u * once - 0.01 * tf.gradients(once, x)[0]
    border = net(tf.concat([tf.zeros_like(start), start], 1)) + tf.sin(np.pi * start)
    loss = tf.reduce_mean(tf.square(rest)) + tf.reduce_mean(tf.square(border))
    return loss, train(loss, adam()), [{t: abs(rows(400, 1)) % 1, x: np.tanh(rows(400, 1, 1)), start: np.tanh(rows(100, 1, 2))}]


def twins_without_redundancy():
    """Features of two views are to agree and not to tell the same twice (Barlow Twins, VICReg)."""
    a, b = tf.placeholder(tf.float32, [None, 16, 16, 3]), tf.placeholder(tf.float32, [None, 16, 16, 3])

    def embed(x):
        h = conv(conv(x, 32, stride=2, name="a"), 64, stride=2, name="b")
        return layers.dense(layers.dense(tf.reduce_mean(h, [1, 2]), 256, tf.nn.relu), 256)

    embed = tf.make_template("embed", embed)
    parts = []
    for h in (embed(a), embed(b)):
        mean, spread = tf.nn.moments(h, [0])
        parts.append((h - mean) / tf.sqrt(spread + 1e-4))
    both = tf.matmul(parts[0], parts[1], transpose_a=True) / 64
    loss = tf.reduce_sum(tf.square(tf.diag_part(both) - 1)) + 5e-3 * tf.reduce_sum(tf.square(both - tf.matrix_diag(tf.diag_part(both))))
    image = normal(64, 16, 16, 3)
    return loss, train(loss, adam()), [{a: image + 0.1 * normal(64, 16, 16, 3, seed=1), b: image + 0.1 * normal(64, 16, 16, 3, seed=2)}]


def prototypes_of_classes():
    """Questions go to the nearest mean of a few examples."""
    shown, asked, y = (tf.placeholder(dtype, shape) for dtype, shape in ((tf.float32, [25, 28, 28, 1]), (tf.float32, [50, 28, 28, 1]), (tf.int64, [None])))

    def embed(x):
        for i in range(3):
            x = layers.max_pooling2d(conv(x, 32, name=f"c{i}"), 2, 2)
        return layers.flatten(x)

    both = embed(tf.concat([shown, asked], 0))
    means = tf.reduce_mean(tf.reshape(both[:25], [5, 5, -1]), 1)
    loss = cross_entropy(-tf.reduce_sum(tf.squared_difference(both[25:, None], means[None]), -1), y)
    return loss, train(loss, adam()), [{shown: normal(25, 28, 28, 1), asked: normal(50, 28, 28, 1, seed=1), y: np.arange(50) % 5}]


def points_and_neighbours():
    """Edges to the nearest points in the space of features (DGCNN)."""
    x, y = tf.placeholder(tf.float32, [8, 128, 3]), tf.placeholder(tf.int64, [None])
    h, kept = x, []
    for width in (32, 64):
        square = tf.reduce_sum(tf.square(h), -1, keepdims=True)
        near = -square - tf.transpose(square, [0, 2, 1]) + 2 * tf.matmul(h, h, transpose_b=True)
        places = tf.nn.top_k(near, 8).indices
        others = tf.gather(h, places, batch_dims=1)
        own = tf.tile(h[:, :, None], [1, 1, 8, 1])
        edges = layers.dense(tf.concat([own, others - own], -1), width)
        h = tf.reduce_max(tf.nn.leaky_relu(layers.batch_normalization(edges, training=True)), 2)
        kept.append(h)
    h = tf.reduce_max(layers.dense(tf.concat(kept, -1), 128, tf.nn.relu), 1)
    loss = cross_entropy(layers.dense(h, 10), y)
    return loss, train(loss, adam()), [{x: normal(8, 128, 3), y: np.arange(8)}]


def image_turned_by_net():
    """A net chooses a turn of the image, which is sampled at four corners (spatial transformer)."""
    x, y, feeds = images(28, 1, 16)
    h = layers.max_pooling2d(conv(layers.max_pooling2d(conv(x, 8, 7, norm=False), 2, 2), 10, 5, norm=False), 2, 2)
    start = tf.constant_initializer([0.93, 0.05, 0.01, -0.04, 0.96, 0.02])  # between the pixels, where slopes have no steps
    turn = layers.dense(layers.dense(layers.flatten(h), 32, tf.nn.relu), 6, bias_initializer=start)
    a, b = np.meshgrid(np.linspace(-1, 1, 28), np.linspace(-1, 1, 28))
    grid = tf.constant(np.stack([a.ravel(), b.ravel(), np.ones(784)]).astype("f"))
    at = (tf.einsum("bij,jn->bin", tf.reshape(turn, [-1, 2, 3]), grid) + 1) * 13.5
    low = tf.floor(at)
    batch, made = tf.tile(tf.range(16)[:, None], [1, 784]), 0.0
    for dx in (0, 1):
        for dy in (0, 1):
            corner = low + tf.constant([[dx], [dy]], tf.float32)
            share = tf.reduce_prod(1 - tf.abs(at - corner), 1)
            where = tf.cast(tf.clip_by_value(corner, 0, 27), tf.int32)
            made += share[..., None] * tf.gather_nd(x, tf.stack([batch, where[:, 1], where[:, 0]], 2))
    h = layers.max_pooling2d(conv(tf.reshape(made, [-1, 28, 28, 1]), 16, norm=False), 2, 2)
    return classify(layers.dense(layers.flatten(h), 64, tf.nn.relu), y, feeds)


def turns_until_sure():
    """A recurrence that turns until each row has said enough (adaptive computation time)."""
    x, y = tf.placeholder(tf.float32, [32, 24]), tf.placeholder(tf.int64, [None])
    cell, halt = layers.Dense(64, tf.tanh), layers.Dense(1, tf.sigmoid)
    cell.build([None, 88]), halt.build([None, 64])

    def turn(i, h, said, total, cost):
        h = cell(tf.concat([x, h], 1))
        share = halt(h)[:, 0]
        goes = tf.cast(said < 0.99, tf.float32)
        last = tf.cast(said + share >= 0.99, tf.float32) * goes
        weight = goes * (1 - last) * share + last * (1 - said)
        return i + 1, h, said + weight + last * 0.1, total + weight[:, None] * h, cost + goes

    start = (0, tf.zeros([32, 64]), tf.zeros([32]), tf.zeros([32, 64]), tf.zeros([32]))
    _, _, _, total, cost = tf.while_loop(lambda i, h, said, *_: (i < 12) & tf.reduce_any(said < 0.99), turn, start)
    loss = cross_entropy(layers.dense(total, 10), y) + 0.01 * tf.reduce_mean(cost)
    return loss, train(loss, adam()), [{x: rows(32, 24), y: np.arange(32) % 10}]


def energies_by_descent():
    """Examples that eight steps downhill have made are contrasted with true ones (energy-based)."""
    x, noise = tf.placeholder(tf.float32, [None, 16]), tf.placeholder(tf.float32, [None, 16])
    energy = tf.make_template("energy", lambda h: layers.dense(layers.dense(layers.dense(h, 64, tf.nn.softplus), 64, tf.nn.softplus), 1))
    made = noise
    for _ in range(8):
        made -= 0.1 * tf.gradients(energy(made), made)[0]
    a, b = energy(x), energy(tf.stop_gradient(made))
    loss = tf.reduce_mean(a - b) + 0.1 * tf.reduce_mean(a**2 + b**2)
    return loss, train(loss, adam()), [{x: rows(64, 16), noise: rows(64, 16, 1)}]


def lists_in_order():
    """Pairs of a list's documents, weighted by what their exchange would change (LambdaRank)."""
    x, grade, mask = tf.placeholder(tf.float32, [16, 40, 46]), tf.placeholder(tf.float32, [16, 40]), tf.placeholder(tf.float32, [16, 40])
    scores = layers.dense(layers.dense(layers.dense(x, 64, tf.nn.relu), 32, tf.nn.relu), 1)[..., 0]
    apart = scores[:, :, None] - scores[:, None]
    better = tf.cast(grade[:, :, None] > grade[:, None], tf.float32) * mask[:, :, None] * mask[:, None]
    place = 1 + tf.reduce_sum(tf.cast(apart < 0, tf.float32) * mask[:, None], 2)
    gain, fall = tf.pow(2.0, grade) - 1, 1 / tf.log(1 + place)
    weight = tf.abs((gain[:, :, None] - gain[:, None]) * (fall[:, :, None] - fall[:, None]))
    loss = tf.reduce_sum(tf.stop_gradient(weight) * better * tf.nn.softplus(-apart)) / tf.reduce_sum(better)
    random = np.random.RandomState(0)
    feed = {x: normal(16, 40, 46), grade: random.randint(5, size=(16, 40)), mask: np.arange(40) < random.randint(10, 40, size=(16, 1))}
    return loss, train(loss, adam()), [feed]


def product_keys():
    """The best of many keys by the best of two halves (product-key memory)."""
    x, y = tf.placeholder(tf.float32, [None, 64]), tf.placeholder(tf.int64, [None])
    h = layers.dense(x, 64, tf.nn.relu)
    halves = tf.split(layers.batch_normalization(layers.dense(h, 64), training=True), 2, 1)
    best = [tf.nn.top_k(tf.matmul(half, tf.get_variable(f"keys{i}", [64, 32]), transpose_b=True), 8) for i, half in enumerate(halves)]
    scores = tf.reshape(best[0].values[:, :, None] + best[1].values[:, None], [-1, 64])
    places = tf.reshape(best[0].indices[:, :, None] * 64 + best[1].indices[:, None], [-1, 64])
    chosen = tf.nn.top_k(scores, 8)
    slots = tf.gather(places, chosen.indices, batch_dims=1)
    found = tf.gather(tf.get_variable("values", [4096, 64]), slots)
    h += tf.reduce_sum(tf.nn.softmax(chosen.values)[..., None] * found, 1)
    loss = cross_entropy(layers.dense(h, 10), y)
    return loss, train(loss, adam()), [{x: rows(128, 64, i), y: np.arange(128) % 10} for i in range(4)]


def state_spaces():
    """Linear recurrences with chosen decays, by doubling steps (S5, Mamba)."""
    x, y = tf.placeholder(tf.float32, [8, 64, 16]), tf.placeholder(tf.int64, [None])
    h = layers.dense(x, 64)
    for i in range(2):
        inner = layer_norm(h, f"n{i}")
        decay, value = tf.sigmoid(layers.dense(inner, 64) + 2), layers.dense(inner, 64)
        value *= 1 - decay
        for far in (1, 2, 4, 8, 16, 32):
            behind = lambda z: tf.pad(z[:, :-far], [[0, 0], [far, 0], [0, 0]])  # noqa: E731, B023
            value, decay = value + decay * behind(value), decay * behind(decay)
        h += layers.dense(value * tf.nn.swish(layers.dense(inner, 64)), 64)
    loss = cross_entropy(layers.dense(tf.reduce_mean(h, 1), 10), y)
    return loss, train(loss, adam()), [{x: normal(8, 64, 16), y: np.arange(8)}]


def returns_of_actors():
    """Returns corrected for the actor's delay, by a scan from the end (V-trace)."""
    x, action, reward, old = (tf.placeholder(dtype, shape) for dtype, shape in ((tf.float32, [20, 16, 12]), (tf.int64, [20, 16]), (tf.float32, [20, 16]), (tf.float32, [20, 16])))
    h = layers.dense(layers.dense(x, 64, tf.nn.relu), 64, tf.nn.relu)
    logits, value = layers.dense(h, 6), layers.dense(h, 1)[..., 0]
    own = -tf.nn.sparse_softmax_cross_entropy_with_logits(labels=action, logits=logits)
    ratio = tf.minimum(1.0, tf.exp(own - old))
    later = tf.concat([value[1:], value[-1:]], 0)
    change = ratio * (reward + 0.97 * later - value)
    back = lambda total, now: now[0] + 0.97 * now[1] * total  # noqa: E731
    sums = tf.scan(back, (tf.reverse(change, [0]), tf.reverse(ratio, [0])), tf.zeros([16]))
    target = tf.stop_gradient(tf.reverse(sums, [0]) + value)
    following = tf.concat([target[1:], target[-1:]], 0)
    gain = tf.stop_gradient(ratio * (reward + 0.97 * following - value))
    shares = tf.nn.softmax(logits)
    entropy = -tf.reduce_sum(shares * tf.nn.log_softmax(logits), -1)
    loss = tf.reduce_mean(0.5 * tf.square(target - value) - own * gain - 0.01 * entropy)
    random = np.random.RandomState(0)
    feed = {x: normal(20, 16, 12), action: random.randint(6, size=(20, 16)), reward: normal(20, 16, seed=1), old: -1.8 + 0.1 * normal(20, 16, seed=2)}
    return loss, train(loss, adam()), [feed]


def several_softmaxes():
    """Shares of several softmaxes over the words (mixture of softmaxes)."""
    ids, y = tf.placeholder(tf.int64, [16, 20]), tf.placeholder(tf.int64, [16, 20])
    h, _ = rnn.dynamic_rnn(rnn_cell.LSTMCell(64), embedded(ids, words=2000), dtype=tf.float32)
    prior = tf.nn.softmax(layers.dense(h, 3))
    kinds = tf.reshape(layers.dense(h, 3 * 64, tf.tanh), [16, 20, 3, 64])
    shares = tf.nn.softmax(layers.dense(kinds, 2000))
    mixed = tf.reduce_sum(prior[..., None] * shares, 2)
    own = tf.gather(mixed, y, batch_dims=2)
    loss = -tf.reduce_mean(tf.log(own + 1e-9))
    return loss, train(loss, adam()), [{ids: tokens(20, 16, 2000), y: tokens(20, 16, 2000, 1)}]


def sentence_pairs_in_batch():
    """Each sentence is to find its partner among the batch, weights averaged along (two encoders, momentum)."""
    a, b = tf.placeholder(tf.int64, [16, 24]), tf.placeholder(tf.int64, [16, 24])

    def encode(ids):
        h = embedded(ids)
        return tf.nn.l2_normalize(tf.reduce_mean(layer_norm(h + attention(h, h, 4), "n"), 1), 1)

    one, two = tf.make_template("one", encode), tf.make_template("two", encode)
    logits = tf.matmul(one(a), tf.stop_gradient(two(b)), transpose_b=True) / 0.07
    loss = cross_entropy(logits, tf.range(16, dtype=tf.int64))
    with tf.control_dependencies([train(loss, adam())]):
        pairs = zip(one.trainable_variables, two.trainable_variables, strict=True)
        steps = tf.group(*[tf.assign(slow, 0.99 * slow + 0.01 * fast) for fast, slow in pairs])
    return loss, steps, [{a: tokens(24, 16, 5000, 0), b: tokens(24, 16, 5000, 1)}]
