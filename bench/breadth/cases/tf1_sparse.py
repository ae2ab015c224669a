"""Training graphs of TensorFlow 1: graphs of nodes and edges, embeddings, recommenders, experts."""

import numpy as np
import tensorflow as tf

from cases.tf1_sequence import adam
from cases.tf1_vision import cross_entropy, train

layers = tf.layers


def routed_experts():
    x, y = tf.placeholder(tf.float32, [None, 64]), tf.placeholder(tf.int64, [None])
    gates = tf.nn.softmax(layers.dense(x, 4))
    chosen = tf.argmax(gates, 1, output_type=tf.int32)
    parts = tf.dynamic_partition(x, chosen, 4)
    places = tf.dynamic_partition(tf.range(tf.shape(x)[0]), chosen, 4)
    results = [layers.dense(layers.dense(part, 128, tf.nn.relu), 64) for part in parts]
    h = tf.dynamic_stitch(places, results) * tf.reduce_max(gates, 1, keepdims=True)
    loss = cross_entropy(layers.dense(h, 10), y)
    random = np.random.RandomState(0)
    feeds = [{x: random.randn(256, 64).astype("f"), y: random.randint(10, size=256)} for _ in range(8)]
    return loss, train(loss, adam()), feeds


def graph_of(nodes, edges, seed=0):
    random = np.random.RandomState(seed)
    return random.randint(nodes, size=edges), np.sort(random.randint(nodes, size=edges))


def mini_batches_of_edges():
    """A new number of edges in each step."""
    x, y = tf.placeholder(tf.float32, [None, 64]), tf.placeholder(tf.int64, [None])
    source, target = tf.placeholder(tf.int32, [None]), tf.placeholder(tf.int32, [None])
    h = x
    for _ in range(2):
        sums = tf.unsorted_segment_sum(tf.gather(layers.dense(h, 64), source), target, tf.shape(h)[0])
        h = tf.nn.relu(sums + layers.dense(h, 64))
    loss = cross_entropy(layers.dense(h, 10), y)
    random, feeds = np.random.RandomState(0), []
    for i in range(300):
        a, b = graph_of(500, 3000 + 7 * i, i)
        feeds.append({x: random.randn(500, 64).astype("f"), y: random.randint(10, size=500), source: a, target: b})
    return loss, train(loss, adam()), feeds


def sparse_graph_convolution():
    x, y, matrix = tf.placeholder(tf.float32, [1000, 300]), tf.placeholder(tf.int64, [None]), tf.sparse_placeholder(tf.float32)
    h = x
    for width in (64, 64):
        weights = tf.get_variable(f"w{width}_{h.shape[1]}", [h.shape[1], width])
        h = tf.nn.relu(tf.sparse_tensor_dense_matmul(matrix, tf.matmul(h, weights)))
    loss = cross_entropy(layers.dense(h, 7), y)
    random = np.random.RandomState(0)
    places = np.unique(np.stack(graph_of(1000, 6000), 1), axis=0)
    value = tf.SparseTensorValue(places, random.rand(len(places)).astype("f"), [1000, 1000])
    return loss, train(loss, adam()), [{x: random.randn(1000, 300).astype("f"), y: random.randint(7, size=1000), matrix: value}]


def graph_attention():
    x, y = tf.placeholder(tf.float32, [400, 128]), tf.placeholder(tf.int64, [None])
    bias = tf.placeholder(tf.float32, [400, 400])
    heads = []
    for _ in range(4):
        h = layers.dense(x, 16, use_bias=False)
        scores = tf.nn.leaky_relu(layers.dense(h, 1) + tf.transpose(layers.dense(h, 1)))
        heads.append(tf.nn.elu(tf.matmul(tf.nn.softmax(scores + bias), h)))
    loss = cross_entropy(layers.dense(tf.concat(heads, 1), 7), y)
    random = np.random.RandomState(0)
    feed = {x: random.randn(400, 128).astype("f"), y: random.randint(7, size=400), bias: np.where(random.rand(400, 400) > 0.9, 0, -1e9)}
    return loss, train(loss, adam()), [feed]


def edge_attention():
    x, y = tf.placeholder(tf.float32, [1000, 64]), tf.placeholder(tf.int64, [None])
    source, target = (tf.constant(part, tf.int32) for part in graph_of(1000, 8000))
    h = layers.dense(x, 64)
    scores = tf.nn.leaky_relu(tf.gather(layers.dense(h, 4), source) + tf.gather(layers.dense(h, 4), target))
    scores = tf.exp(scores - tf.gather(tf.segment_max(scores, target), target))
    shares = scores / (tf.gather(tf.unsorted_segment_sum(scores, target, 1000), target) + 1e-9)
    messages = tf.reshape(tf.gather(h, source), [-1, 4, 16]) * shares[..., None]
    h = tf.nn.elu(tf.reshape(tf.unsorted_segment_sum(messages, target, 1000), [-1, 64]))
    loss = cross_entropy(layers.dense(h, 7), y)
    random = np.random.RandomState(0)
    return loss, train(loss, adam()), [{x: random.randn(1000, 64).astype("f"), y: random.randint(7, size=1000)}]


def segment_max_and_mean():
    x, groups, y = tf.placeholder(tf.float32, [None, 32]), tf.placeholder(tf.int32, [None]), tf.placeholder(tf.int64, [None])
    h = layers.dense(x, 64, tf.nn.relu)
    h = tf.concat([tf.segment_max(h, groups), tf.segment_mean(h, groups)], 1)
    loss = cross_entropy(layers.dense(h, 10), y)
    random = np.random.RandomState(0)
    feed = {x: random.randn(5000, 32).astype("f"), groups: np.sort(np.arange(5000) % 200), y: random.randint(10, size=200)}
    return loss, train(loss, adam()), [feed]


def message_passing_gru():
    x, y = tf.placeholder(tf.float32, [500, 32]), tf.placeholder(tf.float32, [20])
    source, target = (tf.constant(part, tf.int32) for part in graph_of(500, 1500))
    cell, h, message = tf.nn.rnn_cell.GRUCell(32), x, tf.layers.Dense(32)
    for _ in range(4):
        with tf.variable_scope("update", reuse=tf.AUTO_REUSE):
            _, h = cell(tf.unsorted_segment_sum(message(tf.gather(h, source)), target, 500), h)
    out = tf.segment_sum(layers.dense(h, 1)[:, 0], tf.constant(np.arange(500) // 25))
    loss = tf.reduce_mean(tf.square(out - y))
    random = np.random.RandomState(0)
    return loss, train(loss, adam()), [{x: random.randn(500, 32).astype("f"), y: random.randn(20).astype("f")}]


def lookup_of_varying_non_zeros():
    ids, y = tf.sparse_placeholder(tf.int64), tf.placeholder(tf.int64, [None])
    table = tf.get_variable("table", [20000, 32])
    h = tf.nn.embedding_lookup_sparse(table, ids, None, combiner="mean")
    loss = cross_entropy(layers.dense(layers.dense(h, 64, tf.nn.relu), 10), y)
    random, feeds = np.random.RandomState(0), []
    for _ in range(40):
        counts = random.randint(1, 20, size=128)
        places = np.array([(i, j) for i, count in enumerate(counts) for j in range(count)])
        value = tf.SparseTensorValue(places, random.randint(20000, size=len(places)), [128, 20])
        feeds.append({ids: value, y: random.randint(10, size=128)})
    return loss, train(loss, tf.train.AdagradOptimizer(0.1)), feeds


def bag_of_words():
    """Sums of embeddings over lists of different lengths, a new length every step."""
    words, labels = tf.placeholder(tf.int64, [32, None]), tf.placeholder(tf.int64, [32])
    table = tf.get_variable("table", [20000, 32])
    loss = cross_entropy(layers.dense(tf.reduce_mean(tf.nn.embedding_lookup(table, words), axis=1), 10), labels)
    random = np.random.RandomState(0)
    feeds = [{words: random.randint(20000, size=(32, 20 + i)), labels: random.randint(10, size=32)} for i in range(30)]
    return loss, train(loss, tf.train.AdagradOptimizer(0.1)), feeds


def embeddings_under(optimizer):
    ids, y = tf.placeholder(tf.int64, [256, 8]), tf.placeholder(tf.int64, [None])
    table = tf.get_variable("table", [20000, 32])
    h = tf.reshape(tf.nn.embedding_lookup(table, ids), [256, 256])
    loss = cross_entropy(layers.dense(layers.dense(h, 64, tf.nn.relu), 10), y)
    random = np.random.RandomState(0)
    feeds = [{ids: random.randint(20000, size=(256, 8)), y: random.randint(10, size=256)} for _ in range(8)]
    return loss, train(loss, optimizer), feeds


def embeddings_sgd():
    return embeddings_under(tf.train.GradientDescentOptimizer(0.1))


def embeddings_momentum():
    return embeddings_under(tf.train.MomentumOptimizer(0.1, 0.9))


def embeddings_adagrad():
    return embeddings_under(tf.train.AdagradOptimizer(0.1))


def embeddings_adam():
    return embeddings_under(adam())


def embeddings_rmsprop():
    return embeddings_under(tf.train.RMSPropOptimizer(0.001))


def embeddings_ftrl():
    return embeddings_under(tf.train.FtrlOptimizer(0.1, l1_regularization_strength=0.001))


def word2vec(loss_of):
    centers, contexts = tf.placeholder(tf.int64, [256]), tf.placeholder(tf.int64, [256, 1])
    h = tf.nn.embedding_lookup(tf.get_variable("in", [10000, 64]), centers)
    weights, biases = tf.get_variable("out", [10000, 64]), tf.get_variable("b", [10000])
    sampled = tf.nn.log_uniform_candidate_sampler(contexts, 1, 64, True, 10000, seed=5)
    loss = tf.reduce_mean(loss_of(weights, biases, contexts, h, 64, 10000, sampled_values=sampled))
    random = np.random.RandomState(0)
    feeds = [{centers: random.randint(10000, size=256), contexts: random.randint(10000, size=(256, 1))} for _ in range(8)]
    return loss, train(loss, tf.train.GradientDescentOptimizer(0.5)), feeds


def word2vec_nce():
    return word2vec(tf.nn.nce_loss)


def word2vec_sampled_softmax():
    return word2vec(tf.nn.sampled_softmax_loss)


def fields(count=20, batch=256, words=10000, numbers=8):
    """Categories, numbers and clicks, with their feeds."""
    ids, x, y = tf.placeholder(tf.int64, [None, count]), tf.placeholder(tf.float32, [None, numbers]), tf.placeholder(tf.float32, [None])
    random, feeds = np.random.RandomState(0), []
    for _ in range(4):
        clicks = (random.rand(batch) > 0.8).astype("f")
        feeds.append({ids: random.randint(words, size=(batch, count)), x: random.randn(batch, numbers).astype("f"), y: clicks})
    return ids, x, y, feeds


def click_loss(logits, y):
    return tf.reduce_mean(tf.nn.sigmoid_cross_entropy_with_logits(labels=y, logits=tf.reshape(logits, [-1])))


def deepfm():
    ids, x, y, feeds = fields()
    v = tf.nn.embedding_lookup(tf.get_variable("v", [10000, 16]), ids)
    linear = tf.reduce_sum(tf.nn.embedding_lookup(tf.get_variable("w", [10000]), ids), 1)
    pairs = 0.5 * tf.reduce_sum(tf.square(tf.reduce_sum(v, 1)) - tf.reduce_sum(tf.square(v), 1), 1)
    h = tf.concat([tf.reshape(v, [-1, 320]), x], 1)
    for width in (128, 64):
        h = tf.nn.relu(layers.batch_normalization(layers.dense(h, width), training=True))
    loss = click_loss(linear + pairs + layers.dense(h, 1)[:, 0], y)
    return loss, train(loss, adam()), feeds


def wide_and_deep():
    ids, x, y, feeds = fields()
    crossed = tf.floormod(ids[:, 0] * 1000003 + ids[:, 1], 20000)
    wide = tf.nn.embedding_lookup(tf.get_variable("wide", [20000, 1]), crossed)
    h = tf.concat([tf.reshape(tf.nn.embedding_lookup(tf.get_variable("deep", [10000, 16]), ids), [-1, 320]), x], 1)
    for width in (256, 128):
        h = layers.dense(h, width, tf.nn.relu)
    loss = click_loss(wide + layers.dense(h, 1), y)
    first, second = (tf.get_collection(tf.GraphKeys.TRAINABLE_VARIABLES, scope) for scope in ("wide", "(deep|dense)"))
    steps = tf.train.FtrlOptimizer(0.1).minimize(loss, var_list=first), tf.train.AdagradOptimizer(0.05).minimize(loss, var_list=second)
    return loss, tf.group(*steps), feeds


def deep_and_cross():
    ids, x, y, feeds = fields()
    x0 = tf.concat([tf.reshape(tf.nn.embedding_lookup(tf.get_variable("v", [10000, 16]), ids), [-1, 320]), x], 1)
    cross, deep = x0, layers.dense(layers.dense(x0, 128, tf.nn.relu), 64, tf.nn.relu)
    for i in range(3):
        cross = x0 * tf.matmul(cross, tf.get_variable(f"c{i}", [328, 1])) + tf.get_variable(f"b{i}", [328]) + cross
    loss = click_loss(layers.dense(tf.concat([cross, deep], 1), 1), y)
    return loss, train(loss, adam()), feeds


def deep_interest():
    history, item, lengths = (tf.placeholder(tf.int64, shape) for shape in ([None, 50], [None], [None]))
    y = tf.placeholder(tf.float32, [None])
    table = tf.get_variable("items", [10000, 32])
    keys, query = tf.nn.embedding_lookup(table, history), tf.nn.embedding_lookup(table, item)
    repeated = tf.tile(query[:, None], [1, 50, 1])
    h = layers.dense(tf.concat([repeated, keys, repeated - keys, repeated * keys], 2), 36, tf.sigmoid)
    scores = layers.dense(h, 1)[..., 0]
    mask = tf.sequence_mask(lengths, 50)
    shares = tf.where(mask, scores, tf.zeros_like(scores))
    interest = tf.reduce_sum(shares[..., None] * keys, 1)
    loss = click_loss(layers.dense(layers.dense(tf.concat([interest, query], 1), 64, tf.nn.relu), 1), y)
    random = np.random.RandomState(0)
    feed = {history: random.randint(10000, size=(64, 50)), item: random.randint(10000, size=64), lengths: random.randint(1, 50, size=64)}
    return loss, train(loss, tf.train.GradientDescentOptimizer(0.1)), [{**feed, y: random.randint(2, size=64)}]


def entire_space_multi_task():
    ids, x, y, feeds = fields()
    h = tf.concat([tf.reshape(tf.nn.embedding_lookup(tf.get_variable("v", [10000, 16]), ids), [-1, 320]), x], 1)
    towers = [tf.sigmoid(layers.dense(layers.dense(layers.dense(h, 128, tf.nn.relu), 64, tf.nn.relu), 1))[:, 0] for _ in range(2)]
    loss = tf.losses.log_loss(y, towers[0]) + tf.losses.log_loss(y, towers[0] * towers[1])
    return loss, train(loss, adam()), feeds


def matrix_factorisation():
    users, items, y = tf.placeholder(tf.int32, [None]), tf.placeholder(tf.int32, [None]), tf.placeholder(tf.float32, [None])
    p, q = tf.get_variable("users", [6000, 32]), tf.get_variable("items", [4000, 32])
    a, b = tf.gather(p, users), tf.gather(q, items)
    biases = tf.gather(tf.get_variable("a", [6000]), users) + tf.gather(tf.get_variable("b", [4000]), items)
    loss = tf.reduce_mean(tf.square(tf.reduce_sum(a * b, 1) + biases - y)) + 1e-4 * (tf.nn.l2_loss(a) + tf.nn.l2_loss(b))
    random = np.random.RandomState(0)
    feeds = [{users: random.randint(6000, size=1024), items: random.randint(4000, size=1024), y: random.rand(1024)} for _ in range(4)]
    return loss, train(loss, tf.train.GradientDescentOptimizer(0.1)), feeds


def partitioned_embedding():
    ids, x, y, feeds = fields()
    table = tf.get_variable("v", [10000, 16], partitioner=tf.fixed_size_partitioner(4))
    h = tf.reshape(tf.nn.embedding_lookup(table, ids, partition_strategy="div"), [-1, 320])
    loss = click_loss(layers.dense(layers.dense(h, 64, tf.nn.relu), 1), y)
    return loss, train(loss, tf.train.AdagradOptimizer(0.1)), feeds


def boolean_mask_of_candidates():
    x, y = tf.placeholder(tf.float32, [None, 64]), tf.placeholder(tf.int64, [None])
    h = layers.dense(x, 128, tf.nn.relu)
    kept = h[:, 0] > tf.reduce_mean(h[:, 0])
    loss = cross_entropy(layers.dense(tf.boolean_mask(h, kept), 10), tf.boolean_mask(y, kept))
    random = np.random.RandomState(0)
    feeds = [{x: random.randn(512, 64).astype("f"), y: random.randint(10, size=512)} for _ in range(4)]
    return loss, train(loss, tf.train.MomentumOptimizer(0.01, 0.9)), feeds
