"""Training graphs of TensorFlow 1: documents, letters, rare words, forecasts, tasks, rankings, graphs of changing size. As tf1_vision.py."""

import numpy as np
import tensorflow as tf
from tensorflow.python.ops import rnn, rnn_cell

from cases.tf1_further import normal
from cases.tf1_other import rows
from cases.tf1_sequence import adam, block, embedded, layer_norm, tokens
from cases.tf1_sparse import click_loss, fields, graph_of
from cases.tf1_vision import cross_entropy, train

layers = tf.layers


def documents_by_sentences():
    """Words make sentences, sentences make documents, by recurrences and attention (hierarchical attention)."""
    ids, y = tf.placeholder(tf.int64, [8, 6, 16]), tf.placeholder(tf.int64, [None])
    long = tf.placeholder(tf.int32, [8, 6])

    def gathered(h, lengths, name):
        cells = rnn_cell.GRUCell(32), rnn_cell.GRUCell(32)
        outputs, _ = rnn.bidirectional_dynamic_rnn(*cells, h, lengths, dtype=tf.float32, scope=name)
        h = tf.concat(outputs, 2)
        share = layers.dense(layers.dense(h, 32, tf.tanh), 1, use_bias=False)
        return tf.reduce_sum(tf.nn.softmax(share, 1) * h, 1)

    h = gathered(embedded(tf.reshape(ids, [48, 16]), 48), tf.reshape(long, [48]), "words_in")
    h = gathered(tf.reshape(h, [8, 6, 64]), tf.fill([8], 6), "sentences_in")
    loss = cross_entropy(layers.dense(h, 10), y)
    feed = {ids: tokens(16, 48).reshape(8, 6, 16), long: np.random.RandomState(0).randint(5, 17, size=(8, 6)), y: np.arange(8)}
    return loss, train(loss, adam()), [feed]


def words_from_letters():
    """Convolutions over the letters of each word, highways, and a recurrence that tells the next word (ELMo)."""
    letters, y = tf.placeholder(tf.int32, [8, 16, 12]), tf.placeholder(tf.int64, [8, 16])
    h = tf.reshape(embedded(letters, 16, 100), [128, 1, 12, 16])
    parts = []
    for size, width in ((1, 16), (2, 32), (3, 48), (4, 64)):
        parts.append(tf.squeeze(layers.max_pooling2d(layers.conv2d(h, width, [1, size], activation=tf.tanh), [1, 13 - size], 1), [1, 2]))
    h = tf.concat(parts, 1)
    for _ in range(2):
        gate = layers.dense(h, 160, tf.sigmoid, bias_initializer=tf.constant_initializer(-2.0))
        h = gate * layers.dense(h, 160, tf.nn.relu) + (1 - gate) * h
    cell = rnn_cell.MultiRNNCell([rnn_cell.LSTMCell(96, num_proj=48), rnn_cell.LSTMCell(96, num_proj=48, cell_clip=3.0)])
    outputs, _ = rnn.dynamic_rnn(cell, tf.reshape(h, [8, 16, 160]), dtype=tf.float32)
    loss = cross_entropy(layers.dense(outputs, 1000), y)
    return loss, train(loss, adam()), [{letters: tokens(192, 8, 100).reshape(8, 16, 12), y: tokens(16, 8, 1000)}]


def pieces_between_entities():
    """Largest features before, between and behind two words, sentences weighed in their bag (PCNN)."""
    ids, places, y = tf.placeholder(tf.int32, [32, 40]), tf.placeholder(tf.int32, [2, 32, 40]), tf.placeholder(tf.int64, [None])
    mask, bags = tf.placeholder(tf.float32, [32, 40, 3]), tf.placeholder(tf.int32, [32])
    table = tf.get_variable("places", [2, 81, 5])
    h = tf.concat([embedded(ids, 50), tf.nn.embedding_lookup(table[0], places[0]), tf.nn.embedding_lookup(table[1], places[1])], 2)
    h = layers.conv1d(h, 96, 3, padding="same")
    h = tf.tanh(tf.reshape(tf.reduce_max(h[..., None] + (mask[:, :, None] - 1) * 100, 1), [32, 288]))
    share = tf.exp(tf.tanh(layers.dense(h, 1)))
    whole = tf.math.segment_sum(share * h, bags) / tf.math.segment_sum(share, bags)
    loss = cross_entropy(layers.dense(whole, 20), y)
    ends = np.sort(np.random.RandomState(0).randint(1, 39, size=(32, 2)), 1)
    at = np.arange(40)
    far = np.clip(at - ends.T[:, :, None], -40, 40) + 40
    piece = (at > ends[:, :1]).astype(int) + (at > ends[:, 1:])
    feed = {ids: tokens(40, 32), places: far, mask: np.eye(3)[piece], bags: np.arange(32) // 4, y: np.arange(8)}
    return loss, train(loss, adam()), [feed]


def sentences_compared():
    """Two sentences aligned softly word by word, compared, and put together again (ESIM)."""
    a, b, y = tf.placeholder(tf.int32, [16, 20]), tf.placeholder(tf.int32, [16, 24]), tf.placeholder(tf.int64, [None])
    table = tf.get_variable("words", [3000, 48])
    forth, back = rnn_cell.LSTMCell(32), rnn_cell.LSTMCell(32)
    u, v = (tf.concat(rnn.bidirectional_dynamic_rnn(forth, back, tf.nn.embedding_lookup(table, i), dtype=tf.float32)[0], 2) for i in (a, b))
    scores = tf.matmul(u, v, transpose_b=True)
    masked = scores + (tf.cast(tf.not_equal(b, 0), tf.float32)[:, None] - 1) * 1e6
    from_v = tf.matmul(tf.nn.softmax(masked), v)
    from_u = tf.matmul(tf.nn.softmax(scores, 1), u, transpose_a=True)
    made = []
    for own, other in ((u, from_v), (v, from_u)):
        with tf.variable_scope("compose", reuse=tf.AUTO_REUSE):
            h = layers.dense(tf.concat([own, other, own - other, own * other], 2), 48, tf.nn.relu, name="h")
            h, _ = rnn.dynamic_rnn(rnn_cell.GRUCell(48), h, dtype=tf.float32)
        made += [tf.reduce_mean(h, 1), tf.reduce_max(h, 1)]
    loss = cross_entropy(layers.dense(layers.dense(tf.concat(made, 1), 64, tf.tanh), 3), y)
    return loss, train(loss, adam()), [{a: tokens(20, 16, 3000), b: tokens(24, 16, 3000, 1), y: np.arange(16) % 3}]


def rare_words_apart():
    """Frequent words in one softmax, rare ones in narrow softmaxes of their own: as many rows as there are (adaptive softmax)."""
    ids, y = tf.placeholder(tf.int64, [8, 32]), tf.placeholder(tf.int64, [8, 32])
    h, _ = rnn.dynamic_rnn(rnn_cell.LSTMCell(64), embedded(ids), dtype=tf.float32)
    h, truth = tf.reshape(h, [-1, 64]), tf.reshape(y, [-1])
    bounds, first = (500, 2000, 5000), truth
    loss = 0.0
    for i, (low, high, width) in enumerate(((500, 2000, 32), (2000, 5000, 16))):
        here = tf.logical_and(truth >= low, truth < high)
        first = tf.where(here, tf.fill([256], tf.constant(500 + i, tf.int64)), first)
        part, goal = tf.boolean_mask(h, here), tf.boolean_mask(truth, here) - low
        logits = layers.dense(layers.dense(part, width, use_bias=False), high - low, use_bias=False)
        loss += tf.reduce_sum(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=goal, logits=logits))
    loss += tf.reduce_sum(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=first, logits=layers.dense(h, bounds[0] + 2)))
    loss /= 256
    random, feeds = np.random.RandomState(0), []
    for i in range(40):
        feeds.append({ids: tokens(32, 8, seed=i), y: np.minimum(random.zipf(1.25, size=(8, 32)), 4999)})
    return loss, train(loss, adam()), feeds


def words_by_tree_codes():
    """Each word is a way down a tree of choices, some longer, some shorter (hierarchical softmax)."""
    near, nodes = tf.placeholder(tf.int32, [256, 6]), tf.placeholder(tf.int32, [256, 14])
    turns, mask = tf.placeholder(tf.float32, [256, 14]), tf.placeholder(tf.float32, [256, 14])
    h = tf.reduce_mean(embedded(near, 64, 8000), 1)
    inner = tf.nn.embedding_lookup(tf.get_variable("nodes", [8000, 64]), nodes)
    scores = tf.matmul(inner, h[..., None])[..., 0]
    loss = tf.reduce_sum(mask * tf.nn.sigmoid_cross_entropy_with_logits(labels=turns, logits=scores)) / 256
    random = np.random.RandomState(0)
    depth = random.randint(6, 15, size=(256, 1))
    feed = {near: random.randint(8000, size=(256, 6)), nodes: random.randint(8000, size=(256, 14))}
    feed |= {turns: random.randint(2, size=(256, 14)), mask: np.arange(14) < depth}
    return loss, train(loss, tf.train.GradientDescentOptimizer(0.2)), [feed]


def sounds_by_pyramid():
    """Recurrences that halve the time twice, and a decoder that listens where it must (listen, attend and spell)."""
    sound, y = tf.placeholder(tf.float32, [8, 48, 20]), tf.placeholder(tf.int32, [8, 11])
    h = sound
    for i in range(3):
        if i:
            h = tf.reshape(h, [8, int(h.shape[1]) // 2, 2 * int(h.shape[2])])
        outputs, _ = rnn.bidirectional_dynamic_rnn(rnn_cell.LSTMCell(24), rnn_cell.LSTMCell(24), h, dtype=tf.float32, scope=f"p{i}")
        h = tf.concat(outputs, 2)
    keys, cell, query, out = layers.dense(h, 48), rnn_cell.LSTMCell(48), layers.Dense(48), layers.Dense(30)
    said = tf.nn.embedding_lookup(tf.get_variable("letters", [30, 16]), y)
    state, seen, logits = cell.zero_state(8, tf.float32), tf.zeros([8, 48]), []
    for t in range(10):
        made, state = cell(tf.concat([said[:, t], seen], 1), state)
        share = tf.nn.softmax(tf.einsum("btd,bd->bt", keys, query(made)) / 7)
        seen = tf.einsum("bt,btd->bd", share, h)
        logits.append(out(tf.concat([made, seen], 1)))
    loss = cross_entropy(tf.stack(logits, 1), y[:, 1:])
    return loss, train(loss, adam()), [{sound: normal(8, 48, 20), y: tokens(11, 8, 30)}]


def likelihood_of_series():
    """Many series, each scaled by its own mean, whose next value has a negative binomial or Student's density (DeepAR)."""
    x, kind, times = tf.placeholder(tf.float32, [32, 31]), tf.placeholder(tf.int32, [32]), tf.placeholder(tf.float32, [32, 30, 4])
    scale = 1 + tf.reduce_mean(x[:, :20], 1, keepdims=True)
    which = tf.tile(embedded(kind, 8, 100)[:, None], [1, 30, 1])
    h = tf.concat([(x[:, :-1] / scale)[..., None], times, which], 2)
    cell = rnn_cell.MultiRNNCell([rnn_cell.DropoutWrapper(rnn_cell.LSTMCell(40), output_keep_prob=1.0) for _ in range(2)])
    h, _ = rnn.dynamic_rnn(cell, h, dtype=tf.float32)
    mean = tf.nn.softplus(layers.dense(h, 1))[..., 0] * scale + 1e-3
    size = tf.nn.softplus(layers.dense(h, 1))[..., 0] / tf.sqrt(scale) + 1e-3
    r, goal = 1 / size, x[:, 1:]
    fit = tf.lgamma(goal + r) - tf.lgamma(r) - tf.lgamma(goal + 1) - r * tf.log1p(size * mean) + goal * tf.log(size * mean / (1 + size * mean))
    loss = -tf.reduce_mean(fit)
    random = np.random.RandomState(0)
    return loss, train(loss, adam()), [{x: random.poisson(5, size=(32, 31)), kind: random.randint(100, size=32), times: random.randn(32, 30, 4)}]


def series_with_seasons():
    """Convolutions, a recurrence, one that skips a day, and a linear part beside them (LSTNet)."""
    x, y = tf.placeholder(tf.float32, [32, 53, 12]), tf.placeholder(tf.float32, [32, 12])
    c = tf.nn.relu(layers.conv1d(x, 32, 6))
    _, h = rnn.dynamic_rnn(rnn_cell.GRUCell(32), c, dtype=tf.float32, scope="all")
    daily = tf.reshape(tf.transpose(tf.reshape(c, [32, 6, 8, 32]), [0, 2, 1, 3]), [256, 6, 32])
    _, s = rnn.dynamic_rnn(rnn_cell.GRUCell(8), daily, dtype=tf.float32, scope="daily")
    line = layers.dense(tf.reshape(tf.transpose(x[:, -7:], [0, 2, 1]), [384, 7]), 1)
    made = layers.dense(tf.concat([h, tf.reshape(s, [32, 64])], 1), 12) + tf.reshape(line, [32, 12])
    loss = tf.reduce_mean(abs(made - y)) + 0.1 * tf.losses.huber_loss(y, made)
    return loss, train(loss, adam()), [{x: normal(32, 53, 12), y: normal(32, 12, seed=1)}]


def clicks_in_order():
    """A transformer over earlier clicks; the next one beside a drawn other, padding left out (SASRec)."""
    ids, good, bad = (tf.placeholder(tf.int32, [16, 40]) for _ in range(3))
    table = tf.get_variable("items", [4000, 48])
    mask = tf.cast(tf.not_equal(ids, 0), tf.float32)[..., None]
    h = (tf.nn.embedding_lookup(table, ids) * 48**0.5 + tf.get_variable("places", [40, 48])) * mask
    late = (1 - tf.matrix_band_part(tf.ones([40, 40]), -1, 0)) * -1e9
    for i in range(2):
        h = block(h, f"b{i}", 2, mask=late) * mask
    h = layer_norm(h, "last")
    a, b = (tf.reduce_sum(tf.nn.embedding_lookup(table, each) * h, -1) for each in (good, bad))
    known = tf.cast(tf.not_equal(good, 0), tf.float32)
    loss = -tf.reduce_sum(known * (tf.log(tf.sigmoid(a) + 1e-24) + tf.log(1 - tf.sigmoid(b) + 1e-24))) / tf.reduce_sum(known)
    early = np.arange(40) < np.random.RandomState(0).randint(2, 30, size=(16, 1))
    feed = {each: tokens(40, 16, 4000, i) * ~early for i, each in enumerate((ids, good, bad))}
    return loss, train(loss, tf.train.AdamOptimizer(1e-3, beta2=0.98)), [feed]


def experts_shared_by_tasks():
    """Experts that tasks share and experts of their own, gated for each task, in two layers (MMOE, PLE)."""
    ids, x, y, feeds = fields(12)
    h = tf.concat([tf.reshape(embedded(ids, 16, 10000), [-1, 192]), x], 1)
    inputs = [h, h, h]
    for i in range(2):
        groups = [tf.stack([layers.dense(each, 64, tf.nn.relu, name=f"e{i}_{j}_{k}") for k in range(3)], 1) for j, each in enumerate(inputs)]
        made = []
        for j, each in enumerate(inputs):
            experts = tf.concat([groups[j], groups[2]] if j < 2 else groups, 1)
            share = tf.nn.softmax(layers.dense(each, int(experts.shape[1]), name=f"g{i}_{j}"))
            made.append(tf.reduce_sum(share[..., None] * experts, 1))
        inputs = made
    a, b = (layers.dense(layers.dense(each, 32, tf.nn.relu), 1) for each in inputs[:2])
    spread = [tf.get_variable(f"s{i}", [], initializer=tf.zeros_initializer()) for i in range(2)]
    loss = tf.exp(-spread[0]) * click_loss(a, y) + tf.exp(-spread[1]) * tf.reduce_mean(tf.square(b[:, 0] - x[:, 0])) + spread[0] + spread[1]
    return loss, train(loss, adam()), feeds


def fields_that_attend():
    """Fields of a click attend to each other; pairs by a matrix of each, fields weighed by their own means (AutoInt, FiBiNet)."""
    ids, x, y, feeds = fields(12)
    v = embedded(ids, 16, 10000)
    weights = layers.dense(layers.dense(tf.reduce_mean(v, 2), 4, tf.nn.relu), 12, tf.nn.relu)
    scaled, h = v * weights[..., None], v
    for _ in range(2):
        q, k, u = (tf.transpose(tf.reshape(layers.dense(h, 32, use_bias=False), [-1, 12, 2, 16]), [0, 2, 1, 3]) for _ in range(3))
        made = tf.matmul(tf.nn.softmax(tf.matmul(q, k, transpose_b=True)), u)
        h = tf.nn.relu(tf.reshape(tf.transpose(made, [0, 2, 1, 3]), [-1, 12, 32]) + layers.dense(h, 32, use_bias=False))
    a, b = zip(*[(i, j) for i in range(12) for j in range(i)])
    turned = layers.dense(scaled, 16, use_bias=False)
    pairs = tf.gather(turned, a, axis=1) * tf.gather(scaled, b, axis=1)
    h = tf.concat([tf.reshape(h, [-1, 384]), tf.reshape(pairs, [-1, 66 * 16]), x], 1)
    loss = click_loss(layers.dense(layers.dense(h, 64, tf.nn.relu), 1), y)
    return loss, train(loss, adam()), feeds


def pairs_weighed_by_gain():
    """Pairs of answers weighed by what swapping them would change in the ranking's gain (LambdaRank)."""
    x, mark = tf.placeholder(tf.float32, [16, 40, 32]), tf.placeholder(tf.float32, [16, 40])
    scores = layers.dense(layers.dense(layers.dense(x, 64, tf.nn.relu), 32, tf.nn.relu), 1)[..., 0]
    order = tf.argsort(tf.argsort(tf.stop_gradient(scores), direction="DESCENDING"))
    share = 1 / tf.log(2.0 + tf.cast(order, tf.float32))
    gain = tf.pow(2.0, mark) - 1
    best = tf.reduce_sum(tf.sort(gain, direction="DESCENDING") / tf.log(2.0 + tf.range(40.0)), 1)[:, None, None] + 1e-6
    change = abs((gain[:, :, None] - gain[:, None]) * (share[:, :, None] - share[:, None])) / best
    better = tf.cast(mark[:, :, None] > mark[:, None], tf.float32)
    loss = tf.reduce_sum(better * change * tf.nn.softplus(scores[:, None] - scores[:, :, None])) / 16
    return loss, train(loss, adam()), [{x: normal(16, 40, 32), mark: np.random.RandomState(0).randint(4, size=(16, 40))}]


def nodes_kept_by_score():
    """The best half of the nodes of graphs whose sizes change is kept in every layer, edges with them (SAGPool)."""
    x, graph, y = tf.placeholder(tf.float32, [None, 32]), tf.placeholder(tf.int32, [None]), tf.placeholder(tf.int64, [16])
    source, target = tf.placeholder(tf.int32, [None]), tf.placeholder(tf.int32, [None])
    h, a, b, g, made = x, source, target, graph, 0.0
    for i in range(2):
        count = tf.shape(h)[0]
        h = tf.nn.relu(layers.dense(h, 48) + tf.math.unsorted_segment_mean(tf.gather(layers.dense(h, 48), a), b, count))
        score = tf.tanh(layers.dense(h, 1)[:, 0])
        kept = tf.sort(tf.nn.top_k(score, count // 2, sorted=False)[1])
        place = tf.scatter_nd(kept[:, None], tf.range(1, count // 2 + 1), [count]) - 1
        h, g = tf.gather(h, kept) * tf.gather(score, kept)[:, None], tf.gather(g, kept)
        a, b = tf.gather(place, a), tf.gather(place, b)
        both = tf.logical_and(a >= 0, b >= 0)
        a, b = tf.boolean_mask(a, both), tf.boolean_mask(b, both)
        made += tf.concat([tf.math.unsorted_segment_mean(h, g, 16), tf.maximum(tf.math.unsorted_segment_max(h, g, 16), -10.0)], 1)
    loss = cross_entropy(layers.dense(layers.dense(made, 32, tf.nn.relu), 10), y)
    feeds = []
    for i in range(60):
        count = 280 + 3 * i
        u, v = graph_of(count, 4 * count, i)
        feeds.append({x: rows(count, 32, i), graph: np.sort(np.arange(count) % 16), source: u, target: v, y: np.arange(16) % 10})
    return loss, train(loss, adam()), feeds


def edges_that_change_weighed():
    """Shares over the edges of each node, as many as the step's graph has, two layers of heads (GAT on changing graphs)."""
    x, y = tf.placeholder(tf.float32, [None, 32]), tf.placeholder(tf.int64, [None])
    source, target = tf.placeholder(tf.int32, [None]), tf.placeholder(tf.int32, [None])
    h = x
    for i in range(2):
        count = tf.shape(h)[0]
        h = tf.reshape(layers.dense(h, 64, use_bias=False), [-1, 4, 16])
        own, other = (tf.reduce_sum(h * tf.get_variable(f"{n}{i}", [4, 16]), -1) for n in ("own", "other"))
        score = tf.nn.leaky_relu(tf.gather(own, target) + tf.gather(other, source), 0.2)
        most = tf.stop_gradient(tf.gather(tf.math.unsorted_segment_max(score, target, count), target))
        share = tf.exp(score - most)
        share /= tf.gather(tf.math.unsorted_segment_sum(share, target, count), target) + 1e-9
        h = tf.nn.elu(tf.reshape(tf.math.unsorted_segment_sum(share[..., None] * tf.gather(h, source), target, count), [-1, 64]))
    loss, feeds = cross_entropy(layers.dense(h, 7), y), []
    for i in range(80):
        count = 200 + 2 * i
        u, v = graph_of(count, 900 + 11 * i, i)
        feeds.append({x: rows(count, 32, i), y: np.arange(count) % 7, source: u, target: v})
    return loss, train(loss, adam()), feeds
