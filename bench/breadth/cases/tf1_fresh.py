"""Training graphs of TensorFlow 1: filters of pictures and words, graphs of people and things, detectors, sounds. As tf1_vision.py."""

import numpy as np
import tensorflow as tf

from cases.tf1_further import normal
from cases.tf1_other import rows
from cases.tf1_sequence import adam, block, embedded, layer_norm, tokens
from cases.tf1_sparse import click_loss, fields, graph_of
from cases.tf1_vision import classify, conv, cross_entropy, images, train

layers = tf.layers


def depthwise(x, size, name, stride=1, filters=1, rate=1):
    kernel = tf.get_variable(name, [size, size, x.shape[-1], filters])
    return tf.nn.depthwise_conv2d(x, kernel, [1, stride, stride, 1], "SAME", dilations=[rate, rate])


def blurred(x, size=5, spread=1.0):
    """A Gaussian blur of each colour."""
    line = np.exp(-((np.arange(size) - size // 2) ** 2) / (2 * spread**2))
    kernel = np.tile((line[:, None] * line / line.sum() ** 2)[:, :, None, None], [1, 1, int(x.shape[-1]), 1])
    return tf.nn.depthwise_conv2d(x, tf.constant(kernel.astype("f")), [1, 1, 1, 1], "SAME")


def attended(h, heads=4):
    count, length, depth = h.shape.as_list()
    q, k, v = (tf.transpose(tf.reshape(layers.dense(h, depth), [count, length, heads, depth // heads]), [0, 2, 1, 3]) for _ in range(3))
    made = tf.matmul(tf.nn.softmax(tf.matmul(q, k, transpose_b=True) / (depth / heads) ** 0.5), v)
    return layers.dense(tf.reshape(tf.transpose(made, [0, 2, 1, 3]), [count, length, depth]), depth)


def windows_of_large_reach():
    """Depthwise windows of 13 and 17, beside one of 5 that they take over (RepLKNet)."""
    x, y, feeds = images(32, 3, 8)
    h = conv(x, 48, 3, 2)
    for i, size in enumerate((13, 17)):
        inner = tf.nn.relu(layers.batch_normalization(depthwise(h, size, f"large{i}") + depthwise(h, 5, f"small{i}"), training=True))
        h += layers.conv2d(inner, 48, 1)
        h += layers.conv2d(tf.nn.relu(layers.conv2d(h, 96, 1)), 48, 1)
    return classify(h, y, feeds)


def filters_with_strides():
    """Inverted bottlenecks whose depthwise filters of 3 and 5 step by two (MobileNetV2)."""
    x, y, feeds = images(48, 3, 8)
    h = conv(x, 16, 3, 2)
    for i, (width, size, stride) in enumerate(((24, 3, 2), (24, 3, 1), (40, 5, 2), (40, 5, 1))):
        inner = tf.nn.relu6(layers.batch_normalization(layers.conv2d(h, 4 * int(h.shape[-1]), 1), training=True))
        inner = tf.nn.relu6(layers.batch_normalization(depthwise(inner, size, f"d{i}", stride), training=True))
        made = layers.batch_normalization(layers.conv2d(inner, width, 1), training=True)
        h = h + made if made.shape[1:] == h.shape[1:] else made
    return classify(h, y, feeds)


def pyramids_of_differences():
    """Pictures are compared by the differences of blurs on four scales (Laplacian pyramids)."""
    x, _, feeds = images(64, 3, 4)
    made = layers.conv2d(conv(conv(x, 24, 5), 24), 3, 3, padding="same")
    loss = 0.0
    a, b = made, tf.tanh(x)
    for i in range(4):
        low = blurred(a), blurred(b)
        loss += 2.0**i * tf.reduce_mean(abs((a - low[0]) - (b - low[1])))
        a, b = (v[:, ::2, ::2] for v in low)
    return loss, train(loss, adam()), feeds


def pictures_by_guides():
    """Means of windows make a linear model of each place, which smooths along edges (guided filter)."""
    x, _, feeds = images(48, 3, 4)
    mean = lambda v: layers.average_pooling2d(v, 9, 1, "same")  # noqa: E731
    guide, p = layers.conv2d(conv(x, 16), 3, 1), conv(x, 3, 3, activation=tf.tanh)
    a = (mean(guide * p) - mean(guide) * mean(p)) / (mean(guide**2) - mean(guide) ** 2 + 0.01)
    smooth = mean(a) * guide + mean(mean(p) - a * mean(guide))
    loss = tf.reduce_mean((smooth - tf.tanh(x)) ** 2)
    return loss, train(loss, adam()), feeds


def sounds_by_convolution_and_attention():
    """Attention, then depthwise filters along time behind gates (Conformer)."""
    x, y = tf.placeholder(tf.float32, [8, 96, 40]), tf.placeholder(tf.int64, [8])
    h = layers.dense(x, 64)
    for i in range(2):
        h += attended(layer_norm(h, f"n{i}"))
        a, gate = tf.split(layers.dense(layer_norm(h, f"c{i}"), 128), 2, -1)
        inner = (a * tf.sigmoid(gate))[:, None]
        kernel = tf.get_variable(f"time{i}", [1, 31, 64, 1])
        inner = tf.nn.swish(layers.batch_normalization(tf.nn.depthwise_conv2d(inner, kernel, [1] * 4, "SAME")[:, 0], training=True))
        h += layers.dense(inner, 64)
        h += 0.5 * layers.dense(tf.nn.swish(layers.dense(layer_norm(h, f"f{i}"), 256)), 64)
    loss = cross_entropy(layers.dense(tf.reduce_mean(h, 1), 12), y)
    return loss, train(loss, adam()), [{x: normal(8, 96, 40), y: np.arange(8)}]


def windows_made_by_words():
    """Each word makes the weights of its own window (dynamic convolutions)."""
    ids, y = tf.placeholder(tf.int32, [16, 40]), tf.placeholder(tf.int64, [None])
    h = embedded(ids)
    for i in range(2):
        weights = tf.nn.softmax(tf.reshape(layers.dense(h, 4 * 7), [16, 40, 4, 7]))
        padded = tf.pad(layers.dense(h, 64), [[0, 0], [6, 0], [0, 0]])
        window = tf.stack([padded[:, k : k + 40] for k in range(7)], 2)
        mixed = tf.einsum("bthk,btkhc->bthc", weights, tf.reshape(window, [16, 40, 7, 4, 16]))
        h = layer_norm(h + layers.dense(tf.reshape(mixed, [16, 40, 64]), 64), f"n{i}")
    loss = cross_entropy(layers.dense(tf.reduce_max(h, 1), 5), y)
    return loss, train(loss, adam()), [{ids: tokens(40, 16), y: np.arange(16) % 5}]


def people_and_things():
    """Embeddings pass along a bipartite graph, pairs are ranked by draws (LightGCN)."""
    matrix = tf.sparse_placeholder(tf.float32, [1500, 1500])
    user, liked, other = (tf.placeholder(tf.int32, [512]) for _ in range(3))
    table = tf.get_variable("table", [1500, 32])
    h, all_layers = table, [table]
    for _ in range(3):
        h = tf.sparse_tensor_dense_matmul(matrix, h)
        all_layers.append(h)
    h = tf.reduce_mean(tf.stack(all_layers), 0)
    u, a, b = (tf.gather(h, i) for i in (user, liked, other))
    loss = tf.reduce_mean(tf.nn.softplus(tf.reduce_sum(u * (b - a), 1))) + 1e-3 * tf.reduce_mean(u**2 + a**2 + b**2)
    random = np.random.RandomState(0)
    pairs = np.unique(np.stack([random.randint(600, size=8000), 600 + random.randint(900, size=8000)], 1), axis=0)
    places = np.concatenate([pairs, pairs[:, ::-1]])
    places = places[np.lexsort((places[:, 1], places[:, 0]))]
    degree = np.bincount(places[:, 0], minlength=1500)
    values = (1 / np.sqrt(degree[places[:, 0]] * degree[places[:, 1]])).astype("f")
    draw = lambda low, high: random.randint(low, high, 512)  # noqa: E731
    return loss, train(loss, adam()), [{matrix: (places, values, (1500, 1500)), user: draw(0, 600), liked: draw(600, 1500), other: draw(600, 1500)}]


def relations_of_many_kinds():
    """Each kind of edge has a matrix, mixed from a few bases (R-GCN)."""
    x, y = tf.placeholder(tf.float32, [600, 32]), tf.placeholder(tf.int64, [None])
    edges = [tf.sparse_placeholder(tf.float32, [600, 600]) for _ in range(4)]
    h = x
    for i in range(2):
        bases, shares = tf.get_variable(f"bases{i}", [3, h.shape[1], 32]), tf.get_variable(f"shares{i}", [4, 3])
        kinds = tf.einsum("rb,bij->rij", shares, bases)
        h = tf.nn.relu(layers.dense(h, 32) + tf.add_n([tf.matmul(tf.sparse_tensor_dense_matmul(e, h), kinds[r]) for r, e in enumerate(edges)]))
    loss = cross_entropy(layers.dense(h, 6), y)
    feed = {x: rows(600, 32), y: np.arange(600) % 6}
    for r, e in enumerate(edges):
        places = np.unique(np.stack(graph_of(600, 1500, r)[::-1], 1), axis=0)
        feed[e] = (places, np.full(len(places), 0.3, "f"), (600, 600))
    return loss, train(loss, adam()), [feed]


def neighbours_by_many_measures():
    """Mean, least, largest and spread of the neighbours, scaled by how many there are (PNA)."""
    x, y = tf.placeholder(tf.float32, [800, 32]), tf.placeholder(tf.int64, [None])
    source, target = (tf.constant(part, tf.int32) for part in graph_of(800, 5000))
    degree = tf.math.unsorted_segment_sum(tf.ones([5000]), target, 800)[:, None]
    h = layers.dense(x, 32)
    for _ in range(2):
        messages = layers.dense(tf.concat([tf.gather(h, source), tf.gather(h, target)], 1), 32, tf.nn.relu)
        mean = tf.math.unsorted_segment_mean(messages, target, 800)
        spread = tf.sqrt(tf.nn.relu(tf.math.unsorted_segment_mean(messages**2, target, 800) - mean**2) + 1e-5)
        least = -tf.maximum(tf.math.unsorted_segment_max(-messages, target, 800), -1e3)
        most = tf.maximum(tf.math.unsorted_segment_max(messages, target, 800), 0.0)
        all_four = tf.concat([mean, spread, tf.minimum(least, 1e3) * tf.cast(degree > 0, tf.float32), most], 1)
        scale = tf.math.log1p(degree) / 2.0
        h += layers.dense(tf.concat([all_four, all_four * scale, all_four / (scale + 0.1)], 1), 32, tf.nn.relu)
    loss = cross_entropy(layers.dense(h, 7), y)
    return loss, train(loss, adam()), [{x: rows(800, 32), y: np.arange(800) % 7}]


def next_things_attended():
    """What comes next in a list of things, by attention to those before (SASRec)."""
    ids, after, other = (tf.placeholder(tf.int32, [16, 30]) for _ in range(3))
    table = tf.get_variable("things", [3000, 48])
    mask = tf.constant(np.triu(np.full([30, 30], -1e9, "f"), 1))
    h = tf.nn.embedding_lookup(table, ids) * 48**0.5 + tf.get_variable("places", [30, 48])
    for i in range(2):
        h = block(h, f"b{i}", 2, mask=mask)
    good, bad = (tf.reduce_sum(h * tf.nn.embedding_lookup(table, i), -1) for i in (after, other))
    loss = tf.reduce_mean(tf.nn.softplus(-good) + tf.nn.softplus(bad))
    return loss, train(loss, adam()), [{ids: tokens(30, 16, 3000), after: tokens(30, 16, 3000, 1), other: tokens(30, 16, 3000, 2)}]


def sessions_as_graphs():
    """Gated units over the graph of a session's clicks, then attention to the last one (SR-GNN)."""
    ids, y = tf.placeholder(tf.int32, [64, 12]), tf.placeholder(tf.int64, [64])
    into, out = tf.placeholder(tf.float32, [64, 12, 12]), tf.placeholder(tf.float32, [64, 12, 12])
    table = tf.get_variable("things", [1000, 48])
    h = tf.nn.embedding_lookup(table, ids)
    cell = tf.nn.rnn_cell.GRUCell(48)
    for _ in range(2):
        a = tf.concat([tf.matmul(into, layers.dense(h, 48)), tf.matmul(out, layers.dense(h, 48))], -1)
        h = tf.reshape(cell(tf.reshape(a, [-1, 96]), tf.reshape(h, [-1, 48]))[1], [64, 12, 48])
    last = h[:, -1]
    share = layers.dense(tf.sigmoid(layers.dense(last, 48)[:, None] + layers.dense(h, 48)), 1)
    session = layers.dense(tf.concat([tf.reduce_sum(share * h, 1), last], -1), 48)
    loss = cross_entropy(tf.matmul(session, table, transpose_b=True), y)
    edges = (np.random.RandomState(0).rand(64, 12, 12) < 0.2).astype("f")
    share_of = lambda e: e / np.maximum(e.sum(-1, keepdims=True), 1)  # noqa: E731
    return loss, train(loss, adam()), [{ids: tokens(12, 64, 1000), y: np.arange(64), into: share_of(edges), out: share_of(edges.transpose(0, 2, 1))}]


def crosses_of_low_rank():
    """Crossed fields by matrices of low rank, shared out among experts (DCN-M), beside products of all pairs (NFM)."""
    ids, x, y, feeds = fields()
    v = tf.nn.embedding_lookup(tf.get_variable("v", [10000, 12]), ids)
    first = h = tf.concat([tf.reshape(v, [-1, 240]), x], 1)
    width = int(h.shape[1])
    for i in range(2):
        gates = tf.nn.softmax(layers.dense(h, 3))
        experts = []
        for e in range(3):
            low = tf.tanh(layers.dense(tf.tanh(layers.dense(h, 16, use_bias=False)), 16, use_bias=False))
            experts.append(first * layers.dense(low, width) * gates[:, e : e + 1])
        h += tf.add_n(experts)
    pairs = 0.5 * (tf.reduce_sum(v, 1) ** 2 - tf.reduce_sum(v**2, 1))
    deep = layers.dense(tf.concat([layers.dense(pairs, 32, tf.nn.relu), layers.dense(h, 32, tf.nn.relu)], 1), 1)
    loss = click_loss(deep, y)
    return loss, train(loss, adam()), feeds


def series_of_seasons():
    """A series is parted into trend and season, words attend by shifts of equal likeness (Autoformer)."""
    x, y = tf.placeholder(tf.float32, [16, 96, 7]), tf.placeholder(tf.float32, [16, 96, 7])
    trend = lambda v: layers.average_pooling1d(v, 25, 1, "same")  # noqa: E731
    h, made = layers.dense(x, 32), 0.0
    for _ in range(2):
        q, k, v = (layers.dense(h, 32) for _ in range(3))
        likeness = tf.reduce_mean(tf.matmul(q, k, transpose_b=True), 0)
        by_shift = tf.stack([tf.reduce_mean(tf.linalg.diag_part(tf.roll(likeness, s, 1))) for s in range(0, 96, 24)])
        weights = tf.nn.softmax(by_shift)
        h += tf.add_n([weights[i] * tf.roll(v, s, 1) for i, s in enumerate(range(0, 96, 24))])
        made += layers.dense(trend(h), 7)
        h -= trend(h)
        h += layers.dense(layers.dense(h, 64, tf.nn.relu), 32)
    loss = tf.reduce_mean((layers.dense(h, 7) + made - y) ** 2)
    return loss, train(loss, adam()), [{x: normal(16, 96, 7), y: normal(16, 96, 7, seed=1)}]


def noise_undone_by_levels():
    """Noise is told from pictures by a net of levels that knows the time, with groups normed and places attended (DDPM)."""
    x, noise, t = tf.placeholder(tf.float32, [4, 32, 32, 3]), tf.placeholder(tf.float32, [4, 32, 32, 3]), tf.placeholder(tf.float32, [4])
    waves = t[:, None] * tf.exp(-tf.range(16.0) / 2)
    time = layers.dense(tf.concat([tf.sin(waves), tf.cos(waves)], 1), 64, tf.nn.swish)

    def normed(h):
        parts = tf.reshape(h, [4, -1, 8, int(h.shape[-1]) // 8])
        mean, variance = tf.nn.moments(parts, [1, 3], keepdims=True)
        return tf.reshape((parts - mean) * tf.rsqrt(variance + 1e-5), tf.shape(h))

    def part(h, width):
        inner = layers.conv2d(tf.nn.swish(normed(h)), width, 3, padding="same") + layers.dense(time, width)[:, None, None]
        inner = layers.conv2d(tf.nn.swish(normed(inner)), width, 3, padding="same")
        return inner + (h if h.shape[-1] == width else layers.conv2d(h, width, 1))

    shade = tf.cos(t)[:, None, None, None]
    a = part(layers.conv2d(shade * x + tf.sqrt(1 - shade**2) * noise, 32, 3, padding="same"), 32)
    b = part(layers.average_pooling2d(a, 2, 2), 64)
    flat = tf.reshape(layers.average_pooling2d(b, 2, 2), [4, 64, 64])
    low = tf.reshape(flat + attended(flat), [4, 8, 8, 64])
    b = part(tf.concat([tf.image.resize_nearest_neighbor(low, [16, 16]), b], -1), 64)
    a = part(tf.concat([tf.image.resize_nearest_neighbor(b, [32, 32]), a], -1), 32)
    loss = tf.reduce_mean((layers.conv2d(tf.nn.swish(normed(a)), 3, 3, padding="same") - noise) ** 2)
    return loss, train(loss, adam()), [{x: normal(4, 32, 32, 3), noise: normal(4, 32, 32, 3, seed=1), t: np.linspace(0.1, 1.4, 4)}]


def centres_of_things():
    """Heat maps of centres with sizes and offsets at them; peaks are the largest of their window (CenterNet)."""
    x = tf.placeholder(tf.float32, [4, 64, 64, 3])
    heat, place, size = tf.placeholder(tf.float32, [4, 16, 16, 5]), tf.placeholder(tf.int32, [4, 6]), tf.placeholder(tf.float32, [4, 6, 4])
    h = conv(conv(conv(x, 32, 3, 2), 64, 3, 2), 64)
    p = tf.clip_by_value(tf.sigmoid(layers.conv2d(conv(h, 32), 5, 1)), 1e-4, 1 - 1e-4)
    is_centre = tf.cast(tf.equal(heat, 1.0), tf.float32)
    found = is_centre * tf.log(p) * (1 - p) ** 2 + (1 - is_centre) * (1 - heat) ** 4 * tf.log(1 - p) * p**2
    peaks = p * tf.cast(tf.equal(p, layers.max_pooling2d(p, 3, 1, "same")), tf.float32)
    boxes = tf.gather(tf.reshape(layers.conv2d(conv(h, 32), 4, 1), [4, 256, 4]), place, batch_dims=1)
    loss = -tf.reduce_sum(found) / tf.reduce_sum(is_centre) + 0.1 * tf.reduce_mean(abs(boxes - size)) + 0.01 * tf.reduce_mean(peaks)
    random = np.random.RandomState(0)
    map_of = random.rand(4, 16, 16, 5).astype("f") ** 4
    map_of[random.rand(4, 16, 16, 5) < 0.01] = 1
    return loss, train(loss, adam()), [{x: normal(4, 64, 64, 3), heat: map_of, place: random.randint(256, size=[4, 6]), size: random.rand(4, 6, 4)}]


def masks_by_made_filters():
    """Every thing makes the filters that cut its own mask out of shared features (CondInst)."""
    x, wanted = tf.placeholder(tf.float32, [2, 64, 64, 3]), tf.placeholder(tf.float32, [2, 8, 16, 16])
    place = tf.placeholder(tf.int32, [2, 8])
    h = conv(conv(conv(x, 32, 3, 2), 64, 3, 2), 64)
    shared = tf.reshape(layers.conv2d(h, 8, 1), [2, 1, 256, 8])
    made = tf.gather(tf.reshape(layers.conv2d(h, 8 * 8 + 8 + 8 + 1, 3, padding="same"), [2, 256, 81]), place, batch_dims=1)
    first, bias, second, last = tf.split(made, [64, 8, 8, 1], -1)
    inner = tf.nn.relu(tf.matmul(tf.tile(shared, [1, 8, 1, 1]), tf.reshape(first, [2, 8, 8, 8])) + bias[:, :, None])
    p = tf.sigmoid(tf.matmul(inner, second[..., None])[..., 0] + last)
    flat = tf.reshape(wanted, [2, 8, 256])
    loss = 1 - tf.reduce_mean(2 * tf.reduce_sum(p * flat, -1) / (tf.reduce_sum(p**2 + flat**2, -1) + 1e-3))
    random = np.random.RandomState(0)
    return loss, train(loss, adam()), [{x: normal(2, 64, 64, 3), wanted: random.rand(2, 8, 16, 16) < 0.3, place: random.randint(256, size=[2, 8])}]


def proxies_of_classes():
    """Likeness to one proxy a class, hard pairs weigh more (proxy anchors)."""
    x, y, feeds = images(32, 3, 32)
    h = tf.nn.l2_normalize(layers.dense(tf.reduce_mean(conv(conv(conv(x, 32, 3, 2), 64, 3, 2), 64), [1, 2]), 64), 1)
    proxies = tf.nn.l2_normalize(tf.get_variable("proxies", [10, 64]), 1)
    cosine, own = tf.matmul(h, proxies, transpose_b=True), tf.one_hot(y, 10)
    near = tf.reduce_sum(own * tf.exp(-32 * (cosine - 0.1)), 0)
    far = tf.reduce_sum((1 - own) * tf.exp(32 * (cosine + 0.1) - 32), 0)
    present = tf.cast(tf.reduce_sum(own, 0) > 0, tf.float32)
    loss = tf.reduce_sum(tf.math.log1p(near) * present) / tf.reduce_sum(present) + tf.reduce_mean(tf.math.log1p(far))
    return loss, train(loss, adam()), feeds


def duels_with_priorities():
    """Value and advantage apart, the next action chosen by the online net, draws weighed by their priority (Rainbow's parts)."""
    s, after = tf.placeholder(tf.float32, [64, 24]), tf.placeholder(tf.float32, [64, 24])
    action, reward, end, weight = tf.placeholder(tf.int32, [64]), *(tf.placeholder(tf.float32, [64]) for _ in range(3))

    def net(v, name):
        with tf.variable_scope(name, reuse=tf.AUTO_REUSE):
            h = layers.dense(layers.dense(v, 128, tf.nn.relu, name="a"), 128, tf.nn.relu, name="b")
            advantage = layers.dense(h, 6, name="advantage")
            return layers.dense(h, 1, name="value") + advantage - tf.reduce_mean(advantage, 1, keepdims=True)

    best = tf.argmax(net(after, "online"), 1, output_type=tf.int32)
    pick = lambda values, i: tf.reduce_sum(values * tf.one_hot(i, 6), 1)  # noqa: E731
    target = tf.stop_gradient(reward + 0.99 * (1 - end) * pick(net(after, "target"), best))
    wrong = target - pick(net(s, "online"), action)
    huber = tf.where(abs(wrong) < 1, 0.5 * wrong**2, abs(wrong) - 0.5)
    loss = tf.reduce_mean(weight * huber)
    mine, theirs = (tf.get_collection(tf.GraphKeys.TRAINABLE_VARIABLES, scope) for scope in ("online", "target"))
    step = adam().minimize(loss, var_list=mine)
    with tf.control_dependencies([step]):
        moved = tf.group(*[t.assign(0.99 * t + 0.01 * m) for m, t in zip(mine, theirs)])
    random = np.random.RandomState(0)
    feed = {s: rows(64, 24), after: rows(64, 24, 1), action: random.randint(6, size=64), reward: random.randn(64), end: random.rand(64) < 0.1, weight: random.rand(64)}
    return loss, moved, [feed]


def waves_coupled():
    """Channels of a wave are mixed by a matrix with its determinant, half of them move the others (WaveGlow)."""
    x = tf.placeholder(tf.float32, [4, 160, 8])
    h, volume = x, 0.0
    for i in range(4):
        matrix = tf.get_variable(f"mix{i}", initializer=np.linalg.qr(np.random.RandomState(i).randn(8, 8))[0].astype("f"))
        volume += 160 * tf.math.log(abs(tf.linalg.det(matrix)))
        a, b = tf.split(tf.tensordot(h, matrix, 1), 2, -1)
        inner = layers.dense(a, 32)
        for rate in (1, 2, 4):
            gate, value = tf.split(layers.conv1d(inner, 64, 3, padding="same", dilation_rate=rate), 2, -1)
            inner += layers.dense(tf.tanh(value) * tf.sigmoid(gate), 32)
        scale, shift = tf.split(layers.dense(inner, 8, kernel_initializer=tf.zeros_initializer()), 2, -1)
        volume += tf.reduce_sum(scale, [1, 2])
        h = tf.concat([a, b * tf.exp(scale) + shift], -1)
    loss = tf.reduce_mean(0.5 * tf.reduce_sum(h**2, [1, 2]) - volume) / 1280
    return loss, train(loss, adam()), [{x: normal(4, 160, 8)}]
