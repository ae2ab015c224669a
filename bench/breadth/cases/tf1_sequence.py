"""Training graphs of TensorFlow 1: texts, speech and series."""

import numpy as np
import tensorflow as tf
from tensorflow.python.ops import rnn, rnn_cell

from cases.tf1_vision import cross_entropy, train

layers = tf.layers
BATCH, WORDS = 16, 5000


def adam(rate=1e-3):
    return tf.train.AdamOptimizer(rate)


def tokens(length=24, batch=BATCH, words=WORDS, seed=0):
    return np.random.RandomState(seed).randint(1, words, size=(batch, length))


def embedded(ids, depth=64, words=WORDS, name="words"):
    return tf.nn.embedding_lookup(tf.get_variable(name, [words, depth]), ids)


def classified(h, y, feed):
    loss = cross_entropy(layers.dense(h, 10), y)
    return loss, train(loss, adam()), [feed]


def text(length=24):
    """Placeholders of tokens and classes, and their feed."""
    ids, y = tf.placeholder(tf.int64, [BATCH, length]), tf.placeholder(tf.int64, [None])
    return ids, y, {ids: tokens(length), y: np.arange(BATCH) % 10}


def static_lstm():
    ids, y, feed = text()
    outputs, _ = rnn.static_rnn(rnn_cell.BasicLSTMCell(64), tf.unstack(embedded(ids), axis=1), dtype=tf.float32)
    return classified(outputs[-1], y, feed)


def dynamic_lstm():
    ids, y, feed = text(40)
    outputs, _ = rnn.dynamic_rnn(rnn_cell.LSTMCell(64, use_peepholes=True), embedded(ids), dtype=tf.float32)
    return classified(tf.reduce_mean(outputs, 1), y, feed)


def dynamic_gru():
    ids, y, feed = text(40)
    outputs, _ = rnn.dynamic_rnn(rnn_cell.GRUCell(64), embedded(ids), dtype=tf.float32)
    return classified(outputs[:, -1], y, feed)


def bilstm_of_lengths():
    ids, y, feed = text(40)
    lengths = tf.placeholder(tf.int32, [None])
    cells = rnn_cell.LSTMCell(48), rnn_cell.LSTMCell(48)
    _, states = rnn.bidirectional_dynamic_rnn(*cells, embedded(ids), lengths, dtype=tf.float32)
    return classified(tf.concat([state.h for state in states], 1), y, {**feed, lengths: np.arange(BATCH) * 2 + 5})


def lstm_of_changing_lengths():
    ids, y = tf.placeholder(tf.int64, [None, None]), tf.placeholder(tf.int64, [None])
    lengths = tf.reduce_sum(tf.to_int32(ids > 0), 1)
    outputs, state = rnn.dynamic_rnn(rnn_cell.LSTMCell(64), embedded(ids), lengths, dtype=tf.float32)
    loss, op, _ = classified(state.h, y, None)
    return loss, op, [{ids: tokens(10 + 3 * i), y: np.arange(BATCH) % 10} for i in range(10)]


def thirty_buckets():
    ids, y = tf.placeholder(tf.int64, [None, None]), tf.placeholder(tf.int64, [None])
    h = layers.conv1d(embedded(ids), 128, 5, padding="same", activation=tf.nn.relu)
    loss, op, _ = classified(tf.reduce_max(h, 1), y, None)
    return loss, op, [{ids: tokens(8 + 2 * i), y: np.arange(BATCH) % 10} for i in range(30)]


def lstm_language_model():
    ids = tf.placeholder(tf.int64, [BATCH, 21])
    cell = rnn_cell.MultiRNNCell([rnn_cell.BasicLSTMCell(128) for _ in range(2)])
    outputs, _ = rnn.dynamic_rnn(cell, embedded(ids[:, :-1], 128), dtype=tf.float32)
    loss = cross_entropy(layers.dense(tf.reshape(outputs, [-1, 128]), WORDS), tf.reshape(ids[:, 1:], [-1]))
    variables = tf.trainable_variables()
    gradients, _ = tf.clip_by_global_norm(tf.gradients(loss, variables), 5.0)
    return loss, tf.train.GradientDescentOptimizer(1.0).apply_gradients(zip(gradients, variables)), [{ids: tokens(21)}]


def seq2seq_attention():
    source, target = tf.placeholder(tf.int64, [BATCH, 20]), tf.placeholder(tf.int64, [BATCH, 12])
    memory, state = rnn.dynamic_rnn(rnn_cell.GRUCell(64), embedded(source), dtype=tf.float32)
    keys, cell, query = layers.dense(memory, 64), rnn_cell.GRUCell(64), tf.layers.Dense(64)
    score = tf.get_variable("score", [64])
    given, outputs = tf.unstack(embedded(target, name="target"), axis=1), []
    for i in range(11):
        shares = tf.nn.softmax(tf.reduce_sum(score * tf.tanh(keys + query(state)[:, None]), 2))
        context = tf.reduce_sum(shares[:, :, None] * memory, 1)
        with tf.variable_scope("decoder", reuse=tf.AUTO_REUSE):
            output, state = cell(tf.concat([given[i], context], 1), state)
        outputs.append(output)
    logits = layers.dense(tf.stack(outputs, 1), 2000)
    loss = cross_entropy(logits, target[:, 1:] % 2000)
    return loss, train(loss, adam()), [{source: tokens(20), target: tokens(12, seed=1)}]


def attention(q, kv, heads, mask=None):
    depth = int(q.shape[-1])
    parts = [tf.transpose(tf.reshape(layers.dense(x, depth), [BATCH, -1, heads, depth // heads]), [0, 2, 1, 3]) for x in (q, kv, kv)]
    scores = tf.matmul(parts[0], parts[1], transpose_b=True) / np.sqrt(depth / heads)
    shares = tf.nn.softmax(scores if mask is None else scores + mask)
    return layers.dense(tf.reshape(tf.transpose(tf.matmul(shares, parts[2]), [0, 2, 1, 3]), [BATCH, -1, depth]), depth)


def layer_norm(x, name):
    mean, variance = tf.nn.moments(x, [-1], keep_dims=True)
    scale = tf.get_variable(name + "_scale", [x.shape[-1]], initializer=tf.ones_initializer())
    return (x - mean) * tf.rsqrt(variance + 1e-6) * scale + tf.get_variable(name + "_offset", [x.shape[-1]])


def block(x, name, heads=4, memory=None, mask=None):
    x = layer_norm(x + attention(x, x, heads, mask), name + "1")
    if memory is not None:
        x = layer_norm(x + attention(x, memory, heads), name + "2")
    inner = layers.dense(x, 4 * int(x.shape[-1]), tf.nn.relu)
    return layer_norm(x + layers.dense(inner, int(x.shape[-1])), name + "3")


def transformer_encoder_decoder():
    source, target = tf.placeholder(tf.int64, [BATCH, 24]), tf.placeholder(tf.int64, [BATCH, 17])
    memory = embedded(source, 128) * 11.3
    for i in range(2):
        memory = block(memory, f"e{i}")
    h = embedded(target[:, :-1], 128, name="target") * 11.3
    mask = (1 - tf.matrix_band_part(tf.ones([16, 16]), -1, 0)) * -1e9
    for i in range(2):
        h = block(h, f"d{i}", memory=memory, mask=mask)
    marks = tf.one_hot(target[:, 1:] % 2000, 2000) * 0.9 + 0.1 / 2000
    loss = tf.reduce_mean(tf.nn.softmax_cross_entropy_with_logits_v2(labels=marks, logits=layers.dense(h, 2000)))
    return loss, train(loss, adam(1e-4)), [{source: tokens(24), target: tokens(17, seed=1)}]


def masked_language_model():
    ids, places = tf.placeholder(tf.int32, [BATCH, 32]), tf.placeholder(tf.int32, [BATCH, 5])
    mask = (1 - tf.to_float(tf.placeholder_with_default(np.ones((BATCH, 32), "i"), [BATCH, 32]))[:, None, None]) * -1e4
    table = tf.get_variable("words", [WORDS, 128])
    h = layer_norm(tf.gather(table, ids) + tf.get_variable("places", [32, 128]), "e")
    for i in range(2):
        h = block(layers.dropout(h, 0.0, training=True), f"b{i}", mask=mask)
    flat = tf.reshape(places + tf.range(BATCH)[:, None] * 32, [-1])
    h = layer_norm(layers.dense(tf.gather(tf.reshape(h, [-1, 128]), flat), 128, tf.nn.relu), "t")
    loss = cross_entropy(tf.matmul(h, table, transpose_b=True), tf.reshape(tf.to_int64(places) * 7, [-1]))
    random = np.random.RandomState(0)
    return loss, train(loss, adam(1e-4)), [{ids: tokens(32), places: random.randint(32, size=(BATCH, 5))}]


def text_cnn():
    ids, y, feed = text(48)
    x = embedded(ids)[..., None]
    parts = [tf.reduce_max(layers.conv2d(x, 64, [size, 64], activation=tf.nn.relu), [1, 2]) for size in (3, 4, 5)]
    return classified(tf.concat(parts, 1), y, feed)


def tcn():
    x, y = tf.placeholder(tf.float32, [None, 200, 8]), tf.placeholder(tf.float32, [None, 200, 1])
    h = layers.conv1d(x, 32, 1)
    for rate in (1, 2, 4, 8):
        inner = tf.pad(h, [[0, 0], [2 * rate, 0], [0, 0]])
        h += layers.conv1d(inner, 32, 3, dilation_rate=rate, activation=tf.nn.relu)
    loss = tf.losses.huber_loss(y, layers.dense(h, 1))
    random = np.random.RandomState(0)
    return loss, train(loss, adam()), [{x: random.randn(16, 200, 8).astype("f"), y: random.randn(16, 200, 1).astype("f")}]


def wavenet():
    ids = tf.placeholder(tf.int64, [None, 513])
    h, skips = layers.conv1d(tf.one_hot(ids[:, :-1], 64), 32, 1), 0
    for i in range(6):
        past = tf.pad(h, [[0, 0], [2**i, 0], [0, 0]])
        inner = layers.conv1d(past, 64, 2, dilation_rate=2**i)
        inner = tf.tanh(inner[..., :32]) * tf.sigmoid(inner[..., 32:])
        skips, h = skips + layers.conv1d(inner, 64, 1), h + layers.conv1d(inner, 32, 1)
    loss = cross_entropy(layers.conv1d(tf.nn.relu(skips), 64, 1), ids[:, 1:])
    return loss, train(loss, adam()), [{ids: tokens(513, 4, 64)}]


def ctc_speech():
    x = tf.placeholder(tf.float32, [8, 100, 40])
    labels, lengths = tf.sparse_placeholder(tf.int32), tf.placeholder(tf.int32, [None])
    h = layers.conv1d(x, 64, 5, 2, "same", activation=tf.nn.relu)
    h, _ = rnn.dynamic_rnn(rnn_cell.GRUCell(64), h, lengths, dtype=tf.float32)
    loss = tf.reduce_mean(tf.nn.ctc_loss(labels, tf.transpose(layers.dense(h, 28), [1, 0, 2]), lengths))
    random = np.random.RandomState(0)
    places = np.array([(i, j) for i in range(8) for j in range(10)])
    values = tf.SparseTensorValue(places, random.randint(27, size=80).astype("i"), [8, 10])
    return loss, train(loss, adam()), [{x: random.randn(8, 100, 40).astype("f"), labels: values, lengths: np.full(8, 50)}]


def crf_tagger():
    ids, tags = tf.placeholder(tf.int64, [BATCH, 20]), tf.placeholder(tf.int32, [BATCH, 20])
    h, _ = rnn.bidirectional_dynamic_rnn(rnn_cell.LSTMCell(32), rnn_cell.LSTMCell(32), embedded(ids), dtype=tf.float32)
    scores, moves = layers.dense(tf.concat(h, 2), 9), tf.get_variable("moves", [9, 9])
    likelihood, _ = tf.contrib.crf.crf_log_likelihood(scores, tags, tf.fill([BATCH], 20), moves)
    loss = tf.reduce_mean(-likelihood)
    return loss, train(loss, adam()), [{ids: tokens(20), tags: tokens(20, words=9)}]


def pointer_network():
    x, y = tf.placeholder(tf.float32, [BATCH, 20, 2]), tf.placeholder(tf.int64, [BATCH, 20])
    memory, state = rnn.dynamic_rnn(rnn_cell.LSTMCell(64), x, dtype=tf.float32)
    cell, keys, query, score = rnn_cell.LSTMCell(64), layers.dense(memory, 64), tf.layers.Dense(64), tf.get_variable("v", [64])
    step, loss = tf.zeros([BATCH, 2]), 0.0
    for i in range(10):
        with tf.variable_scope("decoder", reuse=tf.AUTO_REUSE):
            output, state = cell(step, state)
        loss += cross_entropy(tf.reduce_sum(score * tf.tanh(keys + query(output)[:, None]), 2), y[:, i])
        step = tf.batch_gather(x, y[:, i : i + 1])[:, 0]
    random = np.random.RandomState(0)
    orders = np.array([random.permutation(20) for _ in range(BATCH)])
    return loss, train(loss, adam()), [{x: random.rand(BATCH, 20, 2).astype("f"), y: orders}]


def memory_network():
    story, question, y = (tf.placeholder(tf.int64, shape) for shape in ([BATCH, 50, 8], [BATCH, 8], [BATCH]))
    state = tf.reduce_sum(embedded(question, 64, 200, "q"), 1)
    for hop in range(3):
        keys, values = (tf.reduce_sum(embedded(story, 64, 200, f"{part}{hop}"), 2) for part in "kv")
        shares = tf.nn.softmax(tf.reduce_sum(keys * state[:, None], 2))
        state = layers.dense(state, 64) + tf.reduce_sum(values * shares[..., None], 1)
    feed = {story: tokens(50 * 8, words=200).reshape(BATCH, 50, 8), question: tokens(8, words=200), y: tokens(1, words=200)[:, 0]}
    loss = cross_entropy(layers.dense(state, 200), y)
    return loss, train(loss, adam()), [feed]


def highway():
    x, y = tf.placeholder(tf.float32, [None, 200]), tf.placeholder(tf.int64, [None])
    h = layers.dense(x, 100, tf.nn.relu)
    for _ in range(8):
        gate = layers.dense(h, 100, tf.sigmoid, bias_initializer=tf.constant_initializer(-1.0))
        h = gate * layers.dense(h, 100, tf.nn.relu) + (1 - gate) * h
    return classified(h, y, {x: np.random.RandomState(0).randn(64, 200).astype("f"), y: np.arange(64) % 10})


def scan_recurrence():
    x, y = tf.placeholder(tf.float32, [None, 50, 16]), tf.placeholder(tf.int64, [None])
    weights = tf.get_variable("w", [64, 64], initializer=tf.orthogonal_initializer())
    inputs = tf.transpose(layers.dense(x, 64), [1, 0, 2])
    states = tf.scan(lambda h, v: tf.tanh(tf.matmul(h, weights) + v), inputs, tf.zeros_like(inputs[0]))
    return classified(states[-1], y, {x: np.random.RandomState(0).randn(16, 50, 16).astype("f"), y: np.arange(16) % 10})


def beam_search_risk():
    x = tf.placeholder(tf.float32, [8, 32])
    moves, first = layers.dense(x, 50), tf.get_variable("moves", [50, 50])
    scores, last = tf.nn.top_k(tf.nn.log_softmax(moves), 4)
    for _ in range(8):
        following = scores[..., None] + tf.nn.log_softmax(tf.gather(first, last))
        scores, index = tf.nn.top_k(tf.reshape(following, [8, 200]), 4)
        last = index % 50
    costs = tf.to_float(last) / 50
    loss = tf.reduce_mean(tf.reduce_sum(tf.nn.softmax(scores) * costs, 1))
    return loss, train(loss, adam()), [{x: np.random.RandomState(0).randn(8, 32).astype("f")}]


def convolutional_lstm():
    x, y = tf.placeholder(tf.float32, [4, 8, 32, 32, 2]), tf.placeholder(tf.float32, [4, 32, 32, 1])
    cell = tf.contrib.rnn.ConvLSTMCell(2, [32, 32, 2], 16, [3, 3])
    outputs, _ = rnn.dynamic_rnn(cell, x, dtype=tf.float32)
    loss = tf.reduce_mean(tf.square(layers.conv2d(outputs[:, -1], 1, 1) - y))
    random = np.random.RandomState(0)
    return loss, train(loss, adam()), [{x: random.rand(4, 8, 32, 32, 2).astype("f"), y: random.rand(4, 32, 32, 1).astype("f")}]
