"""Training graphs of TensorFlow 1: generative nets, policies, and learning without nets."""

import numpy as np
import tensorflow as tf

from cases.tf1_sequence import adam
from cases.tf1_vision import cross_entropy, images, train

layers = tf.layers


def of_scope(scope):
    return tf.get_collection(tf.GraphKeys.TRAINABLE_VARIABLES, scope)


def rows(batch, width, seed=0):
    return np.random.RandomState(seed).randn(batch, width).astype("f")


def autoencoder():
    x = tf.placeholder(tf.float32, [None, 784])
    h = x
    for width in (256, 64, 256):
        h = layers.dense(h, width, tf.nn.sigmoid)
    loss = tf.reduce_mean(tf.square(layers.dense(h, 784, tf.nn.sigmoid) - x))
    return loss, train(loss, tf.train.RMSPropOptimizer(0.001)), [{x: abs(rows(128, 784)) % 1}]


def convolutional_autoencoder():
    x, _, feeds = images(28, 1, 32)
    h = layers.max_pooling2d(layers.conv2d(x, 32, 3, 1, "same", activation=tf.nn.relu), 2, 2)
    h = layers.conv2d(h, 16, 3, 2, "same", activation=tf.nn.relu)
    h = tf.image.resize_nearest_neighbor(h, [14, 14])
    h = tf.image.resize_bilinear(layers.conv2d(h, 32, 3, 1, "same", activation=tf.nn.relu), [28, 28])
    loss = tf.reduce_mean(tf.square(layers.conv2d(h, 1, 3, 1, "same") - x))
    return loss, train(loss, adam()), feeds


def vae():
    x = tf.placeholder(tf.float32, [None, 784])
    h = layers.dense(x, 256, tf.nn.relu)
    mean, spread = layers.dense(h, 32), layers.dense(h, 32)
    noise = tf.placeholder(tf.float32, [None, 32])
    logits = layers.dense(layers.dense(mean + tf.exp(spread / 2) * noise, 256, tf.nn.relu), 784)
    entropy = tf.reduce_sum(tf.nn.sigmoid_cross_entropy_with_logits(labels=x, logits=logits), 1)
    distance = -0.5 * tf.reduce_sum(1 + spread - tf.square(mean) - tf.exp(spread), 1)
    loss = tf.reduce_mean(entropy + distance)
    return loss, train(loss, adam()), [{x: abs(rows(128, 784)) % 1, noise: rows(128, 32, 1)}]


def vae_recommender():
    x = tf.placeholder(tf.float32, [None, 3000])
    h = tf.nn.dropout(tf.nn.l2_normalize(x, 1), keep_prob=1.0)
    h = layers.dense(h, 300, tf.tanh)
    mean, spread = layers.dense(h, 100), layers.dense(h, 100)
    h = layers.dense(mean + tf.exp(0.5 * spread) * tf.random_normal(tf.shape(mean), seed=3), 300, tf.tanh)
    likelihood = tf.reduce_mean(tf.reduce_sum(tf.nn.log_softmax(layers.dense(h, 3000)) * x, 1))
    loss = 0.2 * tf.reduce_mean(tf.reduce_sum(0.5 * (-spread + tf.exp(spread) + mean**2 - 1), 1)) - likelihood
    return loss, train(loss, adam()), [{x: (rows(64, 3000) > 2).astype("f")}]


def gan():
    real, noise = tf.placeholder(tf.float32, [None, 784]), tf.placeholder(tf.float32, [None, 64])

    def judge(x):
        with tf.variable_scope("judge", reuse=tf.AUTO_REUSE):
            return layers.dense(layers.dense(x, 128, tf.nn.leaky_relu, name="a"), 1, name="b")

    with tf.variable_scope("maker"):
        made = layers.dense(layers.dense(noise, 128, tf.nn.relu), 784, tf.tanh)
    entropy = lambda logits, one: tf.reduce_mean(
        tf.nn.sigmoid_cross_entropy_with_logits(labels=tf.fill(tf.shape(logits), one), logits=logits)
    )  # noqa: E731, E501
    found, fooled = judge(real), judge(made)
    loss = entropy(found, 0.9) + entropy(fooled, 0.0)
    first = adam(1e-4).minimize(loss, var_list=of_scope("judge"))
    second = adam(1e-4).minimize(entropy(fooled, 1.0), var_list=of_scope("maker"))
    return loss, tf.group(first, second), [{real: rows(64, 784), noise: rows(64, 64, 1)}]


def dcgan():
    real, _, feeds = images(32, 3, 16)
    noise = tf.placeholder(tf.float32, [None, 64])
    with tf.variable_scope("maker"):
        h = tf.reshape(layers.dense(noise, 4 * 4 * 128), [-1, 4, 4, 128])
        for filters in (64, 32):
            h = tf.nn.relu(layers.batch_normalization(layers.conv2d_transpose(h, filters, 5, 2, "same"), training=True))
        made = tf.tanh(layers.conv2d_transpose(h, 3, 5, 2, "same"))

    def judge(x):
        with tf.variable_scope("judge", reuse=tf.AUTO_REUSE):
            x = tf.nn.leaky_relu(layers.conv2d(x, 32, 5, 2, "same", name="a"))
            x = tf.nn.leaky_relu(layers.batch_normalization(layers.conv2d(x, 64, 5, 2, "same", name="b"), training=True, name="n"))
            return layers.dense(layers.flatten(x), 1, name="c")

    entropy = lambda logits, one: tf.reduce_mean(
        tf.nn.sigmoid_cross_entropy_with_logits(labels=tf.fill(tf.shape(logits), one), logits=logits)
    )  # noqa: E731, E501
    found, fooled = judge(real), judge(made)
    loss = entropy(found, 1.0) + entropy(fooled, 0.0)
    first = tf.train.AdamOptimizer(2e-4, 0.5).minimize(loss, var_list=of_scope("judge"))
    second = tf.train.AdamOptimizer(2e-4, 0.5).minimize(entropy(fooled, 1.0), var_list=of_scope("maker"))
    return loss, tf.group(first, second), [{**feeds[0], noise: rows(16, 64)}]


def wasserstein_gradient_penalty():
    real, noise, mix = (tf.placeholder(tf.float32, [None, width]) for width in (64, 16, 1))

    def judge(x):
        with tf.variable_scope("judge", reuse=tf.AUTO_REUSE):
            return layers.dense(layers.dense(x, 256, tf.tanh, name="a"), 1, name="b")

    with tf.variable_scope("maker"):
        made = layers.dense(layers.dense(noise, 256, tf.nn.relu), 64)
    between = mix * real + (1 - mix) * made
    slope = tf.sqrt(tf.reduce_sum(tf.square(tf.gradients(judge(between), between)[0]), 1) + 1e-8)
    loss = tf.reduce_mean(judge(made)) - tf.reduce_mean(judge(real)) + 10 * tf.reduce_mean(tf.square(slope - 1))
    feed = {real: rows(256, 64), noise: rows(256, 16, 1), mix: abs(rows(256, 1, 2)) % 1}
    return loss, adam(1e-4).minimize(loss, var_list=of_scope("judge")), [feed]


def normalising_flow():
    x = tf.placeholder(tf.float32, [None, 32])
    h, volume = x, 0.0
    for _ in range(4):
        a, b = tf.split(h, 2, axis=1)
        inner = layers.dense(a, 64, tf.nn.relu)
        scale = tf.tanh(layers.dense(inner, 16))
        h, volume = tf.concat([b * tf.exp(scale) + layers.dense(inner, 16), a], 1), volume + tf.reduce_sum(scale, 1)
    loss = tf.reduce_mean(0.5 * tf.reduce_sum(tf.square(h), 1) - volume)
    return loss, train(loss, adam()), [{x: rows(512, 32)}]


def mixture_density():
    x, y = tf.placeholder(tf.float32, [None, 1]), tf.placeholder(tf.float32, [None, 1])
    shares, means, spreads = tf.split(layers.dense(layers.dense(x, 128, tf.tanh), 60), 3, axis=1)
    spreads = tf.exp(spreads)
    density = -tf.square((y - means) / spreads) / 2 - tf.log(spreads) + tf.nn.log_softmax(shares)
    loss = -tf.reduce_mean(tf.reduce_logsumexp(density, 1))
    return loss, train(loss, adam()), [{x: rows(1000, 1), y: rows(1000, 1, 1)}]


def neural_ode_by_while_loop():
    x, y = tf.placeholder(tf.float32, [None, 32]), tf.placeholder(tf.float32, [None, 32])
    a, b = tf.get_variable("a", [32, 64]), tf.get_variable("b", [64, 32])
    body = lambda i, h: (i + 1, h + 0.05 * tf.matmul(tf.tanh(tf.matmul(h, a)), b))  # noqa: E731
    _, h = tf.while_loop(lambda i, h: i < 20, body, (0, x))
    loss = tf.reduce_mean(tf.square(h - y))
    return loss, train(loss, adam()), [{x: rows(128, 32), y: rows(128, 32, 1)}]


def gaussian_process_by_cholesky():
    x, y = tf.placeholder(tf.float32, [200, 4]), tf.placeholder(tf.float32, [200, 1])
    length, noise = (tf.exp(tf.get_variable(name, [], initializer=tf.zeros_initializer())) for name in ("length", "noise"))
    squares = tf.reduce_sum(tf.square(x), 1)
    distances = squares[:, None] + squares[None] - 2 * tf.matmul(x, x, transpose_b=True)
    factor = tf.cholesky(tf.exp(-distances / (2 * tf.square(length))) + (noise + 1e-3) * tf.eye(200))
    inner = tf.matrix_triangular_solve(factor, y)
    loss = (0.5 * tf.reduce_sum(tf.square(inner)) + tf.reduce_sum(tf.log(tf.diag_part(factor)))) / 200
    return loss, train(loss, adam(0.01)), [{x: rows(200, 4), y: rows(200, 1, 1)}]


def logistic_regression():
    x, y = tf.placeholder(tf.float32, [None, 784]), tf.placeholder(tf.float32, [None, 10])
    shares = tf.nn.softmax(tf.matmul(x, tf.get_variable("w", [784, 10])) + tf.get_variable("b", [10]))
    loss = tf.reduce_mean(-tf.reduce_sum(y * tf.log(shares + 1e-9), axis=1))
    return loss, train(loss, tf.train.GradientDescentOptimizer(0.01)), [{x: rows(100, 784), y: np.eye(10, dtype="f")[np.arange(100) % 10]}]


def support_vectors_hinge():
    x, y = tf.placeholder(tf.float32, [None, 200]), tf.placeholder(tf.float32, [None, 1])
    w = tf.get_variable("w", [200, 1])
    margins = 1 - y * (tf.matmul(x, w) - tf.get_variable("b", [1]))
    loss = tf.reduce_mean(tf.maximum(0.0, margins)) + 0.01 * tf.reduce_sum(tf.square(w))
    return loss, train(loss, tf.train.GradientDescentOptimizer(0.01)), [{x: rows(512, 200), y: np.sign(rows(512, 1, 1))}]


def k_means():
    x = tf.placeholder(tf.float32, [2000, 16])
    centres = tf.get_variable("centres", [20, 16], initializer=tf.random_normal_initializer(), trainable=False)
    distances = tf.reduce_sum(tf.square(x[:, None] - centres[None]), 2)
    nearest = tf.argmin(distances, 1, output_type=tf.int32)
    means = tf.unsorted_segment_sum(x, nearest, 20) / tf.maximum(tf.unsorted_segment_sum(tf.ones([2000, 1]), nearest, 20), 1)
    return tf.reduce_mean(tf.reduce_min(distances, 1)), centres.assign(0.9 * centres + 0.1 * means), [{x: rows(2000, 16)}]


def wide_mlp():
    x, y = tf.placeholder(tf.float32, [None, 512]), tf.placeholder(tf.int64, [None])
    h = x
    for _ in range(2):
        h = layers.dense(h, 1024, tf.nn.relu)
    loss = cross_entropy(layers.dense(h, 10), y)
    return loss, train(loss, adam()), [{x: rows(64, 512), y: np.arange(64) % 10}]


def tiny_policy_gradient():
    state, action, reward = tf.placeholder(tf.float32, [None, 4]), tf.placeholder(tf.int32, [None]), tf.placeholder(tf.float32, [None])
    logits = layers.dense(layers.dense(state, 16, tf.tanh), 2)
    loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=action, logits=logits) * reward)
    return loss, train(loss, adam(0.01)), [{state: rows(40, 4), action: np.arange(40) % 2, reward: rows(40, 1, 1)[:, 0]}]


def deep_q_images():
    state, following = tf.placeholder(tf.float32, [None, 84, 84, 4]), tf.placeholder(tf.float32, [None, 84, 84, 4])
    action, reward = tf.placeholder(tf.int32, [None]), tf.placeholder(tf.float32, [None])

    def value(x, scope):
        with tf.variable_scope(scope):
            for filters, size, stride in ((16, 8, 4), (32, 4, 2)):
                x = layers.conv2d(x, filters, size, stride, activation=tf.nn.relu)
            return layers.dense(layers.dense(layers.flatten(x), 256, tf.nn.relu), 6)

    target = tf.stop_gradient(reward + 0.99 * tf.reduce_max(value(following, "target"), 1))
    chosen = tf.reduce_sum(value(state, "online") * tf.one_hot(action, 6), 1)
    loss = tf.losses.huber_loss(target, chosen)
    step = tf.train.RMSPropOptimizer(2.5e-4, 0.95, 0.95, 0.01).minimize(loss, var_list=of_scope("online"))
    random = np.random.RandomState(0)
    feed = {key: random.rand(16, 84, 84, 4).astype("f") for key in (state, following)}
    return loss, step, [{**feed, action: random.randint(6, size=16), reward: random.randn(16).astype("f")}]


def proximal_policy():
    state, action, advantage, returns, before = (tf.placeholder(tf.float32, [None, width]) for width in (17, 6, 1, 1, 1))
    h = layers.dense(layers.dense(state, 64, tf.tanh), 64, tf.tanh)
    mean, spread = layers.dense(h, 6), tf.get_variable("spread", [6], initializer=tf.zeros_initializer())
    value = layers.dense(layers.dense(layers.dense(state, 64, tf.tanh), 64, tf.tanh), 1)
    likelihood = tf.reduce_sum(-0.5 * tf.square((action - mean) / tf.exp(spread)) - spread, 1, keepdims=True)
    ratio = tf.exp(tf.clip_by_value(likelihood - before, -5, 5))
    gain = tf.minimum(ratio * advantage, tf.clip_by_value(ratio, 0.8, 1.2) * advantage)
    loss = -tf.reduce_mean(gain) + 0.5 * tf.reduce_mean(tf.square(value - returns)) - 0.01 * tf.reduce_sum(spread)
    variables = tf.trainable_variables()
    gradients, _ = tf.clip_by_global_norm(tf.gradients(loss, variables), 0.5)
    feed = {key: rows(256, int(key.shape[1]), i) for i, key in enumerate((state, action, advantage, returns))}
    return loss, adam(3e-4).apply_gradients(zip(gradients, variables)), [{**feed, before: rows(256, 1) - 3}]


def advantage_actor_critic():
    state, action, returns = (
        tf.placeholder(tf.float32, [None, 84, 84, 1]),
        tf.placeholder(tf.int32, [None]),
        tf.placeholder(tf.float32, [None]),
    )
    h = layers.conv2d(layers.conv2d(state, 16, 8, 4, activation=tf.nn.relu), 32, 4, 2, activation=tf.nn.relu)
    h = layers.dense(layers.flatten(h), 128, tf.nn.relu)
    logits, value = layers.dense(h, 4), layers.dense(h, 1)[:, 0]
    entropy = -tf.reduce_mean(tf.reduce_sum(tf.nn.softmax(logits) * tf.nn.log_softmax(logits), 1))
    policy = tf.nn.sparse_softmax_cross_entropy_with_logits(labels=action, logits=logits) * tf.stop_gradient(returns - value)
    loss = tf.reduce_mean(policy) + 0.25 * tf.reduce_mean(tf.square(returns - value)) - 0.01 * entropy
    random = np.random.RandomState(0)
    feed = {state: random.rand(20, 84, 84, 1).astype("f"), action: random.randint(4, size=20), returns: random.randn(20).astype("f")}
    return loss, train(loss, tf.train.RMSPropOptimizer(7e-4, 0.99, epsilon=1e-5)), [feed]


def soft_actor_critic():
    state, action, following, noise = (tf.placeholder(tf.float32, [None, width]) for width in (17, 6, 17, 6))
    reward = tf.placeholder(tf.float32, [None, 1])

    def net(x, width, scope):
        with tf.variable_scope(scope, reuse=tf.AUTO_REUSE):
            x = layers.dense(layers.dense(x, 128, tf.nn.relu, name="a"), 128, tf.nn.relu, name="b")
            return layers.dense(x, width, name="c")

    mean, spread = tf.split(net(state, 12, "policy"), 2, axis=1)
    spread = tf.clip_by_value(spread, -5, 2)
    made = tf.tanh(mean + tf.exp(spread) * noise)
    likelihood = tf.reduce_sum(-0.5 * tf.square(noise) - spread - tf.log(1 - tf.square(made) + 1e-6), 1, keepdims=True)
    target = tf.stop_gradient(reward + 0.99 * net(following, 1, "target"))
    critics = [net(tf.concat([state, action], 1), 1, f"critic{i}") for i in range(2)]
    least = tf.minimum(*[net(tf.concat([state, made], 1), 1, f"critic{i}") for i in range(2)])
    value = net(state, 1, "value")
    critic_loss = sum(0.5 * tf.reduce_mean(tf.square(target - critic)) for critic in critics)
    critic_loss += 0.5 * tf.reduce_mean(tf.square(value - tf.stop_gradient(least - 0.2 * likelihood)))
    policy_loss = tf.reduce_mean(0.2 * likelihood - least)
    steps = [
        adam(3e-4).minimize(policy_loss, var_list=of_scope("policy")),
        adam(3e-4).minimize(critic_loss, var_list=of_scope("critic|value")),
    ]
    with tf.control_dependencies(steps):
        soft = [a.assign(0.995 * a + 0.005 * b) for a, b in zip(of_scope("target"), of_scope("value"))]
    feed = {key: rows(128, int(key.shape[1]), i) for i, key in enumerate((state, action, following, noise, reward))}
    return critic_loss, tf.group(*soft), [feed]


def conditional_update():
    """An average that is updated under a condition, and a rate that decays with the step."""
    x, y = tf.placeholder(tf.float32, [None, 64]), tf.placeholder(tf.int64, [None])
    step = tf.train.get_or_create_global_step()
    loss = cross_entropy(layers.dense(layers.dense(x, 128, tf.nn.relu), 10), y)
    mean = tf.get_variable("mean", [], initializer=tf.zeros_initializer(), trainable=False)
    update = tf.cond(loss > mean, lambda: mean.assign(0.9 * mean + 0.1 * loss), lambda: mean.assign(0.5 * mean))
    rate = tf.train.exponential_decay(0.1, step, 10, 0.9, staircase=True)
    op = tf.train.MomentumOptimizer(rate, 0.9, use_nesterov=True).minimize(loss, global_step=step)
    average = tf.train.ExponentialMovingAverage(0.99, step)
    with tf.control_dependencies([op, update]):
        return loss, average.apply(tf.trainable_variables()), [{x: rows(128, 64), y: np.arange(128) % 10}]


def triplet_semi_hard():
    x, y = tf.placeholder(tf.float32, [None, 128]), tf.placeholder(tf.int32, [None])
    h = tf.nn.l2_normalize(layers.dense(layers.dense(x, 128, tf.nn.relu), 32), 1)
    distances = 2 - 2 * tf.matmul(h, h, transpose_b=True)
    same = tf.equal(y[:, None], y[None])
    farthest = tf.reduce_max(tf.where(same, distances, tf.zeros_like(distances)), 1)
    nearest = tf.reduce_min(tf.where(same, tf.fill(tf.shape(distances), 9.0), distances), 1)
    loss = tf.reduce_mean(tf.nn.softplus(farthest - nearest))
    return loss, train(loss, adam()), [{x: rows(128, 128), y: np.arange(128) % 16}]
