"""Training graphs of TensorFlow 1 with all that trainers put around a loss: columns, masks, reversed gradients. As tf1_vision.py."""

import numpy as np
import tensorflow as tf
from tensorflow.python.ops import rnn, rnn_cell

from cases.tf1_further import normal
from cases.tf1_other import of_scope, rows
from cases.tf1_sequence import adam
from cases.tf1_updates import dense_net, every, gradients, labelled, slot
from cases.tf1_vision import conv, cross_entropy, images, train

layers = tf.layers


def all_that_trainers_do():
    """Regularisers, decayed rates, clipped gradients, averages of weights, summaries and metrics in one step."""
    x, y, feeds = images(28, 1, 32)
    decay = tf.keras.regularizers.l2(1e-4)
    h = x
    for width in (16, 32):
        h = layers.max_pooling2d(conv(h, width, kernel_regularizer=decay), 2, 2)
    h = layers.dropout(layers.dense(layers.flatten(h), 64, tf.nn.relu, kernel_regularizer=decay), 0.0, training=True)
    logits = layers.dense(h, 10, kernel_regularizer=decay)
    tf.losses.sparse_softmax_cross_entropy(y, logits, weights=0.9)
    loss = tf.losses.get_total_loss()
    step = tf.train.get_or_create_global_step()
    rate = tf.train.exponential_decay(0.05, step, 10, 0.96, staircase=True)
    optimizer = tf.train.MomentumOptimizer(rate, 0.9, use_nesterov=True)
    made, variables = zip(*optimizer.compute_gradients(loss))
    made, length = tf.clip_by_global_norm(made, 5.0)
    _, right = tf.metrics.accuracy(y, tf.argmax(logits, 1))
    for name, value in (("loss", loss), ("rate", rate), ("length", length), ("right", right)):
        tf.summary.scalar(name, value)
    average = tf.train.ExponentialMovingAverage(0.99, step)
    with tf.control_dependencies(tf.get_collection(tf.GraphKeys.UPDATE_OPS)):
        update = optimizer.apply_gradients(zip(made, variables), step)
    with tf.control_dependencies([update]):
        return loss, tf.group(average.apply(tf.trainable_variables()), right, tf.summary.merge_all()), feeds


def columns_of_features():
    """Bucketed, crossed, listed and embedded columns of a table (`tf.feature_column`), as estimators read them."""
    column = tf.feature_column
    names = {"age": tf.float32, "pay": tf.float32, "job": tf.int64, "town": tf.int64, "kind": tf.string}
    parts = {name: tf.placeholder(kind, [128, 1]) for name, kind in names.items()}
    age, pay = (column.numeric_column(name) for name in ("age", "pay"))
    job, town = (column.categorical_column_with_identity(name, count) for name, count in (("job", 50), ("town", 1000)))
    kind = column.categorical_column_with_vocabulary_list("kind", ["red", "green", "blue"])
    ages = column.bucketized_column(age, [18, 25, 30, 40, 50, 65])
    crossed = column.crossed_column([ages, job], 1000)
    h = column.input_layer(
        parts,
        [age, pay, ages, column.indicator_column(kind), column.embedding_column(town, 16), column.embedding_column(crossed, 8)],
    )
    y = tf.placeholder(tf.int64, [None])
    loss = cross_entropy(dense_net(h, (64, 32), 2), y)
    random = np.random.RandomState(0)
    values = random.uniform(10, 80, (128, 1)), random.rand(128, 1), random.randint(50, size=(128, 1)), random.randint(1000, size=(128, 1))
    feed = dict(zip(parts.values(), (*values, random.choice(["red", "green", "blue", "?"], (128, 1)))))
    return loss, train(loss, tf.train.AdagradOptimizer(0.05)), [{**feed, y: random.randint(2, size=128)}]


def gradients_turned_around():
    """Features must not tell where a picture comes from: the gradient changes its sign on the way back (DANN)."""
    if not hasattr(gradients_turned_around, "known"):
        gradients_turned_around.known = tf.RegisterGradient("Turned")(lambda op, slope: -0.3 * slope)
    x, y, feeds = images(28, 1, 32)
    h = layers.flatten(layers.max_pooling2d(conv(layers.max_pooling2d(conv(x, 16, 5), 2, 2), 32, 5), 2, 2))
    with tf.get_default_graph().gradient_override_map({"Identity": "Turned"}):
        turned = tf.identity(h)
    place = layers.dense(layers.dense(turned, 64, tf.nn.relu), 2)
    kind = layers.dense(layers.dense(h[:16], 64, tf.nn.relu), 10)
    where = tf.constant(np.repeat([0, 1], 16))
    loss = cross_entropy(kind, y[:16]) + cross_entropy(place, where)
    return loss, train(loss), feeds


def weights_rounded_while_training():
    """Weights and activations pass through 256 levels, whose bounds are learnt or follow a mean (quantisation aware)."""
    x, y, feeds = images(24, 3, 16)

    def rounded(h, name):
        low, high = (tf.get_variable(f"{name}_{end}", [], initializer=tf.constant_initializer(v)) for end, v in (("low", -3.0), ("high", 3.0)))
        return tf.fake_quant_with_min_max_vars(h, low, high, 8)

    h = rounded(x, "in")
    for i, width in enumerate((16, 32)):
        w = tf.get_variable(f"w{i}", [3, 3, h.shape[-1], width])
        w = tf.fake_quant_with_min_max_vars(w, tf.reduce_min(tf.stop_gradient(w)), tf.reduce_max(tf.stop_gradient(w)), 8, narrow_range=True)
        h = rounded(tf.nn.relu6(layers.batch_normalization(tf.nn.conv2d(h, w, [1, 2, 2, 1], "SAME"), training=True)), f"h{i}")
    w = tf.get_variable("mix", [32, 48])
    low, high = tf.get_variable("mix_low", [48], initializer=tf.constant_initializer(-0.5)), tf.ones([48]) * 0.5
    h = tf.matmul(tf.reduce_mean(h, [1, 2]), tf.quantization.fake_quant_with_min_max_vars_per_channel(w, low, high))
    loss = cross_entropy(layers.dense(tf.nn.relu(h), 10), y)
    return loss, train(loss, adam()), feeds


def weights_pruned():
    """Small weights are masked; every fourth step finds the masks anew by a threshold (magnitude pruning)."""
    x, y, feeds = labelled()
    h, masks = x, []
    for i, width in enumerate((256, 128, 10)):
        w = tf.get_variable(f"w{i}", [h.shape[1], width])
        mask = tf.get_variable(f"m{i}", w.shape, initializer=tf.ones_initializer(), trainable=False)
        h = tf.matmul(h, w * mask) + tf.get_variable(f"b{i}", [width], initializer=tf.zeros_initializer())
        h, _ = tf.nn.relu(h) if i < 2 else h, masks.append((w, mask))
    loss = cross_entropy(h, y)

    def found():
        for w, mask in masks:
            size = tf.reshape(abs(w), [-1])
            least = tf.nn.top_k(size, int(size.shape[0]) // 2)[0][-1]
            yield tf.assign(mask, tf.cast(abs(w) >= least, tf.float32))

    with tf.control_dependencies([train(loss, adam())]):
        return loss, every(4, found), feeds


def directions_and_lengths():
    """Weights as a direction and a length, and steps whose size follows each layer's own norm (weight norm, LARS)."""
    x, y, feeds = images(24, 3, 16)
    h = x
    for i, (width, stride) in enumerate(((32, 2), (64, 2), (64, 1))):
        v = tf.get_variable(f"v{i}", [3, 3, h.shape[-1], width])
        g = tf.get_variable(f"g{i}", [width], initializer=tf.ones_initializer())
        h = tf.nn.relu(tf.nn.conv2d(h, g * tf.nn.l2_normalize(v, [0, 1, 2]), [1, stride, stride, 1], "SAME"))
    loss, updates = cross_entropy(layers.dense(tf.reduce_mean(h, [1, 2]), 10), y), []
    for gradient, variable in gradients(loss):
        momentum = slot(variable, "momentum")
        long, steep = tf.norm(variable), tf.norm(gradient)
        rate = tf.where(tf.logical_and(long > 0, steep > 0), 0.02 * long / (steep + 1e-4 * long + 1e-9), 1.0)
        updates.append(tf.assign_sub(variable, tf.assign(momentum, 0.9 * momentum + 0.1 * rate * (gradient + 1e-4 * variable))))
    return loss, tf.group(*updates), feeds


def steps_that_make_zeros():
    """Proximal steps for a wide part, Adadelta for a deep one: `tf.train`'s rarer optimisers."""
    x, y, feeds = labelled(128, 512)
    with tf.variable_scope("wide"):
        wide = layers.dense(x, 10)
    with tf.variable_scope("deep"):
        deep = dense_net(x, (128, 64))
    loss = cross_entropy(wide + deep, y)
    steps = (
        tf.train.ProximalAdagradOptimizer(0.05, l1_regularization_strength=0.01, l2_regularization_strength=0.01),
        tf.train.AdadeltaOptimizer(1.0, 0.95),
    )
    return loss, tf.group(*(step.minimize(loss, var_list=of_scope(scope)) for step, scope in zip(steps, ("wide", "deep")))), feeds


def worst_inputs_nearby():
    """The direction that changes the answer most, by one power step, and a penalty along it (virtual adversarial)."""
    x, y, feeds = labelled(64, 256)

    def net(x):
        with tf.variable_scope("net", reuse=tf.AUTO_REUSE):
            for i, width in enumerate((128, 128)):
                x = tf.nn.leaky_relu(layers.dense(x, width, name=f"h{i}"))
            return layers.dense(x, 10, name="out")

    def apart(a, b):
        return tf.reduce_mean(tf.reduce_sum(tf.nn.softmax(a) * (tf.nn.log_softmax(a) - tf.nn.log_softmax(b)), 1))

    logits = net(x)
    fixed = tf.stop_gradient(logits)
    way = tf.nn.l2_normalize(tf.random_normal(tf.shape(x), seed=3), 1)
    way = tf.stop_gradient(tf.nn.l2_normalize(tf.gradients(apart(fixed, net(x + 1e-1 * way)), way)[0], 1))
    loss = cross_entropy(logits, y) + apart(fixed, net(x + 2.0 * way))
    return loss, train(loss, adam()), feeds


def choices_of_operators():
    """Each edge mixes four operators by a softmax; weights and choices take their steps in turn (DARTS)."""
    x, y, feeds = images(20, 3, 16)
    with tf.variable_scope("weights"):
        h = conv(x, 16)
        for i in range(3):
            with tf.variable_scope("choices", reuse=tf.AUTO_REUSE):
                share = tf.nn.softmax(tf.get_variable(f"a{i}", [4], initializer=tf.zeros_initializer()))
            parts = conv(h, 16), layers.separable_conv2d(h, 16, 3, padding="same"), layers.average_pooling2d(h, 3, 1, "same"), h
            h = tf.add_n([share[j] * part for j, part in enumerate(parts)])
        loss = cross_entropy(layers.dense(tf.reduce_mean(h, [1, 2]), 10), y)
    choices = [v for v in tf.trainable_variables() if "choices" in v.name]
    rest = [v for v in tf.trainable_variables() if "choices" not in v.name]
    with tf.control_dependencies(tf.get_collection(tf.GraphKeys.UPDATE_OPS)):
        first = tf.train.MomentumOptimizer(0.02, 0.9).minimize(loss, var_list=rest)
    with tf.control_dependencies([first]):
        return loss, tf.train.AdamOptimizer(3e-4, 0.5).minimize(loss, var_list=choices), feeds


def values_mixed_by_state():
    """Values of five agents are mixed by a net whose weights, never below zero, come from the state (QMIX)."""
    seen, state, acted = tf.placeholder(tf.float32, [32, 10, 5, 24]), tf.placeholder(tf.float32, [32, 10, 40]), tf.placeholder(tf.int32, [32, 10, 5])
    reward = tf.placeholder(tf.float32, [32, 10])

    def mixed(scope):
        with tf.variable_scope(scope):
            h = layers.dense(tf.reshape(tf.transpose(seen, [0, 2, 1, 3]), [160, 10, 24]), 32, tf.nn.relu)
            h, _ = rnn.dynamic_rnn(rnn_cell.GRUCell(32), h, dtype=tf.float32)
            q = tf.transpose(tf.reshape(layers.dense(h, 6), [32, 5, 10, 6]), [0, 2, 1, 3])
            own = tf.reduce_max(q, -1) if scope == "slow" else tf.reduce_sum(q * tf.one_hot(acted, 6), -1)
            first = tf.reshape(abs(layers.dense(state, 5 * 16)), [32, 10, 5, 16])
            h = tf.nn.elu(tf.einsum("bta,btah->bth", own, first) + layers.dense(state, 16))
            return tf.reduce_sum(h * abs(layers.dense(state, 16)), -1) + layers.dense(layers.dense(state, 16, tf.nn.relu), 1)[..., 0]

    value, after = mixed("fast"), mixed("slow")
    loss = tf.reduce_mean(tf.square(value[:, :-1] - tf.stop_gradient(reward[:, :-1] + 0.99 * after[:, 1:])))
    made, variables = zip(*tf.train.RMSPropOptimizer(5e-4).compute_gradients(loss, of_scope("fast")))
    update = tf.train.RMSPropOptimizer(5e-4).apply_gradients(zip(tf.clip_by_global_norm(made, 10.0)[0], variables))
    with tf.control_dependencies([update]):
        follow = [tf.assign(b, 0.99 * b + 0.01 * a) for a, b in zip(of_scope("fast"), of_scope("slow"))]
    random = np.random.RandomState(0)
    feed = {seen: normal(32, 10, 5, 24), state: normal(32, 10, 40), acted: random.randint(6, size=(32, 10, 5)), reward: rows(32, 10)}
    return loss, tf.group(*follow), [feed]


def values_and_moves():
    """A net of residual blocks tells the value of a board and the share of each move (AlphaZero)."""
    board, share, value = tf.placeholder(tf.float32, [32, 9, 9, 6]), tf.placeholder(tf.float32, [32, 82]), tf.placeholder(tf.float32, [32])
    h = conv(board, 32)
    for _ in range(3):
        h = tf.nn.relu(h + conv(conv(h, 32), 32, activation=None))
    moves = layers.dense(layers.flatten(conv(h, 2, 1)), 82)
    found = tf.tanh(layers.dense(layers.dense(layers.flatten(conv(h, 1, 1)), 64, tf.nn.relu), 1))[:, 0]
    loss = tf.reduce_mean(tf.nn.softmax_cross_entropy_with_logits_v2(labels=share, logits=moves)) + tf.losses.mean_squared_error(value, found)
    loss += 1e-4 * tf.add_n([tf.nn.l2_loss(v) for v in tf.trainable_variables() if "kernel" in v.name])
    random = np.random.RandomState(0)
    feed = {board: (random.rand(32, 9, 9, 6) < 0.3), share: random.dirichlet(np.ones(82), 32), value: np.sign(rows(32, 1))[:, 0]}
    return loss, train(loss), [feed]


def layers_left_out():
    """Each block runs or is left out by a draw, under a condition (stochastic depth)."""
    x, y, feeds = images(24, 3, 16)
    h = conv(x, 32, 3, 2)
    for i in range(4):
        with tf.variable_scope(f"block{i}"):
            w = [tf.get_variable(f"w{j}", [3, 3, 32, 32]) for j in range(2)]

        def block(h=h, w=w):
            inner = tf.nn.relu(tf.nn.conv2d(h, w[0], [1, 1, 1, 1], "SAME"))
            return tf.nn.relu(h + tf.nn.conv2d(inner, w[1], [1, 1, 1, 1], "SAME"))

        h = tf.cond(tf.random_uniform([], seed=i) < 1 - 0.1 * i, block, lambda h=h: h)
    loss = cross_entropy(layers.dense(tf.reduce_mean(h, [1, 2]), 10), y)
    return loss, train(loss), feeds


def pictures_mixed():
    """Pairs of pictures and of labels are mixed by drawn shares, and boxes of one are cut out (mixup, cutout)."""
    x, y, feeds = images(24, 3, 16)
    order = tf.random_shuffle(tf.range(16), seed=3)
    share = tf.random_uniform([16, 1, 1, 1], 0.6, 1.0, seed=4)
    place, at = tf.random_uniform([16, 2], 0, 24, tf.int32, seed=5), tf.range(24)
    inside = tf.logical_and(abs(at[None, :, None] - place[:, :1, None]) < 4, abs(at[None, None] - place[:, 1:, None]) < 4)
    h = share * x + (1 - share) * tf.gather(x, order)
    h = tf.where(tf.tile(inside[..., None], [1, 1, 1, 3]), tf.zeros_like(h), h)
    truth = tf.one_hot(y, 10)
    truth = share[:, 0, 0] * truth + (1 - share[:, 0, 0]) * tf.gather(truth, order)
    logits = layers.dense(tf.reduce_mean(conv(conv(h, 32, 3, 2), 64, 3, 2), [1, 2]), 10)
    loss = tf.losses.softmax_cross_entropy(truth, logits, label_smoothing=0.1)
    return loss, train(loss), feeds
