"""Training in TensorFlow 2: tapes in tapes, sampled places, data sets, models of one's own. As tf2_keras.py."""

import numpy as np
import tensorflow as tf
from tensorflow.keras import layers

from cases.tf2_keras import images, sequential, tape, tokens


def normal(*shape, seed=0):
    return tf.constant(np.random.RandomState(seed).randn(*shape).astype("f"))


def taped(model, loss, feeds, optimizer=None):
    return tape(lambda: model.trainable_variables, optimizer or tf.keras.optimizers.Adam(1e-3), loss, feeds)


def entropy(y, logits):
    return tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(y, logits))


def fitted(model, data):
    """Steps of `fit` over a data set, one a call."""
    rows = iter(data.repeat())
    return lambda i: model.train_on_batch(*next(rows))


def convolutions_that_move():
    """Nine sampled places for each pixel, which the net chooses (deformable convolution)."""
    x, y = images(24, 3, 8)
    stem, offsets = layers.Conv2D(16, 3, 2, "same", activation="relu"), layers.Conv2D(18, 3, padding="same", kernel_initializer="zeros")
    mix, out = layers.Conv2D(32, 1, activation="relu"), layers.Dense(10)
    near = np.stack(np.meshgrid(np.arange(3) - 1, np.arange(3) - 1, indexing="ij"), -1).reshape(9, 2)
    start = np.stack(np.meshgrid(np.arange(12), np.arange(12), indexing="ij"), -1)[:, :, None] + near

    def sampled(h, places):
        low = tf.floor(places)
        made = 0.0
        for corner in ((0, 0), (0, 1), (1, 0), (1, 1)):
            at = low + tf.constant(corner, tf.float32)
            share = tf.reduce_prod(1 - tf.abs(places - at), -1, keepdims=True)
            inside = tf.cast(tf.reduce_all((at >= 0) & (at < 12), -1, keepdims=True), tf.float32)
            made += share * inside * tf.gather_nd(h, tf.cast(tf.clip_by_value(at, 0, 11), tf.int32), batch_dims=1)
        return made

    def logits(x):
        h = stem(x)
        places = tf.constant(start, tf.float32) + tf.reshape(offsets(h), [8, 12, 12, 9, 2])
        return out(tf.reduce_mean(mix(tf.reshape(sampled(h, places), [8, 12, 12, 144])), [1, 2]))

    logits(x)
    return tape(
        lambda: [v for part in (stem, offsets, mix, out) for v in part.trainable_variables],
        tf.keras.optimizers.Adam(1e-3),
        lambda x, y: entropy(y, logits(x)),
        [(x, y)],
    )


def critic_with_flat_slope():
    """The critic's slope at real images is held small: a tape in a tape, through convolutions (R1)."""
    model = sequential(layers.Conv2D(32, 4, 2, "same"), layers.LeakyReLU(0.2), layers.Conv2D(64, 4, 2, "same"), layers.LeakyReLU(0.2),
                       layers.Flatten(), layers.Dense(1))  # fmt: skip
    real, fake = images(32, 3, 16)[0], normal(16, 32, 32, 3, seed=1)
    model(real)

    def loss(real, fake):
        with tf.GradientTape() as inner:
            inner.watch(real)
            good = model(real)
        slope = inner.gradient(good, real)
        held = tf.reduce_mean(tf.reduce_sum(tf.square(slope), [1, 2, 3]))
        return tf.reduce_mean(tf.nn.softplus(-good)) + tf.reduce_mean(tf.nn.softplus(model(fake))) + 5 * held

    return taped(model, loss, [(real, fake)])


def flow_by_cost_volumes():
    """Where each place went: products with shifted features, refined on two scales (PWC)."""
    one, two = images(64, 3, 4)[0], normal(4, 64, 64, 3, seed=1)
    stem = [layers.Conv2D(width, 3, 2, "same", activation=tf.nn.leaky_relu) for width in (16, 24, 32)]
    head = lambda: sequential(layers.Conv2D(48, 3, padding="same", activation=tf.nn.leaky_relu), layers.Conv2D(2, 3, padding="same"))  # noqa: E731
    heads = [head(), head()]

    def levels(x):
        made = [x := part(x) for part in stem]
        return made[:0:-1]

    def moved(h, flow):
        size = h.shape[1]
        grid = tf.stack(tf.meshgrid(tf.range(float(size)), tf.range(float(size)), indexing="ij"), -1) + flow
        low, made = tf.floor(grid), 0.0
        for corner in ((0.0, 0.0), (0.0, 1.0), (1.0, 0.0), (1.0, 1.0)):
            at = low + tf.constant(corner)
            share = tf.reduce_prod(1 - tf.abs(grid - at), -1, keepdims=True)
            made += share * tf.gather_nd(h, tf.cast(tf.clip_by_value(at, 0.0, size - 1.0), tf.int32), batch_dims=1)
        return made

    def flows(one, two):
        flow = tf.zeros([4, 8, 8, 2])
        for head, a, b in zip(heads, levels(one), levels(two)):
            size = a.shape[1]
            flow = 2 * tf.image.resize(flow, [size, size]) if size > 8 else flow
            wide = tf.pad(moved(b, flow), [[0, 0], [3, 3], [3, 3], [0, 0]])
            costs = [tf.reduce_mean(a * wide[:, i : i + size, j : j + size], -1) for i in range(7) for j in range(7)]
            flow += head(tf.concat([tf.nn.leaky_relu(tf.stack(costs, -1)), a, flow], -1))
        return flow

    flows(one, two)
    wanted = normal(4, 16, 16, 2, seed=2)
    return tape(
        lambda: [v for part in (*stem, *heads) for v in part.trainable_variables],
        tf.keras.optimizers.Adam(1e-3),
        lambda a, b: tf.reduce_mean(tf.norm(flows(a, b) - wanted + 1e-6, axis=-1)),
        [(one, two)],
    )


def bags_of_ragged_rows():
    """Rows of as many words as they have, from a data set, through `train_on_batch`."""
    random = np.random.RandomState(0)
    rows = tf.ragged.constant([list(random.randint(1, 2000, size=random.randint(3, 30))) for _ in range(640)])
    data = tf.data.Dataset.from_tensor_slices((rows, np.arange(640) % 10)).batch(64)
    inputs = tf.keras.Input([None], ragged=True, dtype=tf.int32)
    h = tf.reduce_mean(layers.Embedding(2000, 32)(inputs), 1)
    model = tf.keras.Model(inputs, layers.Dense(10)(layers.Dense(64, "relu")(h)))
    model.compile("adam", tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True))
    return fitted(model, data)


def model_that_gathers_gradients():
    """A model's own step: gradients of four batches before one update, under a condition."""

    class Gathering(tf.keras.Model):
        def build_sums(self):
            self.sums = [tf.Variable(tf.zeros_like(v), trainable=False) for v in self.trainable_variables]
            self.count = tf.Variable(0, trainable=False)

        def train_step(self, data):
            x, y = data
            with tf.GradientTape() as record:
                loss = self.compiled_loss(y, self(x, training=True))
            for total, gradient in zip(self.sums, record.gradient(loss, self.trainable_variables)):
                total.assign_add(gradient / 4)
            self.count.assign_add(1)
            tf.cond(self.count % 4 == 0, self.update, lambda: None)
            return {"loss": loss}

        def update(self):
            self.optimizer.apply_gradients(zip([total.value() for total in self.sums], self.trainable_variables))
            for total in self.sums:
                total.assign(tf.zeros_like(total))

    inputs = tf.keras.Input([28, 28, 1])
    h = layers.Conv2D(32, 3, 2, activation="relu")(layers.Conv2D(16, 3, activation="relu")(inputs))
    model = Gathering(inputs, layers.Dense(10)(layers.Flatten()(h)))
    model.build_sums()
    model.compile(tf.keras.optimizers.Adam(1e-3), tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True))
    x, y = images(28, 1, 320)
    return fitted(model, tf.data.Dataset.from_tensor_slices((x, y)).batch(32))


def features_without_correlation():
    """Groups of channels are turned until they are independent (whitening by eigenvectors)."""
    x, y = images(28, 1, 32)
    stem = layers.Conv2D(16, 3, 2, activation="relu")
    out = sequential(layers.Conv2D(32, 3, 2, activation="relu"), layers.Flatten(), layers.Dense(10))

    def logits(x):
        h = tf.reshape(stem(x), [-1, 16])
        h -= tf.reduce_mean(h, 0)
        values, vectors = tf.linalg.eigh(tf.matmul(h, h, transpose_a=True) / 5408 + 1e-2 * tf.linalg.diag(tf.range(1.0, 17.0)))
        turn = tf.matmul(vectors * tf.math.rsqrt(values), vectors, transpose_b=True)
        return out(tf.reshape(tf.matmul(h, turn), [32, 13, 13, 16]))

    logits(x)
    return tape(
        lambda: stem.trainable_variables + out.trainable_variables, tf.keras.optimizers.Adam(1e-3), lambda x, y: entropy(y, logits(x)), [(x, y)]
    )


def codes_that_contract():
    """The derivative of each code by each input is held small (contractive autoencoder)."""
    into, out = layers.Dense(24, tf.nn.sigmoid), layers.Dense(64)
    x = normal(64, 64)
    out(into(x))

    def loss(x):
        with tf.GradientTape() as inner:
            inner.watch(x)
            h = into(x)
        slopes = inner.batch_jacobian(h, x)
        return tf.reduce_mean(tf.square(out(h) - x)) + 0.1 * tf.reduce_mean(tf.reduce_sum(slopes**2, [1, 2]))

    return tape(lambda: into.trainable_variables + out.trainable_variables, tf.keras.optimizers.Adam(1e-3), loss, [(x,)])


def gradients_of_each_sample():
    """Each sample's gradient is clipped on its own, then noise is added (private learning)."""
    model = sequential(layers.Conv2D(8, 5, 2, activation="relu"), layers.Flatten(), layers.Dense(32, "relu"), layers.Dense(10))
    x, y = images(28, 1, 32)
    model(x)
    optimizer = tf.keras.optimizers.SGD(0.1)

    @tf.function
    def step(x, y):
        with tf.GradientTape() as record:
            losses = tf.nn.sparse_softmax_cross_entropy_with_logits(y, model(x))
        slopes = record.jacobian(losses, model.trainable_variables)
        length = tf.sqrt(tf.add_n([tf.reduce_sum(tf.reshape(slope, [32, -1]) ** 2, 1) for slope in slopes]))
        share = tf.minimum(1.0, 1.0 / length)
        made = [tf.tensordot(share, slope, 1) / 32 + 0.001 * tf.random.stateless_normal(slope.shape[1:], [1, 2]) for slope in slopes]
        optimizer.apply_gradients(zip(made, model.trainable_variables))
        return tf.reduce_mean(losses)

    return lambda i: step(x, y).numpy()


def layers_computed_again():
    """Blocks whose inner values are made anew on the way back (recompute_grad)."""
    x, y = tokens(48, 8, 2000)

    def again(norm, attend, norm2, wide, narrow):
        @tf.recompute_grad
        def block(h):
            h += attend(norm(h), norm(h))
            return h + narrow(wide(norm2(h)))

        return block

    words, blocks, out = layers.Embedding(2000, 64), [], layers.Dense(10)
    for _ in range(3):
        norms = layers.LayerNormalization(), layers.LayerNormalization()
        parts = norms[0], layers.MultiHeadAttention(4, 16), norms[1], layers.Dense(256, "gelu"), layers.Dense(64)
        parts[1](words(x), words(x))
        for part, width in zip((*parts[:1], *parts[2:]), (64, 64, 64, 256)):
            part.build([8, 48, width])
        blocks.append((parts, again(*parts)))

    def logits(x):
        h = words(x)
        for _, block in blocks:
            h = block(h)
        return out(tf.reduce_mean(h, 1))

    logits(x)
    return tape(
        lambda: [v for part in (words, out, *(each for parts, _ in blocks for each in parts)) for v in part.trainable_variables],
        tf.keras.optimizers.Adam(1e-3),
        lambda x, y: entropy(y, logits(x)),
        [(x, y)],
    )


def choices_made_soft():
    """Codes of categories drawn by Gumbel noise, which harden as training goes on."""
    encoder, decoder = (sequential(layers.Dense(256, "relu"), layers.Dense(width)) for width in (20 * 10, 784))
    x = tf.abs(normal(64, 784)) % 1
    level = tf.Variable(1.0, trainable=False)
    decoder(encoder(x))

    def loss(x):
        logits = tf.reshape(encoder(x), [64, 20, 10])
        noise = -tf.math.log(-tf.math.log(tf.random.stateless_uniform([64, 20, 10], [3, 4], 1e-6, 1.0)))
        drawn = tf.nn.softmax((logits + noise) / level)
        level.assign(tf.maximum(0.5, level * 0.999))
        share = tf.nn.log_softmax(logits)
        apart = tf.reduce_sum(tf.exp(share) * (share + np.log(10).astype("f")), [1, 2])
        made = decoder(tf.reshape(drawn, [64, 200]))
        return tf.reduce_mean(tf.reduce_sum(tf.nn.sigmoid_cross_entropy_with_logits(x, made), 1) + apart)

    return tape(lambda: encoder.trainable_variables + decoder.trainable_variables, tf.keras.optimizers.Adam(1e-3), loss, [(x,)])


def several_inputs_and_losses():
    """A functional model of words and numbers with two outputs, weighed samples and metrics."""
    ids, numbers = tf.keras.Input([20], dtype=tf.int32), tf.keras.Input([12])
    h = layers.Bidirectional(layers.GRU(32))(layers.Embedding(2000, 32, mask_zero=True)(ids))
    h = layers.Dense(64, "relu")(layers.Concatenate()([h, layers.Dense(32, "relu")(layers.Normalization(mean=0.0, variance=1.0)(numbers))]))
    model = tf.keras.Model([ids, numbers], {"kind": layers.Dense(5, "softmax", name="kind")(h), "click": layers.Dense(1, "sigmoid", name="click")(h)})
    model.compile(
        tf.keras.optimizers.Adam(1e-3, global_clipnorm=1.0),
        {"kind": "sparse_categorical_crossentropy", "click": "binary_crossentropy"},
        loss_weights={"kind": 1.0, "click": 0.5},
        metrics={"kind": "accuracy", "click": [tf.keras.metrics.AUC(num_thresholds=50)]},
    )
    random = np.random.RandomState(0)
    x = [random.randint(2000, size=(64, 20)) * (random.rand(64, 20) < 0.8), random.randn(64, 12).astype("f")]
    y = {"kind": random.randint(5, size=64), "click": random.randint(2, size=(64, 1))}
    weights = {"kind": random.rand(64).astype("f"), "click": np.ones(64, "f")}
    return lambda i: model.train_on_batch(x, y, weights)[0]


def averaged_lion():
    """Steps by signs alone, and averages of the weights that are put in their place now and then."""
    x, y = images(32, 3, 16)
    model = sequential(layers.Conv2D(32, 3, activation="relu"), layers.Conv2D(64, 3, 2, activation="relu"), layers.GlobalAveragePooling2D(), layers.Dense(10))
    model.compile(tf.keras.optimizers.Lion(1e-4, use_ema=True, ema_overwrite_frequency=20), tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True))
    return lambda i: model.train_on_batch(x, y)


def hour_glass():
    """Down to small images and up again, twice; losses about the peaks of heat maps (CenterNet)."""
    inputs = tf.keras.Input([48, 48, 3])
    conv = lambda x, width, stride=1: layers.ReLU()(layers.BatchNormalization()(layers.Conv2D(width, 3, stride, "same", use_bias=False)(x)))  # noqa: E731
    x, heats = conv(inputs, 24, 2), []
    for _ in range(2):
        a = conv(x, 32, 2)
        b = conv(a, 48, 2)
        a = layers.Add()([conv(a, 32), layers.UpSampling2D()(conv(b, 32))])
        x = layers.Add()([x, layers.UpSampling2D()(conv(a, 24))])
        heats.append(layers.Conv2D(5, 1)(x))
    model = tf.keras.Model(inputs, heats)
    random = np.random.RandomState(0)
    heat = tf.constant(np.exp(-4 * random.rand(8, 24, 24, 5)).astype("f") * (random.rand(8, 24, 24, 5) < 0.3) + (random.rand(8, 24, 24, 5) < 0.01))

    def loss(x, heat):
        total, peak = 0.0, tf.cast(heat >= 1, tf.float32)
        for made in model(x, training=True):
            share = tf.clip_by_value(tf.sigmoid(made), 1e-4, 1 - 1e-4)
            found = (1 - share) ** 2 * tf.math.log(share) * peak
            none = tf.maximum(1 - heat, 0) ** 4 * share**2 * tf.math.log(1 - share) * (1 - peak)
            total -= tf.reduce_sum(found + none) / tf.reduce_sum(peak)
        return total

    return taped(model, loss, [(images(48, 3, 8)[0], tf.cast(heat, tf.float32))])
