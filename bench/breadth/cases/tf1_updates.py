"""Training graphs of TensorFlow 1 whose updates are more than an optimiser's: trust, factors, averages, populations. As tf1_vision.py."""

import numpy as np
import tensorflow as tf

from cases.tf1_further import normal
from cases.tf1_other import of_scope, rows
from cases.tf1_sequence import adam, block, embedded, text
from cases.tf1_vision import cross_entropy, images

layers = tf.layers


def slot(variable, name, shape=None):
    """A variable of zeros that belongs to another one."""
    shape = variable.shape if shape is None else shape
    return tf.get_variable(f"{variable.op.name}/{name}", shape, initializer=tf.zeros_initializer(), trainable=False)


def gradients(loss):
    variables = tf.trainable_variables()
    made = tf.gradients(loss, variables)
    return [(tf.convert_to_tensor(gradient), variable) for gradient, variable in zip(made, variables)]


def every(turns, update):
    """The count of steps, and an operator that makes `update` in each step that `turns` divides."""
    step = tf.train.get_or_create_global_step()
    with tf.control_dependencies([step]):
        due = tf.equal(step % turns, turns - 1)
    made = tf.cond(due, lambda: tf.group(*update()), tf.no_op)
    with tf.control_dependencies([made]):
        return tf.assign_add(step, 1)


def dense_net(x, widths, classes=10):
    for width in widths:
        x = layers.dense(x, width, tf.nn.relu)
    return layers.dense(x, classes)


def labelled(batch=128, width=256):
    x, y = tf.placeholder(tf.float32, [None, width]), tf.placeholder(tf.int64, [None])
    return x, y, [{x: rows(batch, width), y: np.arange(batch) % 10}]


def layers_by_trust():
    """Each weight's step is as long as the weight (LAMB)."""
    ids, y, feed = text()
    loss = cross_entropy(layers.dense(tf.reduce_mean(block(block(embedded(ids), "a"), "b"), 1), 10), y)
    updates = []
    for gradient, variable in gradients(loss):
        m, v = slot(variable, "m"), slot(variable, "v")
        m2, v2 = 0.9 * m + 0.1 * gradient, 0.999 * v + 0.001 * gradient**2
        change = m2 / (tf.sqrt(v2) + 1e-6) + 0.01 * variable
        length, step = tf.norm(variable), tf.norm(change)
        trust = tf.where(length > 0, tf.where(step > 0, length / step, 1.0), 1.0)
        updates += [tf.assign(m, m2), tf.assign(v, v2), tf.assign_sub(variable, 1e-3 * trust * change)]
    return loss, tf.group(*updates), [feed]


def factored_moments():
    """Second moments of a matrix as those of its rows and columns; steps of bounded size (Adafactor)."""
    x, y, feeds = labelled()
    loss, updates = cross_entropy(dense_net(x, (512, 256)), y), []
    for gradient, variable in gradients(loss):
        square = gradient**2 + 1e-30
        if variable.shape.rank == 2:
            tall, wide = slot(variable, "rows", variable.shape[:1]), slot(variable, "columns", variable.shape[1:])
            tall = tf.assign(tall, 0.99 * tall + 0.01 * tf.reduce_mean(square, 1))
            wide = tf.assign(wide, 0.99 * wide + 0.01 * tf.reduce_mean(square, 0))
            change = gradient * tf.rsqrt(tall / tf.reduce_mean(tall))[:, None] * tf.rsqrt(wide)
        else:
            moment = slot(variable, "moment")
            change = gradient * tf.rsqrt(tf.assign(moment, 0.99 * moment + 0.01 * square))
        size = lambda each: tf.sqrt(tf.reduce_mean(each**2))  # noqa: E731
        change /= tf.maximum(1.0, size(change))
        updates.append(tf.assign_sub(variable, 1e-2 * tf.maximum(1e-3, size(variable)) * change))
    return loss, tf.group(*updates), feeds


def slow_and_averaged_weights():
    """Every fifth step slow weights follow the fast ones (Lookahead); an average of all steps is kept beside."""
    x, y, feeds = labelled()
    loss = cross_entropy(dense_net(x, (256, 256)), y)
    fast = adam().minimize(loss)
    average = tf.train.ExponentialMovingAverage(0.999)
    with tf.control_dependencies([fast]):
        kept = average.apply(tf.trainable_variables())
    slow = [(slot(variable, "slow"), variable) for variable in tf.trainable_variables()]

    def follow():
        for old, variable in slow:
            made = old + 0.5 * (variable - old)
            yield tf.assign(old, made)
            yield tf.assign(variable, made)

    with tf.control_dependencies([kept]):
        return loss, every(5, follow), feeds


def gradients_of_four_batches():
    """Gradients are added up; each fourth step clips their norm and applies them."""
    x, y, feeds = images(28, 1, 16)
    h = layers.conv2d(layers.conv2d(x, 16, 3, 2, activation=tf.nn.relu), 32, 3, 2, activation=tf.nn.relu)
    loss = cross_entropy(dense_net(layers.flatten(h), (64,)), y)
    sums = [(slot(variable, "sum"), gradient, variable) for gradient, variable in gradients(loss)]
    optimizer = adam()

    def apply():
        clipped, _ = tf.clip_by_global_norm([total / 4 for total, _, _ in sums], 1.0)
        made = optimizer.apply_gradients([(gradient, variable) for gradient, (_, _, variable) in zip(clipped, sums)])
        with tf.control_dependencies([made]):
            return [tf.assign(total, tf.zeros_like(total)) for total, _, _ in sums]

    with tf.control_dependencies([tf.assign_add(total, gradient) for total, gradient, _ in sums]):
        return loss, every(4, apply), feeds


def natural_policy_gradient():
    """Conjugate gradients on products with the Fisher matrix, then a search along the line (TRPO)."""
    x, action, gain = tf.placeholder(tf.float32, [256, 16]), tf.placeholder(tf.int64, [256]), tf.placeholder(tf.float32, [256])
    h = tf.tanh(layers.dense(tf.tanh(layers.dense(x, 64)), 64))
    variables = lambda: tf.trainable_variables()  # noqa: E731
    policy = tf.nn.log_softmax(layers.dense(h, 6))
    sizes = [variable.shape.num_elements() for variable in variables()]

    def flat(parts):
        return tf.concat([tf.reshape(part, [-1]) for part in parts], 0)

    def parts(vector):
        return [tf.reshape(part, variable.shape) for part, variable in zip(tf.split(vector, sizes), variables())]

    old = tf.stop_gradient(policy)
    chosen = tf.one_hot(action, 6)
    loss = -tf.reduce_mean(tf.reduce_sum(tf.exp(policy - old) * chosen, 1) * gain)
    apart = tf.reduce_mean(tf.reduce_sum(tf.exp(old) * (old - policy), 1))
    slope, force = flat(tf.gradients(apart, variables())), -flat(tf.gradients(loss, variables()))

    def fisher(vector):
        return flat(tf.gradients(tf.reduce_sum(slope * tf.stop_gradient(vector)), variables())) + 0.1 * vector

    found, rest, way, size = tf.zeros_like(force), force, force, tf.reduce_sum(force**2)
    for _ in range(5):
        product = fisher(way)
        share = size / tf.reduce_sum(way * product)
        found, rest = found + share * way, rest - share * product
        size, before = tf.reduce_sum(rest**2), size
        way = rest + size / before * way
    step = found * tf.sqrt(0.02 / tf.reduce_sum(found * fisher(found)))
    train = tf.group(*[tf.assign_add(variable, part) for variable, part in zip(variables(), parts(step))])
    feed = {x: rows(256, 16), action: np.arange(256) % 6, gain: normal(256)}
    return loss + tf.norm(step), train, [feed]


def population_of_policies():
    """Weights that move to where random neighbours do well; no gradients (evolution strategy)."""
    x, target = tf.placeholder(tf.float32, [64, 8]), tf.placeholder(tf.float32, [64, 2])
    shapes = ((8, 32), (32, 32), (32, 2))
    weights = [tf.get_variable(f"w{i}", shape) for i, shape in enumerate(shapes)]
    half = [tf.random_normal([32, *shape]) for shape in shapes]
    noise = [tf.concat([each, -each], 0) for each in half]
    h = tf.tile(x[None], [64, 1, 1])
    for i, (weight, change) in enumerate(zip(weights, noise)):
        h = tf.matmul(h, weight + 0.05 * change)
        h = tf.tanh(h) if i < 2 else h
    costs = tf.reduce_mean(tf.square(h - target), [1, 2])
    places = tf.argsort(tf.argsort(costs))
    share = tf.cast(places, tf.float32) / 63 - 0.5
    moves = [tf.tensordot(share, change, 1) / (64 * 0.05) for change in noise]
    train = tf.train.AdamOptimizer(0.01).apply_gradients(zip(moves, weights))
    return tf.reduce_mean(costs), train, [{x: rows(64, 8), target: rows(64, 2, 1)}]


def critic_of_bounded_norm():
    """Convolutions divided by their largest singular value, found by a power iteration that goes on (spectral normalisation)."""
    real, z = tf.placeholder(tf.float32, [16, 32, 32, 3]), tf.placeholder(tf.float32, [16, 32])
    powers = []

    def bounded(name, shape):
        w = tf.get_variable(name, shape)
        flat = tf.reshape(w, [-1, shape[-1]])
        u = tf.get_variable(name + "_u", [1, shape[-1]], initializer=tf.ones_initializer(), trainable=False)
        v = tf.stop_gradient(tf.nn.l2_normalize(tf.matmul(u, flat, transpose_b=True)))
        after = tf.stop_gradient(tf.nn.l2_normalize(tf.matmul(v, flat)))
        powers.append(tf.assign(u, after))
        return w / tf.squeeze(tf.matmul(tf.matmul(v, flat), after, transpose_b=True))

    with tf.variable_scope("maker"):
        h = tf.reshape(layers.dense(z, 8 * 8 * 32, tf.nn.relu), [-1, 8, 8, 32])
        h = layers.conv2d_transpose(h, 16, 4, 2, "same", activation=tf.nn.relu)
        made = layers.conv2d_transpose(h, 3, 4, 2, "same", activation=tf.tanh)
    with tf.variable_scope("critic"):
        h = tf.concat([real, made], 0)
        for i, (inputs, outputs) in enumerate(((3, 32), (32, 64), (64, 64))):
            h = tf.nn.leaky_relu(tf.nn.conv2d(h, bounded(f"w{i}", [4, 4, inputs, outputs]), [1, 2, 2, 1], "SAME"))
        good, bad = tf.split(tf.matmul(layers.flatten(h), bounded("out", [1024, 1])), 2)
    loss = tf.reduce_mean(tf.nn.relu(1 - good)) + tf.reduce_mean(tf.nn.relu(1 + bad))
    steps = [adam().minimize(loss, var_list=of_scope("critic")), adam().minimize(-tf.reduce_mean(bad), var_list=of_scope("maker"))]
    with tf.control_dependencies(steps):
        return loss, tf.group(*powers), [{real: normal(16, 32, 32, 3), z: rows(16, 32)}]


def mixture_by_expectation():
    """A mixture of normal distributions by expectation and maximisation; covariances by their Cholesky factors."""
    x = tf.placeholder(tf.float32, [1000, 6])
    means = tf.get_variable("means", [8, 6], initializer=tf.random_normal_initializer())
    spreads = tf.get_variable("spreads", initializer=np.tile(np.eye(6, dtype="f"), (8, 1, 1)))
    shares = tf.get_variable("shares", initializer=np.full(8, 1 / 8, "f"))
    factors = tf.linalg.cholesky(spreads)
    away = tf.transpose(x[:, None] - means, [1, 2, 0])
    far = tf.reduce_sum(tf.linalg.triangular_solve(factors, away) ** 2, 1)
    volume = tf.reduce_sum(tf.log(tf.linalg.diag_part(factors)), 1)
    scores = tf.log(shares)[:, None] - 0.5 * far - volume[:, None] - 3 * np.log(2 * np.pi)
    owned = tf.nn.softmax(scores, 0)
    loss, counts = -tf.reduce_mean(tf.reduce_logsumexp(scores, 0)), tf.reduce_sum(owned, 1)
    new = tf.matmul(owned, x) / counts[:, None]
    away = x - new[:, None]
    wide = tf.einsum("kn,kni,knj->kij", owned, away, away) / counts[:, None, None] + 1e-3 * tf.eye(6)
    with tf.control_dependencies([loss, wide]):
        return loss, tf.group(tf.assign(means, new), tf.assign(spreads, wide), tf.assign(shares, counts / 1000)), [{x: rows(1000, 6)}]


def weights_with_spread():
    """Every weight is drawn from a distribution of its own (Bayes by backpropagation)."""
    x, y, feeds = labelled(128, 128)
    h, apart = x, 0.0
    for i, (inputs, outputs) in enumerate(((128, 256), (256, 256), (256, 10))):
        mean, wide = tf.get_variable(f"mean{i}", [inputs, outputs]), tf.get_variable(f"wide{i}", [inputs, outputs])
        spread = tf.nn.softplus(wide - 4)
        h = tf.matmul(h, mean + spread * tf.random_normal([inputs, outputs]))
        h = tf.nn.relu(h) if i < 2 else h
        apart += tf.reduce_sum(0.5 * (spread**2 + mean**2 - 1) - tf.log(spread))
    loss = cross_entropy(h, y) + apart / 1e5
    return loss, adam().minimize(loss), feeds


def policies_delayed():
    """Two critics learn in every step, the policy and the targets in each second (TD3)."""
    s, a, r, t = (tf.placeholder(tf.float32, [128, width]) for width in (24, 4, 1, 24))

    def act(s, scope, reuse=False):
        with tf.variable_scope(scope, reuse=reuse):
            h = layers.dense(layers.dense(s, 128, tf.nn.relu, name="a"), 128, tf.nn.relu, name="b")
            return layers.dense(h, 4, tf.tanh, name="c")

    def judge(s, a, scope, reuse=False):
        with tf.variable_scope(scope, reuse=reuse):
            h = layers.dense(layers.dense(tf.concat([s, a], 1), 128, tf.nn.relu, name="a"), 128, tf.nn.relu, name="b")
            return layers.dense(h, 1, name="c")

    own = act(s, "policy")
    then = act(t, "policy_target") + tf.clip_by_value(0.2 * tf.random_normal([128, 4]), -0.5, 0.5)
    then = tf.clip_by_value(then, -1.0, 1.0)
    goal = tf.stop_gradient(r + 0.99 * tf.minimum(judge(t, then, "one_target"), judge(t, then, "two_target")))
    loss = sum(tf.reduce_mean(tf.square(judge(s, a, name) - goal)) for name in ("one", "two"))
    pleased = -tf.reduce_mean(judge(s, own, "one", reuse=True))
    critics = adam().minimize(loss, var_list=of_scope("one/") + of_scope("two/"))
    optimizer = adam()
    slopes = optimizer.compute_gradients(pleased, of_scope("policy/"))

    def follow():
        with tf.control_dependencies([optimizer.apply_gradients(slopes)]):
            for name in ("policy", "one", "two"):
                for slow, fast in zip(of_scope(name + "_target/"), of_scope(name + "/")):
                    yield tf.assign(slow, 0.995 * slow + 0.005 * fast)

    with tf.control_dependencies([critics]):
        return loss, every(2, follow), [{s: rows(128, 24), a: rows(128, 4), r: rows(128, 1), t: rows(128, 24, 1)}]
