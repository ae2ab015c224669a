"""Training in TensorFlow 2: forward slopes, implicit layers, other optimisers, cells and layers of one's own. As tf2_keras.py."""

import numpy as np
import tensorflow as tf
from tensorflow.keras import layers

from cases.tf2_functions import entropy, fitted, normal, taped
from cases.tf2_keras import images, sequential, tape, tokens


def slopes_by_forward_mode():
    """Divergences of a velocity by forward derivatives: a continuous flow's volume (FFJORD, Hutchinson's trace)."""
    net = sequential(layers.Dense(64, "tanh"), layers.Dense(64, "tanh"), layers.Dense(8))
    x, way = normal(128, 8), tf.sign(normal(128, 8, seed=1))
    net(x)

    def loss(x, way):
        volume = tf.zeros([128])
        for _ in range(4):
            with tf.autodiff.ForwardAccumulator(x, way) as record:
                speed = net(x)
            volume -= 0.25 * tf.reduce_sum(record.jvp(speed) * way, 1)
            x = x + 0.25 * speed
        return tf.reduce_mean(0.5 * tf.reduce_sum(x**2, 1) - volume)

    return taped(net, loss, [(x, way)])


def layers_in_balance():
    """A layer applied until nothing changes, whose gradient solves the same balance (deep equilibrium)."""
    x, y = images(16, 3, 16)
    stem, inner, out = layers.Dense(64), layers.Dense(64), layers.Dense(10)
    flat = tf.reshape(x, [16, -1])

    def turned(z, u):
        return tf.tanh(0.5 * inner(z) + u)

    @tf.custom_gradient
    def balance(u, kernel, bias):
        z = tf.while_loop(lambda _: True, lambda z: (tf.tanh(0.5 * (tf.matmul(z, kernel) + bias) + u),), (tf.zeros([16, 64]),), maximum_iterations=30)[0]

        def back(dz):
            slope = 1 - z**2
            turn = lambda w: (dz + 0.5 * tf.matmul(w * slope, kernel, transpose_b=True),)  # noqa: E731
            g = tf.while_loop(lambda _: True, turn, (dz,), maximum_iterations=30)[0] * slope
            return g, 0.5 * tf.matmul(z, g, transpose_a=True), 0.5 * tf.reduce_sum(g, 0)

        return z, back

    inner.build([16, 64])
    out(turned(tf.zeros([16, 64]), stem(flat)))
    return tape(
        lambda: [v for part in (stem, inner, out) for v in part.trainable_variables],
        tf.keras.optimizers.Adam(1e-3),
        lambda x, y: entropy(y, out(balance(stem(x), inner.kernel, inner.bias))),
        [(flat, y)],
    )


def weights_of_one_bit():
    """Signs of weights and activations in the products, gradients as if there were none (XNOR-Net)."""

    @tf.custom_gradient
    def sign(x):
        return tf.where(x >= 0, 1.0, -1.0), lambda dy: dy * tf.cast(tf.abs(x) <= 1, tf.float32)

    class Binary(layers.Layer):
        def __init__(self, filters):
            super().__init__()
            self.filters = filters

        def build(self, shape):
            self.kernel = self.add_weight("kernel", [3, 3, shape[-1], self.filters], constraint=lambda w: tf.clip_by_value(w, -1.0, 1.0))

        def call(self, x):
            scale = tf.reduce_mean(tf.abs(self.kernel), [0, 1, 2])
            return tf.nn.conv2d(sign(x), sign(self.kernel), 1, "SAME") * scale

    x, y = images(24, 3, 16)
    model = sequential(layers.Conv2D(32, 3), layers.BatchNormalization(), Binary(32), layers.MaxPool2D(), layers.BatchNormalization(),
                       Binary(64), layers.BatchNormalization(), layers.GlobalAveragePooling2D(), layers.Dense(10))  # fmt: skip
    model.compile(tf.keras.optimizers.Adam(1e-3), tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True))
    return lambda i: model.train_on_batch(x, y)


def steps_of_flat_places():
    """Each step first climbs to the worst place nearby and takes that place's gradient (SAM)."""
    x, y = images(24, 3, 16)
    model = sequential(layers.Conv2D(32, 3, 2, activation="relu"), layers.Conv2D(64, 3, 2, activation="relu"), layers.GlobalAveragePooling2D(), layers.Dense(10))
    model(x)
    optimizer = tf.keras.optimizers.SGD(0.05, 0.9)

    def slopes(x, y):
        with tf.GradientTape() as record:
            loss = entropy(y, model(x))
        return loss, record.gradient(loss, model.trainable_variables)

    @tf.function
    def step(x, y):
        loss, first = slopes(x, y)
        scale = 0.05 / (tf.linalg.global_norm(first) + 1e-12)
        for v, g in zip(model.trainable_variables, first):
            v.assign_add(scale * g)
        _, second = slopes(x, y)
        for v, g in zip(model.trainable_variables, first):
            v.assign_sub(scale * g)
        optimizer.apply_gradients(zip(second, model.trainable_variables))
        return loss

    return lambda i: step(x, y).numpy()


def steps_by_matrix_roots():
    """Gradients between inverse fourth roots of their second moments, by eigenvectors (Shampoo)."""
    x, y = normal(128, 32), tf.constant(np.arange(128) % 10)
    model = sequential(layers.Dense(48, "relu", use_bias=False), layers.Dense(10, use_bias=False))
    model(x)
    sides = [[tf.Variable(0.1 * tf.eye(size), trainable=False) for size in v.shape] for v in model.trainable_variables]

    def root(m):
        values, vectors = tf.linalg.eigh(m)
        return tf.matmul(vectors * tf.maximum(values, 1e-6) ** -0.25, vectors, transpose_b=True)

    @tf.function
    def step(x, y):
        with tf.GradientTape() as record:
            loss = entropy(y, model(x))
        for v, g, (left, right) in zip(model.trainable_variables, record.gradient(loss, model.trainable_variables), sides):
            left.assign_add(tf.matmul(g, g, transpose_b=True))
            right.assign_add(tf.matmul(g, g, transpose_a=True))
            v.assign_sub(0.1 * tf.matmul(tf.matmul(root(left), g), root(right)))
        return loss

    return lambda i: step(x, y).numpy()


def graphs_with_places():
    """A transformer over nodes: eigenvectors of the graph as places, distances and edges as biases (Graphormer)."""
    random = np.random.RandomState(0)
    near = (random.rand(8, 24, 24) < 0.15) | (random.rand(8, 24, 24).transpose(0, 2, 1) < 0.0)
    near = near | near.transpose(0, 2, 1)
    steps = np.where(near, 1, 5) * (1 - np.eye(24, dtype=int))
    for k in range(24):
        steps = np.minimum(steps, np.minimum(steps[:, :, k : k + 1] + steps[:, k : k + 1], 5))
    feeds = tf.constant(random.randint(30, size=(8, 24))), tf.constant(steps), tf.constant(near.sum(2)), normal(8, 24, 4), tf.constant(np.arange(8) % 10)

    class Net(tf.keras.Model):
        def __init__(self):
            super().__init__()
            self.kinds, self.degrees, self.far = layers.Embedding(30, 64), layers.Embedding(24, 64), layers.Embedding(6, 4)
            self.places, self.out = layers.Dense(64), layers.Dense(10)
            self.blocks = [(layers.LayerNormalization(), layers.Dense(192), layers.Dense(64), layers.LayerNormalization(),
                            layers.Dense(128, "gelu"), layers.Dense(64)) for _ in range(3)]  # fmt: skip

        def call(self, kinds, steps, degrees, places):
            flip = tf.where(tf.random.stateless_uniform([8, 1, 4], [1, 2]) < 0.5, -1.0, 1.0)
            h = self.kinds(kinds) + self.degrees(degrees) + self.places(places * flip)
            bias = tf.transpose(self.far(steps), [0, 3, 1, 2])
            for norm, qkv, mix, norm2, wide, narrow in self.blocks:
                q, k, v = tf.unstack(tf.reshape(qkv(norm(h)), [8, 24, 3, 4, 16]), axis=2)
                shares = tf.nn.softmax(tf.einsum("bihd,bjhd->bhij", q, k) / 4 + bias)
                h += mix(tf.reshape(tf.einsum("bhij,bjhd->bihd", shares, v), [8, 24, 64]))
                h += narrow(wide(norm2(h)))
            return self.out(tf.reduce_mean(h, 1))

    net = Net()
    net(*feeds[:4])
    return taped(net, lambda *parts: entropy(parts[4], net(*parts[:4])), [feeds])


def selective_scan_of_words():
    """Gates by the input choose what a state keeps, step by step in a scan of TensorFlow's own (Mamba)."""
    ids, y = tokens(32, 8, 2000)
    words, into, conv, out = layers.Embedding(2000, 32), layers.Dense(128), layers.Conv1D(64, 4, padding="causal", groups=64), layers.Dense(10)
    gates, steps, back = layers.Dense(16 + 4), layers.Dense(64), layers.Dense(32)
    decay = tf.Variable(tf.math.log(tf.tile(tf.range(1.0, 9.0)[None], [64, 1])))
    skip = tf.Variable(tf.ones([64]))

    def logits(ids):
        h = words(ids)
        x, gate = tf.split(into(h), 2, -1)
        x = tf.nn.silu(conv(x))
        b, c, low = tf.split(gates(x), [8, 8, 4], -1)
        size = tf.nn.softplus(steps(low))
        kept = tf.exp(-size[..., None] * tf.exp(decay))
        put = (size * x)[..., None] * b[:, :, None]
        states = tf.scan(
            lambda s, each: each[0] * s + each[1],
            (tf.transpose(kept, [1, 0, 2, 3]), tf.transpose(put, [1, 0, 2, 3])),
            tf.zeros([8, 64, 8]),
        )
        made = tf.einsum("tbds,bts->btd", states, c) + skip * x
        return out(tf.reduce_mean(h + back(made * tf.nn.silu(gate)), 1))

    logits(ids)
    parts = words, into, conv, out, gates, steps, back
    return tape(
        lambda: [decay, skip, *(v for part in parts for v in part.trainable_variables)],
        tf.keras.optimizers.AdamW(1e-3),
        lambda ids, y: entropy(y, logits(ids)),
        [(ids, y)],
    )


def cells_of_ones_own():
    """A recurrent cell written by hand, with layer norm and drawn zone-outs, in Keras' RNN, both ways."""

    class Cell(layers.Layer):
        def __init__(self, units, **more):
            super().__init__(**more)
            self.units, self.state_size = units, [units, units]
            self.x, self.h, self.norm = layers.Dense(4 * units), layers.Dense(4 * units, use_bias=False), layers.LayerNormalization()

        def call(self, inputs, states, training=None):
            h, c = states
            i, f, g, o = tf.split(self.norm(self.x(inputs) + self.h(h)), 4, -1)
            c = tf.sigmoid(f + 1) * c + tf.sigmoid(i) * tf.tanh(g)
            h = tf.sigmoid(o) * tf.tanh(c)
            return h, [h, c]

        def get_config(self):
            return {**super().get_config(), "units": self.units}

    x, y = tokens(24, 16, 2000)
    model = sequential(layers.Embedding(2000, 32, tf.random_normal_initializer(stddev=1.0), mask_zero=True), layers.Bidirectional(layers.RNN(Cell(32), return_sequences=True)), layers.RNN(Cell(32)), layers.Dense(10))
    model.compile(tf.keras.optimizers.RMSprop(1e-3, clipvalue=1.0), tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True))
    return lambda i: model.train_on_batch(x, y)


def images_changed_by_layers():
    """Preprocessing inside the model: crops, flips, contrast and turns are drawn anew each step."""
    random = np.random.RandomState(0)
    data = tf.data.Dataset.from_tensor_slices((random.rand(64, 32, 32, 3).astype("f"), random.randint(10, size=64))).batch(16, drop_remainder=True)
    model = sequential(layers.Rescaling(2.0, -1.0), layers.CenterCrop(28, 28), layers.Conv2D(32, 3, 2), layers.PReLU(shared_axes=[1, 2]),
                       layers.SpatialDropout2D(0.0), layers.ZeroPadding2D(1), layers.SeparableConv2D(64, 3, activation="gelu"),
                       layers.UnitNormalization(), layers.Flatten(), layers.Dense(64, kernel_regularizer="l2"), layers.LeakyReLU(), layers.Dense(10))  # fmt: skip
    model.compile("sgd", tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True), jit_compile=False)
    return fitted(model, data)


def pictures_turned_and_zoomed():
    """Augmentation by Keras' layers inside the model: flips, turns, zooms, moves, contrast, brightness and crops, drawn anew each step."""
    random = np.random.RandomState(0)
    data = tf.data.Dataset.from_tensor_slices((random.rand(128, 48, 48, 3).astype("f"), random.randint(5, size=128))).batch(32, drop_remainder=True)
    model = sequential(layers.RandomFlip("horizontal"), layers.RandomRotation(0.1), layers.RandomZoom(0.2), layers.RandomTranslation(0.1, 0.1),
                       layers.RandomContrast(0.2), layers.RandomBrightness(0.1, (0, 1)), layers.RandomCrop(40, 40),
                       layers.Conv2D(16, 3, activation="relu"), layers.MaxPooling2D(), layers.Conv2D(32, 3, activation="relu"), layers.MaxPooling2D(),
                       layers.Flatten(), layers.Dense(64, "relu"), layers.Dense(5))  # fmt: skip
    model.compile("adam", tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True), jit_compile=False)
    return fitted(model, data)


def triplets_and_centres():
    """Metric learning with large batches: supervised contrast, centres of classes, and a memory of their moving means."""
    x, y = normal(512, 128), tf.constant(np.random.RandomState(0).randint(64, size=512))
    net = sequential(layers.Dense(256, "relu"), layers.BatchNormalization(), layers.Dense(64))
    centres = tf.Variable(tf.random.stateless_normal([64, 64], [1, 2]), trainable=False)
    net(x)

    def loss(x, y):
        h = tf.math.l2_normalize(net(x, training=True), 1)
        scores = tf.matmul(h, h, transpose_b=True) / 0.1 - 1e9 * tf.eye(512)
        same = tf.cast(y[:, None] == y, tf.float32) - tf.eye(512)
        share = scores - tf.reduce_logsumexp(scores, 1, keepdims=True)
        contrast = -tf.reduce_sum(same * share, 1) / tf.maximum(tf.reduce_sum(same, 1), 1)
        means = tf.math.unsorted_segment_mean(tf.stop_gradient(h), y, 64)
        centres.assign(0.9 * centres + 0.1 * means)
        return tf.reduce_mean(contrast) + 0.1 * tf.reduce_mean(tf.reduce_sum((h - tf.gather(centres, y)) ** 2, 1))

    return taped(net, loss, [(x, y)])
