"""Training in TensorFlow 2 as people publish it: policies, equations, speech, sets, texts with positions of all kinds. As tf2_keras.py."""

import numpy as np
import tensorflow as tf
from tensorflow.keras import layers

from cases.tf2_functions import entropy, normal, taped
from cases.tf2_keras import fit, images, sequential, tape, tokens


def epochs_of_a_policy():
    """Several turns over parts of a batch in one tf.function; a loop ends early when the policy has moved enough (PPO)."""
    actor, critic = (sequential(layers.Dense(64, "tanh", input_shape=[12]), layers.Dense(64, "tanh"), layers.Dense(n)) for n in (4, 1))
    a, b = tf.keras.optimizers.Adam(3e-4), tf.keras.optimizers.Adam(1e-3)
    random = np.random.RandomState(0)
    x, acts = normal(256, 12), tf.constant(random.randint(4, size=256))
    old, gain, back = tf.constant(np.full(256, -1.386, "f")), normal(256, seed=2), normal(256, seed=3)

    def log_chance(x, acts):
        return tf.reduce_sum(tf.one_hot(acts, 4) * tf.nn.log_softmax(actor(x)), 1)

    @tf.function
    def step(order):
        total = 0.0
        for part in tf.range(4):
            rows = order[part * 64 : (part + 1) * 64]
            take = lambda v: tf.gather(v, rows)  # noqa: E731, B023
            with tf.GradientTape() as record:
                ratio = tf.exp(log_chance(take(x), take(acts)) - take(old))
                loss = -tf.reduce_mean(tf.minimum(ratio * take(gain), tf.clip_by_value(ratio, 0.8, 1.2) * take(gain)))
            a.apply_gradients(zip(record.gradient(loss, actor.trainable_variables), actor.trainable_variables))
            with tf.GradientTape() as record:
                value = tf.reduce_mean(tf.square(take(back) - critic(take(x))[:, 0]))
            b.apply_gradients(zip(record.gradient(value, critic.trainable_variables), critic.trainable_variables))
            total += loss + value
            if tf.reduce_mean(take(old) - log_chance(take(x), take(acts))) > 5.0:
                break
        return total

    return lambda i: step(tf.constant(np.random.RandomState(i % 4).permutation(256))).numpy()


def actors_with_temperature():
    """Squashed normal actions, two critics, a temperature that is learned, followers (SAC in TensorFlow 2)."""
    actor = sequential(layers.Dense(64, "relu", input_shape=[10]), layers.Dense(64, "relu"), layers.Dense(6))
    make = lambda: sequential(layers.Dense(64, "relu", input_shape=[13]), layers.Dense(64, "relu"), layers.Dense(1))  # noqa: E731
    critics, slow = [make(), make()], [make(), make()]
    warmth = tf.Variable(0.0)
    o = [tf.keras.optimizers.Adam(3e-4) for _ in range(3)]
    x, act, pay, nxt, over = normal(128, 10), tf.tanh(normal(128, 3, seed=1)), normal(128, 1, seed=2), normal(128, 10, seed=3), tf.cast(normal(128, 1) > 1, tf.float32)

    def drawn(x, seed):
        mean, log = tf.split(actor(x), 2, 1)
        log = tf.clip_by_value(log, -20, 2)
        noise = tf.random.stateless_normal([128, 3], [seed, 1])
        raw = mean + tf.exp(log) * noise
        chance = tf.reduce_sum(-0.5 * noise**2 - log - 0.919, 1, True)
        return tf.tanh(raw), chance - tf.reduce_sum(2 * (np.log(2) - raw - tf.nn.softplus(-2 * raw)), 1, True)

    @tf.function
    def step(seed):
        following, chance = drawn(nxt, seed)
        best = tf.minimum(*[q(tf.concat([nxt, following], 1)) for q in slow])
        target = pay + 0.99 * (1 - over) * (best - tf.exp(warmth) * chance)
        made = [v for q in critics for v in q.trainable_variables]
        with tf.GradientTape() as record:
            first = tf.add_n([tf.reduce_mean(tf.square(q(tf.concat([x, act], 1)) - target)) for q in critics])
        o[0].apply_gradients(zip(record.gradient(first, made), made))
        with tf.GradientTape() as record:
            mine, chance = drawn(x, seed + 1)
            second = tf.reduce_mean(tf.exp(warmth) * chance - tf.minimum(*[q(tf.concat([x, mine], 1)) for q in critics]))
        o[1].apply_gradients(zip(record.gradient(second, actor.trainable_variables), actor.trainable_variables))
        with tf.GradientTape() as record:
            third = -tf.reduce_mean(warmth * tf.stop_gradient(chance - 3.0))
        o[2].apply_gradients([(record.gradient(third, warmth), warmth)])
        for v, w in zip(made, [v for q in slow for v in q.trainable_variables]):
            w.assign(0.995 * w + 0.005 * v)
        return first + second

    return lambda i: step(tf.constant(i % 7)).numpy()


def dreams_of_worlds():
    """States with drawn parts are rolled forward by a GRU, then imagined, with lambda returns from the end (Dreamer)."""
    cell, prior, post, head, value = layers.GRUCell(48), layers.Dense(32), layers.Dense(32), layers.Dense(16), layers.Dense(1)
    x, acts = normal(8, 10, 16), normal(8, 10, 4, seed=1)
    parts = [cell, prior, post, head, value]

    def loss(x, acts):
        h, z, total, values = tf.zeros([8, 48]), tf.zeros([8, 16]), 0.0, []
        for t in range(10):
            h, _ = cell(tf.concat([z, acts[:, t]], 1), [h])
            (pm, ps), (qm, qs) = (tf.split(f, 2, 1) for f in (prior(h), post(tf.concat([h, x[:, t]], 1))))
            ps, qs = tf.nn.softplus(ps) + 0.1, tf.nn.softplus(qs) + 0.1
            z = qm + qs * tf.random.stateless_normal([8, 16], [t, 3])
            far = tf.math.log(ps / qs) + (qs**2 + (qm - pm) ** 2) / (2 * ps**2) - 0.5
            total += tf.maximum(1.0, tf.reduce_mean(tf.reduce_sum(far, 1))) + tf.reduce_mean(tf.square(head(tf.concat([h, z], 1)) - x[:, t]))
            values.append(value(h)[:, 0])
        values = tf.stack(values)
        back = tf.scan(lambda last, v: v + 0.9 * last, tf.stop_gradient(values), tf.zeros([8]), reverse=True)
        return total + tf.reduce_mean(tf.square(back - values))

    loss(x, acts)
    return tape(lambda: [v for part in parts for v in part.trainable_variables], tf.keras.optimizers.Adam(1e-3), loss, [(x, acts)])


def words_with_turned_positions():
    """A decoder with rotary positions, RMS norms and gated layers; accumulated, clipped gradients every second step (Llama)."""
    x = tokens(32, 8, 999)[0]
    table = layers.Embedding(1000, 64)
    angles = np.outer(np.arange(32), 10000 ** (-np.arange(0, 16, 2) / 16)).astype("f")
    cos, sin = np.cos(angles)[None, :, None], np.sin(angles)[None, :, None]
    mask = tf.constant(np.triu(np.full((32, 32), -1e9, "f"), 1))
    blocks = [{name: layers.Dense(width, use_bias=False) for name, width in dict(q=64, k=32, v=32, o=64, a=128, b=128, c=64).items()} for _ in range(2)]
    scales = [tf.Variable(tf.ones([64])) for _ in range(5)]

    def norm(h, i):
        return scales[i] * h * tf.math.rsqrt(tf.reduce_mean(tf.square(h), -1, keepdims=True) + 1e-6)

    def turned(h):
        a, b = h[..., ::2], h[..., 1::2]
        return tf.reshape(tf.stack([a * cos - b * sin, a * sin + b * cos], -1), tf.shape(h))

    def logits(x):
        h = table(x)
        for i, part in enumerate(blocks):
            n = norm(h, 2 * i)
            q, k, v = (tf.reshape(part[name](n), [8, 32, -1, 16]) for name in "qkv")
            q, k, v = turned(q), tf.repeat(turned(k), 2, axis=2), tf.repeat(v, 2, axis=2)
            shares = tf.nn.softmax(tf.einsum("bqhd,bkhd->bhqk", q, k) / 4 + mask)
            h += part["o"](tf.reshape(tf.einsum("bhqk,bkhd->bqhd", shares, v), [8, 32, 64]))
            n = norm(h, 2 * i + 1)
            h += part["c"](tf.nn.silu(part["a"](n)) * part["b"](n))
        return tf.matmul(norm(h, 4), table.embeddings, transpose_b=True)

    logits(x)
    variables = [*table.trainable_variables, *scales, *(v for part in blocks for f in part.values() for v in f.trainable_variables)]
    sums = [tf.Variable(tf.zeros_like(v), trainable=False) for v in variables]
    rate = tf.keras.optimizers.schedules.CosineDecay(1e-3, 1000)
    optimizer = tf.keras.optimizers.AdamW(rate, weight_decay=0.01)
    optimizer.build(variables)
    count = tf.Variable(0, trainable=False)

    def update():
        made, _ = tf.clip_by_global_norm([s / 2 for s in sums], 1.0)
        optimizer.apply_gradients(zip(made, variables))
        for s in sums:
            s.assign(tf.zeros_like(s))
        return True

    @tf.function
    def step(x):
        with tf.GradientTape() as record:
            made = logits(x)[:, :-1]
            loss = tf.reduce_mean(tf.nn.softmax_cross_entropy_with_logits(0.9 * tf.one_hot(x[:, 1:], 1000) + 1e-4, made))
        for s, g in zip(sums, record.gradient(loss, variables)):
            s.assign_add(tf.convert_to_tensor(g))
        count.assign_add(1)
        tf.cond(count % 2 == 0, update, lambda: False)
        return loss

    return lambda i: step(x).numpy()


def attention_by_distance():
    """Distances fall in buckets that have a bias each, gated GELU layers (T5), with cross attention and padding masks."""
    x, y = tokens(24, 8)[0], tokens(20, 8, 999)[0]
    words, biases = layers.Embedding(5000, 64), [layers.Embedding(32, 4) for _ in range(2)]

    def bucket(q, k, both):
        far = np.arange(k)[None] - np.arange(q)[:, None]
        made, n = (np.where(far > 0, 16, 0), np.abs(far)) if both else (0, np.maximum(-far, 0))
        count = 16 if both else 32
        large = count // 2 + (np.log(np.maximum(n, 1) / (count // 2)) / np.log(128 / (count // 2)) * (count // 2)).astype(int)
        return tf.constant(made + np.where(n < count // 2, n, np.minimum(large, count - 1)))

    class Attend(layers.Layer):
        def __init__(self):
            super().__init__()
            self.f = [layers.Dense(64, use_bias=False) for _ in range(4)]
            self.n, self.scale = layers.LayerNormalization(center=False), None

        def call(self, h, memory, bias):
            n = self.n(h)
            q, k, v = (tf.reshape(f(a), [8, -1, 4, 16]) for f, a in zip(self.f, (n, memory if memory is not None else n, memory if memory is not None else n)))
            shares = tf.nn.softmax(tf.einsum("bqhd,bkhd->bhqk", q, k) + bias)
            return h + self.f[3](tf.reshape(tf.einsum("bhqk,bkhd->bqhd", shares, v), [8, -1, 64]))

    class Feed(layers.Layer):
        def __init__(self):
            super().__init__()
            self.a, self.b, self.c, self.n = layers.Dense(128, "gelu"), layers.Dense(128), layers.Dense(64), layers.LayerNormalization()

        def call(self, h):
            n = self.n(h)
            return h + self.c(self.a(n) * self.b(n))

    parts = [Attend(), Feed(), Attend(), Attend(), Feed()]

    def loss(x, y):
        pad = tf.where(x[:, None, None] % 7 == 0, -1e9, 0.0)
        h = words(x)
        h = parts[1](parts[0](h, None, tf.transpose(biases[0](bucket(24, 24, True)), [2, 0, 1])[None] + pad))
        d = words(tf.pad(y[:, :-1], [[0, 0], [1, 0]]))
        d = parts[2](d, None, tf.transpose(biases[1](bucket(20, 20, False)), [2, 0, 1])[None] + np.triu(np.full((20, 20), -1e9, "f"), 1))
        d = parts[4](parts[3](d, h, pad))
        return entropy(y, tf.matmul(d, words.embeddings, transpose_b=True) / 8)

    loss(x, y)
    variables = lambda: [v for part in (words, *biases, *parts) for v in part.trainable_variables]  # noqa: E731
    return tape(variables, tf.keras.optimizers.Adam(1e-3, clipnorm=1.0), loss, [(x, y)])


def flows_of_two_moons():
    """Coupled layers with tanh scales in a Keras model's `train_step` (RealNVP as Keras' own example)."""

    class Flow(tf.keras.Model):
        def __init__(self):
            super().__init__()
            make = lambda end: sequential(*[layers.Dense(64, "relu", kernel_regularizer=tf.keras.regularizers.l2(0.01)) for _ in range(3)], layers.Dense(2, end))  # noqa: E731
            self.scales, self.shifts = [make("tanh") for _ in range(4)], [make(None) for _ in range(4)]
            self.masks = tf.constant([[0, 1], [1, 0]] * 2, tf.float32)

        def call(self, x):
            logs = 0.0
            for i in range(4)[::-1]:
                kept = x * self.masks[i]
                other = 1 - self.masks[i]
                s, t = self.scales[i](kept) * other, self.shifts[i](kept) * other
                x = other * (x - t) * tf.exp(-s) + kept
                logs -= tf.reduce_sum(s, 1)
            return x, logs

        def train_step(self, x):
            with tf.GradientTape() as record:
                z, logs = self(x)
                loss = -tf.reduce_mean(-0.5 * tf.reduce_sum(z**2, 1) - 1.8379 + logs) + tf.add_n(self.losses)
            self.optimizer.apply_gradients(zip(record.gradient(loss, self.trainable_variables), self.trainable_variables))
            return {"loss": loss}

    model = Flow()
    model.compile(tf.keras.optimizers.Adam(1e-4))
    x = normal(256, 2)
    return lambda i: model.train_on_batch(x)


def letters_of_pictures():
    """Columns of a picture become letters: convolutions, two directions, CTC as a layer's loss (Keras' captcha example)."""

    class Ctc(layers.Layer):
        def call(self, y, made):
            count = tf.cast(tf.shape(y)[0], tf.int64)
            long, short = (tf.cast(tf.shape(v)[1], tf.int64) * tf.ones([count, 1], tf.int64) for v in (made, y))
            self.add_loss(tf.keras.backend.ctc_batch_cost(y, made, long, short))
            return made

    x, y = tf.keras.Input([64, 24, 1]), tf.keras.Input([5])
    h = layers.MaxPool2D()(layers.Conv2D(16, 3, padding="same", activation="relu")(x))
    h = layers.MaxPool2D()(layers.Conv2D(32, 3, padding="same", activation="relu")(h))
    h = layers.Dense(32, "relu")(layers.Reshape([16, 6 * 32])(h))
    h = layers.Bidirectional(layers.LSTM(32, return_sequences=True))(h)
    model = tf.keras.Model([x, y], Ctc()(y, layers.Dense(12, "softmax")(h)))
    model.compile(tf.keras.optimizers.Adam())
    feed = [normal(16, 64, 24, 1), tf.constant(np.random.RandomState(0).randint(11, size=(16, 5)).astype("f"))]
    return lambda i: model.train_on_batch(feed)


def captions_word_by_word():
    """A loop over words in a tf.function, attention over places, masked losses (TensorFlow's tutorial on captions)."""
    x, y = normal(16, 64, 48), tokens(12, 16, 800)[0]
    table, cell, out = layers.Embedding(800, 32), layers.GRU(64, return_sequences=True, return_state=True), layers.Dense(800)
    w1, w2, v, squeeze, mid = layers.Dense(32), layers.Dense(32), layers.Dense(1), layers.Dense(32, "relu"), layers.Dense(64)
    parts, optimizer = [table, cell, out, w1, w2, v, squeeze, mid], tf.keras.optimizers.Adam(1e-3)

    def loss_of(x, y):
        features, hidden, loss = squeeze(x), tf.zeros([16, 64]), 0.0
        word = tf.fill([16, 1], tf.constant(3, tf.int64))
        for t in tf.range(1, 12):
            shares = tf.nn.softmax(v(tf.nn.tanh(w1(features) + w2(hidden)[:, None])), 1)
            context = tf.reduce_sum(shares * features, 1)
            made, hidden = cell(tf.concat([context[:, None], table(word)], -1))
            made = out(mid(tf.reshape(made, [-1, 64])))
            each = tf.keras.losses.sparse_categorical_crossentropy(y[:, t], made, from_logits=True)
            loss += tf.reduce_mean(each * tf.cast(y[:, t] > 40, tf.float32))
            word = tf.expand_dims(y[:, t], 1)
        return loss

    @tf.function
    def step(x, y):
        with tf.GradientTape() as record:
            loss = loss_of(x, y)
        variables = [w for part in parts for w in part.trainable_variables]
        optimizer.apply_gradients(zip(record.gradient(loss, variables), variables))
        return loss / 12

    return lambda i: step(x, y).numpy()


def two_worlds_in_a_circle():
    """Two makers and two critics trained from one persistent tape (CycleGAN)."""

    def maker():
        return sequential(layers.Conv2D(16, 7, padding="same", activation="relu", input_shape=[32, 32, 3]), layers.GroupNormalization(-1),
                          layers.Conv2D(32, 3, 2, "same", activation="relu"), layers.Conv2DTranspose(16, 3, 2, "same", activation="relu"),
                          layers.Conv2D(3, 7, padding="same", activation="tanh"))  # fmt: skip

    def critic():
        return sequential(layers.Conv2D(16, 4, 2, "same", input_shape=[32, 32, 3]), layers.LeakyReLU(0.2), layers.Conv2D(32, 4, 2, "same"),
                          layers.LeakyReLU(0.2), layers.Conv2D(1, 4, padding="same"))  # fmt: skip

    g, f, a, b = nets = maker(), maker(), critic(), critic()
    optimizers = [tf.keras.optimizers.Adam(2e-4, 0.5) for _ in nets]
    x, y = tf.tanh(normal(2, 32, 32, 3)), tf.tanh(normal(2, 32, 32, 3, seed=1))
    right = lambda v, want: tf.reduce_mean(tf.square(v - want))  # noqa: E731
    same = lambda v, w: tf.reduce_mean(tf.abs(v - w))  # noqa: E731

    @tf.function
    def step(x, y):
        with tf.GradientTape(persistent=True) as record:
            made, back = g(x, training=True), f(y, training=True)
            circle = 10 * (same(f(made, training=True), x) + same(g(back, training=True), y))
            losses = [
                right(b(made), 1.0) + circle + 5 * same(g(y, training=True), y),
                right(a(back), 1.0) + circle + 5 * same(f(x, training=True), x),
                (right(a(x), 1.0) + right(a(back), 0.0)) / 2,
                (right(b(y), 1.0) + right(b(made), 0.0)) / 2,
            ]
        for net, loss, optimizer in zip(nets, losses, optimizers):
            optimizer.apply_gradients(zip(record.gradient(loss, net.trainable_variables), net.trainable_variables))
        return tf.add_n(losses)

    return lambda i: step(x, y).numpy()


def equations_with_curvature():
    """Residuals with second derivatives along two axes from nested tapes, places drawn in the step, weights of losses learned."""
    net = sequential(*[layers.Dense(40, "tanh") for _ in range(3)], layers.Dense(1))
    net(tf.zeros([1, 2]))
    weights = tf.Variable([0.0, 0.0])
    edge = normal(64, 2)

    def second(x, y):
        with tf.GradientTape(persistent=True) as outer:
            outer.watch([x, y])
            with tf.GradientTape(persistent=True) as inner:
                inner.watch([x, y])
                u = net(tf.concat([x, y], 1))
            ux, uy = inner.gradient(u, [x, y])
        return u, outer.gradient(ux, x), outer.gradient(uy, y)

    def loss(seed):
        x, y = (tf.random.stateless_uniform([256, 1], [seed, i], -1.0, 1.0) for i in (1, 2))
        u, uxx, uyy = second(x, y)
        inside = tf.reduce_mean(tf.square(uxx + uyy + 9 * u - tf.sin(3 * x) * tf.cos(2 * y)))
        bound = tf.reduce_mean(tf.square(net(edge)))
        return tf.reduce_sum(tf.exp(-weights) * tf.stack([inside, bound]) + weights)

    return tape(lambda: [*net.trainable_variables, weights], tf.keras.optimizers.Adam(1e-3), loss, [(tf.constant(i),) for i in range(4)])


def equations_by_jacobians():
    """A field is free of divergence by its Jacobians of each sample; a Hessian's trace is held small."""
    net = sequential(layers.Dense(32, tf.sin), layers.Dense(32, tf.sin), layers.Dense(3))
    x, y = normal(64, 3), normal(64, 3, seed=1)
    net(x)

    def loss(x, y):
        with tf.GradientTape() as outer:
            outer.watch(x)
            with tf.GradientTape() as inner:
                inner.watch(x)
                u = net(x)
            slopes = inner.batch_jacobian(u, x)
            apart = tf.linalg.trace(slopes)
        curve = outer.gradient(apart, x)
        return tf.reduce_mean(tf.square(u - y)) + tf.reduce_mean(apart**2) + 0.01 * tf.reduce_mean(curve**2)

    return taped(net, loss, [(x, y)])


def rays_of_scenes():
    """Encoded places along rays, colours by products of what is left of light (NeRF as Keras' example)."""
    net = [layers.Dense(64, "relu") for _ in range(4)] + [layers.Dense(4)]
    origin, way, colour = normal(4, 16, 3), normal(4, 16, 3, seed=1), tf.sigmoid(normal(4, 16, 3, seed=2))

    def encoded(x):
        return tf.concat([x, *[f(2.0**i * x) for i in range(6) for f in (tf.sin, tf.cos)]], -1)

    def loss(origin, way, colour, seed):
        t = tf.linspace(2.0, 6.0, 24) + tf.random.stateless_uniform([4, 16, 24], [seed, 1]) * 4 / 24
        places = origin[:, :, None] + way[:, :, None] * t[..., None]
        h = first = encoded(tf.reshape(places, [-1, 3]))
        for i, layer in enumerate(net):
            h = layer(tf.concat([h, first], -1) if i == 2 else h)
        made = tf.reshape(h, [4, 16, 24, 4])
        dense, rgb = tf.nn.relu(made[..., 3]), tf.sigmoid(made[..., :3])
        delta = tf.concat([t[..., 1:] - t[..., :-1], tf.fill([4, 16, 1], 1e10)], -1)
        alpha = 1 - tf.exp(-dense * delta)
        weight = alpha * tf.math.cumprod(1 - alpha + 1e-10, axis=-1, exclusive=True)
        return tf.reduce_mean(tf.square(tf.reduce_sum(weight[..., None] * rgb, 2) - colour))

    loss(origin, way, colour, 0)
    return tape(lambda: [v for f in net for v in f.trainable_variables], tf.keras.optimizers.Adam(5e-4), loss, [(origin, way, colour, tf.constant(i)) for i in range(3)])


def music_by_skewing():
    """Relative positions by padding and reshaping (Music Transformer), stochastic depth, focal loss, warm-up schedule."""

    class WarmUp(tf.keras.optimizers.schedules.LearningRateSchedule):
        def __call__(self, step):
            step = tf.cast(step, tf.float32) + 1
            return 0.05 * tf.minimum(tf.math.rsqrt(step), step * 100**-1.5)

    class Block(layers.Layer):
        def __init__(self):
            super().__init__()
            self.q, self.f = layers.Dense(192), [layers.Dense(128, "gelu"), layers.Dense(64)]
            self.far = self.add_weight("far", [32, 16])
            self.norms = [layers.LayerNormalization() for _ in range(2)]

        def call(self, h, training=None):
            q, k, v = tf.unstack(tf.reshape(self.q(h), [-1, 32, 3, 4, 16]), axis=2)
            q, k, v = (tf.transpose(a, [0, 2, 1, 3]) for a in (q, k, v))
            far = tf.pad(tf.einsum("bhqd,kd->bhqk", q, self.far), [[0, 0], [0, 0], [0, 0], [1, 0]])
            far = tf.reshape(far, [-1, 4, 33, 32])[:, :, 1:]
            shares = tf.nn.softmax((tf.matmul(q, k, transpose_b=True) + far) / 4 + np.triu(np.full((32, 32), -1e9, "f"), 1))
            made = tf.reshape(tf.transpose(tf.matmul(shares, v), [0, 2, 1, 3]), [-1, 32, 64])
            if training:
                made *= tf.floor(0.9 + tf.random.stateless_uniform([16, 1, 1], [1, 2])) / 0.9
            h = self.norms[0](h + made)
            return self.norms[1](h + self.f[1](self.f[0](h)))

    def focal(y, logits):
        logs = tf.gather(tf.nn.log_softmax(logits), tf.cast(y, tf.int32), batch_dims=2)
        return -tf.reduce_mean((1 - tf.exp(logs)) ** 2 * logs)

    x = tokens(33, 16, 388)[0]
    return fit(sequential(layers.Embedding(388, 64), Block(), Block(), layers.Dense(388)), x[:, :-1], x[:, 1:], tf.keras.optimizers.Adam(WarmUp(), 0.9, 0.98, 1e-9), focal)


def series_with_likelihoods():
    """A stateful recurrence of two layers gives means and spreads of what comes (DeepAR), rows scaled by their mean."""
    inputs = tf.keras.Input(batch_shape=[32, 24, 6])
    h = layers.LSTM(40, return_sequences=True, stateful=True)(inputs)
    h = layers.Dropout(0.1, seed=1)(layers.LSTM(40, return_sequences=True, stateful=True)(h))
    model = tf.keras.Model(inputs, layers.TimeDistributed(layers.Dense(2))(h))

    def likelihood(y, made):
        mean, spread = made[..., :1], tf.nn.softplus(made[..., 1:]) + 1e-3
        return tf.reduce_mean(0.5 * tf.square((y - mean) / spread) + tf.math.log(spread))

    return fit(model, normal(32, 24, 6), normal(32, 24, 1, seed=1), None, likelihood)


def weights_of_rows_and_classes():
    """`fit` over a data set with class weights, metrics by the dozen, batch norms, a schedule and label smoothing."""
    x, y = images(28, 1, 64)
    y = tf.one_hot(y, 10)
    model = sequential(layers.Rescaling(0.5), layers.Conv2D(16, 3, 2, use_bias=False), layers.BatchNormalization(), layers.ReLU(),
                       layers.SpatialDropout2D(0.1, seed=2), layers.Conv2D(32, 3, 2, activation="selu", kernel_initializer="lecun_normal"),
                       layers.GlobalMaxPool2D(), layers.AlphaDropout(0.1, seed=3), layers.Dense(10, kernel_regularizer="l1_l2"))  # fmt: skip
    rate = tf.keras.optimizers.schedules.PiecewiseConstantDecay([20, 40], [0.01, 0.003, 0.001])
    metrics = ["accuracy", tf.keras.metrics.TopKCategoricalAccuracy(3), tf.keras.metrics.AUC(from_logits=True), tf.keras.metrics.Precision(),
               tf.keras.metrics.Recall(), tf.keras.metrics.F1Score("macro")]  # fmt: skip
    model.compile(tf.keras.optimizers.SGD(rate, 0.9, nesterov=True), tf.keras.losses.CategoricalCrossentropy(True, 0.1), metrics)
    weights = {i: 1.0 + 0.1 * i for i in range(10)}
    return lambda i: model.train_on_batch(x, y, class_weight=weights)[0]


def graphs_of_changing_edges():
    """Messages along edges whose number changes in each step, gathered, weighed by softmax over targets, pooled by graph."""
    first, msg, score, gru, out = layers.Dense(48, "relu"), layers.Dense(48), layers.Dense(1), layers.GRUCell(48), layers.Dense(1)
    parts, optimizer = [first, msg, score, gru, out], tf.keras.optimizers.Adam(1e-3)

    @tf.function(input_signature=[tf.TensorSpec([None, 16]), tf.TensorSpec([None, 2], tf.int32), tf.TensorSpec([None], tf.int32), tf.TensorSpec([8])])
    def step(nodes, edges, graph, y):
        with tf.GradientTape() as record:
            h, count = first(nodes), tf.shape(nodes)[0]
            for _ in range(3):
                both = tf.concat([tf.gather(h, edges[:, 0]), tf.gather(h, edges[:, 1])], 1)
                raw = score(tf.nn.leaky_relu(both))[:, 0]
                raw = tf.exp(raw - tf.gather(tf.math.unsorted_segment_max(raw, edges[:, 1], count), edges[:, 1]))
                share = raw / tf.gather(tf.math.unsorted_segment_sum(raw, edges[:, 1], count), edges[:, 1])
                h, _ = gru(tf.math.unsorted_segment_sum(share[:, None] * msg(both), edges[:, 1], count), [h])
            pooled = tf.concat([tf.math.segment_mean(h, graph), tf.math.segment_max(h, graph)], 1)
            loss = tf.reduce_mean(tf.square(out(pooled)[:, 0] - y))
        variables = [v for part in parts for v in part.trainable_variables]
        optimizer.apply_gradients(zip(record.gradient(loss, variables), variables))
        return loss

    def feed(i):
        random = np.random.RandomState(i)
        sizes = random.randint(6, 20, size=8)
        graph = np.repeat(np.arange(8), sizes).astype("int32")
        edges = random.randint(len(graph), size=(3 * len(graph) + i, 2)).astype("int32")
        return random.randn(len(graph), 16).astype("f"), edges, graph, random.randn(8).astype("f")

    feeds = [feed(i) for i in range(40)]
    return lambda i: step(*feeds[i % 40]).numpy()


def spread_over_devices():
    """`strategy.run` and `reduce` over a distributed data set (MirroredStrategy's loop of one's own)."""
    strategy = tf.distribute.MirroredStrategy(["/cpu:0"])
    with strategy.scope():
        net = sequential(layers.Conv2D(16, 3, 2, activation="relu", input_shape=[28, 28, 1]), layers.BatchNormalization(), layers.Flatten(), layers.Dense(10))
        optimizer = tf.keras.optimizers.legacy.Adam(1e-3)
    x, y = images(28, 1, 64)
    data = iter(strategy.experimental_distribute_dataset(tf.data.Dataset.from_tensor_slices((x, y)).batch(32).repeat()))

    def one(x, y):
        with tf.GradientTape() as record:
            loss = tf.reduce_sum(tf.nn.sparse_softmax_cross_entropy_with_logits(y, net(x, training=True))) / 32
        optimizer.apply_gradients(zip(record.gradient(loss, net.trainable_variables), net.trainable_variables))
        return loss

    @tf.function
    def step(batch):
        return strategy.reduce(tf.distribute.ReduceOp.SUM, strategy.run(one, args=batch), axis=None)

    return lambda i: step(next(data)).numpy()


def layers_that_go_backwards():
    """Blocks whose inputs are computed again from their outputs by a custom gradient (RevNet)."""
    f, g = ([sequential(layers.Dense(64, "gelu"), layers.Dense(64)) for _ in range(3)] for _ in range(2))
    stem, head = layers.Dense(128), layers.Dense(10)
    x, y = normal(64, 96), tf.constant(np.arange(64) % 10)
    for net in (*f, *g):
        net(tf.zeros([1, 64]))
    head(stem(x)[:, :128])

    def block(i):
        @tf.custom_gradient
        def run(a, b):
            a2 = a + f[i](b)
            b2 = b + g[i](a2)

            def back(da, db, variables=None):
                with tf.GradientTape() as record:
                    record.watch(a2)
                    made = g[i](a2)
                slopes = record.gradient(made, [a2, *g[i].trainable_variables], db)
                da2, last = da + slopes[0], b2 - made
                with tf.GradientTape() as record:
                    record.watch(last)
                    made = f[i](last)
                more = record.gradient(made, [last, *f[i].trainable_variables], da2)
                known = {id(v): s for v, s in zip(g[i].trainable_variables + f[i].trainable_variables, slopes[1:] + more[1:])}
                return (da2, db + more[0]), [known[id(v)] for v in variables]

            return (a2, b2), back

        return run

    def loss(x, y):
        a, b = tf.split(stem(x), 2, 1)
        for i in range(3):
            a, b = block(i)(a, b)
        return entropy(y, head(tf.concat([a, b], 1)))

    return tape(lambda: [v for net in (stem, *f, *g, head) for v in net.trainable_variables], tf.keras.optimizers.Adam(1e-3), loss, [(x, y)])


def chances_of_words_chained():
    """Best labels of a sentence by a chain whose partition function a scan sums (CRF behind two directions), masked."""
    x, y = tokens(20, 16, 999)[0], tf.constant(np.random.RandomState(1).randint(9, size=(16, 20)))
    body = sequential(layers.Embedding(1000, 48, mask_zero=True), layers.Bidirectional(layers.GRU(32, return_sequences=True)), layers.Dense(9))
    chain = tf.Variable(tf.random.stateless_normal([9, 9], [1, 2]) * 0.1)
    lengths = tf.constant(np.arange(16) % 10 + 10)
    body(x)

    def loss(x, y):
        scores, mask = body(x), tf.sequence_mask(lengths, 20, tf.float32)
        told = tf.reduce_sum(tf.gather(scores, y, batch_dims=2) * mask, 1)
        told += tf.reduce_sum(tf.gather_nd(chain, tf.stack([y[:, :-1], y[:, 1:]], -1)) * mask[:, 1:], 1)

        def turn(last, value):
            score, alive = value
            made = tf.reduce_logsumexp(last[:, :, None] + chain, 1) + score
            return tf.where(alive[:, None] > 0, made, last)

        alphas = tf.scan(turn, (tf.transpose(scores[:, 1:], [1, 0, 2]), tf.transpose(mask[:, 1:])), scores[:, 0])
        return tf.reduce_mean(tf.reduce_logsumexp(alphas[-1], 1) - told)

    return tape(lambda: [*body.trainable_variables, chain], tf.keras.optimizers.RMSprop(1e-3), loss, [(x, y)])


def times_solved_by_steps():
    """An equation of time by steps whose length follows the error, in a while loop of a tf.function (Dormand and Prince's idea)."""
    net, head = sequential(layers.Dense(48, "tanh"), layers.Dense(16)), layers.Dense(4)
    x, y = normal(32, 16), normal(32, 4, seed=1)
    head(net(x))

    def solved(z):
        t, width = tf.constant(0.0), tf.constant(0.2)
        for _ in tf.range(12):
            if t < 1.0:
                step = tf.minimum(width, 1.0 - t)
                a = net(z)
                b = net(z + step * a)
                error = tf.stop_gradient(tf.reduce_max(tf.abs(step / 2 * (b - a))))
                if error < 0.5:
                    z, t = z + step / 2 * (a + b), t + step
                width = step * tf.clip_by_value(0.9 * tf.sqrt(0.5 / (error + 1e-6)), 0.5, 2.0)
        return z

    return tape(lambda: net.trainable_variables + head.trainable_variables, tf.keras.optimizers.Adam(1e-3),
                lambda x, y: tf.reduce_mean(tf.square(head(solved(x)) - y)), [(x, y)])  # fmt: skip
