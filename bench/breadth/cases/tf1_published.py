"""Training graphs of TensorFlow 1 as people publish them: sets, sampled steps, gradients in loops, switches of training. As tf1_vision.py."""

import numpy as np
import tensorflow as tf
from tensorflow.python.ops import rnn, rnn_cell

from cases.tf1_further import normal
from cases.tf1_other import of_scope, rows
from cases.tf1_sequence import adam, embedded, layer_norm, text, tokens
from cases.tf1_updates import dense_net, labelled
from cases.tf1_vision import classify, conv, cross_entropy, images, train

layers = tf.layers


def tasks_learned_by_map():
    """Each task takes a step on its own examples inside `map_fn`; the outer step goes through it (MAML as first published)."""
    a, b = tf.placeholder(tf.float32, [8, 10, 1]), tf.placeholder(tf.float32, [8, 10, 1])
    c, d = tf.placeholder(tf.float32, [8, 10, 1]), tf.placeholder(tf.float32, [8, 10, 1])
    sizes = (1, 40, 40, 1)
    weights = [tf.get_variable(f"w{i}", sizes[i : i + 2]) for i in range(3)] + [tf.get_variable(f"b{i}", sizes[i + 1]) for i in range(3)]

    def net(x, w):
        for i in range(3):
            x = tf.matmul(x, w[i]) + w[3 + i]
            x = tf.nn.relu(x) if i < 2 else x
        return x

    def task(values):
        xa, ya, xb, yb = values
        fast = weights
        for _ in range(2):
            slopes = tf.gradients(tf.reduce_mean(tf.square(net(xa, fast) - ya)), fast)
            fast = [w - 0.01 * slope for w, slope in zip(fast, slopes)]
        return tf.reduce_mean(tf.square(net(xb, fast) - yb))

    loss = tf.reduce_mean(tf.map_fn(task, (a, b, c, d), dtype=tf.float32, parallel_iterations=8))
    feeds = [{a: normal(8, 10, 1, seed=i), b: normal(8, 10, 1, seed=i + 9), c: normal(8, 10, 1, seed=i + 5), d: normal(8, 10, 1, seed=i + 7)} for i in range(2)]
    return loss, train(loss, adam()), feeds


def waves_by_physics():
    """A complex field in two outputs, periodic ends, second slopes (Schroedinger's equation by a net)."""
    t, x = tf.placeholder(tf.float32, [None, 1]), tf.placeholder(tf.float32, [None, 1])
    x0, u0, v0, te = (tf.placeholder(tf.float32, [None, 1]) for _ in range(4))
    sizes = (2, 50, 50, 50, 2)
    weights = [(tf.get_variable(f"w{i}", sizes[i : i + 2]), tf.get_variable(f"b{i}", sizes[i + 1])) for i in range(4)]

    def net(x, t):
        h = 2.0 * (tf.concat([x, t], 1) + 5) / 10 - 1.0
        for i, (w, b) in enumerate(weights):
            h = tf.matmul(h, w) + b
            h = tf.tanh(h) if i < 3 else h
        u, v = h[:, 0:1], h[:, 1:2]
        return u, v, tf.gradients(u, x)[0], tf.gradients(v, x)[0]

    u, v, ux, vx = net(x, t)
    f = tf.gradients(u, t)[0] + 0.5 * tf.gradients(vx, x)[0] + (u**2 + v**2) * v
    g = tf.gradients(v, t)[0] - 0.5 * tf.gradients(ux, x)[0] - (u**2 + v**2) * u
    left, right, start = net(0 * te - 5, te), net(0 * te + 5, te), net(x0, 0 * x0)
    loss = sum(tf.reduce_mean(tf.square(a - b)) for a, b in zip(left, right)) + tf.reduce_mean(f**2) + tf.reduce_mean(g**2)
    loss += tf.reduce_mean(tf.square(start[0] - u0)) + tf.reduce_mean(tf.square(start[1] - v0))
    some = lambda n, i: normal(n, 1, seed=i)  # noqa: E731
    return loss, train(loss, adam()), [{t: some(500, 0), x: some(500, 1), x0: some(50, 2), u0: some(50, 3), v0: some(50, 4), te: some(50, 5)}]


def points_farthest_apart():
    """Centres chosen one by one in a loop, balls around them, maxima of shared layers (PointNet++)."""
    x, y = tf.placeholder(tf.float32, [8, 128, 3]), tf.placeholder(tf.int64, [None])

    def centres(points, count):
        def turn(i, near, chosen):
            last = tf.argmax(near, 1, output_type=tf.int32)
            place = tf.gather_nd(points, tf.stack([tf.range(8), last], 1))
            return i + 1, tf.minimum(near, tf.reduce_sum(tf.square(points - place[:, None]), 2)), chosen.write(i, last)

        start = 0, tf.fill([8, points.shape[1]], 1e10), tf.TensorArray(tf.int32, count)
        return tf.transpose(tf.while_loop(lambda i, *_: i < count, turn, start, back_prop=False)[2].stack())

    def group(points, h, count, near, widths):
        chosen = tf.stop_gradient(tf.reshape(centres(points, count), [8, count]))
        middle = tf.batch_gather(points, chosen)
        far = tf.reduce_sum(tf.square(middle[:, :, None] - points[:, None]), -1)
        value, index = tf.nn.top_k(-far, near)
        index = tf.where(-value < 1.0, index, tf.tile(index[:, :, :1], [1, 1, near]))
        made = tf.batch_gather(points, tf.reshape(index, [8, -1]))
        made = tf.reshape(made, [8, count, near, 3]) - middle[:, :, None]
        if h is not None:
            more = tf.reshape(tf.batch_gather(h, tf.reshape(index, [8, -1])), [8, count, near, h.shape[-1]])
            made = tf.concat([made, more], -1)
        for width in widths:
            made = conv(made, width, 1)
        return middle, tf.reduce_max(made, 2)

    points, h = group(x, None, 32, 16, (32, 48))
    points, h = group(points, h, 8, 8, (64, 96))
    return classify(tf.reduce_max(h, 1), y, [{x: 0.6 * normal(8, 128, 3), y: np.arange(8)}], adam(1e-4))


def switch_of_training():
    """Dropout and batch norms under a placeholder that tells training, as most scripts write it."""
    x, y, feeds = images(28, 1, 32)
    training = tf.placeholder_with_default(False, [])
    h = x
    for width in (16, 32):
        h = layers.conv2d(h, width, 3, padding="same", use_bias=False)
        h = layers.max_pooling2d(tf.nn.relu(layers.batch_normalization(h, training=training)), 2, 2)
    h = layers.dense(layers.flatten(h), 64)
    h = tf.nn.relu(layers.batch_normalization(h, training=training))
    loss, op, _ = classify(layers.dropout(h, 0.4, training=training), y, feeds)
    return loss, op, [{**feeds[0], training: True}]


def towers_of_devices():
    """The batch in parts, one for each named device; gradients are stacked and averaged (the classic of many cards)."""
    x, y, feeds = images(32, 3, 32)
    optimizer, made, losses = tf.train.GradientDescentOptimizer(0.05), [], []
    for i, (part, names) in enumerate(zip(tf.split(x, 2), tf.split(y, 2))):
        with tf.device(f"/gpu:{i}"), tf.name_scope(f"tower_{i}"), tf.variable_scope("net", reuse=i > 0):
            h = tf.nn.relu(layers.conv2d(part, 32, 5, padding="same", name="a"))
            h = tf.nn.lrn(tf.nn.max_pool(h, [1, 3, 3, 1], [1, 2, 2, 1], "SAME"), 4, bias=1.0, alpha=0.001 / 9.0, beta=0.75)
            h = tf.nn.max_pool(tf.nn.relu(layers.conv2d(h, 32, 5, padding="same", name="b")), [1, 3, 3, 1], [1, 2, 2, 1], "SAME")
            h = layers.dense(layers.dense(layers.flatten(h), 128, tf.nn.relu, name="c"), 10, name="d")
            losses.append(cross_entropy(h, names))
            made.append(optimizer.compute_gradients(losses[-1]))
    averaged = []
    for pairs in zip(*made):
        averaged.append((tf.reduce_mean(tf.concat([tf.expand_dims(g, 0) for g, _ in pairs], 0), 0), pairs[0][1]))
    step = tf.train.get_or_create_global_step()
    average = tf.train.ExponentialMovingAverage(0.9999, step)
    both = tf.group(optimizer.apply_gradients(averaged, step), average.apply(tf.trainable_variables()))
    return tf.add_n(losses) / 2, both, feeds


def areas_under_curves():
    """A step that also counts AUC, precision and recall at thresholds, and writes histograms."""
    x, y, feeds = labelled(256, 64)
    logits = dense_net(x, (128, 64), 1)[:, 0]
    label = tf.cast(y > 6, tf.float32)
    loss = tf.reduce_mean(tf.nn.weighted_cross_entropy_with_logits(label, logits, 2.0))
    chance = tf.sigmoid(logits)
    metrics = [tf.metrics.auc(label, chance), tf.metrics.precision(label, chance > 0.5), tf.metrics.recall(label, chance > 0.5),
               tf.metrics.mean(loss), tf.metrics.precision_at_thresholds(label, chance, [0.2, 0.5, 0.8])]  # fmt: skip
    for variable in tf.trainable_variables():
        tf.summary.histogram(variable.op.name, variable)
    summaries = tf.summary.merge_all()
    return loss, tf.group(train(loss, adam()), summaries, *[update for _, update in metrics]), feeds


def routes_by_expectation():
    """Votes of capsules are clustered by three turns of expectation and maximisation (matrix capsules)."""
    x, y, feeds = images(20, 1, 8)
    h = conv(x, 16, 5, 2)
    poses = tf.reshape(layers.conv2d(h, 8 * 16, 3, 2), [8, 128, 4, 4])
    active = tf.reshape(layers.conv2d(h, 8, 3, 2, activation=tf.sigmoid), [8, 128, 1])
    count = 4 * 4 * 8
    turn = tf.get_variable("turn", [1, count, 10, 4, 4], initializer=tf.truncated_normal_initializer(0, 0.3))
    votes = tf.reshape(tf.matmul(tf.tile(poses[:, :, None], [1, 1, 10, 1, 1]), tf.tile(turn, [8, 1, 1, 1, 1])), [8, count, 10, 16])
    cost_u, cost_a = tf.get_variable("u", [1, 1, 10, 1]), tf.get_variable("a", [1, 1, 10, 1])
    share = tf.fill([8, count, 10, 1], 0.1)
    for i in range(3):
        share_in = share * active[..., None]
        total = tf.reduce_sum(share_in, 1, keepdims=True) + 1e-6
        mean = tf.reduce_sum(share_in * votes, 1, keepdims=True) / total
        spread = tf.reduce_sum(share_in * tf.square(votes - mean), 1, keepdims=True) / total + 1e-6
        cost = tf.reduce_sum((cost_u + 0.5 * tf.log(spread)) * total, -1, keepdims=True)
        out = tf.sigmoid(0.01 * (i + 1) * (cost_a - cost))
        if i < 2:
            logs = -tf.reduce_sum(tf.square(votes - mean) / (2 * spread) + 0.5 * tf.log(2 * np.pi * spread), -1, keepdims=True)
            share = tf.nn.softmax(tf.log(out + 1e-6) + logs, axis=2)
    out = tf.reshape(out, [8, 10])
    hot = tf.one_hot(y, 10)
    margin = tf.maximum(0.0, 0.2 - (tf.reduce_sum(hot * out, 1, keepdims=True) - out))
    loss = tf.reduce_mean(tf.reduce_sum((1 - hot) * margin**2, 1))
    return loss, train(loss, adam()), feeds


def words_by_a_playing_maker():
    """A maker of sentences draws words in a loop of arrays and learns by rewards of each place (SeqGAN's maker)."""
    x, rewards = tf.placeholder(tf.int32, [16, 12]), tf.placeholder(tf.float32, [16, 12])
    table, out, cell = tf.get_variable("words", [500, 32]), layers.Dense(500), rnn_cell.BasicLSTMCell(32)
    zero = cell.zero_state(16, tf.float32)

    def draw(i, word, c, h, words, chances):
        made, state = cell(tf.nn.embedding_lookup(table, word), rnn_cell.LSTMStateTuple(c, h))
        chance = tf.nn.softmax(out(made))
        word = tf.cast(tf.reshape(tf.multinomial(tf.log(chance), 1, seed=3), [16]), tf.int32)
        kept = tf.reduce_sum(tf.one_hot(word, 500) * chance, 1)
        return i + 1, word, state.c, state.h, words.write(i, word), chances.write(i, kept)

    arrays = [tf.TensorArray(kind, 12, dynamic_size=False, infer_shape=True) for kind in (tf.int32, tf.float32)]
    drawn = tf.while_loop(lambda i, *_: i < 12, draw, (0, tf.zeros([16], tf.int32), *zero, *arrays))
    words, chances = tf.transpose(drawn[4].stack()), tf.transpose(drawn[5].stack())

    def taught(i, word, c, h, chances):
        made, state = cell(tf.nn.embedding_lookup(table, word), rnn_cell.LSTMStateTuple(c, h))
        return i + 1, given.read(i), state.c, state.h, chances.write(i, tf.nn.softmax(out(made)))

    given = tf.TensorArray(tf.int32, 12).unstack(tf.transpose(x))
    told = tf.while_loop(lambda i, *_: i < 12, taught, (0, tf.zeros([16], tf.int32), *zero, tf.TensorArray(tf.float32, 12)))[4].stack()
    told = tf.transpose(told, [1, 0, 2])
    hot = tf.one_hot(tf.reshape(x, [-1]), 500)
    first = -tf.reduce_sum(hot * tf.log(tf.clip_by_value(tf.reshape(told, [-1, 500]), 1e-20, 1.0))) / (12 * 16)
    loss = first - 0.1 * tf.reduce_mean(tf.log(chances + 1e-8) * rewards) + 0.0 * tf.reduce_mean(tf.to_float(words))
    optimizer = adam(1e-2)
    made, _ = tf.clip_by_global_norm(tf.gradients(loss, tf.trainable_variables()), 5.0)
    return loss, optimizer.apply_gradients(zip(made, tf.trainable_variables())), [{x: tokens(12, 16, 500), rewards: rows(16, 12)}]


def advantages_in_reverse():
    """V-trace: corrected returns by a reverse scan, an LSTM that is reset where an episode ends (IMPALA)."""
    x, done = tf.placeholder(tf.float32, [20, 8, 16]), tf.placeholder(tf.bool, [20, 8])
    acts, old, pay = tf.placeholder(tf.int32, [20, 8]), tf.placeholder(tf.float32, [20, 8, 4]), tf.placeholder(tf.float32, [20, 8])
    cell, h = rnn_cell.LSTMCell(48), layers.dense(x, 64, tf.nn.relu)
    zero = cell.zero_state(8, tf.float32)
    state, outs = zero, []
    for step, over in zip(tf.unstack(h), tf.unstack(done)):
        state = tf.nest.map_structure(lambda a, b: tf.where(over, a, b), zero, state)  # noqa: B023
        out, state = cell(step, state)
        outs.append(out)
    h = tf.stack(outs)
    logits, value = layers.dense(h, 4), layers.dense(h, 1)[..., 0]
    chance = -tf.nn.sparse_softmax_cross_entropy_with_logits(labels=acts, logits=logits)
    ratio = tf.exp(chance + tf.nn.sparse_softmax_cross_entropy_with_logits(labels=acts, logits=old))
    rho, kept = tf.minimum(1.0, ratio), 0.99 * tf.to_float(~done)
    following = tf.concat([value[1:], value[-1:]], 0)
    delta = rho * (pay + kept * following - value)
    scanned = tf.scan(lambda last, v: v[0] + v[1] * v[2] * last, (delta, kept, rho), tf.zeros([8]), parallel_iterations=1, back_prop=False, reverse=True)
    target = tf.stop_gradient(scanned + value)
    advantage = tf.stop_gradient(rho * (pay + kept * tf.concat([target[1:], value[-1:]], 0) - value))
    entropy = -tf.reduce_sum(tf.nn.softmax(logits) * tf.nn.log_softmax(logits), -1)
    loss = -tf.reduce_sum(chance * advantage) + 0.5 * tf.reduce_sum(tf.square(target - value)) - 0.01 * tf.reduce_sum(entropy)
    random = np.random.RandomState(0)
    feed = {x: normal(20, 8, 16), done: random.rand(20, 8) > 0.9, acts: random.randint(4, size=(20, 8)), old: normal(20, 8, 4, seed=2), pay: normal(20, 8, seed=3)}
    optimizer = tf.train.RMSPropOptimizer(0.001, 0.99, epsilon=0.1)
    made, _ = tf.clip_by_global_norm(tf.gradients(loss, tf.trainable_variables()), 40.0)
    return loss, optimizer.apply_gradients(zip(made, tf.trainable_variables())), [feed]


def attention_by_hashes():
    """Queries meet keys of their own bucket only: hashes, sorting, chunks, undone by the inverse order (Reformer)."""
    ids, y, feed = text(64)
    h = embedded(ids)
    qk = tf.nn.l2_normalize(layers.dense(h, 32), -1)
    v = layers.dense(h, 32)
    turned = tf.einsum("btd,dh->bth", qk, tf.constant(normal(32, 4)))
    bucket = tf.argmax(tf.concat([turned, -turned], -1), -1, output_type=tf.int32)
    order = tf.argsort(64 * bucket + tf.range(64), axis=1)
    back = tf.argsort(order, axis=1)
    pick = lambda a: tf.reshape(tf.batch_gather(a, order), [16, 8, 8, -1])  # noqa: E731
    qs, vs, bs = pick(qk), pick(v), tf.reshape(tf.batch_gather(bucket, order), [16, 8, 8])
    near = lambda a: tf.concat([a, tf.roll(a, 1, 1)], 2)  # noqa: E731
    scores = tf.matmul(qs, near(qs), transpose_b=True) / 5.6
    scores = tf.where(tf.equal(bs[..., None], near(bs)[:, :, None]), scores, tf.fill(tf.shape(scores), -1e9))
    made = tf.reshape(tf.matmul(tf.nn.softmax(scores), near(vs)), [16, 64, 32])
    h = layer_norm(h + layers.dense(tf.batch_gather(made, back), 64), "n")
    loss, op, _ = classify(tf.reduce_mean(layers.dense(h, 64, tf.nn.relu), 1), y, None, adam())
    return loss, op, [feed]


def chosen_queries_attend():
    """Only queries of large spread attend, the others take the mean; distilled by pooling (Informer)."""
    x, y = tf.placeholder(tf.float32, [8, 48, 6]), tf.placeholder(tf.float32, [8, 12])
    h = layers.conv1d(x, 32, 3, padding="same")
    for i in range(2):
        length = h.shape[1]
        q, k, v = (tf.reshape(layers.dense(h, 32), [8, length, 32]) for _ in range(3))
        drawn = tf.gather(k, tf.constant(np.random.RandomState(i).randint(int(length), size=12)), axis=1)
        scores = tf.matmul(q, drawn, transpose_b=True)
        spread = tf.reduce_max(scores, 2) - tf.reduce_mean(scores, 2)
        chosen = tf.nn.top_k(spread, 10, sorted=False)[1]
        some = tf.batch_gather(q, chosen)
        made = tf.matmul(tf.nn.softmax(tf.matmul(some, k, transpose_b=True) / 5.6), v)
        base = tf.tile(tf.reduce_mean(v, 1, keepdims=True), [1, length, 1])
        index = tf.stack([tf.tile(tf.range(8)[:, None], [1, 10]), chosen], -1)
        h = layer_norm(h + tf.tensor_scatter_update(base, index, made), f"n{i}")
        h = layers.max_pooling1d(tf.nn.elu(layers.conv1d(h, 32, 3, padding="same")), 3, 2, "same")
    loss = tf.losses.huber_loss(y, layers.dense(layers.flatten(h), 12))
    return loss, train(loss, adam()), [{x: normal(8, 48, 6), y: normal(8, 12, seed=1)}]


def maker_of_styles():
    """Filters scaled by a style and normalised for each sample, noise, a critic whose slope is held every fourth step (StyleGAN2)."""
    real = tf.placeholder(tf.float32, [8, 16, 16, 3])
    step = tf.train.get_or_create_global_step()

    def modulated(x, style, width, name, up=False):
        w = tf.get_variable(name, [3, 3, x.shape[1], width]) * 1.0
        scale = layers.dense(style, int(x.shape[1]), bias_initializer=tf.ones_initializer())
        w = w[None] * scale[:, None, None, :, None]
        w *= tf.rsqrt(tf.reduce_sum(tf.square(w), [1, 2, 3]) + 1e-8)[:, None, None, None, :]
        size = int(x.shape[2])
        if up:
            x = tf.reshape(tf.tile(x[:, :, :, None, :, None], [1, 1, 1, 2, 1, 2]), [8, x.shape[1], 2 * size, 2 * size])
            size *= 2
        x = tf.transpose(tf.reshape(x, [1, -1, size, size]), [0, 2, 3, 1])
        w = tf.reshape(tf.transpose(w, [1, 2, 3, 0, 4]), [3, 3, -1, 8 * width])
        parts = [tf.nn.conv2d(a, b, 1, "SAME") for a, b in zip(tf.split(x, 8, 3), tf.split(w, 8, 3))]
        x = tf.reshape(tf.transpose(tf.concat(parts, 3), [0, 3, 1, 2]), [8, width, size, size])
        x += tf.get_variable(name + "n", [], initializer=tf.zeros_initializer()) * tf.random_normal([8, 1, size, size], seed=4)
        return tf.nn.leaky_relu(x + tf.get_variable(name + "b", [1, width, 1, 1]))

    with tf.variable_scope("maker"):
        z = tf.random_normal([8, 32], seed=5)
        style = tf.nn.leaky_relu(layers.dense(z * tf.rsqrt(tf.reduce_mean(z**2, 1, keepdims=True) + 1e-8), 32))
        x = tf.tile(tf.get_variable("start", [1, 24, 4, 4]), [8, 1, 1, 1])
        x = modulated(modulated(modulated(x, style, 24, "a"), style, 24, "b", True), style, 16, "c", True)
        made = tf.tanh(layers.conv2d(tf.transpose(x, [0, 2, 3, 1]), 3, 1))

    def critic(x):
        with tf.variable_scope("critic", reuse=tf.AUTO_REUSE):
            for i in range(2):
                x = tf.nn.leaky_relu(layers.conv2d(x, 24, 3, 2, "same", name=f"c{i}"))
            spread = tf.reshape(x, [4, 2, 4, 4, 24])
            spread = tf.reduce_mean(tf.sqrt(tf.reduce_mean(tf.square(spread - tf.reduce_mean(spread, 0)), 0) + 1e-8), [1, 2, 3], keepdims=True)
            x = tf.concat([x, tf.tile(spread, [4, 4, 4, 1])], 3)
            return layers.dense(layers.flatten(x), 1, name="d")

    first = tf.reduce_mean(tf.nn.softplus(critic(made)) + tf.nn.softplus(-critic(real)))
    slope = lambda: 5.0 * tf.reduce_mean(tf.reduce_sum(tf.square(tf.gradients(tf.reduce_sum(critic(real)), real)[0]), [1, 2, 3]))  # noqa: E731
    held = tf.cond(tf.equal(step % 4, 0), slope, lambda: tf.constant(0.0))
    second = tf.reduce_mean(tf.nn.softplus(-critic(made)))
    a = tf.train.AdamOptimizer(1e-3, 0.0, 0.99).minimize(first + held, var_list=of_scope("critic"))
    b = tf.train.AdamOptimizer(1e-3, 0.0, 0.99).minimize(second, step, of_scope("maker"))
    return first + second, tf.group(a, b), [{real: np.tanh(normal(8, 16, 16, 3))}]


def chances_by_flow_of_time():
    """A flow in time by a loop of Runge and Kutta whose field's trace is estimated, differentiated inside the loop (FFJORD)."""
    x = tf.placeholder(tf.float32, [64, 2])
    a, b, c = (tf.get_variable(n, s) for n, s in (("a", [3, 48]), ("b", [48, 48]), ("c", [48, 2])))
    noise = tf.sign(tf.random_normal([64, 2], seed=3))

    def field(t, z):
        h = tf.concat([z, tf.fill([64, 1], t)], 1)
        speed = tf.matmul(tf.tanh(tf.matmul(tf.tanh(tf.matmul(h, a)), b)), c)
        trace = tf.reduce_sum(tf.gradients(speed, z, noise)[0] * noise, 1)
        return speed, -trace

    def turn(i, z, logs):
        t = tf.to_float(i) / 6
        s1, l1 = field(t, z)
        s2, l2 = field(t + 1 / 12, z + s1 / 12)
        return i + 1, z + s2 / 6, logs + l2 / 6

    _, z, logs = tf.while_loop(lambda i, *_: i < 6, turn, (0, x, tf.zeros([64])))
    loss = tf.reduce_mean(0.5 * tf.reduce_sum(z**2, 1) + np.log(2 * np.pi) + logs)
    return loss, train(loss, adam()), [{x: rows(64, 2)}]


def places_by_attention_in_steps():
    """A decoder whose attention remembers where it has looked, in a loop; stops are learned (Tacotron 2)."""
    ids, mel = tf.placeholder(tf.int64, [8, 20]), tf.placeholder(tf.float32, [8, 16, 20])
    lengths = tf.placeholder(tf.int32, [8])
    h = tf.nn.relu(layers.batch_normalization(layers.conv1d(embedded(ids, 48), 48, 5, padding="same"), training=True))
    both, _ = rnn.bidirectional_dynamic_rnn(rnn_cell.LSTMCell(24), rnn_cell.LSTMCell(24), h, lengths, dtype=tf.float32)
    memory = tf.concat(both, 2)
    keys, mask = layers.dense(memory, 32, use_bias=False), tf.sequence_mask(lengths, 20)
    place, ask, far, v = layers.Conv1D(8, 7, padding="same"), layers.Dense(32, use_bias=False), layers.Dense(32), tf.get_variable("v", [32])
    before, cells, frame, stop = layers.Dense(24, tf.nn.relu), rnn_cell.MultiRNNCell([rnn_cell.LSTMCell(48) for _ in range(2)]), layers.Dense(20), layers.Dense(1)
    given = tf.TensorArray(tf.float32, 16).unstack(tf.transpose(tf.concat([0 * mel[:, :1], mel[:, :-1]], 1), [1, 0, 2]))

    def turn(i, state, seen, context, frames, stops):
        out, state = cells(tf.concat([before(given.read(i)), context], 1), state)
        scores = tf.reduce_sum(v * tf.tanh(keys + ask(out)[:, None] + far(place(seen[..., None]))), 2)
        shares = tf.nn.softmax(tf.where(mask, scores, tf.fill(tf.shape(scores), -1e9)))
        context = tf.reduce_sum(shares[..., None] * memory, 1)
        last = tf.concat([out, context], 1)
        return i + 1, state, seen + shares, context, frames.write(i, frame(last)), stops.write(i, stop(last))

    arrays = [tf.TensorArray(tf.float32, 16) for _ in range(2)]
    start = 0, cells.zero_state(8, tf.float32), tf.zeros([8, 20]), tf.zeros([8, 48]), *arrays
    done = tf.while_loop(lambda i, *_: i < 16, turn, start, parallel_iterations=1, swap_memory=True)
    frames, stops = tf.transpose(done[4].stack(), [1, 0, 2]), tf.transpose(done[5].stack(), [1, 0, 2])[..., 0]
    ends = tf.constant(np.tile(np.arange(16) > 13, (8, 1)).astype("f"))
    loss = tf.losses.mean_squared_error(mel, frames) + tf.reduce_mean(tf.nn.sigmoid_cross_entropy_with_logits(labels=ends, logits=stops))
    decay = 1e-6 * tf.add_n([tf.nn.l2_loss(w) for w in tf.trainable_variables() if "bias" not in w.name])
    optimizer = adam(1e-3)
    made, _ = tf.clip_by_global_norm(tf.gradients(loss + decay, tf.trainable_variables()), 1.0)
    with tf.control_dependencies(tf.get_collection(tf.GraphKeys.UPDATE_OPS)):
        op = optimizer.apply_gradients(zip(made, tf.trainable_variables()))
    return loss, op, [{ids: tokens(20, 8), mel: normal(8, 16, 20), lengths: np.arange(8) + 12}]


def matches_by_assignment():
    """Queries meet boxes by the best assignment, found on the host (DETR's loss with `py_func`)."""
    from scipy.optimize import linear_sum_assignment

    x, names, boxes = tf.placeholder(tf.float32, [4, 32, 32, 3]), tf.placeholder(tf.int32, [4, 5]), tf.placeholder(tf.float32, [4, 5, 4])
    h = tf.reshape(conv(conv(x, 32, 3, 2), 48, 3, 2), [4, 64, 48])
    asked = tf.tile(tf.get_variable("asked", [1, 12, 48]), [4, 1, 1])
    for i in range(2):
        for name, seen in (("a", asked), ("b", h)):
            shares = tf.nn.softmax(tf.matmul(layers.dense(asked, 48), layers.dense(seen, 48), transpose_b=True) / 7)
            asked = layer_norm(asked + tf.matmul(shares, layers.dense(seen, 48)), f"{name}{i}")
    logits, places = layers.dense(asked, 8), tf.sigmoid(layers.dense(asked, 4))
    near = tf.reduce_sum(tf.abs(places[:, :, None] - boxes[:, None]), -1)
    cost = 5 * near - tf.batch_gather(tf.nn.softmax(logits), tf.tile(names[:, None], [1, 12, 1]))
    best = lambda costs: np.stack([linear_sum_assignment(c.T)[1] for c in costs]).astype("int32")  # noqa: E731
    chosen = tf.reshape(tf.py_func(best, [cost], tf.int32, stateful=False), [4, 5])
    index = tf.stack([tf.tile(tf.range(4)[:, None], [1, 5]), chosen], -1)
    target = tf.tensor_scatter_update(tf.fill([4, 12], 7), index, names)
    weight = tf.where(tf.equal(target, 7), tf.fill([4, 12], 0.1), tf.ones([4, 12]))
    loss = tf.losses.sparse_softmax_cross_entropy(target, logits, weight) + 5 * tf.reduce_mean(tf.abs(tf.gather_nd(places, index) - boxes))
    random = np.random.RandomState(0)
    return loss, train(loss, adam()), [{x: normal(4, 32, 32, 3), names: random.randint(7, size=(4, 5)), boxes: random.rand(4, 5, 4)}]


def noisy_layers_of_choice():
    """Layers with learned noise, dueling heads over atoms, a target copied under a condition (Rainbow)."""
    x, nxt = tf.placeholder(tf.float32, [32, 16]), tf.placeholder(tf.float32, [32, 16])
    act, pay, over, weight = (tf.placeholder(kind, [32]) for kind in (tf.int32, tf.float32, tf.float32, tf.float32))
    atoms, step = tf.linspace(-10.0, 10.0, 21), tf.train.get_or_create_global_step()

    def noisy(h, width, name):
        size = int(h.shape[1])
        w, s = tf.get_variable(name + "w", [size, width]), tf.get_variable(name + "s", [size, width], initializer=tf.constant_initializer(0.02))
        grow = lambda v: tf.sign(v) * tf.sqrt(tf.abs(v))  # noqa: E731
        a, b = grow(tf.random_normal([size, 1], seed=1)), grow(tf.random_normal([1, width], seed=2))
        return tf.matmul(h, w + s * (a * b)) + tf.get_variable(name + "b", [width]) + tf.get_variable(name + "t", [width]) * b[0]

    def net(h, scope):
        with tf.variable_scope(scope, reuse=tf.AUTO_REUSE):
            h = layers.dense(h, 64, tf.nn.relu, name="h")
            value = tf.reshape(noisy(h, 21, "v"), [32, 1, 21])
            better = tf.reshape(noisy(h, 4 * 21, "a"), [32, 4, 21])
            return value + better - tf.reduce_mean(better, 1, keepdims=True)

    chosen = tf.batch_gather(net(x, "online"), act[:, None])[:, 0]
    best = tf.argmax(tf.reduce_sum(tf.nn.softmax(net(nxt, "online")) * atoms, 2), 1, output_type=tf.int32)
    chance = tf.nn.softmax(tf.batch_gather(net(nxt, "target"), best[:, None])[:, 0])
    place = (tf.clip_by_value(pay[:, None] + 0.99 * (1 - over[:, None]) * atoms, -10, 10) + 10) / 1.0
    share = tf.clip_by_value(1 - tf.abs(place[:, None] - tf.range(21.0)[None, :, None]), 0, 1)
    target = tf.stop_gradient(tf.reduce_sum(share * chance[:, None], 2))
    each = tf.nn.softmax_cross_entropy_with_logits_v2(labels=target, logits=chosen)
    loss = tf.reduce_mean(weight * each)
    op = tf.train.AdamOptimizer(1e-3).minimize(loss, step, of_scope("online"))
    with tf.control_dependencies([op]):
        copies = lambda: tf.group(*[tf.assign(b, a) for a, b in zip(of_scope("online"), of_scope("target"))])  # noqa: E731
        moved = tf.cond(tf.equal(step % 4, 0), copies, tf.no_op)
    random = np.random.RandomState(0)
    feed = {x: rows(32, 16), nxt: rows(32, 16, 1), act: random.randint(4, size=32), pay: rows(1, 32)[0], over: random.rand(32) > 0.9, weight: random.rand(32)}
    return loss, moved, [feed]


def weights_that_remember():
    """Quick weights between cells grow with their product and fade, in a scan (fast weights, differentiable plasticity)."""
    x, y = tf.placeholder(tf.float32, [8, 15, 12]), tf.placeholder(tf.int64, [None])
    w, v, alpha, eta = tf.get_variable("w", [12, 32]), tf.get_variable("v", [32, 32]), tf.get_variable("alpha", [32, 32]), tf.get_variable("eta", [], initializer=tf.constant_initializer(0.1))

    def turn(last, value):
        h, hebb = last
        made = tf.tanh(tf.matmul(value, w) + tf.matmul(h, v) + tf.einsum("bi,bij->bj", h, alpha * hebb))
        return made, (1 - eta) * hebb + eta * tf.einsum("bi,bj->bij", h, made)

    h, _ = tf.scan(turn, tf.transpose(x, [1, 0, 2]), (tf.zeros([8, 32]), tf.zeros([8, 32, 32])))
    return classify(h[-1], y, [{x: normal(8, 15, 12), y: np.arange(8)}])


def batches_from_queues():
    """Examples come from a data set that pads by length, inside the graph."""
    random = np.random.RandomState(0)
    texts = [random.randint(1, 999, size=random.randint(4, 40)) for _ in range(256)]
    data = tf.data.Dataset.from_generator(lambda: ((t, len(t) % 5) for t in texts), (tf.int64, tf.int64), ([None], []))
    data = data.repeat().apply(tf.data.experimental.bucket_by_sequence_length(lambda t, _: tf.size(t), [10, 20, 30], [16, 16, 16, 16]))
    ids, y = tf.data.make_one_shot_iterator(data).get_next()
    lengths = tf.reduce_sum(tf.to_int32(ids > 0), 1)
    outputs, _ = rnn.dynamic_rnn(rnn_cell.GRUCell(48), embedded(ids, 48, 1000), lengths, dtype=tf.float32)
    score = layers.dense(tf.tanh(layers.dense(outputs, 32)), 1)[..., 0]
    share = tf.nn.softmax(score + (1 - tf.sequence_mask(lengths, dtype=tf.float32)) * -1e9)
    loss = cross_entropy(layers.dense(tf.einsum("bt,btd->bd", share, outputs), 5), y)
    return loss, train(loss, adam()), [{}]
